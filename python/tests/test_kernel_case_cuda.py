"""`res = kernel(arr); arr += 2` on a GPU (A1, A7, A17, X6): every producer with every consumer, by each way in.

The consumer's stream is held by a kernel that spins when its kernel is enqueued, and the producer changes the array
right after: without order the kernel finds the change. Controls leave the order out.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator

import pytest
import weir
from cuda_launchers import Launcher, by_cupy, by_numba, by_torch, by_weir
from cuda_packages import N, are_here, cupy, found, held_on_device, no_captures, torch  # noqa: F401
from cuda_producers import Held, ends, numba, of_cupy, of_numba, of_torch, of_weir, torchs_stream

pytestmark = [
    pytest.mark.skipif(
        not are_here,
        reason="torch, CuPy and a GPU are needed: test_foreign_memory_driver.py and test_borrow_driver.py have such "
        "cases for the fake driver",
    ),
    pytest.mark.usefixtures("no_captures"),
]

PRODUCERS: dict[str, Callable[[], Held]] = {
    "weir": of_weir,
    "torch": of_torch,
    "cupy": of_cupy,
    "numba": of_numba,
}
CONSUMERS: dict[str, Callable[[], Launcher]] = {
    "weir": by_weir,
    "torch": by_torch,
    "cupy": by_cupy,
    "numba": by_numba,
}


@functools.cache
def launcher(name: str) -> Launcher:
    """Compiled once."""
    if name == "numba":
        numba()
    return CONSUMERS[name]()


class ShowsInterface:
    """An array with nothing but the CUDA Array Interface, whose work is on one stream."""

    def __init__(self, made: Held) -> None:
        self.made = made

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {**self.made.array.__cuda_array_interface__, "stream": self.made.handle, "version": 3}


@contextlib.contextmanager
def current_everywhere(s: weir.Stream) -> Iterator[None]:
    """The consumer's stream is the current one of its package."""
    cupys = cupy.cuda.get_current_stream()
    with s, torch.cuda.stream(torch.cuda.ExternalStream(s.handle)), cupy.cuda.ExternalStream(s.handle):
        yield
    cupys.use()  # the end of a `with` of CuPy's forgets what `use` named


class Case:
    """A producer's array, Weir's array for the result, and the consumer's stream."""

    def __init__(self, way: str, producer: str, consumer: str) -> None:
        self.way, self.launch = way, launcher(consumer)
        self.made = PRODUCERS[producer]()
        self.of_weir = producer == "weir"
        shown = ShowsInterface(self.made) if way == "interface" and not self.of_weir else self.made.array
        self.x: weir.Array | None = weir.asarray(shown)
        self.y = weir.zeros(N, "float32", device="cuda:0")
        self.on = weir.Stream("cuda:0", name="consumer's")
        weir.synchronize("cuda:0")
        torch.cuda.synchronize()

    def view(self, x: weir.Array) -> object:
        return self.launch.by_interface(x) if self.way == "interface" else self.launch.view(x)

    def kernel(self) -> None:
        """The consumer adds the array to the result on its stream, and both sides are told."""
        assert self.x is not None
        if self.way == "borrow":
            with weir.borrow(self.made.array, self.y, write=[self.y], stream=self.on) as (x, y):
                self.launch(x, y)
            return
        if self.launch is launcher("weir"):
            with self.on:
                self.launch(self.x, self.y)
            return
        first = self.way == "interface" and self.launch is launcher("cupy")
        # CuPy has the host wait for the stream that an interface names, the current one: that is not the held one then.
        views = (self.view(self.x), self.view(self.y)) if first else None
        with current_everywhere(self.on):
            self.launch.add(*(views or (self.view(self.x), self.view(self.y))))
        # Weir cannot see what a consumer does on a stream that is not its current one any more.
        self.x.used_on(self.on)
        self.y.used_on(self.on)
        if not self.of_weir:
            self.x.__dlpack__(stream=self.made.handle)  # a second conversion hands order back to the producer (A17)

    def kernel_without_order(self, views: tuple[object, object]) -> None:
        with current_everywhere(self.on):
            self.launch.add(*views)


@pytest.fixture(params=list(PRODUCERS))
def producer(request: pytest.FixtureRequest) -> Iterator[str]:
    torchs, cupys = torch.cuda.current_stream(), cupy.cuda.get_current_stream()
    cuda = found("numba.cuda")
    try:
        name: str = request.param
        # Numba frees some arrays at a time, which makes the host wait for the device.
        with contextlib.nullcontext() if cuda is None else cuda.defer_cleanup():
            yield name
        torch.cuda.synchronize()
    finally:
        torch.cuda.set_stream(torchs)
        cupys.use()


@pytest.fixture(params=["import", "borrow", "interface"])
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def warmed(way: str, producer: str, consumer: str) -> Case:
    """The case, after it ran once with nothing held: to load a kernel may wait for the device."""
    first = Case(way, producer, consumer)
    first.made.add(0)
    first.kernel()
    assert ends(first.y) == [0, 0]
    return Case(way, producer, consumer)


@pytest.mark.parametrize("consumer", list(CONSUMERS))
def test_a1_the_kernel_sees_the_old_values_and_the_producer_the_new_ones(
    way: str, producer: str, consumer: str
) -> None:
    case = warmed(way, producer, consumer)
    with held_on_device(case.on.handle):
        case.made.add(1)
        case.kernel()
        case.made.add(2)
        assert not torchs_stream(case.made.handle).query(), "the producer's stream waits for the consumer's kernel"
        assert not torchs_stream(case.on.handle).query(), "nothing has waited on the host"
    assert ends(case.y) == [1, 1]
    assert case.x is not None
    torch.cuda.synchronize()
    assert ends(case.x) == [3, 3]


@pytest.mark.parametrize("consumer", list(CONSUMERS))
def test_a1_control_without_order_the_kernel_sees_the_new_values(producer: str, consumer: str) -> None:
    case = warmed("import", producer, consumer)
    assert case.x is not None
    views = case.view(case.x), case.view(case.y)
    weir.synchronize("cuda:0")
    with weir.ordering("manual"), held_on_device(case.on.handle):
        case.made.add(1)
        case.kernel_without_order(views)
        case.made.add(2)
        torchs_stream(case.made.handle).synchronize()
        assert not torchs_stream(case.on.handle).query()
    torch.cuda.synchronize()
    assert ends(case.y) == [3, 3]


@pytest.mark.parametrize("consumer", list(CONSUMERS))
@pytest.mark.parametrize("by", ["import", "borrow"])
def test_a7_the_memory_stays_when_the_array_and_the_stream_are_gone(by: str, producer: str, consumer: str) -> None:
    """`del arr` while the kernel is held, and the stream closed: the producer's new arrays get other memory."""
    case = warmed(by, producer, consumer)
    gate, made, result = torch.cuda.Stream(), PRODUCERS[producer], case.y
    with held_on_device(gate.cuda_stream):
        consumers = torchs_stream(case.on.handle)
        consumers.wait_stream(gate)
        case.kernel()
        assert not consumers.query()
        case.on.close()
        del case, consumers
        gc.collect()
        others = [made() for _ in range(4)]
        for other in others:
            other.add(7)
        assert not gate.query(), "nothing has waited on the host"
    assert ends(result) == [0, 0]
    del others
