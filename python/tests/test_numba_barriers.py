"""Bodies whose items wait for each other and share arrays, on devices that run code of the host (rules K2, K3)."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import weir

numba = pytest.importorskip("numba", reason="Numba is not installed: pip install numba")
cuda = pytest.importorskip("numba.cuda", reason="this Numba has no cuda: pip install numba-cuda")

float32, float64, int64 = numba.float32, numba.float64, numba.int64
HOST = ["cpu", "cpu:inline", "sim:0"]
TILE = 4
sync = cuda.syncthreads


# --- Kernels, and the same bodies with a thread for each item


@weir.kernel
def reverse(item: Any, x: Any, out: Any) -> None:
    kept = cuda.shared.array(8, float32)
    kept[item.local_id] = x[item.global_id]
    cuda.syncthreads()
    out[item.global_id] = kept[item.get_local_range(0) - 1 - item.local_id]


@weir.kernel
def sums(item: Any, x: Any, out: Any) -> None:
    """A tree: the loop is the same for all items, what stands in it is not."""
    part = cuda.shared.array(shape=8, dtype=float64)
    i = item.get_local_id(0)
    part[i] = x[item.global_id]
    cuda.syncthreads()
    half = item.local_range // 2
    while half > 0:
        if i < half:
            part[i] += part[i + half]
        cuda.syncthreads()
        half //= 2
    if i != 0:
        return
    out[item.group_id] = part[0]


@weir.kernel
def running(item: Any, x: Any, out: Any) -> None:
    """Sums of all before: a number of each item lives over the barriers of a loop."""
    line = cuda.shared.array(8, float64)
    i = item.local_id
    total = x[item.global_id]
    for step in range(3):
        line[i] = total
        cuda.syncthreads()
        if i >= 2**step:
            total += line[i - 2**step]
        cuda.syncthreads()
    out[item.global_id] = total


@weir.kernel
def counted(item: Any, x: Any, out: Any) -> None:
    """A loop that ends by what items have found; bool, float32 and integers are kept."""
    left = cuda.shared.array(1, int64)
    value = x[item.global_id]
    rounds = 0
    done = False
    while True:
        cuda.syncthreads()
        if item.local_id == 0:
            left[0] = 0
        sync()
        if not done:
            if value > 1:
                value /= float32(2)
                rounds += 1
                left[0] = 1
            else:
                done = True
        sync()
        if left[0] == 0:
            break
    out[item.global_id] = rounds + 100 * done + value


@weir.kernel
def around(item: Any, x: Any, out: Any) -> None:
    """Conditions, returns and numbers that are the same for a group; temporary variables of several types."""
    last = item.get_group().get_group_id(0)
    first = 2 * last if last < 3 else min(last, 5)
    line = cuda.shared.array(8, float64)
    if last == 1:
        out[item.global_id] = -1
        return
    temporary = x[1:]
    line[item.local_id] = temporary[item.global_id] if item.global_id < 31 else 0.0
    if first > 2:
        cuda.syncthreads()
        temporary = x[2:]
        for k in range(first):
            if k == 1:
                continue
            line[item.local_id] += k + temporary[0]
            sync()
            out[item.global_id] = line[7 - item.local_id]
            sync()
    else:
        for k in range(2):
            out[item.global_id] += k + line[item.local_id]


@weir.kernel
def mixed(item: Any, x: Any, out: Any) -> None:
    """Tuples are kept, an integer that becomes a real number, and one that only some items have."""
    line = cuda.shared.array(8, float64)
    pair = (item.local_id, x[item.global_id])
    total = 0
    other = 0
    if item.local_id % 2 == 0:
        other = 7
    line[pair[0]] = pair[1]
    sync()
    if item.local_id % 3 == 0:
        other = 9
    total += line[(pair[0] + 1) % 8] / 4
    sync()
    out[item.global_id] = total + pair[0] + pair[1] + other


LINES = [reverse, sums, running, counted, around, mixed]


@weir.kernel
def product(item: Any, a: Any, b: Any, c: Any) -> None:
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    row, column = item.global_id
    y, x = place = item.local_id
    total = 0.0
    for tile in range(a.shape[1] // TILE):
        left[place] = a[row, tile * TILE + x]
        right[y, x] = b[tile * TILE + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    c[item.global_id] = total


class Group:
    """What `cuda` is for the items of one group, each of which is a thread of Python."""

    def __init__(self, items: int) -> None:
        self.barrier = threading.Barrier(items)
        self.syncthreads = self.barrier.wait
        self.failed: list[BaseException] = []
        self._lock = threading.Lock()
        self._arrays: dict[tuple[Any, ...], Any] = {}
        self._thread = threading.local()
        self.shared = SimpleNamespace(array=self._array)

    def run(self, body: Callable[..., Any], item: weir.Item, args: tuple[Any, ...]) -> None:
        try:
            body(item, *args)
        except Exception as error:
            self.failed.append(error)
            self.barrier.abort()

    def _array(self, shape: Any, dtype: Any) -> Any:
        self._thread.count = number = getattr(self._thread, "count", 0) + 1
        with self._lock:
            return self._arrays.setdefault((number,), np.zeros(shape, dtype))


def by_threads(kernel: Any, extents: tuple[int, ...], local: tuple[int, ...], *args: Any) -> None:
    """Runs a body as CUDA does, in NumPy's arrays."""
    plain: Callable[[Any], Any] = lambda place: place if len(place) > 1 else place[0]  # noqa: E731
    for group in itertools.product(*(range(n // k) for n, k in zip(extents, local, strict=True))):
        fake = Group(math.prod(local))
        names = {**globals(), "cuda": fake, "sync": fake.syncthreads}
        names |= {"float32": np.float32, "float64": np.float64, "int64": np.int64}
        body = FunctionType(kernel.__wrapped__.__code__, names)
        threads = []
        for inside in itertools.product(*(range(k) for k in local)):
            at = tuple(g * k + i for g, k, i in zip(group, local, inside, strict=True))
            item = weir.Item(plain(at), plain(inside), plain(group), plain(extents), plain(local))
            threads.append(threading.Thread(target=fake.run, args=(body, item, args)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert fake.failed == []


@pytest.mark.parametrize("device", HOST)
@pytest.mark.parametrize("kernel", LINES, ids=lambda one: one.name)
def test_items_wait_for_each_other(kernel: Any, device: str) -> None:
    x = np.random.default_rng(3).integers(0, 60, 32).astype("float32")
    wanted = np.zeros(32)
    by_threads(kernel, (32,), (8,), x, wanted)
    out = weir.zeros(32, device=device)
    kernel[weir.NdRange(32, 8), weir.Stream(device)](weir.array(x, device=device), out)
    np.testing.assert_array_equal(out.numpy(), wanted)
    assert len(set(out.tolist())) > 2


@pytest.mark.parametrize("device", HOST)
def test_groups_of_two_dimensions(device: str) -> None:
    numbers = np.random.default_rng(4)
    a, b = numbers.integers(0, 9, (8, 12)).astype("float64"), numbers.integers(0, 9, (12, 16)).astype("float64")
    c = weir.zeros((8, 16), device=device)
    product[weir.NdRange((8, 16), (TILE, TILE)), weir.Stream(device)](
        weir.array(a, device=device), weir.array(b, device=device), c
    )
    np.testing.assert_array_equal(c.numpy(), a @ b)


def test_groups_of_three_dimensions_in_any_layout() -> None:
    @weir.kernel
    def turned(item: Any, x: Any, out: Any) -> None:
        block = cuda.shared.array((2, 3, 4), int64)
        a, b, c = item.local_id
        block[a, b, c] = x[item.global_id]
        cuda.syncthreads()
        out[item.global_id] = block[1 - a, 2 - b, 3 - c]

    x = np.arange(4 * 6 * 8).reshape(4, 6, 8)
    out = weir.zeros((4, 6, 8), "int64")
    turned[weir.NdRange((4, 6, 8), (2, 3, 4))](weir.asarray(x.transpose(2, 1, 0).copy().transpose(2, 1, 0)), out)
    blocks = x.reshape(2, 2, 2, 3, 2, 4)[:, ::-1, :, ::-1, :, ::-1]
    np.testing.assert_array_equal(out.numpy(), blocks.reshape(4, 6, 8))


def test_many_groups_on_several_threads() -> None:
    x = np.arange(80_000, dtype="float64")
    out = weir.zeros(10_000)
    sums[weir.NdRange(80_000, 8)](weir.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x.reshape(-1, 8).sum(axis=1))


def test_control_without_the_barrier_items_read_too_early() -> None:
    @weir.kernel
    def early(item: Any, x: Any, out: Any) -> None:
        kept = cuda.shared.array(8, float32)
        kept[item.local_id] = -1
        cuda.syncthreads()
        kept[item.local_id] = x[item.global_id]
        out[item.global_id] = kept[7 - item.local_id]

    out = weir.zeros(8, "float32")
    early[weir.NdRange(8, 8)](weir.arange(8, dtype="float32"), out)
    assert out.tolist() == [-1, -1, -1, -1, 3, 2, 1, 0]


def test_k3_uses_are_found_around_barriers() -> None:
    x, out = weir.ones(16, "float32"), weir.zeros(16, "float32")
    reverse[weir.NdRange(16, 8)](x, out)
    (only,) = [one.uses for one in reverse._its.compiled.values() if len(one.uses) == 2][:1]
    assert only[0] == 1  # x is read
    assert only[1] & 1 == 0  # out is not


def test_an_exception_names_the_line_of_the_body() -> None:
    @weir.kernel
    def fails(item: Any, x: Any) -> None:
        cuda.syncthreads()
        if item.global_id == 3:
            raise ValueError("on purpose")

    event = fails[weir.NdRange(8, 4)](weir.ones(8))
    with pytest.raises(weir.OperationError) as raised:
        event.wait()
    cause = raised.value.__cause__
    line = fails.__wrapped__.__code__.co_firstlineno + 4
    assert isinstance(cause, ValueError)
    if hasattr(cause, "__notes__"):  # from Python 3.11 on
        assert cause.__notes__ == [f"in fails, {__file__}, line {line}"]


def test_an_exception_leaves_no_arrays_behind() -> None:
    @weir.kernel
    def fails(item: Any, x: Any) -> None:
        kept = cuda.shared.array(64, float64)
        own = x[item.global_id]
        pair = own, own
        kept[item.local_id] = own
        cuda.syncthreads()
        if kept[0] + own + pair[1] > 0:
            raise ValueError("on purpose")

    def living() -> int:
        counts = numba.core.runtime.rtsys.get_allocation_stats()
        return int(counts.alloc - counts.free)

    x = weir.ones(64, device="cpu:inline")
    numba.core.runtime._nrt_python.memsys_enable_stats()
    with pytest.raises(weir.OperationError):
        fails[weir.NdRange(64, 64)](x).wait()
    before = living()
    for _ in range(20):
        with pytest.raises(weir.OperationError):
            fails[weir.NdRange(64, 64)](weir.ones(64, device="cpu:inline")).wait()
    assert living() == before


def test_indices_are_checked_in_shared_arrays() -> None:
    @weir.kernel(boundscheck=True)
    def outside(item: Any, x: Any) -> None:
        kept = cuda.shared.array(4, float32)
        kept[item.local_id] = 1
        cuda.syncthreads()
        x[item.global_id] = kept[item.local_id]

    with pytest.raises(weir.OperationError):
        outside[weir.NdRange(8, 8)](weir.ones(8)).wait()


# --- What cannot be divided


def refusal(body: Any, space: Any = None) -> str:
    with pytest.raises(weir.ArgumentError) as raised:
        weir.kernel(body)[space or weir.NdRange(8, 8)](weir.ones(8))
    text = str(raised.value)
    assert "::" not in text
    return text


def in_line(body: Any, line: int) -> str:
    return f"line {body.__code__.co_firstlineno + line}, "


def test_a_condition_around_a_barrier_is_the_same_for_all_items() -> None:
    def condition(item: Any, x: Any) -> None:
        if item.local_id < 3:
            cuda.syncthreads()
        x[item.global_id] = 0

    text = refusal(condition)
    assert f'the kernel condition, {in_line(condition, 1)}"if item.local_id < 3:"' in text
    assert f"the barrier in line {condition.__code__.co_firstlineno + 2} depends on it" in text
    assert "item.local_id is another one for each item" in text

    def variable(item: Any, x: Any) -> None:
        i = item.get_global_id(0)
        n = i + 1
        for _k in range(n):
            cuda.syncthreads()

    text = refusal(variable)
    assert f'{in_line(variable, 1)}"i = item.get_global_id(0)"' in text
    assert "item.get_global_id(0) is another one for each item" in text

    def element(item: Any, x: Any) -> None:
        n = 0
        for k in range(8):
            if x[item.global_id] > k:
                n += 1
        while n > 0:
            cuda.syncthreads()
            n -= 1

    assert f"{in_line(element, 3)}" in refusal(element)

    def hidden(item: Any, x: Any) -> None:
        n = 3
        if (n := item.local_id) > 2:
            x[0] = n
        for _k in range(n):
            cuda.syncthreads()

    assert "it is assigned by statements of its own" in refusal(hidden)

    def called(item: Any, x: Any) -> None:
        if np.random.random() < 0.5:
            cuda.syncthreads()

    assert "what np.random.random returns may be another one" in refusal(called)


def test_all_items_reach_a_barrier() -> None:
    def returns(item: Any, x: Any) -> None:
        if item.global_id > 5:
            return
        cuda.syncthreads()
        x[item.global_id] = 0

    text = refusal(returns)
    assert in_line(returns, 1) in text
    assert (
        f"items that return in line {returns.__code__.co_firstlineno + 2} would not reach what all items of the" in text
    )

    def breaks(item: Any, x: Any) -> None:
        for k in range(3):
            if k > item.local_id:
                break
            cuda.syncthreads()

    assert in_line(breaks, 2) in refusal(breaks)


def test_barriers_stand_where_the_body_can_be_divided() -> None:
    def handled(item: Any, x: Any) -> None:
        try:
            cuda.syncthreads()
        except ValueError:
            x[0] = 0

    assert f"not in what starts in line {handled.__code__.co_firstlineno + 1}" in refusal(handled)

    def expression(item: Any, x: Any) -> None:
        _ = cuda.syncthreads()

    assert "a barrier is a statement of its own" in refusal(expression)

    def otherwise(item: Any, x: Any) -> None:
        for _k in range(3):
            cuda.syncthreads()
        else:
            x[0] = 0

    assert "loops without else" in refusal(otherwise)

    def over_range(i: Any, x: Any) -> None:
        cuda.syncthreads()

    assert "pass weir.NdRange(items, items of a group)" in refusal(over_range, weir.Range(8))
    assert "write it as def f(item, x)" in refusal(lambda item, x: cuda.syncthreads())
    space: dict[str, Any] = {"cuda": cuda}
    exec("def typed(item, x):\n    cuda.syncthreads()", space)
    assert "define it in a file" in refusal(space["typed"])


def test_shared_arrays_are_made_at_the_start() -> None:
    def inside(item: Any, x: Any) -> None:
        if item.group_id == 0:
            kept = cuda.shared.array(8, float64)
            kept[0] = 1

    assert f"{in_line(inside, 2)}" in refusal(inside)

    def sized(item: Any, x: Any) -> None:
        n = item.local_range
        kept = cuda.shared.array(n, float64)
        kept[0] = 1

    assert "n is no constant" in refusal(sized)

    def nameless(item: Any, x: Any) -> None:
        x[0] = cuda.shared.array(8, float64)[0]

    assert "gets a name" in refusal(nameless)

    def twice(item: Any, x: Any) -> None:
        kept = cuda.shared.array(8, float64)
        kept = x
        kept[0] = 1

    assert "give the shared array a name of its own" in refusal(twice)


def test_what_is_kept_over_a_barrier_is_numbers() -> None:
    def view(item: Any, x: Any) -> None:
        rest = x[item.local_id :]
        cuda.syncthreads()
        rest[0] = 1  # the error is about the line that assigns it

    text = refusal(view)
    assert in_line(view, 1) in text
    assert "rest is used on both sides of a barrier and is array(float64, 1d, C)" in text
    assert "compute it again behind the barrier" in text

    def parameter(item: Any, x: Any) -> None:
        x = x[1:]
        cuda.syncthreads()
        x[0] = 1

    assert "x is a parameter, which a body with barriers does not change" in refusal(parameter)


def test_other_forms_of_waiting_are_refused() -> None:
    def warp(item: Any, x: Any) -> None:
        cuda.syncwarp()

    text = refusal(warp)
    assert "calls syncwarp" in text
    assert "make two kernels of it" in text
