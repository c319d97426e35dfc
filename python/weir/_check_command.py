"""`weir check`: runs a program of Python, and reports its races.

Exit status: 0 if there are none; 1 if there are; 2 if the program fails, if something could not be seen, or if the
command is used wrongly.
"""

from __future__ import annotations

import argparse
import contextlib
import runpy
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import weir
from weir._when_loaded import when_loaded

CLEAN, RACES, INCOMPLETE = 0, 1, 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weir check",
        usage="weir check [--mode MODE] [--json FILE] [--sarif FILE] (PROGRAM.py | -m MODULE) [ARGUMENT...]",
        description="Runs a program of Python, and reports on the standard error output which of its operations use "
        "the same memory with no order between them: those of Weir, and those of torch if the program imports it.",
        epilog="Exit status: 0 no races; 1 races; 2 the program failed, something could not be seen, or wrong use. "
        "For other programs set WEIR_CHECK=1.",
    )
    parser.add_argument(
        "--mode",
        choices=("collect", "warn", "raise"),
        default="collect",
        help="a report at the end (the default), a warning for each race as well, or an exception",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="the report for programs")
    parser.add_argument("--sarif", metavar="FILE", type=Path, help="the report for editors and code review")
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is the name of a module")
    parser.add_argument("program", metavar="PROGRAM", help="a file of Python, or with -m a module")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="the program's own")
    return parser


def _refuse(text: str) -> NoReturn:
    sys.stderr.write(f"weir check: {text}\n")
    raise SystemExit(INCOMPLETE)


@contextlib.contextmanager
def _watching_torch() -> Iterator[None]:
    """From the moment on when the program imports torch."""
    began = False

    def begin() -> None:
        nonlocal began
        from weir.torch import _hooks

        _hooks.watch()
        began = True

    when_loaded("torch", begin)
    try:
        yield
    finally:
        if began:
            from weir.torch import _hooks

            _hooks.watch_no_longer()


def _run(program: str, is_module: bool) -> bool:
    """Runs the program, and the threads that it leaves behind. Whether it ended as it should."""
    try:
        if is_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            sys.stderr.write(f"weir check: the program ended with {end.code!r}\n")
            return False
    except BaseException:
        traceback.print_exc()
        return False
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    return True


def main(arguments: list[str]) -> int:
    """Runs what the arguments say, in this process."""
    wanted = _parser().parse_args(arguments)
    if not wanted.module:
        if not Path(wanted.program).is_file():
            _refuse(f"there is no file {wanted.program}")
        if Path(wanted.program).read_bytes()[:4] == b"\x7fELF":
            _refuse(f"{wanted.program} is no program of Python: run it with WEIR_CHECK=1 in the environment")
        sys.path[0] = str(Path(wanted.program).resolve().parent)
    sys.argv = [wanted.program, *wanted.arguments]
    completed = False
    report = weir.check(mode=wanted.mode)
    try:
        with report, _watching_torch():
            completed = _run(wanted.program, wanted.module)
    except weir.RaceError as error:  # of a race that no call has told
        sys.stderr.write(f"{error}\n")
    sys.stdout.flush()
    sys.stderr.write(f"{report}\n")
    for file, made in ((wanted.json, report.to_json), (wanted.sarif, report.to_sarif)):
        if file is not None:
            file.write_text(made())
    if report.races:
        return RACES
    return CLEAN if completed and not report.unseen else INCOMPLETE
