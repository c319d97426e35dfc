#!/usr/bin/env python3
"""Plants the faults of faults.toml into a copy of the sources.

Each fault replaces one expression or one statement by a choice: if the environment variable WEIR_PLANTED_FAULT names the fault
when the program starts, the faulty code runs, else the code as it is. So one binary holds all faults, and the sources stay
clean. A fault whose original text does not occur exactly once in its file is stale, and an error.

Usage: plant.py REPOSITORY TREE
"""

from __future__ import annotations

import pathlib
import sys
import tomllib

FOLDERS = ("CMakeLists.txt", "cmake", "include", "src", "tests", "docs", "tools")
HEADER = "weir/detail/planted_fault.hpp"


class StaleFault(Exception):
    """A fault that does not fit the sources."""


def read_faults(path: pathlib.Path) -> list[dict[str, str]]:
    """The faults of a file; each has name, file, original, mutant, caught_by, why."""
    faults = tomllib.loads(path.read_text())["fault"]
    names = [fault["name"] for fault in faults]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise StaleFault(f"two faults have one name: {', '.join(sorted(twice))}")
    for fault in faults:
        missing = {"name", "file", "original", "mutant", "caught_by", "why"} - fault.keys()
        if missing:
            raise StaleFault(f"fault {fault['name']} lacks {', '.join(sorted(missing))}")
        if fault.get("form", "expression") == "expression" and any(";" in fault[part] for part in ("original", "mutant")):
            raise StaleFault(f"fault {fault['name']} is a statement: say form = \"statement\", or leave the rest of it out")
    return faults


def planted(number: int, fault: dict[str, str]) -> str:
    """The choice between the original and the fault: an expression, a statement, or the mutant's own text."""
    original, mutant = fault["original"].strip("\n"), fault["mutant"].strip("\n")
    condition = f"::weir_planted_fault({number})"
    form = fault.get("form", "expression")
    if form == "expression":
        return f"({condition} ? ({mutant}) : ({original}))"
    if form == "statement":
        return f"{{ if ({condition}) {{ {mutant} }} else {{ {original} }} }}"
    return mutant.replace("PLANTED", condition)


def plant(faults: list[dict[str, str]], sources: dict[str, str]) -> dict[str, str]:
    """The files that faults change: path to new text. `sources` maps the paths of all named files to their texts."""
    changed: dict[str, str] = {}
    # Places are found in the sources as they are, so that one fault does not hide another.
    places: dict[str, list[tuple[int, int, str]]] = {}
    for number, fault in enumerate(faults, start=1):
        text = sources[fault["file"]]
        original = fault["original"].strip("\n")
        count = text.count(original)
        if count != 1:
            raise StaleFault(f"fault {fault['name']}: its original text occurs {count} times in {fault['file']}")
        start = text.index(original)
        places.setdefault(fault["file"], []).append((start, start + len(original), planted(number, fault)))
    for file, replaced in places.items():
        text, end_of_last = "", 0
        for start, end, new in sorted(replaced):
            if start < end_of_last:
                raise StaleFault(f"two faults overlap in {file}")
            text += sources[file][end_of_last:start] + new
            end_of_last = end
        changed[file] = f'#include "{HEADER}"\n' + text + sources[file][end_of_last:]
    return changed


def header(faults: list[dict[str, str]]) -> str:
    """The header that says which fault is chosen."""
    table = "".join(f'        if (wanted == "{fault["name"]}") return {n};\n' for n, fault in enumerate(faults, start=1))
    return f"""#pragma once
#include <cstdio>
#include <cstdlib>
#include <string_view>
inline bool weir_planted_fault(int number) noexcept {{
    static const int chosen = [] {{
        const char* const name = std::getenv("WEIR_PLANTED_FAULT");
        const std::string_view wanted = name == nullptr ? "" : name;
        if (wanted.empty()) return 0;
{table}        std::fputs("no such fault\\n", stderr);
        std::abort();
    }}();
    return chosen == number;
}}
"""


def write(path: pathlib.Path, text: bytes) -> None:
    """Writes a file, unless it has this content: what did not change is not compiled again."""
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def main(arguments: list[str]) -> int:
    repository, tree = (pathlib.Path(argument).resolve() for argument in arguments)
    faults = read_faults(repository / "tests/faults/faults.toml")
    sources = {fault["file"]: (repository / fault["file"]).read_text() for fault in faults}
    try:
        changed = plant(faults, sources)
    except StaleFault as stale:
        print(f"plant.py: {stale}", file=sys.stderr)
        return 1
    kept = {tree / "include" / HEADER}
    write(tree / "include" / HEADER, header(faults).encode())
    for folder in FOLDERS:
        top = repository / folder
        files = [top] if top.is_file() else sorted(top.rglob("*")) if top.is_dir() else []
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                name = file.relative_to(repository)
                text = changed.get(str(name))
                write(tree / name, file.read_bytes() if text is None else text.encode())
                kept.add(tree / name)
    for file in tree.rglob("*"):
        if file.is_file() and file not in kept:
            file.unlink()
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
