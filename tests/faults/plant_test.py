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
    """What becomes of a source."""

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

    def test_the_list_fits_the_sources(self) -> None:
        """Each fault of the list can be planted, and there are enough of them."""
        repository = pathlib.Path(__file__).parents[2]
        faults = plant.read_faults(repository / "tests/faults/faults.toml")
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

    def test_a_statement_that_calls_itself_an_expression_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "faults.toml")
            keys = ("name", "file", "mutant", "caught_by", "why")
            path.write_text("[[fault]]\n" + "".join(f'{key} = "x"\n' for key in keys) + 'original = "int a = b;"\n')
            with self.assertRaisesRegex(plant.StaleFault, "is a statement"):
                plant.read_faults(path)


if __name__ == "__main__":
    unittest.main()
