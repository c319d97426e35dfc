"""Shared fixtures: devices. cuda:0 is the fake driver's where CTest runs the tests, else the machine's."""

from __future__ import annotations

import os
from collections.abc import Iterator

# The fake compiler takes long for all kernels that a device loads when it is opened: test_prepare.py has those.
os.environ.setdefault("WEIR_PREPARE", "0")

import pytest
import weir
from cuda_driver import CudaDriver, is_fake


def _has_cuda() -> bool:
    try:
        weir.Device("cuda:0")
    except weir.DeviceError:
        return False
    return True


HAS_CUDA = _has_cuda()
# A real driver's default stream may be shared by other packages, which ask Weir for its handle.
WATCHES_DEFAULT_STREAM = HAS_CUDA and is_fake()
ASYNCHRONOUS = ["cpu", "sim:0", *(["cuda:0"] if HAS_CUDA else [])]


def _default_stream_is_shared() -> bool:
    return WATCHES_DEFAULT_STREAM and weir.current_stream("cuda:0").shared


@pytest.fixture(autouse=True)
def default_stream_stays_unshared() -> Iterator[None]:
    """Fails a test that makes the default stream of cuda:0 a shared one.

    It stays so for good, and a call that enqueues work behind a gate in a shared stream blocks (rule O9): a later test
    of the same process that does so with the default stream would never end.
    """
    was_shared = _default_stream_is_shared()
    yield
    assert was_shared or not _default_stream_is_shared(), (
        "the test read the handle of the default stream of cuda:0: use a stream of the test's own, or a process of its "
        "own"
    )


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


@pytest.fixture(scope="module")
def driver() -> CudaDriver:
    """The fake CUDA driver, for cases that look at what reaches the driver, without a GPU."""
    try:
        made = CudaDriver()
    except OSError as reason:
        pytest.skip(f"no CUDA driver: {reason}")
    if not made.is_fake:
        pytest.skip("the driver is no fake: test_exchange_cuda.py and tests/unit/ have these cases for a GPU")
    return made


@pytest.fixture(params=["cpu", "cpu:inline", "sim:0"])
def on(request: pytest.FixtureRequest) -> weir.Stream:
    """A stream of each device that runs code of the host."""
    return weir.Stream(request.param)


@pytest.fixture(params=["cpu", "sim:0"])
def queue(request: pytest.FixtureRequest) -> str:
    """The same devices, without the one whose streams run operations in the call."""
    name: str = request.param
    return name


@pytest.fixture
def x(cuda: weir.Device) -> weir.Array:
    """64 zeros on the CUDA device, with nothing pending."""
    made = weir.empty(64, "float32", device=cuda)
    weir.fill(made, 0)
    cuda.synchronize()
    return made
