#!/usr/bin/env python3
"""Tests of scripts/check_includes.py: what a file should include, and should not, is found, other things are not.

The tool's words are given here; where the tool is installed, it is asked about planted files as well.
"""

import os
import shutil
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_includes  # noqa: E402

FILES = {
    "include/weir/weir.hpp": '#pragma once\n#include "weir/near.hpp"\n',
    "include/weir/near.hpp": '#pragma once\n#include "weir/mid.hpp"\nstruct near { mid m; };\n',
    "include/weir/mid.hpp": '#pragma once\n#include "weir/far.hpp"\nstruct mid { far f; };\n',
    "include/weir/far.hpp": "#pragma once\nstruct far { int i = 0; };\n",
    "src/use/use.hpp": "#pragma once\nint use();\n",
}


def words(file, add=(), remove=()):
    lines = lambda what: "".join(f"{one}\n" for one in what)  # noqa: E731
    return (f"\n{file} should add these lines:\n{lines(add)}\n{file} should remove these lines:\n{lines(remove)}\n"
            f"The full include-list for {file}:\n#include <vector>\n---\n")


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def judged(self, text, **said):
        self.write("src/use/use.cpp", text)
        return check_includes.judge(words("src/use/use.cpp", **said), self.root)

    def test_what_is_used_comes_from_near(self):
        near = '#include "use/use.hpp"\n#include "weir/near.hpp"\n'
        self.assertEqual(self.judged(near, add=['#include "weir/mid.hpp"', "#include <vector>"]), set())
        self.assertEqual(self.judged(near, add=['#include "weir/far.hpp"']), {("src/use/use.cpp", "add", "weir/far.hpp")})

    def test_what_is_not_used_is_found_and_gives_nothing(self):
        said = {"add": ['#include "weir/mid.hpp"'], "remove": ['- #include "weir/near.hpp"  // lines 2-2', "- #include <map>"]}
        self.assertEqual(self.judged('#include "weir/near.hpp"\n', **said),
                         {("src/use/use.cpp", "remove", "weir/near.hpp"), ("src/use/use.cpp", "add", "weir/mid.hpp")})

    def test_a_header_that_includes_others_may_stand_for_them(self):
        said = {"add": ['#include "weir/near.hpp"'], "remove": ['- #include "weir/weir.hpp"']}
        self.assertEqual(self.judged('#include "weir/weir.hpp"\n', **said), set())

    def test_mending(self):
        self.write("src/use/use.cpp", '#include "use/use.hpp"\n\n#include <map>\n\n#include "weir/mid.hpp"\n')
        check_includes.mend("src/use/use.cpp", "add", "weir/near.hpp", self.root)
        check_includes.mend("src/use/use.cpp", "remove", "weir/mid.hpp", self.root)
        self.assertEqual((self.root / "src/use/use.cpp").read_text(),
                         '#include "use/use.hpp"\n\n#include <map>\n\n#include "weir/near.hpp"\n')

    def asked(self, answer=None):
        """How often the tool is asked when src/use/use.cpp is looked at."""
        said = answer or words("src/use/use.cpp")
        with (unittest.mock.patch.dict(os.environ, {"WEIR_LINT_CACHE": str(self.root / "cache")}),
              unittest.mock.patch.object(check_includes, "ask", return_value=said) as ask):
            self.found = check_includes.mistakes("src/use/use.cpp", self.root)
        return ask.call_count

    def test_what_was_clean_is_not_asked_about_again(self):
        self.write("src/use/use.cpp", '#include "use/use.hpp"\n#include "weir/near.hpp"\n')
        self.assertEqual([self.asked(), self.asked()], [1, 0])
        self.write("include/weir/weir.hpp", "#pragma once\n")  # is not included
        self.assertEqual(self.asked(), 0)

    def test_a_change_of_what_comes_with_a_file_is_asked_about(self):
        self.write("src/use/use.cpp", '#include "weir/near.hpp"\n')
        self.asked()
        changes = {
            "src/use/use.cpp": '#include "weir/near.hpp"\n// more\n',
            "src/use/use.hpp": "#pragma once\nint use(int);\n",  # its own header is judged with it, included or not
            "include/weir/far.hpp": "#pragma once\nstruct far {};\n",
            "src/weir/near.hpp": "#pragma once\n",  # is before the one in include/
        }
        for file, text in changes.items():
            self.write(file, text)
            self.assertEqual([self.asked(), self.asked()], [1, 0], file)
        with unittest.mock.patch.object(check_includes, "settings", return_value=b"another version of the tool"):
            self.assertEqual(self.asked(), 1)

    def test_a_mistake_is_asked_about_again(self):
        self.write("src/use/use.cpp", '#include "weir/near.hpp"\n')
        for _ in range(2):
            self.assertEqual(self.asked(words("src/use/use.cpp", add=['#include "weir/far.hpp"'])), 1)
            self.assertEqual(self.found, {("src/use/use.cpp", "add", "weir/far.hpp")})

    def test_the_tool(self):
        if shutil.which(check_includes.TOOL) is None:
            self.skipTest(f"{check_includes.TOOL} is not installed")
        self.write("src/use/use.cpp", '#include "use/use.hpp"\n\n#include "weir/near.hpp"\n\n'
                                      "int use() { return far{}.i; }\n")
        found = check_includes.judge(check_includes.ask("src/use/use.cpp", self.root), self.root)
        self.assertEqual(found, {("src/use/use.cpp", "remove", "weir/near.hpp"), ("src/use/use.cpp", "add", "weir/far.hpp")})
        for file, what, text in sorted(found):
            check_includes.mend(file, what, text, self.root)
        self.assertEqual(check_includes.judge(check_includes.ask("src/use/use.cpp", self.root), self.root), set())
        self.write("src/use/use.cpp", "int use() { return nothing; }\n")
        with self.assertRaisesRegex(RuntimeError, "nothing"):
            check_includes.ask("src/use/use.cpp", self.root)


if __name__ == "__main__":
    unittest.main()
