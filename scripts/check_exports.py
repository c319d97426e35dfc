#!/usr/bin/env python3
"""Check that a shared library exports what the public headers declare, and nothing else.

Reads from the headers each function that is declared there and defined elsewhere, with the number of its overloads, and
compares that with the library's dynamic symbols. Instances of the standard library's templates may be exported: the
linker makes one of them for the whole process, as some of them need (the table of std::atomic's waiting threads).
Prints each difference, and exits with 1 if there is one.

Usage: check_exports.py INCLUDE_FOLDER LIBRARY
       check_exports.py --only NAME LIBRARY      the library exports this one symbol
"""

import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.S | re.M)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:]*)$")
CLASS = re.compile(r"(?:class|struct)\s+(?:\[\[[^]]*\]\]\s*)?(?P<export>WEIR_EXPORT\s+)?(?P<name>\w+)\b(?:\s*final)?\s*(?::|$)")
EXPORTED_TEMPLATE = re.compile(r"template\s*<[^>]*>\s*(?:class|struct)\s+WEIR_EXPORT\s+(?P<name>\w+)\b")
OPERATOR = re.compile(r"\boperator\s*(\(\)|\[\]|[^\s\w(]+|[\w:]+)\s*(?=\()")
NEVER_A_NAME = {"alignas", "decltype", "explicit", "noexcept", "requires", "__attribute__"}
OF_STANDARD_LIBRARY = re.compile(r"_Z(?:T[ISV]|GV|Z)?P?(?:N[KV]*)?(?:S[tabsiod]|9__gnu_cxx|F)")
ABOUT_CLASS = re.compile(r"(?:vtable|VTT|typeinfo|typeinfo name) for (.*)")


class Declared:
    """What headers declare: the numbers of functions by name, the exported classes, names that are not exported, and friends
    that are, or should be, declared elsewhere."""

    def __init__(self):
        self.functions = Counter()
        self.classes = set()
        self.unmarked = set()
        self.friends = set()


def function_name(text):
    """The name, with its scopes, that stands before the parameters of a declaration or a demangled symbol; or None."""
    text = text.replace("[abi:cxx11]", "")
    depth = 0
    i = 0
    while i < len(text):
        operator = OPERATOR.match(text, i)
        if operator:
            before = re.search(r"[\w:]*$", text[:i])[0]
            return before + "operator" + operator[1]
        if text[i] == "<":
            depth += 1
        elif text[i] == ">":
            depth -= 1
        elif text[i] == "(" and depth == 0:
            name = re.search(r"[\w:~]+$", text[:i].rstrip())
            if re.match(r"\(\s*\*", text[i:]):
                return None  # a pointer to a function
            if name and name[0] not in NEVER_A_NAME:
                return name[0]
            i = closing(text, i)
        i += 1
    return None


def closing(text, opening):
    """Where the bracket that opens at `opening` is closed."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    expected = []
    for i in range(opening, len(text)):
        if text[i] in pairs:
            expected.append(pairs[text[i]])
        elif expected and text[i] == expected[-1]:
            expected.pop()
            if not expected:
                return i
    raise ValueError(f"a bracket is never closed: {text[opening : opening + 60]!r}")


def declarations(text):
    """The declarations of one scope: what stands before the end or the body, and the body or None."""
    start = i = 0
    while i < len(text):
        if text[i] in "([":
            i = closing(text, i)
        elif text[i] == ";":
            yield text[start:i].strip(), None
            start = i + 1
        elif text[i] == "{":
            end = closing(text, i)
            following = text[end + 1 :].lstrip()[:1]
            if following not in (",", "{"):  # else it initialises a member, and the body is still to come
                yield text[start:i].strip(), text[i + 1 : end]
                start = end + 1
            i = end
        i += 1


def read_scope(text, scope, class_exported, declared):
    """Add what one namespace or class declares. `class_exported`: None in a namespace."""
    for head, body in declarations(text):
        head = re.sub(r"\b(?:public|private|protected)\s*:", "", head).strip()
        namespace = NAMESPACE.match(head)
        a_class = CLASS.match(head)
        if body is not None and re.fullmatch(r"extern", head):  # "C", without the text
            read_scope(body, scope, None, declared)
        elif body is not None and namespace:
            read_scope(body, f"{scope}{namespace[1]}::", None, declared)
        elif body is not None and a_class:
            exported = bool(a_class["export"] or class_exported)
            name = scope + a_class["name"]
            if exported:
                declared.classes.add(name)
            read_scope(body, name + "::", exported, declared)
        elif body is not None and (template := EXPORTED_TEMPLATE.match(head)):
            declared.classes.add(scope + template["name"])  # its instances are found by its name
        elif body is None:
            read_declaration(head, scope, class_exported, declared)


def read_declaration(head, scope, class_exported, declared):
    """Add a function that is declared and not defined here."""
    defined_here = re.search(r"=\s*(?:default|delete|0)$", head)
    if defined_here or re.match(r"(?:template|using|typedef|static_assert|constexpr)\b", head):
        return
    name = function_name(re.sub(r"\[\[.*?\]\]", "", head))
    if name is None:
        return
    if re.match(r"friend\b", head):
        scope = scope.rsplit("::", 2)[0] + "::"
        class_exported = None
        if "WEIR_EXPORT" not in head:
            declared.friends.add(scope + name)
            return
    declared.functions[scope + name] += 1
    if not class_exported and "WEIR_EXPORT" not in head and "WEIR_C_EXPORT" not in head:
        declared.unmarked.add(scope + name)


def read_headers(texts):
    """What the texts of some headers declare."""
    declared = Declared()
    for text in texts:
        read_scope(NOT_CODE.sub(" ", text), "", None, declared)
    for name in declared.friends - declared.functions.keys():
        declared.functions[name] += 1
        declared.unmarked.add(name)
    return declared


def read_library(path):
    """The dynamic symbols that a library defines: triples of kind, name and demangled name."""
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", str(path)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    symbols = [line.split()[:2] for line in lines]
    names = "\n".join(name for name, _ in symbols)
    plain = subprocess.run(["c++filt"], check=True, capture_output=True, text=True, input=names).stdout.splitlines()
    return [(kind, name, demangled) for (name, kind), demangled in zip(symbols, plain, strict=True)]


def compare(declared, symbols):
    """A message for each difference."""
    found = defaultdict(set)
    messages = []
    for kind, name, demangled in symbols:
        about_class = ABOUT_CLASS.match(demangled)
        if about_class and about_class[1].partition("<")[0] in declared.classes:
            continue
        # A way into a virtual function through another base of its class.
        if demangled.startswith(("non-virtual thunk to ", "virtual thunk to ")):
            continue
        if kind in "VWu" and OF_STANDARD_LIBRARY.match(name):
            continue
        function = function_name(demangled) or demangled  # of C, a symbol is a name
        if function not in declared.functions:
            messages.append(f"exported, but not declared in a public header: {demangled}")
        else:
            # Several symbols of one constructor or destructor count as one.
            found[function].add(demangled)
    for name in sorted(declared.unmarked):
        messages.append(f"declared in a public header without WEIR_EXPORT: {name}")
    for name, count in sorted(declared.functions.items()):
        if len(found[name]) != count and name not in declared.unmarked:
            messages.append(f"declared {count} times, exported {len(found[name])} times: {name}")
    return messages


def compare_with_one(name, symbols):
    """A message for each symbol that is not the one, and one if that is missing."""
    found = [symbol for _, symbol, _ in symbols]
    messages = [f"exported, but only {name} should be: {plain}" for _, symbol, plain in symbols if symbol != name]
    return messages if name in found else [*messages, f"not exported: {name}"]


def main():
    if sys.argv[1] == "--only":
        messages = compare_with_one(sys.argv[2], read_library(sys.argv[3]))
        for message in messages:
            print(message)
        print(f"exports: {len(messages)} mistakes")
        return 1 if messages else 0
    headers = sorted(path for path in Path(sys.argv[1]).rglob("*") if path.suffix in (".hpp", ".h"))
    declared = read_headers(header.read_text(encoding="utf-8") for header in headers)
    messages = compare(declared, read_library(sys.argv[2]))
    for message in messages:
        print(message)
    count = sum(declared.functions.values())
    print(f"exports: {count} functions, {len(declared.classes)} classes, {len(messages)} mistakes")
    return 1 if messages or not count else 0


if __name__ == "__main__":
    sys.exit(main())
