"""DLPack's capsules, from their making to their end (scenario B7), with counts of what is left."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator

import pytest
import weir
from conftest import HAS_CUDA
from eventually import eventually
from raw_tensors import foreign
from test_interpreter import expect_clean, run
from weir.testing import Gate
from weir_conformance._dlpack import Description, Producer, Taken, floats

BYTES = 1 << 20
VERSIONS = pytest.mark.parametrize("version", [None, (1, 0)], ids=["without a version", "with a version"])
NAMES = {None: "dltensor", (1, 0): "dltensor_versioned"}


@pytest.fixture(params=["cpu", "sim:0", *(["cuda:0"] if HAS_CUDA else [])])
def place(request: pytest.FixtureRequest) -> str:
    """The name of each device that exchanges arrays."""
    name: str = request.param
    return name


def in_use(place: str) -> int:
    """How many bytes arrays of Weir on the device have, or had that consumers may still use."""
    weir.synchronize()
    weir.safe_point()
    stats = weir.memory.stats(place)
    return stats["live"] + stats["quarantined"]


@pytest.fixture
def left(place: str) -> Iterator[Callable[[], int]]:
    """How many bytes more are in use than at the begin. Nothing may be left at the end of the test."""
    gc.collect()
    before = in_use(place)

    def more() -> int:
        return in_use(place) - before

    eventually(lambda: in_use(place) <= before)
    before = in_use(place)
    yield more
    eventually(lambda: more() == 0)


def exported(place: str, version: tuple[int, int] | None) -> object:
    """A capsule of an array that nothing else keeps."""
    return weir.zeros(BYTES, "uint8", device=place).__dlpack__(max_version=version)


# Capsules of Weir.


@VERSIONS
def test_b7_control_a_capsule_that_is_held_keeps_the_memory(
    place: str, left: Callable[[], int], version: tuple[int, int] | None
) -> None:
    capsule = exported(place, version)
    gc.collect()
    assert left() == BYTES, "the count sees what is kept"
    del capsule


@VERSIONS
def test_b7_a_capsule_that_is_dropped_unconsumed_gives_the_memory_back(
    place: str, left: Callable[[], int], version: tuple[int, int] | None
) -> None:
    for _ in range(5):
        capsule = exported(place, version)
        del capsule
    eventually(lambda: left() == 0)


@VERSIONS
def test_b7_a_capsule_that_is_consumed_by_weir_and_dropped_leaves_the_array(
    place: str, left: Callable[[], int], version: tuple[int, int] | None
) -> None:
    capsule = exported(place, version)
    x = weir.from_dlpack(capsule)
    assert f'"used_{NAMES[version]}"' in repr(capsule)
    del capsule
    gc.collect()
    assert left() == BYTES
    assert x.numpy(copy=True)[-1] == 0
    del x
    eventually(lambda: left() == 0)


@VERSIONS
@pytest.mark.parametrize("order", ["capsule first", "consumer first"])
def test_b7_a_capsule_that_is_consumed_by_others_is_given_back_by_the_deleter_alone(
    place: str, left: Callable[[], int], version: tuple[int, int] | None, order: str
) -> None:
    capsule = exported(place, version)
    consumer = Taken(capsule)
    assert f'"used_{NAMES[version]}"' in repr(capsule)
    if order == "capsule first":
        del capsule
        gc.collect()
        assert left() == BYTES
    consumer.close()
    if order == "consumer first":
        eventually(lambda: left() == 0)
        del capsule
    eventually(lambda: left() == 0)


@VERSIONS
def test_b7_a_capsule_that_was_used_is_refused(
    place: str, left: Callable[[], int], version: tuple[int, int] | None
) -> None:
    capsule = exported(place, version)
    x = weir.from_dlpack(capsule)
    for take in (weir.from_dlpack, weir.from_dlpack):
        with pytest.raises(weir.ExchangeError, match="the capsule was consumed before, and can be consumed once"):
            take(capsule)
    assert f'"used_{NAMES[version]}"' in repr(capsule)
    weir.fill(x, 3)
    assert x.numpy(copy=True)[-1] == 3
    used_by_others = exported(place, version)
    consumer = Taken(used_by_others)
    with pytest.raises(weir.ExchangeError, match="consumed before"):
        weir.from_dlpack(used_by_others)
    assert left() == 2 * BYTES
    consumer.close()


@VERSIONS
def test_b7_a_capsule_is_consumed_by_one_of_many_threads(
    place: str, left: Callable[[], int], version: tuple[int, int] | None
) -> None:
    for _ in range(10):
        capsule = exported(place, version)
        taken: list[weir.Array] = []
        refused: list[weir.ExchangeError] = []
        start = threading.Barrier(4)

        def take(
            capsule: object = capsule,
            start: threading.Barrier = start,
            taken: list[weir.Array] = taken,
            refused: list[weir.ExchangeError] = refused,
        ) -> None:
            start.wait()
            try:
                taken.append(weir.from_dlpack(capsule))
            except weir.ExchangeError as error:
                refused.append(error)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(taken), len(refused)) == (1, 3)
        taken.clear()
        refused.clear()


# Threads that Python does not know.

_c = ctypes.CDLL(None)
_pthread = ctypes.c_ulong


def on_a_thread_of_its_own(function: ctypes._CFuncPtr, argument: int) -> None:
    """Calls a C function with a pointer, on a thread that Python knows nothing of. Returns after its end."""
    thread = _pthread()
    made = _c.pthread_create(
        ctypes.byref(thread), None, ctypes.cast(function, ctypes.c_void_p), ctypes.c_void_p(argument)
    )
    assert made == 0
    assert _c.pthread_join(thread, None) == 0


@VERSIONS
@pytest.mark.parametrize("where", ["a thread of Python's", "a foreign thread"])
@pytest.mark.parametrize("capsule_is", ["dropped", "held"])
def test_b7_a_deleter_that_is_called_on_another_thread_gives_the_memory_back(
    place: str, left: Callable[[], int], version: tuple[int, int] | None, where: str, capsule_is: str
) -> None:
    capsule = exported(place, version)
    consumer = Taken(capsule)
    if capsule_is == "dropped":
        capsule = None
    assert left() == BYTES
    if where == "a foreign thread":
        on_a_thread_of_its_own(consumer.managed.deleter, consumer._address)
    else:
        thread = threading.Thread(target=consumer.close)
        thread.start()
        thread.join()
    eventually(lambda: left() == 0)
    del capsule


def test_b7_a_deleter_that_is_called_while_work_is_pending_gives_the_memory_back_after_it(
    queue: str,
) -> None:
    x, s = weir.zeros(4, "float32", device=queue), weir.Stream(queue)
    consumer = Taken(x.__dlpack__(max_version=(1, 0)))
    consumer_sees = Taken(x.__dlpack__(max_version=(1, 0)))
    with Gate() as gate:
        on_a_thread_of_its_own(consumer.managed.deleter, consumer._address)
        on_a_thread_of_its_own(consumer_sees.managed.deleter, consumer_sees._address)
        gate.hold(s)
        eventually(lambda: weir.explain(x).shared_with == [])
        weir.fill(x, 2, stream=s)
        assert not x.ready, "nothing blocks: the consumers are gone"
    assert x.tolist() == [2] * 4


# Imports.


@pytest.mark.parametrize("versioned", [False, True])
def test_b7_an_imports_deleter_is_called_once(versioned: bool) -> None:
    of = Producer(Description(floats(1, 2, 3), (3,)), versioned)
    capsule = of.capsule(versioned)
    assert of.mistakes == "", "control: nobody has taken it"
    x = weir.from_dlpack(capsule)
    assert of.mistakes == "1 exports leaked", "control: the count sees that the import has it"
    with pytest.raises(weir.ExchangeError, match="consumed before"):
        weir.from_dlpack(capsule)
    view = x[1:]
    del x, capsule
    gc.collect()
    assert of.mistakes == "1 exports leaked", "a view keeps it"
    assert view.tolist() == [2, 3]
    del view
    eventually(lambda: of.mistakes == "")


def test_b7_control_the_count_sees_a_deleter_that_is_called_twice() -> None:
    of = Producer(Description(floats(1, 2, 3), (3,)))
    consumer = Taken(of.capsule(True))
    consumer.close()
    assert of.mistakes == ""
    consumer.close()
    assert of.mistakes == "the deleter of 1 exports was called too often"


def test_b7_an_import_that_pending_work_keeps_is_released_after_it(queue: str) -> None:
    """The last reference is that of an operation: no thread of Python's lets go of it."""
    of, s = foreign(weir.ones(3, "float32", device=queue)), weir.Stream(queue)
    result = weir.zeros(3, "float32", device=queue)
    with Gate() as gate:
        x = weir.asarray(of, exclusive=True)
        gate.hold(s)
        weir.copy(result, x, stream=s)
        del x
        gc.collect()
        assert of.mistakes == "1 exports leaked", "the operation is pending"
    assert result.numpy(copy=True).tolist() == [1] * 3
    eventually(lambda: of.mistakes == "")


def test_b7_an_import_that_is_dropped_on_another_thread_is_released() -> None:
    of = Producer(Description(floats(1, 2, 3), (3,)))
    held = [weir.from_dlpack(of)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    eventually(lambda: of.mistakes == "")


# Capsules that end while an exception is raised.


def pair(_one: object, _other: object) -> None:
    """Is not called: its second argument raises while the first one is on the interpreter's stack."""


def raises() -> object:
    raise KeyError("the pending exception")


def test_b7_control_a_destructor_that_touches_the_pending_exception_is_seen() -> None:
    """It runs while the exception is pending, and this one replaces it."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    replaces = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p)
    with pytest.raises(TypeError, match="bad argument type"):
        pair(new(1, b"control", replaces), raises())


@VERSIONS
def test_b7_a_capsule_that_ends_while_an_exception_is_pending_keeps_it(
    place: str, left: Callable[[], int], version: tuple[int, int] | None
) -> None:
    for _ in range(3):
        with pytest.raises(KeyError, match="the pending exception"):
            pair(exported(place, version), raises())
        eventually(lambda: left() == 0)


@VERSIONS
def test_b7_a_used_capsule_that_ends_while_an_exception_is_pending_keeps_it(
    place: str, left: Callable[[], int], version: tuple[int, int] | None
) -> None:
    consumers: list[Taken] = []

    def used() -> object:
        capsule = exported(place, version)
        consumers.append(Taken(capsule))
        return capsule

    with pytest.raises(KeyError, match="the pending exception"):
        pair(used(), raises())
    assert left() == BYTES
    consumers[0].close()


def test_b7_an_import_that_ends_while_an_exception_is_pending_keeps_it(place: str) -> None:
    of = foreign(weir.ones(3, "float32", device=place))
    with pytest.raises(KeyError, match="the pending exception"):
        pair(weir.from_dlpack(of), raises())
    eventually(lambda: of.mistakes == "")
    with pytest.raises(KeyError, match="the pending exception"):
        pair(of.capsule(True), raises())
    with pytest.raises(KeyError, match="the pending exception"):
        pair(weir.from_dlpack(weir.ones(3, device=place).__dlpack__(max_version=(1, 0))), raises())
    eventually(lambda: of.mistakes == "")


# The end of the interpreter.

MAKE = """
import builtins, sys
import weir
from weir_conformance._dlpack import Description, Producer, Taken, floats
place = "{place}"
x = weir.ones(3, "float32", device=place)
of = Producer(Description(floats(1, 2, 3), (3,)))
def make():
    yield x.__dlpack__()
    yield x.__dlpack__(max_version=(1, 0))
    used = x.__dlpack__(max_version=(1, 0))
    taken = Taken(used)
    yield used
    yield taken
    consumed = x.__dlpack__(max_version=(1, 0))
    yield weir.from_dlpack(consumed)
    yield consumed
    yield weir.from_dlpack(of)
    yield weir.from_dlpack(of.capsule(False))
    yield of.capsule(True)
    yield weir.asarray(of, exclusive=True)[1:]
    yield weir.share(of).__dlpack__()
"""
ENDS = {
    "as globals": "kept = list(make())",
    "in builtins": "builtins.kept = list(make())",
    "in sys.modules": "sys.modules['kept'] = list(make())",
    "in a cycle": "kept = list(make()); kept.append(kept)",
    "in a thread": """
import threading
begun = threading.Event()
def holds():
    kept = list(make())
    begun.set()
    threading.Event().wait()
threading.Thread(target=holds, daemon=True).start()
begun.wait()
""",
    "in a frame that raises SystemExit": "def ends():\n    kept = list(make())\n    raise SystemExit(0)\nends()",
}


@pytest.mark.parametrize("where", ENDS)
def test_b7_capsules_and_imports_that_are_alive_at_the_end_of_the_interpreter(place: str, where: str) -> None:
    expect_clean(run(MAKE.format(place=place) + ENDS[where]))


def test_b7_control_an_error_at_the_end_of_the_interpreter_is_seen() -> None:
    done = run("import builtins\nclass Late:\n    def __del__(self): 1 / 0\nbuiltins.kept = Late()")
    assert "ZeroDivisionError" in done.stderr


def test_b7_a_foreign_thread_may_call_the_deleter_at_the_end_of_the_interpreter(place: str) -> None:
    """In an exit handler of C, which runs after the interpreter is gone."""
    program = (
        MAKE
        + """
import ctypes
consumers = [Taken(x.__dlpack__(max_version=version)) for version in (None, (1, 0))]
c = ctypes.CDLL(None)
builtins.kept = consumers
for one in consumers:
    deleter = ctypes.cast(one.managed.deleter, ctypes.c_void_p)
    assert c.__cxa_atexit(deleter, ctypes.c_void_p(one._address), None) == 0
"""
    )
    expect_clean(run(program.format(place=place)))
