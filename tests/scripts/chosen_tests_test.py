#!/usr/bin/env python3
"""Tests of scripts/chosen_tests.py: the programs and the patterns for the names that developers give."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import chosen_tests  # noqa: E402


class ChosenTests(unittest.TestCase):
    def matches(self, name: str, test: str) -> bool:
        return any(re.fullmatch(pattern, test) for pattern in chosen_tests.chosen(name)[1])

    def test_a_program(self) -> None:
        self.assertEqual(chosen_tests.chosen("unit-dlpack")[0], {"unit-dlpack"})
        self.assertEqual(chosen_tests.chosen("fft")[0], {"unit-fft", "conformance-fft"})
        self.assertTrue(self.matches("unit-parallel", "unit.Devices/Parallel.SomeTest/0"), "a suite with parameters")

    def test_a_file_with_and_without_its_folder_and_ending(self) -> None:
        for name in ("sparse_solver_test", "sparse_solver_test.cpp", "tests/conformance/sparse_solver_test.cpp"):
            self.assertEqual(chosen_tests.chosen(name)[0], {"conformance-sparse"})
            self.assertTrue(self.matches(name, "conformance.E9.OperandsThatDoNotFit/sim"))
        self.assertEqual(chosen_tests.chosen("solver_test.cpp"), (set(), set()), "the end of a name is none")

    def test_a_test(self) -> None:
        for name in ("E9.OperandsThatDoNotFit", "OperandsThatDoNotFit"):
            self.assertEqual(chosen_tests.chosen(name)[0], {"conformance-sparse"})
            self.assertTrue(self.matches(name, "conformance.E9.OperandsThatDoNotFit/sim"))
            self.assertFalse(self.matches(name, "conformance.E9.OperandsThatDoNotFitEither/sim"))

    def test_python(self) -> None:
        for name in ("test_borrow", "python/tests/test_borrow.py", "python.borrow"):
            self.assertEqual(chosen_tests.chosen(name), (chosen_tests.PYTHON, {r"python\.borrow"}))

    def test_others(self) -> None:
        self.assertEqual(chosen_tests.chosen("cli.demo"), (chosen_tests.COMMAND, {r"cli\.demo"}))
        self.assertEqual(chosen_tests.chosen("example.kernel"), ({"example-kernel"}, {r"example\.kernel"}))
        self.assertIn("conformance-sparse", chosen_tests.chosen("conformance-sparse-pardiso")[0])

    def test_a_script(self) -> None:
        for name in ("scripts.tidy_test", "tests/scripts/tidy_test.py", "test_a_finding_is_looked_at_again"):
            self.assertEqual(chosen_tests.chosen(name), (set(), {r"scripts\.tidy_test"}))

    def test_many_suites_are_few_parentheses(self) -> None:
        of_all = chosen_tests.chosen("conformance-sparse")[1] | chosen_tests.chosen("unit-kernel")[1]
        self.assertLess("".join(of_all).count("("), 16, "CTest takes 32 pairs")

    def test_no_test(self) -> None:
        self.assertEqual(chosen_tests.chosen("nothing"), (set(), set()))
        self.assertEqual(chosen_tests.chosen(".*"), (set(), set()))


if __name__ == "__main__":
    unittest.main()
