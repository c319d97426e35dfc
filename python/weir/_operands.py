"""What functions of other packages make of an array of Weir among their arguments (rule P2): an array of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weir._weir import Array, ExchangeError


def _tensor(x: Array, function: str) -> Any:
    """The memory of `x` as a tensor of torch, ordered with the stream that torch works on now."""
    try:
        return sys.modules["torch"].from_dlpack(x)
    except Exception as refused:
        raise ExchangeError(
            f"torch.{function} got an array of Weir, of {x.dtype} on {x.device.name}, whose memory torch does not "
            f"take: {refused}"
        ) from refused


def _with_tensors(given: Any, function: str) -> Any:
    """The argument with tensors in place of arrays, in lists, tuples and dictionaries as well."""
    if isinstance(given, Array):
        return _tensor(given, function)
    if type(given) in (list, tuple):
        return type(given)(_with_tensors(one, function) for one in given)
    if type(given) is dict:
        return {name: _with_tensors(one, function) for name, one in given.items()}
    return given


def torch_function(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any] | None) -> Any:
    """The function or operator of torch, on tensors of the arrays' memory.

    The tensors are gone when the function has returned, unless its result has them: what Weir does later with the
    memory comes after what torch has put into its current stream by then.
    """
    name = getattr(function, "__name__", "function")
    return function(
        *(_with_tensors(one, name) for one in arguments),
        **{key: _with_tensors(one, name) for key, one in (keywords or {}).items()},
    )


def jax_array(x: Array) -> Any:
    """A copy of the array as one of JAX's.

    JAX's arrays never change, and JAX may read them after its functions have returned: so it does not get memory that
    Weir may write to.
    """
    return sys.modules["jax"].numpy.from_dlpack(x.copy())
