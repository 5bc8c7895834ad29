"""scaletrace plot on sweeps: cells, marks and lines of the SVG against results.csv, of made-up results and of those of a real sweep.

Runs under the interpreter that tools/plot.py's first line names. The real sweeps need the program: SCALETRACE names it, else they are skipped.
"""

import math
import os
import re
import subprocess
import sys
import unittest

import test_plot
from test_plot import HAVE_MATPLOTLIB, PYTHON, ROOT, Picture, bounding_box

if not HAVE_MATPLOTLIB and sys.executable != PYTHON and os.path.exists(PYTHON) and __name__ == "__main__":
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])

SVG = "{http://www.w3.org/2000/svg}"
METRICS = ("steps,updates,skipped,growths,backoffs,scale_first,scale_min,scale_max,scale_last,scale_median,steps_at_ceiling,"
           "first_loss,final_loss,verdict\n")  # fmt: skip
PROGRAM = os.environ.get("SCALETRACE", os.path.join(ROOT, "build", "scaletrace"))


def result(loss=1.0, skipped=3, scale=1024, verdict="ok"):
    return f"100,{100 - skipped},{skipped},2,1,{scale},{scale},{scale},{scale},{scale},0,8,{loss},{verdict}\n"


def paths(group):
    return list(group.iter(SVG + "path"))


def fills(picture, name):
    return [re.search(r"fill: (#\w+)", path.get("style")).group(1) for path in paths(picture.groups[name]) if "fill: #" in (path.get("style") or "")]


@unittest.skipUnless(HAVE_MATPLOTLIB, "matplotlib is not installed (Debian: python3-matplotlib)")
class SweepTest(unittest.TestCase):
    setUp, plot, write = test_plot.PlotTest.setUp, test_plot.PlotTest.plot, test_plot.PlotTest.write
    assert_error = test_plot.PlotTest.assert_error

    def results(self, axes, rows):
        return self.write([f"{number},{row}" for number, row in enumerate(rows)], header="run," + axes + METRICS, name="results.csv")

    def picture(self, path, *arguments):
        output = os.path.join(self.folder, "picture.svg")
        done = self.plot(path, "-o", output, *arguments)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", output + "\n"))
        with open(output, encoding="utf-8") as file:
            return Picture(file.read())

    # ---- map ----

    def grid(self, loss_of, verdict_of=lambda lr, scale: "ok", values=range(6)):
        return self.results("optimizer.lr,scaler.init_scale,", [
            f"{10.0 ** (lr - 4)},{2.0 ** scale}," + result(loss_of(lr, scale), verdict=verdict_of(lr, scale)) for lr in values for scale in values])  # fmt: skip

    def test_a_map_has_a_colour_for_each_ok_cell_that_goes_with_the_loss(self):
        picture = self.picture(self.grid(lambda lr, scale: 10.0 ** (lr + 6 * scale - 20)))
        colours = fills(picture, "map0")
        self.assertEqual(len(colours), 36)
        brightness = [sum(int(colour[i:i + 2], 16) * weight for i, weight in ((1, 0.299), (3, 0.587), (5, 0.114))) for colour in colours]
        # Cells go row by row from the smallest scale up, and the losses grow with them; cividis gets brighter all the way, in grey too.
        self.assertEqual(brightness, sorted(brightness))
        self.assertGreater(brightness[-1] - brightness[0], 150)

    def test_cells_that_did_not_end_ok_are_hatched_by_verdict(self):
        path = self.grid(lambda lr, scale: 1.0 + lr, lambda lr, scale: "diverged" if lr == 5 else "stuck" if scale == 5 else "ok")
        picture = self.picture(path)
        self.assertEqual(len(fills(picture, "map0")), 25)
        for verdict, cells in (("diverged", 6), ("stuck", 5)):
            shape = paths(picture.groups[f"verdict0-{verdict}"])[0].get("d")
            self.assertEqual(shape.count("M"), cells, verdict)
            self.assertIn(f"<!-- {verdict} -->", picture.text)
        left, right, top, bottom = bounding_box(paths(picture.groups["verdict0-diverged"])[0].get("d"))
        panel = picture.panel("panel0")
        self.assertAlmostEqual(right, panel[1], delta=0.01)  # the largest learning rate is the last column
        self.assertAlmostEqual(right - left, (panel[1] - panel[0]) / 6, delta=0.01)
        self.assertAlmostEqual(bottom - top, panel[3] - panel[2], delta=0.01)

    def test_a_third_axis_makes_small_multiples(self):
        rows = [f"{b},{2.0 ** s},{w}," + result(1.0 + b + s) for b in range(1, 7) for s in range(6) for w in (0.5, 0.9)]
        picture = self.picture(self.results("batch.size,scaler.init_scale,optimizer.momentum,", rows))
        self.assertEqual([name for name in picture.groups if re.fullmatch(r"map\d", name)], ["map0", "map1"])
        self.assertIn("momentum 0.5", picture.text)

    # ---- fan ----

    def test_a_fan_has_the_quantiles_of_the_runs_at_each_place(self):
        losses = {i: [2.0 + i + 0.1 * seed for seed in range(11)] for i in range(5)}
        rows = [f"{2.0 ** i},{seed}," + result(losses[i][seed]) for i in range(5) for seed in range(11)]
        picture = self.picture(self.results("scaler.init_scale,seed,", rows), "--metric", "final_loss")
        line = picture.line("fan0-0")
        self.assertEqual(len(line), 5)
        unit = (line[0][1] - line[4][1]) / 4  # of a median of 2.5 and one of 6.5
        for i, (x, y) in enumerate(line):
            self.assertAlmostEqual(x, line[0][0] + i * (line[4][0] - line[0][0]) / 4, delta=0.01)  # powers of two lie evenly
            self.assertAlmostEqual(y, line[0][1] - unit * i, delta=0.01)
        for band, low, high in (("fan0-0-band0", 0.1, 0.9), ("fan0-0-band1", 0.2, 0.7)):  # places int(q * 10) of the eleven
            ((_, shift),) = picture.marks(band)
            top, bottom = (y + shift for y in bounding_box(paths(picture.groups[band])[0].get("d"))[2:])
            self.assertAlmostEqual(bottom, line[0][1] + unit * (0.5 - low), delta=0.02)
            self.assertAlmostEqual(top, line[4][1] - unit * (high - 0.5), delta=0.02)

    def test_a_second_axis_makes_lines_that_differ_without_colour(self):
        rows = [f"{10 * i},{g}," + result(i + g) for i in range(1, 8) for g in (5, 20, 100)]
        picture = self.picture(self.results("steps_of,scaler.growth_interval,", rows))
        styles = {re.search(r"stroke-dasharray: [^;]*|$", paths(picture.groups[f"fan0-{line}"])[0].get("style")).group(0) for line in range(3)}
        self.assertEqual(len(styles), 3)
        self.assertIn("growth_interval 20", picture.text)

    def test_runs_that_do_not_end_ok_get_a_panel_with_their_share(self):
        rows = [f"{i},{seed}," + result(i, verdict="diverged" if seed < i else "ok") for i in range(1, 5) for seed in range(4)]
        picture = self.picture(self.results("optimizer.lr,seed,", rows), "--metric", "final_loss")
        heights = [y for _, y in picture.line("fan1-0")]
        panel = picture.panel("panel1")
        whole = (panel[3] - panel[2]) / 1.14
        for height, share in zip(heights, (0.75, 0.5, 0.25, 0.0)):
            self.assertAlmostEqual(height, panel[3] - whole * (0.07 + share), delta=0.01)

    # ---- rows ----

    def test_policies_stand_side_by_side_at_their_medians(self):
        policies = {"pytorch": 4, "flax": 10, "none": 0}
        rows = [f"{name},{16 if skipped else ''},{seed}," + result(skipped=skipped + seed, verdict="ok" if skipped else "diverged")
                for name, skipped in policies.items() for seed in range(3)]  # fmt: skip
        picture = self.picture(self.results("scaler.policy,scaler.growth_interval,seed,", rows), "--metric", "skipped")
        marks = picture.marks("rows0-median")
        self.assertEqual(len(marks), 3)
        unit = (marks[1][0] - marks[0][0]) / 6
        self.assertAlmostEqual(marks[0][0] - marks[2][0], 4 * unit, delta=0.01)
        self.assertTrue(marks[0][1] < marks[1][1] < marks[2][1], "in the order of the config")
        self.assertIn("3/3 diverged", picture.text)
        self.assertIn("over 3 seeds -->", picture.text)  # and not over growth_interval, which goes with the policy

    # ---- spread, steps ----

    def test_the_spread_over_seeds_climbs_to_the_share_of_runs_that_have_a_number(self):
        rows = [f"{seed}," + result("NaN" if seed >= 16 else seed, verdict="diverged" if seed >= 16 else "ok") for seed in range(20)]
        picture = self.picture(self.results("seed,", rows), "--metric", "final_loss")
        panel = picture.panel("panel0")
        top = min(y for _, y in picture.line("spread0"))
        self.assertAlmostEqual(top, panel[3] - (panel[3] - panel[2]) * (0.8 + 0.02) / 1.04, delta=0.01)
        self.assertIn("NaN: 4 runs", picture.text)
        self.assertIn("16 ok, 4 diverged", picture.text)

    def test_kept_traces_are_drawn_as_a_fan_over_the_steps(self):
        path = self.results("seed,", [f"{seed}," + result() for seed in range(3)])
        for run in range(3):
            os.makedirs(os.path.join(self.folder, "traces", str(run)))
            rows = [test_plot.row(step, 1 + run, 2.0 ** (run + (step >= 5))) for step in range(10)]
            self.write(rows, name=f"traces/{run}/trace.csv")
        picture = self.picture(path, "--as", "steps")
        line = picture.line("steps1-0")  # the median is run 1: 2^1, then 2^2; the axis goes from 2^0 to 2^3
        panel = picture.panel("panel1")
        unit = (panel[3] - panel[2]) / (3 * 1.12)
        self.assertAlmostEqual(panel[3] - line[0][1], unit * (1 + 0.18), delta=0.01)
        self.assertAlmostEqual(line[0][1] - line[-1][1], unit, delta=0.01)

    # ---- edges, errors ----

    def test_infinite_and_zero_scales_have_a_place_of_their_own(self):
        rows = [f"{2.0 ** i}," + result(scale=scale) for i, scale in enumerate((1024, 4096, "inf", 0))]
        picture = self.picture(self.results("scaler.init_scale,", rows), "--metric", "scale_last")
        heights = [y for _, y in picture.line("fan0-0")]
        self.assertTrue(heights[2] < heights[1] < heights[0] < heights[3])
        for word in ("inf", "0"):
            self.assertIn(f"<!-- {word} -->", picture.text)

    def test_invalid_combinations_are_told_apart_from_bad_numbers(self):
        rows = [f"{2.0 ** i}," + (result() if i != 2 else "," * 13 + "invalid\n") for i in range(5)]
        picture = self.picture(self.results("scaler.init_scale,", rows))
        self.assertIn("runs that end ok", picture.text)

    def test_the_same_results_give_the_same_bytes(self):
        path = self.grid(lambda lr, scale: lr + scale + 1, lambda lr, scale: "stuck" if lr == 0 else "ok")
        self.assertEqual(self.picture(path).text, self.picture(path).text)

    def test_errors_are_one_line(self):
        path = self.results("scaler.policy,seed,", [f"{name},{seed}," + result() for name in ("a", "b") for seed in (0, 1)])
        self.assert_error(self.plot(path, "--by", "lr"), 3, "no axis 'lr'", "scaler.policy, seed")
        self.assert_error(self.plot(path, "--metric", "accuracy"), 3, "no metric 'accuracy'", "final_loss")
        self.assert_error(self.plot(path, "--as", "map"), 3, "a map needs 2 axes", "scaler.policy")
        self.assert_error(self.plot(path, "--as", "fan"), 3, "has words")
        self.assert_error(self.plot(path, "--as", "steps"), 3, "keep_traces")
        self.assert_error(self.plot(path, "--as", "pie"), 2, "pie")
        self.assert_error(self.plot(path, "-o", "a.gif"), 2, ".svg")
        self.assert_error(self.plot(path, path), 2, "by itself")
        self.assert_error(self.plot(self.write(["0,a,1,x" + result()[3:]], header="run,a,seed," + METRICS, name="results.csv")), 3, ":2: steps: 'x'")
        self.assert_error(self.plot(self.write(["0,a\n"], header="run,a,seed," + METRICS, name="results.csv")), 3, ":2: 2 cells")
        trace = self.write(test_plot.quiet_rows(3))
        self.assert_error(self.plot(trace, "--as", "map"), 2, "for sweeps")

    # ---- real sweeps ----

    @unittest.skipUnless(os.path.exists(PROGRAM), f"no program at {PROGRAM}")
    def test_a_real_sweep_over_two_axes_is_a_map_of_its_results(self):
        config = os.path.join(self.folder, "sweep.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("name: small\nsteps: 60\ndata: {samples: 8, features: 4}\nprecision: {compute: float16}\nscaler: {policy: static}\n"
                       "sweep:\n  axes:\n    optimizer.lr: {logrange: [0.001, 100], count: 6}\n    scaler.init_scale: {log2range: [10, 24], step: 2}\n"
                       "  keep_traces: sample 3\n")  # fmt: skip
        folder = os.path.join(self.folder, "out")
        subprocess.run([PROGRAM, "sweep", config, "--out", folder], check=True, capture_output=True, timeout=120)
        picture = self.picture(folder)
        with open(os.path.join(folder, "results.csv"), encoding="utf-8") as file:
            verdicts = [line.rstrip("\n").rsplit(",", 1)[1] for line in file][1:]
        self.assertEqual(len(verdicts), 48)
        self.assertGreater(len(set(verdicts)), 1, "a sweep worth a test")
        self.assertEqual(len(fills(picture, "map0")), verdicts.count("ok"))
        for verdict in set(verdicts) - {"ok"}:
            shape = paths(picture.groups[f"verdict0-{verdict}"])[0].get("d")
            self.assertEqual(shape.count("M"), verdicts.count(verdict))
        self.assertIn("<!-- small -->", picture.text)
        steps = self.picture(folder, "--as", "steps")
        self.assertTrue(math.isfinite(steps.line("steps0-0")[0][1]))


if __name__ == "__main__":
    unittest.main()
