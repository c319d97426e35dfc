"""Runs the weir command for tests."""

import os
import subprocess
import sys
import unittest
from pathlib import Path


def fake_cuda(folder, without=(), **more):
    """The environment in which the command uses the fake CUDA driver and compiler, and keeps compiled kernels in `folder`.

    without: functions of the driver's that shall not be there.
    """
    driver = os.environ["WEIR_TEST_FAKE_CUDA"]
    if without:
        code = Path(driver).read_bytes()
        for name in without:
            symbol = b"\0" + name.encode() + b"\0"
            assert code.count(symbol) > 0, name
            code = code.replace(symbol, b"\0no" + symbol[3:])
        driver = Path(folder) / "driver.so"
        driver.write_bytes(code)
    return {
        "WEIR_CUDA_DRIVER": str(driver),
        "WEIR_NVRTC_LIBRARY": os.environ["WEIR_TEST_FAKE_NVRTC"],
        "WEIR_CACHE_DIR": str(folder),
        "WEIR_PREPARE": "0",
        **more,
    }


def cuda(folder):
    """The same, unless WEIR_CUDA_DRIVER names a driver for the tests to use."""
    return {} if os.environ.get("WEIR_CUDA_DRIVER") else fake_cuda(folder)


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
