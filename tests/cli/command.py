"""Runs the weir command for tests."""

import os
import subprocess
import sys
import unittest


class CommandTest(unittest.TestCase):
    """A test of the command whose path is the program's first argument."""

    command = None

    def run_weir(self, *arguments, **environment):
        return subprocess.run(
            [self.command, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )

    def expect_refusal(self, words, *arguments, **environment):
        """Exit status 2 and one line of explanation that has these words."""
        result = self.run_weir(*arguments, **environment)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn(words, result.stderr)
        return result


def main():
    CommandTest.command = sys.argv.pop(1)
    unittest.main()
