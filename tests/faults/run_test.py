#!/usr/bin/env python3
"""Tests of run.py: with a program that stands for the tests, and counts how often it runs."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import tempfile
import unittest
import unittest.mock

import run

FAULTS = """
[[fault]]
name = "caught"
file = "a.cpp"
why = "a test fails with it"
original = "1"
mutant = "2"
caught_by = "Some.*"

[[fault]]
name = "missed"
file = "a.cpp"
why = "no test fails with it"
original = "3"
mutant = "4"
caught_by = "Other.*"
"""

PROGRAM = """#!/bin/sh
echo "$WEIR_PLANTED_FAULT" >>"$RUNS"
echo "[==========] 1 test from 1 suite ran."
[ "$WEIR_PLANTED_FAULT" != caught ] || { echo "[  FAILED  ] Some.Test (1 ms)"; exit 1; }
"""


class Run(unittest.TestCase):
    """Which faults are run, and what is said of them."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tree = self.folder / "tree"
        (self.tree / "tests/faults").mkdir(parents=True)
        (self.tree / "tests/faults/faults.toml").write_text(FAULTS)
        (self.tree / "a.cpp").write_text("int a = 1;")
        self.program = self.folder / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.runs = self.folder / "runs"
        environment = {"WEIR_LINT_CACHE": str(self.folder / "cache"), "RUNS": str(self.runs)}
        changed = unittest.mock.patch.dict(os.environ, environment)
        changed.start()
        self.addCleanup(changed.stop)

    def run_faults(self, *names: str) -> tuple[int, str, list[str]]:
        """The status, what was printed, and the faults that the program ran with, the empty name without one."""
        self.runs.write_text("")
        run.built_from.cache_clear()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = run.main(str(self.program), self.tree, list(names))
        return status, printed.getvalue(), sorted(self.runs.read_text().splitlines())

    def is_known(self, *names: str) -> bool:
        """Whether nothing is left to run."""
        run.built_from.cache_clear()
        return run.main("--known", self.tree, list(names)) == 0

    def test_a_fault_that_no_test_notices_is_missed(self) -> None:
        status, printed, ran = self.run_faults()
        self.assertEqual(status, 1)
        self.assertRegex(printed, r"caught .* by Some\.Test")
        self.assertRegex(printed, r"MISSED .* missed +passed: Other\.\*")
        self.assertIn("3 passed, 1 failed, 0 skipped", printed)
        self.assertEqual(ran, ["", "", "caught", "missed"])

    def test_what_was_caught_is_not_run_again_and_what_was_missed_is(self) -> None:
        self.run_faults()
        status, printed, ran = self.run_faults()
        self.assertEqual((status, ran), (1, ["", "missed"]))
        self.assertIn("1 of 2 faults were caught in an earlier run", printed)
        self.assertIn("3 passed, 1 failed, 0 skipped", printed)
        self.assertTrue(self.is_known("caught"))
        self.assertFalse(self.is_known())

    def test_the_same_sources_elsewhere_are_known(self) -> None:
        self.run_faults("caught")
        self.tree = self.tree.rename(self.folder / "another")
        self.assertTrue(self.is_known("caught"))

    def test_a_change_of_the_sources_runs_all_again(self) -> None:
        self.run_faults("caught")
        (self.tree / "a.cpp").write_text("int a = 5;")
        self.assertFalse(self.is_known("caught"))
        self.assertEqual(self.run_faults("caught")[2], ["", "caught"])

    def test_a_failure_without_a_fault_is_not_known(self) -> None:
        self.program.write_text(PROGRAM.replace("!= caught", "= none"))
        status, printed, ran = self.run_faults("caught")
        self.assertEqual((status, ran), (1, ["", "caught"]))
        self.assertRegex(printed, "CONTROL failed: without a fault, Some")
        self.assertFalse(self.is_known("caught"))

    def test_an_unknown_name_is_refused(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(run.main("--known", self.tree, ["cought"]), 2)
        self.assertIn("no such fault: cought", said.getvalue())


if __name__ == "__main__":
    unittest.main()
