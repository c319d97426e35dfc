#!/usr/bin/env python3
"""What a program executed for each of its operations, from a file that callgrind wrote with --dump-instr=yes.

Prints the instructions of one operation, those of them that are atomic changes of memory, and the cache lines (64 bytes) of code
that they lie in: a line counts if something in it ran at least every second operation.

Usage: executed_code.py CALLGRIND_FILE OPERATIONS
"""

from __future__ import annotations

import collections
import re
import subprocess
import sys

LINE = 64
COST = re.compile(r"(0x[0-9a-f]+|[+-]\d+|\*) (?:[+-]?\d+|\*)(?: (\d+))?$")
ATOMIC = re.compile(r"^\s*([0-9a-f]+):\s+(?:lock |xchg\s.*\()")


def executions(path: str) -> dict[str, collections.Counter[int]]:
    """How often each instruction ran: by program or library, and address."""
    names: dict[str, str] = {}
    counts: dict[str, collections.Counter[int]] = collections.defaultdict(collections.Counter)
    program, address, is_call = "", 0, False
    with open(path, errors="replace") as file:
        for line in file:
            if named := re.match(r"ob=\((\d+)\)(?: (.*))?$", line):
                program = names.setdefault(named[1], named[2] or "")
            elif line.startswith("calls="):
                is_call = True
            elif cost := COST.match(line):
                place = cost[1]
                if place != "*":
                    address = int(place, 16) if place.startswith("0x") else address + int(place)
                if not is_call:  # else it is what was called
                    counts[program][address] += int(cost[2] or 0)
                is_call = False
            elif other := re.match(r"cob=\((\d+)\) (.*)$", line):
                names.setdefault(other[1], other[2])
    return counts


def atomic_changes(program: str) -> set[int]:
    """The addresses of a program's atomic instructions."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=False)
    return {int(found[1], 16) for line in listing.stdout.splitlines() if (found := ATOMIC.match(line))}


def main() -> None:
    """Prints the three numbers."""
    path, operations = sys.argv[1], int(sys.argv[2])
    instructions = atomic = 0
    lines: collections.Counter[tuple[str, int]] = collections.Counter()
    for program, counts in executions(path).items():
        changes = atomic_changes(program)
        for address, times in counts.items():
            instructions += times
            atomic += times if address in changes else 0
            line = (program, address // LINE)
            lines[line] = max(lines[line], times)
    in_use = sum(1 for times in lines.values() if 2 * times >= operations)
    print(f"{instructions / operations:.0f} {atomic / operations:.1f} {in_use}")


if __name__ == "__main__":
    main()
