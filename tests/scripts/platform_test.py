#!/usr/bin/env python3
"""CMake refuses systems that Weir cannot be built for, and warns of platforms that it is not tested on.

Usage: platform_test.py CMAKE
"""

import subprocess
import sys
import unittest
from pathlib import Path

CMAKE = sys.argv[1]
PLATFORM = Path(__file__).parents[2] / "cmake" / "WeirPlatform.cmake"
TESTED = {
    "SYSTEM_NAME": "Linux",
    "SYSTEM_PROCESSOR": "x86_64",
    "CXX_COMPILER_ID": "GNU",
    "CXX_COMPILER_VERSION": "12.2.0",
}


def configure(**other: str) -> tuple[int, str]:
    """The exit code, and what CMake says on such a platform."""
    options = [f"-DCMAKE_{name}={value}" for name, value in {**TESTED, **other}.items()]
    ran = subprocess.run([CMAKE, *options, "-P", str(PLATFORM)], capture_output=True, text=True, check=False)
    return ran.returncode, " ".join(ran.stderr.split())


class Platform(unittest.TestCase):
    def test_what_is_tested_passes_without_a_word(self) -> None:
        self.assertEqual((0, ""), configure())
        self.assertEqual((0, ""), configure(CXX_COMPILER_ID="Clang", CXX_COMPILER_VERSION="14.0.6"))

    def test_another_system_is_refused(self) -> None:
        code, said = configure(SYSTEM_NAME="Darwin")
        self.assertNotEqual(0, code)
        self.assertIn("Linux alone", said)
        self.assertIn("Darwin", said)

    def test_another_processor_is_warned_of(self) -> None:
        code, said = configure(SYSTEM_PROCESSOR="aarch64")
        self.assertEqual(0, code)
        self.assertIn("aarch64 is untested", said)

    def test_another_or_an_older_compiler_is_warned_of(self) -> None:
        code, said = configure(CXX_COMPILER_ID="IntelLLVM")
        self.assertEqual(0, code)
        self.assertIn("IntelLLVM is untested", said)
        for compiler, version in (("GNU", "11.4.0"), ("Clang", "13.0.1")):
            code, said = configure(CXX_COMPILER_ID=compiler, CXX_COMPILER_VERSION=version)
            self.assertEqual(0, code)
            self.assertIn(f"{compiler} {version} is untested", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
