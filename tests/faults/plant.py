#!/usr/bin/env python3
"""Plants the faults of faults.toml into a copy of the sources.

Each fault replaces one expression or one statement by a choice: if the environment variable WEIR_PLANTED_FAULT names the fault
when the program starts, the faulty code runs, else the code as it is. So one binary holds all faults, and the sources stay
clean.

A fault is found by the text of its original. If its file does not have this text, the fault is found by its shape (see
shapes.py): what was renamed since is renamed in the fault, too. A file that was moved is found by its name. A fault that fits
no place, or several, is stale, and an error.

Usage: plant.py REPOSITORY TREE
       plant.py --check REPOSITORY      (writes nothing: names each fault that is stale)
"""

from __future__ import annotations

import pathlib
import re
import sys
import tomllib

from shapes import matches, translated

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
        if fault.get("form", "expression") == "expression" and fault["original"].lstrip().startswith("{"):
            raise StaleFault(f"fault {fault['name']} is a list in braces, which is no expression: name its type in the code")
        if fault.get("form") == "statement" and "//" in fault["original"].splitlines()[-1]:
            raise StaleFault(f"fault {fault['name']} ends with a comment, behind which the rest of its line would be lost")
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


def found_file(repository: pathlib.Path, file: str) -> str:
    """The path of a fault's file; where nothing has this path, the path of the only file with the same name."""
    if (repository / file).is_file():
        return file
    name = pathlib.PurePath(file).name
    there = sorted(str(path.relative_to(repository)) for folder in FOLDERS for path in (repository / folder).rglob(name))
    if len(there) != 1:
        several = f"several files have its name: {', '.join(there)}" if there else "no other file has its name"
        raise StaleFault(f"{file} is gone, and {several}")
    return there[0]


def lines(text: str, places: list[int]) -> str:
    """The numbers of the lines of these places."""
    return ", ".join(str(text.count("\n", 0, place) + 1) for place in places)


def cuts_a_word(text: str, start: int, end: int) -> bool:
    """Whether a word of the text goes on across one of these two places."""
    return any(re.match(r"\w\w", text[max(at - 1, 0) : at + 1]) for at in (start, end))


def fit(fault: dict[str, str], text: str) -> tuple[int, int, dict[str, str]]:
    """Where a fault stands in its file (begin and end), and the fault with the names and the white space of this file."""
    original = fault["original"].strip("\n")
    complaint = f"fault {fault['name']}: its original text occurs"
    # A text that begins or ends within a word is not this text: after a rename of known_, was_known_ has it.
    found = [one.span() for one in re.finditer(re.escape(original), text) if not cuts_a_word(text, *one.span())]
    if len(found) > 1:
        raise StaleFault(f"{complaint} {len(found)} times in {fault['file']}")
    if found:
        return *found[0], fault
    there = matches(original, text)
    if not there:
        raise StaleFault(f"{complaint} 0 times in {fault['file']}, and nothing there has its shape: say what the fault is now")
    if len(there) > 1:
        places = lines(text, [one.start for one in there])
        raise StaleFault(f"{complaint} 0 times in {fault['file']}, and it may be any of the lines {places}: say which")
    one = there[0]
    renamed = one.renamed()
    return one.start, one.end, fault | {
        "original": text[one.start : one.end],
        "mutant": translated(fault["mutant"], renamed),
        "renamed": ", ".join(f"{old} -> {new}" for old, new in renamed.items()),
    }


def located(repository: pathlib.Path, fault: dict[str, str]) -> dict[str, str]:
    """The fault with the path that its file has now."""
    try:
        return fault | {"file": found_file(repository, fault["file"])}
    except StaleFault as stale:
        raise StaleFault(f"fault {fault['name']}: {stale}") from None


def plant(faults: list[dict[str, str]], sources: dict[str, str], notes: list[str] | None = None) -> dict[str, str]:
    """The files that faults change: path to new text. `sources` maps the paths of all named files to their texts.

    `notes` gets a line for each fault whose names had to be changed.
    """
    changed: dict[str, str] = {}
    # Places are found in the sources as they are, so that one fault does not hide another.
    places: dict[str, list[tuple[int, int, str, str]]] = {}
    for number, fault in enumerate(faults, start=1):
        start, end, fitted = fit(fault, sources[fault["file"]])
        if notes is not None and fitted.get("renamed"):
            notes.append(f"fault {fault['name']} follows a rename: {fitted['renamed']}")
        places.setdefault(fault["file"], []).append((start, end, planted(number, fitted), fault["name"]))
    for file, replaced in places.items():
        text, end_of_last, last = "", 0, ""
        for start, end, new, name in sorted(replaced):
            if start < end_of_last:
                raise StaleFault(f"two faults overlap in {file}: {last} and {name}")
            text += sources[file][end_of_last:start] + new
            end_of_last, last = end, name
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


def complaints(repository: pathlib.Path) -> list[str]:
    """What is wrong with each fault that no longer fits the sources; then whether faults overlap."""
    wrong: list[str] = []
    fitting: list[dict[str, str]] = []
    sources: dict[str, str] = {}
    try:
        faults = read_faults(repository / "tests/faults/faults.toml")
    except StaleFault as stale:
        return [str(stale)]
    for fault in faults:
        try:
            there = located(repository, fault)
            if there["file"] not in sources:
                sources[there["file"]] = (repository / there["file"]).read_text()
            fit(there, sources[there["file"]])
        except StaleFault as stale:
            wrong.append(str(stale))
        else:
            fitting.append(there)
    try:
        plant(fitting, sources)
    except StaleFault as stale:
        wrong.append(str(stale))
    return wrong


def check(repository: pathlib.Path) -> int:
    """Prints what is wrong with the faults, and how many of them fit."""
    wrong = complaints(repository)
    for one in wrong:
        print(f"STALE {one}")
    print("0 passed, 1 failed, 0 skipped" if wrong else "1 passed, 0 failed, 0 skipped")
    return 1 if wrong else 0


def main(arguments: list[str]) -> int:
    if arguments[0] == "--check":
        return check(pathlib.Path(arguments[1]).resolve())
    repository, tree = (pathlib.Path(argument).resolve() for argument in arguments)
    notes: list[str] = []
    try:
        faults = read_faults(repository / "tests/faults/faults.toml")
        faults = [located(repository, fault) for fault in faults]
        changed = plant(faults, {fault["file"]: (repository / fault["file"]).read_text() for fault in faults}, notes)
    except StaleFault as stale:
        print(f"plant.py: {stale}", file=sys.stderr)
        return 1
    for note in notes:
        print(f"plant.py: {note}")
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
