"""A trace opens everywhere: pandas, polars, DuckDB and R read the numbers that it was written from, bit for bit. Those that are not installed are skipped, with a word;
SCALETRACE_PYTHON may name a Python that has them."""

import os
import random
import shutil
import struct
import subprocess
import sys
import unittest

from support import Case

PYTHONS = [p for p in (os.environ.get("SCALETRACE_PYTHON"), sys.executable, "/usr/bin/python3") if p]

COLUMNS = "[step, epoch, loss, loss_scale, good_steps, grads_finite, event, lr, grad_norm, grad_max_abs, underflow, weight_norm, skipped_total, skipped_in_a_row]"
CONFIG = """\
steps: 400
data: {kind: spikes, samples: 16, features: 5, outputs: 3, every: 40, factor: 3e38}
optimizer: {lr: 0.3}
scaler: {policy: jax-step, init_scale: 2^120, growth_interval: 5}
trace: {columns: %s}
""" % COLUMNS

# Each prints the columns loss, loss_scale and grad_norm, and step and event, one line a row: doubles as hexadecimal bits.
BITS = """
import struct, sys
def line(step, event, *numbers):
    print(int(step), event, *("nan" if x != x else struct.pack(">d", float(x)).hex() for x in numbers))
"""
PROGRAMS = {
    "pandas": BITS + """
import pandas
t = pandas.read_csv(sys.argv[1], float_precision="round_trip", keep_default_na=False, na_values={"loss": ["NaN"], "grad_norm": ["NaN"]})
for r in t.itertuples(): line(r.step, r.event or "-", r.loss, r.loss_scale, r.grad_norm)
""",
    "polars": BITS + """
import polars
t = polars.read_csv(sys.argv[1], infer_schema_length=None)
for r in t.iter_rows(named=True): line(r["step"], r["event"] or "-", r["loss"], r["loss_scale"], r["grad_norm"])
""",
    "duckdb": BITS + """
import duckdb
q = "select step, event, loss, loss_scale, grad_norm from read_csv('%s', sample_size=-1) order by step" % sys.argv[1]
for step, event, loss, scale, norm in duckdb.sql(q).fetchall(): line(step, event or "-", loss, scale, norm)
""",
}
R_PROGRAM = """
t <- read.csv(commandArgs(TRUE)[1], na.strings = character(0), colClasses = c(loss = "numeric", loss_scale = "numeric", grad_norm = "numeric", event = "character"))
bits <- function(x) if (is.nan(x)) "nan" else paste(rev(as.character(writeBin(x, raw(), endian = "little"))), collapse = "")
for (i in seq_len(nrow(t))) cat(t$step[i], if (t$event[i] == "") "-" else t$event[i], bits(t$loss[i]), bits(t$loss_scale[i]), bits(t$grad_norm[i]), "\\n")
"""


def bits(text):
    """Of a cell, as Python reads it: correctly rounded."""
    value = float(text)
    return "nan" if value != value else struct.pack(">d", value).hex()


class Readers(Case):
    def setUp(self):
        super().setUp()
        self.ok("run", self.write("c.yaml", CONFIG), "--quiet", "--out", self.folder / "run")
        trace = self.folder / "run" / "trace.csv"
        header, *rows = trace.read_text().splitlines()
        names = header.split(",")
        # Numbers from the whole range besides, in the rows of a run.
        random.seed(5)
        cells = [dict(zip(names, row.split(","))) for row in rows]
        for c in cells[::3]:
            c["loss"] = random.choice(["NaN", "inf", "-inf", "0", "-0", "1e-45", "1.1754944e-38", "3.4028235e+38", "%.9g" % random.uniform(0, 1)])
            c["grad_norm"] = random.choice(["NaN", "inf", "5e-324", "1.7976931348623157e+308", repr(random.uniform(1, 2)), "2.2250738585072014e-308", repr(random.random() * 1e-300)])
        self.trace = self.write("trace.csv", "\n".join([header, *(",".join(c[n] for n in names) for c in cells)]) + "\n")
        self.expected = [[c["step"], c["event"] or "-", bits(c["loss"]), bits(c["loss_scale"]), bits(c["grad_norm"])] for c in cells]
        self.ok("diff", self.trace, self.trace)

    def check(self, *command):
        done = subprocess.run([*map(str, command), self.trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual(len(got), len(self.expected))
        for ours, theirs in zip(self.expected, got):
            self.assertEqual(theirs, ours)

    def python_with(self, package):
        for python in PYTHONS:
            if os.path.exists(python) and subprocess.run([python, "-c", "import " + package], stderr=subprocess.DEVNULL).returncode == 0:
                return python
        self.skipTest(package + " is not installed")

    def test_pandas(self):
        self.check(self.python_with("pandas"), "-c", PROGRAMS["pandas"])

    def test_polars(self):
        self.check(self.python_with("polars"), "-c", PROGRAMS["polars"])

    def test_duckdb(self):
        self.check(self.python_with("duckdb"), "-c", PROGRAMS["duckdb"])

    def test_r(self):
        if shutil.which("Rscript") is None:
            self.skipTest("R is not installed")
        self.check("Rscript", self.write("read.R", R_PROGRAM))


if __name__ == "__main__":
    unittest.main()
