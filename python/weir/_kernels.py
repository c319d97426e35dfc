"""Kernels whose bodies are Python: ``@weir.kernel``, and the index spaces that they run over."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal, NamedTuple, NoReturn, overload

from weir._bodies import line_of_yield, place_in
from weir._weir import ArgumentError, ArgumentTypeError, Device, Event, _BodyKernel, _CompiledBody, _read_signature
from weir._wrong_calls import explained

_LARGEST = 2**63 - 1
_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _extents(name: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    """One to three extents, as a call has them: numbers, one tuple of them, or a Range."""
    if len(given) == 1 and isinstance(given[0], Range):
        return given[0].extents
    values = tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    if not 1 <= len(values) <= 3:
        raise ArgumentError(f"{name} got {len(values)} extents: pass one to three, such as weir.Range(1000, 20)")
    extents = []
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ArgumentTypeError(f"{name} got the extent {value!r}: pass whole numbers, such as weir.Range(1000)")
        extent = value.__index__()
        if extent < 0:
            raise ArgumentError(f"{name} got the extent {extent}: pass numbers from 0 on")
        extents.append(extent)
    total = 1
    for extent in extents:
        total *= extent
    if total > _LARGEST or max(extents) > _LARGEST:
        raise ArgumentError(f"{name} has {total} indices, more than there can be")
    return tuple(extents)


class Range:
    """An index space of one to three dimensions, for ``@weir.kernel``: ``Range(n)``, ``Range(rows, columns)``.

    The body runs once for each index. Its first parameter is the index: an integer for one dimension, a tuple of
    integers for more, which can index arrays as it is. Extents may be 0. Raises ArgumentError for negative ones,
    ArgumentTypeError for what is no whole number.
    """

    __slots__ = ("extents",)
    extents: tuple[int, ...]

    @explained
    def __init__(self, *extents: Any) -> None:
        self.extents = _extents("Range", extents)

    def __repr__(self) -> str:
        return f"weir.Range({', '.join(map(str, self.extents))})"

    def __eq__(self, other: object) -> bool:
        return self.extents == other.extents if isinstance(other, Range) else NotImplemented

    def __hash__(self) -> int:
        return hash(("Range", self.extents))


class NdRange:
    """An index space in groups, for ``@weir.kernel``: ``NdRange(global_, local)``, ``NdRange((64, 32), (8, 8))``.

    ``global_`` says how many items there are along each dimension, ``local`` how many of them are a group: each a
    number, a tuple of up to three, or a Range. The first parameter of the body is a ``weir.Item``. On CUDA devices a
    group is a block. Raises ArgumentError where groups do not divide the items evenly.
    """

    __slots__ = ("extents", "local")
    extents: tuple[int, ...]
    local: tuple[int, ...]

    @explained
    def __init__(self, global_: Any, local: Any) -> None:
        self.extents = _extents("NdRange", (global_,))
        self.local = _extents("NdRange", (local,))
        if len(self.extents) != len(self.local):
            raise ArgumentError(
                f"NdRange has {len(self.extents)} dimensions of items and {len(self.local)} of groups: pass as many "
                f"of both"
            )
        for items, group in zip(self.extents, self.local, strict=True):
            if group == 0 or items % group != 0:
                raise ArgumentError(
                    f"NdRange has {items} items along a dimension, in groups of {group}: the items must be a "
                    f"multiple of the "
                    f"group; round them up, and leave out in the body those that are too many"
                )

    def __repr__(self) -> str:
        return f"weir.NdRange({self.extents}, {self.local})"

    def __eq__(self, other: object) -> bool:
        return (
            (self.extents, self.local) == (other.extents, other.local) if isinstance(other, NdRange) else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(("NdRange", self.extents, self.local))


class Item(NamedTuple):
    """One item of an NdRange, as the body of a kernel sees it: integers for one dimension, tuples of integers for more.

    The methods are those of numba-dpex: ``item.get_global_id(0)`` is the first number of ``item.global_id``.
    """

    global_id: Any
    """Where the item is among all items."""
    local_id: Any
    """Where it is in its group."""
    group_id: Any
    """Which group it is in."""
    global_range: Any
    """How many items there are."""
    local_range: Any
    """How many items a group has."""

    def get_global_id(self, dimension: int) -> int:
        """Where the item is among all items, along one dimension."""
        return _along(self.global_id, dimension)

    def get_local_id(self, dimension: int) -> int:
        """Where it is in its group, along one dimension."""
        return _along(self.local_id, dimension)

    def get_group_id(self, dimension: int) -> int:
        """Which group it is in, along one dimension."""
        return _along(self.group_id, dimension)

    def get_global_range(self, dimension: int) -> int:
        """How many items there are along one dimension."""
        return _along(self.global_range, dimension)

    def get_local_range(self, dimension: int) -> int:
        """How many items a group has along one dimension."""
        return _along(self.local_range, dimension)

    def get_group(self) -> Item:
        """The item itself, which knows its group: ``item.get_group().get_group_id(0)``."""
        return self


Item.__new__ = explained(Item.__new__)  # type: ignore[method-assign]


def _along(value: Any, dimension: int) -> int:
    found: int = value[dimension] if isinstance(value, tuple) else (value,)[dimension]
    return found


class _Launcher:
    """A kernel with its index space: call it with the arguments behind the index to launch."""

    __slots__ = ("_after", "_kernel", "_local", "_range", "_stream")

    def __init__(self, kernel: PythonKernel, index: Any) -> None:
        space, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(space, Range):
            self._local = None
        elif isinstance(space, NdRange):
            self._local = space.local
        else:
            kernel._refuse_space(index)
        self._kernel = kernel
        self._range = space.extents
        self._stream: Any = None
        self._after: Any = ()
        if len(rest) == 1 and isinstance(rest[0], (Event, list, tuple)):
            self._after = rest[0]
        elif len(rest) <= 2:
            self._stream, self._after = (*rest, None, ())[:2] if len(rest) < 2 else rest
        else:
            kernel._refuse_space(index)

    def __call__(self, *args: Any, **kwargs: Any) -> Event:
        """Enqueues a launch; its Event. Reads and writes the arrays as the body does. Returns once enqueued."""
        kernel = self._kernel
        if kwargs:
            raise ArgumentTypeError(
                f"{kernel.name}[...](...) takes no argument by name, and got {', '.join(kwargs)}: pass the "
                f"arguments of the "
                f"body in their order; the stream and what comes before stand in the brackets"
            )
        return kernel._its.launch(kernel._compile, self._range, self._local, self._stream, self._after, args)

    def prepare(self, *args: Any) -> None:
        """Compiles, and loads, what a launch with arguments of these types needs, and launches nothing."""
        kernel = self._kernel
        kernel._its.prepare(kernel._compile, self._range, self._local, self._stream, args)


class PythonKernel:
    """A kernel whose body is a Python function: what ``weir.kernel`` makes. ``f[weir.Range(n)](*args)`` launches it."""

    def __init__(self, body: Callable[..., Any], options: dict[str, Any]) -> None:
        function = getattr(body, "py_func", body)
        if not isinstance(function, FunctionType):
            raise ArgumentTypeError(f"weir.kernel got {body!r}: pass a Python function, such as def f(i, x, y): ...")
        parameters = list(inspect.signature(function).parameters.values())
        names = [one.name for one in parameters]
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for one in parameters:
            if one.kind not in plain or one.default is not inspect.Parameter.empty:
                raise ArgumentError(
                    f"the kernel {function.__name__} has the parameter {one}: its parameters are an index or an "
                    f"item, then "
                    f"arrays and numbers, each by its place and without a default"
                )
        if function.__code__.co_flags & _RUNS_LATER:
            raise ArgumentError(
                f"the kernel {function.__name__}, {place_in(function, line_of_yield(function))}: the body is "
                f"{'a coroutine' if inspect.iscoroutinefunction(function) else 'a generator'}, of which a call runs "
                f"nothing: leave out yield, async and await; the body runs once for each index"
            )
        if not names:
            raise ArgumentError(
                f"the kernel {function.__name__} has no parameter: the first one is the index, as in def f(i, x, "
                f"y): ..."
            )
        self._function = function
        self._options = options
        self._names = names[1:]
        self._its = _BodyKernel(function.__name__, self._names)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    @property
    def name(self) -> str:
        """What its operations are called."""
        return self._function.__name__

    def __getitem__(self, index: Any, /) -> _Launcher:
        """``f[Range(n) or NdRange(global_, local), stream, after](*args)``, or ``f[Range(n), [event]](*args)``."""
        return _Launcher(self, index)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuses: a kernel needs its index space."""
        called = ", ".join(self._names)
        raise ArgumentTypeError(
            f"{self.name} is a kernel, and needs to know over which indices it runs: call "
            f"{self.name}[weir.Range(n)]({called}), with the stream in the brackets where it is another than the "
            f"current one"
        )

    def __repr__(self) -> str:
        return f"<weir.kernel {self.name}{inspect.signature(self._function)}>"

    def _refuse_space(self, index: Any) -> NoReturn:
        wanted = (
            f"a kernel is launched as {self.name}[weir.Range(n)](...), {self.name}[weir.Range(n), stream](...), "
            f"{self.name}[weir.Range(n), stream, after](...) or {self.name}[weir.NdRange(global_, local)](...)"
        )
        first = index[0] if isinstance(index, tuple) and index else index
        if isinstance(first, int) and isinstance(index, tuple) and len(index) > 1 and isinstance(index[1], int):
            raise ArgumentTypeError(
                f"{wanted}, and got [{first}, {index[1]}]: blocks and threads of CUDA are weir.NdRange(blocks * "
                f"threads, threads)"
            )
        raise ArgumentTypeError(f"{wanted}, and got [{index!r}]")

    def _compile(
        self, arguments: tuple[Any, ...], dimensions: int, has_groups: bool, device: Device | None
    ) -> _CompiledBody:
        from weir import _numba

        return _numba.compiled(self._function, self._options, arguments, dimensions, has_groups, device)


_READS, _WRITES, _ALL = 1, 2, 16  # as body_arguments.cpp has them


class _CKernel(PythonKernel):
    """A C function over an index space."""

    def __init__(self, function: Any, signature: str) -> None:
        self._c_function = function
        self._address = _address_of(function)
        _expect_index_function(function)
        self._signature = signature
        self._name = str(getattr(function, "__name__", "C function"))
        self._parameters = _read_signature(signature)
        self._names = [name for _, _, name in self._parameters]
        self._its = _BodyKernel(self._name, self._names, [None if use else dtype for use, dtype, _ in self._parameters])

    @property
    def name(self) -> str:
        """What its operations are called."""
        return self._name

    def __repr__(self) -> str:
        return f"<weir.kernel {self._name}({self._signature})>"

    def _compile(
        self, arguments: tuple[Any, ...], dimensions: int, has_groups: bool, device: Device | None
    ) -> _CompiledBody:
        if has_groups:
            raise ArgumentError(f"the kernel {self._name} is a C function, which knows no groups: pass a weir.Range")
        if device is not None:
            raise ArgumentError(
                f"the kernel {self._name} is a C function, which {device.name} does not run: pass arrays of the "
                f"CPU, or make a "
                f"weir.Kernel of CUDA C++"
            )
        for (use, dtype, name), (given, extents, layout) in zip(self._parameters, arguments, strict=True):
            if use and (extents is None or given != (dtype or given) or layout != "C"):
                raise ArgumentTypeError(
                    f"the kernel {self._name}: the argument {name} is "
                    f"{'a number' if extents is None else 'an array'} of {given}"
                    f"{'' if layout in ('C', None) else ' whose elements do not lie one after the other'}, and the "
                    f"signature "
                    f"declares an array of {dtype or 'any elements'} in C order: pass x.astype(dtype), or x.copy()"
                )
            if not use and extents is not None:
                raise ArgumentTypeError(
                    f"the kernel {self._name}: the argument {name} is an array, and the signature declares a number "
                    f"of {dtype}"
                )
        uses = [
            {"": 0, "in": _READS, "out": _WRITES | _ALL, "inout": _READS | _WRITES}[use] for use, *_ in self._parameters
        ]
        return _CompiledBody.of_c(self._address, self._c_function, uses)


def _expect_index_function(function: Any) -> None:
    """Refuses what numba.cfunc made for another signature than that of an index function."""
    signature = getattr(function, "_sig", None)
    if signature is None or not hasattr(signature, "return_type"):
        return
    types = [str(one) for one in signature.args]
    is_one = types[:2] == ["int64", "int64"] and len(types) == 3 and types[2].endswith("*")
    if not is_one or str(signature.return_type) != "int32":
        raise ArgumentError(
            f"weir.kernel got a function that numba.cfunc made for {signature}: make it for int32(int64, int64, "
            f"CPointer(voidptr)), which are begin, end and the addresses of the arguments"
        )


def _address_of(function: Any) -> int:
    """Where a C function lies: a number, a function pointer of ctypes, or what numba.cfunc makes."""
    if isinstance(function, int):
        address: Any = function
    elif hasattr(function, "address"):
        address = function.address
    elif isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        address = ctypes.cast(function, ctypes.c_void_p).value
    else:
        raise ArgumentTypeError(
            f"weir.kernel with a signature got {function!r}: pass the address of a C function, a function pointer "
            f"of ctypes, or "
            f"what numba.cfunc makes"
        )
    if not isinstance(address, int) or address == 0:
        raise ArgumentError("weir.kernel got a C function at the address 0")
    return address


@overload
def kernel(body: Callable[..., Any], /) -> PythonKernel: ...
@overload
def kernel(body: Any, /, *, signature: str) -> PythonKernel: ...
@overload
def kernel(
    *, boundscheck: bool = ..., fastmath: bool = ..., error_model: Literal["python", "numpy"] = ...
) -> Callable[[Callable[..., Any]], PythonKernel]: ...
@explained
def kernel(
    body: Any = None,
    /,
    *,
    signature: str | None = None,
    boundscheck: bool = False,
    fastmath: bool = False,
    error_model: Literal["python", "numpy"] = "python",
) -> PythonKernel | Callable[[Callable[..., Any]], PythonKernel]:
    """A kernel whose body is a Python function, which Numba compiles, for the CPU, simulated and CUDA devices (rules
    K2, K3).

    The body's first parameter is the index of a ``Range``, or the ``Item`` of an ``NdRange``; the others are arrays
    and numbers. A launch is one operation: Weir finds in the body which arrays it reads and which it writes (``In``,
    ``Out`` and ``InOut`` override that), adds the waits that are missing, and returns an Event once the operation is
    enqueued. On the CPU the threads of its streams share the indices, in any order. Items of a group may wait for each
    other at ``numba.cuda.syncthreads()``, and share arrays that ``numba.cuda.shared.array`` makes, on all devices.
    ``numba.cuda.local.array`` makes an array for each item.

    The first launch for each combination of types compiles the body, and may wait for the device;
    ``f[...].prepare(*args)`` does that ahead. An exception of the body fails the operation. ``boundscheck``: an index
    out of range is an IndexError, on the CPU; else it is undefined what happens. ``error_model="numpy"``: division by
    0 gives inf or nan, as on CUDA devices, instead of ZeroDivisionError. ``fastmath``: floating-point arithmetic may
    be reordered. Needs Numba (``pip install numba``): MissingLibrary.

    With ``signature``, such as "in float64* x, inout float64* y, float64 a, int64 n", the kernel is a C function
    instead: ``int f(int64_t begin, int64_t end, void* const* arguments)``, given by its address, a ctypes function,
    or what numba.cfunc makes. It does the indices begin to end - 1 (of several dimensions: in C order), on several
    threads at once. ``arguments[k]`` is the address of a number, which has the declared type (named as in C or NumPy),
    or of the address of an array's first element. The function returns 0, else the operation fails. It runs on the CPU
    and on simulated devices.

    >>> @weir.kernel
    ... def axpy(i, a, x, y):
    ...     y[i] = a * x[i] + y[i]
    >>> x, y = weir.arange(4.0), weir.ones(4)
    >>> event = axpy[weir.Range(4)](2, x, y)
    >>> y.tolist()
    [1.0, 3.0, 5.0, 7.0]
    """
    if error_model not in ("python", "numpy"):
        raise ArgumentError(f'error_model is {error_model!r}: pass "python" or "numpy"')
    if signature is not None:
        return _CKernel(body, signature)
    options = {"boundscheck": bool(boundscheck), "fastmath": bool(fastmath), "error_model": error_model}

    def made(function: Callable[..., Any]) -> PythonKernel:
        return PythonKernel(function, options)

    return made if body is None else made(body)
