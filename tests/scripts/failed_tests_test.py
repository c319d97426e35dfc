#!/usr/bin/env python3
"""Tests of scripts/failed_tests.py: what it tells of the reports of CTest and pytest."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/failed_tests.py"

GOOGLETEST = """<testsuite><testcase name="unit.Good"><system-out>fine</system-out></testcase>
<testcase name="unit.Bad"><failure message="Failed"/><system-out>[ RUN      ] Bad.One
[       OK ] Bad.One (0 ms)
bad_test.cpp:7: Failure
Expected equality
[  FAILED  ] Bad.One
[----------] 2 tests</system-out></testcase></testsuite>"""
PYTEST = """<testsuites><testsuite><testcase file="test_a.py" name="test_it"><failure message="AssertionError: no">def test_it():
&gt;   assert False
E   assert False

test_a.py:3: AssertionError</failure></testcase></testsuite></testsuites>"""


class FailedTests(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def told(self, *arguments: str, **reports: str) -> list[str]:
        for name, text in reports.items():
            (self.folder / name).write_text(text)
        command = [sys.executable, str(SCRIPT), *arguments]
        return subprocess.run(command, cwd=self.folder, text=True, capture_output=True, check=True).stdout.splitlines()

    def test_what_failed_is_told_without_what_passed(self) -> None:
        self.assertEqual(
            self.told("first", "not-there", first=GOOGLETEST),
            ["FAILED unit.Bad (first): Failed", "    bad_test.cpp:7: Failure", "    Expected equality", "    [  FAILED  ] Bad.One"],
        )

    def test_of_pytest_the_errors_are_told(self) -> None:
        self.assertEqual(
            self.told("first", first=PYTEST),
            ["FAILED test_a.py::test_it (first): AssertionError: no", "    E   assert False", "    test_a.py:3: AssertionError"],
        )

    def test_many_share_the_lines(self) -> None:
        many = "".join(f'<testcase name="t{i}"><failure message="F"/><system-out>{"x&#10;" * 50}</system-out></testcase>' for i in range(4))
        lines = self.told("--lines", "20", "first", first=f"<testsuite>{many}</testsuite>")
        self.assertEqual(len(lines), 4 + 20)

    def test_nothing_is_said_where_all_passed(self) -> None:
        self.assertEqual(self.told("first", first='<testsuite><testcase name="a"/></testsuite>'), [])

    def test_what_passes_by_itself_is_unsteady(self) -> None:
        again = '<testsuite><testcase name="unit.Bad"/></testsuite>'
        self.assertEqual(
            self.told("--unsteady", "first", "again", first=GOOGLETEST, again=again),
            ["UNSTEADY unit.Bad: failed, and passed by itself"],
        )
        self.assertEqual(self.told("--unsteady", "first", "again", again=GOOGLETEST), [])
        self.assertEqual(self.told("--unsteady", "first", "again", again="<testsuite/>"), [], "it did not run again")


if __name__ == "__main__":
    unittest.main()
