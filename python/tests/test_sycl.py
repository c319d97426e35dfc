"""Memory of SYCL's devices (X9, X6; B5), by a producer that speaks as dpctl and dpnp do: a queue is its stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from weir_conformance._dlpack import CPU, Description, Producer, floats

ONEAPI = (14, 0)
IS_COPIED = 2


class Queue:
    """What stands for dpctl.SyclQueue. Work that is put into it runs no earlier than the program waits for it."""

    def __init__(self) -> None:
        self.work: list[Callable[[], object]] = []

    def submit(self, work: Callable[[], object]) -> None:
        self.work.append(work)

    def wait(self) -> None:
        while self.work:
            self.work.pop(0)()


class Usm:
    """What stands for an array of dpnp's: six numbers in memory that the host reaches, or does not."""

    def __init__(self, *, shared: bool) -> None:
        self.memory = floats(*range(6))
        self.shared = shared
        self.sycl_queue = Queue()
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return ONEAPI

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        self.asked.append({"dl_device": dl_device, "copy": copy})
        if stream is not None and not isinstance(stream, Queue):
            raise TypeError(f"stream is expected to be a SyclQueue, got {type(stream)}")
        if dl_device not in (None, ONEAPI, CPU):
            raise BufferError(f"there is no device {dl_device}")
        self.sycl_queue.wait()
        on_the_host = dl_device == CPU
        copies = bool(copy) or (on_the_host and not self.shared)
        if copies and copy is False:
            raise BufferError("array cannot be placed on the requested device without a copy")
        what = Description(
            floats(*self.memory) if copies else self.memory,
            (6,),
            (1,),
            device=CPU if on_the_host else ONEAPI,
            flags=IS_COPIED if copies else 0,
        )
        return Producer(what).capsule(max_version is not None)

    def fill(self, value: float) -> None:
        """Enqueues it."""

        def run() -> None:
            self.memory[:] = [value] * 6

        self.sycl_queue.submit(run)


Usm.__module__ = "dpnp.stands"


def test_b5_memory_that_the_host_reaches_is_shared() -> None:
    theirs = Usm(shared=True)
    x = weir.asarray(theirs)
    assert (str(x.device), x.tolist()) == ("cpu", [0, 1, 2, 3, 4, 5])
    x += 1
    assert list(theirs.memory) == [1, 2, 3, 4, 5, 6], "over when the call returns"
    assert theirs.asked == [{"dl_device": CPU, "copy": None}]


def test_x6_operations_come_after_what_is_in_the_queue() -> None:
    theirs = Usm(shared=True)
    x = weir.asarray(theirs)
    theirs.fill(7)
    y = x + 1
    assert y.tolist() == [8] * 6
    theirs.fill(9)
    assert x.tolist() == [9] * 6, "the host waits, too"


def test_x6_control_work_in_the_queue_runs_when_it_is_waited_for() -> None:
    theirs = Usm(shared=True)
    view = np.frombuffer(theirs.memory, "float32")
    theirs.fill(7)
    assert view.tolist() == [0, 1, 2, 3, 4, 5]
    theirs.sycl_queue.wait()
    assert view.tolist() == [7] * 6


def test_x9_memory_that_the_host_does_not_reach_is_copied_by_its_package() -> None:
    theirs = Usm(shared=False)
    x = weir.asarray(theirs)
    assert "copied" in str(weir.explain(x))
    assert "not copied" not in str(weir.explain(x))
    x += 1
    assert (x.tolist(), list(theirs.memory)) == ([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5])
    theirs.fill(7)
    assert (x + 1).tolist() == [2, 3, 4, 5, 6, 7], "a copy has nothing to do with the queue"


@pytest.mark.parametrize(
    "use",
    [
        lambda x: weir.asarray(x, copy=False),
        lambda x: weir.from_dlpack(x, copy=False),
        weir.share,
        lambda x: weir.zeros(6, "float32") + x,
        lambda x: weir.fill(x, 1),
        lambda x: weir.borrow(x, write=[x]).__enter__(),
    ],
)
def test_x9_what_must_share_memory_is_refused_with_the_way_out(use: Callable[[Any], object]) -> None:
    theirs = Usm(shared=False)
    with pytest.raises(weir.CopyError, match=r"memory of a SYCL device.*pass weir\.asarray\(x\)") as raised:
        use(theirs)
    assert isinstance(raised.value, BufferError)
    assert list(theirs.memory) == [0, 1, 2, 3, 4, 5]
    assert (weir.zeros(6, "float32") + weir.asarray(theirs)).tolist() == [0, 1, 2, 3, 4, 5]


def test_x9_operators_share_what_the_host_reaches() -> None:
    theirs = Usm(shared=True)
    theirs.fill(7)
    assert (weir.zeros(6, "float32") + theirs).tolist() == [7] * 6
    with weir.borrow(theirs, write=[theirs]) as (view,):
        weir.fill(view, 3)
    assert list(theirs.memory) == [3] * 6


def test_x2_a_queue_is_no_stream_of_an_array_on_the_cpu() -> None:
    """A SYCL library that takes an array of Weir asks for it as memory of the CPU, without a stream."""
    x = weir.arange(6.0)
    with pytest.raises(weir.ArgumentError, match="pass None or -1"):
        x.__dlpack__(stream=Queue())
    assert x.__dlpack__(stream=None, dl_device=CPU, max_version=(1, 0)) is not None


class Older(Usm):
    """From before dl_device."""

    def __dlpack__(self, *, stream: object = None) -> object:  # type: ignore[override]
        return super().__dlpack__(stream=stream)


def test_x9_a_producer_without_dl_device_is_refused_in_words() -> None:
    with pytest.raises(weir.ExchangeError, match="device of type 14"):
        weir.asarray(Older(shared=True))
