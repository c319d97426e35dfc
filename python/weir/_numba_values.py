# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False
# Most of Numba has no types, and it need not be installed where this is checked.
"""What a body of a kernel gets: arrays and numbers from 64-bit words, and items with the methods of numba-dpex."""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

from weir._kernels import Item
from weir._numba_modules import INT64, as_dtype, cgutils, extending, module_of, np, numba, numba_arrays, types
from weir._weir import MissingLibrary


def function_from(text: str, name: str, known: dict[str, Any]) -> Any:
    """The function that a source defines."""
    exec(text, known)
    return known[name]


@extending.intrinsic
def _word(typingctx: Any, words: Any, at: Any) -> Any:
    """The word at a place."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = builder.bitcast(args[0], context.get_value_type(INT64).as_pointer())
        return builder.load(builder.gep(base, [args[1]]))

    return INT64(types.voidptr, types.intp), codegen


@extending.intrinsic
def _place(typingctx: Any, number: Any) -> Any:
    """The number. Promises the compiler that it is not negative: then no index counts from the end of an array, and
    loops can use vector instructions."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.assume(builder.icmp_signed(">=", args[0], args[0].type(0)))
        return args[0]

    return INT64(INT64), codegen


def array_maker(array_type: Any) -> Any:
    """A function that makes an array of its address, its extents and its strides. The array owns nothing."""
    count = array_type.ndim

    @extending.intrinsic
    def make(typingctx: Any, address: Any, numbers: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = numba_arrays.make_array(array_type)(context, builder)
            element = context.get_data_type(array_type.dtype)
            unpacked = cgutils.unpack_tuple(builder, args[1], 2 * count)
            numba_arrays.populate_array(
                made,
                data=builder.inttoptr(args[0], element.as_pointer()),
                shape=unpacked[:count],
                strides=unpacked[count:],
                itemsize=context.get_constant(types.intp, context.get_abi_sizeof(element)),
                meminfo=None,
            )
            return made._getvalue()

        return array_type(INT64, types.UniTuple(INT64, 2 * count)), codegen

    return make


_MOST_ON_THE_STACK = 1 << 16  # bytes of an array


def local_maker(element: Any, shape: tuple[int, ...]) -> Any:
    """A function that makes an array on the stack of the function that calls it; one of the heap, if it is large."""
    of_many = many_maker(element, shape)

    @numba.njit(inline="always")
    def make() -> Any:
        return of_many(1)[0]

    return make


def many_maker(element: Any, shape: tuple[int, ...]) -> Any:
    """A function that makes so many arrays of one shape, side by side: on the stack of its caller, where an exception
    leaves nothing behind, or on the heap, if they are large."""
    array_type = types.Array(element, 1 + len(shape), "C")
    one = math.prod(shape)
    itemsize = np.dtype(as_dtype(element)).itemsize
    most = _MOST_ON_THE_STACK // itemsize

    @extending.intrinsic
    def make(typingctx: Any, count: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            item = context.get_data_type(element)

            def number(value: int) -> Any:
                return context.get_constant(types.intp, value)

            kept = cgutils.alloca_once(builder, item, max(most, 1))
            data = cgutils.alloca_once_value(builder, kept)
            info = cgutils.alloca_once_value(builder, cgutils.get_null_value(cgutils.voidptr_t))
            elements = builder.mul(args[0], number(one))
            with builder.if_then(builder.icmp_signed(">", elements, number(most)), likely=False):
                size = builder.mul(elements, number(itemsize))
                owner = context.nrt.meminfo_alloc_aligned(builder, size=size, align=64)
                builder.store(owner, info)
                builder.store(builder.bitcast(context.nrt.meminfo_data(builder, owner), item.as_pointer()), data)
            made = numba_arrays.make_array(array_type)(context, builder)
            numba_arrays.populate_array(
                made,
                data=builder.load(data),
                shape=[args[0], *map(number, shape)],
                strides=[number(itemsize * math.prod(shape[d:])) for d in range(1 + len(shape))],
                itemsize=number(itemsize),
                meminfo=builder.load(info),
            )
            return made._getvalue()

        return array_type(types.intp), codegen

    return make


def number_maker(number_type: Any, words: int) -> Any:
    """A function that makes a number of its words."""

    @extending.intrinsic
    def make(typingctx: Any, values: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kept = cgutils.alloca_once_value(builder, args[0])
            pointer = builder.bitcast(kept, context.get_data_type(number_type).as_pointer())
            return context.unpack_value(builder, number_type, pointer)

        return number_type(types.UniTuple(INT64, words)), codegen

    return make


def _is_item(value: Any) -> bool:
    return isinstance(value, types.BaseNamedTuple) and value.instance_class is Item


def _add_item_methods(overload_method: Any) -> None:
    """Gives items their methods in functions for one of Numba's targets."""

    def add(name: str, attribute: str) -> None:
        @overload_method(types.BaseTuple, name, target="generic")
        def method(item: Any, dimension: Any) -> Any:
            if not _is_item(item):
                return None
            is_tuple = isinstance(item[item.fields.index(attribute)], types.BaseTuple)
            # Numba compares the annotations as well: texts in both, since exec has this file's __future__.
            text = "def along(item: Any, dimension: Any) -> Any: return item." + attribute
            return function_from(text + ("[dimension]" if is_tuple else ""), "along", {})

    for name in ("global_id", "local_id", "group_id", "global_range", "local_range"):
        add(f"get_{name}", name)

    @overload_method(types.BaseTuple, "get_group", target="generic")
    def get_group(item: Any) -> Any:
        def itself(item: Any) -> Any:
            return item

        return itself if _is_item(item) else None


_add_item_methods(extending.overload_method)


@functools.cache
def cuda_target() -> Any:
    """Numba's CUDA target. As a package of its own, numba-cuda, it has its own list of methods."""
    with contextlib.suppress(MissingLibrary, AttributeError):
        theirs = module_of("numba.cuda.extending").overload_method
        if theirs is not extending.overload_method:
            _add_item_methods(theirs)
    return module_of("numba.cuda")
