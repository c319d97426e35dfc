#!/usr/bin/env python3
"""Check that each file includes what it uses of this project, and nothing of it that it does not use.

Asks include-what-you-use (Debian: iwyu) about the public headers, src/ and tools/, and looks at this project's headers
alone. Two rules:

- what a file includes, it uses; KEEPS names the exceptions;
- what a file uses comes from a header that it includes, or from one that such a header includes: not by luck from further
  away, where it is gone as soon as somebody tidies up there.

Prints each mistake, and exits with 1 if there is one; with 2 if the tool is missing or does not understand a file. A file without a
mistake is not asked about again until it, or a header of this project that comes with it, changes (found_clean.py).

Usage: check_includes.py [--mend] [FILE...]
"""

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from found_clean import FoundClean, content_name

# Headers that exist in order to include others: they may include what they do not use, and stand for it where they are
# included.
KEEPS = {"include/weir/weir.hpp", "include/weir/calls.hpp", "src/array/element_body.hpp"}
# What the tool cannot read: headers for programs that another compiler compiles.
LEFT_OUT = {"include/weir/detail/cuda_launch.hpp"}
# How far from a file the header may be that it uses something of.
FARTHEST = 2

TOOL = "include-what-you-use"
OPTIONS = ["-std=c++20", "-DWEIR_VERSION=\"0\"", "-Iinclude", "-Isrc", "-isystem", "/usr/include/eigen3", "-isystem", "/usr/include/stb",
           "-Xiwyu", "--no_fwd_decls", "-Xiwyu", "--no_comments"]
FOLDERS = ["src", "include", "tools/verify"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(?P<path>[^"]+)"', re.MULTILINE)
VERDICT = re.compile(r"^(?P<file>\S+) should (?P<what>add|remove) these lines:\n(?P<lines>.*?)\n\n", re.MULTILINE | re.DOTALL)


def resolve(text, including, root):
    """The file of this project that an include names, by its path from the root; None for others' headers."""
    for folder in [(root / including).parent, *(root / name for name in FOLDERS)]:
        path = Path(os.path.normpath(folder / text))
        if path.is_file() and path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return None


def included_by(file, root):
    """What of this project the file includes."""
    texts = INCLUDE.findall((root / file).read_text(encoding="utf-8"))
    return {path for text in texts if (path := resolve(text, file, root))}


def within_reach(file, unused, root):
    """What comes with the file's includes, up to the farthest that counts, but for what those files do not use. A source
    has its own header's."""
    own = Path(file).with_suffix(".hpp").as_posix()
    reached, last = set(), {file, own} if (root / own).is_file() else {file}
    for _ in range(FARTHEST):
        last = {one for of in last for one in included_by(of, root) - unused.get(of, set())}
        reached |= last
    return reached


def judge(said, root):
    """What is wrong by the tool's words: a set of (file, "add" or "remove", text of the include)."""
    verdicts = {"add": {}, "remove": {}}  # by file: the headers, and how they are written
    for verdict in VERDICT.finditer(said):
        file = verdict["file"]
        for line in verdict["lines"].splitlines():
            named = INCLUDE.search(line.removeprefix("- "))
            header = resolve(named["path"], file, root) if named else None
            if header is not None and header != file and (verdict["what"] == "add") != line.startswith("- "):
                verdicts[verdict["what"]].setdefault(file, {})[header] = named["path"]
    unused = {file: headers.keys() - KEEPS for file, headers in verdicts["remove"].items() if file not in KEEPS}
    wrong = {(file, "remove", verdicts["remove"][file][header]) for file, headers in unused.items() for header in headers}
    for file, used in verdicts["add"].items():
        reached = within_reach(file, unused, root)
        wrong |= {(file, "add", text) for header, text in used.items() if header not in reached}
    return wrong


def ask(file, root):
    """What the tool says of a file. Throws RuntimeError where it does not understand it."""
    command = [TOOL, *OPTIONS, *(["-x", "c++"] if file.endswith(".hpp") else []), file]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    errors = [line for line in result.stderr.splitlines() if re.search(r"\b(fatal )?error:", line)]
    if errors:
        raise RuntimeError("\n".join(errors))
    if "#include" not in result.stderr and "correct #includes" not in result.stderr:
        raise RuntimeError(f"{file}: {TOOL} says nothing:\n{result.stderr}")
    return result.stderr


@functools.cache
def settings():
    """What a judgement depends on beside the sources: the tool's version, its options, and the rules of this file."""
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=False).stdout
    return version + " ".join(OPTIONS).encode() + Path(__file__).read_bytes()


def content(file, root):
    """The name of what is judged with a file: of its text, and of all of this project that comes with it."""
    texts, found = {}, [file, *[own for own in [Path(file).with_suffix(".hpp").as_posix()] if (root / own).is_file()]]
    while found:
        one = found.pop()
        if one not in texts:
            texts[one] = (root / one).read_bytes()
            found += included_by(one, root)
    return content_name(settings(), *(part for one in sorted(texts) for part in (one.encode(), texts[one])))


def mistakes(file, root):
    """What is wrong with a file, as judge() says it. Throws as ask() does."""
    found_clean, name = FoundClean("includes"), content(file, root)
    if name in found_clean:
        return set()
    wrong = judge(ask(file, root), root)
    if not wrong:
        found_clean.note(name)
    return wrong


def mend(file, what, text, root):
    """Adds the include beside those of this project, or takes it out. The formatter sorts."""
    path = root / file
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if what == "remove":
        lines = [line for line in lines if not re.match(rf'\s*#\s*include\s*"{re.escape(text)}"', line)]
    else:
        places = [i for i, line in enumerate(lines) if INCLUDE.match(line)]
        anywhere = [i for i, line in enumerate(lines) if line.startswith("#include")]
        new = f'#include "{text}"\n'
        own = Path(file).with_suffix(".hpp").name
        others = [i for i in places if Path(INCLUDE.match(lines[i])["path"]).name != own]
        if others:
            lines.insert(others[-1] + 1, new)
        else:
            lines.insert(max(anywhere, default=0) + 1, "\n" + new)
    path.write_text("".join(lines), encoding="utf-8")


def sources(root):
    """The files to ask about. The tool judges a source's own header together with it; the public ones stand alone."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--",
                             "src/*.cpp", "tools/*.cpp", "src/*.hpp", "tools/*.hpp", "include/*.hpp"],
                            cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    there = {file for file in listed if (root / file).is_file()} - LEFT_OUT
    return sorted(file for file in there if Path(file).with_suffix(".cpp").as_posix() not in there - {file})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mend", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    if shutil.which(TOOL) is None:
        print(f"includes: {TOOL} is not installed: the package is iwyu")
        return 2
    files = options.files or sources(root)
    wrong, not_understood = set(), []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        for file, answer in [(file, threads.submit(mistakes, file, root)) for file in files]:
            try:
                wrong |= answer.result()
            except RuntimeError as error:
                not_understood.append(f"{file}: {error}")
    for file, what, text in sorted(wrong):
        print(f'{file}: uses what is in "{text}": include it' if what == "add" else f'{file}: does not use "{text}"')
        if options.mend:
            mend(file, what, text, root)
    for error in not_understood:
        print(error)
    print(f"includes: {len(files)} files, {len(wrong)} mistakes, {len(not_understood)} not understood")
    return 2 if not_understood else 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
