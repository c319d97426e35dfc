#!/usr/bin/env python3
"""Finds which programs hold the tests of these names, so that nothing else is built: `./run test NAME...`.

NAME: a test program ("unit-fft", or "fft" for all of this name), the file of a test with or without its folder and ending, a suite,
"Suite.Test", a test, or a test of CTest ("cli.demo"). Of Python's a file, or a function.

Prints two lines: the targets to build, and a regular expression for the names of the tests of CTest.
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What the tests of the Python package and of the command need.
PYTHON = {"weir-python", *(f"weir_fake_{name}" for name in ("cublaslt", "cuda", "cudss", "cufft", "cusolver", "nvrtc"))}
COMMAND = {"weir-cli", "weir-verify", "weir_fake_cuda", "weir_fake_nvrtc"}
TEST = re.compile(r"^\s*(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|WEIR_CONFORMANCE|WEIR_CONFORMANCE_F)\(\s*(\w+),\s*(\w+)\s*\)", re.M)
CALL = re.compile(r"^\s*(weir_add_test|add_test|set)\(([^)]*)\)", re.M)


class Program:
    """A program with tests of GoogleTest."""

    def __init__(self, label: str, name: str, files: list[pathlib.Path]) -> None:
        self.label, self.name, self.files = label, name, files
        self.target = f"{label}-{name}"

    def tests(self, file: pathlib.Path) -> list[tuple[str, str]]:
        """The suites and the tests of a file."""
        found = TEST.findall(file.read_text())
        return [(suite, test + ("_" if macro == "WEIR_CONFORMANCE_F" else "")) for macro, suite, test in found]


def commands(text: str) -> list[tuple[str, list[str]]]:
    """The calls of a CMakeLists.txt that matter here, with their words. Variables that the file sets are replaced, others are empty."""
    text = re.sub(r"#.*", "", text)
    text = re.sub(r'"[^"]*"', '""', text)
    text = re.sub(r"\$<TARGET_FILE:([^>]*)>", r"\1", text)
    values: dict[str, str] = {}
    found = []
    for call, inside in CALL.findall(text):
        words = re.sub(r"\$\{(\w+)\}", lambda name: values.get(name[1], ""), inside).split()
        if call == "set" and len(words) > 1:
            values[words[0]] = " ".join(words[1:])
        elif words:
            found.append((call, words))
    return found


class Other(NamedTuple):
    """Another test of CTest: what has to be built for it, and the script that it runs, if it is one."""

    targets: set[str]
    script: pathlib.Path | None = None


def programs() -> tuple[list[Program], dict[str, Other]]:
    """The programs with tests of GoogleTest, and the other tests of CTest by their names."""
    tests: list[Program] = []
    others: dict[str, Other] = {}
    for listed in sorted((ROOT / "tests").rglob("CMakeLists.txt")):
        for call, words in commands(listed.read_text()):
            if call == "weir_add_test":
                files = [listed.parent / word.lstrip("/") for word in words if word.endswith(".cpp")]
                tests.append(Program(words[1], words[0], [file for file in files if file.is_file()]))
            elif words[0] == "NAME" and not words[1].endswith(".") and "COMMAND" in words:
                command = words[words.index("COMMAND") + 1]
                scripts = [listed.parent / word.lstrip("/") for word in words if word.endswith("_test.py")]
                there = next((script for script in scripts if script.is_file()), None)
                others[words[1]] = Other(set() if "::" in command else {command, "weir_fake_mkl"}, there)
    for file in (ROOT / "python/tests").glob("test_*.py"):
        others["python." + file.stem.removeprefix("test_")] = Other(PYTHON, file)
    for file in (ROOT / "tests/cli").glob("*_test.py"):
        others["cli." + file.stem.removesuffix("_test")] = Other(COMMAND, file)
    for call, words in commands((ROOT / "examples/CMakeLists.txt").read_text()):
        if call == "add_test" and not words[1].endswith("."):
            others[words[1]] = Other({words[words.index("COMMAND") + 1]})
    for file in (ROOT / "examples").glob("*.cpp"):
        others.setdefault(f"example.{file.stem}", Other({f"example-{file.stem}"}))
    return tests, others


def names_file(name: str, file: pathlib.Path) -> bool:
    """Whether a name is that of a file, with or without folders and ending."""
    there = file.relative_to(ROOT)
    return any(f"/{one}".endswith(f"/{name.removeprefix('./')}") for one in (there, there.with_suffix("")))


def chosen(name: str) -> tuple[set[str], set[str]]:
    """The targets for a name, and regular expressions for its tests."""
    tests, others = programs()
    targets: set[str] = set()
    patterns: set[str] = set()
    suites: dict[tuple[str, str], set[str]] = collections.defaultdict(set)

    def choose(program: Program, suite: str, test: str = r"\w+") -> None:
        targets.add(program.target)
        suites[program.label, test].add(suite)

    for program in tests:
        for file in program.files:
            for suite, test in program.tests(file):
                if name in (program.name, program.target) or names_file(name, file) or name == suite:
                    choose(program, suite)
                elif name in (f"{suite}.{test}", test):
                    choose(program, suite, test)
    for (label, test), named in suites.items():
        # One expression for many suites: CTest takes 32 pairs of parentheses at most.
        any_of = "|".join(sorted(named))
        patterns.add(rf"{label}\.(\w+/)?({any_of})(/\w+)?\.{test}(/.+)?".replace(r"\w", "[A-Za-z0-9_]"))
    for test, other in others.items():
        is_it = name in (test, *other.targets)
        if other.script is not None:
            has_function = rf"^\s*(async )?def {re.escape(name)}\("
            is_it |= names_file(name, other.script) or (
                name.startswith("test_") and re.search(has_function, other.script.read_text(), re.M) is not None
            )
        if is_it:
            targets |= other.targets
            patterns.add(re.escape(test))
    return targets, patterns


def main(names: list[str]) -> int:
    targets: set[str] = set()
    patterns: set[str] = set()
    for name in names:
        for_it, of_it = chosen(name)
        if not of_it:
            print(
                f"run: no test has the name {name}; give a program (unit-fft), a file (fft_plan_test.cpp), a suite, Suite.Test or a test",
                file=sys.stderr,
            )
            return 1
        targets |= for_it
        patterns |= of_it
    print(*sorted(targets))
    print(f"^({'|'.join(sorted(patterns))})$")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
