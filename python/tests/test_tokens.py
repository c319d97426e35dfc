"""Tokens: operands without memory, ordered, checked and explained like arrays (K5)."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import weakref
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import weir
from weir.testing import Gate

TAKE = """
extern "C" __global__ void take(int* counter, int* into) { into[0] = counter[0]++; }
"""


def test_k5_writers_on_two_streams_come_one_after_the_other(device: weir.Device) -> None:
    """Also on two devices. The control is the same program under "manual"."""
    cases: list[tuple[Literal["auto", "manual"], list[str]]] = [
        ("auto", ["first", "second", "third"]),
        ("manual", ["second", "third", "first"]),
    ]
    for mode, expected in cases:
        slot = weir.Token("slot")
        seen: list[str] = []
        a, b, c = weir.Stream(device), weir.Stream(device), weir.Stream("cpu")
        with weir.ordering(mode), Gate() as gate:
            gate.hold(a)
            first = weir.host_task(seen.append, "first", writes=slot, stream=a)
            second = weir.host_task(seen.append, "second", writes=[slot], stream=b)
            if mode == "manual":
                second.wait()
            third = weir.host_task(seen.append, "third", reads=slot, stream=c)
            if mode == "manual":
                third.wait()
                assert not first.done
            else:
                assert not second.done
                assert not third.done
        for event in (first, second, third):
            event.wait()
        assert seen == expected


def test_k5_readers_run_side_by_side() -> None:
    slot = weir.Token()
    a, b = weir.Stream(), weir.Stream()
    with Gate() as gate:
        gate.hold(a)
        first = weir.host_task(lambda: None, reads=slot, stream=a)
        weir.host_task(lambda: None, reads=(slot,), stream=b, wait=True)
        assert not first.done


def test_arguments_of_a_host_task_are_the_token_itself() -> None:
    slot, x = weir.Token("slot"), weir.zeros(3)
    got: list[object] = []
    weir.host_task(lambda *args: got.extend(args), slot, weir.In(slot), x, 7, wait=True)
    assert got[0] is slot
    assert got[1] is slot
    assert isinstance(got[2], np.ndarray)
    assert repr(weir.InOut(slot)) == 'weir.InOut(<weir.Token "slot">)'


def test_an_argument_counts_as_in_out_unless_it_is_wrapped_or_listed() -> None:
    slot = weir.Token("slot")
    a, b = weir.Stream(), weir.Stream()
    cases: list[tuple[Any, Any, bool]] = [
        (slot, {}, False),
        (weir.In(slot), {}, True),
        (slot, {"reads": slot}, True),
        (weir.Out(slot), {}, False),
    ]
    for operand, keywords, runs in cases:
        with Gate() as gate:
            gate.hold(a)
            weir.host_task(lambda: None, reads=slot, stream=a)
            event = weir.host_task(lambda token: None, operand, stream=b, **keywords)
            waits = weir.explain(slot).waits
            assert (not waits) == runs, waits
        event.wait()
        a.synchronize()


def test_k5_a_token_says_what_it_is() -> None:
    assert repr(weir.Token("slot 3")) == '<weir.Token "slot 3">'
    assert weir.Token("slot 3").name == "slot 3"
    unnamed = weir.Token()
    assert unnamed.name is None
    assert repr(unnamed).startswith("<weir.Token #")
    assert unnamed != weir.Token()
    assert unnamed == unnamed
    assert len({unnamed, weir.Token()}) == 2


def test_k5_explain_says_which_operations_declare_it() -> None:
    slot = weir.Token("slot")
    a, b = weir.Stream(name="a"), weir.Stream(name="b")

    def load() -> None: ...

    def use() -> None: ...

    with Gate() as gate:
        gate.hold(a)
        weir.host_task(load, writes=slot, stream=a)
        weir.host_task(use, reads=slot, stream=b)
        said = weir.explain(slot)
        assert len(said.pending) == 2
        assert "load" in said.pending[0]
        assert 'writes it on the stream "a"' in said.pending[0]
        assert len(said.waits) == 1
        assert "waits for" in said.waits[0]
        assert "slot" in str(said)


def test_k5_check_names_the_token_of_a_race() -> None:
    slot = weir.Token("slot 3")
    a, b = weir.Stream(), weir.Stream()
    with weir.check() as report, weir.ordering("manual"):
        weir.host_task(lambda: None, writes=slot, stream=a)
        weir.host_task(lambda: None, reads=slot, stream=b)
    (race,) = report.races
    assert race.kind == "RAW"
    assert race.certainty == "definite"
    assert race.second.array == 'token "slot 3"'
    assert Path(race.second.file).name == Path(__file__).name
    assert 'RAW race on token "slot 3"' in str(report)
    with weir.check() as report:
        weir.host_task(lambda: None, writes=slot, stream=a)
        weir.host_task(lambda: None, reads=slot, stream=b)
    assert len(report) == 0


def test_k5_a_token_may_be_dropped_while_it_is_pending() -> None:
    seen: list[str] = []
    a, b = weir.Stream(), weir.Stream()
    with Gate() as gate:
        gate.hold(a)
        slot: weir.Token | None = weir.Token("slot")
        weir.host_task(seen.append, "first", writes=slot, stream=a)
        last = weir.host_task(seen.append, "second", writes=slot, stream=b)
        del slot
        gc.collect()
        assert not last.done
    last.wait()
    assert seen == ["first", "second"]


def test_k5_a_failure_goes_on_to_what_names_the_token_next() -> None:
    connection = weir.Token("connection")

    def refuse() -> None:
        raise OSError("refused")

    weir.host_task(refuse, writes=connection)
    with pytest.raises(weir.OperationError, match="refuse"):
        weir.host_task(lambda: None, reads=connection, wait=True)
    weir.host_task(lambda _: None, weir.Out(connection), wait=True)
    weir.host_task(lambda: None, reads=connection, wait=True)


def test_k5_borrow_takes_tokens() -> None:
    queue = weir.Token("a queue of another library")
    x = weir.zeros(3)
    seen: list[str] = []
    a, theirs, b = weir.Stream(), weir.Stream(), weir.Stream()
    with Gate() as gate:
        gate.hold(a)
        weir.host_task(seen.append, "before", writes=queue, stream=a)
        with weir.borrow(queue, x, write=[queue], stream=theirs) as (given, view):
            assert given is queue
            assert isinstance(view, weir.Array)
            weir.host_task(seen.append, "theirs", stream=theirs)
            last = weir.host_task(seen.append, "after", reads=queue, stream=b)
        assert not last.done
    last.wait()
    assert seen == ["before", "theirs", "after"]


@pytest.fixture
def take(cuda: weir.Device) -> weir.Kernel:
    return weir.Kernel(TAKE, "take", "inout int* counter, out int* into")


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_k5_launches_on_two_streams_are_ordered_by_a_token(take: weir.Kernel, mode: Literal["auto", "manual"]) -> None:
    queue = weir.Token("queue on the device")
    counters = [weir.full(1, 5, "int32", device="cuda:0") for _ in range(2)]
    results = [weir.full(1, 0, "int32", device="cuda:0") for _ in range(2)]
    a, b = weir.Stream("cuda:0"), weir.Stream("cuda:0")
    weir.synchronize("cuda:0")
    with weir.ordering(mode), Gate() as gate:
        gate.hold(a)
        first = take.launch(1, 1, counters[0], results[0], stream=a, writes=queue)
        second = take.launch(1, 1, counters[1], results[1], stream=b, writes=[queue])
        if mode == "manual":
            second.wait()
        assert second.done == (mode == "manual")
        assert not first.done
    first.wait()
    second.wait()
    assert [int(x.numpy()[0]) for x in results] == [5, 5]


def test_launches_declare_arrays_besides_their_arguments(take: weir.Kernel) -> None:
    """One that is listed is ordered; the control is one that is not."""
    counter, into, hidden, other = (weir.full(1, 5, "int32", device="cuda:0") for _ in range(4))
    a, b = weir.Stream("cuda:0"), weir.Stream("cuda:0")
    weir.synchronize("cuda:0")
    with Gate() as gate:
        gate.hold(a)
        take.launch(1, 1, counter, into, stream=a, reads=[hidden])
        after = weir.fill(hidden, 1, stream=b)
        assert not after.done
        beside = weir.Stream("cuda:0")
        weir.fill(other, 1, stream=beside).wait()
    after.wait()


@pytest.mark.parametrize("mode", ["auto", "manual"])
@pytest.mark.parametrize("reduces", [False, True])
def test_k5_kernels_of_texts_are_ordered_by_a_token(
    device: weir.Device, reduces: bool, mode: Literal["auto", "manual"]
) -> None:
    """The control is the same program under "manual"."""
    twice = weir.reduction("T x", "T y", "2 * x") if reduces else weir.elementwise("T x", "T y", "y = 2 * x")
    a, b = weir.Stream(device), weir.Stream(device)
    x = weir.ones(1, device=device)
    y = twice(x, stream=b)
    y.numpy()  # compiled by now
    slot = weir.Token("slot")
    with weir.ordering(mode), Gate() as gate:
        gate.hold(a)
        first = weir.host_task(lambda: None, writes=slot, stream=a)
        z = twice(x, stream=b, reads=slot)
        event = twice.launch(x, out=weir.empty(z.shape, device=device, stream=b), stream=b, writes=[slot])
        if mode == "manual":
            event.wait()
            assert not first.done
        else:
            assert not event.done
            assert not z.ready
    assert z.item() == 2
    with pytest.raises(weir.ArgumentTypeError, match="reads="):
        twice(x, reads=3)


def test_a_token_is_no_argument_of_a_kernel(take: weir.Kernel) -> None:
    queue, x = weir.Token("queue"), weir.full(1, 5, "int32", device="cuda:0")
    for wrong in (queue, weir.InOut(queue)):
        with pytest.raises(weir.ArgumentTypeError, match=r"argument 2 of the kernel take got .*reads= or writes="):
            take.launch(1, 1, x, wrong)
        with pytest.raises(weir.ArgumentTypeError, match=r"argument 1 of the kernel take"):
            take[1, 1](wrong, x)


def test_a_token_is_no_array() -> None:
    slot, x = weir.Token("slot"), weir.zeros(3)
    for call in (
        lambda: weir.copy(x, slot),
        lambda: weir.fill(slot, 1),
        lambda: weir.borrow(x, slot, write=[weir.Token()]).__enter__(),
        lambda: x + slot,
        lambda: slot + x,
        lambda: slot * 2,
        lambda: 2.0**slot,
        lambda: np.ones(3) * slot,
        lambda: np.asarray(slot),
        lambda: weir.fft.fft(slot),
        lambda: weir.asarray(slot),
        lambda: weir.array(slot),
    ):
        with pytest.raises((weir.ArgumentError, weir.ArgumentTypeError), match=r"oken|borrow"):
            call()


def test_wrong_names_are_refused() -> None:
    with pytest.raises(weir.ArgumentTypeError, match="name"):
        weir.Token(7)  # type: ignore[arg-type]
    with pytest.raises(weir.ArgumentTypeError, match="reads="):
        weir.host_task(lambda: None, reads=7)


def test_tokens_are_neither_copied_nor_pickled() -> None:
    slot = weir.Token("slot")
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            make(slot)


def test_weak_references_end_with_the_token() -> None:
    slot = weir.Token("slot")
    reference = weakref.ref(slot)
    weir.host_task(lambda: None, writes=slot, wait=True)
    del slot
    weir.synchronize()
    gc.collect()
    assert reference() is None


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_k5_the_child_of_a_fork_goes_on_with_tokens() -> None:
    slot = weir.Token("slot")
    weir.host_task(lambda: None, writes=slot, wait=True)
    weir.synchronize()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            seen: list[int] = []
            a, b = weir.Stream(), weir.Stream()
            weir.host_task(seen.append, 1, writes=slot, stream=a)
            weir.host_task(seen.append, 2, writes=slot, stream=b).wait()
            status = 0 if seen == [1, 2] else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
