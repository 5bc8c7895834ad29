"""tools/report.py on real runs and sweeps, and on traces made here: what the page says against the program and the files, its links in Chromium, errors.

Runs under the interpreter that tools/plot.py's first line names. Needs the program: SCALETRACE names it.
"""

import base64
import contextlib
import csv
import html
import io
import json
import os
import re
import subprocess
import sys
import unittest

import browser
import test_plot
from test_plot import HAVE_MATPLOTLIB, HAVE_PLOTLY, PROGRAM, PYTHON, ROOT, row

if not HAVE_MATPLOTLIB and sys.executable != PYTHON and os.path.exists(PYTHON) and __name__ == "__main__":
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])

if HAVE_MATPLOTLIB:
    import report

SWEEP = ("name: small\nsteps: 60\ndata: {samples: 8, features: 4}\nprecision: {compute: float16}\nscaler: {policy: static}\n"
         "sweep:\n  axes:\n    optimizer.lr: {logrange: [0.001, 100], count: 6}\n    scaler.init_scale: {log2range: [10, 24], step: 2}\n"
         "  keep_traces: sample 3\n")  # fmt: skip


def text_of(markup):
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@unittest.skipUnless(HAVE_MATPLOTLIB and HAVE_PLOTLY, "matplotlib or plotly is not installed (Debian: python3-matplotlib, python3-plotly)")
@unittest.skipUnless(os.path.exists(PROGRAM), f"no program at {PROGRAM}")
class ReportTest(unittest.TestCase):
    write, assert_error = test_plot.PlotTest.write, test_plot.PlotTest.assert_error

    def setUp(self):
        test_plot.PlotTest.setUp(self)
        before = os.environ.get("SCALETRACE")
        os.environ["SCALETRACE"] = PROGRAM
        self.addCleanup(lambda: os.environ.update(SCALETRACE=before) if before else os.environ.pop("SCALETRACE"))
        self.output = os.path.join(self.folder, "page.html")

    def report(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = report.main(list(arguments))
            except SystemExit as end:
                code = end.code
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def page(self, *arguments):
        done = self.report(*arguments, "-o", self.output)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", self.output + "\n"))
        with open(self.output, encoding="utf-8") as file:
            return file.read()

    def run_of(self, config, *arguments):
        folder = os.path.join(self.folder, os.path.basename(config))
        subprocess.run([PROGRAM, "run", os.path.join(ROOT, "configs", config + ".yaml"), "--quiet", "--out", folder, *arguments], check=True, timeout=120)
        return folder

    def sweep(self):
        folder = os.path.join(self.folder, "out")
        subprocess.run([PROGRAM, "sweep", self.write([SWEEP], header="", name="s.yaml"), "--out", folder], check=True, capture_output=True, timeout=120)
        return folder

    def said(self, folder):
        return json.loads(subprocess.run([PROGRAM, "show", folder, "--json"], capture_output=True, text=True, check=True).stdout)

    def rows(self, text):
        """Of the table of events: (id, first step, last step, kind)."""
        found = re.findall(r'<tr id="event(\d+)" data-kind="(\w+)"[^>]*><td><a[^>]*>(\d+)(?: to (\d+))?</a>', text)
        return [(int(number), int(first), int(last or first), kind) for number, kind, first, last in found]

    # ---- a run ----

    def test_the_verdict_and_the_story_are_those_of_show(self):
        for name, words in (("quickstart", "ok"), ("stuck-at-inf", "scale is inf"), ("policy-floor-raise", "the policy raised")):
            folder = self.run_of(name)
            text, said = self.page(folder), self.said(folder)
            lead = re.search(r'<div class="lead"><span class="badge (\w*)">(.*?)</span><p>(.*?)</p>', text)
            self.assertEqual((lead[1], lead[2], html.unescape(lead[3])), ("ok" if words == "ok" else "", words, said["story"]))
            numbers = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))
            for key, what in (("steps", "steps"), ("updates", "updates"), ("growths", "growths"), ("backoffs", "backoffs")):
                self.assertEqual(numbers[what], str(said["summary"][key]))

    def test_the_table_has_each_event_of_the_trace_once_and_streaks_in_one_row(self):
        folder = self.run_of("stuck-at-inf")
        rows = self.rows(self.page(folder))
        with open(os.path.join(folder, "trace.csv"), encoding="utf-8") as file:
            events = {int(line["step"]): line["event"] for line in csv.DictReader(file) if line["event"]}
        self.assertEqual({step: kind for _, first, last, kind in rows for step in range(first, last + 1)}, events)
        self.assertEqual(rows[-1][1:], (280, 599, "overflow"))
        self.assertEqual([number for number, *_ in rows], list(range(29)))

    def test_of_many_events_the_first_and_the_last_stand_in_the_table_and_the_rest_is_counted(self):
        trace = self.write([row(i, 1.0, 8.0 if i % 2 else 4.0, "backoff" if i % 2 else "growth") for i in range(20000)])
        text = self.page(trace)
        rows = self.rows(text)
        self.assertEqual([first for _, first, _, _ in rows], [*range(500), *range(19500, 20000)])
        self.assertIn("The first 500 and the last 500 stand here, 19\u2009000 are left out (--events N); all are in trace.csv", text)
        self.assertIn("19\u2009000 rows left out here, from step 500 to 19499", text)
        self.assertLess(len(text), 12_000_000)
        self.assertEqual(len(self.rows(self.page(trace, "--events", "7"))), 7)

    def test_the_config_that_the_page_offers_gives_the_same_trace(self):
        folder = self.run_of("quickstart", "--set", "seed=9", "--set", "steps=300")
        text = self.page(folder)
        name, data = re.search(r'<a download="(.*?)" href="data:text/yaml;base64,(.*?)"', text).groups()
        self.assertEqual(name, "quickstart.yaml")
        config = os.path.join(self.folder, name)
        with open(config, "wb") as file:
            file.write(base64.b64decode(data))
        commands = re.search(r"<pre>(scaletrace run quickstart.yaml.*?)</pre>", text, re.S)[1]
        first = html.unescape(commands).splitlines()[:2]
        self.assertTrue(first[1].startswith(f"scaletrace diff {folder} again"), first)
        for command in first:
            done = subprocess.run(["sh", "-c", command.replace("scaletrace", PROGRAM, 1)], cwd=self.folder, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, command + done.stdout + done.stderr)

    def test_a_run_that_is_not_done_is_said_to_be_so(self):
        folder = self.run_of("quickstart")
        os.unlink(os.path.join(folder, "summary.json"))
        with open(os.path.join(folder, "trace.csv"), "a", encoding="utf-8") as file:
            file.write("2000,0.0")
        text = self.page(folder)
        self.assertIn('<span class="badge open">not done</span>', text)
        self.assertIn("The run is in progress, or was stopped: 2000 rows, up to step 1999. So far: The scale grew", text)

    def test_traces_at_the_edges_have_a_page(self):
        for name, rows in (("one", [row(0, 1.0, 8.0)]), ("skipped", [row(i, 1.0, 8.0, "forgiven") for i in range(50)]),
                           ("bad", [row(i, "NaN", "inf", "overflow") for i in range(5)]), ("part", [row(7, 1.0, 8.0), row(90, 2.0, 4.0)])):  # fmt: skip
            for x in ("step", "update") if name != "part" else ("step",):
                with self.subTest(name, x=x):
                    self.page(self.write(rows, name=name + ".csv"), "--x", x)
        self.assertIn("no verdict", self.page(self.write([row(7, 1.0, 8.0), row(90, 2.0, 4.0)])))
        self.assertIn("None: the scale was left as it was", self.page(self.write([row(0, 1.0, 8.0)])))

    def test_names_are_text_and_no_markup(self):
        self.write(['name: "<b>&amp;"\n'], header="", name="config.resolved.yaml")
        text = self.page(self.write([row(0, 1.0, 8.0, "growth"), row(1, 1.0, 16.0)]), "--title", "</script><script>alert(1)</script>")
        self.assertNotIn("<script>alert", text)
        self.assertIn("<h1>&lt;/script&gt;", text)

    def test_the_same_run_gives_the_same_bytes(self):
        folder = self.run_of("stuck-at-inf")
        self.assertTrue(self.page(folder) == self.page(folder))

    # ---- a sweep ----

    def test_a_sweep_has_its_verdicts_counted_and_its_best_and_worst_runs(self):
        folder = self.sweep()
        text = self.page(folder)
        with open(os.path.join(folder, "results.csv"), encoding="utf-8") as file:
            results = list(csv.DictReader(file))
        verdicts = [line["verdict"] for line in results]
        table = re.search(r'id="verdicts">.*?</table>', text, re.S)[0]
        counts = {text_of(a): int(n) for a, n in re.findall(r"<tr><td>(.*?)</td><td>(\d+)</td>", table)}
        self.assertEqual(counts, {report.VERDICT_WORDS[verdict]: verdicts.count(verdict) for verdict in set(verdicts)})
        ranked = sorted((float(line["final_loss"]), int(line["run"])) for line in results if line["verdict"] == "ok")
        best, worst = (re.findall(r"<tr><td>(\d+)", re.search(f'id="{name}">.*?</table>', text, re.S)[0]) for name in ("best", "worst"))
        self.assertEqual([int(run) for run in best], [run for _, run in ranked[:10]])
        self.assertGreater(len(ranked), 0)
        self.assertTrue(all(results[int(run)]["verdict"] != "ok" for run in worst))
        self.assertEqual(len(worst), 10)
        self.assertIn("keep_traces: sample 3", text)
        for kind in ("map", "fan", "spread", "steps"):
            self.assertIn(f"--as {kind}</code>", text)
        # The command of a row gives the config of that run.
        command = html.unescape(re.search(r"<code>(scaletrace sweep config .*?)</code>", text)[1])
        done = subprocess.run(["sh", "-c", command.replace("scaletrace", PROGRAM, 1).split(">")[0]], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        lr = float(re.search(r"^  lr: (\S+)", done.stdout, re.M)[1])
        self.assertAlmostEqual(lr, float(results[int(best[0])]["optimizer.lr"]), places=9)

    # ---- errors ----

    def test_errors_are_one_line(self):
        self.assert_error(self.report(), 2, "RUN|TRACE|SWEEP", "--help)")
        self.assert_error(self.report(self.folder, "-o", "a.png"), 2, ".html")
        self.assert_error(self.report(self.folder, "--events", "0"), 2, "1 to 100000")
        self.assert_error(self.report(os.path.join(self.folder, "nowhere")), 3, "nowhere: no such file or folder")
        self.assert_error(self.report(self.folder), 3, "neither a trace.csv", "nor a results.csv")
        trace = self.write([row(0, 1.0, 8.0)])
        self.assert_error(self.report(trace, "-o", os.path.join(self.folder, "no", "page.html")), 3, "page.html: No such file")
        os.mkdir(os.path.join(self.folder, "folder.html"))
        self.assert_error(self.report(trace, "-o", os.path.join(self.folder, "folder.html")), 3, "folder.html: is a folder")
        self.assert_error(self.report(self.write([])), 3, "no rows")
        self.assert_error(self.report(self.write([row(0, 1.0, 8.0)[:-3]])), 3, "cut off")
        os.mkdir(os.path.join(self.folder, "sweep"))
        self.write(["{}"], header="", name="sweep/plan.json")
        self.assert_error(self.report(os.path.join(self.folder, "sweep")), 3, "a sweep that is not complete")
        self.assertEqual([name for name in os.listdir(self.folder) if "part" in name], [])

    # ---- in a browser ----

    @unittest.skipUnless(browser.PROGRAM, browser.MISSING)
    def test_rows_lead_to_the_plot_and_marks_to_their_rows(self):
        folder = self.run_of("quickstart")
        rows = self.rows(self.page(folder))
        with browser.Browser() as chromium:
            page = chromium.open(self.output)
            self.assertEqual(page.problems(), [])
            drawn = page.evaluate("[...document.querySelectorAll('#plot0 .points path')].length")
            self.assertEqual(drawn, len(rows))  # each event of this run stands alone
            curves = page.evaluate("document.getElementById('plot0').data.filter(trace => /-loss$|-scale$/.test(trace.meta)).map(trace => trace.x.length)")
            self.assertEqual(curves[0], 2000)
            self.assertEqual(page.evaluate("document.querySelectorAll('#plot0 path.js-line').length") >= 2, True)
            number, step, _, kind = rows[40]
            page.evaluate(f"document.querySelector('#event{number} a.place').click()")
            low, high = page.evaluate("document.getElementById('plot0')._fullLayout.xaxis.range")
            self.assertTrue(low < step < high and high - low < 200, (low, step, high))
            self.assertEqual(page.evaluate("[...document.querySelectorAll('tr.found')].map(row => row.id)"), [f"event{number}"])
            shapes = page.evaluate("document.getElementById('plot0').layout.shapes.filter(shape => shape.type === 'rect').map(shape => [shape.x0, shape.x1])")
            self.assertEqual(shapes, [[step, step + 1]])
            # Back: a click on the mark of another event, as the mouse does it.
            page.evaluate("document.getElementById('whole').click()")
            self.assertEqual(page.evaluate("document.querySelectorAll('tr.found').length"), 0)
            other = rows[3]
            x, y = page.evaluate(f"""(() => {{
                const place = document.getElementById("plot0"), at = place._fullData.findIndex(trace => trace.meta === "run0-event-{other[3]}");
                place.scrollIntoView({{block: "center"}});
                const group = [...place.querySelectorAll("g.trace.scatter")].find(g => g.__data__[0].trace.index === at);
                const box = group.querySelectorAll(".points path")[place.data[at].x.indexOf({other[1]})].getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()""")
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left", clickCount=1)
            page.wait("document.querySelectorAll('tr.found').length === 1")
            self.assertEqual(page.evaluate("document.querySelector('tr.found').id"), f"event{other[0]}")
            box = page.evaluate("(box => [box.top, box.bottom, innerHeight])(document.querySelector('tr.found').getBoundingClientRect())")
            self.assertTrue(0 <= box[0] and box[1] <= box[2], box)  # it was brought into sight
            # Kinds can be left out.
            page.evaluate("document.querySelector('input[data-kind=growth]').click()")
            self.assertEqual(page.evaluate("[...document.querySelectorAll('#events tbody tr')].filter(row => !row.hidden).length"), sum(r[3] != "growth" for r in rows))
            page.evaluate("document.getElementById('theme').click()")
            self.assertEqual(page.problems(), [])

    @unittest.skipUnless(browser.PROGRAM, browser.MISSING)
    def test_pages_of_sweeps_and_of_traces_at_the_edges_are_quiet_and_have_their_pictures(self):
        with browser.Browser() as chromium:
            self.page(self.sweep())
            page = chromium.open(self.output)
            self.assertEqual(page.problems(), [])
            self.assertEqual(page.evaluate("document.querySelectorAll('.tip').length >= 48"), True)
            sizes = page.evaluate("[...document.querySelectorAll('.picture svg')].map(svg => [svg.getBoundingClientRect().width > 300, svg.querySelectorAll('path').length > 20])")
            self.assertEqual(sizes, [[True, True]] * 4)
            self.assertEqual(page.evaluate("document.querySelectorAll('script[src], link[href^=http], img').length"), 0)
            width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            self.assertLessEqual(*width)
            for rows in ([row(0, 1.0, 8.0)], [row(i, "NaN", "inf", "overflow") for i in range(5)], [row(i, 0.0, 0, "forgiven") for i in range(9)]):
                self.page(self.write(rows))
                page = chromium.open(self.output, dark=True)
                self.assertEqual(page.problems(), [])
                self.assertEqual(page.evaluate("document.querySelectorAll('#plot0 .main-svg').length > 0"), True)


if __name__ == "__main__":
    unittest.main()
