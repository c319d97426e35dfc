#!/usr/bin/env python3
"""Tests of scripts/check_links.py: it reports what it should."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from check_links import check_page  # noqa: E402


class CheckLinks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.write("there.md", "# A page\n\n## `check`: what does it see?\n")
        self.write("there.html", '<h1 id="a-page">A page</h1>')

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def broken(self, name, text):
        return list(check_page(self.write(name, text)))

    def test_links_that_lead_somewhere(self):
        text = "# Here\n[1](there.md) [2](there.md#check-what-does-it-see) [3](#here) [4](https://example.org/x) [5](.)"
        self.assertEqual(self.broken("page.md", text), [])
        text = '<a href="there.html">1</a> <a href="there.html#a-page">2</a> <a href="//example.org">3</a>'
        self.assertEqual(self.broken("page.html", text), [])

    def test_a_file_that_is_not_there(self):
        self.assertEqual(self.broken("page.md", "[1](gone.md) ![2](gone.svg)"), ["gone.md", "gone.svg"])
        self.assertEqual(self.broken("page.html", '<a href="gone.html">1</a><img src="gone.svg">'), ["gone.html", "gone.svg"])

    def test_an_anchor_that_is_not_there(self):
        self.assertEqual(self.broken("page.md", "[1](there.md#gone) [2](#gone)"), ["there.md#gone", "#gone"])
        self.assertEqual(self.broken("page.html", '<a href="there.html#gone">1</a>'), ["there.html#gone"])

    def test_code_is_no_link(self):
        self.assertEqual(self.broken("page.md", "`x[](gone)`\n```cpp\nf([](int) {}); g[i](gone);\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
