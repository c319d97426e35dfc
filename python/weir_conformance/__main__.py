"""``python -m weir_conformance``, which is ``weir conformance``.

Exit status: 0 clean, 1 findings, 2 wrong use, or nothing tested.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from weir_conformance._cases import CASES
from weir_conformance._clients import CLIENTS, Unknown
from weir_conformance._outcome import Result, Verdict
from weir_conformance._report import Lines, as_json, as_markdown
from weir_conformance._runner import LIMIT, follow, plan


def write(to: Path, text: str) -> None:
    """Replaces the file: whenever the run is ended, the file is whole."""
    new = to.with_name(to.name + ".new")
    new.write_text(text)
    new.replace(to)


def _fail(why: str) -> int:
    print(f"weir conformance: {why}", file=sys.stderr)
    return 2


def _why_nothing_was_tested(results: Sequence[Result]) -> str:
    """Empty if something was tested: that no library offers what a case needs is no test."""
    if any(each.outcome.verdict is not Verdict.NOT_OFFERED for each in results):
        return ""
    notes = Counter(" ".join(each.outcome.note.split()) for each in results if each.outcome.note)
    reason = f": {notes.most_common(1)[0][0]}" if notes else ""
    return f"nothing was tested, since no case is offered here{reason}"


def main(arguments: list[str] | None = None) -> int:
    """Runs the suite as the command line says."""
    try:
        return _run(arguments)
    except BrokenPipeError:
        # The reader has gone, as `head` does. What is buffered must not be written at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except OSError as error:
        return _fail(str(error))


def _run(arguments: list[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="weir conformance",
        description="Whether array libraries hand memory to each other without races, each case in a process.",
        epilog=f"Libraries: {', '.join(CLIENTS)}; or MODULE:CLASS, derived from weir_conformance.Client.",
    )
    parser.add_argument("library", nargs="*", help="a library to test; all that are installed by default")
    parser.add_argument("--device", action="append", choices=["cpu", "cuda"], help="cpu by default; may be given twice")
    parser.add_argument("--case", action="append", default=[], metavar="TEXT", help="only cases whose names begin so")
    parser.add_argument("--jobs", type=int, help="processes at a time; the number of cores by default")
    parser.add_argument("--limit", type=int, default=LIMIT, help=f"seconds that a case may take, {LIMIT} by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there, as they come")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write tables there")
    parser.add_argument("--list", action="store_true", help="print the cases, and end")
    parser.add_argument("--findings", action="store_true", help="print findings only")
    given = parser.parse_args(arguments)
    if given.list:
        width = max(len(case.name) for case in CASES)
        print("\n".join(f"{case.name.ljust(width)}  {case.about}" for case in CASES))
        return 0

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)  # so that what runs is ended, too

    signal.signal(signal.SIGTERM, end)
    results: list[Result] = []
    try:
        planned = plan(given.library, devices=given.device or ["cpu"], cases=given.case)
    except Unknown as error:
        return _fail(str(error))
    # A file that cannot be written is known before the run, not after it.
    if given.json:
        write(given.json, as_json([]))
    if given.markdown:
        write(given.markdown, "")
    cases, devices, producers, consumers = planned.names
    lines = Lines(cases, devices, [*producers, *consumers])
    print(lines.head, flush=True)
    with contextlib.closing(follow(planned, jobs=given.jobs, limit=given.limit)) as running:
        for result in running:
            results.append(result)
            if given.json:
                write(given.json, as_json(planned.in_order(results)))
            if result.is_finding or not given.findings:
                print(lines.of(result), flush=True)
            if sys.stderr.isatty():
                sys.stderr.write(f"\r\x1b[K{len(results)} of {planned.results}\r")
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    results = planned.in_order(results)
    counts = Counter(each.outcome.verdict.value for each in results)
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    if given.markdown:
        write(given.markdown, as_markdown(results))
    if why := _why_nothing_was_tested(results):
        return _fail(why)
    return 1 if any(each.is_finding for each in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
