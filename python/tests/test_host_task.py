"""Host tasks: what they are passed, what they are ordered after, how they fail (K4, O1, S8)."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
import weir
from eventually import eventually
from weir.testing import Gate


def test_l2_listed_arrays_live_until_the_task_is_over() -> None:
    """Also those that it is not passed; the control is an array that it does not list."""
    s = weir.Stream()
    counted = weir.memory.counting()
    with weir.memory.use(counted), Gate() as gate:
        gate.hold(s)
        x, y = weir.empty(8, stream=s), weir.empty(8, stream=s)
        listed, other = weakref.ref(x), weakref.ref(y)
        weir.host_task(lambda: None, reads=[x], stream=s)
        assert counted.counts()["live"]["count"] == 2
        del x, y
        gc.collect()
        assert listed() is not None
        assert other() is None
        assert counted.counts()["live"]["count"] == 1
    s.synchronize()
    eventually(lambda: listed() is None and counted.counts()["live"]["count"] == 0)


def test_arrays_of_the_cpu_are_numpy_arrays_over_the_same_memory() -> None:
    x = weir.zeros((2, 3), "float32")
    seen: list[np.ndarray] = []

    def fill(values: np.ndarray) -> None:
        seen.append(values)
        values[:] = [[1, 2, 3], [4, 5, 6]]

    weir.host_task(fill, x)
    assert x.numpy(copy=True).tolist() == [[1, 2, 3], [4, 5, 6]]
    (view,) = seen
    assert isinstance(view, np.ndarray)
    assert (view.dtype, view.shape) == (np.float32, (2, 3))


def test_views_have_the_shape_and_strides_of_the_array() -> None:
    x = weir.arange(24, dtype="int64").reshape((4, 6))
    seen = {}
    parts = {"all": x, "columns": x[:, 1::2], "turned": x.T, "back": x[::-1], "one": x[2, 3], "none": x[:0]}
    for name, part in parts.items():
        weir.host_task(lambda values, name=name: seen.update({name: values.copy()}), weir.In(part), wait=True)
    expected = np.arange(24).reshape(4, 6)
    assert (seen["all"] == expected).all()
    assert (seen["columns"] == expected[:, 1::2]).all()
    assert (seen["turned"] == expected.T).all()
    assert (seen["back"] == expected[::-1]).all()
    assert seen["one"].shape == ()
    assert seen["one"] == expected[2, 3]
    assert seen["none"].shape == (0, 6)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64", "complex128"],
)
def test_views_have_the_element_type_of_the_array(dtype: str) -> None:
    x = weir.ones(3, dtype)
    seen = []
    weir.host_task(lambda values: seen.append((values.dtype, values.sum())), weir.In(x), wait=True)
    assert seen == [(np.dtype(dtype), 3)]


def test_bfloat16_is_the_one_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = weir.full(3, 1.5, "bfloat16")
    seen = []
    weir.host_task(lambda values: seen.append((values.dtype, values.astype("float32").sum())), x, wait=True)
    assert seen == [(np.dtype(ml_dtypes.bfloat16), 4.5)]


def test_what_is_only_read_cannot_be_written() -> None:
    x = weir.zeros(3)

    def write(values: np.ndarray) -> None:
        values[0] = 1

    with pytest.raises(weir.OperationError, match="read-only"):
        weir.host_task(write, weir.In(x), wait=True)
    with pytest.raises(weir.OperationError, match="read-only"):
        weir.host_task(write, x, reads=[x], wait=True)
    weir.host_task(write, weir.Out(x), wait=True)
    weir.host_task(write, x, reads=x, writes=x, wait=True)


def test_arrays_of_other_devices_arrive_as_they_are() -> None:
    s = weir.Stream("sim:0")
    x = weir.zeros(3, device="sim:0", stream=s)
    seen = []
    weir.host_task(seen.append, x, stream=s, wait=True)
    assert seen[0] is x


def test_other_arguments_arrive_as_they_are(any_device: weir.Device) -> None:
    s = weir.Stream(any_device)
    seen = []
    thing = object()
    weir.host_task(lambda *args: seen.extend(args), 1, thing, None, stream=s, wait=True)
    assert seen == [1, thing, None]


def test_o1_a_task_runs_after_what_writes_its_operand(device: weir.Device) -> None:
    producer, consumer = weir.Stream(device), weir.Stream(device)
    x = weir.zeros(3)
    order: list[str] = []
    with Gate() as gate:
        gate.hold(producer)
        weir.host_task(lambda values: order.append("write"), x, stream=producer)
        after = weir.host_task(lambda values: order.append("read"), weir.In(x), stream=consumer)
        unrelated = weir.host_task(lambda: order.append("unrelated"), stream=weir.Stream(device))
        unrelated.wait()
        assert order == ["unrelated"]
        assert not after.done
    after.wait()
    assert order == ["unrelated", "write", "read"]


def test_o1_control_two_readers_are_not_ordered(device: weir.Device) -> None:
    first, second = weir.Stream(device), weir.Stream(device)
    x = weir.zeros(3)
    with Gate() as gate:
        gate.hold(first)
        weir.host_task(lambda values: None, weir.In(x), stream=first)
        weir.host_task(lambda values: None, x, reads=[x], stream=second).wait()  # never ends if it is ordered


def test_arrays_that_are_listed_count_without_being_passed(device: weir.Device) -> None:
    producer, consumer = weir.Stream(device), weir.Stream(device)
    x, y = weir.zeros(3), weir.zeros(3)
    with Gate() as gate:
        gate.hold(producer)
        weir.host_task(lambda: None, writes=[x], stream=producer)
        reader = weir.host_task(lambda: None, reads=(x,), stream=consumer)
        weir.host_task(lambda: None, reads=y, writes=[], stream=weir.Stream(device)).wait()
        assert not reader.done
    reader.wait()


def test_the_stream_is_that_of_the_first_array_or_the_current_one() -> None:
    x = weir.zeros(3, device="sim:0")
    assert weir.host_task(lambda values: None, x).device == weir.Device("sim:0")
    with weir.Stream("cpu:inline"):
        assert weir.host_task(lambda: None).device == weir.Device("cpu:inline")
    assert weir.host_task(lambda: None).device == weir.Device("cpu")


def test_after_takes_an_event_or_several(device: weir.Device) -> None:
    first, second = weir.Stream(device), weir.Stream(device)
    with Gate() as gate:
        gate.hold(first)
        before = weir.host_task(lambda: None, stream=first)
        after = [
            weir.host_task(lambda: None, stream=weir.Stream(device), after=before),
            weir.host_task(lambda: None, stream=weir.Stream(device), after=[before, weir.Event()]),
            weir.host_task(lambda: None, stream=weir.Stream(device), after=iter([before])),
        ]
        weir.host_task(lambda: None, stream=second, after=[]).wait()
        assert not any(event.done for event in after)
    for event in after:
        event.wait()


def test_a_task_may_enqueue_work_and_make_streams_current(device: weir.Device) -> None:
    s = weir.Stream(device)
    inner: list[weir.Event] = []

    def task() -> None:
        with weir.Stream(device) as other:
            assert weir.current_stream(device) == other
            inner.append(weir.host_task(lambda: None))
        inner.append(weir.host_task(lambda: None, stream=s))

    weir.host_task(task, stream=s, wait=True)
    for event in inner:
        event.wait()


def test_s3_a_task_that_waits_for_its_own_stream_is_an_error_at_once(any_device: weir.Device) -> None:
    s, other = weir.Stream(any_device), weir.Stream(any_device)

    def waits_for_another() -> None:
        other.synchronize()

    def waits_for_itself() -> None:
        s.synchronize()

    weir.host_task(waits_for_another, stream=s).wait()
    with pytest.raises(weir.OperationError, match="waits_for_itself") as raised:
        weir.host_task(waits_for_itself, stream=s).wait()
    cause = raised.value.__cause__
    assert isinstance(cause, weir.StateError)
    assert "waits for the stream that it runs in" in str(cause)
    weir.host_task(waits_for_another, stream=s).wait()
    s.synchronize()


def test_an_array_of_another_package_is_declared_only_where_it_is_wrapped() -> None:
    """As it is, it is passed like any object, and the call returns at once."""
    s = weir.Stream()
    a = np.zeros(3)
    seen: list[object] = []
    with Gate() as gate:
        gate.hold(s)
        event = weir.host_task(seen.append, a, stream=s)
        assert not event.done
    event.wait()
    assert seen[0] is a
    assert weir.host_task(seen.append, weir.In(a), stream=s).done


def test_tasks_that_block_hinder_nobody_but_their_stream(device: weir.Device) -> None:
    meeting = threading.Barrier(24)
    events = [weir.host_task(meeting.wait, stream=weir.Stream(device)) for _ in range(24)]
    for event in events:
        event.wait()


def test_k4_an_event_tells_of_its_operation_and_a_recorded_one_of_the_stream(any_device: weir.Device) -> None:
    s = weir.Stream(any_device)
    x = weir.zeros(3)

    def broken(values: np.ndarray) -> None:
        raise KeyError("no such thing")

    async def awaited(event: weir.Event) -> None:
        await event

    failed = weir.host_task(broken, weir.Out(x), stream=s)
    independent = weir.host_task(lambda: None, stream=s)
    dependent = weir.host_task(lambda values: None, weir.In(x), stream=s)
    tail = s.record()
    for _ in range(2):
        independent.wait()
        asyncio.run(awaited(independent))
    with pytest.raises(weir.OperationError, match="no such thing"):
        tail.wait()
    tail.wait()  # the failure is reported once
    s.synchronize()
    for event in (failed, dependent):
        for _ in range(2):
            with pytest.raises(weir.OperationError, match="no such thing") as told:
                event.wait()
            assert told.value.label.endswith("broken")
            assert told.value.line == broken.__code__.co_firstlineno + 6
        with pytest.raises(weir.OperationError, match="no such thing"):
            asyncio.run(awaited(event))
    independent.wait()


def test_k4_an_exception_is_the_cause_with_its_traceback(any_device: weir.Device) -> None:
    s = weir.Stream(any_device)
    x = weir.zeros(3)

    def broken(values: np.ndarray) -> None:
        raise KeyError("no such thing")

    event = weir.host_task(broken, x, stream=s)
    for _ in range(2):
        with pytest.raises(weir.OperationError, match="KeyError: 'no such thing'") as told:
            event.wait()
    assert told.value.label.endswith("broken")
    assert told.value.file == __file__
    assert told.value.line == broken.__code__.co_firstlineno + 3
    cause = told.value.__cause__
    assert isinstance(cause, KeyError)
    assert "in broken" in "".join(traceback.format_exception(cause))
    # What it was to write is not valid, and what depends on it does not run.
    ran: list[int] = []
    with pytest.raises(weir.OperationError, match="depends on") as told:
        weir.host_task(lambda values: ran.append(1), weir.In(x), stream=s).wait()
    assert isinstance(told.value.__cause__, KeyError)
    with pytest.raises(weir.OperationError):
        x.numpy()
    assert ran == []
    # Written anew, it is.
    weir.host_task(lambda values: ran.append(2), weir.Out(x), stream=s, wait=True)
    assert ran == [2]


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_k4_whatever_is_raised_fails_the_operation_alone(raised: BaseException) -> None:
    def broken() -> None:
        raise raised

    with pytest.raises(weir.OperationError) as told:
        weir.host_task(broken, wait=True)
    assert told.value.__cause__ is raised


def test_a_view_that_is_kept_keeps_the_memory() -> None:
    kept: list[np.ndarray] = []
    x = weir.full(1 << 20, 3.0)
    weir.host_task(kept.append, weir.In(x), wait=True)
    del x
    settle()
    weir.zeros(1).numpy()
    assert (kept[0] == 3).all()
    assert weir.memory.stats("cpu")["live"] >= 8 << 20
    kept.clear()
    eventually(lambda: weir.memory.stats("cpu")["live"] < 8 << 20)


class Thing:
    pass


def settle() -> None:
    """Releases what was dropped on threads that have no GIL."""
    weir.Stream("cpu:inline").synchronize()
    gc.collect()


def test_l2_arguments_live_until_the_task_is_over_and_no_longer(device: weir.Device) -> None:
    s = weir.Stream(device)
    thing = Thing()
    alive = weakref.ref(thing)
    with Gate() as gate:
        gate.hold(s)
        event = weir.host_task(lambda given: None, thing, stream=s)
        del thing
        settle()
        assert alive() is not None
    event.wait()
    s.synchronize()
    settle()
    assert alive() is None


def test_l2_a_submission_that_fails_keeps_nothing() -> None:
    s = weir.Stream()
    s.close()
    thing = Thing()
    alive = weakref.ref(thing)
    for _ in range(3):
        with pytest.raises(weir.StateError, match="closed"):
            weir.host_task(lambda given: None, thing, stream=s)
    del thing
    settle()
    assert alive() is None


def test_l2_a_task_that_fails_keeps_neither_operands_nor_variables() -> None:
    """Its exception is kept for later questions, with the lines that it went through, but without what they had."""
    alive: list[weakref.ref[Thing]] = []
    lines: list[str] = []

    def broken(values: np.ndarray) -> None:
        thing = Thing()
        alive.append(weakref.ref(thing))
        try:
            raise KeyError(values.size)
        except KeyError as error:
            raise ValueError("no luck") from error

    settle()
    before = weir.memory.stats("cpu")["live"]
    for _ in range(20):
        x = weir.ones(1 << 14)
        with pytest.raises(weir.OperationError, match="no luck") as told:
            weir.host_task(broken, weir.Out(x), wait=True)
        assert told.value.__cause__ is not None
        lines += traceback.format_exception(told.value.__cause__)
        del x, told
    eventually(lambda: weir.memory.stats("cpu")["live"] <= before)
    assert [each for each in alive if each() is not None] == []
    assert len([line for line in lines if "in broken" in line]) == 40


def test_what_a_task_returns_is_let_go_of() -> None:
    alive = []

    def make() -> Thing:
        thing = Thing()
        alive.append(weakref.ref(thing))
        return thing

    weir.host_task(make, wait=True)
    settle()
    assert alive[0]() is None


async def suspended() -> None:
    pass


class Suspended:
    def run(self) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: weir.host_task(3), weir.ArgumentTypeError, "cannot be called: pass a function"),
        (lambda: weir.host_task(suspended), weir.ArgumentTypeError, "a call of it runs nothing.*asyncio.run"),
        (lambda: weir.host_task(Suspended().run), weir.ArgumentTypeError, "an async function or a generator"),
        (lambda: weir.host_task(print, reads=[1]), weir.ArgumentTypeError, "reads= got 1"),
        (lambda: weir.host_task(print, writes=2.5), weir.ArgumentTypeError, "writes= got 2.5"),
        (lambda: weir.host_task(print, after=3), weir.ArgumentTypeError, "after= got 3"),
        (lambda: weir.host_task(print, after=[weir.Stream()]), weir.ArgumentTypeError, "pass a weir.Event"),
        (lambda: weir.host_task(print, stream="x"), weir.ArgumentTypeError, "no stream"),
        (lambda: weir.In([1, 2]), weir.ArgumentTypeError, "In got .* no array of Weir"),
    ],
)
def test_errors_say_what_to_pass(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()  # type: ignore[operator]


def test_a_closed_event_is_refused() -> None:
    event = weir.Stream().record()
    event.close()
    with pytest.raises(weir.StateError, match="closed"):
        weir.host_task(print, after=[event])
    with pytest.raises(weir.StateError, match="closed"), event:
        pass
