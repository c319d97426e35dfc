"""Builds and loads the hooks in torch, which are compiled against the headers of the torch that is installed."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from weir._weir import DeviceError, MissingLibrary, StateError, _torch_calls, _torch_launches_go_to, _torch_ordering

_SOURCES = Path(__file__).parent / "_torch_hooks"
_lock = threading.Lock()
_loaded: ctypes.CDLL | None = None
_failed = ""  # what the compiler said, which it would say again


def _cache() -> Path:
    """The folder in which compiled kernels are kept, too."""
    chosen = os.environ.get("WEIR_CACHE_DIR")
    if chosen:
        return Path(chosen)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "weir"


def _compiler() -> str:
    chosen = os.environ.get("CXX")
    for name in [chosen] if chosen else ["c++", "g++", "clang++"]:
        found = shutil.which(name)
        if found:
            return found
    named = f"the C++ compiler {chosen}, which CXX names, is missing" if chosen else "there is no C++ compiler"
    raise MissingLibrary(
        f"weir.torch compiles a part of itself for the torch that is installed, once, and {named}: install g++ "
        "(Debian, Ubuntu: apt install g++), or name a compiler in the variable CXX"
    )


def _command(torch_folder: Path, abi: bool) -> list[str]:
    libraries = torch_folder / "lib"
    return [
        "-std=c++20",
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(abi)}",
        f"-I{torch_folder / 'include'}",
        f"-I{torch_folder / 'include/torch/csrc/api/include'}",
        f"-L{libraries}",
        f"-Wl,-rpath,{libraries}",
        "-ltorch_cpu",
        "-lc10",
    ]


def _built() -> Path:
    """The library, which is compiled if it is not in the cache."""
    torch: Any = sys.modules["torch"]
    command = _command(Path(torch.__file__).parent, torch.compiled_with_cxx11_abi())
    key = hashlib.sha256("\0".join([torch.__version__, sys.platform, *command]).encode())
    for source in sorted(_SOURCES.iterdir()):
        key.update(source.read_bytes())
    folder = _cache() / "torch"
    library = folder / f"hooks-{torch.__version__}-{key.hexdigest()[:16]}.so"
    if library.exists():
        return library
    compiler = _compiler()
    folder.mkdir(parents=True, exist_ok=True)
    # Under a name of its own, since another process may do the same.
    handle, made = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    try:
        done = subprocess.run(
            [compiler, str(_SOURCES / "hooks.cpp"), "-o", made, *command], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise DeviceError(
                f"weir.torch could not be compiled for torch {torch.__version__} by {compiler}: this version of Weir "
                f"knows torch 2.11 to 2.13, and needs a compiler of C++20\n{done.stderr[-2000:]}"
            )
        Path(made).replace(library)
    finally:
        Path(made).unlink(missing_ok=True)
    return library


def address_of(function: object) -> int:
    """Of a function of the hooks."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def load() -> ctypes.CDLL:
    """The hooks, installed. Compiled at the first use of a version of torch, which takes some seconds.

    Raises MissingLibrary (no compiler), DeviceError (the compiler fails), StateError (another tool has torch's hooks).
    """
    global _loaded, _failed
    with _lock:
        if _failed:
            raise DeviceError(_failed)
        if _loaded is None:
            try:
                hooks = ctypes.CDLL(str(_built()))
            except DeviceError as error:
                _failed = str(error)
                raise
            hooks.weir_torch_install.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
            hooks.weir_torch_own_events.restype = ctypes.c_void_p
            hooks.weir_torch_event_done.argtypes = [ctypes.c_uint64]
            hooks.weir_torch_stream_done.argtypes = [ctypes.c_int32, ctypes.c_uint64]
            hooks.weir_torch_pretend.argtypes = [ctypes.c_int64]
            hooks.weir_torch_report.argtypes = [ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64]
            if not hooks.weir_torch_install(_torch_calls(), _torch_ordering()):
                raise StateError(
                    "another tool hears of torch's streams and events, of which torch has one at a time: such as "
                    "torch's own sanitizer (TORCH_CUDA_SANITIZER); leave that out to use weir.torch"
                )
            _torch_launches_go_to(address_of(hooks.weir_torch_launch), address_of(hooks.weir_torch_launched))
            _loaded = hooks
        return _loaded
