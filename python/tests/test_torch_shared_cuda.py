"""Operations of Weir on tensors of torch inside of weir.torch.safe(), on a CUDA device (rules O1, O6, X6, X7).

A kernel that spins stands where work would be late without the waits. The controls show that it is.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import pytest
import weir
import weir.torch
from torch_device import Device, torch

pytestmark = pytest.mark.skipif(torch is None or not torch.cuda.is_available(), reason="torch needs a CUDA device here")

N = 1 << 18  # elements: 1 MiB
LATE = 20_000_000  # cycles, some 10 ms


@pytest.fixture(autouse=True)
def nothing_runs() -> Iterator[None]:
    x = torch.zeros(N, device="cuda")
    x += 1
    float((x * 2)[-1])
    warm = weir.asarray(x.fill_(1))
    warm += 1
    (warm + 1).tolist()  # all kernels are loaded
    torch.cuda.synchronize()
    yield
    torch.cuda.synchronize()


def filled_late() -> torch.Tensor:
    """Zeros that another stream will fill with 5."""
    x = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(LATE)
        x.fill_(5)
    return x


def late_stream() -> weir.Stream:
    """A stream of Weir's whose next operation is late; all else is over."""
    torch.cuda.synchronize()
    s = weir.Stream("cuda:0")
    with torch.cuda.stream(torch.cuda.ExternalStream(s.handle)):
        torch.cuda._sleep(LATE)
    return s


def written_on_another_stream() -> float:
    x = filled_late()
    with weir.Stream("cuda:0"):
        return float((weir.asarray(x) + 1).tolist()[-1])


def written_by_weir() -> float:
    x, s = torch.zeros(N, device="cuda"), late_stream()
    with s:
        a = weir.asarray(x)
        a += 1
    with torch.cuda.stream(torch.cuda.Stream()):
        y = x * 2
        return float(y[-1])


def read_by_weir() -> float:
    x, s = torch.zeros(N, device="cuda"), late_stream()
    with s:
        y = weir.asarray(x) + 1
    with torch.cuda.stream(torch.cuda.Stream()):
        x.fill_(100)
    return float(y.tolist()[-1])


def read_by_the_host() -> float:
    x = filled_late()
    return float(weir.asarray(x).tolist()[-1])


def given_away() -> float:
    x = filled_late()
    with weir.Stream("cuda:0"):
        return float((weir.asarray(x, exclusive=True) + 1).tolist()[-1])


def memory_of_weirs() -> float:
    w = weir.zeros(N, dtype="float32", device="cuda:0")
    t = torch.from_dlpack(w)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(LATE)
        t.fill_(5)
    with weir.Stream("cuda:0"):
        return float((w + 1).tolist()[-1])


def a_part_of_weirs_memory() -> float:
    w = weir.zeros(N, dtype="float32", device="cuda:0")
    t = torch.from_dlpack(w[N // 2 :])
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(LATE)
        t.fill_(5)
    with weir.Stream("cuda:0"):
        w += 1
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(LATE)
        t += 1
    with weir.Stream("cuda:0"):
        return float((w + 1).tolist()[-1])


def a_part_of_a_tensor() -> float:
    x, s = torch.zeros(N, device="cuda"), late_stream()
    with s:
        part = weir.asarray(x[N // 2 :])
        part += 1
    with torch.cuda.stream(torch.cuda.Stream()):
        return float((x * 2)[-1])


def by_way_of_cupy() -> float:
    cupy = pytest.importorskip("cupy")
    x = torch.zeros(N, device="cuda")
    mine = cupy.asarray(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(LATE)
        x.fill_(5)
    with weir.Stream("cuda:0"):
        a = weir.asarray(mine[N // 2 :])
        a += 1
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(LATE)
        x.mul_(2)
    with cupy.cuda.Stream(non_blocking=True), weir.Stream("cuda:0"):
        return float(weir.asarray(mine).tolist()[-1])


def borrowed() -> float:
    x = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with weir.borrow(x, write=[x], stream=weir.Stream("cuda:0")) as (view,):
        torch.cuda._sleep(LATE)
        view += 1
    with torch.cuda.stream(torch.cuda.Stream()):
        return float((x * 2)[-1])


@pytest.mark.parametrize(
    ("program", "right"),
    [
        (written_on_another_stream, 6.0),
        (written_by_weir, 2.0),
        (read_by_weir, 1.0),
        (read_by_the_host, 5.0),
        (given_away, 6.0),
        (memory_of_weirs, 6.0),
        (a_part_of_weirs_memory, 8.0),
        (a_part_of_a_tensor, 2.0),
        (by_way_of_cupy, 12.0),
        (borrowed, 2.0),
    ],
)
def test_x6_tensors_are_used_in_order_on_whatever_streams(program: Callable[[], float], right: float) -> None:
    assert program() != right, "control: what Weir and torch do alone must be wrong"
    torch.cuda.synchronize()
    with weir.torch.safe() as safe:
        assert program() == right
        assert safe.waits > 0 or program is read_by_the_host


def test_o1_what_does_not_conflict_is_not_waited_for() -> None:
    x, y = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    s = weir.Stream("cuda:0")

    def added() -> bool:
        """Whether torch's stream was still busy when Weir was done."""
        busy = torch.cuda.Event()
        torch.cuda._sleep(LATE * 100)
        busy.record()
        with s:
            a = weir.asarray(x)
            a += 1
            s.synchronize()
        return not busy.query()

    assert not added(), "control: an operation starts after what is in the package's current stream"
    with weir.torch.safe() as safe:
        assert added()
        assert safe.waits == 0
        torch.cuda.synchronize()
        y.add_(1)
        assert safe.waits == 0
    assert float(x[0]) == 2.0


def test_x6_what_another_stream_does_waits_for_weir_and_not_for_what_weir_did_later() -> None:
    x, y = torch.zeros(N, device="cuda"), torch.zeros(N, device="cuda")
    s, side = weir.Stream("cuda:0"), torch.cuda.Stream()
    with weir.torch.safe() as safe:
        with s:
            a = weir.asarray(x)
            a += 1
        with torch.cuda.stream(side):
            x.mul_(2)
            assert safe.waits == 1
            y.add_(1)
            x.mul_(2)
            assert safe.waits == 1, "it is known"
        with s:
            a += 1
            assert safe.waits == 2
    assert float(x[0]) == 5.0


def test_x6_while_a_graph_is_captured_an_operation_is_refused_as_ever() -> None:
    x = torch.zeros(N, device="cuda")
    a, s = weir.asarray(x), weir.Stream("cuda:0")
    torch.cuda.synchronize()
    with weir.torch.safe():
        with torch.cuda.graph(torch.cuda.CUDAGraph()), s:
            x.mul_(2)
            with pytest.raises(weir.StateError, match="captured"):
                a += 1
        with s:
            a += 1
        x.add_(1)
    assert float(x[0]) == 2.0


def test_x6_a_thread_that_does_not_take_part_is_ordered_with_its_current_stream() -> None:
    x = torch.zeros(N, device="cuda")
    entered, found = threading.Event(), []

    def run() -> None:
        entered.wait()
        torch.cuda._sleep(LATE)
        x.fill_(5)
        with weir.Stream("cuda:0"):
            found.extend((weir.asarray(x) + 1).tolist()[-1:])

    thread = threading.Thread(target=run)
    thread.start()
    with weir.torch.safe():
        entered.set()
        thread.join()
    assert found == [6.0]


def test_x6_streams_that_are_destroyed_are_not_used_again() -> None:
    x = torch.zeros(N, device="cuda")
    with weir.torch.safe():
        for _ in range(8):
            with weir.Stream("cuda:0"):
                a = weir.asarray(x)
                a += 1
            del a
            gc.collect()
            with torch.cuda.stream(torch.cuda.Stream()):
                x.mul_(2)
    assert float(x[0]) == 510.0


def test_o1_a_stream_of_an_earlier_with_is_not_used_again() -> None:
    pretended = Device()
    with weir.torch.safe():
        pretended.on(16)  # of which the driver knows nothing
        torch.zeros(8).add_(1)
    pretended.end()
    x = torch.zeros(N, device="cuda")
    with weir.torch.safe():
        x.add_(1)
    assert float(x[0]) == 1.0
