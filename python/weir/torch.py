"""Programs of PyTorch as they are: watched for races, or kept in order."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from weir import _torch_build, _torch_launches
from weir._torch_launches import declare
from weir._weir import (
    MissingLibrary,
    Report,
    StateError,
    _torch_begin,
    _torch_end,
    _torch_leave_out,
    _torch_order_add_unseen,
    _torch_order_begin,
    _torch_order_end,
    _torch_order_unseen,
    _torch_order_waits,
    _torch_unseen,
)
from weir._weir import check as _check
from weir._when_loaded import when_loaded

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Safe", "check", "declare", "safe"]

# What other packages do to memory of devices that is neither an operator of torch nor a launch that is seen.
_OTHERS = {
    "cupy": "what CuPy does besides its kernels: copies, library calls (matmul, FFT), reductions that CUB does, and "
    "memory that its own pool gives out again",
}


def _loaded() -> tuple[Any, ctypes.CDLL]:
    """Torch, and the hooks in it."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "__version__"):
        raise MissingLibrary("weir.torch is for a program that uses torch: import torch first")
    return torch, _torch_build.load()


def _tell_of_others(tell: Callable[[str], None], unknown: set[str]) -> None:
    for module, what in _OTHERS.items():
        if module in sys.modules:
            tell(what)
    for module in sorted(unknown):
        tell(f"what {module} launches: this version of it is not known")


class _Hooks:
    """What all contexts of the process that are active share: the hooks, and what is patched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watching = 0
        self._ordering = 0
        self._patches = _torch_launches.Patches()
        self._waits_for_packages = False

    def watch(self) -> None:
        torch, hooks = _loaded()
        with self._lock:
            self._patch_once(torch, hooks)
            if self._watching == 0:
                hooks.weir_torch_watch(1)
            self._watching += 1
            _torch_begin([str(Path(torch.__file__).parent), *_torch_launches.folders()])
        hooks.weir_torch_thread(1)

    def watch_no_longer(self) -> None:
        hooks = _torch_build.load()
        _tell_of_others(_torch_unseen, self._patches.unknown)
        hooks.weir_torch_thread(0)
        with self._lock:
            self._watching -= 1
            if self._watching == 0:
                hooks.weir_torch_watch(0)
            self._take_back_once()
            _torch_end()

    def order(self) -> None:
        torch, hooks = _loaded()
        if torch.cuda.is_available():
            for device in range(torch.cuda.device_count()):
                torch.cuda.synchronize(device)  # what was put into streams before is not known
        with self._lock:
            self._patch_once(torch, hooks)
            _torch_order_begin(hooks.weir_torch_own_events(), _torch_build.address_of(hooks.weir_torch_keeps_order))
            if self._ordering == 0:
                hooks.weir_torch_order(1)
            self._ordering += 1
        hooks.weir_torch_thread(1)

    def order_no_longer(self) -> None:
        hooks = _torch_build.load()
        _tell_of_others(_torch_order_add_unseen, self._patches.unknown)
        hooks.weir_torch_thread(0)
        with self._lock:
            self._ordering -= 1
            try:
                _torch_order_end()
            finally:
                if self._ordering == 0:
                    hooks.weir_torch_order(0)
                self._take_back_once()

    def _patch_once(self, torch: Any, hooks: ctypes.CDLL) -> None:
        if self._watching == self._ordering == 0:
            try:
                self._patch(torch, hooks)
            except BaseException:
                self._patches.take_back()
                raise

    def _take_back_once(self) -> None:
        if self._watching == self._ordering == 0:
            self._patches.take_back()

    def _package_loaded(self) -> None:
        """A package that launches kernels was loaded."""
        with self._lock:
            if self._watching or self._ordering:
                self._patches.put_launches()
                _torch_leave_out(_torch_launches.folders())

    def _patch(self, torch: Any, hooks: ctypes.CDLL) -> None:
        """Threads that begin take part; a question that is answered "done" counts as a wait; launches are seen."""

        def started(former: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
            def start(thread: threading.Thread) -> None:
                run = thread.run

                def run_watched() -> None:
                    hooks.weir_torch_thread(1)
                    try:
                        run()
                    finally:
                        hooks.weir_torch_thread(0)

                thread.run = run_watched  # type: ignore[method-assign]
                former(thread)

            return start

        def asked(tell: Callable[[Any], None]) -> Callable[[Callable[[Any], bool]], Callable[[Any], bool]]:
            def patched(former: Callable[[Any], bool]) -> Callable[[Any], bool]:
                def query(one: Any) -> bool:
                    done = former(one)
                    if done:
                        tell(one)
                    return done

                return query

            return patched

        self._patches.put_launches()
        if not self._waits_for_packages:
            self._waits_for_packages = True
            for package in _torch_launches.PACKAGES:
                if package not in sys.modules:
                    when_loaded(package, self._package_loaded)
        self._patches.put(threading.Thread, "start", started)
        cuda = getattr(torch, "cuda", None)
        if cuda is not None:
            self._patches.put(cuda.Event, "query", asked(lambda one: hooks.weir_torch_event_done(one.cuda_event)))
            self._patches.put(
                cuda.Stream, "query", asked(lambda one: hooks.weir_torch_stream_done(one.device_index, one.cuda_stream))
            )


_hooks = _Hooks()


class _Checked:
    """What `check` returns: a context, whose target is the report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._was_entered = False

    def __enter__(self) -> Report:
        if self._was_entered:
            raise StateError("this weir.torch.check() was entered before: make another one for another `with`")
        self._was_entered = True
        self._report.__enter__()
        try:
            _hooks.watch()
        except BaseException as error:
            self._report.__exit__(type(error), error, error.__traceback__)
            raise
        return self._report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _hooks.watch_no_longer()
        self._report.__exit__(kind, error, trace)


def check(*, mode: Literal["collect", "warn", "raise"] = "collect") -> _Checked:
    """Watches what the program does with torch inside of the `with`, and reports accesses that nothing orders.

    Each operator's reads and writes of CUDA tensors follow from its schema; streams, events, waits, memory that is
    given out and freed, from torch itself. Two accesses to the same bytes on two streams, one of them a write, with no
    wait between them, are a `Race` of the report, with both lines and their stacks; so are memory that is freed while
    another stream may use it without `record_stream`, and a host that reads pinned memory too early. Nothing in the
    program changes: it runs as it is, unsafe where it is.

    Kernels that Triton, `torch.compile`, Numba and CuPy launch on tensors take part; `declare` says what they write. So
    do operations of Weir on tensors, and on memory that torch shares: torch's current stream orders them, and no other.

    The calling thread takes part, threads that it starts inside, and those of autograd. What was enqueued before the
    `with` is not seen; `report.unseen` names what else was not. Torch must be imported. At the first use with a version
    of torch a part of Weir is compiled for it, which takes some seconds and a C++ compiler.

    mode "warn" gives a `weir.RaceWarning` for each race, at the latest at the end of the `with`; "raise" raises a
    `weir.RaceError` there.

    Raises MissingLibrary (no torch, no compiler), StateError (another tool has torch's hooks).
    """
    return _Checked(_check(mode=mode))


class Safe:
    """What `safe` returns: a context."""

    def __init__(self) -> None:
        self._state: Literal["new", "active", "over"] = "new"
        self._waits = 0
        self._unseen: list[str] = []

    def __enter__(self) -> Safe:
        if self._state != "new":
            raise StateError("this weir.torch.safe() was entered before: make another one for another `with`")
        _hooks.order()
        self._state = "active"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _hooks.order_no_longer()
        self._waits = _torch_order_waits()
        self._unseen = _torch_order_unseen()
        self._state = "over"

    @property
    def waits(self) -> int:
        """How many waits were put into streams: the program would have needed them, or others in their place."""
        return _torch_order_waits() if self._state == "active" else self._waits

    @property
    def unseen(self) -> list[str]:
        """What was not seen, and so not ordered, in words; other packages once the `with` has ended."""
        return _torch_order_unseen() if self._state == "active" else self._unseen


def safe() -> Safe:
    """Keeps what the program does with torch in order inside of the `with`, whatever it orders itself.

    Before an operator runs, its stream waits, on the device, for what conflicts with it on other streams and is not
    known to be before it. Memory that is freed is given out again at once, as ever, and what then uses it waits for
    what other streams still do with it: `record_stream` is not needed, and keeps memory for longer. Before an operator
    on the CPU touches pinned memory that a copy still uses, the host waits for that copy. What the program orders
    itself is not waited for twice. Operations of Weir on tensors, and on memory that torch shares, take part.

    The calling thread takes part, threads that it starts inside, and those of autograd. At its beginning the host waits
    for all devices; at its end each stream waits, on the device, for all others. What is not seen (docs/torch.md) is
    not ordered. Torch must be imported. At the first use with a version of torch a part of Weir is compiled for it.

    Raises MissingLibrary (no torch, no compiler), StateError (another tool has torch's hooks).
    """
    return Safe()
