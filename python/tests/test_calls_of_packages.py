"""Library calls and operators on arrays of other packages: results come back in their package (P2, E1, E4, A12).

Packages that are not installed are skipped: `./run test --interop` installs the heavy ones.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver
from eventually import eventually
from weir.testing import Gate
from weir_conformance._dlpack import Description, Producer, floats

NAMES = ["fft", "ifft", "rfft", "irfft", "fftn", "ifftn", "rfftn", "irfftn"]


class Package(NamedTuple):
    """How a package makes an array of one of NumPy, and NumPy one of it."""

    module: str
    make: Callable[[Any, np.ndarray], Any]  # of the module, which has no types here
    show: Callable[[Any], Any] = np.from_dlpack
    changes: bool = True  # whether its arrays change, and Weir may change them


PACKAGES = [
    Package("numpy", lambda _, a: a.copy(), np.asarray),
    Package("array_api_strict", lambda xp, a: xp.asarray(a, copy=True)),
    Package("tvm_ffi", lambda tvm, a: tvm.from_dlpack(a.copy())),
    Package("mlx.core", lambda mx, a: mx.array(a), np.asarray, changes=False),
    Package("torch", lambda torch, a: torch.from_numpy(a.copy())),
    # On the CPU, also where a GPU is JAX's default.
    Package("jax", lambda jax, a: jax.device_put(a, jax.devices("cpu")[0]), np.asarray, changes=False),
]


def loaded(package: Package) -> ModuleType:
    try:
        return importlib.import_module(package.module)
    except ImportError as missing:
        pytest.skip(f"{package.module} is not installed ({missing}): ./run test --interop installs it")


@pytest.fixture(params=PACKAGES, ids=lambda one: one.module)
def package(request: pytest.FixtureRequest) -> tuple[Package, ModuleType]:
    return request.param, loaded(request.param)


@pytest.fixture(params=[one for one in PACKAGES if one.changes], ids=lambda one: one.module)
def changing(request: pytest.FixtureRequest) -> tuple[Package, ModuleType]:
    """A package whose arrays can be written."""
    return request.param, loaded(request.param)


def elements(name: str = "fft", shape: tuple[int, ...] = (3, 6)) -> np.ndarray:
    random = np.random.default_rng(3)
    real = random.standard_normal(shape).astype("float32")
    if name in ("rfft", "rfftn"):
        return real
    return (real + 1j * random.standard_normal(shape)).astype("complex64")


def close(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, atol=1e-4))


@pytest.mark.parametrize("name", NAMES)
def test_p2_results_are_of_the_operands_package(package: tuple[Package, ModuleType], name: str) -> None:
    one, module = package
    a = elements(name)
    operand = one.make(module, a)
    result = getattr(weir.fft, name)(operand)
    assert type(result) is type(operand)
    assert close(one.show(result), getattr(np.fft, name)(a))
    assert close(one.show(operand), a), "the operand is only read"


def test_e1_execution_elsewhere_comes_back_in_the_package_and_its_place(package: tuple[Package, ModuleType]) -> None:
    one, module = package
    operand = one.make(module, elements())
    result = weir.fft.fft(operand, execution="sim")
    assert type(result) is type(operand)
    assert close(one.show(result), np.fft.fft(elements()))


def test_p2_sparse_solutions_are_of_the_right_hand_sides_package(package: tuple[Package, ModuleType]) -> None:
    one, module = package
    data, columns, offsets = (
        np.array([2, 4, 8], "float32"),
        np.array([0, 1, 2], "int32"),
        np.array([0, 1, 2, 3], "int32"),
    )
    right = one.make(module, np.array([2, 4, 8], "float32"))
    given = [(data, columns, offsets, (3, 3)), (*(one.make(module, part) for part in (data, columns, offsets)), (3, 3))]
    for matrix in given:  # of NumPy, and of the package
        x = weir.sparse.solve(matrix, right)
        assert type(x) is type(right)
        assert close(one.show(x), np.ones(3))
    of_numpy = weir.sparse.solve(given[1], np.array([2, 4, 8], "float32"))
    assert isinstance(of_numpy, np.ndarray)
    assert close(of_numpy, np.ones(3))
    with weir.sparse.DirectSolver(given[1], right) as solver:
        solver.plan()
        solver.factorize()
        assert type(solver.solve()) is type(right)
        solver.reset_operands(b=np.array([4, 8, 16], "float32"))
        again = solver.solve()
        assert isinstance(again, np.ndarray)
        assert close(again, np.full(3, 2))


def test_e4_a_plan_takes_the_elements_as_they_are_at_execute(changing: tuple[Package, ModuleType]) -> None:
    one, module = changing
    operand = one.make(module, elements())
    with weir.fft.FFT(operand) as f:
        f.plan()
        weir.copy(operand, weir.array(2 * elements()))
        result = f.execute()
        assert type(result) is type(operand)
        weir.fill(operand, 0)
        assert close(one.show(result), 2 * np.fft.fftn(elements()))


def test_p2_out_is_of_the_operands_package(changing: tuple[Package, ModuleType]) -> None:
    one, module = changing
    operand, out = one.make(module, elements()), one.make(module, np.zeros((3, 6), "complex64"))
    assert weir.fft.fft(operand, out=out) is out
    assert close(one.show(out), np.fft.fft(elements()))
    assert weir.fft.fft(operand, out=operand) is operand, "in place"
    assert close(one.show(operand), np.fft.fft(elements()))
    for other in (weir.zeros((3, 6), "complex64"), np.zeros((3, 6), "complex64"), [1]):
        if type(other) is not type(operand):
            with pytest.raises(weir.ArgumentTypeError, match="out= got"):
                weir.fft.fft(operand, out=other)


def test_p2_what_never_changes_is_no_out() -> None:
    one = PACKAGES[-1]
    operand = one.make(loaded(one), elements())
    with pytest.raises(weir.ArgumentError, match="which cannot be written"):
        weir.fft.fft(operand, out=operand)
    assert close(np.asarray(operand), elements())


class Array:
    """An array of floats, complex ones in pairs, of a package without streams that Weir does not know."""

    def __init__(self, memory: Any, first: int, shape: tuple[int, ...], *, own: bool = False) -> None:
        self.memory, self.first, self.shape = memory, first, shape
        if own:
            self.__array_namespace__ = lambda: types.SimpleNamespace(from_dlpack=Taken)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> Any:
        what = Description(self.memory, self.shape, dtype=(5, 64, 1), byte_offset=8 * self.first)
        return Producer(what).capsule(versioned=max_version is not None)


class Taken:
    """What that package makes of an array of Weir."""

    def __init__(self, of: weir.Array) -> None:
        self.of = of


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_p2_an_out_that_overlaps_the_operand_gets_the_right_elements(shift: int) -> None:
    a = elements(shape=(8,))
    memory = floats(*np.concatenate([np.zeros(2), a, np.zeros(2)]).astype("complex64").view("float32"))
    operand, out = Array(memory, 2, (8,)), Array(memory, 2 + shift, (8,))
    assert weir.fft.fft(operand, out=out) is out
    assert close(
        np.array(memory).view("float32").astype("float32").view("complex64")[2 + shift : 10 + shift], np.fft.fft(a)
    )
    with pytest.raises(weir.ArgumentError, match="out= is"):
        weir.fft.fft(operand, out=Array(memory, 2 + shift, (7,)))


def test_p2_a_package_that_is_not_known_takes_results_by_its_namespace() -> None:
    memory = floats(*elements(shape=(8,)).view("float32"))
    of_namespace = weir.fft.fft(Array(memory, 0, (8,), own=True))
    assert isinstance(of_namespace, Taken)
    assert close(of_namespace.of.numpy(), np.fft.fft(elements(shape=(8,))))
    assert isinstance(weir.fft.fft(Array(memory, 0, (8,))), weir.Array), "it has nothing that takes arrays"


def test_a12_a_call_on_a_package_without_streams_blocks(device: weir.Device) -> None:
    """The call is over when it returns, so that the package may change the elements at once."""
    memory = floats(*elements(shape=(8,)).view("float32"))
    s = weir.Stream(device)
    gate = Gate()
    gate.hold(s)
    results: list[weir.Array] = []

    def transform() -> None:
        results.append(weir.fft.fft(Array(memory, 0, (8,)), execution=device, stream=s))
        memory[:] = [100] * 16

    transforming = threading.Thread(target=transform)
    transforming.start()
    assert 100 not in list(memory)  # the gate is closed, so the call cannot have returned
    gate.open()
    transforming.join()
    assert results[0].ready
    assert close(results[0].numpy(copy=True), np.fft.fft(elements(shape=(8,))))


def test_a12_control_a_call_that_does_not_block_sees_later_changes() -> None:
    memory = floats(*elements(shape=(8,)).view("float32"))
    s = weir.Stream()
    with Gate() as gate:
        gate.hold(s)
        result = weir.fft.fft(weir.asarray(Array(memory, 0, (8,)), exclusive=True), stream=s)
        memory[:] = [100] * 16
    assert close(result.numpy(copy=True), np.fft.fft(np.full(8, 100 + 100j)))


@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
def test_p2_operators_take_them_on_either_side(name: str) -> None:
    one = next(package for package in PACKAGES if package.module == name)
    module = loaded(one)
    a = np.array([1, 2, 4], "float32")
    theirs, ours = one.make(module, a), weir.full(3, 2, "float32")
    of_ours: list[tuple[Any, Any]] = [
        (ours + theirs, a + 2),
        (ours - theirs, 2 - a),
        (ours * theirs, a * 2),
        (ours**theirs, 2**a),
        (ours < theirs, a > 2),
        (ours == theirs, a == 2),
    ]
    of_theirs: list[tuple[Any, Any]] = [
        (theirs + ours, a + 2),
        (theirs - ours, a - 2),
        (theirs / ours, a / 2),
        (theirs**ours, a**2),
        (theirs < ours, a < 2),
        (theirs == ours, a == 2),
    ]
    first = weir.Array if name == "numpy" else type(theirs)  # NumPy gives way
    for cases, kind in ((of_ours, weir.Array), (of_theirs, first)):
        for result, expected in cases:
            assert isinstance(result, kind)
            assert result.tolist() == expected.tolist()


def test_p2_plans_are_for_one_package(changing: tuple[Package, ModuleType]) -> None:
    one, module = changing
    operand = one.make(module, elements())
    with weir.fft.FFT(weir.array(elements())) as f, pytest.raises(weir.ArgumentTypeError, match=r"weir\.array\(x\)"):
        f.reset_operand(operand)
    with weir.fft.FFT(operand) as f:
        with pytest.raises(weir.ArgumentTypeError, match=r"got a weir\.Array, and the plan is for arrays of"):
            f.reset_operand(weir.array(elements()))
        f.plan()
        assert close(one.show(f.execute()), np.fft.fftn(elements())), "it still has the old operand"


def test_l2_operands_and_results_are_let_go_of() -> None:
    torch = loaded(PACKAGES[4])
    operand = torch.from_numpy(elements())
    alive = weakref.ref(operand)
    f = weir.fft.FFT(operand)
    f.plan()
    result = f.execute()
    del operand
    assert alive() is not None, "the plan keeps its operand"
    f.free()
    gc.collect()
    assert alive() is None
    assert close(result.numpy(), np.fft.fftn(elements()))


def test_x1_a_tensor_that_torch_does_not_hand_over_is_refused_in_torchs_words() -> None:
    torch = loaded(PACKAGES[4])
    with pytest.raises(BufferError, match="require gradient"):
        weir.fft.fft(torch.ones(4, requires_grad=True))


@pytest.mark.parametrize("wrong", [[1, 2], 3, None, "x", object()])
def test_what_is_no_array_is_refused_in_words(wrong: object) -> None:
    with pytest.raises(weir.ArgumentTypeError, match="shares memory by DLPack"):
        weir.fft.fft(wrong)
    with pytest.raises(weir.ArgumentTypeError, match="shares memory by DLPack"):
        weir.sparse.solve((np.ones(1), np.zeros(1, "int32"), np.array([0, 1], "int32"), (1, 1)), wrong)


# On CUDA, by what reaches the driver: the package is asked what it works on now, and gets the result there.


class OfCupy:
    """An array of CuPy, as far as it is asked; its memory is of Weir."""

    def __init__(self, of: weir.Array) -> None:
        self.of = of

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None) -> object:
        return self.of.__dlpack__(stream=-1, max_version=max_version)


OfCupy.__module__ = "cupy"


class Current:
    """What stands for CuPy's current stream."""

    ptr = 0

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, Current.ptr)


@pytest.fixture
def cupy_on(driver: CudaDriver, cuda: weir.Device, monkeypatch: pytest.MonkeyPatch) -> int:
    """The stream that what stands for CuPy works on at first. Its from_dlpack asks with the current one."""

    def from_dlpack(x: weir.Array) -> OfCupy:
        capsule = x.__dlpack__(stream=Current.ptr, max_version=(1, 0))
        return OfCupy(weir.from_dlpack(capsule))

    Current.ptr = driver.create_stream()
    stands = types.SimpleNamespace(get_current_stream=Current)
    stand_in: Any = types.SimpleNamespace(cuda=stands, from_dlpack=from_dlpack, ndarray=OfCupy)
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    return Current.ptr


@pytest.fixture
def foreign(cuda: weir.Device) -> OfCupy:
    x = weir.array(elements(), device=cuda)
    weir.fft.fft(x)  # what is made once
    cuda.synchronize()
    return OfCupy(x)


@contextlib.contextmanager
def held(driver: CudaDriver, stream: int) -> Iterator[None]:
    """What enters the stream in the block runs after it."""
    gate = driver.hold(stream)
    try:
        yield
    finally:
        driver.open(gate)


def test_p2_a_call_works_on_the_packages_stream_and_returns_before_it_is_done(
    driver: CudaDriver, cupy_on: int, foreign: OfCupy
) -> None:
    with held(driver, cupy_on):
        before = driver.pending(cupy_on)
        result = weir.fft.fft(foreign)
        assert isinstance(result, OfCupy)
        assert driver.pending(cupy_on) > before, "it was enqueued there, and the host has not waited"
    driver.synchronize(cupy_on)
    assert close(result.of.numpy(copy=True), np.fft.fft(elements()))


def test_s7_the_packages_stream_is_looked_up_at_each_call(driver: CudaDriver, cupy_on: int, foreign: OfCupy) -> None:
    other = Current.ptr = driver.create_stream()
    with held(driver, cupy_on):
        result = weir.fft.fft(foreign)
        driver.synchronize(other)  # what is held on the earlier stream does not matter
        assert close(result.of.numpy(copy=True), np.fft.fft(elements()))


def test_p2_a_result_of_another_stream_is_ordered_on_the_packages_stream(
    driver: CudaDriver, cupy_on: int, foreign: OfCupy
) -> None:
    s = weir.Stream("cuda:0")
    assert s.handle is not None
    with held(driver, s.handle):
        result = weir.fft.fft(foreign, stream=s)
        assert not driver.is_idle(cupy_on), "CuPy's stream waits for the result"
    driver.synchronize(cupy_on)
    assert close(result.of.numpy(copy=True), np.fft.fft(elements()))


def test_p2_control_a_call_that_blocks_waits_for_the_stream(driver: CudaDriver, cupy_on: int, foreign: OfCupy) -> None:
    results: list[OfCupy] = []
    transforming = threading.Thread(target=lambda: results.append(weir.fft.fft(foreign, blocking=True)))
    with held(driver, cupy_on):
        before = driver.pending(cupy_on)
        transforming.start()
        eventually(lambda: driver.pending(cupy_on) > before)
        assert not results, "enqueued, and held: the call cannot have returned"
    transforming.join()
    assert close(results[0].of.numpy(copy=True), np.fft.fft(elements()))


class OfDriver:
    """An array of what stands for CuPy, in memory of the driver's."""

    def __init__(self, driver: CudaDriver, value: float) -> None:
        self.address = driver.allocate(12)
        self.write(driver, value)
        driver.synchronize(Current.ptr)

    def write(self, driver: CudaDriver, value: float) -> None:
        driver.fill(Current.ptr, self.address, value, 3)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (3,), "typestr": "<f4", "data": (self.address, False), "version": 3, "stream": Current.ptr}


OfDriver.__module__ = "cupy"


@pytest.mark.parametrize("phase", ["factorize", "solve"])
@pytest.mark.parametrize("is_named", [False, True])
def test_p2_phases_of_a_solver_come_after_what_the_package_put_into_its_stream(
    driver: CudaDriver, cupy_on: int, phase: str, is_named: bool
) -> None:
    data, right = OfDriver(driver, 2), OfDriver(driver, 4)
    columns = OfCupy(weir.arange(3, dtype="int32", device="cuda:0"))
    offsets = OfCupy(weir.arange(4, dtype="int32", device="cuda:0"))
    weir.synchronize("cuda:0")
    stream = weir.Stream("cuda:0") if is_named else None
    solver = weir.sparse.DirectSolver((data, columns, offsets, (3, 3)), right)
    solver.plan(stream=stream)
    solver.factorize(stream=stream)
    weir.synchronize("cuda:0")
    solutions: list[Any] = []

    def work() -> None:
        if phase == "factorize":
            solver.factorize(stream=stream)
        solutions.append(solver.solve(stream=stream))

    with held(driver, cupy_on):
        (data if phase == "factorize" else right).write(driver, 8)  # late
        before = driver.calls("cuStreamSynchronize") + driver.calls("cuEventQuery")
        working = threading.Thread(target=work)
        working.start()
        eventually(lambda: driver.calls("cuStreamSynchronize") + driver.calls("cuEventQuery") > before or solutions)
    working.join()
    driver.synchronize(cupy_on)
    assert solutions[0].of.numpy(copy=True).tolist() == [0.5 if phase == "factorize" else 4] * 3


def test_p2_phases_on_a_stream_whose_handle_is_known_return(driver: CudaDriver, cupy_on: int) -> None:
    data, right = (OfCupy(weir.full(3, value, "float32", device="cuda:0")) for value in (2, 4))
    columns = OfCupy(weir.arange(3, dtype="int32", device="cuda:0"))
    offsets = OfCupy(weir.arange(4, dtype="int32", device="cuda:0"))
    weir.synchronize("cuda:0")
    stream = weir.Stream("cuda:0")
    assert stream.handle
    solver = weir.sparse.DirectSolver((data, columns, offsets, (3, 3)), right)
    solver.plan(stream=stream)  # waited for itself, by way of CuPy's stream
    solver.factorize(stream=stream)
    solved = solver.solve(stream=stream)
    driver.synchronize(cupy_on)
    assert solved.of.numpy(copy=True).tolist() == [2, 2, 2]


def test_p2_plans_and_solvers_work_on_the_packages_stream(driver: CudaDriver, cupy_on: int, foreign: OfCupy) -> None:
    data, right = (OfCupy(weir.full(3, value, "float32", device="cuda:0")) for value in (2, 4))
    columns = OfCupy(weir.arange(3, dtype="int32", device="cuda:0"))
    offsets = OfCupy(weir.arange(4, dtype="int32", device="cuda:0"))
    weir.synchronize("cuda:0")  # they are handed over without a stream
    f = weir.fft.FFT(foreign)
    f.plan()
    solver = weir.sparse.DirectSolver((data, columns, offsets, (3, 3)), right)
    solver.plan()
    solver.factorize()
    weir.synchronize("cuda:0")
    with held(driver, cupy_on):
        before = driver.pending(cupy_on)
        transformed = f.execute()
        assert before < driver.pending(cupy_on)
    solved = solver.solve()  # a host task, which CuPy's stream cannot wait for: so the call does
    assert isinstance(solved, OfCupy)
    driver.synchronize(cupy_on)
    assert isinstance(transformed, OfCupy)
    assert close(transformed.of.numpy(copy=True), np.fft.fftn(elements()))
    assert solved.of.numpy(copy=True).tolist() == [2, 2, 2]
