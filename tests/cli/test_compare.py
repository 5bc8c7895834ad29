"""scaletrace diff, check and show, as a user calls them."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from support import PROGRAM, SOURCE, Case, run

A = "step,loss,loss_scale,event\n0,1.5,65536,\n1,1.25,65536,backoff\n2,1.125,32768,\n3,1,32768,\n"


class Diff(Case):
    def test_equal_traces_exit_0_and_different_ones_1_with_a_report(self):
        a = self.write("a.csv", A)
        b = self.write("b.csv", A.replace("2,1.125,32768", "2,1.1250001,65536"))
        self.assertIn("4 rows are equal in step, loss, loss_scale, event", self.ok("diff", a, a).stdout)
        done = run("diff", a, b)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        for text in ["first difference: step 2, column loss: 1.125 in A, 1.1250001 in B", "0x3f900000  (line 4)", "0x3f900001  (line 4)",
                     "1 unit in the last place apart", "1 row differs, 3 are equal", "meet again at step 3 and stay equal to the end", "1.1250001*  65536*",
                     "look closer: scaletrace diff %s %s --at 2 --rows 20" % (a, b)]:
            self.assertIn(text, done.stdout)
        self.assertEqual(run("diff", a, b, "--ulps", 1, "--columns", "loss").returncode, 0)
        report = json.loads(run("diff", a, b, "--json").stdout)
        self.assertEqual((report["equal"], report["first"]["step"], report["first"]["column"], report["first"]["ulps"]), (False, 2, "loss", 1))
        quiet = run("diff", a, b, "--quiet")
        self.assertEqual((quiet.returncode, quiet.stdout, quiet.stderr), (1, "", ""))

    def test_the_command_to_look_closer_works_as_it_is_printed(self):
        a = self.write("a file.csv", A)
        b = self.write("b.csv", A.replace("3,1,", "3,2,"))
        first = run("diff", a, b, "--ulps", "2").stdout
        command = re.search(r"look closer: scaletrace (.*)", first)[1]
        done = subprocess.run(["sh", "-c", '"$PROGRAM" ' + command], env={**os.environ, "PROGRAM": PROGRAM}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("step 3, column loss", done.stdout)

    def test_other_peoples_columns_are_mapped_and_hinted_at(self):
        a = self.write("a.csv", A)
        b = self.write("b.csv", "iteration,scale,found_inf,seconds\n0,65536.0,0.0,0.1\n1,65536.0,1.0,0.1\n2,32768.0,0.0,0.1\n3,32768.0,0.0,0.1\n")
        self.assertIn("found no column 'step'", self.fails(3, "diff", a, b))
        hinted = run("diff", a, b, "--map", "iteration=step").stdout
        self.assertIn("hint: --map scale=loss_scale", hinted)
        done = self.ok("diff", b, a, "--map", "iteration=step", "--map", "scale=loss_scale", "--columns", "loss_scale")
        self.assertIn("not compared, as asked: found_inf, seconds, loss, event", done.stdout)
        self.assertIn("--map: found 'scales', a column that neither trace has", self.fails(2, "diff", a, a, "--map", "scales=loss_scale"))
        self.assertIn("did you mean 'loss_scale'?", self.fails(2, "diff", a, a, "--map", "loss=loss_scael"))

    def test_a_run_folder_a_file_and_standard_input_are_the_same_trace(self):
        self.ok("run", SOURCE / "configs" / "stuck-at-inf.yaml", "--quiet", "--out", self.folder / "run")
        trace = self.folder / "run" / "trace.csv"
        self.ok("diff", self.folder / "run", trace)
        self.ok("diff", "-", self.folder / "run", input=trace.read_text())
        self.assertIn("twice", self.fails(2, "diff", "-", "-"))
        (self.folder / "empty").mkdir()
        self.assertIn("found a folder without trace.csv", self.fails(3, "diff", trace, self.folder / "empty"))
        self.assertIn("no-such", self.fails(3, "diff", trace, self.folder / "no-such"))

    def test_a_cell_that_is_no_number_is_an_error_with_its_line(self):
        a = self.write("a.csv", A)
        b = self.write("b.csv", A.replace("1.125", "1,125").replace("1,1.25", "1;1.25"))
        self.assertRegex(self.fails(3, "diff", a, b), r"b\.csv:3: found 3 cells; allowed: 4, as in the header$")
        c = self.write("c.csv", A.replace("1.125", "abc"))
        self.assertRegex(self.fails(3, "diff", c, c), r"c\.csv:4: loss: found 'abc'; allowed: a number, inf or NaN$")


if __name__ == "__main__":
    unittest.main()
