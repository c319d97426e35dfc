#!/usr/bin/env python3
"""Tests of plant.py."""

from __future__ import annotations

import pathlib
import tempfile
import unittest

import plant


def fault(original: str, mutant: str, **more: str) -> dict[str, str]:
    """A fault in a.cpp."""
    return {"name": "some", "file": "a.cpp", "original": original, "mutant": mutant} | more


class Plant(unittest.TestCase):
    """The planted source."""

    def text(self, source: str, *faults: dict[str, str]) -> str:
        """The source with the faults, without the line that includes the header."""
        return plant.plant(list(faults), {"a.cpp": source})["a.cpp"].split("\n", 1)[1]

    def test_an_expression_becomes_a_choice(self) -> None:
        self.assertEqual(self.text("x = a + b;", fault("a + b", "a")), "x = (::weir_planted_fault(1) ? (a) : (a + b));")

    def test_a_statement_becomes_a_choice(self) -> None:
        planted = self.text("f();", fault("f();", "", form="statement"))
        self.assertEqual(planted, "{ if (::weir_planted_fault(1)) {  } else { f(); } }")

    def test_a_text_names_its_condition(self) -> None:
        planted = self.text("if (a) {", fault("if (a) {", "if (a && !PLANTED) {", form="text"))
        self.assertEqual(planted, "if (a && !::weir_planted_fault(1)) {")

    def test_faults_are_numbered_in_the_order_of_the_list(self) -> None:
        planted = self.text("a; b;", fault("b", "c"), fault("a", "d"))
        self.assertEqual(planted, "(::weir_planted_fault(2) ? (d) : (a)); (::weir_planted_fault(1) ? (c) : (b));")

    def test_what_no_longer_fits_is_refused(self) -> None:
        for source in ("x = c;", "x = a + a;"):
            with self.assertRaisesRegex(plant.StaleFault, "some: its original text occurs"):
                self.text(source, fault("a", "b"))
        with self.assertRaisesRegex(plant.StaleFault, "overlap"):
            self.text("x = a + b;", fault("a + b", "c"), fault("b", "d"))

    def test_a_text_within_a_longer_word_is_not_the_original(self) -> None:
        planted = self.text("known; was_known;", fault("known", "0"))
        self.assertEqual(planted, "(::weir_planted_fault(1) ? (0) : (known)); was_known;")

    def test_each_fault_that_no_longer_fits_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            (top / "src").mkdir()
            (top / "src/a.cpp").write_text("x = a + b;")
            (top / "tests/faults").mkdir(parents=True)
            rows = {"good": ("src/a.cpp", "a + b"), "stale": ("src/a.cpp", "f(1, 2)"), "gone": ("src/b.cpp", "a")}
            listed = "".join(
                f'[[fault]]\nname = "{name}"\nfile = "{file}"\noriginal = "{original}"\nmutant = "0"\ncaught_by = ""\nwhy = ""\n'
                for name, (file, original) in rows.items()
            )
            (top / "tests/faults/faults.toml").write_text(listed)
            wrong = plant.complaints(top)
        self.assertEqual(len(wrong), 2)
        self.assertIn("fault stale: its original text occurs 0 times", wrong[0])
        self.assertIn("fault gone: src/b.cpp is gone", wrong[1])

    def test_the_list_fits_the_sources(self) -> None:
        """Each fault of the list can be planted, and there are enough of them."""
        repository = pathlib.Path(__file__).parents[2]
        faults = plant.read_faults(repository / "tests/faults/faults.toml")
        faults = [plant.located(repository, one) for one in faults]
        sources = {one["file"]: (repository / one["file"]).read_text() for one in faults}
        changed = plant.plant(faults, sources)
        self.assertGreaterEqual(len(faults), 50)
        self.assertEqual(changed.keys(), sources.keys())

    def test_two_of_one_name_are_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "faults.toml")
            one = "".join(f'{key} = "x"\n' for key in ("name", "file", "original", "mutant", "caught_by", "why"))
            path.write_text(f"[[fault]]\n{one}[[fault]]\n{one}")
            with self.assertRaisesRegex(plant.StaleFault, "one name: x"):
                plant.read_faults(path)

    def test_what_calls_itself_an_expression_and_is_none_is_refused(self) -> None:
        for original, why in (("int a = b;", "is a statement"), ("{0, size}", "is no expression")):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "faults.toml")
                keys = ("name", "file", "mutant", "caught_by", "why")
                path.write_text("[[fault]]\n" + "".join(f'{key} = "x"\n' for key in keys) + f'original = "{original}"\n')
                with self.assertRaisesRegex(plant.StaleFault, why):
                    plant.read_faults(path)


class Renames(unittest.TestCase):
    """Faults follow what was renamed in the sources, and nothing else."""

    def text(self, source: str, *faults: dict[str, str]) -> str:
        """The source with the faults, without the line that includes the header."""
        self.notes: list[str] = []
        return plant.plant(list(faults), {"a.cpp": source}, self.notes)["a.cpp"].split("\n", 1)[1]

    def test_a_variable_that_was_renamed_is_renamed_in_the_mutant(self) -> None:
        planted = self.text("int f() { return later + later * step; }", fault("a + a * b", "a - other(b)"))
        choice = "(::weir_planted_fault(1) ? (later - other(step)) : (later + later * step))"
        self.assertEqual(planted, f"int f() {{ return {choice}; }}")
        self.assertEqual(self.notes, ["fault some follows a rename: a -> later, b -> step"])

    def test_a_function_and_a_member_that_were_renamed_are_found_among_others_like_them(self) -> None:
        source = "queue->pin(at); count->drop(end);"
        planted = self.text(source, fault("lane->drop_all(at);", "lane->keep(at);", form="statement"), fault("count->drop(end)", "0"))
        self.assertIn("if (::weir_planted_fault(1)) { queue->keep(at); } else { queue->pin(at); }", planted)

    def test_comments_white_space_and_line_breaks_do_not_count(self) -> None:
        source = "if (a &&\n    /* both */ b) {  // or none\n    f();"
        self.assertIn("if (!::weir_planted_fault(1) && a) {", self.text(source, fault("if (a && b) { f();", "if (!PLANTED && a) {", form="text")))
        self.assertEqual(self.notes, [])

    def test_the_place_that_needs_the_fewest_renames_is_the_fault(self) -> None:
        planted = self.text("x = max(queue->at, limit); y = max(p->at, q);", fault("max(lane->at, limit)", "limit"))
        self.assertTrue(planted.startswith("x = (::weir_planted_fault(1) ? (limit) : (max(queue->at, limit)));"))

    def test_a_name_that_the_file_still_has_was_not_renamed(self) -> None:
        planted = self.text("int when; kept.where = added.where; kept.when = more.when;", fault("kept.when = extra.when", "0"))
        self.assertIn("(0) : (kept.when = more.when)", planted)

    def test_names_in_texts_and_comments_are_not_renamed(self) -> None:
        planted = self.text('f("a", b);', fault('f("a", a)', 'g("a", a /* a */)'))
        self.assertIn('(g("a", b /* a */))', planted)

    def test_two_places_that_are_equally_like_it_are_refused_with_their_lines(self) -> None:
        with self.assertRaisesRegex(plant.StaleFault, "some: .* 0 times in a.cpp, and it may be any of the lines 1, 3: say which"):
            self.text("x = c + d;\n\ny = e + f;", fault("a + b", "a"))

    def test_a_change_that_is_no_rename_is_refused(self) -> None:
        changes = {
            "another operator": ("a + b", "x = a - b;"),
            "another number": ("a + b + 1", "x = a + b + 2;"),
            "one name for two": ("a + b + 1", "x = a + a + 1;"),
            "two names for one": ("f(a, a)", "f(b, c);"),
            "another function of std": ("std::max(a, b)", "std::min(a, b);"),
            "another keyword": ("if (a) {", "while (a) {"),
            "another text": ('g("a")', 'g("b");'),
        }
        for change, (original, source) in changes.items():
            with self.subTest(change), self.assertRaisesRegex(plant.StaleFault, "nothing there has its shape: say what the fault is now"):
                self.text(source, fault(original, "0"))

    def test_a_statement_is_not_found_within_another_one(self) -> None:
        with self.assertRaisesRegex(plant.StaleFault, "nothing there has its shape"):
            self.text("x = of->stop();", fault("halt();", "", form="statement"))

    def test_a_file_that_was_moved_is_found_by_its_name(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            repository = pathlib.Path(folder)
            for path in ("src/new/one.cpp", "src/a/two.cpp", "include/two.cpp", "src/same.cpp", "src/b/same.cpp"):
                (repository / path).parent.mkdir(parents=True, exist_ok=True)
                (repository / path).write_text("")
            self.assertEqual(plant.found_file(repository, "src/old/one.cpp"), "src/new/one.cpp")
            self.assertEqual(plant.found_file(repository, "src/same.cpp"), "src/same.cpp")
            with self.assertRaisesRegex(plant.StaleFault, "several files have its name: include/two.cpp, src/a/two.cpp"):
                plant.found_file(repository, "src/two.cpp")
            with self.assertRaisesRegex(plant.StaleFault, "src/three.cpp is gone, and no other file has its name"):
                plant.found_file(repository, "src/three.cpp")


if __name__ == "__main__":
    unittest.main()
