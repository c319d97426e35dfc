"""Kernels that Triton, Numba and CuPy launch on memory of torch: weir.torch is told of them while it is active.

None of the packages reports its launches with their arguments, so the functions that launch are replaced meanwhile.
What a launch does to each array among its arguments is known from the kernel, from `declare`, or else taken as reading
and writing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weir import _torch_build
from weir._weir import (
    ArgumentError,
    ArgumentTypeError,
    _call_formerly,
    _replace_call,
    _replace_method,
    _take_back_call,
    _torch_launch,
    _torch_launched,
)

# What _torch_launch takes of an array (torch_launch.cpp).
_Operand = tuple[object, ...]

RECORDED, WAITS, STREAM_SYNCHRONIZED, DEVICE_SYNCHRONIZED = 3, 4, 7, 8  # weir_torch_kind

pretends = False  # tests: there is a device 0 that is made up


class _Use(NamedTuple):
    writes: bool
    is_certain: bool


_READS, _WRITES, _UNKNOWN = _Use(False, True), _Use(True, True), _Use(True, False)


# --------------------------------------------------------------------------------------------------- what kernels do

# By the address of the kernel, which is kept: kernels of CuPy take no weak reference.
_declared: dict[int, tuple[object, frozenset[str | int]]] = {}


def _innermost(kernel: Any) -> Any:
    """The kernel below decorators such as triton.autotune."""
    while hasattr(kernel, "fn") and all(one.__name__ != "JITFunction" for one in type(kernel).__mro__):
        kernel = kernel.fn
    return kernel


def declare(kernel: Any, /, *, writes: Sequence[str | int]) -> Any:
    """Says which arrays among its arguments a kernel of Triton, Numba or CuPy writes; it reads all others.

    Parameters are named, or numbered from 0 as for those of a `cupy.RawKernel`. Without this, `weir.torch.check()`
    and `weir.torch.safe()` take a launch as reading and writing each array. Returns the kernel. Counts for all launches
    from now on.

    Raises ArgumentTypeError (no kernel), ArgumentError (it has no such parameter).
    """
    if not callable(kernel) and not hasattr(kernel, "run"):
        raise ArgumentTypeError(
            f"weir.torch.declare got {kernel!r}: pass a kernel of Triton, Numba or CuPy, as it is launched"
        )
    if isinstance(writes, str):
        raise ArgumentTypeError(f"weir.torch.declare takes a sequence of parameters: writes=[{writes!r}]")
    inner = _innermost(kernel)
    names = _parameters(inner)
    for one in writes:
        if not isinstance(one, (str, int)):
            raise ArgumentTypeError(f"weir.torch.declare got the parameter {one!r}: pass its name or its number")
        if names is not None and (one not in names if isinstance(one, str) else not 0 <= one < len(names)):
            raise ArgumentError(f"the kernel {_name_of(inner)} has no parameter {one!r}: it has {', '.join(names)}")
        if names is None and isinstance(one, str):
            raise ArgumentError(
                f"the parameters of {_name_of(inner)} have no names: pass the number of {one!r}, from 0 on"
            )
    _known.pop(id(inner), None)
    _declared[id(inner)] = (inner, frozenset(names[one] if names and isinstance(one, int) else one for one in writes))
    return kernel


def _parameters(kernel: Any) -> Sequence[str] | None:
    """The names of a kernel's parameters, if they have any."""
    names = getattr(kernel, "arg_names", None)  # of Triton
    if names is not None:
        return list(names)
    code = getattr(getattr(kernel, "py_func", None), "__code__", None)  # of Numba
    return list(code.co_varnames[: code.co_argcount]) if code is not None else None


def _name_of(kernel: Any) -> str:
    function = getattr(kernel, "py_func", None) or getattr(kernel, "fn", None) or kernel
    return str(getattr(function, "__name__", None) or getattr(kernel, "name", None) or type(kernel).__name__)


class _Kernel:
    """What launches need to know of a kernel: looked up once."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel  # so that its address stays its own
        self.name = _name_of(kernel)
        self.parameters = _parameters(kernel)
        self._writes = _declared[id(kernel)][1] if id(kernel) in _declared else None

    def use(self, parameter: str | int) -> _Use:
        """What it does to an array that is this parameter."""
        if self._writes is None:
            return _UNKNOWN
        return _WRITES if parameter in self._writes else _READS

    def named(self, args: Sequence[Any]) -> Iterable[tuple[str | int, Any]]:
        return enumerate(args) if self.parameters is None else zip(self.parameters, args, strict=False)


_known: dict[int, _Kernel] = {}  # by the address of the kernel


def _kernel(kernel: Any) -> _Kernel:
    found = _known.get(id(kernel))
    if found is None:
        found = _known[id(kernel)] = _Kernel(kernel)
    return found


# ------------------------------------------------------------------------------------------------------------- arrays


def _of_interface(x: Any, use: _Use) -> _Operand | None:
    """An array of another package, by the CUDA Array Interface."""
    interface = x.__cuda_array_interface__
    address: int = interface["data"][0]
    shape: tuple[int, ...] = interface["shape"]
    size = int(interface["typestr"][2:])
    if address == 0 or 0 in shape:
        return None
    strides: tuple[int, ...] | None = interface.get("strides")
    if strides is None:
        made: list[int] = []
        step = size
        for extent in reversed(shape):
            made.append(step)
            step *= extent
        strides = tuple(reversed(made))
    reaches = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    below = -sum(reach for reach in reaches if reach < 0)
    above = sum(reach for reach in reaches if reach > 0)
    device = _current_device()
    memory = getattr(getattr(x, "data", None), "mem", None)  # of CuPy: the whole allocation
    if memory is not None:
        return (device, memory.ptr, memory.size, address - memory.ptr, size, shape, strides, *use)
    return (device, address - below, below + above + size, below, size, shape, strides, *use)


# Most arguments that are no arrays.
_NO_ARRAYS = frozenset({int, float, bool, str, complex, type(None)})


def _add(operands: list[_Operand], x: Any, use: _Use, tensor: type) -> None:
    """Adds the arrays that an argument is, or holds."""
    if isinstance(x, tensor):
        operands.append((x._cdata, *use))  # type: ignore[attr-defined]
    elif type(x) in _NO_ARRAYS:
        return
    elif isinstance(x, (tuple, list)):
        for one in x:
            _add(operands, one, use, tensor)
    elif isinstance(getattr(x, "base", None), tensor):
        operands.append((x.base._cdata, *use))  # a descriptor, or a view, of Triton
    elif not isinstance(x, type) and hasattr(x, "__cuda_array_interface__"):
        made = _of_interface(x, use)
        if made is not None:
            operands.append(made)


def _operands(arguments: Iterable[tuple[Any, _Use]]) -> list[_Operand]:
    found: list[_Operand] = []
    tensor = sys.modules["torch"].Tensor
    for x, use in arguments:
        _add(found, x, use, tensor)
    return found


def _operands_of(kernel: _Kernel, named: Iterable[tuple[str | int, Any]]) -> list[_Operand]:
    """Those of a launch, whose arguments are named or numbered."""
    found: list[_Operand] = []
    tensor = sys.modules["torch"].Tensor
    for parameter, x in named:
        if type(x) not in _NO_ARRAYS:
            _add(found, x, kernel.use(parameter), tensor)
    return found


# ----------------------------------------------------------------------------------------------------------- launches


def _current_device() -> int:
    return 0 if pretends else int(sys.modules["torch"].cuda.current_device())


@functools.lru_cache(maxsize=1024)
def _number_of_stream(handle: int, device: int) -> int:
    """torch's number of a stream that it may not have made."""
    return int(sys.modules["torch"].cuda.ExternalStream(handle, device=device).stream_id) if handle else 0


def _on(handle: int) -> tuple[int, int, int]:
    """What _torch_launch takes of a stream of the current device."""
    device = _current_device()
    handle = 0 if handle == 1 else handle  # two handles of the legacy default stream
    return device, handle, 0 if pretends else _number_of_stream(handle, device)


def _launch(
    name: str,
    operands: list[_Operand],
    call: Callable[[], Any],
    *,
    stream: tuple[int, int, int] | None = None,
    results: Callable[[Any], list[_Operand]] = lambda _: [],
) -> Any:
    """What `call` returns, which launches."""
    begun = _torch_launch(name, stream, operands)
    if begun == 0:
        return call()
    made: list[_Operand] = []
    failed = True
    try:
        result = call()
        failed = False
        made = results(result)
    finally:
        _torch_launched(begun, made, failed)
    return result


def _report(kind: int, what: int, stream: int = 0) -> None:
    _torch_build.load().weir_torch_report(kind, what, stream)


class Patches:
    """Functions of Python that are replaced meanwhile."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._done: set[str] = set()
        self.unknown: set[str] = set()  # packages of versions whose launches are not where they are looked for

    def put(self, where: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replaces a function of a class or a module, if there is one, by what `make` makes of it."""
        former = getattr(where, name, None)
        if former is None:
            return
        own = where.__dict__.get(name)
        if isinstance(where, type) and not where.__flags__ & (1 << 9):  # a class of C
            _replace_method(where, name, make(former))
            self._undo.append(lambda: _replace_method(where, name, own))
            return
        setattr(where, name, make(former))
        if own is None:
            self._undo.append(lambda: delattr(where, name))  # it had inherited the function
        else:
            self._undo.append(lambda: setattr(where, name, own))

    def put_call(self, where: type, call: Callable[..., Any]) -> None:
        """Calls of objects of a class of C go through call(object, arguments, named)."""
        _replace_call(where, call)
        self._undo.append(lambda: _take_back_call(where))

    def take_back(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._done.clear()
        self.unknown.clear()
        _known.clear()

    def put_launches(self) -> None:
        """Replaces what launches, of the packages that are loaded and have not been seen."""
        for package, put in PACKAGES.items():
            module = sys.modules.get(package)
            if module is not None and package not in self._done:
                self._done.add(package)
                try:
                    put(self, module)
                except (AttributeError, KeyError):
                    self.unknown.add(package)


def folders() -> list[str]:
    """Of the packages that are loaded: lines in these are not the program's."""
    found = []
    for package in ("triton", "numba", "numba_cuda", "cupy"):
        file = getattr(sys.modules.get(package), "__file__", None)
        if file:
            found.append(str(Path(file).parent))
    return found


# ------------------------------------------------------------------------------------------------------------- Triton


def _put_triton(patches: Patches, jit: Any) -> None:
    def make(former: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **named: Any) -> Any:
            if named.get("warmup"):
                return former(self, *args, **named)
            kernel = _kernel(self)
            operands = _operands_of(kernel, kernel.named(args))
            if len(named) > 2:  # those of run() itself are "grid" and "warmup"
                operands += _operands_of(kernel, [each for each in named.items() if each[0] in self.arg_names])
            return _launch(kernel.name, operands, lambda: former(self, *args, **named))

        return run

    patches.put(jit.JITFunction, "run", make)


def _put_inductor(patches: Patches, heuristics: Any) -> None:
    """Kernels that torch.compile has made: their parameters' names say what they are for."""
    written = ("out_ptr", "in_out_ptr", "ws_ptr", "semaphores_ptr")

    def make(former: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **named: Any) -> Any:
            signature = getattr(self, "triton_meta", {}).get("signature", {})
            names = [name for name in self.fn.arg_names if signature.get(name) != "constexpr"]
            mutated = getattr(self, "mutated_arg_names", None) or ()
            operands = _operands(
                (x, _WRITES if name.startswith(written) or name in mutated else _READS)
                for name, x in zip(names, args, strict=False)
            )
            return _launch(_name_of(self.fn), operands, lambda: former(self, *args, **named))

        return run

    patches.put(heuristics.CachingAutotuner, "run", make)


# -------------------------------------------------------------------------------------------------------------- Numba


def _handle_of(stream: Any) -> int:
    handle = getattr(stream, "handle", stream)
    return int(getattr(handle, "value", handle) or 0)


def _put_numba(patches: Patches, dispatcher: Any) -> None:
    def make_launch(former: Callable[..., Any]) -> Callable[..., Any]:
        def launch(self: Any, *args: Any) -> Any:
            kernel = _kernel(self.dispatcher)
            operands = _operands_of(kernel, kernel.named(args))
            stream = _on(_handle_of(self.stream))
            return _launch(kernel.name, operands, lambda: former(self, *args), stream=stream)

        return launch

    patches.put(dispatcher._LaunchConfiguration, "__call__", make_launch)
    driver = sys.modules.get("numba.cuda.cudadrv.driver")
    if driver is None:
        return
    patches.put(driver.Stream, "synchronize", _then(lambda one, *_: _report(STREAM_SYNCHRONIZED, 0, _handle_of(one))))
    patches.put(driver.Context, "synchronize", _then(lambda *_: _report(DEVICE_SYNCHRONIZED, 0)))
    patches.put(driver.Event, "synchronize", _then(lambda one: _done(_handle_of(one))))
    patches.put(driver.Event, "record", _then(lambda one, s=0: _report(RECORDED, _handle_of(one), _handle_of(s))))
    patches.put(driver.Event, "wait", _then(lambda one, s=0: _report(WAITS, _handle_of(one), _handle_of(s))))


def _done(event: int) -> None:
    _torch_build.load().weir_torch_event_done(event)


def _then(tell: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function, followed by a report."""

    def make(former: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            result = former(*args, **named)
            tell(*args, **named)
            return result

        return call

    return make


# --------------------------------------------------------------------------------------------------------------- CuPy


def _put_cupy(patches: Patches, cupy: Any) -> None:
    def stream_of(named: dict[str, Any] | None) -> tuple[int, int, int]:
        return _on(((named or {}).get("stream") or cupy.cuda.get_current_stream()).ptr)

    def written(result: Any) -> list[_Operand]:
        return _operands([(result, _WRITES)])

    def call_with_outputs(kernel: Any, args: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
        """A ufunc, an ElementwiseKernel or a reduction: what it reads comes first."""
        named_ones = named or {}
        read = (*args[: kernel.nin], named_ones.get("_where"))
        operands = _operands([(read, _READS), (args[kernel.nin :], _WRITES), (named_ones.get("out"), _WRITES)])
        return _launch(
            _name_of(kernel),
            operands,
            lambda: _call_formerly(kernel, args, named),
            stream=stream_of(named),
            results=written,
        )

    def call_reduction(kernel: Any, args: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
        """cupy.sum and its like: (a, axis, dtype, out, keepdims)."""
        out = args[3] if len(args) > 3 else (named or {}).get("out")
        operands = _operands([(args[:1], _READS), (out, _WRITES)])
        return _launch(
            _name_of(kernel),
            operands,
            lambda: _call_formerly(kernel, args, named),
            stream=stream_of(named),
            results=written,
        )

    def call_raw(kernel: Any, args: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
        """A RawKernel: (grid, block, args)."""
        given = args[2] if len(args) > 2 else (named or {}).get("args", ())
        known = _kernel(kernel)
        operands = _operands_of(known, known.named(given))
        return _launch(known.name, operands, lambda: _call_formerly(kernel, args, named), stream=stream_of(named))

    kernels = sys.modules["cupy._core._kernel"]
    reductions = sys.modules["cupy._core._reduction"]
    for type_ in (kernels.ufunc, kernels.ElementwiseKernel, reductions.ReductionKernel):
        patches.put_call(type_, call_with_outputs)
    patches.put_call(reductions._SimpleReductionKernel, call_reduction)
    patches.put_call(cupy.RawKernel, call_raw)

    def current(stream: Any = None) -> int:
        return _on((stream or cupy.cuda.get_current_stream()).ptr)[1]

    def got(array: Any, stream: Any = None, *_: Any, blocking: bool = True, **__: Any) -> None:
        if blocking:
            _report(STREAM_SYNCHRONIZED, 0, current(stream))

    def make_get(former: Callable[..., Any]) -> Callable[..., Any]:
        followed = _then(got)(former)

        def get(array: Any, *args: Any, **named: Any) -> Any:
            stream = args[0] if args else named.get("stream")
            return _launch(
                "cupy.ndarray.get",
                _operands([(array, _READS)]),
                lambda: followed(array, *args, **named),
                stream=_on(current(stream)),
            )

        return get

    patches.put(cupy.ndarray, "get", make_get)
    base = cupy.cuda.stream._BaseStream
    event = cupy.cuda.Event
    patches.put(base, "synchronize", _then(lambda one: _report(STREAM_SYNCHRONIZED, 0, current(one))))
    patches.put(base, "wait_event", _then(lambda one, what: _report(WAITS, what.ptr, current(one))))
    patches.put(event, "record", _then(lambda one, stream=None: _report(RECORDED, one.ptr, current(stream))))
    patches.put(event, "synchronize", _then(lambda one: _done(one.ptr)))
    patches.put(cupy.cuda.Device, "synchronize", _then(lambda *_: _report(DEVICE_SYNCHRONIZED, 0)))

    def make_record(former: Callable[..., Any]) -> Callable[..., Any]:
        def record(one: Any, event: Any = None) -> Any:
            recorded = former(one, event)
            _report(RECORDED, recorded.ptr, current(one))
            return recorded

        return record

    patches.put(base, "record", make_record)


# The module that has what launches, and what replaces that.
PACKAGES: dict[str, Callable[[Patches, Any], None]] = {
    "triton.runtime.jit": _put_triton,
    "torch._inductor.runtime.triton_heuristics": _put_inductor,
    "numba.cuda.dispatcher": _put_numba,
    "cupy": _put_cupy,
}
