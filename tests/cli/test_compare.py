"""scaletrace diff, check and show, as a user calls them."""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

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


POLICY = "scaler: {policy: pytorch, init_scale: 2^16, growth_interval: %d}\n"
MODEL = """\
steps: 40
data: {kind: gaussian, samples: 8, features: 3, outputs: 2}
scaler: {policy: jax-step, init_scale: 2^120, growth_interval: 5}
"""


class Check(Case):
    def case(self, name, config, **files):
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(config)
        for file, text in files.items():
            (folder / file.replace("_", ".")).write_text(text)
        return folder

    def test_update_writes_what_is_expected_and_check_holds_it(self):
        model = self.case("all/model", MODEL)
        policy = self.case("all/deep/policy", POLICY % 3, events_txt="5F 2O 12F\n")
        done = run("check", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no expected.csv; --update writes it", done.stdout)
        self.assertIn("2 cases: 0 passed, 2 updated", self.ok("check", self.folder, "--update").stdout)
        self.assertIn("2 cases: 2 passed", self.ok("check", self.folder).stdout)
        self.assertEqual((policy / "expected.csv").read_text().split("\n")[:4],
                         ["step,loss_scale,good_steps,grads_finite,event", "0,65536,0,1,", "1,65536,1,1,", "2,65536,2,1,growth"])
        # What a run writes is what a case expects.
        self.ok("run", model / "config.yaml", "--quiet", "--out", self.folder / "run")
        self.assertEqual((model / "expected.csv").read_bytes(), (self.folder / "run" / "trace.csv").read_bytes())
        # A case that passes is not written again, whatever its spelling.
        (policy / "expected.csv").write_text((policy / "expected.csv").read_text().replace("65536", "65536.0"))
        before = (policy / "expected.csv").read_bytes()
        self.ok("check", policy, "--update")
        self.assertEqual((policy / "expected.csv").read_bytes(), before)

    def test_a_failure_says_which_event_came_late_and_update_takes_it_over(self):
        policy = self.case("policy", POLICY % 3, events_txt="40F\n")
        self.ok("check", policy, "--update")
        (policy / "config.yaml").write_text(POLICY % 5)
        done = run("check", policy, "--junit", self.folder / "j.xml", "--keep", self.folder / "kept")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        for text in ["first difference: step 2, column event: growth in expected, (empty) in got", "event growth of step 2 comes 2 steps late in got, at step 4",
                     "look closer: scaletrace check %s --rows 20" % policy, "1 case: 0 passed, 1 failed"]:
            self.assertIn(text, done.stdout)
        suite = xml.etree.ElementTree.parse(self.folder / "j.xml").getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("1", "1", "0"))
        self.assertIn("growth of step 2 comes 2 steps late", suite.find("testcase/failure").text)
        kept = list((self.folder / "kept").rglob("policy.csv"))
        self.assertEqual(len(kept), 1)
        self.assertEqual(run("diff", policy, kept[0]).returncode, 1)
        updated = self.ok("check", policy, "--update").stdout
        self.assertIn("updated " + str(policy), updated)
        self.assertIn("growth of step 2 comes 2 steps late", updated)
        self.ok("diff", policy, kept[0])
        self.ok("check", policy)

    def test_tolerances_and_columns_of_a_case(self):
        model = self.case("model", MODEL)
        self.ok("check", model, "--update")
        lines = (model / "expected.csv").read_text().splitlines()
        names = lines[0].split(",")
        rows = [dict(zip(names, line.split(","))) for line in lines[1:]]
        text = "seconds,step,loss\n" + "".join("1,%s,%.4g\n" % (r["step"], float(r["loss"])) for r in rows)
        (model / "expected.csv").write_text(text)
        self.assertIn("expected.csv:1: found 'seconds', which is no column of a trace", run("check", model).stdout)
        (model / "tolerance.yaml").write_text("seconds: ignore\n")
        self.assertIn("column loss", run("check", model).stdout)
        (model / "tolerance.yaml").write_text("seconds: ignore\nloss: {relative: 1e-3}\n")
        self.ok("check", model)
        (model / "tolerance.yaml").write_text("seconds: ignore\nloss: {relative: 1e-3}\nlos: exact\n")
        self.assertIn("found 'los', a column that neither", run("check", model).stdout)

    def test_what_is_no_case_is_said_in_one_line_and_a_broken_one_does_not_stop_the_others(self):
        self.assertIn("there is no such folder", self.fails(2, "check", self.folder / "none"))
        self.assertIn("found no case in it", self.fails(2, "check", self.folder))
        self.case("good", POLICY % 3, events_txt="4F")
        self.ok("check", self.folder, "--update")
        self.case("bad", "scaller: 1\n", expected_csv="step,loss\n0,1\n")
        self.case("torn", MODEL, expected_csv="step,loss\n0\n")
        self.case("letters", POLICY % 3, events_txt="4X", expected_csv="step,loss_scale\n0,1\n")
        self.case("columns", POLICY % 3, events_txt="4F", expected_csv="step,loss\n0,1\n")
        orphan = self.folder / "orphan"
        orphan.mkdir()
        (orphan / "expected.csv").write_text("step\n0\n")
        done = run("check", self.folder, "--junit", self.folder / "j.xml")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        for text in ["bad/config.yaml:1: scaller: unknown key", "torn/expected.csv:2: found 1 cell; allowed: 2", "letters/events.txt", "since it trains no model",
                     "orphan: has no config.yaml", "6 cases: 1 passed, 5 could not be checked"]:
            self.assertIn(text, done.stdout)
        self.assertEqual(xml.etree.ElementTree.parse(self.folder / "j.xml").getroot().get("errors"), "5")

    def test_a_thousand_cases_are_found_and_checked_and_a_failure_among_them_is_named(self):
        for i in range(1000):
            self.case("cases/%02d/%04d" % (i // 50, i), POLICY % (i % 7 + 1), events_txt="30F 1O 30F\n")
        self.ok("check", self.folder, "--update", "--quiet")
        self.assertIn("1000 cases: 1000 passed", self.ok("check", self.folder).stdout)
        victim = self.folder / "cases/13/0666/expected.csv"
        victim.write_text(victim.read_text().replace("\n40,", "\n41,"))
        done = run("check", self.folder, "--jobs", 3)
        self.assertIn("FAILED  %s\n" % victim.parent, done.stdout)
        self.assertIn("1000 cases: 999 passed, 1 failed", done.stdout)
        self.assertEqual(len(self.ok("check", self.folder, "--list").stdout.splitlines()), 1000)


class Recorded(Case):
    def test_the_scalers_of_pytorch_flax_and_deepspeed_are_ours_to_the_bit_as_they_were_recorded(self):
        self.assertIn("3 cases: 3 passed", self.ok("check", SOURCE / "tests" / "cases").stdout)
        for case in (SOURCE / "tests" / "cases").iterdir():
            self.assertGreater((case / "events.txt").read_text().count("O"), 10, case)
            self.assertIn("recorded by docs/guides/", (case / "config.yaml").read_text())
            self.ok("check", case)
        # A scaler that grows one step late is found out.
        copy = self.folder / "torch"
        shutil.copytree(SOURCE / "tests" / "cases" / "torch-gradscaler", copy)
        config = (copy / "config.yaml").read_text()
        (copy / "config.yaml").write_text(config.replace("policy: pytorch", "policy: flax"))
        self.assertIn("late", run("check", copy).stdout)


class Show(Case):
    def show(self, *args, columns=80, locale="C.UTF-8", **kwargs):
        env = {k: v for k, v in os.environ.items() if k not in ("LC_ALL", "LC_CTYPE", "LANG", "LINES", "NO_COLOR")}
        return self.ok("show", *args, env={**env, "COLUMNS": str(columns), "LC_ALL": locale}, encoding="utf-8", text=None, **kwargs).stdout

    def test_a_picture_fits_the_window_in_utf8_and_in_ascii_and_ends_with_the_verdict(self):
        for name in ("quickstart", "stuck-at-inf", "floor-collapse"):
            self.ok("run", SOURCE / "configs" / (name + ".yaml"), "--quiet", "--out", self.folder / name)
        for columns in (40, 80, 120, 200):
            for locale in ("C.UTF-8", "C"):
                for name in ("quickstart", "stuck-at-inf", "floor-collapse"):
                    text = self.show(self.folder / name, columns=columns, locale=locale)
                    self.assertLess(max(map(len, text.splitlines()[1:])), columns, (name, text))
                    self.assertEqual(text.isascii(), locale == "C")
                    self.assertNotIn("\x1b", text)
        text = self.show(self.folder / "stuck-at-inf", columns=100)
        self.assertLessEqual(len(text.splitlines()), 25)
        for part in ["loss scale", "2^100", "\u221e", "28 growth", "step 280", "every step since"]:
            self.assertIn(part, text)
        self.assertIn("I inf", self.show(self.folder / "stuck-at-inf", "--ascii"))

    def test_json_has_the_verdict_the_story_and_the_counts_that_the_picture_has(self):
        for name, verdict in (("quickstart", "ok"), ("stuck-at-inf", "inf"), ("policy-floor-raise", "raised"), ("fp16-scale-too-large", "stuck")):
            folder = self.folder / name
            summary = json.loads(self.ok("run", SOURCE / "configs" / (name + ".yaml"), "--json", "--out", folder).stdout)
            report = json.loads(self.ok("show", folder, "--json").stdout)
            self.assertEqual((report["verdict"], report["done"], report["story"], report["summary"]), (verdict, True, summary["story"], summary["summary"]))
            self.assertIn(" ".join(report["story"].split()), " ".join(self.show(folder).split()))
            rows = (folder / "trace.csv").read_text().splitlines()[1:]
            self.assertEqual((report["rows"], report["first_step"], report["last_step"]), (len(rows), 0, len(rows) - 1))
            with open(folder / "trace.csv", newline="") as file:
                events = [row["event"] for row in csv.DictReader(file)]
            self.assertEqual(report["events"], {event: events.count(event) for event in report["events"]})
            self.assertEqual(sum(report["events"].values()), sum(map(bool, events)))
            # The trace alone says the same, but for why it ended.
            alone = json.loads(self.ok("show", folder / "trace.csv", "--json").stdout)
            self.assertEqual((alone["verdict"], alone["done"]), (verdict, False))

    def test_json_says_null_of_a_trace_that_is_not_whole(self):
        report = json.loads(self.ok("show", self.write("part.csv", "step,loss,loss_scale\n5,1,8\n9,1,8\n"), "--json").stdout)
        self.assertEqual((report["rows"], report["first_step"], report["verdict"], report["story"], report["summary"]), (2, 5, None, None, None))
        empty = json.loads(self.ok("show", self.write("empty.csv", "step,loss,loss_scale\n"), "--json").stdout)
        self.assertEqual((empty["rows"], empty["first_step"], empty["verdict"]), (0, None, None))

    def test_a_spike_of_one_step_among_a_hundred_thousand_is_drawn(self):
        rows = "".join("%d,%s,65536\n" % (i, "1000" if i == 77777 else "1") for i in range(100000))
        text = self.show(self.write("t.csv", "step,loss,loss_scale\n" + rows), locale="C")
        top = text.splitlines()[text.splitlines().index("loss") + 1]
        self.assertRegex(top, r"^ +1e\+03 \| {50,56}[:'.]$")

    def test_foreign_traces_ranges_and_what_can_not_be_drawn(self):
        trace = self.write("t.csv", "step,scale\n" + "".join("%d,%d\n" % (i, 1024 if i < 5 else 512) for i in range(10)))
        self.assertIn("has neither a column loss nor loss_scale", self.fails(3, "show", trace))
        text = self.show(trace, "--map", "scale=loss_scale")
        self.assertIn("events: 1 backoff", text)
        self.assertIn("The scale backed off once, from 2^10 to 512", text)
        self.assertNotIn("loss\n", text)
        self.assertIn("steps 7 to 9", self.show(trace, "--map", "scale=loss_scale", "--steps", "7:"))
        self.assertIn("no rows", self.show(trace, "--map", "scale=loss_scale", "--steps", "70:"))
        self.assertIn("allowed: FROM:TO", self.fails(2, "show", trace, "--steps", "7"))
        self.assertIn("NaN", self.show(self.write("n.csv", "step,loss\n0,1\n1,NaN\n2,\n")))


if __name__ == "__main__":
    unittest.main()
