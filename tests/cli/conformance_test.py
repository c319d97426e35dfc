"""weir conformance, which is a program of the Python package. Usage: conformance_test.py WEIR"""

import os
import tempfile
from pathlib import Path

from command import CommandTest, main

PACKAGE = Path(__file__).parents[2] / "python"


class Conformance(CommandTest):
    def test_runs_the_python_program(self):
        result = self.run_weir("conformance", "--list", PYTHONPATH=str(PACKAGE))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("A6 both dropped", result.stdout)

    def test_passes_arguments_and_the_exit_status_on(self):
        result = self.run_weir("conformance", "no-such-library", PYTHONPATH=str(PACKAGE))
        self.assertEqual(result.returncode, 2)
        self.assertIn("no library 'no-such-library'", result.stderr)

    def test_says_what_to_install_where_the_package_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            python = Path(folder) / "python3"
            # An interpreter that sees no packages but its own.
            python.write_text(f'#!/bin/sh\nexec {os.path.realpath("/proc/self/exe")} -I "$@"\n')
            python.chmod(0o755)
            result = self.run_weir("conformance", "--list", PATH=folder, PYTHONPATH=str(PACKAGE))
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("weir-streams", result.stderr)

    def test_says_that_python_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_weir("conformance", PATH=folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn("python3", result.stderr)


if __name__ == "__main__":
    main()
