#!/usr/bin/env python3
"""Tests of scripts/tidy.py: its calls of clang-tidy, which is a script here, and its use of the output."""

import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

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
        self.tool = self.folder / "clang-tidy"
        self.tool.write_text(TOOL)
        self.tool.chmod(0o755)
        os.environ["WEIR_LINT_CACHE"] = str(self.folder / "cache")

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


    def compiles(self):
        """From now on there is a compiler beside the tool, which only joins the texts."""
        compiler = self.folder / "clang++"
        compiler.write_text('#!/bin/sh\nfor file; do :; done\ncat "$file" $(sed -n \'s/#include "\\(.*\\)".*/\\1/p\' "$file")\n')
        compiler.chmod(0o755)

    def looks(self):
        """How often the tool was asked about sources."""
        return sum("--version" not in line for line in self.asked())

    def test_what_was_clean_is_not_looked_at_again(self):
        self.compiles()
        self.assertEqual(self.check("good", "good"), (True, ""))
        self.assertEqual(self.check("good", "good"), (True, ""))
        self.assertEqual(self.looks(), 1)
        self.assertEqual(self.check("good", "good // another comment"), (True, ""))
        self.assertEqual(self.looks(), 2)

    def test_comments_and_macros_are_part_of_what_is_remembered(self):
        """Without the comments, a source that lost its NOLINT would still count as clean."""
        compiler = self.folder / "clang++"
        compiler.write_text('#!/bin/sh\necho "$@" >> "$(dirname "$0")/compiled"\n')
        compiler.chmod(0o755)
        self.check("good")
        words = (self.folder / "compiled").read_text().split()
        self.assertLessEqual({"-Ihere", "-E", "-C", "-dD"}, set(words))

    def test_another_version_of_the_tool_or_other_checks_look_again(self):
        self.compiles()
        source = self.folder / "source0.cpp"
        source.write_text("good")
        names = set()
        with tempfile.TemporaryDirectory() as root, unittest.mock.patch.object(tidy, "ROOT", pathlib.Path(root)):
            for version, checks in (("14", "one"), ("15", "one"), ("15", "another")):
                self.tool.write_text(f"#!/bin/sh\necho version {version}\n")
                (pathlib.Path(root) / ".clang-tidy").write_text(checks)
                tidy.settings.cache_clear()
                names.add(tidy.content(str(self.tool), source, ("-Ihere",)))
        self.assertEqual(len(names - {None}), 3)

    def test_a_finding_is_looked_at_again(self):
        self.compiles()
        for _ in range(2):
            self.assertEqual(self.check("bad"), (False, "error: y [bugprone-bad]\n"))
        self.assertEqual(self.looks(), 2)

    def test_without_a_compiler_all_is_looked_at(self):
        for _ in range(2):
            self.assertEqual(self.check("good"), (True, ""))
        self.assertEqual(self.looks(), 2)


if __name__ == "__main__":
    unittest.main()
