#!/usr/bin/env python3
"""Print the name of each failed test in CTest's JUnit reports, and the end of what it printed.

usage: failed_tests.py REPORT...   (reports that are not there are left out)
"""

import sys
import xml.etree.ElementTree as tree
from pathlib import Path

LINES = 30
COLUMNS = 240


def main() -> int:
    for path in map(Path, sys.argv[1:]):
        if not path.is_file():
            continue
        for case in tree.parse(path).iter("testcase"):
            failure = case.find("failure")
            if failure is None:
                continue
            print(f"===== failed in {path}: {case.get('name')} ({case.get('time')} s): {failure.get('message')}")
            for line in (case.findtext("system-out") or "").splitlines()[-LINES:]:
                print(line[:COLUMNS])
    return 0


if __name__ == "__main__":
    sys.exit(main())
