"""weir.torch.safe(): programs of torch are kept in order (rules O1, O2, L1).

What waits for what is tested without torch (ordered_program_test.cpp); here, that the hooks ask for it. Without a GPU,
tensors of the CPU stand for a device's, whose events do nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
import weir
import weir.torch
from torch_device import Device, needs_torch, torch, trainer

pytestmark = needs_torch

A, B = 16, 32  # streams


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.end()


def waits(device: Device, first: Callable[[], object], second: Callable[[], object]) -> int:
    """How many waits there are if one runs on one stream, and then the other on another."""
    with weir.torch.safe() as safe:
        device.on(A)
        kept = first()
        device.on(B)
        before = safe.waits
        kept = (kept, second())
        count = safe.waits - before
    del kept
    return count


def test_o1_what_conflicts_is_waited_for(device: Device) -> None:
    x, y = torch.zeros(8), torch.zeros(8)
    assert waits(device, lambda: x.add_(1), lambda: x * 2) == 1
    assert waits(device, lambda: x.neg(), lambda: x.add_(1)) == 1
    assert waits(device, lambda: x.neg(), lambda: x.abs()) == 0
    assert waits(device, lambda: x.add_(1), lambda: y.add_(1)) == 0
    assert waits(device, lambda: x[:4].neg_(), lambda: x[4:].neg_()) == 0
    assert waits(device, lambda: x.view(2, 4), lambda: x.add_(1)) == 0
    assert waits(device, lambda: torch.cat([x, y]), lambda: y.add_(1)) == 1
    assert waits(device, lambda: torch._foreach_add_([x, y], 1), lambda: y + 1) == 1


def test_o1_results_are_waited_for(device: Device) -> None:
    made = []
    assert waits(device, lambda: made.append(torch.ones(8) + 1), lambda: made[0].neg()) == 1


def test_o2_what_the_program_orders_is_not_ordered_again(device: Device) -> None:
    x = torch.zeros(8)

    def waited() -> object:
        device.wait(B, A)
        return x * 2

    assert waits(device, lambda: x.add_(1), waited) == 0

    def synchronized() -> object:
        device.synchronize()
        return x * 2

    assert waits(device, lambda: x.add_(1), synchronized) == 0


def test_l1_memory_that_is_given_out_again_waits_for_its_former_owner(device: Device) -> None:
    x = torch.zeros(8)
    address = x.untyped_storage().data_ptr()
    with weir.torch.safe() as safe:
        device.on(A)
        device.allocated(address, A)
        x.zero_()
        device.on(B)
        y = x + 1
        assert safe.waits == 1
        device.freed(address)
        device.on(A)
        assert safe.waits == 1
        device.allocated(address, A)
        assert safe.waits == 2
    del y


def test_o1_backward_passes_and_threads_take_part(device: Device) -> None:
    x = torch.ones(8, requires_grad=True)
    with weir.torch.safe() as safe:
        device.on(A)
        (x * x).sum().backward()
        device.on(B)
        assert x.grad is not None
        before = safe.waits
        x.grad.add_(1)
        assert safe.waits == before + 1
        thread = threading.Thread(target=lambda: (device.on(A), x.grad.add_(1)))
        thread.start()
        thread.join()
        assert safe.waits == before + 2


def test_o1_the_streams_are_joined_at_the_end(device: Device) -> None:
    x, y = torch.zeros(8), torch.zeros(8)
    with weir.torch.safe() as safe:
        device.on(A)
        x.add_(1)
        device.on(B)
        y.add_(1)
        assert safe.waits == 0
    assert safe.waits == 2
    device.on(A)
    y.add_(1)
    assert safe.waits == 2, "nothing is kept in order afterwards"


def test_o1_errors_of_operators_pass_through(device: Device) -> None:
    x = torch.zeros(8)
    with weir.torch.safe() as safe:
        device.on(A)
        with pytest.raises(RuntimeError, match="size"):
            torch.zeros(3) + torch.zeros(4)
        x.add_(1)
        device.on(B)
        before = safe.waits
        x.add_(1)
        assert safe.waits == before + 1


def test_o2_a_wait_does_not_cover_what_a_stream_gets_once_it_was_left(device: Device) -> None:
    x, y, z = torch.zeros(8), torch.zeros(8), torch.zeros(8)
    with weir.torch.safe() as safe:
        device.on(A)
        x.add_(1)
        device.on(B)
        z.add_(1)
        device.on(A)
        y.add_(1)
        device.on(B)
        before = safe.waits
        x.mul_(2)
        assert safe.waits == before + 1
        y.mul_(2)
        assert safe.waits == before + 2, "the first wait did not cover y"


def test_o1_where_events_fail_the_host_waits_before_the_operator_and_after_it(device: Device) -> None:
    x = torch.zeros(8)
    with weir.torch.safe():
        device.on(A)
        x.add_(1)
        device.on(B)
        device.fail(True)
        x.mul_(2)
        assert device.device_waits() == 3, "where A was left, before the operator, and after it"
        device.fail(False)
        x.add_(1)
        assert device.device_waits() == 0
    assert x.tolist() == [3] * 8


def test_o1_where_events_fail_at_the_end_the_host_waits(device: Device) -> None:
    x, y = torch.zeros(8), torch.zeros(8)
    with weir.torch.safe() as safe:
        device.on(A)
        x.add_(1)
        device.on(B)
        y.add_(1)
        device.fail(True)
    assert device.device_waits() == 1
    device.fail(False)
    assert safe.waits == 0
    assert waits(device, lambda: x.add_(1), lambda: x.add_(1)) == 1, "the next one works"


def test_o1_check_sees_the_programs_own_order_alone(device: Device) -> None:
    x = torch.zeros(8)
    with weir.torch.check() as report, weir.torch.safe() as safe:
        device.on(A)
        x.add_(1)
        device.on(B)
        x.add_(1)
        assert safe.waits == 1
    assert [race.kind for race in report] == ["WAW"]


def test_o1_what_is_not_seen_is_named(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    with weir.torch.safe() as safe:
        device.on(A)
        torch.zeros(8).add_(1)
    assert not [text for text in safe.unseen if "CuPy" in text]
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    with weir.torch.safe() as safe:
        device.on(A)
        torch.eye(8).to_sparse()
        assert [text for text in safe.unseen if "sparse" in text]
    assert [text for text in safe.unseen if "CuPy" in text]
    assert [text for text in safe.unseen if "sparse" in text]


def test_o1_contexts_nest_and_do_not_come_back(device: Device) -> None:
    x = torch.zeros(8)
    with weir.torch.safe() as outer:
        with weir.torch.safe():  # waits for real devices, if there are some, too
            device.on(A)
            x.neg_()
            device.on(B)
            x.neg_()
        device.on(A)
        x.neg_()
        assert outer.waits == 2
    with pytest.raises(weir.StateError, match="entered before"), outer:
        pass


def test_o1_a_program_on_the_cpu_runs_as_it_is() -> None:
    step = trainer()
    with weir.torch.safe() as safe:
        losses = [step() for _ in range(3)]
    assert losses == sorted(losses, reverse=True)
    assert safe.waits == 0


class Squares(torch.utils.data.Dataset if torch is not None else object):  # type: ignore[misc]
    """Numbers that worker processes compute with torch."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> object:
        return torch.full((4,), float(index)).square()


@pytest.mark.parametrize("context", ["check", "safe"])
def test_o1_worker_processes_are_left_alone(device: Device, context: str) -> None:
    device.end()
    loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context="fork")
    with weir.torch.check() if context == "check" else weir.torch.safe():
        total = sum(float(batch.sum()) for batch in loader)
    assert total == 4 * sum(i * i for i in range(64))
