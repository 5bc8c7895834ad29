"""scaletrace run: folders, resuming, signals, full disks, equal bytes on every instruction set."""

import csv
import json
import os
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from support import CONFIGS, PROGRAM, SOURCE, TINY, Case, run

FILES_OF_A_RUN = ["config.resolved.yaml", "config.yaml", "final.json", "run.json", "summary.json", "trace.csv"]
SAME_FILES = [name for name in FILES_OF_A_RUN if name != "run.json"]


def targets():
    for line in run("--version").stdout.splitlines():
        if line.startswith("targets here:"):
            return line.split(":")[1].split()
    raise AssertionError("--version does not list the targets")


def contents(folder):
    return {name: (folder / name).read_bytes() for name in SAME_FILES}


class ShippedConfigs(Case):
    def test_every_shipped_config_runs_and_gives_the_same_bytes_twice_and_on_every_instruction_set(self):
        self.assertGreaterEqual(len(CONFIGS), 9)
        for config in CONFIGS:
            with self.subTest(config.name):
                self.ok("run", config, "--quiet", "--out", self.folder / config.stem / "first")
                first = contents(self.folder / config.stem / "first")
                for target in ["", *targets()]:
                    out = self.folder / config.stem / ("again" + target)
                    done = self.ok("run", config, "--quiet", "--out", out, *(["--target", target] if target else []))
                    self.assertEqual((done.stdout, done.stderr), ("", ""))
                    self.assertEqual(contents(out), first, target)
                    if target:
                        self.assertEqual(json.loads((out / "run.json").read_text())["target"], target)

    def test_any_number_of_threads_gives_the_same_bytes_and_run_json_says_how_steps_were_computed(self):
        config = self.folder / "large.yaml"
        config.write_text("data: {kind: gaussian, samples: 300, features: 500, outputs: 70}\nsteps: 12\nscaler: {policy: jax-step, growth_interval: 5}\n")
        self.ok("run", config, "--quiet", "-j", 1, "--out", self.folder / "one")
        for threads in (2, 5):
            out = self.folder / f"threads{threads}"
            self.ok("run", config, "--quiet", "-j", threads, "--out", out)
            self.assertEqual(contents(out), contents(self.folder / "one"))
            told = json.loads((out / "run.json").read_text())
            self.assertEqual(told["threads"], threads)
            self.assertIn(told["path"], ("packed, bf16 dot", "packed, fma"))
        self.assertEqual(json.loads((self.folder / "one" / "run.json").read_text())["threads"], 1)
        self.fails(2, "run", config, "-j", 0)

    def peak_of(self, samples, features, outputs):
        config = self.folder / "memory.yaml"
        config.write_text(f"data: {{kind: gaussian, samples: {samples}, features: {features}, outputs: {outputs}}}\nsteps: 3\n")
        process = subprocess.Popen([PROGRAM, "run", config, "--quiet", "-j", "2", "--out", self.folder / f"memory-{samples}-{outputs}"])
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss * 1024

    def test_a_run_needs_at_most_three_times_the_memory_of_its_data(self):
        program = self.peak_of(2, 2, 1)  # what any run takes
        for samples, features, outputs in ((4096, 2048, 1), (16384, 256, 256), (16384, 32, 512)):
            with self.subTest(samples=samples, outputs=outputs):
                data = 4 * samples * (features + outputs)
                self.assertLessEqual(self.peak_of(samples, features, outputs), program + 3 * data)

    def test_every_shipped_config_begins_with_a_comment_that_says_what_to_look_for(self):
        for config in CONFIGS:
            head = []
            for line in config.read_text().splitlines():
                if not line.startswith("#"):
                    break
                head.append(line)
            self.assertIn("Look for", "\n".join(head), config.name)

    def story(self, name, *args):
        done = self.ok("run", SOURCE / "configs" / (name + ".yaml"), "--json", "--out", self.folder / name, *args)
        report = json.loads(done.stdout)
        with open(self.folder / name / "trace.csv") as f:
            return report, list(csv.DictReader(f))

    def test_quickstart_has_growth_overflow_backoff_and_recovery_in_it(self):
        report, rows = self.story("quickstart")
        summary = report["summary"]
        self.assertGreater(summary["growths"], 10)
        self.assertGreater(summary["backoffs"], 10)
        self.assertGreater(summary["skipped"], 10)
        self.assertLess(summary["last_loss"], summary["first_loss"] / 100)
        # Back at the ceiling after each burst of spikes.
        scales = [float(row["loss_scale"]) for row in rows]
        for burst in (900, 1500):
            self.assertLess(min(scales[burst:burst + 10]), scales[burst - 1] / 30)
            self.assertGreaterEqual(max(scales[burst + 10:burst + 450]), scales[burst - 1])

    def test_sawtooth_bf16_goes_to_the_ceiling_and_back_again_and_again(self):
        report, rows = self.story("sawtooth-bf16")
        self.assertGreater(report["summary"]["backoffs"], 30)
        self.assertLess(report["summary"]["scale_max"], float("3.4e38"))
        late = [float(row["loss_scale"]) for row in rows[300:]]
        self.assertGreaterEqual(min(late), max(late) / 4)

    def test_stuck_at_inf_never_recovers(self):
        report, rows = self.story("stuck-at-inf")
        since = report["summary"]["inf_since"]
        self.assertGreater(since, 0)
        self.assertTrue(all(row["loss_scale"] == "inf" and row["grads_finite"] == "0" for row in rows[since:]))
        self.assertIn("inf at step %d" % since, report["story"])

    def test_floor_collapse_ends_at_the_floor_of_1_with_every_step_skipped(self):
        report, rows = self.story("floor-collapse")
        self.assertEqual(report["summary"]["updates"], 0)
        self.assertEqual(rows[-1]["loss_scale"], "1")
        self.assertEqual({row["event"] for row in rows[20:]}, {"floor"})

    def test_spike_recovery_skips_each_spike_and_grows_again(self):
        report, rows = self.story("spike-recovery")
        skipped = [int(row["step"]) for row in rows if row["grads_finite"] == "0"]
        self.assertEqual(skipped, [250, 500, 750, 1000])
        self.assertGreater(report["summary"]["scale_last"], report["summary"]["scale_first"])

    def test_too_small_scale_learns_nothing_until_the_scale_has_grown(self):
        report, rows = self.story("too-small-scale")
        self.assertEqual(rows[0]["underflow"], "1")
        self.assertEqual(rows[100]["loss"], rows[0]["loss"])
        self.assertEqual(rows[-1]["underflow"], "0")
        self.assertLess(float(rows[-1]["loss"]), float(rows[0]["loss"]) / 10)

    def test_a_policy_that_raises_ends_the_run_as_a_result(self):
        report, rows = self.story("policy-floor-raise")
        self.assertEqual(report["summary"]["stopped"], "raise")
        self.assertEqual([row["event"] for row in rows[-2:]], ["backoff", "raise"])
        self.assertEqual(report["summary"]["raised_at"], int(rows[-1]["step"]))
        self.assertIn("raised at step", report["story"])

    def test_a_run_takes_a_scale_down_to_the_last_subnormal_number_and_then_to_0(self):
        _, rows = self.story("policy-floor-zero")
        scales = [float(row["loss_scale"]) for row in rows]
        # Every power of two down to 2^-149, untouched by the kernels' flushing.
        start = scales.index(2.0 ** -126)
        self.assertEqual(scales[start:start + 24], [2.0 ** -(126 + i) for i in range(24)])
        self.assertEqual(set(scales[start + 24:]), {0.0})

    def test_a_scale_held_in_double_grows_beyond_float32_in_a_run(self):
        config = self.write("beyond.yaml", TINY.format(steps=12).replace("jax-step, init_scale: 2^120, growth_interval: 5",
                                                                       "apex-fp16utils, init_scale: 2^126, growth_interval: 1"))
        self.ok("run", config, "--out", self.folder / "beyond")
        with open(self.folder / "beyond" / "trace.csv") as f:
            rows = list(csv.DictReader(f))
        scales = [float(row["loss_scale"]) for row in rows]
        self.assertIn(2.0 ** 128, scales)
        # In the step it is inf, so that it overflows, and the next scale is half of it.
        for row, after in zip(rows, scales[1:]):
            if float(row["loss_scale"]) >= 2.0 ** 128:
                self.assertEqual((row["grads_finite"], after), ("0", float(row["loss_scale"]) / 2))

    def test_the_seed_examples_give_the_printed_numbers(self):
        expected = {1: (0.005159, 1024.0, 1, "1"), 2: (0.021242, 1024.0, 0, "1"), 3: (1377.068848, 1.5e38, 0, "0")}
        for i, (loss, scale, good, finite) in expected.items():
            _, rows = self.story("seed-example-%d" % i)
            final = json.loads((self.folder / ("seed-example-%d" % i) / "final.json").read_text())
            self.assertAlmostEqual(float(rows[0]["loss"]) / loss, 1, delta=1e-4)
            self.assertAlmostEqual(final["loss_scale"] / scale, 1, delta=1e-7)
            self.assertEqual(final["good_steps"], good)
            self.assertEqual(rows[0]["grads_finite"], finite)


class Folders(Case):
    def setUp(self):
        super().setUp()
        self.config = self.write("tiny.yaml", TINY.format(steps=300))
        self.out = self.folder / "out"

    def test_a_folder_holds_the_documented_files_and_the_default_one_is_named_after_the_run(self):
        self.ok("run", "tiny.yaml", cwd=self.folder)
        runs = list((self.folder / "runs").iterdir())
        self.assertEqual(len(runs), 1)
        self.assertRegex(runs[0].name, r"^tiny-[0-9a-f]{8}$")
        self.assertEqual(sorted(p.name for p in runs[0].iterdir()), FILES_OF_A_RUN)
        self.assertEqual((runs[0] / "config.yaml").read_text(), self.config.read_text())

    def test_the_resolved_config_runs_to_the_same_bytes(self):
        self.ok("run", self.config, "--out", self.out, "--set", "optimizer.lr=0.01")
        self.ok("run", self.out / "config.resolved.yaml", "--out", self.folder / "again")
        self.assertEqual((self.out / "trace.csv").read_bytes(), (self.folder / "again" / "trace.csv").read_bytes())

    def test_a_finished_run_is_not_repeated_and_says_so(self):
        self.ok("run", self.config, "--out", self.out)
        stamp = (self.out / "trace.csv").stat().st_mtime_ns
        done = self.ok("run", self.config, "--out", self.out)
        self.assertIn("was done before", done.stdout)
        self.assertEqual((self.out / "trace.csv").stat().st_mtime_ns, stamp)

    def test_another_config_is_refused_in_the_same_folder_unless_forced(self):
        self.ok("run", self.config, "--out", self.out)
        before = contents(self.out)
        message = self.fails(2, "run", self.config, "--out", self.out, "--set", "seed=1")
        self.assertIn("--force", message)
        self.assertEqual(contents(self.out), before)
        self.ok("run", self.config, "--out", self.out, "--set", "seed=1", "--force")
        self.assertNotEqual((self.out / "trace.csv").read_bytes(), before["trace.csv"])

    def test_the_name_does_not_count_as_another_config(self):
        self.ok("run", self.config, "--out", self.out)
        self.assertIn("was done", self.ok("run", self.config, "--out", self.out, "--set", "name=other").stdout)

    def test_a_folder_with_other_files_is_refused(self):
        self.out.mkdir()
        (self.out / "precious.txt").write_text("mine")
        self.assertIn("other files", self.fails(2, "run", self.config, "--out", self.out))
        self.assertEqual([p.name for p in self.out.iterdir()], ["precious.txt"])

    def test_json_is_one_object_and_quiet_prints_nothing(self):
        report = json.loads(self.ok("run", self.config, "--out", self.out, "--json").stdout)
        self.assertEqual(report["summary"]["steps"], 300)
        self.assertEqual(report["summary"]["updates"] + report["summary"]["skipped"], 300)
        done = self.ok("run", self.config, "--out", self.folder / "q", "--quiet")
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_zero_steps_are_a_run(self):
        done = self.ok("run", self.config, "--out", self.out, "--set", "steps=0")
        self.assertIn("No steps", done.stdout)
        self.assertEqual((self.out / "trace.csv").read_text().count("\n"), 1)

    def test_stop_when_stuck_ends_early_and_says_so(self):
        report = json.loads(self.ok("run", SOURCE / "configs" / "stuck-at-inf.yaml", "--out", self.out, "--json", "--set",
                                    "stop_when=stuck", "--set", "patience=20").stdout)
        summary = report["summary"]
        self.assertEqual(summary["stopped"], "stuck")
        self.assertEqual(summary["steps"], summary["inf_since"] + 20)
        self.assertIn("ended early", report["story"])

    def test_stop_when_diverged_ends_early_and_says_so(self):
        report = json.loads(self.ok("run", self.config, "--out", self.out, "--json", "--set", "optimizer.lr=50", "--set",
                                    "scaler.init_scale=1", "--set", "stop_when=diverged", "--set", "patience=3").stdout)
        self.assertEqual(report["summary"]["stopped"], "diverged")
        self.assertIn("diverged", report["story"])

    def test_mini_batches_count_epochs_and_keep_the_short_last_one(self):
        columns = "trace.columns=[step, epoch, loss]"
        self.ok("run", self.config, "--out", self.out, "--set", "batch={kind: permuted, size: 3}", "--set", columns)
        epochs = [row.split(",")[1] for row in (self.out / "trace.csv").read_text().splitlines()[1:8]]
        self.assertEqual(epochs, ["0", "0", "0", "1", "1", "1", "2"])
        self.ok("run", self.config, "--out", self.folder / "d", "--set", "batch={kind: permuted, size: 3, drop_last: true}", "--set", columns)
        epochs = [row.split(",")[1] for row in (self.folder / "d" / "trace.csv").read_text().splitlines()[1:8]]
        self.assertEqual(epochs, ["0", "0", "1", "1", "2", "2", "3"])

    def test_a_thinned_trace_keeps_every_nth_row_and_every_event(self):
        self.ok("run", self.config, "--out", self.out)
        full = (self.out / "trace.csv").read_text().splitlines()
        self.ok("run", self.config, "--out", self.folder / "thin", "--set", "trace.every=50")
        thin = (self.folder / "thin" / "trace.csv").read_text().splitlines()
        self.assertEqual(thin[0], full[0])
        position = {row: i for i, row in enumerate(full)}
        indices = [position[row] for row in thin]
        self.assertEqual(indices, sorted(indices))
        events = [row.split(",")[5] for row in full]
        for i, row in enumerate(full[1:], 1):
            edge = events[i] and (events[i - 1] != events[i] or i + 1 == len(full) or events[i + 1] != events[i])
            self.assertEqual(row in set(thin), bool(edge) or (i - 1) % 50 == 0, row)
        self.ok("run", self.config, "--out", self.folder / "none", "--set", "trace.every=0")
        self.assertEqual((self.folder / "none" / "trace.csv").read_text().splitlines(), full[:1])

    def test_params_of_the_data_and_a_model_init_are_an_error_together(self):
        self.write("data.json", json.dumps({"params": {"w": [[1.0]], "b": [0.0]}, "x": [[1.0]], "y": [[2.0]]}))
        config = self.write("given.yaml", "data: {kind: given, file: data.json}\nmodel: {init: zeros}\nsteps: 1\n")
        self.assertIn("model.init", self.fails(2, "run", config, "--out", self.out))
        self.ok("run", config, "--out", self.out, "--set", "model={init: auto}", "--force")

    def test_a_missing_data_file_is_an_error_that_names_it(self):
        config = self.write("given.yaml", "data: {kind: given, file: nowhere.json}\n")
        self.assertIn("nowhere.json", self.fails(3, "run", config, "--out", self.out))

    def test_a_damaged_state_is_an_error_and_not_a_crash(self):
        for i, text in enumerate(["", "{", "[]", "{}", '{"hash": 3}', '{"hash": "x"}', "\0" * 100]):
            out = self.folder / ("damaged%d" % i)
            out.mkdir()
            (out / "final.json").write_text(text)
            done = run("run", self.config, "--out", out)
            self.assertIn(done.returncode, (2, 3), text)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_an_output_folder_that_cannot_be_made_is_an_error(self):
        self.write("file", "")
        self.fails(3, "run", self.config, "--out", self.folder / "file" / "out")


class Interruptions(Case):
    def setUp(self):
        super().setUp()
        self.config = self.write("long.yaml", TINY.format(steps=400_000) + "trace: {every: 1, columns: [step, loss, loss_scale, event, grad_norm]}\n")
        self.ok("run", self.config, "--quiet", "--out", self.folder / "whole")
        self.whole = contents(self.folder / "whole")

    def start(self, out):
        return subprocess.Popen([PROGRAM, "run", self.config, "--out", out, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_killed_at_any_moment_the_trace_is_a_valid_prefix_and_the_run_goes_on_to_the_same_bytes(self):
        rng = random.Random(5)
        out = self.folder / "killed"
        kills = 0
        while kills < 20:
            process = self.start(out)
            time.sleep(rng.uniform(0, 0.1))
            process.kill()
            process.communicate()
            kills += process.returncode == -signal.SIGKILL
            trace = out / "trace.csv"
            if trace.exists():
                text = trace.read_bytes()
                self.assertTrue(self.whole["trace.csv"].startswith(text))
                # The system copies page by page: only the one line that lies on a page's end can be cut, and only there.
                self.assertTrue(text.endswith(b"\n") or len(text) % 4096 == 0)
            if (out / "summary.json").exists():
                self.assertEqual(contents(out), self.whole)
                shutil.rmtree(out)
        self.ok("run", self.config, "--quiet", "--out", out)
        self.assertEqual(contents(out), self.whole)

    def test_sigint_and_sigterm_save_the_state_and_the_run_goes_on_to_the_same_bytes(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            out = self.folder / str(code)
            process = self.start(out)
            while not (out / "trace.csv").exists() or (out / "trace.csv").stat().st_size < 1000:
                time.sleep(0.001)
            process.send_signal(number)
            _, errors = process.communicate(timeout=10)
            self.assertEqual(process.returncode, code)
            self.assertIn("run the same command again", errors)
            state = json.loads((out / "final.json").read_text())
            self.assertGreater(state["next_step"], 0)
            self.assertFalse((out / "summary.json").exists())
            self.ok("run", self.config, "--quiet", "--out", out)
            self.assertEqual(contents(out), self.whole)

    def test_two_processes_in_one_folder_do_not_mix(self):
        out = self.folder / "two"
        first = self.start(out)
        while not (out / "trace.csv").exists():
            time.sleep(0.001)
        second = self.start(out)
        _, errors = second.communicate(timeout=60)
        if second.returncode != 0:  # unless the first had ended by then
            self.assertEqual(second.returncode, 3)
            self.assertIn("another process runs in this folder", errors)
        first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0)
        self.assertEqual(contents(out), self.whole)

    def check_full(self, out, done):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        text = (out / "trace.csv").read_bytes()
        self.assertTrue(self.whole["trace.csv"].startswith(text))
        self.assertTrue(text.endswith(b"\n"))
        self.assertFalse((out / "summary.json").exists())

    def test_a_limit_on_the_size_of_files_ends_in_an_error_with_what_was_written_whole(self):
        out = self.folder / "limited"
        done = run("run", self.config, "--out", out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_001, 100_001)))
        self.check_full(out, done)
        self.assertIn("File too large", done.stderr)

    def test_a_full_disk_ends_in_an_error_with_what_was_written_whole(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], stderr=subprocess.PIPE)
        if mounted.returncode != 0:
            self.skipTest("a small file system can't be mounted here")
        try:
            done = run("run", self.config, "--out", disk / "out")
            self.check_full(disk / "out", done)
            self.assertIn("No space left", done.stderr)
        finally:
            subprocess.run(["umount", disk], check=True)


class WritingThread(Case):
    """A run that has gone on for a moment writes its rows in a thread of its own, where there is a processor for it."""

    def start(self, *args, cpus=None):
        config = self.write("endless.yaml", TINY.format(steps=9_000_000_000_000))
        self.out = self.folder / ("out%d" % len(list(self.folder.iterdir())))
        process = subprocess.Popen([PROGRAM, "run", config, "--out", self.out, "--quiet", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=cpus and (lambda: os.sched_setaffinity(0, cpus)))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.002)

    def threads(self, process):
        return len(os.listdir("/proc/%d/task" % process.pid))

    def rows(self, million):
        trace = self.out / "trace.csv"
        return trace.exists() and trace.stat().st_size > million * 1_000_000

    def stop(self, process, number=signal.SIGINT):
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 128 + number, errors)
        state = json.loads((self.out / "final.json").read_text())
        trace = (self.out / "trace.csv").read_bytes()
        self.assertEqual(state["trace"]["bytes"], len(trace))
        self.assertEqual(state["next_step"] + 1, trace.count(b"\n"))

    def test_a_long_run_writes_in_a_second_thread_and_a_signal_finds_all_its_rows_on_the_disk(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("--jobs", "2")
            self.wait_for(lambda: self.threads(process) == 2)
            seen = (self.out / "trace.csv").stat().st_size
            self.wait_for(lambda: (self.out / "trace.csv").stat().st_size > seen)  # whoever follows the file sees it grow
            self.stop(process, number)

    def test_on_one_processor_or_with_one_job_there_is_one_thread(self):
        for args in ({"cpus": {min(os.sched_getaffinity(0))}}, {}):
            process = self.start(*([] if args else ["--jobs", "1"]), **args)
            threads = set()
            self.wait_for(lambda: threads.add(self.threads(process)) or self.rows(30))
            self.assertEqual(threads, {1})
            self.stop(process)

    def test_a_write_that_fails_in_the_thread_ends_the_run_with_the_error(self):
        process = self.start("--jobs", "2")
        self.wait_for(lambda: self.threads(process) == 2)
        # From here on the file may not grow by much.
        limit = (self.out / "trace.csv").stat().st_size + 1_000_000
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3)
        self.assertRegex(errors, r"^scaletrace: error: .*/trace.csv: cannot write: File too large\n$")
        trace = (self.out / "trace.csv").read_bytes()
        self.assertTrue(trace.endswith(b"\n"))
        self.assertFalse((self.out / "summary.json").exists())
        self.assertLessEqual(json.loads((self.out / "final.json").read_text())["trace"]["bytes"], len(trace))

    def test_a_reader_that_goes_away_in_the_middle_ends_the_run_with_the_error(self):
        config = self.write("endless.yaml", TINY.format(steps=9_000_000_000_000))
        out = self.folder / "piped"
        out.mkdir()
        os.mkfifo(out / "trace.csv")
        process = subprocess.Popen([PROGRAM, "run", config, "--out", out, "--force", "--quiet", "--jobs", "2"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        with open(out / "trace.csv", "rb") as reader:
            self.assertTrue(reader.readline().startswith(b"step,"))
            for i in range(500_000):
                self.assertTrue(reader.readline().startswith(b"%d," % i))
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3)
        self.assertRegex(errors, r"trace.csv: cannot write: Broken pipe\n$")


class Terminal(Case):
    def on_a_terminal(self, *args, until=None):
        """Exit code and what a terminal on stderr gets; interrupted as soon as that matches `until`, where there is one."""
        try:
            controller, terminal = pty.openpty()
        except OSError:
            self.skipTest("there are no pseudo-terminals here")
        process = subprocess.Popen([PROGRAM, *map(str, args)], stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        shown = b""
        while True:
            try:
                part = os.read(controller, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
            if until and re.search(until, shown.decode(errors="replace")):
                until = None
                process.send_signal(signal.SIGINT)
        os.close(controller)
        return process.wait(timeout=60), shown.decode()

    def test_progress_with_rate_and_time_left_is_drawn_on_a_terminal_and_nothing_in_a_pipe(self):
        # Far longer than anybody waits: on a fast machine a run that ends would be done before there is progress to draw.
        endless = self.write("endless.yaml", TINY.format(steps=9_000_000_000_000) + "trace: {every: 0}\n")
        code, shown = self.on_a_terminal("run", endless, "--out", self.folder / "a", until=r"\d %.* steps, .* steps/s, .* left, scale ")
        self.assertEqual(code, 130)
        self.assertIn("\r\x1b[K", shown)
        short = self.write("short.yaml", TINY.format(steps=3_000_000) + "trace: {every: 0}\n")
        self.assertEqual(self.on_a_terminal("run", short, "--out", self.folder / "b", "--quiet"), (0, ""))
        self.assertEqual(self.ok("run", short, "--out", self.folder / "c").stderr, "")


if __name__ == "__main__":
    unittest.main()
