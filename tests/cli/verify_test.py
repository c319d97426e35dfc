"""weir verify: exit status, words, and whole processes traced by WEIR_TRACE. Usage: verify_test.py WEIR"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from command import CommandTest, main
from demo_test import write_wav

DOCS = Path(__file__).parents[2] / "docs"


def example():
    """The log in the documentation of the format."""
    text = (DOCS / "evidence-log.md").read_text()
    return text.split("```json\n", 1)[1].split("```", 1)[0]


class Verify(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def verify(self, status, text, *options):
        log = self.folder / "run.weirlog"
        log.write_text(text)
        result = self.run_weir("verify", log, *options)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout

    def test_a_good_log(self):
        self.assertEqual(self.verify(0, example(), "--strict"), "verified: 3 operations, 1 waits, 1 elisions\n")

    def test_a_missing_wait(self):
        wait = '{"target":[1,1],"reason":"read_after_write","for_check":false}'
        self.assertIn(wait, example())
        said = self.verify(1, example().replace(wait, ""))
        for words in ("violation: unordered", '"sum" at main.cpp:15', '"fill" at main.cpp:14', 'stream 2 "work", epoch 1',
                      "a wait for [1, 1] before [2, 1]", "not verified: 3 operations"):
            self.assertIn(words, said)
        found = json.loads(self.verify(1, example().replace(wait, ""), "--json"))
        self.assertEqual(found["status"], "violations")
        self.assertEqual([one["kind"] for one in found["findings"]], ["unordered", "witness", "unordered"])
        self.assertEqual(found["findings"][0]["here"]["place"]["line"], 15)

    def test_what_the_program_orders_itself(self):
        wait = '{"target":[1,1],"reason":"read_after_write","for_check":false}'
        manual = example().replace(wait, "").replace("automatic", "manual")
        manual = "\n".join(line.split('"elisions"')[0] + '"elisions":[]}' if '"elisions":[{' in line else line
                           for line in manual.splitlines()) + "\n"
        self.assertNotIn("information:", self.verify(0, manual))
        self.assertIn("information: manual", self.verify(0, manual, "--all"))
        self.assertIn("violation: unordered", self.verify(1, manual, "--as-automatic"))

    def test_a_wait_too_many(self):
        elision = '"waits":[],"elisions":[{"target":[1,1],"reason":"read_after_write","because":"known","witness":[2,1]}]'
        wait = '"waits":[{"target":[1,1],"reason":"read_after_write","for_check":false}],"elisions":[]'
        self.assertIn(elision, example())
        more = example().replace(elision, wait)
        self.assertIn("1 notes", self.verify(0, more))
        self.assertIn("note: redundant-wait", self.verify(1, more, "--strict"))

    def test_earlier_revisions_and_virtual_clocks(self):
        execution = '"start":11301,"end":13102}'
        self.assertIn('"revision":3,', example())
        self.assertIn(execution, example())
        expected = self.verify(0, example())
        self.assertEqual(self.verify(0, example().replace('"revision":3,', "")), expected)
        self.assertEqual(self.verify(0, example().replace('"revision":3,', '"revision":7,')), expected)
        on = execution[:-1] + ',"clock":"virtual"}'
        self.assertEqual(self.verify(0, example().replace(execution, on)), expected)
        self.assertIn('"clock" is "sundial"', self.verify(2, example().replace(execution, on.replace("virtual", "sundial"))))

    def test_incomplete_logs_and_wrong_use(self):
        cut = "".join(example().splitlines(keepends=True)[:-1])
        self.assertIn("line 11: the log ends here", self.verify(2, cut))
        self.assertIn("there was no memory for 3 records", self.verify(2, example().replace('"lost":0', '"lost":3')))
        self.assertIn("version 1", self.verify(2, example().replace('"version":2', '"version":1')))
        self.assertIn("line 1:", self.verify(2, "music\n"))
        self.assertEqual(self.run_weir("verify").returncode, 2)
        self.assertEqual(self.run_weir("verify", self.folder / "none.weirlog").returncode, 2)
        self.assertEqual(self.run_weir("verify", "--nonsense", self.folder).returncode, 2)

    def test_help_is_the_verifiers(self):
        result = self.run_weir("verify", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--ignore-completion", result.stdout)

    def test_a_weir_without_its_verifier(self):
        alone = self.folder / "weir"
        shutil.copy(self.command, alone)
        log = self.folder / "run.weirlog"
        log.write_text(example())
        paths = {"missing": str(self.folder), "in PATH": str(Path(self.command).parent)}
        for where, path in paths.items():
            result = subprocess.run([alone, "verify", log], capture_output=True, text=True, check=False, timeout=60,
                                    env={**os.environ, "PATH": path})
            self.assertEqual(result.returncode, 2 if where == "missing" else 0, where + result.stderr)

    def test_a_process_that_is_traced(self):
        music = write_wav(self.folder / "music.wav", 1)
        log = self.folder / "all.weirlog"
        result = self.run_weir("demo", music, "--output", self.folder / "results", WEIR_TRACE=str(log))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        # Three acts, with and without check, and many runs to take the time.
        said = self.run_weir("verify", log)
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertRegex(said.stdout, r"^verified: \d{3,} operations, \d{3,} waits, \d{2,} elisions")
        self.assertNotIn("not in the log", said.stdout, "nothing was before it")
        said = self.run_weir("verify", log, "--as-automatic", "--ignore-completion")
        self.assertEqual(said.returncode, 1, "act 1 has races")
        self.assertIn("pipeline.cpp", said.stdout)
        own = self.run_weir("verify", self.folder / "results" / "evidence.weirlog", "--strict")
        self.assertEqual(own.returncode, 0, own.stdout)

    def test_a_process_that_cannot_be_traced_runs_all_the_same(self):
        for file in ("trace.txt", "none/trace.html"):
            result = self.run_weir("info", WEIR_TRACE=str(self.folder / file))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("weir trace: WEIR_TRACE: cannot trace to", result.stderr)
        page = self.folder / "trace.html"
        self.assertEqual(self.run_weir("info", WEIR_TRACE=str(page)).returncode, 0)
        self.assertIn("</html>", page.read_text())


if __name__ == "__main__":
    main()
