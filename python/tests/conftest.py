"""What the tests share."""

from __future__ import annotations

import os

import pytest

import weir

DEVICES = ["cpu", "sim:0"]
if extra := os.environ.get("WEIR_TEST_DEVICE"):
    DEVICES.append(extra)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> weir.Device:
    """Each kind of device with asynchronous streams; WEIR_TEST_DEVICE names one more, such as cuda:0."""
    return weir.Device(request.param)


@pytest.fixture(params=[*DEVICES, "cpu:inline"])
def any_device(request: pytest.FixtureRequest) -> weir.Device:
    """The same, and the CPU without queues."""
    return weir.Device(request.param)
