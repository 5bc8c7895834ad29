"""Pages in a headless Chromium: no error in the console, no request to the network, and the curves of the data are there.

Runs under the interpreter that tools/plot.py's first line names. The sweep needs the program: SCALETRACE names it, else it is skipped.
"""

import math
import os
import subprocess
import sys
import unittest

import browser
import test_plot
from test_plot import HAVE_MATPLOTLIB, HAVE_PLOTLY, PROGRAM, PYTHON, row

if not HAVE_MATPLOTLIB and sys.executable != PYTHON and os.path.exists(PYTHON) and __name__ == "__main__":
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])

HISTOGRAMS = [f"{step},output_gradient,{scale},{exponent},{count}\n" for step, scale, exponent, count in
              ((0, 1024, -4, 60), (0, 1024, "zero", 4), (50, 2048, -3, 16), (50, 2048, -2, 48))]  # fmt: skip
CONFIG = "name: sample\nprecision:\n  output_gradient: {format: float16, rounding: nearest-even}\n"


def sample_rows(steps=40):
    """A bit of everything: events, a loss that is not finite, an infinite scale at the end."""
    events = {5: "growth", 11: "backoff", 12: "backoff", 30: "overflow", 31: "overflow"}
    return [row(i, "NaN" if i in (20, 21) else 1.5 + i, "inf" if i >= 30 else 2.0**14 if 11 < i else 2.0**16, events.get(i, "overflow" if i > 31 else ""))
            for i in range(steps)]  # fmt: skip


@unittest.skipUnless(HAVE_MATPLOTLIB and HAVE_PLOTLY, "matplotlib or plotly is not installed (Debian: python3-matplotlib, python3-plotly)")
@unittest.skipUnless(browser.PROGRAM, browser.MISSING)
class PagesTest(unittest.TestCase):
    write, plot = test_plot.PlotTest.write, test_plot.PlotTest.plot

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        test_plot.PlotTest.setUp(self)
        self.write([CONFIG], header="", name="config.resolved.yaml")
        self.page = os.path.join(self.folder, "page.html")

    def open(self, *arguments, dark=False):
        done = self.plot(*arguments, "-o", self.page)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = self.browser.open(self.page, dark)
        self.addCleanup(page.close)
        self.assertEqual(page.problems(), [])
        return page

    def curve(self, page, meta):
        """Of the trace with this name: its points, and the number of points (of marks: shapes) that were drawn."""
        return page.evaluate(f"""(() => {{
            const place = document.getElementById("plot0"), at = place._fullData.findIndex(trace => trace.meta === {meta!r});
            if (at < 0) return null;
            const trace = place.data[at], group = [...place.querySelectorAll("g.trace.scatter")].find(g => g.__data__[0].trace.index === at);
            const lines = [...group.querySelectorAll("path.js-line")], marks = group.querySelectorAll(".points path");
            const points = lines.reduce((sum, line) => sum + line.getAttribute("d").split(/[MLHV]/).length - 1, 0);
            return {{x: trace.x, y: trace.y, line: points, marks: marks.length, look: lines.length ? getComputedStyle(lines[0]).strokeDasharray : ""}};
        }})()""")

    # ---- the test can fail ----

    def open_text(self, text):
        self.write([text], header="", name="page.html")
        page = self.browser.open(self.page)
        self.addCleanup(page.close)
        return page.problems()

    def test_a_page_that_complains_or_asks_the_network_is_found_out(self):
        self.assertEqual(self.open_text("<link rel=icon href='data:,'><p>quiet"), [])
        self.assertEqual(self.open_text("<script>console.error('no', 5)</script>"), ["console error: no 5"])
        (problem,) = self.open_text("<script>nowhere()</script>")
        self.assertIn("nowhere is not defined", problem)
        for text in ("<img src='http://127.0.0.1:9/a.png'>", "<script src='http://127.0.0.1:9/a.png'></script>", "<script>fetch('http://127.0.0.1:9/a.png')</script>",
                     "<style>p { background: url(http://127.0.0.1:9/a.png) }</style><p>x"):  # fmt: skip
            self.assertIn("request: http://127.0.0.1:9/a.png", self.open_text(text), text)

    # ---- traces ----

    def test_a_run_has_its_curves_with_the_values_of_its_trace(self):
        page = self.open(self.write(sample_rows()))
        loss = self.curve(page, "run0-loss")
        self.assertEqual(loss["x"], list(range(40)))
        self.assertEqual(loss["y"], [None if i in (20, 21) else 1.5 + i for i in range(40)])
        self.assertGreaterEqual(loss["line"], 4)  # a straight line may be drawn with its ends alone, two lines here
        scale = self.curve(page, "run0-scale")
        self.assertEqual(scale["x"], [0, 12, 12, 30, 30, 40])
        self.assertEqual(scale["y"][:4], [16, 16, 14, 14])
        self.assertGreater(scale["y"][4], 16)  # inf: a row of its own
        self.assertEqual(scale["line"], 6)
        words = page.evaluate("[...document.querySelectorAll('#plot0 .ytick text, #plot0 .y2tick text')].map(text => text.textContent)")
        self.assertIn("inf", words)
        self.assertTrue(any("2" in word and "16" in word for word in words), words)
        for event, steps in (("growth", [5]), ("backoff", [11, 12]), ("overflow", [30, 39])):
            marks = self.curve(page, "run0-event-" + event)
            self.assertEqual((marks["x"], marks["marks"]), (steps, len(steps)))
        bad = self.curve(page, "run0-loss-nonfinite")
        self.assertEqual((bad["x"], bad["marks"]), ([20, 21], 2))
        self.assertEqual(bad["y"], [page.evaluate("document.getElementById('plot0').layout.yaxis.range[1]")] * 2)
        for panel in ("y", "y2"):
            self.assertEqual(self.curve(page, "skipped-" + panel)["x"], [11, 11, 13, 13, None, 30, 30, 40, 40, None])
        self.assertEqual(page.evaluate("document.querySelector('h1').textContent"), "sample")
        self.assertEqual(page.evaluate("document.querySelectorAll('#plot0 .annotation').length"), 1)  # the largest float16

    def test_updates_and_a_log_axis_are_those_that_were_asked_for(self):
        page = self.open(self.write(sample_rows()), "--x", "update", "--range", "5:15", "--log")
        self.assertEqual(self.curve(page, "run0-event-backoff")["x"], [11, 11])
        self.assertEqual(page.evaluate("document.getElementById('plot0').layout.yaxis.type"), "log")
        self.assertEqual(page.evaluate("document.getElementById('plot0').layout.xaxis.title.text"), "update")
        self.assertEqual(min(self.curve(page, "run0-loss")["x"]), 4)  # the row that ends where the range begins

    def test_runs_overlaid_have_curves_and_lanes_of_their_own(self):
        page = self.open(self.write(sample_rows(), name="a.csv"), self.write(sample_rows(36)[:25], name="b.csv"))
        for number, steps in ((0, 40), (1, 25)):
            self.assertEqual(len(self.curve(page, f"run{number}-loss")["x"]), steps)
            self.assertEqual(self.curve(page, f"run{number}-event-backoff")["marks"], 2)
            self.assertEqual(self.curve(page, f"run{number}-loss-nonfinite")["x"], [20, 21])
        self.assertNotEqual(self.curve(page, "run0-loss")["look"], self.curve(page, "run1-loss")["look"])  # told apart without colour
        lanes = page.evaluate("document.getElementById('plot0').data.filter(trace => trace.meta === 'skipped-y2').map(trace => [trace.x.length, trace.y[0]])")
        self.assertEqual([length for length, _ in lanes], [10, 5])
        self.assertGreater(lanes[0][1], lanes[1][1])

    def test_thousands_of_steps_are_thinned_and_keep_their_peak_and_their_events(self):
        rows = [row(i, 1e6 if i == 31234 else 1 + i % 7, 1024.0, {777: "growth", 31235: "floor"}.get(i, "")) for i in range(60000)]
        page = self.open(self.write(rows))
        loss = self.curve(page, "run0-loss")
        self.assertLess(len(loss["x"]), 15000)
        self.assertEqual(loss["x"][loss["y"].index(1000000)], 31234)
        self.assertEqual((self.curve(page, "run0-event-growth")["x"], self.curve(page, "run0-event-floor")["x"]), ([777], [31235]))

    # ---- light, dark, paper ----

    def test_the_page_is_dark_where_the_system_is_and_the_button_turns_it(self):
        def look(page):
            return page.evaluate("""[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector("#plot0 .main-svg")).backgroundColor,
                getComputedStyle(document.querySelector("#plot0 .xtick text")).fill, document.getElementById("theme").textContent]""")

        trace = self.write(sample_rows())
        light, dark = look(self.open(trace)), look(self.open(trace, dark=True))
        for parts in zip(light, dark):
            self.assertNotEqual(*parts)
        self.assertEqual((light[0], light[1], light[3], dark[3]), ("rgb(255, 255, 255)", "rgb(255, 255, 255)", "dark", "light"))
        page = self.open(trace)
        page.evaluate("Plotly.relayout('plot0', {'xaxis.range': [10, 20]}); 0")
        page.evaluate("document.getElementById('theme').click()")
        self.assertEqual(look(page), dark)
        self.assertEqual(page.evaluate("document.getElementById('plot0')._fullLayout.xaxis.range"), [10, 20])  # what was zoomed to stays
        page.evaluate("document.getElementById('theme').click()")
        self.assertEqual(look(page), light)
        self.assertEqual(page.problems(), [])

    def test_on_paper_stands_the_picture_in_light_colours(self):
        page = self.open(self.write(sample_rows()), dark=True)
        shown = "['.plot', '.picture', '#theme'].map(what => getComputedStyle(document.querySelector(what)).display)"
        self.assertEqual(page.evaluate(shown), ["block", "none", "block"])
        page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertEqual(page.evaluate(shown), ["none", "block", "none"])
        self.assertEqual(page.evaluate("getComputedStyle(document.querySelector('#p0-scale path')).stroke"), "rgb(26, 26, 26)")
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")

    # ---- histograms, sweeps ----

    def test_histograms_have_the_shares_of_the_rows(self):
        self.write(HISTOGRAMS, header="step,tensor,loss_scale,exponent,count\n", name="histograms.csv")
        page = self.open("--hist", self.folder)
        maps = page.evaluate("document.getElementById('plot0').data.map(trace => ({type: trace.type, x: trace.x, y: trace.y, z: trace.z}))")
        self.assertEqual([each["type"] for each in maps], ["heatmap"] * 2)
        self.assertEqual((maps[0]["y"], maps[1]["y"]), ([-4.5, -3.5, -2.5, -1.5], [-14.5, -13.5, -12.5]))
        share = [[None if value is None else round(10**value, 6) for value in line] for line in maps[0]["z"]]
        self.assertEqual(share, [[0.9375, None], [None, 0.25], [None, 0.75]])
        self.assertEqual(page.evaluate("document.querySelectorAll('#plot0 .heatmaplayer image').length"), 2)
        limits = page.evaluate("document.getElementById('plot0').layout.shapes.map(shape => shape.y0)")
        self.assertEqual(limits, [15.5, -14.5, -24.5] * 2)
        self.assertIn("zero 3.1 %", page.evaluate("document.body.textContent"))

    @unittest.skipUnless(os.path.exists(PROGRAM), f"no program at {PROGRAM}")
    def test_a_sweep_has_a_cell_for_each_combination_and_says_its_value(self):
        config, out = self.write(["name: small\nsteps: 60\ndata: {samples: 8, features: 4}\nprecision: {compute: float16}\nscaler: {policy: static}\n"
                                  "sweep:\n  axes:\n    optimizer.lr: {logrange: [0.001, 100], count: 6}\n    scaler.init_scale: {log2range: [10, 24], step: 2}\n"],
                                 header="", name="sweep.yaml"), os.path.join(self.folder, "out")  # fmt: skip
        subprocess.run([PROGRAM, "sweep", config, "--out", out], check=True, capture_output=True, timeout=120)
        page = self.open(out)
        with open(os.path.join(out, "results.csv"), encoding="utf-8") as file:
            header, *rows = [line.rstrip("\n").split(",") for line in file]
        verdict, loss = header.index("verdict"), header.index("final_loss")
        tips = page.evaluate("[...document.querySelectorAll('.picture .tip')].map(tip => tip.textContent.split('\\n'))")
        self.assertEqual(len(tips), 48)
        said = {(float(x.split()[1]), math.log2(float(y.split()[1].replace("2^", "")) if "^" not in y else 2.0 ** float(y.split("^")[1]))): words for x, y, words in tips}
        for cells in rows:
            words = said[(float("%g" % float(cells[1])), math.log2(float(cells[2])))]
            expected = f"final loss {float(cells[loss]):g}" if cells[verdict] == "ok" else cells[verdict]
            self.assertEqual(words, expected)
        self.assertEqual(page.evaluate("document.querySelectorAll('#p0-map0 path[style*=\"fill: #\"]').length"), sum(cells[verdict] == "ok" for cells in rows))


if __name__ == "__main__":
    unittest.main()
