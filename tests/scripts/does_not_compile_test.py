#!/usr/bin/env python3
"""What the public C++ interface refuses to compile, each beside a twin that compiles (docs/cpp-interface.md).

Usage: does_not_compile_test.py COMPILER INCLUDE_FOLDER
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import NamedTuple

COMPILER, INCLUDE = sys.argv[1:3]
CCCL = Path(__file__).parents[1] / "support" / "cccl"  # stands for its headers


class Trap(NamedTuple):
    """A statement that must not compile, and the nearest one that does."""

    why: str
    refused: str
    twin: str


# In them, `s` is a stream, `x` and `y` are arrays, `c` is a const array, `b` a buffer, `t` a token and `p` a package.
TRAPS = [
    Trap("the operands of copy are swapped", "weir::copy(s, c, x);", "weir::copy(s, x, c);"),
    Trap("a const array is filled", "weir::fill(s, c, 1);", "weir::fill(s, x, 1);"),
    Trap("a const array is changed in place", "c += 1;", "x += 1;"),
    Trap("a const array is an output", "(void)weir::out<float>(c);", "(void)weir::out<float>(x);"),
    Trap("a const array is an output", "(void)weir::inout(c);", "(void)weir::inout(x.slice(0, 1));"),
    Trap("a window of a const array", "(void)weir::out(c.view<float>());", "(void)weir::out(x.view<float>());"),
    Trap("the host changes a const array", "(void)c.write<float>();", "(void)x.write<float>();"),
    Trap(
        "the result of a transform is const",
        "weir::fft::fft(s, x, c);",
        "weir::fft::fft(s, c, x);",
    ),
    Trap(
        "a label in a variable, whose text may change",
        'static char name[] = "x"; (void)weir::on(s).label(name);',
        'static constexpr char name[] = "x"; (void)weir::on(s).label(name);',
    ),
    Trap(
        "a label in a variable that ends with the block",
        'const char name[] = "x"; (void)weir::on(s).label(name);',
        '(void)weir::on(s).label("x");',
    ),
    Trap(
        "a label that is made at run time",
        'std::string name = "x"; (void)weir::on(s).label(name.c_str());',
        '(void)weir::on(s).label("run");',
    ),
    Trap(
        "a label without its end",
        "static constexpr char name[2] = {'a', 'b'}; (void)weir::on(s).label(name);",
        "static constexpr char name[2] = {'a', 0}; (void)weir::on(s).label(name);",
    ),
    Trap(
        "a reference to a temporary stream is kept",
        "weir::stream_ref kept = weir::current_stream(); (void)kept;",
        "weir::stream_ref kept = s; (void)kept;",
    ),
    Trap(
        "a reference is set to a temporary stream",
        "weir::stream_ref kept = s; kept = weir::stream();",
        "weir::stream_ref kept = s; kept = s; (void)weir::zeros(1, weir::dtype::float32, weir::stream());",
    ),
    Trap(
        "the elements of a temporary view are kept",
        "auto kept = c.read<float>().span(); (void)kept;",
        "const auto view = c.read<float>(); auto kept = view.span(); (void)kept;",
    ),
    Trap(
        "a reference to an element of a temporary view",
        "const float* kept = &c.read<float>()[0]; (void)kept;",
        "const float kept = c.read<float>()[0]; (void)kept;",
    ),
    Trap(
        "begin and end of two reports",
        "weir::check_scope scope; auto first = scope.report().begin(); (void)first;",
        "weir::check_scope scope; for (const weir::race& one : scope.report()) { (void)one; }",
    ),
    Trap(
        "an operand that is kept, whose array may be gone",
        "const auto kept = weir::in<float>(c); weir::access(s, [](weir::native_stream, std::span<const float>) {}, kept);",
        "weir::access(s, [](weir::native_stream, std::span<const float>) {}, weir::in<float>(c));",
    ),
    Trap("work without a function", "weir::access(s);", "weir::access(s, [](weir::native_stream) {}, weir::in(t));"),
    Trap(
        "the operand before the function",
        "weir::host_task(s, weir::in<float>(c), [](std::span<const float>) {});",
        "weir::host_task(s, [](std::span<const float>) {}, weir::in<float>(c));",
    ),
    Trap(
        "the operand before the function",
        "weir::parallel_for(s, 5, weir::in<float>(c), [](std::size_t, std::span<const float>) {});",
        "weir::parallel_for(s, 5, [](std::size_t, std::span<const float>) {}, weir::in<float>(c));",
    ),
    Trap("elements of a type that no array has", "(void)weir::in<std::string>(c);", "(void)weir::in<double>(c);"),
    Trap("elements of a type that no array has", "(void)c.read<char>();", "(void)c.read<signed char>();"),
    Trap("elements of a type that no array has", "(void)c.view<long double>();", "(void)c.view<std::complex<double>>();"),
    Trap(
        "a window that checks nothing",
        "weir::array_view<float> window(x); (void)window;",
        "weir::array_view<float> window = x.view<float>(); (void)window;",
    ),
    Trap(
        "a window that checks nothing",
        "weir::strided_view<float, 1> window(x); (void)window;",
        "weir::strided_view<float, 1> window = x.strided<float, 1>(); (void)window;",
    ),
    Trap(
        "a window that checks nothing",
        "weir::host_view<float> window(c, weir::source_location::current()); (void)window;",
        "weir::host_view<float> window = x.write<float>(); (void)window;",
    ),
    Trap("an extent with a fraction", "(void)weir::zeros(2.5);", "(void)weir::zeros(2U);"),
    Trap("an extent that is an answer", "(void)weir::zeros(true);", "(void)weir::zeros(std::size_t{1});"),
    Trap("an index that is an answer", "(void)x[true];", "(void)x[1];"),
    Trap("a limit that is an answer", "weir::memory_limit l(true); (void)l;", "weir::memory_limit l(1.0F); (void)l;"),
    Trap("the internals of a stream", "(void)s.state();", "(void)s.unique_id();"),
    Trap("the internals of a kernel", "[](const weir::kernel& k) { (void)k.code(); };", "[](const weir::kernel& k) { (void)k.name(); };"),
    Trap("a pointer as a stream", "(void)weir::stream::adopt(nullptr, weir::cpu());", "(void)weir::stream::adopt(weir::native_stream{nullptr}, weir::cpu());"),
    Trap(
        "the package writes to a const array",
        "const weir::live_export shared(c, p, weir::package_use::writes);",
        "const weir::live_export shared(x, p, weir::package_use::writes);",
    ),
    Trap(
        "a stream waits for writing to a const array",
        "weir::exchange::hand_over(s, c, weir::package_use::writes);",
        "weir::exchange::hand_over(s, x, weir::package_use::writes);",
    ),
    Trap(
        "a borrow writes to a const array",
        "const weir::exchange::borrow scope(s, {.reads = {x}, .writes = {c}});",
        "const weir::exchange::borrow scope(s, {.reads = {c}, .writes = {x, y.slice(0, 1)}});",
    ),
    Trap(
        "the direction before the stream",
        "[&](weir::fft_plan& f) { (void)f.execute(weir::fft_direction::forward, s); };",
        "[&](weir::fft_plan& f) { (void)f.execute(s, weir::fft_direction::forward); };",
    ),
]
# So that each statement is seen, however many errors the ones before have.
IS_CLANG = "clang" in subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True).stdout
ALL_ERRORS = "-ferror-limit=0" if IS_CLANG else "-fmax-errors=0"
SOURCE = """#include <weir/weir.hpp>
#include <complex>
#include <string>
void f(weir::stream& s, weir::array& x, weir::array& y, const weir::array& c, const weir::token& t,
       const std::shared_ptr<weir::package>& p) {
"""


def lines_with_errors(statements: list[str]) -> tuple[set[int], str]:
    """The statements in which the compiler finds an error, by their numbers, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "traps.cpp"
        blocks = "\n".join("{ " + statement + " }" for statement in statements)
        file.write_text(SOURCE + blocks + "\n}\n", encoding="utf-8")
        options = ["-std=c++20", "-fsyntax-only", ALL_ERRORS, f"-I{INCLUDE}"]
        ran = subprocess.run([COMPILER, *options, str(file)], capture_output=True, text=True, check=False)
    first = SOURCE.count("\n") + 1
    # Lines without "error" are those from which GCC came to an error in a header.
    found = re.findall(r"traps\.cpp:(\d+):\d+:(?: error:|\s+required from here|\s+in .constexpr. expansion)", ran.stderr)
    return {int(line) - first for line in found}, ran.stderr


class Traps(unittest.TestCase):
    def test_no_trap_compiles(self) -> None:
        found, _ = lines_with_errors([trap.refused for trap in TRAPS])
        self.assertEqual([], [trap for number, trap in enumerate(TRAPS) if number not in found])

    def test_each_twin_compiles(self) -> None:
        found, printed = lines_with_errors([trap.twin for trap in TRAPS])
        self.assertEqual([], [trap for number, trap in enumerate(TRAPS) if number in found], printed)
        self.assertNotIn("error:", printed)

    def test_headers_of_cccl_older_than_its_concept_define_no_resource(self) -> None:
        source = '#include "weir/cuda_memory_resource.hpp"\nweir::memory::cuda_resource* none = nullptr;\n'
        for version, compiles in ((3001000, True), (3000002, False)):
            options = ["-std=c++20", "-fsyntax-only", "-xc++", f"-DCCCL_VERSION={version}", f"-I{INCLUDE}", f"-I{CCCL}"]
            ran = subprocess.run([COMPILER, *options, "-"], input=source, capture_output=True, text=True, check=False)
            self.assertEqual(compiles, ran.returncode == 0, ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
