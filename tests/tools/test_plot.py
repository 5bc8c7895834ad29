"""tools/plot.py on small traces made here: the marks of the SVG against the data, errors, the same bytes twice.

Runs under the interpreter that plot.py's first line names, and imports plot.py once: a process a picture takes much longer.
"""

import contextlib
import importlib.util
import io
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLOT = os.path.join(ROOT, "tools", "plot.py")
PYTHON = "/usr/bin/python3"
HAVE_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
if not HAVE_MATPLOTLIB and sys.executable != PYTHON and os.path.exists(PYTHON) and __name__ == "__main__":
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])
PROGRAM = os.environ.get("SCALETRACE", os.path.join(ROOT, "build", "scaletrace"))
HAVE_PLOTLY = importlib.util.find_spec("plotly") is not None

if HAVE_MATPLOTLIB:
    sys.path.insert(0, os.path.dirname(PLOT))
    import plot

HEADER = "step,loss,loss_scale,good_steps,grads_finite,event\n"
OVERFLOWS = ("raise", "floor", "forgiven", "backoff", "overflow")


def row(step, loss, scale, event="", good=1):
    return f"{step},{loss},{scale},{good},{int(event not in OVERFLOWS)},{event}\n"


def quiet_rows(steps, scale=1024.0):
    return [row(step, 1 + 0.001 * step, scale) for step in range(steps)]


def bounding_box(path):
    numbers = [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", path)]
    return min(numbers[::2]), max(numbers[::2]), min(numbers[1::2]), max(numbers[1::2])


class Picture:
    """An SVG that plot.py drew: where its groups (by id) have marks and lines, in the units of the picture."""

    def __init__(self, text):
        self.text = text
        self.groups = {}
        for element in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}g"):
            if element.get("id"):
                self.groups[element.get("id")] = element

    def marks(self, name):
        uses = self.groups[name].iter("{http://www.w3.org/2000/svg}use") if name in self.groups else ()
        return [(float(use.get("x")), float(use.get("y"))) for use in uses]

    def line(self, name):
        path = self.groups[name].find("{http://www.w3.org/2000/svg}path").get("d")
        numbers = [float(number) for number in re.findall(r"-?\d[\d.]*", path)]
        return list(zip(numbers[::2], numbers[1::2]))

    def boxes(self, name):
        """(left, right) of each shape in a group."""
        paths = self.groups[name].iter("{http://www.w3.org/2000/svg}path") if name in self.groups else ()
        return [bounding_box(path.get("d"))[:2] for path in paths]

    def panel(self, name):
        return bounding_box(self.groups[name].find("{http://www.w3.org/2000/svg}path").get("d"))


@unittest.skipUnless(HAVE_MATPLOTLIB, "matplotlib is not installed (Debian: python3-matplotlib)")
class PlotTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, rows, header=HEADER, name="trace.csv"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(header + "".join(rows))
        return path

    def plot(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = plot.main(list(arguments))
            except SystemExit as end:
                code = end.code
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def picture(self, rows, header=HEADER, arguments=()):
        path = os.path.join(self.folder, "picture.svg")
        done = self.plot(self.write(rows, header), "-o", path, *arguments)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", path + "\n"))
        with open(path, encoding="utf-8") as file:
            return Picture(file.read())

    def assert_at_steps(self, marks, steps, last_step, picture):
        """The marks stand where these steps are on the x axis, which runs from 0 to last_step + 1 between margins."""
        left, right, _, _ = picture.panel("panel-scale")
        width = last_step + 1
        unit = (right - left) / (width * 1.024)
        expected = [left + unit * (0.012 * width + step) for step in steps]
        self.assertEqual(len(marks), len(expected))
        for (x, _), at in zip(marks, expected):
            self.assertAlmostEqual(x, at, delta=0.01)

    def assert_error(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    # ---- marks against the data ----

    def test_each_event_has_its_mark_at_its_step(self):
        at = {"growth": (5, 20), "backoff": (7, 31), "floor": (40,), "forgiven": (50,), "ceiling": (60, 64),
              "overflow": (70, 80), "raise": (99,)}  # fmt: skip
        event_of = {step: event for event, steps in at.items() for step in steps}
        picture = self.picture([row(step, 1.0, 1024.0, event_of.get(step, "")) for step in range(100)])
        for event, steps in at.items():
            with self.subTest(event):
                self.assert_at_steps(picture.marks("event-" + event), steps, 99, picture)

    def test_kinds_of_events_differ_in_shape(self):
        events = ("growth", "backoff", "floor", "forgiven", "ceiling", "overflow", "raise")
        picture = self.picture([row(step, 1.0, 1024.0, event) for step, event in enumerate(events)])
        shapes = set()
        for event in events:
            shape = picture.groups["event-" + event].find(".//{http://www.w3.org/2000/svg}path").get("d")
            numbers = [float(n) for n in re.findall(r"-?\d[\d.]*", shape)]
            largest = max(map(abs, numbers))
            shapes.add(tuple(round(n / largest, 1) for n in numbers))
        self.assertEqual(len(shapes), len(events))

    def test_marks_stand_at_the_scale_of_their_row_on_a_log2_axis(self):
        scales = (1.0, 4.0, 64.0, 65536.0)
        picture = self.picture([row(step, 1.0, scale, "overflow") for step, scale in enumerate(scales)])
        heights = [-y for _, y in picture.marks("event-overflow")]
        unit = (heights[3] - heights[0]) / 16
        for height, scale in zip(heights, scales):
            self.assertAlmostEqual(height, heights[0] + unit * math.log2(scale), delta=0.01)

    def test_the_scale_is_drawn_in_steps_that_last_until_the_next_row(self):
        picture = self.picture([row(0, 1, 2.0), row(1, 1, 2.0, "growth"), row(2, 1, 4.0, "overflow")])
        corners = picture.line("scale")
        self.assert_at_steps(corners, (0, 2, 2, 3), 2, picture)
        self.assertEqual(corners[0][1], corners[1][1])
        self.assertEqual(corners[2][1], corners[3][1])
        self.assertLess(corners[2][1], corners[1][1])  # y grows downwards in an SVG

    def test_without_an_event_column_the_overflows_are_those_of_grads_finite(self):
        rows = [f"{step},1.5,1024.0,{int(step not in (3, 11))}\n" for step in range(20)]
        picture = self.picture(rows, header="step,loss,loss_scale,grads_finite\n")
        self.assert_at_steps(picture.marks("event-overflow"), (3, 11), 19, picture)

    def test_an_unbroken_streak_of_one_event_is_marked_at_its_ends_and_shaded_as_a_whole(self):
        rows = [row(step, 1.0, "inf" if step >= 10 else 1024.0, "overflow" if step >= 10 else "") for step in range(40)]
        picture = self.picture(rows)
        self.assert_at_steps(picture.marks("event-overflow"), (10, 39), 39, picture)
        for panel in ("skipped-loss", "skipped-scale"):
            (box,) = picture.boxes(panel)
            self.assert_at_steps([(x, 0) for x in box], (10, 40), 39, picture)

    def test_a_streak_whose_middle_a_thinned_trace_left_out_is_shaded_as_a_whole(self):
        rows = [row(0, 1.0, 8.0, "overflow", good=0), row(30, 1.0, 8.0, "overflow", good=0), row(40, 1.0, 8.0)]
        (box,) = self.picture(rows).boxes("skipped-scale")
        picture = self.picture(rows)
        self.assert_at_steps([(x, 0) for x in box], (0, 31), 40, picture)

    def test_two_overflows_with_finite_steps_left_out_between_them_are_shaded_apart(self):
        rows = [row(0, 1.0, 8.0, "overflow", good=0), row(30, 1.0, 8.0, "overflow", good=29), row(40, 1.0, 8.0)]
        self.assertEqual(len(self.picture(rows).boxes("skipped-scale")), 2)

    def test_an_infinite_scale_lies_above_every_finite_one_and_is_named(self):
        picture = self.picture([row(0, 1, 2.0**127, "overflow"), row(1, 1, "inf", "forgiven")])
        self.assertLess(picture.marks("event-forgiven")[0][1], picture.marks("event-overflow")[0][1] - 5)
        self.assertIn("<!-- inf -->", picture.text)
        self.assertNotIn("<!-- inf -->", self.picture(quiet_rows(3)).text)

    def test_a_loss_that_is_not_finite_breaks_the_line_and_is_marked_at_the_top(self):
        losses = {4: "inf", 5: "NaN", 6: "-inf", 9: "NaN"}
        picture = self.picture([row(step, losses.get(step, 2 + step % 2), 8.0) for step in range(12)])
        marks = picture.marks("loss-nonfinite")
        self.assert_at_steps(marks, (4, 6, 9), 11, picture)  # both ends of a stretch, and a single step
        _, _, top, bottom = picture.panel("panel-loss")
        for _, y in marks:
            self.assertLess(abs(y - top), 0.03 * (bottom - top))
        self.assert_at_steps(picture.line("loss"), (0, 1, 2, 3, 7, 8, 10, 11), 11, picture)

    def test_a_skipped_step_does_not_break_the_line_of_the_loss(self):
        rows = [row(step, step % 3 + 1, 8.0, "overflow" if step == 4 else "") for step in range(8)]
        picture = self.picture(rows)
        self.assert_at_steps(picture.line("loss"), range(8), 7, picture)

    def test_a_loss_that_spans_decades_has_a_log_axis_and_others_a_linear_one(self):
        def heights(losses):
            return [-y for _, y in self.picture([row(i, loss, 8.0) for i, loss in enumerate(losses)]).line("loss")]

        low, middle, high = heights((1e-4, 1.0, 1e-2))
        self.assertAlmostEqual((high - low) / (middle - low), 0.5, places=3)
        low, middle, high = heights((1.0, 5.0, 3.0))
        self.assertAlmostEqual((high - low) / (middle - low), 0.5, places=3)

    def test_a_loss_of_zero_on_a_log_axis_is_marked_at_the_bottom(self):
        picture = self.picture([row(step, (1.0, 1e-3, 0.0)[step], 8.0) for step in range(3)])
        self.assert_at_steps(picture.marks("loss-zero"), (2,), 2, picture)

    def test_a_trace_without_any_finite_loss_or_scale_is_drawn_all_the_same(self):
        picture = self.picture([row(step, "NaN", "inf", "overflow") for step in range(5)])
        self.assertIn("no step has a finite loss", picture.text)
        self.assert_at_steps(picture.marks("event-overflow"), (0, 4), 4, picture)

    def test_a_single_row_is_drawn(self):
        picture = self.picture([row(0, 1.0, 65536.0, "growth")])
        self.assert_at_steps(picture.marks("event-growth"), (0,), 0, picture)

    # ---- large traces ----

    def test_thinning_a_large_trace_keeps_the_lone_peak_and_every_lone_event(self):
        steps, peak, events = 60000, 31234, {777: "growth", 31235: "floor", 31236: "backoff", 59998: "forgiven"}
        rows = [row(i, 1e6 if i == peak else 1 + i % 7, 1024.0, events.get(i, "")) for i in range(steps)]
        picture = self.picture(rows)
        for step, event in events.items():
            self.assert_at_steps(picture.marks("event-" + event), (step,), steps - 1, picture)
        line = picture.line("loss")
        self.assertLess(len(line), 15000)
        self.assert_at_steps([min(line, key=lambda point: point[1])], (peak,), steps - 1, picture)

    def test_shading_too_dense_to_tell_apart_shows_the_share_of_skipped_steps(self):
        rows = [row(i, 1.0, 1024.0, "forgiven" if i % 5 == 0 else "") for i in range(4000)]
        picture = self.picture(rows)
        shapes = picture.groups["skipped-scale"].findall(".//{http://www.w3.org/2000/svg}path")
        shares = [float(re.search(r"fill-opacity: ([\d.]+)", shape.get("style")).group(1)) for shape in shapes]
        self.assertEqual(len(shares), 400)
        for share in shares:
            self.assertAlmostEqual(share, 1 / 5, delta=0.01)

    # ---- folders, names, formats ----

    def test_a_run_folder_is_drawn_beside_its_trace_under_its_name(self):
        self.write(quiet_rows(5))
        with open(os.path.join(self.folder, "config.resolved.yaml"), "w", encoding="utf-8") as file:
            file.write('seed: 7\nname: "cost is $5_000$ & <more>"\nsteps: 5\n')
        done = subprocess.run([PLOT, self.folder], capture_output=True, text=True, timeout=120)  # as people start it
        self.assertEqual(done.stdout, os.path.join(self.folder, "trace.png") + "\n", done.stderr)
        with open(os.path.join(self.folder, "trace.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        self.assertIn("cost is $5_000$ &amp; &lt;more&gt;", self.picture(quiet_rows(5)).text)

    def test_a_given_title_replaces_the_name(self):
        self.assertIn("<!-- mine -->", self.picture(quiet_rows(5), arguments=("--title", "mine")).text)

    def test_the_same_trace_gives_the_same_bytes_of_svg_and_pdf(self):
        trace = self.write(quiet_rows(50) + [row(50, "inf", 8.0, "floor")])
        for extension in (".svg", ".pdf"):
            pictures = []
            for name in ("one", "two"):
                path = os.path.join(self.folder, name + extension)
                self.assertEqual(self.plot(trace, "-o", path).returncode, 0)
                with open(path, "rb") as file:
                    pictures.append(file.read())
            self.assertEqual(pictures[0], pictures[1], extension)
            self.assertGreater(len(pictures[0]), 3000)

    # ---- bad input ----

    def test_a_missing_column_is_named(self):
        for column in ("step", "loss", "loss_scale"):
            names = [name for name in ("step", "loss", "loss_scale", "grads_finite") if name != column]
            trace = self.write(["0,1,1\n"], header=",".join(names) + "\n")
            self.assert_error(self.plot(trace), 3, f"no column '{column}'")
        trace = self.write(["0,1,1\n"], header="step,loss,loss_scale\n")
        self.assert_error(self.plot(trace), 3, "grads_finite", "event")

    def test_files_that_are_no_trace_get_one_line(self):
        self.assert_error(self.plot(self.write([], header="")), 3, "empty")
        self.assert_error(self.plot(self.write([])), 3, "no rows")
        self.assert_error(self.plot(os.path.join(self.folder, "nowhere.csv")), 3, "nowhere.csv", "No such file")
        self.assert_error(self.plot(self.write(["\x00\xff junk \n" * 50], header="\x00\x01\n")), 3, "no column 'step'")
        os.mkdir(os.path.join(self.folder, "empty-run"))
        self.assert_error(self.plot(os.path.join(self.folder, "empty-run")), 3, "empty-run/trace.csv")

    def test_a_last_line_that_is_cut_off_is_an_error_wherever_it_is_cut(self):
        whole = row(5, 1.25, 1024.0)
        for length in (1, 3, len(whole) - 8, len(whole) - 2, len(whole) - 1):
            with self.subTest(length):
                trace = self.write(quiet_rows(5) + [whole[:length]])
                self.assert_error(self.plot(trace), 3, "cut off")

    def test_of_a_run_in_progress_a_last_line_that_is_cut_off_is_left_out(self):
        with open(os.path.join(self.folder, "config.resolved.yaml"), "w", encoding="utf-8") as file:
            file.write("name: running\n")
        for rows in (quiet_rows(5), [row(i, " 1.0", 8.0) for i in range(5)]):  # as both readers read them
            picture = self.picture(rows + [row(5, 1.25, 1024.0)[:4]])
            self.assert_at_steps(picture.line("loss")[-1:], (4,), 4, picture)
        with open(os.path.join(self.folder, "summary.json"), "w", encoding="utf-8") as file:
            file.write("{}\n")
        self.assert_error(self.plot(self.write(quiet_rows(5) + ["5,1"])), 3, "cut off")

    def test_a_bad_row_is_named_by_its_line_and_column(self):
        good = quiet_rows(3)
        for bad, words in (
            ("3,x,1024.0,0,1,\n", (":5:", "loss", "'x'")),
            ("3,1.5,,0,1,\n", (":5:", "loss_scale")),
            ("3,1.5,1024.0,0,1\n", (":5:", "5 cells", "6")),
            ("3,1.5,1024.0,0,1,,\n", (":5:", "7 cells", "6")),
            ("3,1.5,1024.0,0,1,shrink\n", (":5:", "event", "'shrink'", "growth")),
            ("3,1.5,-2.0,0,1,\n", (":5:", "loss_scale", "negative")),
            ("2,1.5,1024.0,0,1,\n", (":5:", "step 2")),
            ("NaN,1.5,1024.0,0,1,\n", (":5:", "step nan")),
        ):
            with self.subTest(bad):
                self.assert_error(self.plot(self.write(good + [bad])), 3, *words)

    def test_several_traces_get_a_picture_each(self):
        folders = []
        for name in ("a", "b"):
            folders.append(os.path.join(self.folder, name))
            os.mkdir(folders[-1])
            os.rename(self.write(quiet_rows(3)), os.path.join(folders[-1], "trace.csv"))
        done = self.plot(*folders)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), [os.path.join(folder, "trace.png") for folder in folders])
        for folder in folders:
            self.assertTrue(os.path.exists(os.path.join(folder, "trace.png")))

    def test_several_traces_with_one_output_are_overlaid_and_differ_in_dashes_and_markers(self):
        traces = []
        for number, at in enumerate((5, 9)):
            rows = [row(i, 1 + i, 1024.0, "growth" if i == at else "backoff" if i == 30 else "") for i in range(40)]
            traces.append(self.write(rows, name=f"run{number}.csv"))
        path = os.path.join(self.folder, "both.svg")
        self.assertEqual(self.plot(*traces, "-o", path).returncode, 0)
        with open(path, encoding="utf-8") as file:
            picture = Picture(file.read())
        for number, at in enumerate((5, 9)):
            self.assert_at_steps(picture.marks(f"run{number}-growth"), (at,), 39, picture)
            self.assert_at_steps(picture.marks(f"run{number}-overflow"), (30,), 39, picture)
        dashes, shapes = set(), set()
        for number in range(2):
            line = picture.groups[f"run{number}-loss"].find("{http://www.w3.org/2000/svg}path").get("style")
            dashes.add(re.search("stroke-dasharray[^;]*|$", line).group(0))
            shapes.add(len(picture.groups[f"run{number}-growth"].find(".//{http://www.w3.org/2000/svg}path").get("d")))
        self.assertEqual((len(dashes), len(shapes)), (2, 2))

    def overlay(self, *runs, arguments=()):
        traces = [self.write(rows, name=f"run{number}.csv") for number, rows in enumerate(runs)]
        path = os.path.join(self.folder, "both.svg")
        self.assertEqual(self.plot(*traces, "-o", path, *arguments).returncode, 0)
        with open(path, encoding="utf-8") as file:
            return Picture(file.read())

    def test_an_overlay_shows_infinite_and_zero_scales(self):
        picture = self.overlay([row(i, 1.0, 2.0**10 if i < 5 else "inf", "" if i < 5 else "overflow") for i in range(10)],
                               [row(i, 1.0, 2.0**4 if i < 7 else 0, "" if i < 7 else "overflow") for i in range(10)])  # fmt: skip
        up, down = picture.line("run0-scale"), picture.line("run1-scale")
        self.assert_at_steps(up, (0, 5, 5, 10), 9, picture)
        self.assert_at_steps(down, (0, 7, 7, 10), 9, picture)
        unit = (down[0][1] - up[0][1]) / 6  # from 2^4 to 2^10
        self.assertAlmostEqual(up[0][1] - up[-1][1], 0.2 * 6 * unit, delta=0.01)
        self.assertAlmostEqual(down[-1][1] - down[0][1], 0.2 * 6 * unit, delta=0.01)
        for word in ("inf", "0"):
            self.assertIn(f"<!-- {word} -->", picture.text)
        self.assert_at_steps(picture.marks("run0-overflow"), (5, 9), 9, picture)

    def test_an_overlay_marks_losses_that_are_not_finite_a_row_for_each_run(self):
        picture = self.overlay(*[[row(i, "NaN" if i == at else 2 + i % 2, 8.0) for i in range(12)] for at in (4, 9)])
        left, right, top, bottom = picture.panel("panel-loss")
        heights = []
        for number, at in enumerate((4, 9)):
            marks = picture.marks(f"run{number}-loss-nonfinite")
            self.assert_at_steps(marks, (at,), 11, picture)
            self.assert_at_steps(picture.line(f"run{number}-loss"), [i for i in range(12) if i != at], 11, picture)
            heights.append(marks[0][1])
        self.assertLess(heights[0], heights[1] - 2)
        self.assertLess(heights[1], top + 0.1 * (bottom - top))
        self.assertIn("marks above: loss inf or NaN", picture.text)

    def test_an_overlay_shows_skipped_steps_in_a_lane_for_each_run_below_its_scales(self):
        picture = self.overlay(*[[row(i, 1.0, 8.0, "forgiven" if first <= i < last else "") for i in range(20)] for first, last in ((3, 6), (0, 0), (10, 20))])
        for number, ends in ((0, (3, 6)), (2, (10, 20))):
            (box,) = picture.boxes(f"run{number}-skipped")
            self.assert_at_steps([(x, 0) for x in box], ends, 19, picture)
        self.assertNotIn("run1-skipped", picture.groups)
        _, _, top, bottom = picture.panel("panel-scale")
        scale = max(y for number in range(3) for _, y in picture.line(f"run{number}-scale"))
        for number in (0, 2):
            path = next(picture.groups[f"run{number}-skipped"].iter("{http://www.w3.org/2000/svg}path")).get("d")
            shift = picture.marks(f"run{number}-skipped")[0][1]
            self.assertGreater(bounding_box(path)[2] + shift, scale)
            self.assertLessEqual(bounding_box(path)[3] + shift, bottom + 0.01)
        self.assertIn("bars: skipped steps", picture.text)

    def test_an_overlay_draws_the_limit_of_the_runs_format(self):
        with open(os.path.join(self.folder, "config.resolved.yaml"), "w", encoding="utf-8") as file:
            file.write("precision:\n  output_gradient: {format: float16, rounding: nearest-even}\n")
        picture = self.overlay([row(0, 1, 2.0**14), row(1, 1, 2.0**16, "overflow")], [row(0, 1, 2.0), row(1, 1, 2.0)])
        self.assertAlmostEqual(picture.line("limit")[0][1], picture.marks("run0-overflow")[0][1], delta=0.01)

    # ---- the x axis ----

    def test_updates_leave_out_the_skipped_steps(self):
        skipped = (3, 4, 11)
        rows = [row(i, 1.0 + i, 1024.0, "growth" if i == 15 else "backoff" if i in skipped else "") for i in range(20)]
        picture = self.picture(rows, arguments=("--x", "update"))
        self.assert_at_steps(picture.marks("event-backoff"), (3, 3, 9), 16, picture)
        self.assert_at_steps(picture.marks("event-growth"), (12,), 16, picture)
        thinned = self.write([row(0, 1.0, 8.0), row(7, 1.0, 8.0)])
        self.assert_error(self.plot(thinned, "--x", "update"), 3, "skipped_total")

    def test_updates_of_a_long_trace_whose_every_step_was_skipped_are_all_at_one_place(self):
        rows = [row(i, 1.0 + i % 3, 1024.0, "forgiven") for i in range(4 * plot.SLICES + 5)]
        picture = self.picture(rows, arguments=("--x", "update"))
        self.assertEqual(len({x for x, _ in picture.line("loss")}), 1)
        heights = [y for _, y in picture.line("loss")]
        self.assertGreater(max(heights) - min(heights), 20)  # from the smallest loss to the largest

    def test_epochs_are_spread_evenly_over_their_steps(self):
        header = HEADER[:-1] + ",epoch\n"
        rows = [row(i, 1.0 + i, 8.0, "growth" if i in (6, 9) else "")[:-1] + f",{i // 4}\n" for i in range(12)]
        picture = self.picture(rows, header, ("--x", "epoch"))
        left, right, _, _ = picture.panel("panel-scale")
        unit = (right - left) / (3 * 1.024)
        for (x, _), epoch in zip(picture.marks("event-growth"), (1.5, 2.25)):
            self.assertAlmostEqual(x, left + unit * (0.012 * 3 + epoch), delta=0.01)
        self.assert_error(self.plot(self.write(quiet_rows(3)), "--x", "epoch"), 3, "'epoch'")

    def test_a_range_keeps_its_rows_only(self):
        rows = [row(i, 1.0, 8.0, "growth" if i in (5, 50, 95) else "") for i in range(100)]
        self.assertEqual(len(self.picture(rows, arguments=("--range", "40:60")).marks("event-growth")), 1)
        self.assertEqual(len(self.picture(rows, arguments=("--range", "40:")).marks("event-growth")), 2)
        self.assert_error(self.plot(self.write(rows), "--range", "400:500"), 3, "no row between step 400 and 500")
        self.assert_error(self.plot(self.write(rows), "--range", "5"), 2, "A:B")
        self.assert_error(self.plot(self.write(rows), "--range", "9:5"), 2, "ends before it begins")

    def test_a_log_axis_can_be_asked_for(self):
        rows = [row(i, loss, 8.0) for i, loss in enumerate((1.0, 4.0, 2.0))]
        low, high, middle = [-y for _, y in self.picture(rows, arguments=("--log",)).line("loss")]
        self.assertAlmostEqual((high - low) / (middle - low), 2, places=3)

    def test_the_largest_number_of_the_format_is_a_line_where_the_scale_comes_near_it(self):
        with open(os.path.join(self.folder, "config.resolved.yaml"), "w", encoding="utf-8") as file:
            file.write("precision:\n  output_gradient: {format: float16, rounding: nearest-even}\n")
        picture = self.picture([row(0, 1, 2.0**14), row(1, 1, 2.0**18, "overflow"), row(2, 1, 2.0**16, "overflow")])
        self.assertAlmostEqual(picture.line("limit")[0][1], picture.marks("event-overflow")[1][1], delta=0.01)
        self.assertNotIn("limit", self.picture([row(0, 1, 2.0), row(1, 1, 4.0)]).groups)

    @unittest.skipUnless(HAVE_PLOTLY, "plotly is not installed (Debian: python3-plotly)")
    def test_a_page_has_all_that_it_needs_and_the_same_bytes_twice(self):
        trace, texts = self.write([row(i, 1.0, 8.0, "floor" if i == 7 else "") for i in range(20)]), []
        for name in ("a.html", "b.html"):
            path = os.path.join(self.folder, name)
            self.assertEqual(self.plot(trace, "-o", path).returncode, 0)
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        self.assertEqual(*texts)
        self.assertIsNone(re.search(r"<script[^>]*\ssrc=", texts[0]))
        self.assertGreater(len(texts[0]), 1_000_000)  # the library stands in it
        self.assertTrue('"name":"overflow: at the floor"' in texts[0])

    @unittest.skipUnless(os.path.exists(PROGRAM), f"no program at {PROGRAM}")
    def test_the_table_of_formats_is_the_programs(self):
        text = subprocess.run([PROGRAM, "formats"], capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in text.split("\n\n")[0].splitlines()[1:]]
        # The smallest numbers are powers of two, to as many digits as tell them apart.
        theirs = {row[0]: (math.floor(math.log2(float(row[5]))), *(round(math.log2(float(row[place]))) for place in (6, 7))) for row in rows}
        self.assertEqual(plot.FORMAT_EXPONENTS, theirs)

    def test_wrong_usage_exits_with_2(self):
        trace = self.write(quiet_rows(3))
        self.assert_error(self.plot(), 2, "RUN|TRACE", "(see plot.py --help)")
        self.assert_error(self.plot(trace, "--colour", "red"), 2, "--colour")
        self.assert_error(self.plot(trace, "-o", "picture.gif"), 2, ".svg")

    def test_a_picture_that_cannot_be_written_is_an_error_and_leaves_nothing(self):
        trace = self.write(quiet_rows(3))
        self.assert_error(self.plot(trace, "-o", os.path.join(self.folder, "no", "such.png")), 3, "such.png")
        self.assertEqual(os.listdir(self.folder), ["trace.csv"])


if __name__ == "__main__":
    unittest.main()
