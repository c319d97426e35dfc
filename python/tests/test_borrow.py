"""Work of other packages inside weir.borrow (X6; A13)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from host_waits import comes_to_wait
from weir.testing import Gate


def test_x6_the_stream_waits_for_what_the_work_comes_after(device: weir.Device) -> None:
    writer, lent = weir.Stream(device), weir.Stream(device)
    x = weir.zeros(100, device=device, stream=writer)
    with Gate() as gate:
        gate.hold(writer)
        weir.fill(x, 7, stream=writer)
        with weir.borrow(x, stream=lent):
            assert not lent.done  # a wait for the fill, and the host is not blocked
        gate.open()
    lent.synchronize()
    assert writer.done


def test_x6_later_work_comes_after_the_borrowed_stream(device: weir.Device) -> None:
    lent, other = weir.Stream(device), weir.Stream(device)
    x = weir.zeros(100, device=device)
    with Gate() as gate:
        with weir.borrow(x, write=[x], stream=lent):
            gate.hold(lent)  # stands for the work of another package
        weir.fill(x, 7, stream=other)
        assert not other.done
        gate.open()
    other.synchronize()
    assert lent.done


def test_x6_control_work_on_a_stream_that_was_not_lent_is_not_waited_for(device: weir.Device) -> None:
    lent, other = weir.Stream(device), weir.Stream(device)
    x = weir.zeros(100, device=device)
    device.synchronize()
    with Gate() as gate:
        gate.hold(lent)
        weir.fill(x, 7, stream=other)
        other.synchronize()
        assert not lent.done
        gate.open()


def test_x6_only_what_writes_keeps_readers_waiting(device: weir.Device) -> None:
    lent, other = weir.Stream(device), weir.Stream(device)
    x = weir.zeros(100, device=device)
    y = weir.empty(100, device=device)
    device.synchronize()
    with Gate() as gate:
        with weir.borrow(x, stream=lent):
            gate.hold(lent)
        weir.copy(y, x, stream=other)  # both only read
        other.synchronize()
        weir.fill(x, 1, stream=other)
        assert not other.done
        gate.open()
    other.synchronize()


def test_x6_inside_the_stream_is_the_current_one_and_outside_it_is_not(device: weir.Device) -> None:
    lent = weir.Stream(device)
    x = weir.zeros(100, device=device)
    before = weir.current_stream(device)
    with weir.borrow(x, stream=lent):
        assert weir.current_stream(device) == lent
    assert weir.current_stream(device) == before


def test_a13_a_view_that_escapes_is_refused(any_device: weir.Device) -> None:
    x = weir.zeros(4, device=any_device)
    with weir.borrow(x, write=[x]) as (view,):
        weir.fill(view, 3)
    uses = (
        lambda: view + 1,
        lambda: weir.fill(view, 1),
        lambda: view.numpy(),
        lambda: view.tolist(),
        lambda: view.copy(),
        lambda: view.to("cpu") if any_device.kind != "cpu" else view.sum(),
        lambda: weir.host_task(lambda: None, reads=view),
    )
    for use in uses:
        with pytest.raises(weir.StateError, match="borrow, which has ended"):
            use()
    assert (view.shape, view.dtype) == (x.shape, x.dtype)
    assert "Array" in repr(view)
    assert x.tolist() == [3, 3, 3, 3]


def test_a13_views_of_a_view_end_with_it(any_device: weir.Device) -> None:
    x = weir.zeros((2, 2), device=any_device)
    with weir.borrow(x, write=[x]) as (view,):
        derived = [view[1:], view[0], view.T, view.reshape(4), view[:], view[None].reshape(2, 2)]
        for part in derived:
            weir.fill(part, 3)
            part += 0
    uses: list[Callable[[weir.Array], object]] = [
        lambda part: weir.fill(part, 7),
        lambda part: part + 1,
        lambda part: part[..., :1] * 2,
        lambda part: part.numpy(),
        lambda part: part.tolist(),
        lambda part: part.sum(),
        lambda part: weir.copy(weir.zeros(part.shape, device=any_device), part),
        lambda part: weir.host_task(lambda: None, writes=part),
        lambda part: part.__dlpack__(),
        lambda part: weir.borrow(part).__enter__(),
    ]
    for part in derived:
        for use in uses:
            with pytest.raises(weir.StateError, match="borrow, which has ended"):
                use(part)
    assert x.tolist() == [[3, 3], [3, 3]]


def test_a13_types_that_weir_only_carries_end_as_well() -> None:
    x = weir.zeros(4, "bfloat16")
    with weir.borrow(x, write=[x]) as (view,):
        part = view[1:]
    for use in (part.copy, part.numpy, lambda: bytes(part), lambda: weir.copy(x[1:], part)):
        with pytest.raises(weir.StateError, match="borrow, which has ended"):
            use()


def test_a13_statements_about_a_view_are_refused_after_the_end(device: weir.Device) -> None:
    x = weir.zeros(4, device=device)
    with weir.borrow(x) as (view,):
        assert isinstance(view.ready, bool)
        weir.In(view)
        view.used_on(weir.current_stream(device))
        view.pin().release()
        weir.share(view)
    for use in (
        lambda: view.ready,
        lambda: weir.In(view),
        lambda: view.used_on(weir.current_stream(device)),
        lambda: view.pin(),
        lambda: weir.share(view),
    ):
        with pytest.raises(weir.StateError, match="borrow, which has ended"):
            use()


def test_a13_what_was_enqueued_inside_runs_after_the_end(device: weir.Device) -> None:
    x, s = weir.zeros(4, device=device), weir.Stream(device)
    with Gate() as gate:
        with weir.borrow(x, write=[x], stream=s) as (view,):
            gate.hold(s)
            weir.fill(view[1:], 5)
        gate.open()
    assert x.tolist() == [0, 5, 5, 5]


def test_a_borrow_that_was_not_entered_cannot_be_left() -> None:
    lent = weir.borrow(weir.zeros(3))
    with pytest.raises(weir.StateError, match="not entered"):
        lent.__exit__(None, None, None)
    with lent:
        pass
    with pytest.raises(weir.StateError, match="not entered"):
        lent.__exit__(None, None, None)


class EntersAgain:
    """An array that, when it is asked for its memory, enters the borrow that asks."""

    def __init__(self) -> None:
        self.of = np.zeros(4)
        self.lent: Any = None
        self.says = ""

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.of.__dlpack_device__()

    def __dlpack__(self, **asked: Any) -> Any:
        lent, self.lent = self.lent, None
        try:
            lent.__enter__()
        except weir.StateError as why:
            self.says = str(why)
        return self.of.__dlpack__(**asked)


def test_x6_a_borrow_is_not_entered_while_it_is_being_entered() -> None:
    x, s, before = EntersAgain(), weir.Stream(), weir.current_stream()
    x.lent = lent = weir.borrow(x, write=[x], stream=s)
    with lent as (view,):
        weir.fill(view, 3)
        assert weir.current_stream() == s
    assert "entered once" in x.says
    assert weir.current_stream() == before
    assert x.of.tolist() == [3, 3, 3, 3]


def test_x6_what_fails_to_enter_leaves_nothing_behind() -> None:
    x, s, before = weir.zeros(4), weir.Stream(), weir.current_stream()
    lent = weir.borrow(x, [1.0], stream=s)
    with pytest.raises(weir.CopyError):
        lent.__enter__()
    assert weir.current_stream() == before
    with pytest.raises(weir.StateError, match="not entered"):
        lent.__exit__(None, None, None)
    with pytest.raises(weir.StateError, match="entered once"):
        lent.__enter__()


def test_a13_a_view_is_refused_after_an_exception_too() -> None:
    x = weir.zeros(4)
    with pytest.raises(KeyError), weir.borrow(x) as (view,):
        raise KeyError("in the block")
    with pytest.raises(weir.StateError):
        view.tolist()
    assert x.tolist() == [0, 0, 0, 0]


def test_x6_arrays_of_other_packages_are_given_back() -> None:
    theirs = np.zeros(4)
    with weir.borrow(theirs, write=[theirs]) as (view,):
        weir.fill(view, 5)
    assert (theirs == 5).all()
    with pytest.raises(weir.StateError):
        view.tolist()


def test_x6_the_end_waits_for_what_the_block_left_in_the_stream() -> None:
    theirs, s = np.zeros(4), weir.Stream()
    views: list[weir.Array] = []

    def borrows() -> None:
        with weir.borrow(theirs, write=[theirs], stream=s) as (view,):
            views.append(view)
            weir.host_task(lambda: theirs.fill(7), stream=s)

    with Gate() as gate:
        gate.hold(s)
        borrowing = threading.Thread(target=borrows)
        borrowing.start()
        assert comes_to_wait(borrowing)
        assert (theirs == 0).all()
    borrowing.join()
    assert (theirs == 7).all()
    with pytest.raises(weir.StateError):
        views[0].tolist()


def test_x6_the_end_tells_of_what_failed_in_the_stream() -> None:
    theirs, s = np.zeros(4), weir.Stream()

    def fails() -> None:
        raise ValueError("in the stream")

    with pytest.raises(weir.OperationError, match="in the stream"), weir.borrow(theirs, stream=s):
        failed = weir.host_task(fails, stream=s)
        while not failed.done:
            pass
    s.synchronize()


def test_arrays_without_elements_can_be_borrowed() -> None:
    x = weir.zeros(0)
    with weir.borrow(x) as (view,):
        assert view.shape == (0,)
    assert view.tolist() == []


@pytest.mark.parametrize("written", [True, False])
def test_x6_what_would_be_copied_is_not_borrowed(written: bool) -> None:
    values = [1.0, 2.0]
    with pytest.raises(weir.CopyError, match=r"borrow y = weir\.asarray\(x\)"):
        weir.borrow(values, write=[values] if written else []).__enter__()
    lent = bytearray(3)
    with weir.borrow(lent, write=[lent]) as (view,):
        weir.fill(view, 7)
    assert lent == b"\7\7\7"
