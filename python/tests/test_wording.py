"""The library's messages name types and calls of C++: what reaches Python names Python's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import weir
from weir import _weir
from weir.testing import Gate

SOURCES = Path(__file__).parents[2] / "src"
# Code that is compiled, a command of its own, and a text that knows the language of what it is about.
CPP = ("::", "{.", "(on, ", "<T")
NO_MESSAGES = ("array/cuda/", "cli/", "array/kernel_signature.cpp", "check/wording.cpp")


def messages() -> list[str]:
    """The texts in the library's sources that name something of C++, adjacent pieces in one. What names the standard
    library only programs in C++ can bring about."""
    found = []
    for path in sorted(SOURCES.rglob("*.cpp")):
        if path.relative_to(SOURCES).as_posix().startswith(NO_MESSAGES):
            continue
        text = re.sub(r"^\s*(//|#).*$|'\"'", "", path.read_text(), flags=re.MULTILINE)
        for piece in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
            whole = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', piece)).replace('\\"', '"')
            if any(sign in whole for sign in CPP) and " " in whole and "std::" not in whole:
                found.append(whole)
    return found


def test_the_messages_are_found() -> None:
    assert any("weir::memory::limit" in one for one in messages())
    assert len(messages()) > 20


@pytest.mark.parametrize("message", sorted(set(messages())))
def test_no_message_of_the_library_names_anything_of_cpp_in_python(message: str) -> None:
    said = _weir._in_words_of_python(message)
    for sign in CPP:
        assert sign not in said
    for name in re.findall(r"weir\.([\w.]+)", said):
        place: object = weir
        for part in name.rstrip(".").split("."):
            if part:
                place = getattr(place, part)  # what is named is there


def not_timed(s: weir.Stream) -> object:
    return s.record().elapsed_time(s.record(timing=True))


def too_much(_: weir.Stream) -> object:
    before = weir.memory.stats("sim:9")["limit"]
    try:
        weir.memory.limit("sim:9", 1024)
        return weir.zeros(4096, device="sim:9")
    finally:
        weir.memory.limit("sim:9", before)


def limited(s: weir.Stream) -> object:
    with weir.memory.use(weir.memory.limiting(1)):
        return weir.zeros(8, stream=s)


def held_device(_: weir.Stream) -> object:
    with Gate() as gate:
        gate.hold(weir.Stream("sim:9"))
        return weir.testing.simulated("sim:9").__enter__()


MET: dict[str, tuple[Callable[[weir.Stream], object], type[Exception], str]] = {
    "time": (
        not_timed,
        weir.StateError,
        r"make it with weir.Event\(timing=True\), or record it with stream.record\(timing=True\)",
    ),
    "limit": (too_much, weir.OutOfMemory, r"or raise weir\.memory\.limit"),
    "limiting": (
        limited,
        weir.OutOfMemory,
        r"bytes that weir\.memory\.limiting allows",
    ),
    "pinned": (lambda _: weir.zeros(1, device="sim:9", memory="pinned"), weir.ArgumentError, 'memory="managed" is for'),
    "managed": (lambda s: weir.zeros(1, stream=s, memory="managed"), weir.ArgumentError, 'memory="pinned" is for'),
    "simulated": (
        lambda _: weir.testing.simulated("cpu").__enter__(),
        weir.ArgumentError,
        r'with weir.Device\("sim:0"\)',
    ),
    "in use": (held_device, weir.StateError, r"call device.synchronize\(\) first"),
    "adopt": (lambda _: weir.adopt(5, device="sim:9"), weir.ArgumentError, r"make one with weir.Stream\(device\)"),
    "plan": (
        lambda s: weir.fft.FFT(weir.zeros(4, stream=s), kind="c2c"),
        weir.ArgumentTypeError,
        'a plan of kind="c2c" takes a complex operand, not float64; call weir.fft.fft, or make a plan of kind="r2c"',
    ),
}


@pytest.mark.parametrize("which", MET)
def test_messages_as_they_are_met(which: str) -> None:
    call, error, words = MET[which]
    with pytest.raises(error, match=words) as told:
        call(weir.Stream())
    assert "::" not in str(told.value)
