"""Cases of one pair of libraries: ``python -m weir_conformance._worker DEVICE LIMIT PLACES [NUMBER]``.

PLACES: a JSON list of [case, producer, consumer]. NUMBER: of the one to run, in this very process; all by default.

Each case runs in a fork of this process, which has imported the libraries and uses neither: so a pair is imported once.
CUDA does not survive a fork. If an import initialises CUDA, each case gets a new interpreter instead. Prints lines of
JSON for each case: the outcome, and how its process ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import traceback
import warnings
from pathlib import Path

from weir_conformance._cases import CASES
from weir_conformance._clients import Client, NotOffered, client_named
from weir_conformance._outcome import Outcome, Verdict

# Seconds after a case's own limit until its process is killed: a library may have changed what the alarm does.
GRACE = 5

_CUDA_ERROR_NOT_INITIALIZED = 3


def outcome_of(place: list[str], clients: dict[str, Client]) -> Outcome:
    """Runs the case."""
    name, *sides = place
    case = next(each for each in CASES if each.name == name)
    taking_part = [library for library in sides if library]
    for library in dict.fromkeys(taking_part):
        client = clients[library]
        if not client.has_device():
            return Outcome(Verdict.NOT_OFFERED, f"{library} does not work on {client.device} here")
    try:
        return case.run(*(clients[library] for library in taking_part))
    except NotOffered as why:
        return Outcome(Verdict.NOT_OFFERED, str(why))
    except Exception as error:
        traceback.print_exc()
        return Outcome(
            Verdict.WRONG_ERROR, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        )


def tell(**what: object) -> None:
    """A line for the runner."""
    os.write(1, f"\nWEIR_CONFORMANCE {json.dumps(what)}\n".encode())


def run_case(number: int, place: list[str], clients: dict[str, Client], limit: int) -> None:
    """Runs the case in this process."""
    signal.alarm(limit)
    outcome = outcome_of(place, clients)
    tell(number=number, verdict=outcome.verdict.value, note=outcome.note, control=outcome.control_failed)


def cuda_is_initialised() -> bool:
    """Whether this process has initialised the CUDA driver."""
    # A driver that is not loaded is not loaded here: the question would cost a child some time, and answers itself.
    if "libcuda.so" not in Path("/proc/self/maps").read_text():
        return False
    count = ctypes.c_int()
    return int(ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))) != _CUDA_ERROR_NOT_INITIALIZED


def await_end(child: int, limit: int) -> tuple[int, bool]:
    """How the child ended, and whether it had to be killed."""
    killed = threading.Event()

    def kill() -> None:
        killed.set()
        os.kill(child, signal.SIGKILL)

    timer = threading.Timer(limit + GRACE, kill)
    timer.start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    timer.cancel()
    timer.join()  # the next fork is of one thread
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), killed.is_set()


def main() -> None:
    warnings.simplefilter("ignore")
    device, seconds, listed, *alone = sys.argv[1:]
    limit, places = int(seconds), json.loads(listed)
    names = sorted({name for _, *sides in places for name in sides if name})
    clients = {name: client_named(name)(device) for name in names}
    if alone:
        number = int(alone[0])
        run_case(number, places[number], clients, limit)
        return
    forks = device != "cuda" or not cuda_is_initialised()
    for number, place in enumerate(places):
        if forks:
            child = os.fork()
            if child == 0:
                run_case(number, place, clients, limit)
                return
        else:
            command = [sys.executable, "-m", __spec__.name, *sys.argv[1:], str(number)]
            child = os.posix_spawn(sys.executable, command, os.environ)
        status, killed = await_end(child, limit)
        tell(number=number, ended=status, killed=killed)


if __name__ == "__main__":
    main()
