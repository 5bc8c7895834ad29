"""The program at its edges: repeated signals, closed files and pipes, half-made folders, numbers too small or too large."""

import csv
import io
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import time
import unittest

from support import PROGRAM, SOURCE, TINY, Case, run

# Far longer than anybody waits.
ENDLESS = TINY.format(steps=9_000_000_000_000) + "trace: {every: 0}\n"
ENDS = "the state is saved"
STEP = {"params": {"w": [[0.5], [-1.25]], "b": [0.1]}, "x": [[1, 2], [0.5, -1]], "y": [[-1.9], [1.5]], "loss_scale": 1024,
        "good_steps": 0, "lr": 0.1, "growth_interval": 2}


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


class Signals(Case):
    def start(self, *args, out="out"):
        """A run that has begun, and takes signals."""
        config = self.write("endless.yaml", ENDLESS)
        out = self.folder / out
        process = subprocess.Popen([PROGRAM, "run", config, "--out", out, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        caught = 0
        while not (out / "final.json").exists() or not caught >> (signal.SIGTERM - 1) & 1:
            time.sleep(0.001)
            caught = int(re.search(r"^SigCgt:\s*(\w+)", pathlib.Path("/proc/%d/status" % process.pid).read_text(), re.M)[1], 16)
        return process, out

    def test_a_signal_that_comes_twice_saves_the_state_once(self):
        for first, second in [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)]:
            process, out = self.start(out="%d-%d" % (first, second))
            process.send_signal(first)
            for _ in range(20):
                process.send_signal(second)  # after its end this does nothing
                time.sleep(0.0005)
            _, errors = process.communicate(timeout=30)
            self.assertIn(process.returncode, (128 + first, 128 + second))  # two that wait are delivered in any order
            self.assertIn(ENDS, errors)
            steps = json.loads((out / "final.json").read_text())["next_step"]
            self.assertIn("interrupted after step %d of" % steps, errors)

    def test_an_interrupted_run_prints_its_json_and_a_later_one_says_where_it_went_on(self):
        process, out = self.start("--json")
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=30)
        report = json.loads(text)
        self.assertEqual((process.returncode, report["end"]), (130, "interrupted"))
        steps = report["summary"]["steps"]
        self.assertEqual(json.loads((out / "final.json").read_text())["next_step"], steps)
        process, _ = self.start("--json")
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=30)
        self.assertEqual(json.loads(text)["resumed_at"], steps)


class ClosedFiles(Case):
    def shell(self, line, **kwargs):
        return subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder, timeout=60,
                              env={**os.environ, "P": PROGRAM}, **kwargs)

    def test_with_all_three_standard_files_closed_no_message_lands_in_a_file(self):
        self.write("tiny.yaml", TINY.format(steps=20))
        self.write("bad.yaml", "data: {kind: given, file: nowhere.json}\n")
        self.assertEqual(self.shell('"$P" run tiny.yaml --out good --quiet <&- >&- 2>&-').returncode, 0)
        self.assertEqual((self.folder / "good" / "config.yaml").read_text(), TINY.format(steps=20))
        self.assertEqual(self.shell('"$P" run tiny.yaml --out good --force --set scaler.init_scale=0 <&- >&- 2>&-').returncode, 2)
        for name in ("config.yaml", "config.resolved.yaml", "trace.csv", "final.json", "summary.json", "run.json"):
            self.assertNotIn("scaletrace: ", (self.folder / "good" / name).read_text().replace("scaletrace: simulate", ""), name)
        self.assertEqual(self.shell('"$P" run bad.yaml --out bad <&- >&- 2>&-').returncode, 3)

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        done = self.shell('for i in $(seq 20); do "$P" policies --markdown | head -c 1 > one; "$P" policy pytorch --events 200000F | head -1; done')
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(done.stdout.splitlines()), 20)

    def test_help_and_version_that_cannot_be_written_are_errors(self):
        for option in ("--help", "--version"):
            done = self.shell('"$P" %s > /dev/full' % option)
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, r"^scaletrace: error: standard output: cannot write: .*\n$")


class Folders(Case):
    def setUp(self):
        super().setUp()
        self.config = self.write("tiny.yaml", TINY.format(steps=300))
        self.out = self.folder / "out"
        self.ok("run", self.config, "--out", self.out, "--quiet")
        self.whole = {p.name: p.read_bytes() for p in self.out.iterdir() if p.name != "run.json"}

    def again(self, *args):
        return run("run", self.config, "--out", self.out, *args)

    def check_whole(self):
        self.assertEqual({p.name: p.read_bytes() for p in self.out.iterdir() if p.name != "run.json" and ".tmp." not in p.name}, self.whole)

    def test_what_a_run_leaves_that_was_killed_before_its_first_state_is_a_new_folder(self):
        for left in [["config.yaml"], ["config.yaml", "config.resolved.yaml"], ["config.yaml", "config.resolved.yaml", "trace.csv"]]:
            for path in list(self.out.iterdir()):
                if path.name not in left:
                    path.unlink()
            (self.out / "final.json.tmp.123").write_text('{"ha')
            self.assertEqual(self.again().returncode, 0, left)
            self.check_whole()

    def test_a_half_made_folder_of_another_config_is_refused(self):
        for name in ("final.json", "run.json", "summary.json"):
            (self.out / name).unlink()
        self.assertIn("another config", self.fails(2, "run", self.config, "--out", self.out, "--set", "seed=5"))
        (self.out / "config.resolved.yaml").unlink()
        self.assertIn("other files", self.fails(2, "run", self.config, "--out", self.out))  # a trace of nobody knows what
        (self.out / "trace.csv").unlink()
        (self.out / "config.yaml").write_text("mine")
        self.assertIn("other files", self.fails(2, "run", self.config, "--out", self.out))
        self.assertEqual((self.out / "config.yaml").read_text(), "mine")

    def test_a_state_file_that_is_gone_is_named(self):
        (self.out / "final.json").unlink()
        self.assertRegex(self.fails(2, "run", self.config, "--out", self.out), "final.json, the state .* is missing.*--force")
        self.assertEqual(self.again("--force").returncode, 0)
        self.check_whole()

    def test_only_the_summary_of_this_run_says_that_it_is_done(self):
        good = (self.out / "summary.json").read_text()
        for bad in ["", "{}", "[]", good[:100], re.sub(r'"hash": "..', '"hash": "xx', good), good.replace('"steps": 300', '"steps": 299')]:
            self.assertNotEqual(bad, good)
            (self.out / "summary.json").write_text(bad)
            done = self.again()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("was done", done.stdout)
            self.check_whole()
        self.assertIn("was done before", self.again().stdout)

    def test_a_done_run_without_its_whole_trace_says_so(self):
        trace = self.out / "trace.csv"
        trace.write_bytes(trace.read_bytes()[:-1])
        self.assertRegex(self.fails(3, "run", self.config, "--out", self.out), "trace.csv: is shorter .* --force")
        trace.unlink()
        self.assertRegex(self.fails(3, "run", self.config, "--out", self.out), "trace.csv: is missing, .* --force")
        self.assertFalse(trace.exists())
        self.assertEqual(self.again("--force").returncode, 0)
        self.check_whole()


class Words(Case):
    def text(self, settings, *args):
        config = self.write("words.yaml", "steps: 5\ndata: {kind: gaussian, samples: 8, features: 3, outputs: 2}\nscaler: {%s}\n" % settings)
        return self.ok("run", config, "--out", self.folder / "words", "--force", *args).stdout

    def test_the_end_of_a_run_tells_scales_in_force_from_the_one_that_comes_next(self):
        self.assertIn("scale  512 in every step, 2^10 next; 1 growth", self.text("policy: jax-step, init_scale: 512, growth_interval: 5"))
        self.assertIn("scale  512 at first, 512 to 2^11 in force, 2^11 next;", self.text("policy: jax-step, init_scale: 512, growth_interval: 2"))

    def test_a_scale_of_0_from_the_start_did_not_fall(self):
        self.assertIn("The scale was 0 from the start", self.text("policy: pytorch, init_scale: 0", "--quiet") or self.text("policy: pytorch, init_scale: 0"))

    def test_numbers_too_small_for_float32_are_refused_and_not_made_0(self):
        for setting in ("optimizer.lr=1e-60", "scaler.init_scale=1e-60", "optimizer.lr=-0.000001e-50"):
            message = self.fails(2, "config", SOURCE / "configs" / "quickstart.yaml", "--set", setting)
            self.assertIn("(too small for float32); allowed:", message)
        self.ok("config", SOURCE / "configs" / "quickstart.yaml", "--set", "scaler.init_scale=1e-45")
        for key in ("lr", "loss_scale"):
            self.assertIn("too small for float32", self.fails(3, "step", input=json.dumps({**STEP, key: 1e-60})))
        self.ok("step", input=json.dumps({**STEP, "lr": 0}))

    def test_data_without_memory_for_it_is_wrong_data(self):
        config = self.write("huge.yaml", TINY.format(steps=1))
        little = 1 << 30  # bytes
        done = run("run", config, "--out", self.folder / "out", "--set", "data.samples=20000", "--set", "data.features=100000",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (little, little)))
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_a_limit_that_is_a_default_is_not_said_to_be_in_the_text(self):
        message = self.fails(2, "policy", "dynamic", "--set", "init_scale=2^30", "--events", "F")
        self.assertEqual(message, "--set: max_scale: found 16777216 (the default); allowed: none, or at least init_scale, 1073741824")
        message = self.fails(2, "config", self.write("limit.yaml", "scaler: {policy: dynamic, init_scale: 4, max_scale: 2}\n"))
        self.assertTrue(message.endswith("limit.yaml:1: scaler.max_scale: found 2; allowed: none, or at least init_scale, 4"), message)

    def test_one_is_not_many(self):
        for key, value, word in (("b", [0.1, 0.2], "2 entries, w has"), ("b", [], "0 entries, w has")):
            step = {**STEP, "params": {**STEP["params"], key: value}}
            self.assertIn("found " + word, self.fails(3, "step", input=json.dumps(step)))
        self.assertIn("found 1 row, x has", self.fails(3, "step", input=json.dumps({**STEP, "y": [[1]]})))


class CommandLine(Case):
    def test_help_and_version_are_commands_too(self):
        self.assertEqual(self.ok("help").stdout, self.ok("--help").stdout)
        self.assertEqual(self.ok("help", "run").stdout, self.ok("run", "--help").stdout)
        text = self.ok("version").stdout
        self.assertEqual(text, self.ok("--version").stdout)
        self.assertFalse(text.endswith("\n\n"))

    def test_an_unknown_option_is_called_one(self):
        self.assertIn("unknown option '-v'", self.fails(2, "-v"))
        self.assertIn("unknown option '--vers'", self.fails(2, "--vers"))
        self.assertIn("did you mean '--version'", self.fails(2, "--verson"))

    def test_every_command_has_examples_of_its_own(self):
        for command in re.findall(r"^  ([a-z]+)  ", self.ok("--help").stdout.split("Subcommands:")[1].split("Examples:")[0], re.M):
            if command != "schema":
                self.assertRegex(self.ok(command, "--help").stdout, "Examples?:\n  (scaletrace|echo)", command)

    def test_formats_takes_values_behind_the_name_negative_ones_too(self):
        self.assertIn("[NAME [VALUE ...]]", self.ok("formats", "--help").stdout.splitlines()[1])
        self.assertIn("-1", self.ok("formats", "float16", "--", "-1").stdout)
        self.assertEqual(self.ok("formats", "float16", "--", "-1").stdout, self.ok("formats", "float16", "-1").stdout)

    def test_the_readme_counts_the_policies_right(self):
        count = sum(bool(re.match(r"[a-z0-9-]+  \(", line)) for line in self.ok("policies").stdout.splitlines())
        self.assertGreater(count, 50)
        self.assertIn("%d policies" % count, (SOURCE / "README.md").read_text())

    def test_step_takes_the_lines_of_a_file_of_expected_steps(self):
        golden = next((SOURCE / "tests" / "golden" / "step").iterdir())
        name, profile = golden.name.rsplit("-", 1)
        lines = (golden / "steps.jsonl").read_text().splitlines()
        inputs = "\n".join(json.dumps(json.loads(line)["input"]) for line in lines)
        args = ("step", "--format", name, "--profile", profile)
        self.assertEqual(self.ok(*args, golden / "steps.jsonl").stdout, self.ok(*args, input=inputs).stdout)
        self.assertIn('found the key "more"', self.fails(3, "step", input=json.dumps({"input": STEP, "more": 1})))
        self.assertIn("input.lr", self.fails(3, "step", input=json.dumps({"input": {**STEP, "lr": "x"}})))


class PolicySteps(Case):
    def table(self, *args):
        return self.ok("policy", *args).stdout.splitlines()

    def test_columns_of_tables_never_run_together(self):
        for args in (["openseq2seq-logmax", "--set", "amax=3", "--events", "FOFFNF"], ["chainer", "--events", "5F 2O 5F"],
                     ["deepspeed", "--events", "3F 2O"], ["te-delayed", "--amax-file", self.write("amax", "1e-3 3\n7 5\n")],
                     ["--compare", "openseq2seq-logmax,pytorch", "--set", "amax=3", "--events", "FOFF"]):
            lines = self.table(*args)
            while not lines[-1].startswith(" "):
                lines.pop()  # the sentence under a comparison
            columns = len(lines[0].split())
            # A blank column of two between each two of them, all the way down.
            width = max(map(len, lines))
            blank = [all(line[i:i + 1] in ("", " ") for line in lines) for i in range(width)]
            gaps = re.findall(" +", "".join(" " if b else "x" for b in blank).strip())
            self.assertGreaterEqual(len(gaps), columns - 1, lines)
            if "--compare" not in args:
                self.assertEqual([g for g in gaps if len(g) < 2], [], lines)

    def test_whether_a_step_was_applied_is_the_last_column(self):
        def applied(*args):
            got = rows(self.ok("policy", *args, "--events", "FOFOO", "--csv").stdout)
            self.assertEqual(list(got[0])[:4], ["step", "loss_scale", "grads_finite", "event"])
            self.assertEqual(list(got[0])[-1], "applied")
            return "".join(row["applied"] for row in got)
        self.assertEqual(applied("static"), "10100")
        self.assertEqual(applied("static", "--set", "on_overflow=apply"), "11111")
        self.assertEqual(applied("none"), "11111")
        self.assertEqual(applied("optax-apply-if-finite", "--set", "max_consecutive_errors=1"), "10101")
        report = json.loads(self.ok("policy", "static", "--events", "FO", "--json").stdout)
        self.assertEqual([row["applied"] for row in report["rows"]], [1, 0, None])
        self.assertTrue(self.table("static", "--events", "F")[0].endswith("  applied"))

    def test_a_factor_that_is_inverted_gets_no_warning_that_it_does_not_grow(self):
        for policy in ("bmtrain", "bmtrain-fixed"):
            self.assertEqual(self.ok("policy", policy, "--set", "factor=0.5", "--set", "growth_interval=1", "--events", "F").stderr, "")
            self.assertIn("does not grow", self.ok("policy", policy, "--set", "factor=1", "--events", "F").stderr)

    def test_a_list_of_keys_may_have_blanks_and_no_holes(self):
        self.assertEqual(self.table("--compare", "pytorch, flax", "--events", "FO"), self.table("--compare", "pytorch,flax", "--events", "FO"))
        for keys in (",", "pytorch,", ",flax", "pytorch,,flax", " "):
            self.assertIn("--compare: found '%s'; allowed: keys" % keys, self.fails(2, "policy", "--compare", keys, "--events", "F"))

    def amax(self, text, *args):
        return ("policy", *args, "--amax-file", self.write("amax.txt", text), "--csv")

    def test_an_amax_is_a_float32_that_is_not_negative(self):
        for policy in ("te-delayed", "openseq2seq-logmax"):
            self.assertIn("amax.txt:2: found -1; allowed: a number >= 0", self.fails(3, *self.amax("1\n-1\n", policy)))
            self.assertIn("found -inf", self.fails(3, *self.amax("-inf\n", policy)))
            self.assertIn("found 1e300 (too large for float32)", self.fails(3, *self.amax("1e300\n", policy)))
            self.assertEqual(self.ok(*self.amax("1\nnan\ninf\n", policy)).stdout, self.ok(*self.amax("1\nNaN\ninf\n", policy)).stdout)

    def test_a_file_of_amax_drives_the_policies_that_look_at_it(self):
        same = self.ok(*self.amax("3\n3\ninf\n3\n", "openseq2seq-logmax")).stdout
        self.assertEqual(same, self.ok("policy", "openseq2seq-logmax", "--set", "amax=3", "--events", "FFOF", "--csv").stdout)
        self.assertNotEqual(same, self.ok(*self.amax("3\n0.25\ninf\n3\n", "openseq2seq-logmax")).stdout)
        # Events beside it say what overflows.
        self.assertEqual(same, self.ok(*self.amax("3\n3\n3\n3\n", "openseq2seq-logmax", "--events", "FFOF")).stdout)
        self.assertIn("found 2 steps; allowed: 3", self.fails(3, *self.amax("3\n3\n", "openseq2seq-logmax", "--events", "FFF")))
        self.assertIn("found 2 numbers a line; allowed: one", self.fails(3, *self.amax("3 3\n", "openseq2seq-logmax")))
        self.assertIn("look at the largest |gradient|", self.fails(2, *self.amax("3\n", "pytorch")))
        self.ok(*self.amax("3\n1\ninf\n", "--compare", "openseq2seq-logmax,openseq2seq-logmax-fixed"))


if __name__ == "__main__":
    unittest.main()
