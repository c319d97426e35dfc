"""What tests share: the devices that they run on, and gates that make their order certain."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import weir


def device_names() -> list[str]:
    names = ["cpu", "cpu:inline", "sim:0"]
    if "WEIR_TEST_DEVICE" in os.environ:
        names.append(os.environ["WEIR_TEST_DEVICE"])
    return names


@pytest.fixture(params=device_names())
def device(request: pytest.FixtureRequest) -> str:
    """The name of a device."""
    name: str = request.param
    return name


@pytest.fixture(params=[name for name in device_names() if name != "cpu:inline"])
def queue_device(request: pytest.FixtureRequest) -> str:
    """The name of a device whose streams are queues, so that a gate can hold them."""
    name: str = request.param
    return name


@pytest.fixture
def stream(device: str) -> Iterator[weir.Stream]:
    """A stream of the device, which is current while the test runs."""
    with weir.Stream(device) as made:
        yield made
