#!/usr/bin/env python3
"""Print each failed test of the JUnit reports of CTest and pytest, with the lines of its output that say what failed.

usage: failed_tests.py [--lines N] REPORT...        (N lines of output at most, of all tests together; reports that do not exist are left out)
       failed_tests.py --unsteady FIRST AGAIN       (prints the tests that failed in the first report, and passed in the second)
"""

import re
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

LINES = 30
LEAST = 3  # lines of each test, however many failed
COLUMNS = 200
# What GoogleTest and CTest print of tests that pass, and around them.
PROGRESS = re.compile(r"\s*$|\[ +(RUN|OK|PASSED|DISABLED) +\]|\[[-=]+\]|Running main|Note: Google Test| *\d+ FAILED TEST")


def failures(path: Path) -> dict[str, tuple[str, list[str]]]:
    """The failed tests of a report: name, to why and to what was printed."""
    found: dict[str, tuple[str, list[str]]] = {}
    if not path.is_file():
        return found
    for case in tree.parse(path).iter("testcase"):
        failure = next((one for one in case if one.tag in ("failure", "error")), None)
        if failure is None:
            continue
        name = case.get("name", "")
        if case.get("file"):  # pytest's
            name = f"{case.get('file')}::{name}"
        text = (failure.text or "").strip() or case.findtext("system-out") or ""
        message = (failure.get("message") or failure.tag).splitlines()
        found[name] = (message[0] if message else "", told(text.splitlines()))
    return found


def told(lines: list[str]) -> list[str]:
    """The lines that say what failed: of pytest's the errors, of others all but what is printed of tests that pass."""
    errors = [line for line in lines if re.match(r"E  |\S+:\d+: ", line)]
    if any(line.startswith("E  ") for line in errors):
        return errors
    return [line for line in lines if not PROGRESS.match(line)]


def report(limit: int, paths: list[Path]) -> None:
    """Prints the failed tests of all reports."""
    all_of_them = [(path, name, *what) for path in paths for name, what in failures(path).items()]
    if not all_of_them:
        return
    each = max(LEAST, limit // len(all_of_them))
    for path, name, why, lines in all_of_them:
        print(f"FAILED {name} ({path}): {why}"[:COLUMNS])
        for line in lines[:each]:
            print("    " + line[:COLUMNS])


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--unsteady"] and len(arguments) == 3:
        first, again = (Path(argument) for argument in arguments[1:])
        ran = {case.get("name") for case in tree.parse(again).iter("testcase")} if again.is_file() else set()
        for name in failures(first).keys() & ran - failures(again).keys():
            print(f"UNSTEADY {name}: failed, and passed by itself")
        return 0
    limit = LINES
    if arguments[:1] == ["--lines"] and len(arguments) > 2:
        limit = int(arguments[1])
        arguments = arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    report(limit, [Path(argument) for argument in arguments])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
