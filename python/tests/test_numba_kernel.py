"""Kernels whose bodies are Python, compiled by Numba (rules K1 to K4, L2)."""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import weir
from eventually import eventually
from numba_kernels import N, axpy, double, run
from weir.testing import Gate

numba = pytest.importorskip("numba", reason="Numba is not installed: pip install numba")


# --- What it computes


def test_k2_a_body_of_python_runs_over_a_range(on: weir.Stream) -> None:
    with on:
        x, y = weir.arange(N, dtype="float32", device=on.device), weir.ones(N, "float32", device=on.device)
        event = axpy[weir.Range(N)](2.5, x, y)
    assert isinstance(event, weir.Event)
    event.wait()
    np.testing.assert_array_equal(y.numpy(), np.arange(N, dtype="float32") * 2.5 + 1)


def test_indices_of_several_dimensions_are_tuples(on: weir.Stream) -> None:
    @weir.kernel
    def plane(index: Any, x: Any, y: Any) -> None:
        row, column = index
        y[index] = 10 * x[column, row] + row

    @weir.kernel
    def space(index: Any, y: Any) -> None:
        a, b, c = index
        y[a, b, c] = 100 * a + 10 * b + c

    x = weir.array(np.arange(35.0).reshape(5, 7), device=on.device)
    y = weir.zeros((7, 5), device=on.device)
    plane[weir.Range(7, 5), on](x, y)
    z = weir.zeros((3, 4, 5), "int64", device=on.device)
    space[weir.Range((3, 4, 5)), on](z)
    np.testing.assert_array_equal(y.numpy(), 10 * x.numpy().T + np.arange(7)[:, None])
    np.testing.assert_array_equal(z.numpy(), np.fromfunction(lambda a, b, c: 100 * a + 10 * b + c, (3, 4, 5)))


def test_items_of_groups(on: weir.Stream) -> None:
    @weir.kernel
    def line(item: weir.Item, y: Any) -> None:
        y[item.global_id, 0] = item.local_id
        y[item.global_id, 1] = item.group_id
        y[item.global_id, 2] = item.global_range
        y[item.global_id, 3] = item.local_range

    y = weir.zeros((12, 4), "int64", device=on.device)
    line[weir.NdRange(12, 4), on](y)
    at = np.arange(12)
    expected = np.stack([at % 4, at // 4, np.full(12, 12), np.full(12, 4)], axis=1)
    np.testing.assert_array_equal(y.numpy(), expected)


def test_items_have_the_methods_of_numba_dpex(on: weir.Stream) -> None:
    @weir.kernel
    def volume(item: weir.Item, y: Any) -> None:
        a, b, c = item.global_id
        group = item.get_group()
        y[a, b, c, 0] = item.get_global_id(0) * 100 + item.get_global_id(1) * 10 + item.get_global_id(2)
        y[a, b, c, 1] = item.get_local_id(0) * 100 + item.get_local_id(1) * 10 + item.get_local_id(2)
        y[a, b, c, 2] = group.get_group_id(0) * 100 + group.get_group_id(1) * 10 + group.get_group_id(2)
        y[a, b, c, 3] = item.get_global_range(1) * 10 + item.get_local_range(1)

    shape, local = (4, 6, 2), (2, 3, 1)
    y = weir.zeros((*shape, 4), "int64", device=on.device)
    volume[weir.NdRange(shape, local), on](y)
    place = np.indices(shape)
    inner = place % np.array(local)[:, None, None, None]
    group = place // np.array(local)[:, None, None, None]
    weight = np.array([100, 10, 1])
    for k, each in enumerate((place, inner, group)):
        np.testing.assert_array_equal(y.numpy()[..., k], np.tensordot(weight, each, 1))
    assert (y.numpy()[..., 3] == 63).all()


def test_an_item_of_python_is_the_same() -> None:
    """Bodies can be called without Numba, to look at what they do."""
    item = weir.Item((1, 2), (0, 1), (1, 1), (4, 4), (2, 2))
    assert (item.get_global_id(1), item.get_local_id(1), item.get_group().get_group_id(0)) == (2, 1, 1)
    line = weir.Item(5, 1, 2, 8, 2)
    assert (line.get_global_id(0), line.get_global_range(0), line.get_local_range(0)) == (5, 8, 2)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "c": lambda x: x,
    "fortran": lambda x: x.T,
    "steps": lambda x: x[::2, 1::3],
    "backwards": lambda x: x[::-1, ::-1],
    "row": lambda x: x[3:4],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_any_layout(layout: str, on: weir.Stream) -> None:
    @weir.kernel
    def add(index: Any, x: Any, y: Any) -> None:
        y[index] += x[index] + x.shape[0]

    values = np.arange(8.0 * 9).reshape(8, 9)
    mine, theirs = weir.array(values, device=on.device), values.copy()
    x, y = LAYOUTS[layout](weir.array(values, device=on.device)), LAYOUTS[layout](mine)
    part = LAYOUTS[layout](theirs)
    add[weir.Range(x.shape), on](x, y)
    part += LAYOUTS[layout](values) + part.shape[0]
    np.testing.assert_array_equal(mine.numpy(), theirs)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, "float32", "float64", "complex64", "complex128"])
def test_element_types_and_numbers_of_each(dtype: str, on: weir.Stream) -> None:
    @weir.kernel
    def store(i: int, value: Any, x: Any, y: Any) -> None:
        if i == 0:
            y[i] = value
        else:
            y[i] = x[i]

    values = np.arange(6).astype(dtype)
    number = np.dtype(dtype).type(1.5 - 2j) if dtype.startswith("complex") else np.dtype(dtype).type(1)
    y = weir.zeros(6, dtype, device=on.device)
    store[weir.Range(6), on](number, weir.array(values, device=on.device), y)
    values[0] = number
    np.testing.assert_array_equal(y.numpy(), values)


def test_numbers_of_python(on: weir.Stream) -> None:
    @weir.kernel
    def store(i: int, a: Any, b: Any, c: Any, d: Any, y: Any) -> None:
        y[i] = a + b + c + d

    y = weir.zeros(1, "complex128", device=on.device)
    store[weir.Range(1), on](2**62, 2.5, True, 1j, y)
    assert y.item() == 2**62 + 2.5 + 1 + 1j


def test_many_arguments(on: weir.Stream) -> None:
    @weir.kernel
    def total(i: int, y: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> None:
        y[i] = a[i] + 2 * b[i] + 3 * c[i] + 4 * d[i] + 5 * e[i] + 6 * f[i] + 7 * g[i] + 8 * h[i]

    y = weir.zeros(3, device=on.device)
    total[weir.Range(3), on](y, *(weir.full(3, float(k), device=on.device) for k in range(1, 9)))
    assert y.tolist() == [sum(k * k for k in range(1, 9))] * 3


@pytest.mark.parametrize("space", [weir.Range(0), weir.Range(0, 5), weir.Range(3, 0, 2), weir.NdRange(0, 4)])
def test_an_empty_space_runs_nothing(space: Any, on: weir.Stream) -> None:
    @weir.kernel
    def fail(index: Any, x: Any) -> None:
        x[0] = 1
        raise ValueError("it ran")

    x = weir.zeros(1, device=on.device)
    fail[space, on](x).wait()
    assert x.tolist() == [0]


def test_each_index_runs_once_whatever_the_work_and_the_threads() -> None:
    """Cheap and dear bodies are cut into parts in different ways."""

    @weir.kernel
    def count(i: int, work: int, y: Any) -> None:
        value = 1.0
        for k in range(work):
            value = math.sin(value + k)
        y[i] += 1 + 0 * value

    for n, work in ((100_000, 0), (3000, 300), (40, 30_000), (1, 1), (2_000_003, 0)):
        y = weir.zeros(n)
        count[weir.Range(n)](work, y).wait()
        assert (y.numpy() == 1).all(), (n, work)


# --- Order


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_o1_a_launch_comes_after_what_writes_its_operands(mode: str, queue: str) -> None:
    """The control, left to its own order, reads before the write that is held."""
    first, second = weir.Stream(queue), weir.Stream(queue)
    x, y = weir.ones(N, device=queue), weir.zeros(N, device=queue)
    weir.synchronize()
    double[weir.Range(N)].prepare(x, y)
    with Gate() as gate, weir.ordering(mode):
        gate.hold(first)
        weir.fill(x, 7, stream=first)
        after = double[weir.Range(N), second](x, y)
        if mode == "manual":
            after.wait()
        else:
            assert not after.done
    weir.synchronize()
    assert y.tolist() == [14.0 if mode == "auto" else 2.0] * N


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_o1_what_overwrites_its_operands_comes_after_a_launch(mode: str, queue: str) -> None:
    first, second = weir.Stream(queue), weir.Stream(queue)
    x, y = weir.ones(N, device=queue), weir.zeros(N, device=queue)
    weir.synchronize()
    double[weir.Range(N)].prepare(x, y)
    with Gate() as gate, weir.ordering(mode):
        gate.hold(first)
        double[weir.Range(N), first](x, y)
        over = weir.fill(x, 7, stream=second)
        if mode == "manual":
            over.wait()
        else:
            assert not over.done
    weir.synchronize()
    assert y.tolist() == [2.0 if mode == "auto" else 14.0] * N


def test_o1_launches_that_only_read_the_same_are_not_ordered(queue: str) -> None:
    first, second = weir.Stream(queue), weir.Stream(queue)
    x, y, z = (weir.ones(N, device=queue) for _ in range(3))
    weir.synchronize()
    double[weir.Range(N)].prepare(x, y)
    with Gate() as gate:
        gate.hold(first)
        held = double[weir.Range(N), first](x, y)
        double[weir.Range(N), second](x, z).wait()
        assert not held.done
    held.wait()


def test_o3_a_part_of_an_array_is_all_that_a_launch_uses(queue: str) -> None:
    first, second = weir.Stream(queue), weir.Stream(queue)
    x, y = weir.ones(N, device=queue), weir.zeros(N, device=queue)
    weir.synchronize()
    double[weir.Range(1)].prepare(x, y)
    with Gate() as gate:
        gate.hold(first)
        double[weir.Range(N // 2), first](x[: N // 2], y[: N // 2])
        double[weir.Range(N // 2), second](x[N // 2 :], y[N // 2 :]).wait()
    assert y.tolist() == [2.0] * N


@pytest.mark.parametrize("form", ["list", "event", "third", "list in the third"])
def test_o5_after_adds_what_comes_before(form: str, queue: str) -> None:
    held, s = weir.Stream(queue), weir.Stream(queue)
    x, y = weir.ones(N, device=queue), weir.zeros(N, device=queue)
    weir.synchronize()
    double[weir.Range(N)].prepare(x, y)
    with Gate() as gate:
        gate.hold(held)
        e = held.record()
        control = double[weir.Range(N), s](x, y)
        control.wait()
        launchers = {
            "list": double[weir.Range(N), [e]],
            "event": double[weir.Range(N), e],
            "third": double[weir.Range(N), s, e],
            "list in the third": double[weir.Range(N), s, [e]],
        }
        after = launchers[form](x, y)
        assert not after.done
    after.wait()


def test_s7_without_a_stream_it_is_the_current_one_of_the_arrays_device(queue: str) -> None:
    x, y = weir.ones(N, device=queue), weir.zeros(N, device=queue)
    weir.synchronize()
    double[weir.Range(N)].prepare(x, y)
    with weir.Stream(queue) as s, Gate() as gate:
        gate.hold(s)
        event = double[weir.Range(N)](x, y)
        assert not event.done
        with weir.Stream("sim:1"):  # of another device: says nothing
            assert not double[weir.Range(N)](x, y).done
    weir.synchronize()


def test_c10_a_launcher_that_is_kept_honours_its_stream(queue: str) -> None:
    held, free = weir.Stream(queue), weir.Stream(queue)
    on_held, on_free = double[weir.Range(N), held], double[weir.Range(N), free]
    arrays = [weir.ones(N, device=queue) for _ in range(4)]
    weir.synchronize()
    on_free.prepare(*arrays[:2])
    with Gate() as gate:
        gate.hold(held)
        event = on_held(*arrays[:2])
        on_free(*arrays[2:]).wait()
        assert not event.done
    event.wait()


def test_c4_launches_do_not_share_arguments(queue: str) -> None:
    streams = [weir.Stream(queue) for _ in range(4)]
    arrays = [weir.ones(N, device=queue) for _ in range(4)]
    with Gate() as gate:
        for k, (s, y) in enumerate(zip(streams, arrays, strict=True)):
            gate.hold(s)
            axpy[weir.Range(N), s](float(k), y, y)
    for k, y in enumerate(arrays):
        assert y.tolist() == [k + 1.0] * N


def test_v1_check_sees_what_a_launch_reads_and_writes(queue: str) -> None:
    first, second = weir.Stream(queue), weir.Stream(queue)
    x, y, z = (weir.zeros(N, device=queue) for _ in range(3))
    weir.synchronize()
    with weir.check(assume="manual") as report:
        weir.fill(x, 7, stream=first)
        double[weir.Range(N), second](x, y)
    weir.synchronize()
    (race,) = report
    assert race.kind == "RAW"
    assert race.second.file == __file__
    with weir.check(assume="manual") as report:
        double[weir.Range(N), first](x, y)
        double[weir.Range(N), second](x, z)
    weir.synchronize()
    assert not report.races


def test_explain_names_the_kernel(queue: str) -> None:
    first, second = weir.Stream(queue, name="first"), weir.Stream(queue)
    x, y = weir.ones(N, device=queue), weir.zeros(N, device=queue)
    weir.synchronize()
    double[weir.Range(N)].prepare(x, y)
    with Gate() as gate:
        gate.hold(first)
        double[weir.Range(N), first](x, y)
        weir.fill(y, 1, stream=second)
        assert '"double"' in str(weir.explain(y))
    weir.synchronize()


# --- Lifetimes


def test_l2_operands_dropped_while_a_launch_is_pending_live_until_it_is_over(queue: str) -> None:
    s = weir.Stream(queue)
    y = weir.zeros(N, device=queue)
    double[weir.Range(N)].prepare(y, y)
    weir.synchronize()
    with Gate() as gate:
        gate.hold(s)
        x = weir.full(N, 3.0, device=queue, stream=s)
        double[weir.Range(N), s](x, y)
        del x
        gc.collect()
        others = [weir.full(N, -1.0, device=queue) for _ in range(20)]  # would take its memory
    assert y.tolist() == [6.0] * N
    assert all(one.tolist() == [-1.0] * N for one in others)


def test_l2_a_kernel_dropped_while_a_launch_is_pending_lives_until_it_is_over(queue: str) -> None:
    def kernel() -> Any:
        @weir.kernel
        def store(i: int, y: Any) -> None:
            y[i] = i

        return store

    s = weir.Stream(queue)
    y = weir.zeros(N, device=queue)
    store = kernel()
    with Gate() as gate:
        gate.hold(s)
        store[weir.Range(N), s](y)
        kernel_alive, code_alive = weakref.ref(store), weakref.ref(next(iter(store._its.compiled.values())))
        del store
        gc.collect()
        assert kernel_alive() is None
        assert code_alive() is not None
    assert y.tolist() == list(range(N))
    eventually(lambda: code_alive() is None)


def test_l3_the_interpreters_end_waits_for_launches() -> None:
    done = run(
        """
        import threading, weir
        from weir.testing import Gate
        @weir.kernel
        def fail(i, x):
            x[i] = 1 // x[i]
        x = weir.zeros(1000, "int64")
        gate = Gate()
        s = weir.Stream()
        gate.hold(s)
        fail[weir.Range(1000), s](x)
        gate.open()
        """
    )
    assert done.returncode == 0, done.stderr


# --- What there is besides


def test_arrays_of_other_packages_are_taken() -> None:
    x, y = np.arange(10.0), np.zeros(10)
    double[weir.Range(10)](x, y)  # over when it returns: nothing orders what NumPy does
    assert y.tolist() == (2 * x).tolist()


def test_types_are_compiled_once_each() -> None:
    @weir.kernel
    def store(i: int, x: Any) -> None:
        x[i] = i

    compiled = store._its.compiled
    for expected, x in enumerate([weir.ones(4), weir.ones(4, "int32"), weir.ones(8)[::2], weir.ones(4, "int8")], 1):
        for _ in range(3):
            store[weir.Range(4)](x)
            assert x.tolist() == [0, 1, 2, 3]
        assert len(store._its.compiled) == expected
    assert compiled is store._its.compiled


def test_a_kernel_says_what_it_is() -> None:
    assert repr(double).startswith("<weir.kernel double(i: 'int', x: 'Any', y: 'Any')")
    assert double.name == "double"
    assert repr(weir.Range(3, 4)) == "weir.Range(3, 4)"
    assert repr(weir.NdRange((4, 6), (2, 3))) == "weir.NdRange((4, 6), (2, 3))"
    assert weir.Range((3, 4)) == weir.Range(3, 4) != weir.Range(4, 3)
    assert weir.NdRange(weir.Range(4), 2) == weir.NdRange((4,), (2,))
    assert len({weir.Range(3), weir.Range(3), weir.NdRange(4, 2), weir.NdRange(4, 2)}) == 2


def test_functions_that_are_jitted_already_are_taken() -> None:
    @weir.kernel
    @numba.njit
    def store(i: int, x: Any) -> None:
        x[i] = i

    x = weir.zeros(3)
    store[weir.Range(3)](x)
    assert x.tolist() == [0, 1, 2]


def test_threads_launch_one_kernel_at_once() -> None:
    """The first launches compile it."""

    @weir.kernel
    def store(i: int, value: int, y: Any) -> None:
        y[i] = value + i

    arrays = [weir.zeros(100, dtype) for dtype in ("float64", "int64", "float32") for _ in range(4)]

    def launch(value: int, y: weir.Array) -> None:
        for _ in range(20):
            store[weir.Range(100), weir.Stream()](value, y)

    threads = [threading.Thread(target=launch, args=(k, y)) for k, y in enumerate(arrays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, y in enumerate(arrays):
        assert y.tolist() == list(range(k, k + 100))
