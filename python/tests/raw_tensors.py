"""Producers of raw DLPack tensors: memory of Weir's that comes back as another package's, and memory of the driver."""

from __future__ import annotations

import weir
from cuda_driver import CudaDriver
from weir_conformance._dlpack import Description, Producer, Taken

CPU, CUDA, EXTENSION = (1, 0), (2, 0), (12, 0)


def taken(x: weir.Array) -> Taken:
    """What a consumer that reads versions sees of an array of Weir. The consumer closes it."""
    return Taken(x.__dlpack__(max_version=(1, 3)))


def foreign(x: weir.Array, **changes: object) -> Producer:
    """A producer of another package that has the same elements, so that Weir reads a tensor that is not its own.

    It keeps the memory, since nothing that is exported here is ever released. `changes` replace what the tensor says.
    """
    seen = taken(x)
    of_tensor: dict[str, object] = {
        "data": (seen, x),
        "shape": seen.shape,
        "strides": seen.strides,
        "dtype": seen.dtype,
        "device": seen.device,
        "address": seen.address,
    }
    return Producer(Description(**{**of_tensor, **changes}))


class OnStream:
    """An array of four floats of a package on the first CUDA device, which works on a stream of its own.

    `asked_with` has the keywords of each call. The stream that a call names waits for the package's stream.
    """

    def __init__(self, driver: CudaDriver) -> None:
        self.asked_with: list[dict[str, object]] = []
        self.stream = driver.create_stream()
        self.raw = Producer(Description(None, (4,), device=CUDA, address=driver.allocate(16)))
        self._driver = driver
        self.fill(0)
        driver.synchronize(self.stream)

    def fill(self, value: float) -> None:
        """Enqueues a write of all elements."""
        assert self.raw.what.address is not None
        self._driver.fill(self.stream, self.raw.what.address, value, 4)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA

    def __dlpack__(self, *, stream: int | None = None, **keywords: object) -> object:
        self.asked_with.append({"stream": stream, **keywords})
        if stream not in (-1, self.stream):
            self._driver.wait_event(stream or 1, self._driver.record_event(self.stream))
        return self.raw.__dlpack__(**keywords)
