"""What DLPack's versions, flags and device types say (scenarios B1, B6, B9), on each device without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np
import pytest
import weir
from conftest import HAS_CUDA
from eventually import eventually
from numpy_versions import IS_NUMPY_2
from raw_tensors import foreign, taken
from weir_conformance._dlpack import READ_ONLY, Description, Producer, Taken, floats

ROCM, ROCM_HOST = 10, 11
OTHER_TYPES = [0, 4, 7, 8, 9, ROCM, ROCM_HOST, 15, 16, 17, 18, 19, 99, -1]
PLACES = ["cpu", "sim:0", *(["cuda:0"] if HAS_CUDA else [])]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of each device that exchanges arrays. Afterwards nothing is left in quarantine."""
    name: str = request.param
    yield name
    weir.safe_point()


# B1: devices that Weir does not know.

TAKES: dict[str, Callable[[Producer], object]] = {
    "from_dlpack": weir.from_dlpack,
    "asarray": weir.asarray,
    "share": weir.share,
    "a capsule with a version": lambda one: weir.from_dlpack(one.capsule(True)),
    "a capsule without one": lambda one: weir.from_dlpack(one.capsule(False)),
    "an operator": lambda one: weir.ones(3, "float32") + one,
    "a copy to the CPU": lambda one: weir.from_dlpack(one, device="cpu"),
}


@pytest.mark.parametrize("how", TAKES)
@pytest.mark.parametrize("device_type", OTHER_TYPES)
def test_b1_a_producer_on_a_device_that_weir_does_not_know_is_refused(device_type: int, how: str) -> None:
    of = Producer(Description(floats(1, 2, 3), (3,), device=(device_type, 1)))
    says = rf"on a device of type {device_type} with the number 1, which weir does not know: copy it to the CPU"
    with pytest.raises(weir.ExchangeError, match=says) as refused:
        TAKES[how](of)
    assert isinstance(refused.value, BufferError)
    assert not isinstance(refused.value, weir.CopyError)
    assert all("stream" not in each for each in of.calls), "no stream of CUDA's is named to it"
    eventually(lambda: of.mistakes == "")


@pytest.mark.parametrize("device_type", [ROCM, ROCM_HOST])
def test_b1_a_producer_that_says_rocm_in_one_place_and_cuda_in_the_other_is_refused(
    cuda: weir.Device, device_type: int
) -> None:
    class SaysAnother(Producer):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (device_type, 0)

    of = SaysAnother(Description(floats(1, 2, 3), (3,), device=(2, 0)))
    with pytest.raises(weir.ExchangeError, match=rf"\({device_type}, 0\).*\(2, 0\).*has to say the same in both"):
        weir.from_dlpack(of)
    eventually(lambda: of.mistakes == "")


def test_b1_control_a_producer_on_the_cpu_is_taken() -> None:
    of = Producer(Description(floats(1, 2, 3), (3,)))
    x = weir.from_dlpack(of)
    assert x.tolist() == [1, 2, 3]
    assert of.mistakes == "1 exports leaked", "control: the import has it, and the count says so"
    del x
    eventually(lambda: of.mistakes == "")


# B6: the version that the consumer reads.

UNVERSIONED = [None, (0, 0), (0, 8)]
VERSIONED = [(1, 0), (1, 3), (1, 99), (2, 0), (100, 3)]


@pytest.mark.parametrize("max_version", [*UNVERSIONED, *VERSIONED], ids=str)
def test_b6_the_capsule_has_a_version_if_the_consumer_reads_one(
    place: str, max_version: tuple[int, int] | None
) -> None:
    x = weir.arange(6, dtype="float32", device=place)
    capsule = x.__dlpack__(max_version=max_version)
    expected = "dltensor" if max_version in UNVERSIONED else "dltensor_versioned"
    assert f'"{expected}"' in repr(capsule)
    assert weir.from_dlpack(capsule).numpy(copy=True).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("max_version", VERSIONED, ids=str)
def test_b6_the_tensor_says_major_version_1(place: str, max_version: tuple[int, int]) -> None:
    """A consumer of a newer major version reads that one, too."""
    seen = Taken(weir.ones(3, device=place).__dlpack__(max_version=max_version))
    assert seen.version is not None
    assert seen.version[0] == 1
    seen.close()


def test_b6_without_max_version_there_is_no_version(place: str) -> None:
    assert '"dltensor"' in repr(weir.ones(3, device=place).__dlpack__())


@pytest.mark.parametrize("wrong", [1, "1.0", (1,), (1, 0, 0), ("a", 0), (None, 0), [1, 0], (1.0, 0)], ids=str)
def test_b6_what_is_no_version_is_refused(place: str, wrong: object) -> None:
    with pytest.raises(weir.ArgumentTypeError, match=r"max_version is .*: pass \(major, minor\), or None"):
        weir.ones(3, device=place).__dlpack__(max_version=cast("tuple[int, int]", wrong))


@pytest.mark.parametrize("version", [(2, 0), (2, 9), (0, 8), (0, 0), (1 << 31, 7)], ids=str)
def test_b6_a_producer_with_another_major_version_is_refused(place: str, version: tuple[int, int]) -> None:
    """Only the deleter is where this version has it, and it is called."""
    of = foreign(weir.ones(3, "float32", device=place), version=version)
    for how in ("from_dlpack", "asarray", "a capsule with a version"):
        with pytest.raises(weir.ExchangeError, match=rf"version {version[0]}\.{version[1]}"):
            TAKES[how](of)
    eventually(lambda: of.mistakes == "")


@pytest.mark.parametrize("version", [(1, 0), (1, 3), (1, 99)], ids=str)
def test_b6_a_producer_with_another_minor_version_is_taken(place: str, version: tuple[int, int]) -> None:
    of = foreign(weir.ones(3, "float32", device=place), version=version)
    x = weir.from_dlpack(of)
    assert x.numpy(copy=True).tolist() == [1, 1, 1]
    del x
    eventually(lambda: of.mistakes == "")


class Old:
    """A producer of the time before some of the keywords."""

    def __init__(self, of: weir.Array) -> None:
        self.raw = foreign(of)
        self.asked_with: list[tuple[str, ...]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.raw.what.device

    def given(self, *keywords: str) -> object:
        self.asked_with.append(keywords)
        return self.raw.capsule(False)


class WithoutKeywords(Old):
    def __dlpack__(self) -> object:
        return self.given()


class WithStreamAlone(Old):
    def __dlpack__(self, stream: int | None = None) -> object:
        return self.given("stream") if stream is not None else self.given()


class WithoutVersions(Old):
    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object:
        if max_version is not None:
            raise NotImplementedError("max_version")
        return self.given("stream") if stream is not None else self.given()


@pytest.mark.parametrize("kind", [WithoutKeywords, WithStreamAlone, WithoutVersions])
def test_b6_producers_of_the_time_before_the_keywords_are_taken(place: str, kind: type[Old]) -> None:
    of = kind(weir.ones(3, "float32", device=place))
    x = weir.from_dlpack(of)
    named = ("stream",) if place == "cuda:0" and kind is not WithoutKeywords else ()
    assert of.asked_with == [named]
    weir.fill(x, 4)
    assert weir.from_dlpack(of).numpy(copy=True).tolist() == [4, 4, 4], "it is the same memory"


class BrokenWithin(Old):
    """Has all keywords, and an error of its own that is a TypeError."""

    def __dlpack__(self, **_keywords: object) -> object:
        return len(3)  # type: ignore[arg-type]


def test_b6_a_type_error_of_the_producers_own_is_not_swallowed(place: str) -> None:
    with pytest.raises(weir.ExchangeError, match=r"TypeError, .*object of type 'int' has no len") as raised:
        weir.from_dlpack(BrokenWithin(weir.ones(3, "float32", device=place)))
    assert isinstance(raised.value.__cause__, TypeError)


# B9: what can only be read.


@pytest.fixture
def constant(place: str) -> weir.Array:
    """An import that its producer shares for reading only."""
    return weir.from_dlpack(foreign(weir.ones(3, "float32", device=place), flags=READ_ONLY))


def test_b9_writes_to_a_read_only_import_are_refused(constant: weir.Array) -> None:
    writes: list[Callable[[], object]] = [
        lambda: weir.fill(constant, 2),
        lambda: weir.copy(constant, weir.ones(3, "float32")),
        lambda: constant.__iadd__(1),
        lambda: constant.__setitem__(0, 5),
        lambda: weir.host_task(lambda _: None, weir.Out(constant)),
        lambda: weir.host_task(lambda _: None, weir.InOut(constant)),
        lambda: weir.host_task(lambda: None, writes=constant),
        lambda: weir.fill(constant[1:], 2),
        lambda: weir.fill(constant.reshape((3, 1)), 2),
        lambda: weir.borrow(constant, write=[constant]).__enter__(),
    ]
    for write in writes:
        with pytest.raises(weir.ArgumentError, match="for reading only"):
            write()
    assert constant.numpy(copy=True).tolist() == [1, 1, 1]
    assert (constant + 1).numpy(copy=True).tolist() == [2, 2, 2]


def test_b9_control_without_the_flag_the_same_import_is_written(place: str) -> None:
    x = weir.from_dlpack(foreign(weir.ones(3, "float32", device=place)))
    x += 1
    weir.fill(x[1:], 5)
    assert x.numpy(copy=True).tolist() == [2, 5, 5]


def test_b9_a_capsule_that_cannot_say_read_only_is_a_buffer_error(constant: weir.Array) -> None:
    for unversioned in UNVERSIONED:
        for part in (constant, constant[1:], constant.reshape((3, 1))):
            with pytest.raises(BufferError, match=r"read-only.*max_version=\(1, 0\), or take a copy"):
                part.__dlpack__(max_version=unversioned)
    assert constant.copy().__dlpack__() is not None
    assert constant.__dlpack__(copy=True) is not None, "a copy may be written"


def test_b9_a_capsule_with_a_version_says_read_only(constant: weir.Array) -> None:
    seen = taken(constant)
    assert seen.flags & READ_ONLY
    seen.close()
    writable = taken(constant.copy())
    assert not writable.flags & READ_ONLY
    writable.close()


def test_b9_what_comes_back_is_still_read_only(constant: weir.Array) -> None:
    back = weir.from_dlpack(constant.__dlpack__(max_version=(1, 0)))
    again = weir.from_dlpack(foreign(constant, flags=taken(constant).flags))
    for x in (back, again):
        with pytest.raises(weir.ArgumentError, match="for reading only"):
            weir.fill(x, 2)


def test_b9_other_interfaces_say_read_only(constant: weir.Array) -> None:
    if constant.device.kind == "cuda":
        assert constant.__cuda_array_interface__["data"][1] is True
    else:
        assert constant.device.kind == "sim" or not np.asarray(constant).flags.writeable
        assert constant.device.kind == "sim" or memoryview(constant).readonly  # type: ignore[arg-type]


@pytest.mark.skipif(not IS_NUMPY_2, reason="NumPy 1.26 reads no capsules with a version")
def test_b9_numpy_takes_it_for_reading() -> None:
    constant = weir.from_dlpack(foreign(weir.ones(3, "float32"), flags=READ_ONLY))
    assert not np.from_dlpack(constant).flags.writeable
