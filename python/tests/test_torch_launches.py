"""Kernels that Triton, torch.compile, Numba and CuPy launch on memory of torch, under weir.torch.check() and safe().

Without a GPU, modules with the functions that the packages launch with stand for them: test_torch_launches_cuda.py has
the packages themselves.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import weir
import weir.torch
from torch_device import Device, needs_torch, torch
from weir import _torch_launches

pytestmark = needs_torch

A, B = 16, 32  # streams


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setattr(_torch_launches, "pretends", True)
    made = Device()
    yield made
    made.end()


class JITFunction:
    """As Triton's: kernel[grid](...) calls run(...)."""

    def __init__(self, body: Callable[..., object]) -> None:
        self.fn = body
        code = body.__code__
        self.arg_names = list(code.co_varnames[: code.co_argcount])

    def __getitem__(self, grid: Any) -> Callable[..., object]:
        return lambda *args, **named: self.run(*args, grid=grid, warmup=False, **named)

    def run(self, *args: Any, grid: Any, warmup: bool, **named: Any) -> object:
        return None if warmup else self.fn(*args, **named)


class Autotuner:
    """A decorator of Triton's kernels."""

    def __init__(self, fn: JITFunction) -> None:
        self.fn = fn
        self.arg_names = fn.arg_names

    def __getitem__(self, grid: Any) -> Callable[..., object]:
        return lambda *args, **named: self.run(*args, grid=grid, warmup=False, **named)

    def run(self, *args: Any, **named: Any) -> object:
        return self.fn.run(*args, **named)


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    jit = ModuleType("triton.runtime.jit")
    jit.JITFunction = type("JITFunction", (JITFunction,), {"run": JITFunction.run})
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", jit)
    return jit


def races(device: Device, first: Callable[[], object], second: Callable[[], object]) -> weir.Report:
    with weir.torch.check() as report:
        device.on(A)
        first()
        device.on(B)
        second()
    return report


def waits(device: Device, first: Callable[[], object], second: Callable[[], object]) -> int:
    """How many waits `second` needs on another stream."""
    with weir.torch.safe() as safe:
        device.on(A)
        first()
        device.on(B)
        before = safe.waits
        second()
        return safe.waits - before


def scale(x: object, out: object, factor: float) -> None: ...


def test_v1_a_launch_reads_and_writes_its_tensors(device: Device, triton: Any) -> None:
    kernel = triton.JITFunction(scale)
    x, y = torch.zeros(8), torch.zeros(8)
    report = races(device, lambda: kernel[(1,)](x, y, 2.0), lambda: y.add_(1))
    assert len(report) == 1
    assert report[0].certainty == "possible", "a launch may leave an array alone"
    assert "scale" in str(report)
    assert __file__.rpartition("/")[2] in str(report)
    assert len(races(device, lambda: x.mul_(2), lambda: kernel[(1,)](x, y, 2.0))) == 1
    assert not races(device, lambda: x.mul_(2), lambda: kernel[(1,)](y, y, 2.0))
    assert not report.unseen


def test_v1_launches_that_the_program_orders_are_no_races(device: Device, triton: Any) -> None:
    kernel = triton.JITFunction(scale)
    x, y = torch.zeros(8), torch.zeros(8)

    def waited() -> None:
        device.wait(B, A)
        kernel[(1,)](x, y, 2.0)

    assert not races(device, lambda: x.add_(1), waited)


def test_v1_declared_launches_write_what_is_declared(device: Device, triton: Any) -> None:
    kernel = triton.JITFunction(scale)
    x, y, z = torch.zeros(8), torch.zeros(8), torch.zeros(8)
    assert len(races(device, lambda: kernel[(1,)](x, y, 2.0), lambda: kernel[(1,)](x, z, 2.0))) == 1
    assert weir.torch.declare(kernel, writes=["out"]) is kernel
    assert not races(device, lambda: kernel[(1,)](x, y, 2.0), lambda: kernel[(1,)](x, z, 2.0))
    report = races(device, lambda: kernel[(1,)](x, y, 2.0), lambda: y * 2)
    assert [race.certainty for race in report] == ["definite"]
    assert len(races(device, lambda: kernel[(1,)](x=x, out=y, factor=2.0), lambda: y * 2)) == 1
    assert not races(device, lambda: kernel[(1,)](x=x, out=y, factor=2.0), lambda: x * 2)


def test_v1_decorated_kernels_are_declared_by_what_is_launched(device: Device, triton: Any) -> None:
    kernel = Autotuner(triton.JITFunction(scale))
    weir.torch.declare(kernel, writes=[1])
    x, y = torch.zeros(8), torch.zeros(8)
    assert not races(device, lambda: kernel[(1,)](x, y, 2.0), lambda: x * 2)
    assert len(races(device, lambda: kernel[(1,)](x, y, 2.0), lambda: y * 2)) == 1


def test_v1_views_tuples_and_descriptors_are_operands(device: Device, triton: Any) -> None:
    kernel = triton.JITFunction(scale)
    x, y = torch.zeros(8, 8), torch.zeros(8)
    assert not races(device, lambda: kernel[(1,)](x[:4], y, 2.0), lambda: x[4:].add_(1))
    assert not races(device, lambda: kernel[(1,)](x[:, ::2], y, 2.0), lambda: x[:, 1::2].add_(1))
    assert len(races(device, lambda: kernel[(1,)](x[:, ::2], y, 2.0), lambda: x[:, 2].add_(1))) == 1
    assert len(races(device, lambda: kernel[(1,)]((x, 3), y, 2.0), lambda: x.add_(1))) == 1
    assert len(races(device, lambda: kernel[(1,)](SimpleNamespace(base=x), y, 2.0), lambda: x.add_(1))) == 1
    assert not races(device, lambda: kernel[(1,)](x[:0], None, 2.0), lambda: x.add_(1))


def test_v1_what_is_compiled_only_is_no_launch(device: Device, triton: Any) -> None:
    kernel = triton.JITFunction(scale)
    x, y = torch.zeros(8), torch.zeros(8)
    assert not races(device, lambda: kernel.run(x, y, 2.0, grid=(1,), warmup=True), lambda: x.add_(1))


def test_v1_a_launch_that_fails_is_none(device: Device, triton: Any) -> None:
    def fails(x: object) -> None:
        raise ValueError("out of resources")

    kernel = triton.JITFunction(fails)
    x = torch.zeros(8)

    def launch() -> None:
        with pytest.raises(ValueError, match="out of resources"):
            kernel[(1,)](x)

    assert not races(device, launch, lambda: x.add_(1))
    assert len(races(device, lambda: x.add_(1), lambda: x.mul_(2))) == 1, "goes on"


def test_o1_launches_are_ordered(device: Device, triton: Any) -> None:
    kernel = triton.JITFunction(scale)
    weir.torch.declare(kernel, writes=["out"])
    x, y, z = torch.zeros(8), torch.zeros(8), torch.zeros(8)
    assert waits(device, lambda: kernel[(1,)](x, y, 2.0), lambda: y * 2) == 1
    assert waits(device, lambda: x.add_(1), lambda: kernel[(1,)](x, y, 2.0)) == 1
    assert waits(device, lambda: kernel[(1,)](x, y, 2.0), lambda: kernel[(1,)](x, z, 2.0)) == 0
    assert waits(device, lambda: kernel[(1,)](x, y, 2.0), lambda: kernel[(1,)](y, z, 2.0)) == 1


def test_v1_threads_that_take_no_part_launch_as_ever(device: Device, triton: Any) -> None:
    kernel = triton.JITFunction(scale)
    x, y = torch.zeros(8), torch.zeros(8)
    may_launch, done = threading.Event(), threading.Event()

    def launch() -> None:
        may_launch.wait()
        kernel[(1,)](x, y, 2.0)
        done.set()

    before = threading.Thread(target=launch)
    before.start()

    def of_other_thread() -> None:
        may_launch.set()
        done.wait()

    assert not races(device, of_other_thread, lambda: y.add_(1))
    before.join()
    inside = threading.Thread(target=lambda: kernel[(1,)](x, y, 2.0))

    def of_new_thread() -> None:
        inside.start()
        inside.join()

    assert len(races(device, of_new_thread, lambda: y.add_(1))) == 1


def test_v1_packages_that_are_loaded_meanwhile_are_seen(
    device: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "triton" / "runtime").mkdir(parents=True)
    (tmp_path / "triton" / "__init__.py").touch()
    (tmp_path / "triton" / "runtime" / "__init__.py").touch()
    (tmp_path / "triton" / "runtime" / "jit.py").write_text(
        "class JITFunction:\n    arg_names = ['x']\n    fn = len\n    def run(self, *args, grid, warmup): pass\n"
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(weir.torch._hooks, "_waits_for_packages", False)
    x = torch.zeros(8)
    with weir.torch.check() as report:
        from triton.runtime.jit import JITFunction

        device.on(A)
        JITFunction().run(x, grid=(1,), warmup=False)
        device.on(B)
        x.add_(1)
    for name in ("triton", "triton.runtime", "triton.runtime.jit"):
        sys.modules.pop(name, None)
    assert len(report) == 1


def test_v1_packages_are_what_they_were_afterwards(device: Device, triton: Any, cupy: Any, numba: Any) -> None:
    def state() -> list[object]:
        return [
            triton.JITFunction.run,
            numba._LaunchConfiguration.__call__,
            cupy.cuda.Event.record,
            cupy.cuda.stream._BaseStream.__dict__.get("wait_event"),
            cupy.ndarray.__dict__.get("get"),
        ]

    before = state()
    with weir.torch.check(), weir.torch.safe():
        assert [one is other for one, other in zip(state(), before, strict=True)] == [False] * len(before)
    assert state() == before


def test_v1_other_versions_are_named_as_unseen(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", ModuleType("triton.runtime.jit"))
    with weir.torch.check() as report:
        pass
    assert [text for text in report.unseen if "triton.runtime.jit" in text]
    with weir.torch.safe() as safe:
        pass
    assert [text for text in safe.unseen if "triton.runtime.jit" in text]


def test_v1_kernels_of_torch_compile_write_what_their_parameters_say(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    heuristics: Any = ModuleType("triton_heuristics")

    class CachingAutotuner:
        def __init__(self, *names: str, mutated: tuple[str, ...] = ()) -> None:
            self.fn = SimpleNamespace(__name__="triton_poi_fused_add_0", arg_names=[*names, "xnumel", "XBLOCK"])
            self.triton_meta = {"signature": dict.fromkeys(names, "*fp32") | {"xnumel": "i32", "XBLOCK": "constexpr"}}
            self.mutated_arg_names = mutated

        def run(self, *args: Any, stream: int) -> None: ...

    heuristics.CachingAutotuner = CachingAutotuner
    monkeypatch.setitem(sys.modules, "torch._inductor.runtime.triton_heuristics", heuristics)
    x, y = torch.zeros(8), torch.zeros(8)
    fused = CachingAutotuner("in_ptr0", "out_ptr0")
    assert not races(device, lambda: fused.run(x, y, 8, stream=0), lambda: x * 2)
    assert [r.certainty for r in races(device, lambda: fused.run(x, y, 8, stream=0), lambda: y * 2)] == ["definite"]
    in_place = CachingAutotuner("in_out_ptr0")
    assert len(races(device, lambda: in_place.run(x, 8, stream=0), lambda: x * 2)) == 1
    of_user = CachingAutotuner("x_ptr", "result", mutated=("result",))
    assert not races(device, lambda: of_user.run(x, y, 8, stream=0), lambda: x * 2)
    assert len(races(device, lambda: of_user.run(x, y, 8, stream=0), lambda: y * 2)) == 1


class Interface:
    """An array of another package on memory of a tensor."""

    def __init__(self, of: Any, strides: tuple[int, ...] | None = None) -> None:
        self.of = of
        self.__cuda_array_interface__ = {
            "data": (of.data_ptr(), False),
            "shape": tuple(of.shape),
            "typestr": "<f4",
            "strides": strides,
            "version": 3,
        }


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    dispatcher: Any = ModuleType("numba.cuda.dispatcher")
    driver: Any = ModuleType("numba.cuda.cudadrv.driver")

    class _LaunchConfiguration:
        def __init__(self, function: Any, stream: Any) -> None:
            self.dispatcher = SimpleNamespace(py_func=function)
            self.stream = stream

        def __call__(self, *args: Any) -> None: ...

    class Stream:
        def __init__(self, handle: int) -> None:
            self.handle = SimpleNamespace(value=handle)

        def synchronize(self) -> None: ...

    class Event(Stream):
        def record(self, stream: Any = 0) -> None: ...

        def wait(self, stream: Any = 0) -> None: ...

    class Context:
        def synchronize(self) -> None: ...

    dispatcher._LaunchConfiguration = _LaunchConfiguration
    driver.Stream, driver.Event, driver.Context = Stream, Event, Context
    monkeypatch.setitem(sys.modules, "numba.cuda.dispatcher", dispatcher)
    monkeypatch.setitem(sys.modules, "numba.cuda.cudadrv.driver", driver)
    dispatcher.driver = driver
    return dispatcher


def test_v1_launches_of_numba_are_on_their_own_stream(device: Device, numba: Any) -> None:
    side = numba.driver.Stream(B)
    launch = numba._LaunchConfiguration(scale, side)
    on_default = numba._LaunchConfiguration(scale, 0)
    x, y = torch.zeros(8), torch.zeros(8)
    assert len(races(device, lambda: y.add_(1), lambda: launch(x, y, 2.0))) == 1
    assert not races(device, lambda: launch(x, y, 2.0), lambda: y.add_(1)), "the second is on the same stream"
    assert len(races(device, lambda: on_default(x, y, 2.0), lambda: y.add_(1))) == 1
    assert len(races(device, lambda: launch(Interface(x), y, 2.0), lambda: on_default(x, None, 2.0))) == 1
    assert waits(device, lambda: y.add_(1), lambda: launch(x, y, 2.0)) == 1


@pytest.mark.parametrize("how", ["event", "stream", "device", "event of the host"])
def test_v1_what_numba_waits_for_counts(device: Device, numba: Any, how: str) -> None:
    stream, other, event = numba.driver.Stream(A), numba.driver.Stream(B), numba.driver.Event(77)
    x = torch.zeros(8)

    def waited() -> None:
        if how == "stream":
            stream.synchronize()
        elif how == "device":
            numba.driver.Context().synchronize()
        else:
            event.record(stream)
            if how == "event":
                event.wait(other)
            else:
                event.synchronize()
        x.add_(1)

    kernel = numba._LaunchConfiguration(scale, stream)
    assert not races(device, lambda: kernel(x, None, 2.0), waited)
    assert len(races(device, lambda: kernel(x, None, 2.0), lambda: x.add_(1))) == 1, "the control"


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Calls of its kernels go through their types, as those of types of C."""
    module: Any = ModuleType("cupy")
    kernels: Any = ModuleType("cupy._core._kernel")
    reductions: Any = ModuleType("cupy._core._reduction")

    class Kernel:
        def __init__(self, name: str = "kernel", result: Any = None) -> None:
            self.name, self.result = name, result
            self.nin, self.nargs = 1, 2

        def __call__(self, *args: Any, **named: Any) -> Any:
            return self.result

    kernels.ufunc = type("ufunc", (Kernel,), {})
    kernels.ElementwiseKernel = type("ElementwiseKernel", (Kernel,), {})
    reductions.ReductionKernel = type("ReductionKernel", (Kernel,), {})
    reductions._SimpleReductionKernel = type("_SimpleReductionKernel", (Kernel,), {})
    module.RawKernel = type("RawKernel", (Kernel,), {})
    module.ndarray = type("ndarray", (Interface,), {"get": lambda self, stream=None, blocking=True: None})

    class _BaseStream:
        def __init__(self, ptr: int) -> None:
            self.ptr = ptr

        def synchronize(self) -> None: ...

        def wait_event(self, event: Any) -> None: ...

        def record(self, event: Any = None) -> Any:
            return event

    class Event:
        ptr = 78

        def record(self, stream: Any = None) -> None: ...

        def synchronize(self) -> None: ...

    class Stream(_BaseStream): ...

    class Cuda:
        stream = SimpleNamespace(_BaseStream=_BaseStream)
        current = Stream(0)

        @classmethod
        def get_current_stream(cls) -> Stream:
            return cls.current

        class Device:
            def synchronize(self) -> None: ...

    Cuda.Event = Event
    Cuda.Stream = Stream
    module.cuda = Cuda
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setitem(sys.modules, "cupy._core._kernel", kernels)
    monkeypatch.setitem(sys.modules, "cupy._core._reduction", reductions)
    module.kernels, module.reductions = kernels, reductions
    return module


def test_v1_kernels_of_cupy_read_inputs_and_write_outputs(device: Device, cupy: Any) -> None:
    cupy.cuda.current = cupy.cuda.Stream(B)
    x, y, z = torch.zeros(8), torch.zeros(8), torch.zeros(8)
    ax, ay = cupy.ndarray(x), cupy.ndarray(y)
    for type_ in (cupy.kernels.ufunc, cupy.kernels.ElementwiseKernel, cupy.reductions.ReductionKernel):
        kernel = type_("double", result=ay)
        assert len(races(device, lambda: x.add_(1), lambda k=kernel: k(ax, ay))) == 1
        assert len(races(device, lambda: y * 2, lambda k=kernel: k(ax, ay))) == 1
        assert len(races(device, lambda: y * 2, lambda k=kernel: k(ax, out=ay))) == 1
        assert len(races(device, lambda: y * 2, lambda k=kernel: k(ax))) == 1, "its result"
        assert not races(device, lambda: x * 2, lambda k=kernel: k(ax, ay))
        assert not races(device, lambda: z.add_(1), lambda k=kernel: k(ax, ay))
    total = cupy.reductions._SimpleReductionKernel("sum", result=ay)
    assert len(races(device, lambda: x.add_(1), lambda: total(ax, None))) == 1
    assert len(races(device, lambda: z * 2, lambda: total(ax, None, None, cupy.ndarray(z)))) == 1
    assert not races(device, lambda: x * 2, lambda: total(ax, None))
    raw = cupy.RawKernel("raw")
    assert [r.certainty for r in races(device, lambda: x * 2, lambda: raw((1,), (1,), (ax, ay)))] == ["possible"]
    weir.torch.declare(raw, writes=[1])
    assert not races(device, lambda: x * 2, lambda: raw((1,), (1,), (ax, ay)))
    assert len(races(device, lambda: y * 2, lambda: raw((1,), (1,), (ax, ay)))) == 1


def test_v1_errors_of_cupy_are_the_callers(device: Device, cupy: Any) -> None:
    class Refuses(cupy.RawKernel):
        def __call__(self, *args: Any) -> None:
            raise TypeError("no such argument")

    with weir.torch.check(), pytest.raises(TypeError, match="no such argument"):
        Refuses()((1,), (1,), ())


@pytest.mark.parametrize("how", ["event", "record", "stream", "device", "host", "get"])
def test_v1_what_cupy_waits_for_counts(device: Device, cupy: Any, how: str) -> None:
    stream, other, event = cupy.cuda.Stream(A), cupy.cuda.Stream(B), cupy.cuda.Event()
    cupy.cuda.current = stream
    x = torch.zeros(8)
    ax = cupy.ndarray(x)

    def waited() -> None:
        if how == "stream":
            stream.synchronize()
        elif how == "device":
            cupy.cuda.Device().synchronize()
        elif how == "get":
            ax.get()
        else:
            if how == "record":
                stream.record(event)
            else:
                event.record()
            if how == "host":
                event.synchronize()
            else:
                other.wait_event(event)
        x.add_(1)

    raw = cupy.RawKernel("raw")
    assert not races(device, lambda: raw((1,), (1,), (ax,)), waited)
    assert len(races(device, lambda: raw((1,), (1,), (ax,)), lambda: x.add_(1))) == 1, "the control"


def test_o3_arrays_of_other_packages_are_parts_of_storages(device: Device, cupy: Any) -> None:
    cupy.cuda.current = cupy.cuda.Stream(B)
    x = torch.zeros(8, 8)
    raw = cupy.RawKernel("raw")
    upper, columns = cupy.ndarray(x[4:]), cupy.ndarray(x[:, 2:4], strides=(32, 4))
    backwards = cupy.ndarray(x[7, 7:].expand(1), strides=None)
    backwards.__cuda_array_interface__ |= {"shape": (8,), "strides": (-4,)}
    for array, apart, within in (
        (upper, x[:4], x[4]),
        (columns, x[:, 4:], x[3:, 3]),
        (backwards, x[:7], x[7, :1]),
    ):
        # The whole storage is known by an operator.
        assert not races(device, lambda a=apart: a.add_(1), lambda a=array: raw((1,), (1,), (a,)))
        assert len(races(device, lambda w=within: w.add_(1), lambda a=array: raw((1,), (1,), (a,)))) == 1
        assert waits(device, lambda a=apart: a.add_(1), lambda a=array: raw((1,), (1,), (a,))) == 0
        assert waits(device, lambda w=within: w.add_(1), lambda a=array: raw((1,), (1,), (a,))) == 1


def test_v1_cupy_is_named_as_unseen_in_part(device: Device, cupy: Any) -> None:
    with weir.torch.check() as report:
        pass
    assert [text for text in report.unseen if text.startswith("what CuPy does besides its kernels")]


def test_declare_says_what_is_wrong(triton: Any, cupy: Any) -> None:
    kernel = triton.JITFunction(scale)
    with pytest.raises(weir.ArgumentError, match="scale has no parameter 'result': it has x, out, factor"):
        weir.torch.declare(kernel, writes=["result"])
    with pytest.raises(weir.ArgumentError, match="has no parameter 3"):
        weir.torch.declare(kernel, writes=[3])
    with pytest.raises(weir.ArgumentTypeError, match=r"sequence of parameters: writes=\['out'\]"):
        weir.torch.declare(kernel, writes="out")
    with pytest.raises(weir.ArgumentTypeError, match="pass its name or its number"):
        weir.torch.declare(kernel, writes=[1.5])  # type: ignore[list-item]
    with pytest.raises(weir.ArgumentTypeError, match="pass a kernel of Triton, Numba or CuPy"):
        weir.torch.declare(3, writes=[0])
    with pytest.raises(weir.ArgumentError, match="have no names: pass the number"):
        weir.torch.declare(cupy.RawKernel("raw"), writes=["x"])
