#!/usr/bin/env python3
"""A scope guard that is made without a name ends at once: the compiler warns about each of them.

Usage: discarded_guards_test.py COMPILER INCLUDE_FOLDER
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPILER, INCLUDE = sys.argv[1:3]

# Each makes a guard that has no name; braces, since parentheses around one name would declare a variable.
GUARDS = [
    "weir::use{s};",
    "weir::memory::use{weir::memory::counting()};",
    "weir::memory::use{weir::memory::counting(), s.device()};",
    "weir::ordering_scope{weir::ordering_mode::manual};",
    "weir::parallel{3};",
    "weir::testing::gate{};",
    "weir::testing::simulated{s.device(), weir::testing::sim_settings{}};",
    "weir::check_scope{};",
    "weir::trace_scope{};",
    'weir::trace_scope{"timeline.html"};',
    "weir::wait_log{[](const std::string&) {}};",
    "weir::live_export{b, with};",
    "weir::live_export{a, with};",
    "weir::exchange::borrow{s, weir::exchange::borrowed{}};",
    "weir::exchange::pin{b};",
]
SOURCE = """#include <weir/weir.hpp>
void f(const weir::stream& s, const weir::buffer& b, const weir::array& a, std::shared_ptr<weir::package> with) {
"""


def warned_lines(statements: list[str]) -> set[int]:
    """The statements that the compiler warns about, by their numbers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "guards.cpp"
        file.write_text(SOURCE + "\n".join(statements) + "\n}\n", encoding="utf-8")
        options = ["-std=c++20", "-fsyntax-only", "-Wunused-result", "-Wunused-value", f"-I{INCLUDE}"]
        ran = subprocess.run([COMPILER, *options, str(file)], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise AssertionError(ran.stderr)
    first = SOURCE.count("\n") + 1
    return {int(line) - first for line in re.findall(r"guards\.cpp:(\d+):\d+: warning:", ran.stderr)}


class DiscardedGuards(unittest.TestCase):
    def test_each_guard_without_a_name_is_warned_about(self) -> None:
        found = warned_lines(GUARDS)
        self.assertEqual([], [guard for number, guard in enumerate(GUARDS) if number not in found])

    def test_no_guard_with_a_name_is_warned_about(self) -> None:
        named = [re.sub(r"^([\w:]+)\{", rf"const \1 guard{number}{{", guard) for number, guard in enumerate(GUARDS)]
        self.assertEqual(set(), warned_lines(named))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
