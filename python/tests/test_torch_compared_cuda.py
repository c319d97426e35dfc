"""Operations of Weir on tensors inside of weir.torch.check(), on a CUDA device (rules V1, X6).

Each program is run twice: as it is, and with the wait that the first report asks for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
import weir
import weir.torch
from torch_device import torch

pytestmark = pytest.mark.skipif(torch is None or not torch.cuda.is_available(), reason="torch needs a CUDA device here")

N = 1 << 10  # elements


@contextlib.contextmanager
def other_stream(mended: bool) -> Iterator[torch.cuda.Stream]:
    """Another stream of torch's; where it is mended, between what the current stream gets before and afterwards."""
    side = torch.cuda.Stream()
    if mended:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield side
    if mended:
        torch.cuda.current_stream().wait_stream(side)


def zeros() -> torch.Tensor:
    x = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    return x


def written_on_another_stream(mended: bool) -> float:
    x = zeros()
    with other_stream(mended):
        x.fill_(5)
    with weir.Stream("cuda:0"):
        return float((weir.asarray(x) + 1).tolist()[-1])


def written_by_weir(mended: bool) -> float:
    x = zeros()
    with weir.Stream("cuda:0"):
        a = weir.asarray(x)
        a += 6
    with other_stream(mended):
        return float(x[-1])


def written_by_weir_which_lets_go(mended: bool) -> float:
    x = zeros()
    s = weir.Stream("cuda:0")
    with s:
        a = weir.asarray(x)
        a += 6
        del a
    s.synchronize()  # else the report would depend on when the operation ends
    with weir.Stream("cuda:0"):
        a = weir.asarray(x)
        a += 0
        del a
    with other_stream(mended):
        return float(x[-1])


def read_by_weir(mended: bool) -> float:
    x = zeros()
    with weir.Stream("cuda:0"):
        y = weir.asarray(x) + 6
    with other_stream(mended):
        x.fill_(100)
    return float(y.tolist()[-1])


def read_by_the_host(mended: bool) -> float:
    x = zeros()
    with other_stream(mended):
        x.fill_(6)
    return float(weir.asarray(x).tolist()[-1])


def given_away(mended: bool) -> float:
    x = zeros()
    with other_stream(mended):
        x.fill_(5)
    with weir.Stream("cuda:0"):
        return float((weir.asarray(x, exclusive=True) + 1).tolist()[-1])


def memory_of_weirs(mended: bool) -> float:
    w = weir.zeros(N, dtype="float32", device="cuda:0")
    t = torch.from_dlpack(w)
    torch.cuda.synchronize()
    with other_stream(mended):
        t.fill_(5)
    with weir.Stream("cuda:0"):
        return float((w + 1).tolist()[-1])


def a_part_of_a_tensor(mended: bool) -> float:
    x = zeros()
    with weir.Stream("cuda:0"):
        part = weir.asarray(x[N // 2 :])
        part += 6
    with other_stream(mended):
        return float(x[-1])


def borrowed(mended: bool) -> float:
    x = zeros()
    with weir.borrow(x, write=[x], stream=weir.Stream("cuda:0")) as (view,):
        view += 6
    with other_stream(mended):
        return float(x[-1])


def a_stream_of_torchs(mended: bool) -> float:
    x = zeros()
    with other_stream(mended) as side:
        x.fill_(5)
    with weir.Stream("cuda:0") as s:
        if mended:
            s.wait(side)
        return float((weir.asarray(x) + 1).tolist()[-1])


PROGRAMS = [
    written_on_another_stream,
    written_by_weir,
    written_by_weir_which_lets_go,
    read_by_weir,
    read_by_the_host,
    given_away,
    memory_of_weirs,
    a_part_of_a_tensor,
    borrowed,
    a_stream_of_torchs,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_v1_what_weir_and_torch_do_is_compared(program: Callable[[bool], float]) -> None:
    with weir.torch.check() as report:
        program(False)
        torch.cuda.synchronize()
    assert len(report) >= 1, str(report)
    with weir.torch.check() as report:
        assert program(True) == 6.0
        torch.cuda.synchronize()
    assert len(report) == 0, str(report)
    assert report.unseen == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_v1_under_safe_the_report_is_of_the_programs_own_order(program: Callable[[bool], float]) -> None:
    with weir.torch.safe(), weir.torch.check() as report:
        assert program(False) == 6.0
        torch.cuda.synchronize()
    assert len(report) >= 1, str(report)
    with weir.torch.safe(), weir.torch.check() as report:
        assert program(True) == 6.0
        torch.cuda.synchronize()
    assert len(report) == 0, str(report)


def test_v1_what_the_report_says_to_add_orders_the_two() -> None:
    x, s, side = zeros(), weir.Stream("cuda:0"), torch.cuda.Stream()

    def run(mended: bool) -> None:
        with torch.cuda.stream(side):
            x.fill_(5)
        if mended:
            s.wait(side)
        with s:
            a = weir.asarray(x)
            a += 1
        if mended:
            weir.adopt(side).wait(s)
        with torch.cuda.stream(side):
            x.mul_(2)
        torch.cuda.synchronize()

    with weir.torch.check() as report:
        run(False)
    first, second = (race.mend.split("  # ")[0] for race in report)
    assert first.startswith(str(s.name).replace(" ", "_") + ".wait(stream_")
    assert second.startswith("weir.adopt(stream_") and second.endswith(").wait(" + str(s.name).replace(" ", "_") + ")")
    assert all("with torch's current stream, which was another one" in str(race) for race in report)
    with weir.torch.check() as report:
        run(True)
    assert len(report) == 0, str(report)
    assert float(x[0]) == 12.0


def test_v1_weir_and_torch_in_turn_are_in_order_in_the_current_stream() -> None:
    x, s = zeros(), weir.Stream("cuda:0")
    with weir.torch.check() as report:
        for _ in range(4):
            x.add_(1)
            with s:
                a = weir.asarray(x)
                a += 1
            del a
            with weir.adopt(torch.cuda.current_stream()):
                a = weir.asarray(x)
                a += 1
            with other_stream(True):
                x.add_(1)
        assert float(x[0]) == 16.0
    assert len(report) == 0, str(report)


def test_v1_a_stream_of_weirs_that_torch_uses_is_one_stream() -> None:
    x, s = zeros(), weir.Stream("cuda:0")
    with weir.torch.check() as report:
        with torch.cuda.stream(torch.cuda.ExternalStream(s.handle)), weir.ordering("manual"):
            x.add_(1)
            with s:
                a = weir.asarray(x)
                a += 1
            x.add_(1)
        torch.cuda.synchronize()
        assert len(report) == 0, str(report)
        with weir.ordering("manual"), s:
            a += 1
        x.add_(1)
    assert len(report) == 1, str(report)


def test_l1_memory_of_weirs_that_torch_had_is_other_memory_afterwards() -> None:
    with weir.torch.check() as report:
        for _ in range(4):
            w = weir.zeros(N, dtype="float32", device="cuda:0")
            with torch.cuda.stream(torch.cuda.Stream()):
                t = torch.from_dlpack(w)
                t.add_(1)
                torch.cuda.current_stream().synchronize()
            del t, w
    assert len(report) == 0, str(report)
