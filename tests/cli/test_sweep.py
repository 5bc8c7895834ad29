"""scaletrace sweep: the same bytes however it is cut up and however often it is killed; shards, traces, conditions, summaries.

SCALETRACE_FULL_SWEEPS=1 kills a sweep 200 times instead of 12, and runs one of a million runs."""

import csv
import itertools
import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import unittest

from support import PROGRAM, SOURCE, Case, run

FULL = bool(os.environ.get("SCALETRACE_FULL_SWEEPS"))
SWEEPS = sorted((SOURCE / "configs" / "sweeps").glob("*.yaml"))

SMALL = """\
name: small
steps: 40
data: {kind: gaussian, samples: 4, features: 3, outputs: 2}
precision: {compute: float16}
sweep:
  axes:
    scaler:
      - {policy: jax-step, growth_interval: 5}
      - {policy: deepspeed, growth_interval: 4}
      - {policy: static}
    scaler.init_scale: {log2range: [0, 24], step: 3}
    optimizer.lr: {random: log-uniform, low: 1.0e-4, high: 10, count: 5}
  repeat: 3
  keep_traces: sample 7
"""

SLOW = """\
name: slow
steps: 4000
data: {kind: drift, samples: 16, features: 8, outputs: 2, period: 77}
precision: {compute: float16}
scaler: {policy: pytorch, growth_interval: 20}
sweep:
  axes:
    scaler.init_scale: {log2range: [4, 23]}
  repeat: %d
  keep_traces: sample 3
"""


def contents(folder):
    """Results and traces, by path."""
    files = {"results.csv": (folder / "results.csv").read_bytes()}
    for path in sorted((folder / "traces").rglob("*")) if (folder / "traces").exists() else []:
        if path.is_file():
            files[str(path.relative_to(folder))] = path.read_bytes()
    return files


def rows_of(folder):
    with open(folder / "results.csv", newline="") as f:
        return list(csv.DictReader(f))


def without_scheduler(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "PMI", "JSM", "JOB_COMP", "AWS_BATCH", "LSB", "PBS", "SGE", "PARALLEL"))}
    return {**env, **more}


class SameBytes(Case):
    def setUp(self):
        super().setUp()
        self.file = self.write("small.yaml", SMALL)
        self.ok("sweep", self.file, "--out", self.folder / "whole", "-j", 1)
        self.whole = contents(self.folder / "whole")

    def test_any_number_of_threads_gives_the_same_bytes(self):
        for jobs in (2, 5):
            out = self.folder / ("j%d" % jobs)
            done = self.ok("sweep", self.file, "--out", out, "-j", jobs)
            self.assertIn("405 runs", done.stdout)
            self.assertEqual(contents(out), self.whole)
            self.assertEqual(sorted(p.name for p in out.iterdir()), ["plan.json", "results.csv", "sweep.yaml", "traces"])
            self.assertEqual((out / "sweep.yaml").read_text(), SMALL)

    def test_any_number_of_shards_in_any_order_merges_to_the_same_bytes(self):
        rng = random.Random(3)
        for count in (1, 3, 7):
            out = self.folder / ("of%d" % count)
            order = list(range(1, count + 1))
            rng.shuffle(order)
            for k in order:
                self.ok("sweep", self.file, "--out", out, "--shard", "%d/%d" % (k, count), "-j", 1 + k % 2)
                if k != order[-1]:
                    self.assertFalse((out / "results.csv").exists())
            self.ok("sweep", "merge", out)
            self.assertEqual(contents(out), self.whole)
            self.assertIn("there already", self.ok("sweep", "merge", out).stdout)

    def test_shards_of_different_counts_and_parts_from_elsewhere_merge_to_the_same_bytes(self):
        here, there = self.folder / "here", self.folder / "there"
        self.ok("sweep", self.file, "--out", here, "--shard", "1/3")
        self.ok("sweep", self.file, "--out", here, "--shard", "2/4")
        self.ok("sweep", self.file, "--out", there, "--shard", "3/3")
        self.ok("sweep", self.file, "--out", there, "--shard", "2/3")
        for kind in ("parts", "traces"):
            shutil.copytree(there / kind, here / kind, dirs_exist_ok=True)
        self.ok("sweep", "merge", here)
        self.assertEqual(contents(here), self.whole)

    def test_a_single_process_takes_over_what_shards_have_done(self):
        out = self.folder / "taken"
        self.ok("sweep", self.file, "--out", out, "--shard", "2/3")
        report = json.loads(self.ok("sweep", self.file, "--out", out, "--json").stdout)
        self.assertEqual((report["runs"], report["done_here"]), (405, 270))
        self.assertEqual(contents(out), self.whole)

    def test_done_once_is_done(self):
        done = self.ok("sweep", self.file, "--out", self.folder / "whole")
        self.assertIn("was done before", done.stdout)
        self.assertIn("another sweep", self.fails(2, "sweep", self.file, "--out", self.folder / "whole", "--set", "steps=41"))
        self.assertIn("another sweep", self.fails(2, "sweep", self.file, "--out", self.folder / "whole", "--keep-traces", "none"))
        self.ok("sweep", self.file, "--out", self.folder / "whole", "--set", "steps=41", "--force")
        self.assertNotEqual(contents(self.folder / "whole"), self.whole)
        self.write("other", "")
        self.assertIn("other files", self.fails(2, "sweep", self.file, "--out", self.folder))

    def test_every_row_and_trace_is_that_of_the_run_alone(self):
        rows = rows_of(self.folder / "whole")
        self.assertEqual([int(r["run"]) for r in rows], list(range(405)))
        self.assertEqual(list(rows[0]), ["run", "scaler.policy", "scaler.growth_interval", "scaler.init_scale", "optimizer.lr", "seed", "steps", "updates", "skipped",
                                         "growths", "backoffs", "scale_first", "scale_min", "scale_max", "scale_last", "scale_median", "steps_at_ceiling",
                                         "first_loss", "final_loss", "verdict"])
        traced = {int(p.name) for p in (self.folder / "whole" / "traces").iterdir()}
        self.assertEqual(len(traced), 7)
        for number in sorted({0, 1, 100, 200, 300, 404} | traced):
            with self.subTest(number):
                row = rows[number]
                config = self.write("one.yaml", self.ok("sweep", "config", self.file, number).stdout)
                out = self.folder / ("run%d" % number)
                summary = json.loads(self.ok("run", config, "--out", out, "--json").stdout)["summary"]
                for name in ["steps", "updates", "skipped", "growths", "backoffs", "scale_first", "scale_min", "scale_max", "scale_last", "first_loss"]:
                    self.assertEqual(float(row[name]), float(summary[name]), name)
                self.assertEqual(str(float(row["final_loss"])), str(float(summary["last_loss"])))
                with open(out / "trace.csv", newline="") as f:
                    trace = list(csv.DictReader(f))
                scales = sorted(float(r["loss_scale"]) for r in trace)
                self.assertEqual(float(row["scale_median"]), scales[(len(scales) - 1) // 2])
                text = config.read_text()
                self.assertIn("policy: " + row["scaler.policy"], text)
                self.assertIn("lr: " + row["optimizer.lr"], text)
                self.assertIn("seed: " + row["seed"], text)
                if number in traced:
                    kept = self.folder / "whole" / "traces" / str(number)
                    self.assertEqual((kept / "trace.csv").read_bytes(), (out / "trace.csv").read_bytes())
                    self.assertEqual((kept / "config.yaml").read_text(), text)

    def test_combinations_come_with_the_last_axis_fastest_and_the_seeds_innermost(self):
        rows = rows_of(self.folder / "whole")
        lrs = [rows[3 * i]["optimizer.lr"] for i in range(5)]
        self.assertEqual(len(set(lrs)), 5)
        for lr in lrs:
            self.assertTrue(1e-4 <= float(lr) <= 10)
        expected = itertools.product(["jax-step", "deepspeed", "static"], [2 ** k for k in range(0, 25, 3)], lrs, ["0", "1", "2"])
        for row, (policy, scale, lr, seed) in zip(rows, expected, strict=True):
            self.assertEqual((row["scaler.policy"], float(row["scaler.init_scale"]), row["optimizer.lr"], row["seed"]), (policy, scale, lr, seed))
            # A key that the run's config does not have is an empty cell.
            self.assertEqual(row["scaler.growth_interval"], {"jax-step": "5", "deepspeed": "4", "static": ""}[policy])


class Interruptions(Case):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="scaletrace-cli-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.file = folder / "slow.yaml"
        cls.file.write_text(SLOW % (120 if FULL else 12))
        subprocess.run([PROGRAM, "sweep", cls.file, "--quiet", "--out", folder / "whole"], check=True)
        cls.whole = contents(folder / "whole")

    def start(self, out, *args, **kwargs):
        return subprocess.Popen([PROGRAM, "sweep", self.file, "--out", out, "-j", "2", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)

    def wait_for_a_new_part(self, out, process, before):
        while process.poll() is None and not [p for p in out.glob("parts/*.rows") if p not in before]:
            time.sleep(0.001)

    def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(self):
        rng = random.Random(7)
        out = self.folder / "killed"
        kills = finished = 0
        while kills < (200 if FULL else 12):
            process = self.start(out)
            time.sleep(rng.uniform(0, 0.12))
            process.kill()
            process.communicate()
            kills += process.returncode == -signal.SIGKILL
            if (out / "results.csv").exists():
                self.assertEqual(contents(out), self.whole)
                shutil.rmtree(out)
                finished += 1
        report = json.loads(self.ok("sweep", self.file, "--out", out, "--json").stdout)
        if not finished:
            self.assertLess(report["done_here"], report["runs"])
        self.assertEqual(contents(out), self.whole)
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["plan.json", "results.csv", "sweep.yaml", "traces"])

    def test_signals_and_limits_end_it_within_two_seconds_and_it_goes_on(self):
        out = self.folder / "stopped"
        cases = [(signal.SIGINT, [], 130, "interrupted"), (signal.SIGTERM, [], 143, "interrupted"), (signal.SIGUSR1, ["--stop-signal", "USR1"], 75, "warned"),
                 (signal.SIGTERM, ["--stop-signal", "SIGTERM"], 75, "warned"), (None, ["--time-limit", "0.1s"], 75, "time limit")]
        stopped = 0
        for number, args, code, word in cases:
            before = set(out.glob("parts/*.rows"))
            process = self.start(out, *args)
            self.wait_for_a_new_part(out, process, before)
            begun = time.monotonic()
            if number:
                process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            if process.returncode != 0:  # unless it had ended by then
                stopped += 1
                self.assertLess(time.monotonic() - begun, 10)  # two, and room for a machine that is busy
                self.assertEqual(process.returncode, code, errors)
                self.assertIn(word, errors)
                self.assertIn("run the same command again to go on", errors)
                self.assertFalse((out / "results.csv").exists())
            else:
                shutil.rmtree(out)
        self.assertGreaterEqual(stopped, 3)
        self.ok("sweep", self.file, "--out", out)
        self.assertEqual(contents(out), self.whole)

    def test_a_single_step_that_takes_long_does_not_keep_it_from_ending(self):
        file = self.write("huge.yaml", "steps: 1000000\ndata: {samples: 4000, features: 2000, outputs: 500}\nsweep: {repeat: 2}\n")
        process = subprocess.Popen([PROGRAM, "sweep", file, "--out", self.folder / "huge", "-j", "1"], stderr=subprocess.PIPE, text=True)
        while not (self.folder / "huge" / "parts").exists():
            time.sleep(0.01)
        time.sleep(0.2)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        self.assertLess(time.monotonic() - begun, 10)  # two, and room for a machine that is busy
        self.assertIn("run the same command again", errors)

    def test_two_processes_on_one_folder_do_not_mix(self):
        out = self.folder / "two"
        both = [self.start(out), self.start(out)]
        codes = []
        for process in both:
            _, errors = process.communicate(timeout=120)
            codes.append(process.returncode)
            if process.returncode != 0:
                self.assertIn("another process works on this sweep", errors)
        self.assertIn(sorted(codes), [[0, 0], [0, 3]])
        self.assertEqual(contents(out), self.whole)

    def test_two_processes_that_the_lock_does_not_keep_apart_do_not_mix_either(self):
        out = self.folder / "unlocked"
        both = [self.start(out, "--shard", shard) for shard in ("1/1", "1/2")]  # 1/2 is a half of 1/1
        for process in both:
            process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0)
        self.assertEqual(contents(out), self.whole)

    def test_a_part_that_is_torn_or_damaged_costs_the_runs_behind_the_damage_and_nothing_else(self):
        out = self.folder / "torn"
        self.ok("sweep", self.file, "--out", out, "--shard", "1/2")
        part, = out.glob("parts/*.rows")
        good = part.read_bytes()
        total = json.loads(self.ok("sweep", "status", out, "--json").stdout)["done"]
        rng = random.Random(1)
        for _ in range(6):
            cut = rng.randrange(len(good))
            for text in (good[:cut], good[:cut] + bytes(len(good) - cut), good[:cut] + bytes([good[cut] ^ 1]) + good[cut + 1:], good + b"rows 0 1 0 9 "):
                part.write_bytes(text)
                status = json.loads(self.ok("sweep", "status", out, "--json").stdout)
                self.assertLessEqual(status["done"], total)
                if text.startswith(good):
                    self.assertEqual(status["done"], total)
        self.ok("sweep", self.file, "--out", out)
        self.assertEqual(contents(out), self.whole)

    def test_a_full_disk_is_an_error_and_it_goes_on_when_there_is_room(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], stderr=subprocess.PIPE)
        if mounted.returncode != 0:
            self.skipTest("a small file system can't be mounted here")
        try:
            message = self.fails(3, "sweep", self.file, "--out", disk / "out", "--quiet")
            self.assertIn("No space left", message)
            self.assertFalse((disk / "out" / "results.csv").exists())
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            self.ok("sweep", self.file, "--out", disk / "out")
            self.assertEqual(contents(disk / "out"), self.whole)
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_a_limit_on_the_size_of_files_is_an_error_and_it_goes_on_without(self):
        out = self.folder / "limited"
        done = run("sweep", self.file, "--out", out, "--quiet", "--set", "sweep.keep_traces=none",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9_001, 9_001)))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.ok("sweep", self.file, "--out", out, "--set", "sweep.keep_traces=none")
        self.assertEqual((out / "results.csv").read_bytes(), self.whole["results.csv"])


class Shards(Case):
    def setUp(self):
        super().setUp()
        self.file = self.write("small.yaml", SMALL)

    def test_merge_and_status_name_the_shards_that_are_missing(self):
        out = self.folder / "out"
        self.ok("sweep", self.file, "--out", out, "--shard", "2/3")
        self.assertIn("shards 1/3, 3/3 miss 270 of 405 runs (0, 2-3, 5-6, 8-9, ...)", self.fails(4, "sweep", "merge", out))
        status = self.ok("sweep", "status", out).stdout
        self.assertIn("135 of 405 runs done, 270 missing, 0 failed", status)
        self.assertRegex(status, r"1/3 +135 +0 +135 +0 +never\n")
        self.assertRegex(status, r"2/3 +135 +135 +0 +0 .* ago\n")
        self.ok("sweep", self.file, "--out", out, "--shard", "1/3")
        self.assertIn("shard 3/3 misses 135 of 405 runs", self.fails(4, "sweep", "merge", out))
        self.assertIn("so far", self.ok("sweep", "summarize", out, "--by", "policy").stderr)
        self.ok("sweep", self.file, "--out", out, "--shard", "3/3")
        self.assertIn("nothing is missing", self.ok("sweep", "status", out).stdout)
        self.ok("sweep", "merge", out)
        self.assertIn("405 of 405 runs done, 0 missing", self.ok("sweep", "status", out).stdout)
        self.assertIn("no plan.json", self.fails(3, "sweep", "merge", self.folder))
        self.assertIn("no plan.json", self.fails(3, "sweep", "status", self.folder / "nowhere"))

    def test_auto_says_which_source_it_used_and_refuses_where_two_disagree(self):
        out = self.folder / "auto"
        done = self.ok("sweep", self.file, "--out", out, "--shard", "auto", env=without_scheduler(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="3"))
        self.assertIn("shard 2/3 (Open MPI: OMPI_COMM_WORLD_RANK=1 of 3)", done.stderr)
        done = self.ok("sweep", self.file, "--out", out, "--shard", "auto", "--shards", "3", env=without_scheduler(JOB_COMPLETION_INDEX="2"))
        self.assertIn("shard 3/3 (Kubernetes", done.stderr)
        both = without_scheduler(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="3", SGE_TASK_ID="1", SGE_TASK_FIRST="1", SGE_TASK_LAST="3", SGE_TASK_STEPSIZE="1")
        message = self.fails(2, "sweep", self.file, "--out", out, "--shard", "auto", env=both)
        self.assertIn("Open MPI says 2/3", message)
        self.assertIn("SGE says 1/3", message)
        self.ok("sweep", self.file, "--out", out, "--shard", "sge", env=both)
        self.assertIn("no scheduler", self.fails(2, "sweep", self.file, "--out", out, "--shard", "auto", env=without_scheduler()))
        self.ok("sweep", "merge", out)
        for bad in ("0/3", "4/3", "1", "x/y", "slurmm"):
            self.fails(2, "sweep", self.file, "--out", out, "--shard", bad, env=without_scheduler())


class Plans(Case):
    def plan(self, text, *args):
        return self.ok("sweep", "plan", self.write("plan.yaml", text), *args).stdout

    def test_a_plan_says_how_many_and_the_first_few_and_writes_nothing(self):
        text = self.plan(SMALL)
        self.assertIn("small: 405 runs = 3 x 9 x 5 x 3 seeds", text)
        self.assertIn("scaler.init_scale: 9 values: 1, 8, 64, 512, 4096, ..., 16777216", text)
        self.assertRegex(text, r"time +about .* on \d+ thread")
        self.assertRegex(text, r"disk +about ")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["plan.yaml"])

    def test_a_billion_runs_are_refused_without_cap_and_planned_at_once_with_it(self):
        text = "name: big\nsteps: 10\ndata: {samples: 2, features: 2, outputs: 1}\nsweep:\n  axes: {optimizer.lr: {random: uniform, low: 0, high: 1, count: 1000000}}\n  repeat: 1000\n"
        file = self.write("big.yaml", text)
        message = self.fails(2, "sweep", "plan", file)
        self.assertIn("1000000 combinations of 1000 seeds", message)
        self.assertIn("cap: N", message)
        self.fails(2, "sweep", file, "--out", self.folder / "out")
        begun = time.monotonic()
        self.assertIn("1 000 000 000 runs", self.plan(text + "  cap: 1000000000\n"))
        self.assertIn("2000 runs, of the 1 000 000 x 1000 seeds taken evenly", self.plan(text + "  cap: 2000\n"))
        self.assertLess(time.monotonic() - begun, 20)  # not a measure of speed: listing them would take hours
        self.ok("sweep", file, "--out", self.folder / "out", "--set", "sweep.cap=2000")
        self.assertEqual(len({r["optimizer.lr"] for r in rows_of(self.folder / "out")}), 2)

    def test_where_drops_combinations_and_renumbers_none(self):
        text = SMALL.replace("  repeat: 3\n  keep_traces: sample 7\n", "")
        self.ok("sweep", self.write("all.yaml", text), "--out", self.folder / "all")
        text += "  where: \"policy != 'static' and (init_scale * lr < 2^6 or scaler.growth_interval == 4)\"\n"
        file = self.write("some.yaml", text)
        some, again = self.folder / "some", self.folder / "again"
        self.ok("sweep", file, "--out", some)
        kept = rows_of(some)
        expected = [r for r in rows_of(self.folder / "all") if r["scaler.policy"] != "static"
                    and (float(r["scaler.init_scale"]) * float(r["optimizer.lr"]) < 64 or r["scaler.growth_interval"] == "4")]
        self.assertEqual(kept, expected)
        self.assertIn("keeps %d" % len(kept), self.ok("sweep", "plan", file).stdout)
        for k in (2, 1):
            self.ok("sweep", file, "--out", again, "--shard", "%d/2" % k)
        self.ok("sweep", "merge", again)
        self.assertEqual(contents(again), contents(some))

    def test_combinations_that_make_no_config_are_rows_of_their_own_and_exit_1(self):
        file = self.write("bad.yaml", "steps: 5\nscaler: {policy: dynamic}\nsweep: {axes: {scaler.init_scale: [1, 64], scaler.min_scale: [1, 16]}}\n")
        message = self.fails(1, "sweep", file, "--out", self.folder / "out", "--quiet")
        self.assertIn("1 combination makes no config (verdict invalid): run 1: ", message)
        rows = rows_of(self.folder / "out")
        self.assertEqual([r["verdict"] for r in rows], ["ok", "invalid", "ok", "ok"])
        self.assertEqual((rows[1]["scaler.init_scale"], rows[1]["scaler.min_scale"], rows[1]["steps"]), ("1", "16", ""))
        self.assertEqual(json.loads(self.ok("sweep", "status", self.folder / "out", "--json").stdout)["failed"], 1)
        self.ok("sweep", self.write("good.yaml", file.read_text().replace("sweep: {", "sweep: {where: min_scale <= init_scale, ")), "--out", self.folder / "good")

    def test_wrong_sweeps_get_one_line_with_the_place(self):
        base = "steps: 5\nsweep:\n  axes:\n    %s\n"
        for axis, expected in [
                ("optimizer.lrr: [1]", "sweep.axes.optimizer.lrr: unknown key (did you mean 'optimizer.lr'?)"),
                ("lr: [1]", "did you mean 'optimizer.lr'?"),
                ("optimizer.lr: [1, -2]", ":4: optimizer.lr: found -2; allowed: a number >= 0"),
                ("optimizer.lr: []", "allowed: a list of at least one value"),
                ("optimizer.lr: 3", "found 3; allowed: a list of values"),
                ("optimizer.lr: {rnage: [1, 2]}", "allowed: a list of values, or a mapping with grid, range"),
                ("optimizer.lr: {range: [2, 1]}", "in ascending order"),
                ("optimizer.lr: {range: [1, 2], stpe: 3}", "unknown key (did you mean 'step'?)"),
                ("optimizer.lr: {random: unifrom, low: 0, high: 1, count: 3}", "found unifrom; allowed: uniform"),
                ("optimizer.lr: {random: log-uniform, low: 0, high: 1, count: 3}", "found 0; allowed: a number > 0"),
                ("optimizer.lr: {random: uniform, low: -1, high: 1, count: 3}", "optimizer.lr: found -1; allowed: a number >= 0"),
                ("pair: {zip: {steps: [1, 2], seed: [1]}}", "found 1 values; allowed: as many as steps has, 2"),
                ("pair: {list: [{steps: 1}, {stepz: 2}]}", "unknown key"),
                ("scaler: [{policy: pytorch, hysteresis: 2}]", "not a key of policy pytorch"),
                ("scaler.policy: [pytorch, nonsense]", "found nonsense"),
                ("scaler.hysteresis: [1, 2]", ":4: scaler.hysteresis: not a key of policy jax-step"),
        ]:
            with self.subTest(axis):
                self.assertIn(expected, self.fails(2, "sweep", "plan", self.write("bad.yaml", base % axis)))
        good = "steps: 5\nsweep:\n  axes: {optimizer.lr: [1, 2], data.samples: [3, 4]}\n"
        for more, expected in [
                ("  where: lr = 1\n", "found '='; allowed: =="), ("  where: lr\n", "found a value where a comparison belongs"),
                ("  where: lrr < 1\n", "unknown key 'lrr'"), ("  where: lr < 1 and\n", "ends where a value belongs"),
                ("  where: lr < (1\n", "allowed: )"), ("  where: 1 < lr < 2\n", "a < b and b < c"), ("  where: \"policy == 'x\"\n", "quote"),
                ("  repeat: 0\n", "found 0; allowed: an integer from 1"), ("  cap: 0\n", "found 0"), ("  caps: 3\n", "did you mean 'cap'?"),
                ("  keep_traces: some\n", "allowed: none, all, diverged, trouble, sample N"), ("  repeat: 9\n  cap: 3\n", "at least repeat, 9")]:
            with self.subTest(more):
                self.assertIn(expected, self.fails(2, "sweep", "plan", self.write("bad.yaml", good + more)))
        self.assertIn("is missing", self.fails(2, "sweep", "plan", self.write("none.yaml", "steps: 5\n")))
        self.assertIn("neither axes nor repeat", self.fails(2, "sweep", "plan", self.write("none.yaml", "steps: 5\nsweep: {}\n")))
        self.assertIn("`scaletrace sweep` takes it", self.fails(2, "run", self.write("small.yaml", SMALL)))
        self.assertIn("repeat beside an axis over seed", self.fails(2, "sweep", "plan", self.write("x.yaml", "sweep: {axes: {seed: [1, 2]}, repeat: 2}\n")))
        self.assertIn("which an axis before it sets too", self.fails(2, "sweep", "plan", self.write("x.yaml", "sweep: {axes: {seed: [1, 2], a: {list: [{seed: 3}]}}}\n")))
        self.assertIn("needs a FILE", self.fails(2, "sweep"))
        for args in (["--time-limit", "soon"], ["--stop-signal", "KILL"], ["--shards", "3"], ["-j", "-1"]):
            self.fails(2, "sweep", self.write("small.yaml", SMALL), *args)

    def test_traces_are_kept_of_all_of_none_and_of_those_in_trouble(self):
        text = "steps: 200\ndata: {samples: 4, features: 2}\nprecision: {compute: float16}\nsweep: {axes: {optimizer.lr: [0.01, 0.1, 3, 1000], scaler.init_scale: [1, 2^100]}}\n"
        file = self.write("keep.yaml", text)
        for keep in ("none", "all", "diverged", "trouble"):
            out = self.folder / keep
            self.ok("sweep", file, "--out", out, "--keep-traces", keep)
            rows = rows_of(out)
            wanted = {r["run"] for r in rows if keep == "all" or (keep == "diverged" and r["verdict"] == "diverged") or (keep == "trouble" and r["verdict"] != "ok")}
            kept = {p.name for p in (out / "traces").iterdir()} if (out / "traces").exists() else set()
            self.assertEqual(kept, wanted)
            self.assertEqual((out / "results.csv").read_bytes(), (self.folder / "none" / "results.csv").read_bytes())
        self.assertIn("diverged", [r["verdict"] for r in rows])
        self.assertIn("ok", [r["verdict"] for r in rows])


class Summaries(Case):
    def test_groups_have_the_numbers_that_python_gets_from_the_rows(self):
        out = self.folder / "out"
        self.ok("sweep", self.write("small.yaml", SMALL), "--out", out)
        text = self.ok("sweep", "summarize", out, "--by", "policy,init_scale", "--metric", "skipped,final_loss", "--quantiles", "0.25", "--csv").stdout
        groups = {}
        for r in rows_of(out):
            groups.setdefault((r["scaler.policy"], r["scaler.init_scale"]), []).append(r)
        lines = list(csv.DictReader(text.splitlines()))
        self.assertEqual(len(lines), len(groups))
        self.assertEqual([(x["scaler.policy"], float(x["scaler.init_scale"])) for x in lines], sorted((p, float(s)) for p, s in groups))
        for line in lines:
            rows = groups[line["scaler.policy"], line["scaler.init_scale"]]
            self.assertEqual(int(line["runs"]), len(rows))
            self.assertEqual(int(line["ok"]), sum(r["verdict"] == "ok" for r in rows))
            for metric in ("skipped", "final_loss"):
                numbers = sorted(x for x in (float(r[metric]) for r in rows) if not math.isnan(x))
                self.assertEqual(int(line[metric + "_nan"]), len(rows) - len(numbers))
                if numbers:
                    self.assertEqual(float(line[metric + "_median"]), statistics.median_low(numbers))
                    self.assertEqual(float(line[metric + "_q25"]), numbers[int(0.25 * (len(numbers) - 1))])
                    self.assertEqual((float(line[metric + "_min"]), float(line[metric + "_max"])), (numbers[0], numbers[-1]))
        self.assertIn("scaler.policy", self.ok("sweep", "summarize", out, "--by", "policy").stdout)
        self.assertIn("allowed: run, scaler.policy", self.fails(2, "sweep", "summarize", out, "--by", "policee"))
        self.assertIn("a column of numbers", self.fails(3, "sweep", "summarize", out, "--metric", "verdict"))


class Shipped(Case):
    def test_the_shipped_sweeps_are_listed_copied_and_run_and_say_what_to_look_for(self):
        self.assertEqual(len(SWEEPS), 4)
        listed = self.ok("configs").stdout
        for path in SWEEPS:
            with self.subTest(path.name):
                self.assertIn(path.stem, listed)
                self.assertIn("scaletrace sweep " + path.name, self.ok("init", path.stem, cwd=self.folder).stdout)
                self.assertEqual((self.folder / path.name).read_bytes(), path.read_bytes())
                self.assertIn("Look for", path.read_text())
                self.ok("sweep", path.name, "--out", path.stem, cwd=self.folder)
                # The command at the head of the file.
                command = next(line for line in path.read_text().splitlines() if "scaletrace sweep summarize" in line)
                words = command.split("scaletrace ")[1].split(">")[0].replace("DIR", path.stem).split()
                self.ok(*words, cwd=self.folder)

    def group(self, name, *by):
        self.ok("sweep", SOURCE / "configs" / "sweeps" / (name + ".yaml"), "--out", self.folder / name)
        groups = {}
        for r in rows_of(self.folder / name):
            groups.setdefault(tuple(r[k] for k in by), []).append(r)
        return groups

    def test_the_map_of_the_stable_region_has_its_borders(self):
        groups = self.group("sweep-stable-region", "optimizer.lr", "scaler.init_scale")
        points = {(float(lr), math.log2(float(scale))): rows[0] for (lr, scale), rows in groups.items()}
        lrs = sorted({lr for lr, _ in points})
        low, middle, high = lrs[0], lrs[24], lrs[-1]
        self.assertEqual(points[high, 0]["verdict"], "diverged")
        self.assertEqual(points[middle, 16]["verdict"], "stuck")
        self.assertEqual(points[middle, 16]["updates"], "0")
        self.assertEqual(points[middle, -24]["final_loss"], points[middle, -24]["first_loss"])
        self.assertLess(float(points[middle, 0]["final_loss"]), 1e-3)
        self.assertGreater(float(points[low, 0]["final_loss"]), 1)

    def test_policies_with_hysteresis_keep_their_scale_and_none_diverges(self):
        groups = self.group("sweep-policies", "scaler.policy")
        median = {(policy,): statistics.median(float(r["scale_median"]) for r in rows) for (policy,), rows in groups.items()}
        skipped = {(policy,): statistics.median(int(r["skipped"]) for r in rows) for (policy,), rows in groups.items()}
        self.assertEqual({r["verdict"] for r in groups["none",]}, {"diverged"})
        for patient in ("deepspeed", "megatron"):
            for other in ("pytorch", "jax-step", "flax", "keras"):
                self.assertGreater(median[patient,], 10 * median[other,])
                self.assertGreater(skipped[patient,], skipped[other,])

    def test_starts_and_growth_do_what_the_head_of_the_file_says(self):
        groups = self.group("sweep-init-scale", "scaler.init_scale", "scaler.growth_interval")
        loss = {k: statistics.median(float(r["final_loss"]) for r in rows) for k, rows in groups.items()}
        skipped = {k: statistics.median(int(r["skipped"]) for r in rows) for k, rows in groups.items()}
        self.assertGreater(loss["0.00390625", "2000"], 100 * loss["65536", "2000"])
        self.assertLess(max(loss[str(2 ** k), "5"] for k in range(25)), 3 * min(loss[str(2 ** k), "5"] for k in range(25)))
        self.assertGreater(skipped["1073741824", "2000"], skipped["1", "2000"])
        self.assertGreater(skipped["1024", "5"], skipped["1024", "2000"] + 10)


@unittest.skipUnless(FULL, "SCALETRACE_FULL_SWEEPS is not set")
class Million(Case):
    def test_a_million_tiny_runs_are_complete_in_bounded_memory(self):
        file = self.write("million.yaml", "steps: 1000\ndata: {samples: 2, features: 2, outputs: 1}\nsweep:\n  axes:\n    scaler.init_scale: {log2range: [0, 24]}\n"
                          "    scaler.growth_interval: [5, 20, 100, 500]\n    optimizer.lr: {logrange: [1.0e-3, 1], count: 10}\n  repeat: 1000\n")
        begun = time.monotonic()
        self.ok("sweep", file, "--out", self.folder / "out", timeout=1000)
        print("a million runs took %.1f s" % (time.monotonic() - begun))
        with open(self.folder / "out" / "results.csv") as f:
            next(f)
            for i, line in enumerate(f):
                self.assertTrue(line.startswith("%d," % i))
        self.assertEqual(i, 999_999)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 300_000)  # KB


if __name__ == "__main__":
    unittest.main()
