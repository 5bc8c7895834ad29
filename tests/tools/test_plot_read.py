"""tools/plot_read.py: the quick reader of regular rows against numpy's, to the bit, and what it must leave to the other.

Runs under the interpreter that tools/plot.py's first line names.
"""

import importlib.util
import os
import random
import sys
import unittest

import test_plot
from test_plot import HAVE_MATPLOTLIB, PYTHON

if not HAVE_MATPLOTLIB and sys.executable != PYTHON and os.path.exists(PYTHON) and __name__ == "__main__":
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])

if importlib.util.find_spec("numpy") is not None:
    import numpy
    import plot_read

LOSSES = ("NaN", "inf", "-inf", "0", "-0", "1e-45", "1.1754944e-38", "3.4028235e+38", "-1.2345679e-38", "7")
SCALES = ("65536", "1.7014118346046923e+38", "5.877471754111438e-39", "inf", "0", "1.4012984643248171e-45")
EVENTS = ("", "", "", "raise", "floor", "forgiven", "backoff", "overflow", "ceiling", "growth")


@unittest.skipUnless(HAVE_MATPLOTLIB, "numpy is not installed (Debian: python3-numpy)")
class ReadTest(unittest.TestCase):
    setUp, write = test_plot.PlotTest.setUp, test_plot.PlotTest.write

    def read(self, path):
        """(what the quick reader says, what numpy's says), or None for one that gives up."""
        with open(path, encoding="latin-1", newline="") as file:
            header = file.readline().rstrip("\r\n").split(",")
            wanted = plot_read.wanted_columns(path, header)
            quick = plot_read.regular_rows(path, header, wanted)
            try:
                return quick, plot_read.any_rows(path, file, header, wanted, True)
            except plot_read.DataError:
                return quick, None

    def test_both_readers_see_the_same_bits_across_blocks(self):
        draw = random.Random(7)
        rows, skipped = [], 0
        for i in range(60000):
            loss = draw.choice(LOSSES) if i % 5 == 0 else "%.9g" % (10 ** draw.uniform(-30, 30))
            event = draw.choice(EVENTS)
            skipped += event in plot_read.OVERFLOWS
            scale = draw.choice(SCALES) if i % 50 == 0 else rows[-1].split(",")[2]
            rows.append(f"{i * 10 ** (i // 6000)},{loss},{scale},{i % 2000},{draw.random()},{int(event not in plot_read.OVERFLOWS)},{event},{i // 32},{skipped}\n")
        path = self.write(rows, header="step,loss,loss_scale,good_steps,lr,grads_finite,event,epoch,skipped_total\n")
        self.assertGreater(os.path.getsize(path), 1.5 * plot_read.BLOCK, "more than one block")
        quick, slow = self.read(path)
        self.assertIsNotNone(quick)
        self.assertEqual(list(quick), list(slow))
        for name in slow:
            a, b = (numpy.asarray(table[name], float) for table in (quick, slow))
            nan = numpy.isnan(a)
            self.assertTrue((nan == numpy.isnan(b)).all(), name)
            self.assertEqual(a[~nan].tobytes(), b[~nan].tobytes(), name)
        self.assertGreater(len(set(quick["event"].tolist())), 7)
        self.assertTrue(numpy.isnan(quick["loss"]).any())

    def test_what_is_not_regular_is_left_to_the_other_reader(self):
        header = "step,loss,loss_scale,grads_finite,event\n"
        good = "0,1.5,1024,1,\n1,1.5,1024,1,growth\n"
        self.assertIsNotNone(self.read(self.write([good], header=header))[0])
        for row, fine in (("2, 1.5,1024,1,\n", True), ("2,1.5,1024,1,\r\n", True), ("2,1.5,1024,1.0,\n", True), ("2e0,1.5,1024,1,\n", True),
                          ("123456789012345678,1.5,1024,1,\n", True), ("2,1.50000000000000000000000000,1024,1,\n", True), ("\n", True),
                          ("2,,1024,1,\n", False), ("2,x,1024,1,\n", False), ("2,1.5,1024,1\n", False), ("2,1.5,1024,1,,\n", False),
                          ("2,1.5,1024,1,shrink\n", False), ("2,1.5,1024,1,growthgrowth\n", False), ("-x,1.5,1024,1,\n", False),
                          ("2,1.5 1.5,1024,1,\n", False), ("2,1.5,1024\n1,\n", False)):  # fmt: skip
            with self.subTest(row):
                quick, slow = self.read(self.write([good, row, "3,1.5,1024,1,\n"], header=header))
                self.assertIsNone(quick)
                self.assertEqual(slow is not None, fine)


if __name__ == "__main__":
    unittest.main()
