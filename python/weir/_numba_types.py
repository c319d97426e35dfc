# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False
# Most of Numba has no types, and it need not be installed where this is checked.
"""Arrays, streams and events of Weir in jitted functions."""

from __future__ import annotations

from typing import Any

from weir._numba_modules import ARRAY, OPAQUE, boxing, cgutils, extending, models, np, numba
from weir._weir import ArgumentError, Array, Event, Stream


class ArrayType(ARRAY):
    """A weir.Array of the host in functions that Numba compiles: an array, and a view of the same memory where it "
    "comes back."""

    def __init__(self, dtype: Any, ndim: int, layout: str, readonly: bool) -> None:
        name = f"weir.Array({dtype}, {ndim}d, {layout}{', read-only' if readonly else ''})"
        super().__init__(dtype, ndim, layout, readonly=readonly, name=name)


extending.register_model(ArrayType)(models.ArrayModel)


extending.box(ArrayType)(boxing.box_array)


@extending.typeof_impl.register(Array)
def _type_of_array(x: Array, context: Any) -> ArrayType:
    if x.device.kind not in ("cpu", "cpu:inline") and not any(one.kind == "cpu" for one in x.devices):
        raise ArgumentError(
            f"{x!r} is memory of {x.device}, which code of the host does not reach: pass x.to('cpu'), or launch a "
            f"weir.kernel on it"
        )
    # Waits for what conflicts, as the call does in any case.
    memory: Any = memoryview(x)  # type: ignore[arg-type]
    layout = "C" if memory.c_contiguous else "F" if memory.f_contiguous else "A"
    return ArrayType(numba.from_dtype(np.dtype(x.dtype)), len(x.shape), layout, memory.readonly)


@extending.unbox(ArrayType)
def _unbox_array(array_type: Any, x: Any, c: Any) -> Any:
    """A view by x.numpy(), which waits for what conflicts, and keeps it out until the call returns (rules O6, X7)."""
    view = c.pyapi.call_method(x, "numpy", ())
    value = cgutils.alloca_once_value(c.builder, cgutils.get_null_value(c.context.get_value_type(array_type)))
    failed = cgutils.alloca_once_value(c.builder, cgutils.true_bit)
    with c.builder.if_then(cgutils.is_not_null(c.builder, view)):
        native = boxing.unbox_array(array_type, view, c)
        c.builder.store(native.value, value)
        c.builder.store(native.is_error, failed)
        c.pyapi.decref(view)  # the array in the function has a reference of its own
    return extending.NativeValue(c.builder.load(value), is_error=c.builder.load(failed))


class _ObjectType(OPAQUE):
    """An object of Weir that jitted functions take, pass on and give back."""


_STREAM, _EVENT = _ObjectType("weir.Stream"), _ObjectType("weir.Event")


extending.register_model(_ObjectType)(models.OpaqueModel)


@extending.typeof_impl.register(Stream)
def _type_of_stream(stream: Stream, context: Any) -> _ObjectType:
    return _STREAM


@extending.typeof_impl.register(Event)
def _type_of_event(event: Event, context: Any) -> _ObjectType:
    return _EVENT


@extending.unbox(_ObjectType)
def _unbox_object(object_type: Any, given: Any, c: Any) -> Any:
    return extending.NativeValue(given)  # the caller has it until the call returns


@extending.box(_ObjectType)
def _box_object(object_type: Any, value: Any, c: Any) -> Any:
    c.pyapi.incref(value)
    return value
