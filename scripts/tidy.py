#!/usr/bin/env python3
"""Runs clang-tidy over the sources of src/, many at a time.

Most of the time that the tool takes goes into the headers that all sources include. So the sources of a folder are checked as
one that includes them: what they have in common is looked at once. Where something is found, or names of two are in each
other's way, fewer are checked at a time, so that what is printed is true of one source. Checks that look at nothing but the
main file see each source that they can say something about alone, too.

What was found clean is remembered by its preprocessed text (found_clean.py): another clone of the same sources asks the tool nothing.

Usage: tidy.py CLANG_TIDY BUILD_FOLDER      (with its compile_commands.json)
"""

from __future__ import annotations

import concurrent.futures
import functools
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from found_clean import FoundClean

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 12  # sources at a time: enough to have the headers for little, and few enough to keep all processors busy
# What looks at the main file alone: the check, and which sources it can say something about.
MAIN_FILE_ONLY = {"misc-unused-alias-decls": re.compile(r"^\s*namespace \w+ = ", re.MULTILINE)}


def sources(build: pathlib.Path) -> dict[tuple[str, ...], list[pathlib.Path]]:
    """The sources below src/, by what they are compiled with; each folder apart."""
    grouped: dict[tuple[str, ...], list[pathlib.Path]] = {}
    for one in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(one["file"])
        if not file.is_relative_to(ROOT / "src"):
            continue
        words = shlex.split(one["command"])[1:]
        place = words.index("-o")
        options = [word for word in words[:place] + words[place + 2 :] if word not in ("-c", one["file"])]
        grouped.setdefault((str(file.parent), *options), []).append(file)
    return grouped


@functools.cache
def settings(tool: str) -> bytes:
    """What the findings depend on beside the text: the tool's version, and the checks."""
    version = subprocess.run([tool, "--version"], text=True, capture_output=True, check=False).stdout
    return version.encode() + (ROOT / ".clang-tidy").read_bytes()


def content(tool: str, file: pathlib.Path, options: tuple[str, ...], *more: str) -> str | None:
    """The name of what the tool would look at: of the text with its comments and macros, wherever the clone is. None if the
    compiler that belongs to the tool does not preprocess it."""
    compiler = pathlib.Path(tool).with_name(pathlib.Path(tool).name.replace("clang-tidy", "clang++"))
    command = [str(compiler), *options, "-w", "-E", "-C", "-dD", str(file)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    if done.returncode != 0:
        return None
    name = hashlib.sha256(settings(tool))
    # The sources to check together are included by a file that has another number in another run.
    for part in (done.stdout.replace(str(file).encode(), b"main"), " ".join((*options, "", *more)).encode()):
        name.update(part.replace(str(ROOT).encode(), b"") + b"\0")
    return name.hexdigest()


def tidy(tool: str, file: pathlib.Path, options: tuple[str, ...], *more: str) -> tuple[bool, str]:
    """Whether nothing was found, and what was said."""
    name = content(tool, file, options, *more)
    found_clean = FoundClean("tidy")
    if name in found_clean:
        return True, ""
    command = [tool, "--quiet", *more, str(file), "--", *options]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    if name and done.returncode == 0 and not done.stdout.strip():
        found_clean.note(name)
    return done.returncode == 0, done.stdout


def check(tool: str, together: pathlib.Path, files: list[pathlib.Path], options: tuple[str, ...]) -> tuple[bool, str]:
    """The same for several sources."""
    together.write_text("".join(f'#include "{file}"  // NOLINT\n' for file in files))
    # What a name hides is another source's as a rule; the compiler looks for that in each source.
    good, said = tidy(tool, together, (*options, "-Wno-shadow") if len(files) > 1 else options)
    if not good and len(files) > 1:
        half = len(files) // 2
        results = [check(tool, together, some, options) for some in (files[:half], files[half:])]
    else:
        results = [(good, said)]
        for name, pattern in MAIN_FILE_ONLY.items():
            results += [
                tidy(tool, file, options, f"--checks=-*,{name}") for file in files if pattern.search(file.read_text())
            ]
    return all(good for good, _ in results), "".join(said for _, said in results)


def main(tool: str, build: pathlib.Path) -> int:
    parts = [
        (list(files[i : i + MOST]), group[1:])
        for group, files in sources(build).items()
        for i in range(0, len(files), MOST)
    ]
    if not parts:
        print("tidy.py: there are no sources")
        return 1
    parts.sort(key=lambda part: -len(part[0]))
    folder = build / "together"
    folder.mkdir(exist_ok=True)
    good = True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        names = (folder / f"{i}.cpp" for i in itertools.count())
        for well, said in pool.map(lambda part, name: check(tool, name, *part), parts, names):
            good = good and well
            print(said, end="", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve()))
