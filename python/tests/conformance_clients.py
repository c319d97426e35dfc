"""Libraries that get the exchange wrong, for tests of weir_conformance."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any

from weir_conformance import Client, NotOffered
from weir_conformance._clients import NumPy, Weir


class Copies(NumPy):
    """It copies where it should not, and so does not see later writes."""

    def from_dlpack(self, x: Any) -> Any:
        return self.library.from_dlpack(x).copy()


class Crashes(NumPy):
    def from_dlpack(self, x: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSEGV)


class CrashesAtTheEnd(NumPy):
    def from_dlpack(self, x: Any) -> Any:
        import atexit

        atexit.register(os.abort)
        return super().from_dlpack(x)


class TakesAnything(NumPy):
    """It takes what it should refuse, and never gives anything back."""

    def from_dlpack(self, x: Any) -> Any:
        from weir_conformance._dlpack import Taken

        Taken(x.__dlpack__(max_version=(1, 0)))
        return self.full(3, 1)


class WritesAnyway(NumPy):
    """It writes to memory that others may only read."""

    def fill(self, x: Any, value: float) -> None:
        ctypes.memmove(x.ctypes.data, (ctypes.c_float * x.size)(*([value] * x.size)), 4 * x.size)

    def is_writable(self, x: Any) -> bool:
        return True


class WrongErrors(NumPy):
    def from_dlpack(self, x: Any) -> Any:
        raise KeyError("some mistake")


class DoesNotOrder(Weir):
    """Weir with ordering left to the program: a consumer that forgets the streams."""

    def from_dlpack(self, x: Any) -> Any:
        import weir

        weir.set_ordering("manual")
        return super().from_dlpack(x)


class ReusesTooEarly(Weir):
    """Weir with memory that goes back on the stream that allocated it, as in other pools."""

    def full(self, count: int, value: float) -> Any:
        import weir

        with weir.memory.use(weir.memory.allocating_stream()):
            return super().full(count, value)

    def from_dlpack(self, x: Any) -> Any:
        return x  # the same array: nothing of the exchange keeps the memory


class NeverEnds(NumPy):
    """It hangs, and has changed what the alarm does."""

    def from_dlpack(self, x: Any) -> Any:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.pause()


class WaitsInTheThirdCase(NumPy):
    """It hangs in "outlives producer"."""

    def from_dlpack(self, x: Any) -> Any:
        if x.shape == (1000,):
            signal.pause()
        return super().from_dlpack(x)


class SaysWhereItWasImported(NumPy):
    """On CUDA, as far as it is asked. Its cases say whether they run in the process that imported it."""

    devices = ("cuda",)

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.imported_in = os.getpid()

    def full(self, count: int, value: float) -> Any:
        raise NotOffered("imported here" if os.getpid() == self.imported_in else "imported before")


class InitialisesCuda(SaysWhereItWasImported):
    """Its import initialises CUDA, which does not survive a fork."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        ctypes.CDLL("libcuda.so.1").cuInit(0)


class NotThere(Client):
    name, module = "not there", "a_module_that_is_not_there"


NOT_A_CLIENT = 3
