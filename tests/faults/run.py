#!/usr/bin/env python3
"""Shows that the tests detect faults: each planted fault must be caught by its subset of the tests, within 20 seconds, or
three times as long as the subset takes without a fault, where that is more.

Usage: run.py PROGRAM TREE [NAME...]
       run.py --known TREE [NAME...]     (whether nothing is left to run: then no program is needed)

PROGRAM holds all tests and all faults (see plant.py), and was built from TREE. Without a fault, every subset must pass. A
subset that runs no test, or that needs more than the time allowed, has caught nothing: neither has one that hangs.

What passed, and what was caught, is remembered by the content of TREE and by the machine's compiler and system
(found_clean.py): for the same sources in another clone it is not run again.
"""

from __future__ import annotations

import concurrent.futures
import functools
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

from plant import read_faults

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from found_clean import FoundClean, content_name  # noqa: E402

SECONDS = 20
SECONDS_WITHOUT = 120  # on a slow machine, and the first time that kernels are compiled
TIMES = 3


def run_tests(program: str, subset: str, fault: str, seconds: float) -> tuple[str, float, str]:
    """Runs a subset: "passed", "failed", "hangs" or "empty", the seconds it took, and the first test that failed."""
    # Few random programs: a fault breaks many of them. The first failure is enough.
    environment = os.environ | {"WEIR_TEST_PROGRAMS": "400", "WEIR_PLANTED_FAULT": fault}
    start = time.monotonic()
    command = [program, f"--gtest_filter={subset}", "--gtest_fail_fast", "--gtest_brief=1"]
    try:
        done = subprocess.run(command, env=environment, timeout=seconds, text=True, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return "hangs", time.monotonic() - start, ""
    took = time.monotonic() - start
    ran = re.search(r"^\[==========\] (\d+) tests? from", done.stdout, re.MULTILINE)
    if done.returncode == 0:
        return ("passed" if ran and int(ran.group(1)) > 0 else "empty"), took, ""
    first = re.search(r"^\[  FAILED  \] (\S+)", done.stdout, re.MULTILINE)
    ended = f"ended by signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return "failed", took, first.group(1).rstrip(",") if first else ended


@functools.cache
def built_from(tree: pathlib.Path) -> bytes:
    """What the program depends on: the sources, the script that says how they are compiled, the compiler, and the system."""
    compiler = [os.environ.get("CXX", "c++"), "--version"]
    version = subprocess.run(compiler, capture_output=True, check=False).stdout
    parts = [version, platform.platform().encode(), (ROOT / "run").read_bytes()]
    for file in sorted(file for file in tree.rglob("*") if file.is_file()):
        parts += [str(file.relative_to(tree)).encode(), file.read_bytes()]
    return content_name(*parts).encode()


class Known:
    """What an earlier run has shown of the same tree: a subset without a fault, or with one."""

    def __init__(self, tree: pathlib.Path) -> None:
        self._tree = tree
        self._found = FoundClean("faults")

    def name(self, subset: str, fault: str) -> str:
        """The name of one run of a subset; no fault is the control."""
        return content_name(built_from(self._tree), subset.encode(), fault.encode())

    def has(self, subset: str, fault: str) -> bool:
        """Whether it had the result that it should have."""
        return self.name(subset, fault) in self._found

    def note(self, subset: str, fault: str) -> None:
        """It had."""
        self._found.note(self.name(subset, fault))


def main(program: str, tree: pathlib.Path, names: list[str]) -> int:
    faults = read_faults(tree / "tests/faults/faults.toml")
    unknown = set(names) - {fault["name"] for fault in faults}
    if unknown:
        print(f"run.py: no such fault: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [fault for fault in faults if not names or fault["name"] in names]
    known = Known(tree)
    left = [fault for fault in chosen if not known.has(fault["caught_by"], fault["name"])]
    subsets = sorted({fault["caught_by"] for fault in chosen})
    controls = sorted({fault["caught_by"] for fault in left} | {one for one in subsets if not known.has(one, "")})
    if program == "--known":
        return 1 if left or controls else 0
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        limits: dict[str, float] = {}
        without = pool.map(lambda subset: run_tests(program, subset, "", SECONDS_WITHOUT), controls)
        for subset, (result, took, _) in zip(controls, without):
            limits[subset] = max(SECONDS, TIMES * took) if result == "passed" else SECONDS
            if result == "passed":
                known.note(subset, "")
            else:
                missed += 1
                print(f"CONTROL {result}: without a fault, {subset} ({took:.1f} s)")
        results = pool.map(
            lambda fault: run_tests(program, fault["caught_by"], fault["name"], limits[fault["caught_by"]]), left
        )
        for fault, (result, took, by) in zip(left, results):
            if result == "failed":
                if known.has(fault["caught_by"], ""):
                    known.note(fault["caught_by"], fault["name"])
                print(f"caught  {took:5.1f} s  {fault['name']:34} by {by}")
            else:
                missed += 1
                print(f"MISSED  {took:5.1f} s  {fault['name']:34} {result}: {fault['caught_by']}")
    if len(left) < len(chosen):
        print(f"{len(chosen) - len(left)} of {len(chosen)} faults were caught in an earlier run of the same sources")
    total = len(chosen) + len(subsets)
    print(f"{total - missed} passed, {missed} failed, 0 skipped")
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]))
