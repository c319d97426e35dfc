"""weir.label and label=: the names of operations in errors, reports, explanations and traces."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weir
from conftest import HAS_CUDA
from weir.testing import Gate

AXPY = """
extern "C" __global__ void axpy(const float* x, float* y, float a, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def labels_of(program: Callable[[], object], folder: Path) -> list[str]:
    """The labels of all operations that the program enqueues, gates and waits apart."""
    log = folder / "run.weirlog"
    with weir.trace(log):
        program()
        weir.synchronize()
    news = [json.loads(line) for line in log.read_text().splitlines()]
    return [one["label"] for one in news if one.get("type") == "operation" and one["kind"] not in ("gate", "moment")]


def fails() -> None:
    raise KeyError


def label_of_failure(done: weir.Event) -> str:
    with pytest.raises(weir.OperationError) as caught:
        done.wait()
    return caught.value.label


def test_label_names_what_is_enqueued_inside(device: weir.Device, tmp_path: Path) -> None:
    def program() -> None:
        x = weir.zeros(4, device=device)
        with weir.label("window"):
            y = weir.ones(4, device=device)
            y += x
            y.astype("float32").sum()
            weir.copy(x, y)
            with weir.label("inner"):
                weir.fill(x, 1)
            x[1:] = 2
        y *= 2

    inside = [*["window"] * 5, "inner", "window"]
    found = labels_of(program, tmp_path)
    first = found.index("window")
    assert found[first : first + len(inside)] == inside, found
    assert not {"window", "inner"} & {*found[:first], *found[first + len(inside) :]}
    assert found[-1] == "multiply"


def test_errors_have_the_label(any_device: weir.Device) -> None:
    stream = weir.Stream(any_device)
    assert label_of_failure(weir.host_task(fails, stream=stream)) == "fails"
    with weir.label("outer"):
        assert label_of_failure(weir.host_task(fails, stream=stream)) == "outer"
        with weir.label("inner"):
            assert label_of_failure(weir.host_task(fails, stream=stream)) == "inner"
            assert label_of_failure(weir.host_task(fails, stream=stream, label="given")) == "given"
            assert label_of_failure(weir.host_task(fails, stream=stream)) == "inner"
        assert label_of_failure(weir.host_task(fails, stream=stream)) == "outer"
    assert label_of_failure(weir.host_task(fails, stream=stream)) == "fails"


def test_explain_has_the_label(device: weir.Device) -> None:
    stream = weir.Stream(device)
    x = weir.zeros(4, stream=stream)
    with Gate() as gate:
        gate.hold(stream)
        with weir.label("window"):
            weir.fill(x, 1, stream=stream)
        weir.fill(x, 2, stream=stream, label="reset")
        pending = "\n".join(weir.explain(x).pending)
    assert '"window"' in pending or '"reset"' in pending
    assert '"fill"' not in pending


def test_check_has_the_label(device: weir.Device) -> None:
    first, second = weir.Stream(device), weir.Stream(device)
    x = weir.zeros(4, stream=first)
    first.synchronize()
    with weir.check(assume="manual") as report:
        with weir.label("write"):
            weir.fill(x, 1, stream=first)
        weir.fill(x, 2, stream=second, label="write again")
    device.synchronize()
    (race,) = report.races
    assert (race.first.label, race.second.label) == ("write", "write again")


def test_operations_that_come_after_events_have_the_label(tmp_path: Path) -> None:
    """They take another way into the stream than others."""

    def program() -> None:
        with weir.label("after"):
            weir.host_task(print, "", after=weir.Stream().record(), writes=weir.zeros(2))

    assert labels_of(program, tmp_path) == ["after", "after"]


def test_a_label_is_of_its_thread(tmp_path: Path) -> None:
    x = weir.zeros(4)
    entered, enqueued = threading.Event(), threading.Event()

    def labels() -> None:
        with weir.label("mine"):
            entered.set()
            enqueued.wait()

    def program() -> None:
        other = threading.Thread(target=labels)
        other.start()
        entered.wait()
        weir.fill(x, 1)
        enqueued.set()
        other.join()

    assert labels_of(program, tmp_path) == ["fill"]


def test_s7_a_label_is_of_its_task(tmp_path: Path) -> None:
    x, y = weir.zeros(4), weir.zeros(4)

    async def task(of: weir.Array, text: str) -> None:
        with weir.label(text):
            for _ in range(3):
                await asyncio.sleep(0)
                weir.fill(of, 1)
                weir.fill(of, 2, label=text + "!")

    async def main() -> None:
        await asyncio.gather(task(x, "one"), task(y, "two"))
        weir.fill(x, 3)

    found = labels_of(lambda: asyncio.run(main()), tmp_path)
    assert found == [*["one", "one!", "two", "two!"] * 3, "fill"]


def test_a_label_may_be_entered_again_and_prints_what_it_is(tmp_path: Path) -> None:
    named = weir.label("again's")
    assert repr(named) == '<weir.label "again\'s">'
    x = weir.zeros(2)

    def program() -> None:
        with named, named:
            weir.fill(x, 1)
        with named:
            weir.fill(x, 2)
        weir.fill(x, 3)

    assert labels_of(program, tmp_path) == ["again's", "again's", "fill"]


def sparse_system() -> tuple[Any, weir.Array]:
    n = 3
    matrix = (weir.ones(n), weir.arange(n, dtype="int32"), weir.arange(n + 1, dtype="int32"), (n, n))
    return matrix, weir.ones(n)


def fft_plan() -> None:
    with weir.fft.FFT(weir.ones(4, dtype="complex128")) as f:
        f.plan(label="given")
        f.execute(label="given")


def product_plan() -> None:
    with weir.linalg.Matmul(weir.ones((2, 2)), weir.ones((2, 2))) as f:
        f.plan(label="given")
        f.autotune(label="given")
        f.execute(label="given")


def solver() -> None:
    with weir.sparse.DirectSolver(*sparse_system()) as s:
        s.plan(label="given")
        s.factorize(label="given")
        s.solve(label="given")


def task() -> None:
    """Does nothing."""


double = weir.elementwise("float64 x", "float64 y", "y = 2 * x")
total = weir.reduction("float64 x", "float64 y", "x", "a + b", identity=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: weir.copy(weir.empty(2), weir.ones(2), label="given"),
        lambda: weir.copy(weir.empty(2), np.ones(2), label="given"),
        lambda: weir.fill(weir.empty(2), 1, label="given"),
        lambda: weir.host_task(task, label="given"),
        lambda: weir.zeros(2, label="given"),
        lambda: weir.ones(2, label="given"),
        lambda: weir.full(2, 3, label="given"),
        lambda: weir.arange(2, label="given"),
        lambda: weir.random.random(2, label="given"),
        lambda: weir.array([1, 2], device="sim:0", label="given"),
        lambda: double(weir.ones(2), label="given"),
        lambda: double.launch(weir.ones(2), out=weir.empty(2), label="given"),
        lambda: total(weir.ones(2), label="given"),
        lambda: total.launch(weir.ones(2), out=weir.empty(()), label="given"),
        lambda: weir.fft.fft(weir.ones(4), label="given"),
        lambda: weir.fft.irfftn(weir.ones((4, 4), dtype="complex128"), label="given"),
        lambda: weir.fft.fft(np.ones(4), label="given"),
        lambda: weir.linalg.matmul(weir.ones((2, 2)), weir.ones((2, 2)), label="given"),
        lambda: weir.sparse.solve(*sparse_system(), label="given"),
        fft_plan,
        product_plan,
        solver,
    ],
)
def test_calls_that_enqueue_take_a_label(call: Callable[[], object], tmp_path: Path) -> None:
    found = labels_of(call, tmp_path)
    assert "given" in found
    assert not {"copy", "task", "fft", "irfftn", "matmul"} & {*found}, found


@pytest.mark.skipif(not HAS_CUDA, reason="needs a CUDA device")
def test_a_launch_takes_a_label(tmp_path: Path) -> None:
    axpy = weir.Kernel(AXPY, "axpy", "in float* x, inout float* y, float a, int64 n")
    x = weir.ones(4, "float32", device="cuda:0")
    y = weir.ones(4, "float32", device="cuda:0")

    def program() -> None:
        axpy.launch(1, 32, x, y, 1, 4)
        axpy.launch(1, 32, x, y, 1, 4, label="given")
        with weir.label("inside"):
            axpy[1, 32](x, y, 1, 4)

    assert labels_of(program, tmp_path) == ["axpy", "given", "inside"]


def test_x10_wrong_labels_are_refused() -> None:
    with pytest.raises(weir.ArgumentTypeError, match="label is 3: pass a text"):
        weir.label(3)  # type: ignore[arg-type]
    with pytest.raises(weir.ArgumentTypeError, match="label is 3: pass a text"):
        weir.fill(weir.zeros(2), 1, label=3)  # type: ignore[call-overload]
    with pytest.raises(weir.ArgumentError, match="label is '': pass a text"):
        weir.label("")
    outer, inner = weir.label("outer"), weir.label("inner")
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(weir.StateError, match="innermost first"):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    with pytest.raises(weir.StateError):
        outer.__exit__(None, None, None)
