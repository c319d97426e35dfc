"""What the tests share: devices. cuda:0 is the fake driver's where CTest runs the tests, else the machine's."""

from __future__ import annotations

import os

import pytest
import weir


def _has_cuda() -> bool:
    try:
        weir.Device("cuda:0")
    except weir.DeviceError:
        return False
    return True


HAS_CUDA = _has_cuda()
ASYNCHRONOUS = ["cpu", "sim:0", *(["cuda:0"] if HAS_CUDA else [])]


@pytest.fixture(params=ASYNCHRONOUS)
def device(request: pytest.FixtureRequest) -> weir.Device:
    """Each device with asynchronous streams."""
    return weir.Device(request.param)


@pytest.fixture(params=[*ASYNCHRONOUS, "cpu:inline"])
def any_device(request: pytest.FixtureRequest) -> weir.Device:
    """The same, and the CPU without queues."""
    return weir.Device(request.param)


@pytest.fixture
def cuda() -> weir.Device:
    """The first CUDA device."""
    if not HAS_CUDA:
        pytest.skip("there is no CUDA driver here, and WEIR_CUDA_DRIVER names none")
    return weir.Device("cuda:0")


ARRAY_DEVICES = [
    "cpu",
    "cpu:inline",
    "sim:0",
    *filter(None, [os.environ.get("WEIR_TEST_DEVICE")]),
]


@pytest.fixture(params=ARRAY_DEVICES)
def array_device(request: pytest.FixtureRequest) -> str:
    """The name of each device that computes; WEIR_TEST_DEVICE names one more, such as cuda:0."""
    name: str = request.param
    return name


@pytest.fixture(params=[name for name in ARRAY_DEVICES if name != "cpu:inline"])
def queue_device(request: pytest.FixtureRequest) -> str:
    """The same, without those whose streams run operations in the call: no gate holds these."""
    name: str = request.param
    return name
