"""cmake/ccache.sh: a precompiled header is known by the text of its headers, and depends on each of them."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "cmake" / "ccache.sh"
COMPILER = shutil.which("g++")


@unittest.skipIf(COMPILER is None, "there is no g++, whose precompiled headers this is about")
class PrecompiledHeader(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = Path(self.folder.name)
        (self.at / "all.hxx").write_text('#include "one.hpp"\n')
        (self.at / "all.cxx").write_text("")

    def tearDown(self):
        self.folder.cleanup()

    def checksum(self, text):
        """That of the header made with this text in it, as CMake makes it. Headers are precompiled without ccache."""
        (self.at / "one.hpp").write_text("#pragma once\n" + text)
        command = [COMPILER, "-fpch-preprocess", "-x", "c++-header", "-include", str(self.at / "all.hxx"), "-MD", "-MT"]
        command += ["all.hxx.gch", "-MF", "all.hxx.gch.d", "-o", "all.hxx.gch", "-c", str(self.at / "all.cxx")]
        subprocess.run(["sh", str(SCRIPT), "no-ccache", *command], cwd=self.at, check=True, env=os.environ)
        self.assertTrue((self.at / "all.hxx.gch").is_file())
        self.assertIn("one.hpp", (self.at / "all.hxx.gch.d").read_text())
        return (self.at / "all.hxx.gch.sum").read_text()

    def test_its_checksum_is_that_of_the_text(self):
        first = self.checksum("struct one {};\n")
        self.assertNotEqual(self.checksum("struct another {};\n"), first)
        self.assertEqual(self.checksum("struct one {};\n"), first)


if __name__ == "__main__":
    sys.exit(unittest.main())
