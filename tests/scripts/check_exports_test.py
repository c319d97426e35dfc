#!/usr/bin/env python3
"""Tests of scripts/check_exports.py: it reports what it should."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_exports  # noqa: E402

HEADER = """
// A header with one of everything. void weir::in_comment();
#include "weir/export.hpp"
namespace weir {
class box;
/// Text; with { brackets
class WEIR_EXPORT box : public base<int> {
public:
    box() = default;
    explicit box(std::function<void(int)> fn = {});
    virtual ~box();
    virtual void must() = 0;
    int inside() const { return value_; }
    [[nodiscard]] bool operator()(int a) const noexcept;
    friend WEIR_EXPORT box operator<(const box& a, const box& b);
    template <class T>
    void generic(T value);

private:
    struct state;
    int hidden(std::initializer_list<int> from = {1, 2});
    box(int a, int b) : first_{a}, value_(b) {}
    void (*pointer_)(int) = nullptr;
    int first_{0};
    int value_ = 0;
};
template <class T>
class window {
    void outside() const;
};
namespace inner {
WEIR_EXPORT box make(int a);
WEIR_EXPORT box make(char a);
inline int one() { return 1; }
}  // namespace inner
}  // namespace weir
"""

SYMBOLS = [
    ("T", "_Z1", "weir::box::box(std::function<void (int)>)"),
    ("T", "_Z2", "weir::box::box(std::function<void (int)>)"),
    ("T", "_Z3", "weir::box::~box()"),
    ("T", "_Z4", "weir::box::operator()(int) const"),
    ("T", "_Z5", "weir::operator<(weir::box const&, weir::box const&)"),
    ("T", "_Z6", "weir::box::hidden(std::initializer_list<int>)"),
    ("T", "_Z7", "weir::inner::make[abi:cxx11](int)"),
    ("T", "_Z8", "weir::inner::make[abi:cxx11](char)"),
    ("V", "_ZTVN4weir3boxE", "vtable for weir::box"),
    ("W", "_ZNSt6vectorIN4weir3boxEE3addEv", "std::vector<weir::box>::add()"),
]


class ExportsTest(unittest.TestCase):
    def mistakes(self, header=HEADER, symbols=SYMBOLS):
        return check_exports.compare(check_exports.read_headers([header]), symbols)

    def test_accepts_exactly_what_is_declared(self):
        self.assertEqual(self.mistakes(), [])

    def test_a_friend_that_is_declared_elsewhere_counts_there(self):
        friends = HEADER.replace("private:\n", "private:\n    friend box inner::make(int a);\n    friend box meet(int a);\n")
        known = friends.replace("namespace inner {", "WEIR_EXPORT box meet(int a);\nnamespace inner {")
        meet = ("T", "_Z9", "weir::meet(int)")
        self.assertEqual(self.mistakes(known.replace("inner::make", "meet"), [*SYMBOLS, meet]), [])
        self.assertIn("without WEIR_EXPORT: weir::meet", "\n".join(self.mistakes(friends.replace("inner::make", "meet"))))

    def test_finds_an_internal_function(self):
        self.assertRegex(
            "\n".join(self.mistakes(symbols=[*SYMBOLS, ("T", "_Z9", "weir::runtime::secret(int)")])),
            "not declared in a public header: weir::runtime::secret",
        )

    def test_finds_an_internal_class_and_weak_symbols_of_others(self):
        internal = [
            ("V", "_ZTIN4weir5innerE", "typeinfo for weir::inner::engine"),
            ("W", "_ZN8nlohmann4dumpEv", "nlohmann::dump()"),
            ("W", "_ZN4weir4dumpEv", "weir::dump()"),
        ]
        self.assertEqual(len(self.mistakes(symbols=SYMBOLS + internal)), len(internal))

    def test_finds_each_function_that_is_not_exported(self):
        for i, (_, _, name) in enumerate(SYMBOLS[2:8], start=2):
            with self.subTest(name):
                self.assertEqual(len(self.mistakes(symbols=SYMBOLS[:i] + SYMBOLS[i + 1 :])), 1)

    def test_a_class_template_with_a_mark_and_ways_into_virtual_functions_are_accepted(self):
        instance = ("V", "_ZTVN4weir6windowIiEE", "vtable for weir::window<int>")
        way = ("T", "_ZThn8_N4weir3boxD0Ev", "non-virtual thunk to weir::box::~box()")
        marked = HEADER.replace("class window {", "class WEIR_EXPORT window {")
        self.assertEqual(self.mistakes(marked, [*SYMBOLS, instance, way]), [])
        self.assertEqual(len(self.mistakes(symbols=[*SYMBOLS, instance])), 1)

    def test_finds_a_function_and_a_class_without_a_mark(self):
        for marked, plain in [("WEIR_EXPORT box make(char", "box make(char"), ("class WEIR_EXPORT box", "class box")]:
            with self.subTest(plain):
                self.assertRegex("\n".join(self.mistakes(HEADER.replace(marked, plain))), "without WEIR_EXPORT")

    def test_finds_a_function_that_is_defined_nowhere(self):
        header = HEADER.replace("struct state;", "struct state;\n    void forgotten();")
        self.assertRegex("\n".join(self.mistakes(header)), "exported 0 times: weir::box::forgotten")

    def test_functions_of_c_are_declared_in_their_block(self):
        header = """
extern "C" {
typedef struct box box;
enum { BOX_OPEN = 1 };
WEIR_C_EXPORT int box_make(void (*release)(void* context), box** made);
int box_hidden(void);
static inline int box_one(void) { return 1; }
}
"""
        declared = check_exports.read_headers([header])
        self.assertEqual(dict(declared.functions), {"box_make": 1, "box_hidden": 1})
        self.assertEqual(declared.unmarked, {"box_hidden"})
        marked = check_exports.read_headers([header.replace("int box_hidden(void);", "")])
        self.assertEqual(check_exports.compare(marked, [("T", "box_make", "box_make")]), [])
        self.assertIn("box_other", "".join(check_exports.compare(marked, [("T", "box_other", "box_other")])))

    def test_only_one_symbol(self):
        module = ("T", "PyInit_box", "PyInit_box")
        self.assertEqual(check_exports.compare_with_one("PyInit_box", [module]), [])
        self.assertEqual(len(check_exports.compare_with_one("PyInit_box", [])), 1)
        mixed = ("u", "_ZNSt5ctypeIcE2idE", "std::ctype<char>::id")
        self.assertRegex("\n".join(check_exports.compare_with_one("PyInit_box", [module, mixed])), "std::ctype<char>::id")


if __name__ == "__main__":
    unittest.main()
