"""The timeline's page, used as a reader uses it. Usage: timeline_test.py EXAMPLE CHROMIUM

EXAMPLE is the program examples/timeline.cpp. Exits with 77 if the second argument is no program.
"""

import colorsys
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from browser import Browser

EXAMPLE = Path(sys.argv[1]).resolve()
CHROMIUM = shutil.which(sys.argv[2])
if CHROMIUM is None:
    print("install chromium to test the timeline's page")
    sys.exit(77)

# Where things are, in pixels of the window.
CORNER = "(r => [r.left, r.top])(canvas.getBoundingClientRect())"
OPERATION = """(o => { const r = canvas.getBoundingClientRect();
    return [r.left + (x(o.start) + x(o.end)) / 2, r.top + y(o.lane) + laneHeight() / 2]; })"""
# A point of the longest bar of each label, left of its text and of the arrows that begin and end there; and one of the label's
# swatch in the legend.
BARS_AND_SWATCHES = """[...document.querySelectorAll("#legend button:has(i.box)")].map(entry => {
    const o = log.operations.filter(one => one.label === entry.textContent && one.ran)
        .sort((a, b) => (b.end - b.start) - (a.end - a.start))[0];
    const view = canvas.getBoundingClientRect(), swatch = entry.querySelector("i").getBoundingClientRect();
    return {label: o.label, width: (o.end - o.start) * scale,
        bar: [view.left + x((3 * o.start + o.end) / 4), view.top + y(o.lane) + (laneHeight() + barHeight()) / 2 - 3],
        swatch: [(swatch.left + swatch.right) / 2, (swatch.top + swatch.bottom) / 2]};
})"""
ARROW = """(a => { const r = canvas.getBoundingClientRect(), d = drawn.find(one => one.arrow === a);
    return [r.left + (d.x1 + d.x2) / 2, r.top + (d.y1 + d.y2) / 2]; })"""
LONG_ARROW = "log.arrows.find(a => a.to.label === 'coarse part' && a.to.epoch > 3 && a.to.start > a.from.end)"


def made_up_log(count, streams=8):
    """A log of so many operations, each of which waits for one of another stream."""
    records = [{"format": "weirlog", "version": 2, "clock": "steady"}]
    for s in range(1, streams + 1):
        records.append({"t": 0, "type": "stream", "stream": s, "name": f"s{s}", "device": "cpu", "new": True, "former": [0, 0]})
    for i in range(count):
        at, before = [i % streams + 1, i // streams + 1], [(i - 1) % streams + 1, (i - 1) // streams + 1]
        waits = [{"target": before, "reason": "read_after_write", "for_check": False}] if i else []
        records.append({"t": i * 100, "type": "operation", "at": at, "label": f"work {i % 5}", "file": "a.cpp", "line": i % 90,
                        "function": "main", "kind": "device", "accesses": [], "after": [], "waits": waits, "elisions": []})
        records.append({"t": i * 100 + 600, "type": "execution", "at": at, "start": i * 100, "end": i * 100 + 500})
    records.append({"type": "end", "records": len(records) - 1, "lost": 0})
    return "\n".join(json.dumps(record) for record in records)


class Colours(unittest.TestCase):
    """The page as a reader opens it: its plain address, in a browser of either colour theme."""

    def colours(self, dark):
        """The colours of the bars and of the swatches, by label, as hue, lightness and saturation."""
        with tempfile.TemporaryDirectory() as folder, Browser(CHROMIUM, dark=dark) as browser:
            subprocess.run([EXAMPLE, folder], check=True)
            browser.open((Path(folder) / "weir-timeline.html").as_uri())
            self.assertEqual(browser.run("document.documentElement.dataset.theme"), "dark" if dark else "light")
            self.assertEqual(browser.run("location.hash"), "")
            found = browser.run(BARS_AND_SWATCHES)
            self.assertGreaterEqual(len(found), 4)
            pixels = browser.pixels([point for one in found for point in (one["bar"], one["swatch"])])
            self.assertEqual(browser.errors, [])
        self.assertTrue(all(one["width"] > 8 for one in found), found)
        in_words = [colorsys.rgb_to_hls(*(value / 255 for value in pixel)) for pixel in pixels]
        return {one["label"]: pair for one, pair in zip(found, zip(in_words[::2], in_words[1::2], strict=True), strict=True)}

    def expect_colours(self, dark, lightness):
        hues = set()
        for label, (bar, swatch) in self.colours(dark).items():
            for hue, light, saturation in (bar, swatch):
                self.assertAlmostEqual(light, lightness, delta=0.02, msg=label)
                self.assertAlmostEqual(saturation, 0.58, delta=0.03, msg=label)
                hues.add(round(hue * 14) % 14)
            self.assertAlmostEqual(bar[0], swatch[0], delta=0.01, msg=label)
        self.assertGreaterEqual(len(hues), 4)

    def test_bars_and_swatches_have_their_colours_in_the_light_theme(self):
        self.expect_colours(dark=False, lightness=0.66)

    def test_bars_and_swatches_have_their_colours_in_the_dark_theme(self):
        self.expect_colours(dark=True, lightness=0.58)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([EXAMPLE, cls.folder.name], check=True)
        cls.address = (Path(cls.folder.name) / "weir-timeline.html").as_uri()
        cls.browser = cls.enterClassContext(Browser(CHROMIUM))

    def setUp(self):
        self.browser.errors.clear()
        self.open()

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    def open(self, after=""):
        self.browser.open(self.address + after)

    def run_in_page(self, script):
        return self.browser.run(script)

    def text(self, what):
        return self.browser.run(f"byId({what!r}).innerText")

    def show(self, log):
        self.browser.run(f"show({json.dumps(log)})")
        self.browser.painted()

    def test_one_file_and_nothing_from_elsewhere(self):
        self.assertEqual(self.run_in_page("performance.getEntriesByType('resource').length"), 0)

    def test_four_engines_execute_at_least_three_streams_at_once(self):
        self.assertGreaterEqual(self.run_in_page("log.most"), 3)
        self.assertIn(f"{self.run_in_page('log.most')} at once", self.text("numbers"))
        # The control: the same operations one after the other.
        log = made_up_log(40).split("\n")
        records = [json.loads(line) for line in log]
        for i, record in enumerate(r for r in records if r.get("type") == "execution"):
            record.update(start=i * 500, end=i * 500 + 500)
        self.show("\n".join(json.dumps(record) for record in records))
        self.assertEqual(self.run_in_page("log.most"), 1)

    def test_the_log_says_that_time_is_simulated(self):
        records = [json.loads(line) for line in made_up_log(8).split("\n")]
        executions = [record for record in records if record.get("type") == "execution"]

        def simulated():
            self.show("\n".join(json.dumps(record) for record in records))
            return self.run_in_page("log.simulated"), "simulated time" in self.text("legend")

        executions[-1]["end"] += 1000000  # the length of the delay does not matter
        self.assertEqual(simulated(), (False, False))
        for record in executions:
            record["clock"] = "virtual"
        self.assertEqual(simulated(), (True, True))

    def test_an_arrow_says_its_reason_and_lines(self):
        x, y = self.run_in_page(f"{ARROW}({LONG_ARROW})")
        self.browser.mouse("mouseMoved", x, y)
        said = self.text("tip")
        for words in ("wait that Weir inserted", "read after write", "load on load, timeline.cpp:", "memory #"):
            self.assertIn(words, said)
        self.browser.click(x, y)
        self.assertIn("read after write", self.text("kept"))
        self.browser.mouse("mouseMoved", 300, 60)
        self.assertEqual(self.run_in_page("tip.style.display"), "none", "nothing is said of nothing")
        self.assertIn("read after write", self.text("kept"), "what was clicked stays")

    def test_an_operation_leads_to_those_it_waits_for(self):
        self.browser.click(*self.run_in_page(f"{OPERATION}({LONG_ARROW}.to)"))
        self.assertIn("waits for", self.text("kept"))
        self.assertIn("#at=", self.run_in_page("location.hash"))
        self.run_in_page("document.querySelector('#kept button.link').click()")
        self.assertEqual(self.run_in_page("kept.label"), "load")
        self.browser.press("]")
        self.assertEqual(self.run_in_page("kept.lane.name"), "load")
        self.browser.press("Escape")
        self.assertTrue(self.run_in_page("byId('kept').hidden"))

    def test_elided_waits_are_shown_when_asked_for(self):
        elided = "drawn.filter(one => one.arrow.elided).length"
        self.assertEqual(self.run_in_page(elided), 0)
        self.browser.press("e")
        self.assertGreater(self.run_in_page(elided), 0)
        self.browser.press("w")
        self.assertEqual(self.run_in_page("drawn.filter(one => !one.arrow.elided).length"), 0)

    def test_search(self):
        line = self.run_in_page("log.operations.find(o => o.label === 'add').line")
        for text, label in (("coarse", "coarse part"), (f"timeline.cpp:{line}", "add"), ("fine part device", "fine part")):
            self.browser.press("/")
            self.run_in_page(f"search({text!r})")
            self.assertEqual(self.run_in_page("[...new Set([...found].map(o => o.label))]"), [label], text)
        self.run_in_page("search('no such thing')")
        self.assertEqual(self.text("matches"), "no match")
        self.run_in_page("search('add'); byId('search').focus()")
        self.browser.press("Enter")
        self.assertEqual(self.text("matches"), "1 of 4")
        self.assertEqual(self.run_in_page("kept.label"), "add")

    def test_zoom_and_pan(self):
        left, top = self.run_in_page(CORNER)
        before = self.run_in_page("[timeAt(700), scale]")
        self.browser.mouse("mouseWheel", left + 700, top + 100, deltaX=0, deltaY=-400)
        after = self.run_in_page("[timeAt(700), scale]")
        self.assertAlmostEqual(before[0], after[0], delta=1, msg="what is under the pointer stays there")
        self.assertGreater(after[1], 2 * before[1])
        self.browser.mouse("mousePressed", left + 700, top + 20, button="left", clickCount=1)
        self.browser.mouse("mouseMoved", left + 600, top + 20, button="left", buttons=1)
        self.browser.mouse("mouseReleased", left + 600, top + 20, button="left", clickCount=1)
        self.assertAlmostEqual(self.run_in_page("timeAt(600)"), after[0], delta=1)
        self.assertTrue(self.run_in_page("byId('kept').hidden"), "a drag is no click")
        moved = self.run_in_page("left")
        self.browser.press("ArrowRight")
        self.assertGreater(self.run_in_page("left"), moved)
        self.browser.press("-")
        self.assertLess(self.run_in_page("scale"), after[1])
        self.browser.press("0")
        self.assertAlmostEqual(self.run_in_page("scale"), before[1])

    def test_memory_and_its_peak(self):
        self.assertEqual(self.run_in_page("log.peak"), self.run_in_page("Math.max(...log.memory.map(step => step[1]))"))
        self.assertTrue(self.run_in_page("log.memory.some(([t, n]) => t === log.peakAt && n === log.peak)"))
        self.assertEqual(self.run_in_page("valueAt([[1, 5], [3, 7]], 2)"), 5)
        self.assertEqual(self.run_in_page("log.memory[log.memory.length - 1][1]"), 0, "all is dropped at the end")

    def test_what_is_empty_says_so(self):
        self.show(made_up_log(0))
        self.assertIn("No operation was enqueued", self.text("empty"))
        self.open()
        self.assertEqual(self.text("empty"), "")
        self.run_in_page("byId('log').textContent = 'no log'")
        with self.assertRaises(RuntimeError):
            self.run_in_page("show(byId('log').textContent)")

    def test_an_address_names_what_is_shown(self):
        self.open("#at=2:2&from=10e6&to=40e6&theme=dark&elided")
        self.browser.painted()
        self.assertEqual(self.run_in_page("[kept.lane.id, kept.epoch]"), [2, 2])
        self.assertEqual(self.run_in_page("document.documentElement.dataset.theme"), "dark")
        self.assertAlmostEqual(self.run_in_page("(timeAt(width()) - timeAt(gutter)) / 1e6"), 32, delta=2)

    def test_ten_thousand_operations(self):
        self.show(made_up_log(10000))
        self.assertIn("10000 operations", self.text("numbers"))
        self.assertEqual(self.run_in_page("log.arrows.length"), 9999)
        left, top = self.run_in_page(CORNER)
        for _ in range(10):
            self.browser.mouse("mouseWheel", left + 700, top + 100, deltaX=0, deltaY=-200)
        self.assertTrue(self.run_in_page("drawn.length < 3000 && drawn.length > 0"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
