"""A device that is made up, for tests of weir.torch without a GPU: memory of the CPU counts as its memory."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import pytest
from weir import _torch_build

try:
    import torch as torch_itself
except ImportError:
    torch: Any = None
else:
    torch = torch_itself

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed: ./run test --interop installs it")


# weir_torch_kind
KINDS = ("allocated", "kept", "freed", "recorded", "waits", "event gone", "event", "stream", "device")


class Device:
    """A device that is made up: operators on tensors of the CPU run on its streams, and tests make its events.

    `allocated`, `event_recorded` and `stream_waits` call C alone, so that the line that calls them is the line that
    reports name.
    """

    def __init__(self) -> None:
        self._hooks = _torch_build.load()
        report = self._hooks.weir_torch_report
        report.argtypes = [ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64]
        self._reports = {kind: functools.partial(report, number) for number, kind in enumerate(KINDS)}
        self.allocated: Callable[[int, int], None] = self._reports["allocated"]  # address, the stream of `on`
        self.event_recorded: Callable[[int, int], None] = self._reports["recorded"]  # event, stream
        self.stream_waits: Callable[[int, int], None] = self._reports["waits"]  # event, stream
        self._events = 0
        self.on(0)

    def on(self, stream: int) -> None:
        """What the process's threads do from now on runs on this stream."""
        self._hooks.weir_torch_pretend(stream)

    def fail(self, fails: bool) -> None:
        """Whether events fail that weir.torch.safe() records."""
        self._hooks.weir_torch_fail(int(fails))

    def device_waits(self) -> int:
        """How often the host has waited for the device since."""
        return int(self._hooks.weir_torch_device_waits())

    def end(self) -> None:
        """The tensors of the CPU are the host's again."""
        self.on(-1)

    def freed(self, address: int) -> None:
        self._reports["freed"](address, 0)

    def kept_until(self, address: int, stream: int) -> None:
        """Tensor.record_stream."""
        self._reports["kept"](address, stream)

    def event_destroyed(self, event: int) -> None:
        self._reports["event gone"](event, 0)

    def synchronize_event(self, event: int) -> None:
        self._reports["event"](event, 0)

    def synchronize_stream(self, stream: int) -> None:
        self._reports["stream"](0, stream)

    def synchronize(self) -> None:
        self._reports["device"](0, 0)

    def wait(self, waits: int, waited_for: int) -> None:
        """What `waits` gets from now on comes after what `waited_for` has."""
        self._events += 1
        self.event_recorded(self._events, waited_for)
        self.stream_waits(self._events, waits)


def trainer(where: str = "cpu") -> Callable[[], float]:
    """Steps of training a small model; each returns the loss, which gets less."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(where)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(32, 8, device=where)

    def step() -> float:
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step
