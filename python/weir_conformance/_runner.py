"""Runs cases, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weir_conformance._cases import CASES, Case
from weir_conformance._clients import CLIENTS, Unknown, client_named
from weir_conformance._outcome import Outcome, Result, Verdict

# Seconds that a case may take.
LIMIT = 60
# Seconds without a word, beyond a case's, after which a process is taken to hang in an import.
IMPORTS = 180


@dataclass(frozen=True)
class Place:
    """A case, and the libraries on both sides; an empty name: the suite's own."""

    case: str
    producer: str
    consumer: str


@dataclass(frozen=True)
class _Job:
    """Cases of one pair of libraries, which a process imports once: each may be the producer and the consumer."""

    device: str
    places: tuple[Place, ...]


def _jobs(libraries: Sequence[str], devices: Sequence[str], cases: Sequence[Case]) -> Iterator[_Job]:
    for device in devices:
        able = [name for name in libraries if device in client_named(name).devices]
        places: dict[frozenset[str], list[Place]] = {}
        for case in (each for each in cases if device in each.devices):
            for producer in able if case.needs_producer else [""]:
                for consumer in able if case.needs_consumer else [""]:
                    pair = frozenset({producer, consumer} - {""})
                    places.setdefault(pair, []).append(Place(case.name, producer, consumer))
        for of_pair in places.values():
            yield _Job(device, tuple(of_pair))


class _Stopped(Exception):
    """The run ends before its last case."""


class _Run:
    """The processes of a run."""

    def __init__(self, limit: int, told: queue.SimpleQueue[Result | None]) -> None:
        self._limit = limit
        self._told = told
        self._lock = threading.Lock()  # guards what follows
        self._processes: set[subprocess.Popen[str]] = set()
        self._is_stopped = False

    def stop(self) -> None:
        """Ends all processes, and lets none begin."""
        with self._lock:
            self._is_stopped = True
            for process in self._processes:
                _kill(process)

    def take(self, job: _Job) -> None:
        """Runs the cases, and tells of each as soon as it is over."""
        try:
            self._take(job)
        except _Stopped:
            pass
        finally:
            self._told.put(None)

    def _take(self, job: _Job) -> None:
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            process = self._start(job, errors)
            try:
                left = self._listen(job, process)
                status = process.wait()
            finally:
                with self._lock:
                    self._processes.discard(process)
            errors.seek(0)
            said = errors.read()
        for place in left:
            self._tell(job, place, _outcome(None, status, said))

    def _start(self, job: _Job, errors: IO[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "weir_conformance._worker", job.device, str(self._limit)]
        places = json.dumps([[each.case, each.producer, each.consumer] for each in job.places])
        # Libraries are found where this program finds them. JAX takes most of the GPU's memory otherwise.
        path = os.pathsep.join([str(Path(__file__).parents[1]), *(each for each in sys.path if each)])
        defaults = {"CUDA_DEVICE_MAX_CONNECTIONS": "32", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        with self._lock:
            if self._is_stopped:
                raise _Stopped
            process = subprocess.Popen(
                [*command, places],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                env={**defaults, **os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
            self._processes.add(process)
        return process

    def _listen(self, job: _Job, process: subprocess.Popen[str]) -> list[Place]:
        """Tells of cases until the process ends, and returns those that it said nothing of."""
        left = dict(enumerate(job.places))
        outcomes: dict[int, Outcome] = {}
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        while line := self._next(lines, process):
            if not line.startswith("WEIR_CONFORMANCE "):
                continue
            said = json.loads(line.partition(" ")[2])
            number = said["number"]
            if "ended" not in said:
                outcomes[number] = Outcome(Verdict(said["verdict"]), said["note"], said["control"])
                continue
            if said["killed"] or said["ended"] == -signal.SIGALRM:
                outcome = Outcome(Verdict.BLOCKED, f"it did not end in {self._limit} s")
            else:
                outcome = _outcome(outcomes.get(number), said["ended"], "")
            self._tell(job, left.pop(number), outcome)
        return list(left.values())

    def _next(self, lines: Iterator[str], process: subprocess.Popen[str]) -> str:
        """The next line; empty at the end."""
        patience = threading.Timer(self._limit + IMPORTS, _kill, [process])
        patience.start()
        try:
            return next(lines, "")
        finally:
            patience.cancel()

    def _tell(self, job: _Job, place: Place, outcome: Outcome) -> None:
        with self._lock:
            if self._is_stopped:
                raise _Stopped
        self._told.put(Result(place.case, job.device, place.producer, place.consumer, outcome))


def _kill(process: subprocess.Popen[str]) -> None:
    """With what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _outcome(told: Outcome | None, status: int, errors: str) -> Outcome:
    """What to report of a case that said this, and whose process ended so."""
    if told is not None and status == 0:
        return told
    if told is not None:
        return Outcome(Verdict.CRASH, f"{_ending(status)} at the end of the process ({told.verdict.value})")
    if status > 0 and errors.rstrip():
        return Outcome(Verdict.NOT_OFFERED, errors.rstrip().splitlines()[-1])  # the library cannot be imported
    return Outcome(Verdict.CRASH, _ending(status))


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


@dataclass(frozen=True)
class Plan:
    """What a run consists of."""

    jobs: tuple[_Job, ...]

    def in_order(self, results: Iterable[Result]) -> list[Result]:
        """By case, then by device, producer and consumer as they were named."""
        cases, devices, producers, consumers = ({name: at for at, name in enumerate(each)} for each in self.names)
        return sorted(
            results,
            key=lambda one: (
                cases[one.case],
                devices[one.device],
                producers[one.producer],
                consumers[one.consumer],
            ),
        )

    @property
    def results(self) -> int:
        """How many results there will be."""
        return sum(len(job.places) for job in self.jobs)

    @property
    def names(self) -> tuple[list[str], list[str], list[str], list[str]]:
        """The cases, devices, producers and consumers, as they were named."""
        places = [place for job in self.jobs for place in job.places]
        used = {place.case for place in places}
        return (
            [case.name for case in CASES if case.name in used],
            list(dict.fromkeys(job.device for job in self.jobs)),
            list(dict.fromkeys(place.producer for place in places)),
            list(dict.fromkeys(place.consumer for place in places)),
        )


def plan(libraries: Sequence[str] = (), *, devices: Sequence[str] = ("cpu",), cases: Sequence[str] = ()) -> Plan:
    """What `run` does with these arguments. Raises Unknown."""
    for name in libraries:
        if not client_named(name).is_installed():
            raise Unknown(f"{name} is not installed for {sys.executable}: install it, or leave it out")
    for device in devices:
        if device not in ("cpu", "cuda"):
            raise Unknown(f"there is no device {device!r} in the suite: there are cpu, cuda")
    wanted = [case for case in CASES if not cases or any(case.name.startswith(text) for text in cases)]
    if not wanted:
        raise Unknown(f"no case begins with {', '.join(cases)}: there are {', '.join(case.name for case in CASES)}")
    taking_part = list(libraries) or [name for name, client in CLIENTS.items() if client.is_installed()]
    planned = Plan(tuple(_jobs(taking_part, devices, wanted)))
    if not planned.jobs:
        raise Unknown(f"nothing to test: none of {', '.join(taking_part)} has arrays on {', '.join(devices)}")
    return planned


def follow(what: Plan, *, jobs: int | None = None, limit: int = LIMIT) -> Generator[Result, None, None]:
    """Runs it, and gives each result as soon as it is known."""
    told: queue.SimpleQueue[Result | None] = queue.SimpleQueue()
    processes = _Run(limit, told)
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        try:
            taken = [pool.submit(processes.take, job) for job in what.jobs]
            left = len(taken)
            while left:
                result = told.get()
                if result is None:
                    left -= 1
                else:
                    yield result
            for each in taken:
                each.result()
        finally:
            processes.stop()


def run(
    libraries: Sequence[str] = (),
    *,
    devices: Sequence[str] = ("cpu",),
    cases: Sequence[str] = (),
    jobs: int | None = None,
    limit: int = LIMIT,
    tell: Callable[[Result], object] | None = None,
) -> list[Result]:
    """Runs the suite.

    libraries: names, or "MODULE:CLASS" of a class derived from Client; all known ones that are installed if none is
    given. devices: "cpu", "cuda". cases: texts, of which a case's name begins with one; all if none is given. jobs: how
    many processes at a time, as many as there are cores by default. limit: how many seconds a case may take. `tell` is
    called with each result once it is known. Raises Unknown.
    """
    planned = plan(libraries, devices=devices, cases=cases)
    results = []
    for result in follow(planned, jobs=jobs, limit=limit):
        results.append(result)
        if tell is not None:
            tell(result)
    return planned.in_order(results)
