"""scaletrace plot --hist on small histograms made here: cells and limits of the SVG against the data, errors in one line.

Runs under the interpreter that tools/plot.py's first line names.
"""

import os
import re
import sys
import unittest

import test_plot
from test_plot import HAVE_MATPLOTLIB, PYTHON, Picture

if not HAVE_MATPLOTLIB and sys.executable != PYTHON and os.path.exists(PYTHON) and __name__ == "__main__":
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])

HEADER = "step,tensor,loss_scale,exponent,count\n"
CONFIG = "precision:\n  output_gradient: {format: float16, rounding: nearest-even}\n"
ROWS = [
    "0,input,1024,0,64\n", "0,output_gradient,1024,-4,30\n", "0,output_gradient,1024,16,2\n",
    "0,output_gradient,1024,zero,32\n", "50,output_gradient,2048,-3,64\n",
]  # fmt: skip


@unittest.skipUnless(HAVE_MATPLOTLIB, "matplotlib is not installed (Debian: python3-matplotlib)")
class HistogramTest(unittest.TestCase):
    setUp, plot, write = test_plot.PlotTest.setUp, test_plot.PlotTest.plot, test_plot.PlotTest.write
    assert_error = test_plot.PlotTest.assert_error

    def run_folder(self, rows):
        self.write([CONFIG], header="", name="config.resolved.yaml")
        self.write(rows, header=HEADER, name="histograms.csv")

    def test_limits_stand_at_the_formats_exponents_in_both_panels(self):
        self.run_folder(ROWS)
        path = os.path.join(self.folder, "h.svg")
        done = self.plot("--hist", self.folder, "-o", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(path, encoding="utf-8") as file:
            picture = Picture(file.read())
        for panel in (0, 1):
            largest, normal, subnormal = (
                picture.line(f"limit{panel}-{name}")[0][1] for name in ("largest", "smallest-normal", "smallest-subnormal"))
            # float16: 2^15 lies inside, 2^-14 is the smallest normal, 2^-24 the smallest number at all
            unit = (subnormal - largest) / 40
            self.assertAlmostEqual(normal, largest + 30 * unit, delta=0.01)
        # Of the finite entries at step 0 none is below 2^-4; without the scale of 2^10 they reach 2^-14.
        self.assertIn("histogram0", picture.groups)
        self.assertIn("histogram1", picture.groups)
        self.assertTrue(re.search(r"zero 2[45]|zero 25", picture.text), "the share of zeros is said")

    def test_shares_are_those_of_the_rows_and_move_with_the_scale(self):
        import numpy
        import plot_hist

        self.run_folder(ROWS)
        steps, scales, table = plot_hist.read_histograms(os.path.join(self.folder, "histograms.csv"), "output_gradient")
        self.assertEqual((steps.tolist(), scales.tolist()), ([0, 50], [1024, 2048]))
        exponents, share = plot_hist.shares(table, -numpy.log2(scales))
        self.assertEqual((exponents[0], exponents[-1]), (-14, 6))
        self.assertEqual(share[:, 0].tolist(), [30 / 64] + [0] * 19 + [2 / 64])
        self.assertEqual(share[:, 1].tolist(), [1] + [0] * 20)

    def test_errors_are_one_line(self):
        self.assert_error(self.plot("--hist", self.folder), 3, "trace.histograms")
        self.run_folder(ROWS)
        self.assert_error(self.plot("--hist", self.folder, "--tensor", "weight"), 3, "it has input, output_gradient")
        self.run_folder(ROWS + ["60,output_gradient,1,x,5\n"])
        self.assert_error(self.plot("--hist", self.folder), 3, ":7:", "'x'")
        self.assert_error(self.plot("--hist", self.folder, "-o", "a.gif"), 2, ".html")
        self.assert_error(self.plot("--hist", self.folder, "--log"), 2, "--log is for the loss")

    def test_a_range_and_another_x_axis_move_the_histograms(self):
        rows = [f"{step},output_gradient,1024,{-4 - step // 50},64\n" for step in (0, 50, 100, 150)]
        self.run_folder(rows)
        path = os.path.join(self.folder, "h.svg")

        def columns(*arguments):
            self.assertEqual(self.plot("--hist", self.folder, "-o", path, *arguments).returncode, 0)
            with open(path, encoding="utf-8") as file:
                picture = Picture(file.read())
            cells = picture.groups["histogram0"].iter("{http://www.w3.org/2000/svg}path")
            return [test_plot.bounding_box(cell.get("d"))[:2] for cell in cells if "fill: none" not in (cell.get("style") or "")], picture

        self.assertEqual(len(columns()[0]), 4)
        self.assertEqual(len(columns("--range", "50:100")[0]), 2)
        self.assert_error(self.plot("--hist", self.folder, "--range", "500:"), 3, "no histogram between step 500 and inf; it has 0 to 150")
        self.assert_error(self.plot("--hist", self.folder, "--x", "update"), 3, "trace.csv")
        # Of the first 100 steps every other one is skipped: 50 updates, and then 100 more.
        self.write([test_plot.row(i, 1.0, 8.0, "forgiven" if i < 100 and i % 2 else "") for i in range(200)])
        boxes, picture = columns("--x", "update")
        self.assertIn("<!-- update -->", picture.text)
        widths = sorted({round(right - left, 2) for left, right in boxes})
        self.assertEqual(len(boxes), 4)
        self.assertAlmostEqual(widths[-1] / widths[0], 2, delta=0.01)


if __name__ == "__main__":
    unittest.main()
