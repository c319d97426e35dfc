"""The situations that the tests of torch's own sanitizer decide, decided by weir.torch.check() (rule V1).

torch/cuda/_sanitizer.py has 82 tests. 70 of them are here, the last column says where:

| situations | tests | here |
|---|---|---|
| what operators read and write: add, cat, split, in place, out=, nonzero, addr | 7 | OPERATORS |
| order by streams and events | 15 | ORDER |
| waits of the host for devices, streams and events | 5 | HOST |
| memory that is freed and given out again | 12 | REUSE |
| bytes of views: one and two dimensions, slice, transposed, expanded, scalar, empty | 7 | test_v1_bytes_of_views |
| views that overlap: read and write, two writes, two reads, ordered, adjacent, other memory, empty | 7 | OVERLAP |
| programs with the default stream: a race, none, several checks, several races, views | 6 | DEFAULT, and at the end |
| reports that were missed or come twice, events and memory | 2 | MISSED |
| what a report says: both accesses, how far the streams were ordered, reuse, overlapping views | 5 | at the end |
| races that repeat: one line, several lines, an earlier record | 3 | at the end |
| subclasses of tensors | 1 | at the end |
| CUDA graphs, and collectives of NCCL | 5 + 7 | no: they need GPUs |
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import weir
import weir.torch
from torch_device import Device, needs_torch, torch

pytestmark = needs_torch

STREAMS = {"default": 0, **{name: 16 * (i + 1) for i, name in enumerate("ABCDEFGHIJK")}}
EVENTS = {name: 100 + i for i, name in enumerate(["e", *(f"e{i}" for i in range(12))])}
# Tensors of 4-byte numbers. Their sizes differ, because a report names memory by its size.
SIZES = {"x": 8, "y": 16, "z": 24, **{f"x{i}": 100 + i for i in range(10)}}
# Tensors that share a block of memory: where each begins, and how many numbers it has.
PLACES = {
    "block": (0, 256),
    "upper": (128, 128),
    "low": (32, 96),
    "high": (128, 72),
    "wide": (0, 200),
    "far": (512, 64),
}
OPERATORS_OF = {"reads": "abs", "writes": "neg_"}


class Found(NamedTuple):
    """A race: the lines of the scenario, counted from 1, the memory, and how often it happened.

    The second line of a use-after-free is that of the allocation.
    """

    kind: str
    first: int
    second: int
    memory: str
    times: int = 1


def steps_of(scenario: str) -> list[tuple[list[str], str]]:
    """The words of each line, and the races that the line says it completes."""
    parts = [line.partition("!") for line in textwrap.dedent(scenario).strip().splitlines()]
    return [(step.split(), races.strip()) for step, _, races in parts]


def python_of(step: list[str]) -> str:
    """One line of Python that does what a line of a scenario says."""
    match step:
        case [on, "reads", *tensors]:
            return "; ".join([f"device.on({on})", *(f"kept.append({tensor}.abs())" for tensor in tensors)])
        case [on, "writes", *tensors]:
            return "; ".join([f"device.on({on})", *(f"{tensor}.neg_()" for tensor in tensors)])
        case [on, "records", event]:
            return f"device.event_recorded({event}, {on})"
        case ["host", "waits", "device"]:
            return "device.synchronize()"
        case ["host", "waits", what] if what in EVENTS:
            return f"device.synchronize_event({what})"
        case ["host", "waits", what]:
            return f"device.synchronize_stream({what})"
        case [on, "waits", event]:
            return f"device.stream_waits({event}, {on})"
        case [event, "destroyed"]:
            return f"device.event_destroyed({event})"
        case [memory, "allocated", on]:
            return f"device.on({on}); device.allocated(address({memory}), {on})"
        case [memory, "kept", on]:
            return f"device.kept_until(address({memory}), {on})"
        case [memory, "freed"]:
            return f"device.freed(address({memory}))"
    raise ValueError(f"a line of a scenario says {step}")


def expected_of(scenario: str) -> list[Found]:
    allocated: dict[str, int] = {}
    expected = []
    for line, (step, races) in enumerate(steps_of(scenario), 1):
        if step[1] == "allocated":
            allocated[step[0]] = line
        for race in filter(None, races.split(",")):
            kind, first, memory, *times = race.split()
            second = allocated[memory] if kind == "use-after-free" else line
            expected.append(Found(kind, int(first), second, memory, int(times[0]) if times else 1))
    return sorted(expected)


def orders(step: list[str]) -> bool:
    return step[1] in ("waits", "kept")


def is_ordered(scenario: str) -> bool:
    """Whether the scenario waits for something and has no race."""
    return not expected_of(scenario) and any(orders(step) for step, _ in steps_of(scenario))


class Program:
    """Runs scenarios: each line is a line of the file "scenario", so that reports name it."""

    def __init__(self, device: Device) -> None:
        block = bytearray(4096)
        self.tensors = {name: torch.zeros(size) for name, size in SIZES.items()}
        for name, (begin, size) in PLACES.items():
            self.tensors[name] = torch.frombuffer(block, dtype=torch.float32, count=size, offset=4 * begin)
        self._names = {tensor.nbytes: name for name, tensor in self.tensors.items()}
        self._globals: dict[str, Any] = {
            "device": device,
            "address": lambda tensor: tensor.untyped_storage().data_ptr(),
            "kept": [],
            "torch": torch,
            **STREAMS,
            **EVENTS,
            **self.tensors,
        }
        self._steps: list[list[str]] = []

    def run(self, scenario: str, times: int = 1) -> weir.Report:
        self._steps = [step for step, _ in steps_of(scenario)]
        code = compile("\n".join(map(python_of, self._steps)), "scenario", "exec")
        with weir.torch.check() as report:
            for _ in range(times):
                exec(code, self._globals)
        return report

    def found(self, report: weir.Report) -> list[Found]:
        """The races, whose accesses are those of their lines."""
        for race in report:
            for access in (race.first, race.second):
                assert access.file == "scenario"
                verb = self._steps[access.line - 1][1]
                if access.is_drop:
                    assert (verb, access.label) == ("allocated", "")
                else:
                    assert access.label == f"aten::{OPERATORS_OF[verb]}"
                    assert access.mode + "s" == verb
            assert race.certainty == "definite"
        return sorted(
            Found(race.kind, race.first.line, race.second.line, self.name(race.second), race.times) for race in report
        )

    def name(self, access: weir.Access) -> str:
        size = re.search(r"of (\d+) bytes", access.array)
        assert size is not None, access.array
        return self._names[int(size[1])]


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.end()


@pytest.fixture
def program(device: Device) -> Program:
    return Program(device)


def case(name: str, *scenario: str) -> Any:
    return pytest.param("\n".join(map(textwrap.dedent, scenario)), id=name)


def lines(line: str, first: int, last: int) -> str:
    """The line once for each number."""
    return "\n".join(line.format(i=i, stream="ABCDEFGHIJK"[i], next="BCDEFGHIJK-"[i]) for i in range(first, last + 1))


ALL = " ".join(f"x{i}" for i in range(10))

# A line is a step of the program. After "!" are the races that it completes: the kind, the line of the first access,
# the memory, and how often it happens if that is more than once.
ORDER = [
    case("operators that touch no memory", "A writes x[:0]", "B writes x[:0]"),
    case("two reads", "A reads x", "B reads x"),
    case("a write after a read", "A reads x", "B writes x  ! WAR 1 x"),
    case("a read after a write", "A writes x", "B reads x  ! RAW 1 x"),
    case("two writes", "A writes x", "B writes x  ! WAW 1 x"),
    case("an event orders", "A reads x", "A records e", "B waits e", "B writes x"),
    case("an event that no stream waits for orders nothing", "A reads x", "A records e", "B writes x  ! WAR 1 x"),
    case(
        "each read is compared with the last write",
        """
        A writes x
        A records e
        B waits e
        B reads x
        C reads x  ! RAW 1 x
        """,
    ),
    case(
        "two streams wait for one event and may read, and neither may write",
        """
        A writes x
        A records e
        B waits e
        C waits e
        B reads x
        C reads x
        B writes x  ! WAR 6 x
        """,
    ),
    case("a chain of ten events", "A reads x", lines("{stream} records e{i}\n{next} waits e{i}", 0, 9), "K writes x"),
    case(
        "a chain of ten events without one of its waits",
        "A reads x",
        lines("{stream} records e{i}\n{next} waits e{i}", 0, 4),
        lines("{stream} records e{i}\n{next} waits e{i}", 6, 9),
        "K writes x  ! WAR 1 x",
    ),
    case(
        "what comes after the record is not ordered",
        """
        A reads x
        A records e
        A reads x
        B waits e
        B writes x  ! stale-event 3 x
        """,
    ),
    case(
        "an event that is destroyed orders nothing",
        """
        A reads x
        A records e
        e destroyed
        B waits e
        B writes x  ! WAR 1 x
        """,
    ),
    case(
        "a new event that has the handle of a destroyed one holds what it recorded itself",
        """
        A reads x
        A records e
        e destroyed
        C reads y
        C records e
        B waits e
        B writes y
        B writes x  ! WAR 1 x
        """,
    ),
    case(
        # torch reports the creation, too, which Weir does not need: torch creates an event when it is first recorded.
        "a new event that has the handle of one whose end was not seen",
        """
        A reads x
        A records e
        C records e
        B waits e
        B writes x  ! stale-event 1 x
        """,
    ),
    case(
        "all reads but the last are waited for",
        lines("{stream} reads x\n{stream} records e{i}", 1, 9),
        lines("A waits e{i}", 1, 9),
        "K reads x",
        "A writes x  ! WAR 28 x",
    ),
    case(
        "all reads but one in the middle are waited for",
        lines("{stream} reads x\n{stream} records e{i}", 1, 9),
        lines("A waits e{i}", 1, 4),
        lines("A waits e{i}", 6, 9),
        "A writes x  ! WAR 9 x",
    ),
    case(
        "all reads are waited for",
        lines("{stream} reads x\n{stream} records e{i}", 1, 9),
        lines("A waits e{i}", 1, 9),
        "A writes x",
    ),
    case("ten memories, one pair of lines", f"A writes {ALL}", f"B writes {ALL}  ! WAW 1 x0 10"),
    case(
        "ten memories, ten pairs of lines",
        lines("A writes x{i}", 0, 9),
        f"B writes {ALL} ! " + ", ".join(f"WAW {i + 1} x{i}" for i in range(10)),
    ),
    case(
        "a stream that waits keeps what it had waited for",
        """
        A writes x
        B writes y
        A records e1
        B records e2
        A writes x
        B writes y
        B waits e1
        A waits e2
        B records e3
        A waits e3
        A writes x y
        """,
    ),
    case(
        "two streams that wait for each other's past are not ordered by that",
        """
        A writes x
        B writes y
        A records e1
        B records e2
        A writes x
        B writes y
        B waits e1
        A waits e2
        A writes x y  ! stale-event 6 y
        """,
    ),
    case(
        "a second record replaces the first",
        """
        A reads x
        B reads y
        A records e
        B records e
        C waits e
        C writes y
        C writes x  ! stale-event 1 x
        """,
    ),
    case(
        "a wait before a second record took the first one",
        """
        A reads x
        B reads y
        A records e
        C waits e
        B records e
        C writes x
        C writes y  ! stale-event 2 y
        """,
    ),
    case(
        "two streams wait for one event",
        """
        A writes x
        A records e
        B waits e
        C waits e
        B reads x
        C reads x
        """,
    ),
    case(
        # torch's sanitizer compares a write with the reads since the last write, if there are any, and else with that
        # write: at the last line it finds nothing.
        "a write is compared with the last write, also if there were reads since",
        """
        A writes x
        B reads x   ! RAW 1 x
        B records e
        C waits e
        C writes x  ! WAW 1 x
        """,
    ),
]

HOST = [
    case(
        "a wait for the device orders all streams",
        lines("{stream} writes x{i}", 1, 9),
        "host waits device",
        "A writes " + " ".join(f"x{i}" for i in range(1, 10)),
    ),
    case(
        "a wait for the device orders nothing that comes later",
        """
        A writes x
        host waits device
        A writes x
        B writes x  ! WAW 3 x
        """,
    ),
    case(
        # torch reports the creation of streams, too, which Weir does not need: a stream begins with its first use.
        "a stream that is first used after a wait for the device",
        """
        A writes x
        host waits device
        B writes x
        """,
    ),
    case(
        "a wait for a stream orders that stream alone",
        """
        A writes x
        B writes y
        host waits A
        C reads x
        D reads x
        E reads y  ! RAW 2 y
        """,
    ),
    case(
        "a wait for an event orders what comes before its record",
        """
        A writes x
        A records e
        A writes y
        host waits e
        B writes x
        B writes y  ! WAW 3 y
        """,
    ),
]

REUSE = [
    case(
        "the same stream uses the memory again",
        """
        x allocated A
        A writes x
        x freed
        x allocated A
        A writes x
        """,
    ),
    case(
        # The allocator waits for nothing: it gives out the memory for use on A while A may still use it for the former
        # owner.
        "another stream uses the memory, and waits for nothing",
        """
        x allocated A
        A writes x
        x freed
        x allocated A
        B writes x  ! early-reuse 2 x
        """,
    ),
    case(
        "reads and writes of the former owner on the stream of the memory",
        """
        x allocated A
        A writes x
        A reads x
        x freed
        x allocated A
        B writes x  ! early-reuse 2 x, early-reuse 3 x
        """,
    ),
    case(
        "reads and writes of the former owner on another stream",
        """
        x allocated A
        B writes x
        B reads x
        x freed     ! use-after-free 2 x, use-after-free 3 x
        x allocated A
        C writes x  ! early-reuse 2 x, early-reuse 3 x
        """,
    ),
    case(
        "memory that is kept until the other stream is done",
        """
        x allocated A
        B writes x
        x kept B
        x freed
        x allocated A
        C writes x
        """,
    ),
    case(
        "memory that is kept until one of two other streams is done",
        """
        x allocated A
        B writes x
        B reads x
        B records e
        C waits e
        C reads x
        x kept B
        x freed     ! use-after-free 6 x
        x allocated A
        D writes x  ! early-reuse 6 x
        """,
    ),
    case(
        "memory that is kept until two other streams are done",
        """
        x allocated A
        B writes x
        B records e
        C waits e
        C reads x
        x kept B
        x kept C
        x freed
        x allocated A
        D writes x
        """,
    ),
    case(
        "an event orders the stream of the new owner",
        """
        x allocated A
        A writes x
        A records e
        x freed
        x allocated A
        B waits e
        B writes x
        """,
    ),
    case(
        "the stream of the memory waits before it gets memory",
        """
        x allocated A
        B writes x
        B records e
        x freed
        A waits e
        x allocated A
        A writes x
        """,
    ),
    case(
        "an event orders the new owner, although the memory was freed too early",
        """
        x allocated A
        B writes x
        B records e
        x freed  ! use-after-free 2 x
        x allocated A
        C waits e
        C writes x
        """,
    ),
    case(
        "the host waits for the device in between",
        """
        x allocated A
        A writes x
        y allocated A
        B writes y
        x freed
        y freed
        host waits device
        x allocated A
        y allocated A
        C writes x y
        """,
    ),
    case(
        # torch's sanitizer compares only the first write of the new owner. But D does not wait for B either, which may
        # still use the memory.
        "each access of the new owner is compared with the former owner's",
        """
        x allocated A
        B writes x
        x freed     ! use-after-free 2 x
        x allocated A
        C writes x  ! early-reuse 2 x
        C records e
        D waits e
        D writes x  ! early-reuse 2 x
        """,
    ),
    case(
        "a part of the block is given out again",
        """
        block allocated A
        B writes block
        block freed     ! use-after-free 2 block
        upper allocated A
        C writes upper  ! early-reuse 2 upper
        """,
    ),
    case(
        "two blocks are joined and given out again",
        """
        low allocated A
        high allocated A
        B writes low
        C writes high
        low freed      ! use-after-free 3 low
        high freed     ! use-after-free 4 high
        wide allocated A
        D writes wide  ! early-reuse 3 wide, early-reuse 4 wide
        """,
    ),
    case(
        "other memory is given out",
        """
        block allocated A
        B writes block
        block freed  ! use-after-free 2 block
        far allocated A
        C writes far
        """,
    ),
]

OVERLAP = [
    case("a write and a read", "A writes y[:8]", "B reads y[4:12]  ! RAW 1 y"),
    case("two writes", "A writes y[:8]", "B writes y[4:12]  ! WAW 1 y"),
    case("two reads", "A reads y[:8]", "B reads y[4:12]"),
    case("two writes in order", "A writes y[:8]", "A records e", "B waits e", "B writes y[4:12]"),
    case("adjacent views", "A writes y[:8]", "B writes y[8:]"),
    case("two memories", "A writes x", "B writes y"),
    case("a view without elements", "A writes y[4:4]", "B writes y"),
]

DEFAULT = [
    case(
        "the other stream and the default stream wait for nothing",
        """
        default writes x
        A writes x       ! default-stream 1 x
        default reads x  ! default-stream 2 x
        """,
    ),
    case(
        "both wait",
        """
        default writes x
        default records e
        A waits e
        A writes x
        A records e
        default waits e
        default reads x
        """,
    ),
    case(
        "views that overlap",
        """
        default writes y
        default records e
        A waits e
        A writes y[:10]
        default reads y[6:]  ! default-stream 4 y
        """,
    ),
    case(
        "views that do not overlap",
        """
        default writes y
        default records e
        A waits e
        A writes y[:6]
        default reads y[10:]
        """,
    ),
]

# The report does not mention these: what Weir has not seen orders nothing and races with nothing.
MISSED = [
    case(
        "an event that was not seen is destroyed", "e destroyed", "A writes x", "A records e", "B waits e", "B reads x"
    ),
    case("an event that was not seen is waited for", "A writes x", "B waits e", "B writes x  ! WAW 1 x"),
    case("memory that was not seen is freed", "x freed", "A writes x", "A reads x"),
    case(
        "memory is allocated again, and its end was not seen",
        """
        x allocated A
        B writes x
        x allocated A
        C writes x
        """,
    ),
]


@pytest.mark.parametrize("scenario", ORDER)
def test_v1_streams_and_events(program: Program, scenario: str) -> None:
    assert program.found(program.run(scenario)) == expected_of(scenario)


@pytest.mark.parametrize("scenario", HOST)
def test_v1_waits_of_the_host(program: Program, scenario: str) -> None:
    assert program.found(program.run(scenario)) == expected_of(scenario)


@pytest.mark.parametrize("scenario", REUSE)
def test_v1_memory_that_is_given_out_again(program: Program, scenario: str) -> None:
    assert program.found(program.run(scenario)) == expected_of(scenario)


@pytest.mark.parametrize("scenario", OVERLAP)
def test_v1_views_of_the_same_memory(program: Program, scenario: str) -> None:
    assert program.found(program.run(scenario)) == expected_of(scenario)


@pytest.mark.parametrize("scenario", DEFAULT)
def test_v1_programs_with_the_default_stream(program: Program, scenario: str) -> None:
    assert program.found(program.run(scenario)) == expected_of(scenario)


@pytest.mark.parametrize("scenario", MISSED)
def test_v1_reports_that_were_missed(program: Program, scenario: str) -> None:
    assert program.found(program.run(scenario)) == expected_of(scenario)


@pytest.mark.parametrize(
    "scenario", [one for one in ORDER + HOST + REUSE + OVERLAP + DEFAULT + MISSED if is_ordered(one.values[0])]
)
def test_v1_without_its_waits_the_same_program_races(program: Program, scenario: str) -> None:
    """The negative control of the programs that wait and have no race."""
    steps = [" ".join(step) for step, _ in steps_of(scenario) if not orders(step)]
    assert len(program.run("\n".join(steps))) > 0


class Operator(NamedTuple):
    """A call, the shapes of its operands, and which of them it reads and writes.

    Its results are new memory, or else operands and views of them.
    """

    call: Callable[..., Any]
    shapes: dict[str, tuple[int, ...]]
    reads: str = ""
    writes: str = ""
    has_new_results: bool = False


OPERATORS = {
    "add": Operator(lambda a, b: torch.add(a, b), {"a": (5, 3), "b": (5, 3)}, reads="ab", has_new_results=True),
    "cat": Operator(
        lambda a, b, c: torch.cat((a, b, c), dim=1),
        {"a": (2, 4, 5), "b": (2, 1, 5), "c": (2, 7, 5)},
        reads="abc",
        has_new_results=True,
    ),
    "split": Operator(lambda a: torch.split(a, 2), {"a": (5, 2)}),
    "add_": Operator(lambda a: a.add_(5), {"a": (4, 2)}, writes="a"),
    "mul": Operator(lambda a, b: torch.mul(a, 3, out=b), {"a": (8,), "b": (8,)}, reads="a", writes="b"),
    "nonzero": Operator(lambda a: torch.nonzero(a, as_tuple=True), {"a": (5, 3, 2)}, reads="a", has_new_results=True),
    "addr": Operator(lambda a, b: torch.addr(a, b, b), {"a": (3, 3), "b": (3,)}, reads="ab", has_new_results=True),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_v1_what_operators_read_and_write(device: Device, name: str) -> None:
    """Another stream writes, or reads, each operand and result by itself: the race tells what the operator did to it.

    An operand that two arguments name, such as the vector of addr, is one access.
    """
    operator = OPERATORS[name]

    def races_with(use: Callable[[Any], object], which: str) -> list[tuple[str, str, str, int]]:
        operands = {each: torch.ones(shape) for each, shape in operator.shapes.items()}
        with weir.torch.check() as report:
            device.on(STREAMS["A"])
            results = operator.call(**operands)
            device.on(STREAMS["B"])
            if which != "result":
                use(operands[which])
            else:
                for result in results if isinstance(results, tuple) else [results]:
                    use(result)
        return [(race.kind, race.first.label, race.second.label, race.times) for race in report]

    for operand in operator.shapes:
        is_written = operand in operator.writes
        write = ["WAW"] if is_written else ["WAR"] if operand in operator.reads else []
        read = ["RAW"] if is_written else []
        found = races_with(lambda one: one.neg_(), operand)
        assert found == [(kind, f"aten::{name}", "aten::neg_", 1) for kind in write]
        found = races_with(lambda one: one.abs(), operand)
        assert found == [(kind, f"aten::{name}", "aten::abs", 1) for kind in read]
    is_written = operator.has_new_results or operator.writes != ""
    found = races_with(lambda one: one.abs(), "result")
    assert [race[:3] for race in found] == [("RAW", f"aten::{name}", "aten::abs")] * is_written


@pytest.mark.parametrize(
    ("shape", "view", "expected"),
    [
        pytest.param((10,), lambda t: t, (0, 40), id="one dimension"),
        pytest.param((3, 4), lambda t: t, (0, 48), id="two dimensions"),
        pytest.param((10,), lambda t: t[2:8], (8, 32), id="slice"),
        pytest.param((3, 4), lambda t: t.t(), (0, 48), id="transposed"),
        pytest.param((1, 10), lambda t: t.expand(5, 10), (0, 40), id="expanded"),
        pytest.param((), lambda t: t, (0, 4), id="scalar"),
        pytest.param((10,), lambda t: t[:0], None, id="empty"),
    ],
)
def test_v1_bytes_of_views(
    device: Device, shape: tuple[int, ...], view: Callable[[Any], Any], expected: tuple[int, int] | None
) -> None:
    t = torch.ones(shape)
    with weir.torch.check() as report:
        device.on(STREAMS["A"])
        kept = view(t).abs()
        device.on(STREAMS["B"])
        t.neg_()
    assert [race.first.range for race in report] == ([] if expected is None else [expected])
    assert [race.second.range for race in report] == ([] if expected is None else [(0, t.nbytes)])
    del kept


def test_v1_the_text_names_both_accesses_and_the_mend(program: Program) -> None:
    """torch's sanitizer has the pointer, both stacks and that of the allocation, and names wait_stream."""
    scenario = """
    x allocated A
    A writes x
    B reads x  ! RAW 2 x
    """
    report = program.run(scenario)
    assert program.found(report) == expected_of(scenario)
    race = report[0]
    assert race.first.stack[0] == ("scenario", 2, "<module>")
    assert race.second.stack[0] == ("scenario", 3, "<module>")
    assert race.first.stack[1][0] == race.second.stack[1][0] == __file__
    for part in (
        "RAW race on memory #",
        "of 32 bytes, allocated at scenario:1",
        'first   writes bytes [0, 32) in "aten::neg_" on stream "stream 1"\n           scenario:2 in <module>',
        'second  reads  bytes [0, 32) in "aten::abs" on stream "stream 2"\n           scenario:3 in <module>',
        'Nothing in the program makes stream "stream 2" wait for stream "stream 1" in between',
        "e = stream_1.record_event()  # after scenario:2",
        "stream_2.wait_event(e)       # before scenario:3",
    ):
        assert part in str(report)


def test_v1_the_text_names_the_bytes_of_views(program: Program) -> None:
    """torch's sanitizer has the pointers of both views, and the bytes that they share."""
    text = str(program.run("A writes y[:10]\nB writes y[6:]"))
    assert "WAW race on memory #" in text
    assert "first   writes bytes [0, 40)" in text
    assert "second  writes bytes [24, 64)" in text
    assert "e = stream_1.record_event()" in text
    assert "stream_2.wait_event(e)" in text


def test_v1_the_text_names_the_record_that_was_too_early(program: Program) -> None:
    """torch's sanitizer numbers the operations that the stream waits for; Weir names the lines of record and wait."""
    report = program.run("A writes x\nA records e\nA writes x\nB waits e\nB writes x  ! stale-event 3 x")
    assert [race.kind for race in report] == ["stale-event"]
    assert report[0].reason == "The wait at scenario:4 took the record of scenario:2, which was made too early."
    assert report[0].reason in str(report)
    never = program.run("A writes x\nB writes x")
    assert [race.kind for race in never] == ["WAW"]
    assert never[0].reason == ""


def test_v1_the_text_of_reuse_names_record_stream(program: Program) -> None:
    report = program.run("x allocated A\nB writes x\nx freed\nx allocated A\nC writes x")
    assert [race.kind for race in report] == ["use-after-free", "early-reuse"]
    freed, reused = report
    assert freed.second.is_drop
    assert freed.mend.startswith("x.record_stream(")
    assert "scenario:2" in freed.mend
    assert "which was dropped before" in reused.first.array
    assert "of 32 bytes, allocated at scenario:4" in reused.second.array


def test_v1_a_race_that_repeats_is_one_with_a_count(program: Program) -> None:
    scenario = """
    A writes x
    B writes x  ! WAW 1 x 5
    host waits device
    """
    assert program.found(program.run(scenario, times=5)) == expected_of(scenario)


def test_v1_races_of_other_lines_are_races_of_their_own(program: Program) -> None:
    scenario = """
    A writes x
    B writes x  ! WAW 1 x
    host waits device
    A writes y
    C writes y  ! WAW 4 y
    """
    assert program.found(program.run(scenario)) == expected_of(scenario)


def test_v1_races_of_several_memories_and_one_pair_of_lines_are_counted(device: Device) -> None:
    """torch's sanitizer reports each; Weir reports one for each pair of lines, and how often."""
    with weir.torch.check() as report:
        for _ in range(3):
            device.on(STREAMS["default"])
            x = torch.zeros(256)
            device.on(STREAMS["A"])
            x.fill_(1)
            device.on(STREAMS["default"])
            x.sum()
            device.synchronize()
    assert [(race.kind, race.first.label, race.second.label, race.times) for race in report] == [
        ("default-stream", "aten::zero_", "aten::fill_", 3),
        ("default-stream", "aten::fill_", "aten::sum", 3),
    ]


def test_v1_checks_one_after_the_other(program: Program) -> None:
    for _ in range(3):
        assert program.found(program.run("default writes x\ndefault reads x")) == []
        assert len(program.run("A writes x\ndefault reads x")) == 1


def test_v1_subclasses_of_tensors_are_watched(device: Device) -> None:
    class Named(torch.Tensor):  # type: ignore[misc]
        pass

    with weir.torch.check() as report:
        device.on(STREAMS["A"])
        x = torch.ones(8).as_subclass(Named)
        assert isinstance(x.add_(1), Named)
        device.on(STREAMS["B"])
        x.neg_()
    assert [(race.kind, race.first.label, race.second.label) for race in report] == [
        ("WAW", "aten::add_", "aten::neg_")
    ]


def test_v1_subclasses_of_tensors_that_wrap_others_are_named(device: Device) -> None:
    """They have no memory of their own, and the operators on the tensors inside run where no hook sees them."""

    class Wrapping(torch.Tensor):  # type: ignore[misc]
        def __new__(cls, inside: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

        def __init__(self, inside: Any) -> None:
            self.inside = inside

        @classmethod
        def __torch_dispatch__(cls, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return cls(call(*[one.inside if isinstance(one, cls) else one for one in args], **(kwargs or {})))

    x = torch.ones(8)
    with weir.torch.check() as report:
        device.on(STREAMS["A"])
        y = Wrapping(x).add(1)
        device.on(STREAMS["B"])
        x.neg_()
    assert y.inside.tolist() == [2] * 8
    assert any("subclasses that wrap others" in text for text in report.unseen)


def pairs_by_sets(scenario: str) -> set[tuple[int, int, str]]:
    """The races of a scenario, without clocks: for each step, the set of all steps that it comes after.

    An access that a later one covers and comes after is represented by the later one.
    """
    after: dict[str, set[int]] = {}  # what the next step of each stream comes after
    held: dict[str, set[int]] = {}  # what each event holds
    host: set[int] = set()
    accesses: dict[str, list[tuple[int, bool, set[int]]]] = {}
    found = set()
    for line, (step, _) in enumerate(steps_of(scenario), 1):
        match step:
            case ["host", "waits", "device"]:
                host = host.union(*after.values())
            case ["host", "waits", what]:
                host = host | (held if what in EVENTS else after).get(what, set())
            case [on, "waits", event]:
                after[on] = after.get(on, set()) | held.get(event, set())
            case [on, "records", event]:
                held[event] = after.get(on, set())
            case [event, "destroyed"]:
                held.pop(event, None)
            case [on, verb, memory]:
                is_write = verb == "writes"
                before = after.get(on, set()) | host
                of_memory = accesses.setdefault(memory, [])
                for past, past_writes, _ in of_memory:
                    is_represented = any(past in other[2] and (other[1] or not past_writes) for other in of_memory)
                    if (is_write or past_writes) and past not in before and not is_represented:
                        found.add((past, line, memory))
                of_memory.append((line, is_write, before))
                after[on] = before | {line}
    return found


@pytest.mark.parametrize("seed", range(20))
def test_v1_random_programs(program: Program, seed: int) -> None:
    numbers = random.Random(seed)

    def step() -> str:
        on, event = numbers.choice("ABCD"), numbers.choice(["e0", "e1", "e2"])
        memory = numbers.choice("xyz")
        kinds = {
            f"{on} reads {memory}": 8,
            f"{on} writes {memory}": 6,
            f"{on} records {event}": 8,
            f"{on} waits {event}": 8,
            f"{event} destroyed": 1,
            f"host waits {on}": 1,
            f"host waits {event}": 1,
            "host waits device": 0.3,
        }
        return numbers.choices(list(kinds), list(kinds.values()))[0]

    for _ in range(20):
        scenario = "\n".join(step() for _ in range(30))
        report = program.run(scenario)
        found = program.found(report)
        assert {(race.first, race.second, race.memory) for race in found} == pairs_by_sets(scenario), scenario
        for race in report:
            kind = {"read": "R", "write": "W"}[race.second.mode] + "A" + {"read": "R", "write": "W"}[race.first.mode]
            assert race.kind in (kind, "stale-event")
