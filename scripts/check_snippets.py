#!/usr/bin/env python3
"""Check that the code in the documentation is the code that the tests run.

A block of code below a line `<!-- PATH -->` must stand, line for line, in the file PATH, and each block of C++ or Python must
have such a line. Prints each block that does not, and exits with 1 if there is one.

Usage: check_snippets.py [ROOT]
"""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"<!-- (?P<path>\S+) -->\n```\w*\n(?P<code>.*?)```", re.DOTALL)
UNTESTED = re.compile(r"(?<! -->\n)```(?:cpp|python)\n")


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    count = 0
    mistakes = 0
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            count += 1
            source = root / block["path"]
            if not source.is_file() or block["code"] not in source.read_text(encoding="utf-8"):
                line = text.count("\n", 0, block.start()) + 1
                print(f"{page.relative_to(root)}:{line}: the code differs from {block['path']}")
                mistakes += 1
        for block in UNTESTED.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            print(f"{page.relative_to(root)}:{line}: the code is of no file: put it into an example, and name that above it")
            mistakes += 1
    print(f"snippets: {count} blocks, {mistakes} that differ")
    return 1 if mistakes or not count else 0


if __name__ == "__main__":
    sys.exit(main())
