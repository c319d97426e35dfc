# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False
# Most of Numba has no types, and it need not be installed where this is checked.
"""What Weir and Numba do together: Python bodies of kernels, and arrays, streams and events in jitted functions.

This module and those named after it are the only ones that import Numba. Imported once Numba is (_when_loaded.py), or
when the first kernel is compiled.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import weir._numba_types  # noqa: F401  registers them
from weir._bodies import lines_of, mistaken_name, place_in
from weir._kernels import Item
from weir._numba_exceptions import exception_of
from weir._numba_groups import defined_function, group_function, phases_of
from weir._numba_loops import Arguments, cuda_text, host_text, index_type
from weir._numba_modules import INT64, errors, numba, types
from weir._numba_uses import UNCLEAR, uses_of
from weir._numba_values import _place, _word, cuda_target, function_from
from weir._weir import ArgumentError, Device, Error, MissingLibrary, _CompiledBody

_WAITING = {"syncwarp", "barrier", "group_barrier", "sub_group_barrier", "grid_sync"}


def _expect_host_code(body: FunctionType) -> None:
    called = _WAITING.intersection(body.__code__.co_names)
    if called:
        raise ArgumentError(
            f"the kernel {body.__name__} calls {min(called)}, where items wait for each other: the CPU and simulated "
            f"devices have cuda.syncthreads() for items of a group, and no other form of that; call it, or make two "
            f"kernels of it, the second one for what stands behind"
        )


def _words_of(error: Exception) -> str:
    """What Numba says, without its colours and its advice to write to its authors."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    text = text.split("\nThis error may have been caused by")[0].split("\nDuring: Pass ")[0]
    return text.replace("Failed in nopython mode pipeline (step: nopython frontend)", "").strip()


def _refused(body: FunctionType, argument_types: list[Any], error: Exception) -> ArgumentError:
    if mistake := mistaken_name(body):
        return ArgumentError(mistake)
    names = list(body.__code__.co_varnames[1 : 1 + len(argument_types)])
    given = ", ".join(f"{name}: {one}" for name, one in zip(names, argument_types, strict=True))
    words = _words_of(error)
    if not isinstance(error, errors.NumbaError):
        words = f"{type(error).__name__}: {words}"
    file = body.__code__.co_filename
    first, last = lines_of(body)
    name = re.escape(Path(file).name)  # Numba shortens paths
    lines = [int(line) for line in re.findall(rf'{name}(?:", line | \()(\d+)', words)]
    place = next((place_in(body, line) for line in lines if first < line <= last), f"{file}, lines {first} to {last}")
    return ArgumentError(
        f"the kernel {body.__name__} does not compile for ({given}): {place}. Numba compiles it without the "
        f"interpreter, so it can use numbers, arrays and what Numba knows of NumPy and math. Numba says:\n{words}"
    )


def compiled(
    body: FunctionType,
    options: dict[str, Any],
    descriptions: tuple[Any, ...],
    dimensions: int,
    has_groups: bool,
    device: Device | None,
) -> _CompiledBody:
    """The body for arguments of these types: of the host if `device` is None. Raises ArgumentError for what does "
    "not compile."""
    if device is not None:
        return _on_cuda(body, options, descriptions, dimensions, has_groups, device)
    _expect_host_code(body)
    phases = phases_of(body, has_groups)
    arguments = Arguments(descriptions, lambda k: f"_word(words, {k})")
    function = numba.njit(**options)(body if phases is None else defined_function(phases.plain(), phases, {}))
    known = {"_word": _word, "_place": _place, "Item": Item, "min": min, **arguments.globals}
    signature = (index_type(dimensions, has_groups), *arguments.types)
    of_group = None
    runs = function
    try:
        function.compile(signature)  # apart, so that messages are about the body alone
        if phases is not None and phases.is_divided:
            runs, of_group, more = group_function(phases, options, function.overloads[signature], dimensions)
            known |= more
        loop = function_from(host_text(dimensions, has_groups, arguments, of_group), "loop", {**known, "body": runs})
        native = numba.njit(types.none(INT64, INT64, types.voidptr), error_model="numpy")(loop)
    except (Error, MemoryError):
        raise
    except Exception as error:  # not all that Numba raises is a NumbaError
        raise _refused(body, arguments.types, error) from error
    (made,) = native.overloads.values()
    uses = uses_of(function, signature, has_groups)
    address = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return _CompiledBody.on_host(address, (native, runs), partial(exception_of, body), uses)


def _on_cuda(
    body: FunctionType,
    options: dict[str, Any],
    descriptions: tuple[Any, ...],
    dimensions: int,
    has_groups: bool,
    device: Device,
) -> _CompiledBody:
    cuda = cuda_target()

    arguments = Arguments(descriptions, lambda k: f"w{k}")
    function = cuda.jit(device=True)(body)
    known = {"_place": _place, "body": function, "Item": Item, "cuda": cuda, "int64": numba.int64, **arguments.globals}
    kernel = function_from(cuda_text(dimensions, has_groups, arguments), "weir_body", known)
    try:
        ptx, name = compile_ptx(kernel, (INT64,) * arguments.words, options, device)
    except (Error, MemoryError, OSError):
        raise
    except Exception as error:
        # Errors of the driver and of libNVVM have no common base: it is not found, or of another version.
        if isinstance(error, errors.NumbaError) or not type(error).__module__.startswith("numba.cuda"):
            raise _refused(body, arguments.types, error) from error
        raise MissingLibrary(
            f"weir.kernel compiles Python for CUDA devices by Numba and libNVVM, which cannot be used here "
            f"({_words_of(error)}): pip install 'numba-cuda[cu13]', or install the CUDA toolkit and set CUDA_HOME"
        ) from error
    # Bodies that compile for the host as well have their uses found there; of others all arrays count as read and
    # written.
    try:
        phases = phases_of(body, has_groups)
        on_host = numba.njit(**options)(body if phases is None else defined_function(phases.plain(), phases, {}))
        signature = (index_type(dimensions, has_groups), *arguments.types)
        on_host.compile(signature)
        uses = uses_of(on_host, signature, has_groups)
    except Exception:  # whatever Numba says of a body that is for CUDA devices alone
        uses = [UNCLEAR] * len(arguments.types)
    return _CompiledBody.on_cuda(ptx, name, device, uses)


def compile_ptx(
    kernel: Any, argument_types: tuple[Any, ...], options: dict[str, Any], device: Device
) -> tuple[bytes, str]:
    """PTX of a kernel for a device, in whose primary context Numba works as Weir does, and the kernel's symbol."""
    cuda = cuda_target()
    with cuda.gpus[device.id]:
        text, _ = cuda.compile_ptx_for_current_device(kernel, argument_types, fastmath=options["fastmath"])
    (name,) = re.findall(r"\.visible\s+\.entry\s+([\w$]+)", text)
    return text.encode(), name
