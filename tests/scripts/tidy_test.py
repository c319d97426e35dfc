#!/usr/bin/env python3
"""Tests of scripts/tidy.py: its calls of clang-tidy, which is a script here, and its use of the output."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import tidy  # noqa: E402

# Records its arguments and the file's text. Two sources, one of which says "clashes", do not compile together; "bad" is a finding.
TOOL = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
for word in "$@"; do case $word in *.cpp) file=$word ;; esac; done
all=$(cat "$file" $(sed -n 's/#include "\\(.*\\)".*/\\1/p' "$file"))
case $all in *clashes*) [ "$(grep -c include "$file")" -lt 2 ] || { echo "error: x [clang-diagnostic-error]"; exit 1; } ;; esac
case $all in *bad*) echo "error: y [bugprone-bad]"; exit 1 ;; esac
"""


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tool = self.folder / "tool"
        self.tool.write_text(TOOL)
        self.tool.chmod(0o755)

    def check(self, *texts):
        files = []
        for i, text in enumerate(texts):
            files.append(self.folder / f"source{i}.cpp")
            files[-1].write_text(text)
        return tidy.check(str(self.tool), self.folder / "together.cpp", files, ("-Ihere",))

    def asked(self):
        return (self.folder / "asked").read_text().splitlines()

    def test_all_at_once(self):
        self.assertEqual(self.check("good", "good", "good"), (True, ""))
        self.assertEqual(self.asked(), [f"--quiet {self.folder}/together.cpp -- -Ihere -Wno-shadow"])

    def test_a_finding_fails(self):
        good, said = self.check("good", "bad")
        self.assertFalse(good)
        self.assertEqual(said, "error: y [bugprone-bad]\n")

    def test_sources_that_clash_are_taken_apart(self):
        self.assertEqual(self.check("good", "clashes", "good", "good"), (True, ""))
        good, said = self.check("bad", "clashes")
        self.assertFalse(good)
        self.assertEqual(said.count("bugprone-bad"), 1)
        self.assertNotIn("clang-diagnostic-error", said)

    def test_aliases_are_looked_at_alone(self):
        self.assertTrue(self.check("good", "namespace a = b;")[0])
        self.assertIn(f"--quiet --checks=-*,misc-unused-alias-decls {self.folder}/source1.cpp -- -Ihere", self.asked())
        self.assertEqual(len(self.asked()), 2)


if __name__ == "__main__":
    unittest.main()
