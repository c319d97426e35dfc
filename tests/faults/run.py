#!/usr/bin/env python3
"""Shows that the tests detect faults: each planted fault must be caught by its subset of the tests, within 20 seconds, or
three times as long as the subset takes without a fault, where that is more.

Usage: run.py PROGRAM FAULTS [NAME...]

PROGRAM holds all tests and all faults (see plant.py), FAULTS is faults.toml. Without a fault, every subset must pass. A
subset that runs no test, or that needs more than the time allowed, has caught nothing: neither has one that hangs.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

from plant import read_faults

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


def main(arguments: list[str]) -> int:
    program, faults = arguments[0], read_faults(pathlib.Path(arguments[1]))
    chosen = [fault for fault in faults if len(arguments) == 2 or fault["name"] in arguments[2:]]
    subsets = sorted({fault["caught_by"] for fault in chosen})
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        limits: dict[str, float] = {}
        without = pool.map(lambda subset: run_tests(program, subset, "", SECONDS_WITHOUT), subsets)
        for subset, (result, took, _) in zip(subsets, without):
            limits[subset] = max(SECONDS, TIMES * took) if result == "passed" else SECONDS
            if result != "passed":
                missed += 1
                print(f"CONTROL {result}: without a fault, {subset} ({took:.1f} s)")
        results = pool.map(
            lambda fault: run_tests(program, fault["caught_by"], fault["name"], limits[fault["caught_by"]]), chosen
        )
        for fault, (result, took, by) in zip(chosen, results):
            if result == "failed":
                print(f"caught  {took:5.1f} s  {fault['name']:34} by {by}")
            else:
                missed += 1
                print(f"MISSED  {took:5.1f} s  {fault['name']:34} {result}: {fault['caught_by']}")
    total = len(chosen) + len(subsets)
    print(f"{total - missed} passed, {missed} failed, 0 skipped")
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
