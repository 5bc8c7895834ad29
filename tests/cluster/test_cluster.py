"""A sweep under a real scheduler and a real launcher: a Slurm of one node as an array that is pre-empted, requeued and merged; mpirun -n 4; GNU parallel. Each equals the
sweep of a single process. What cannot be had here is skipped with a word: Slurm needs root, its daemons (slurm-wlm, munge) and `tests/cluster/slurm.sh`."""

import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from support import PROGRAM, SOURCE, Case  # noqa: E402

SWEEP = """\
name: cluster
steps: 300
data: {kind: drift, samples: 8, features: 4, outputs: 1, period: 77}
precision: {compute: float16}
scaler: {policy: pytorch, growth_interval: 20}
sweep:
  axes:
    scaler.init_scale: {log2range: [0, 20]}
    optimizer.lr: {random: log-uniform, low: 1.0e-3, high: 1, count: 10}
  repeat: 5
"""


def output(*command, **kwargs):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, **kwargs)


class Cluster(Case):
    def setUp(self):
        super().setUp()
        self.file = self.write("sweep.yaml", SWEEP)
        self.out = self.folder / "out"
        self.ok("sweep", self.file, "--quiet", "--out", self.folder / "whole")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "PMI"))}
        self.env["SCALETRACE"] = PROGRAM

    def check_merged(self):
        self.assertEqual((self.out / "results.csv").read_bytes(), (self.folder / "whole" / "results.csv").read_bytes())

    def shards_of(self):
        return {p.name.split(".")[0] for p in (self.out / "parts").glob("*.rows")}


class Mpi(Cluster):
    def test_mpirun_with_four_processes(self):
        if not shutil.which("mpirun"):
            self.skipTest("there is no mpirun here")
        # Open MPI refuses root and more processes than processors unless told otherwise; what other launchers make of these variables is nothing.
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="self,vader",
                        OMPI_MCA_plm_rsh_agent="false")
        done = output(SOURCE / "tools" / "cluster" / "sweep-mpi.sh", 4, self.file, self.out, env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("shard 3/4", done.stdout)
        self.assertEqual(self.shards_of(), {"1-of-4", "2-of-4", "3-of-4", "4-of-4"})
        self.check_merged()


class Parallel(Cluster):
    def test_gnu_parallel_with_five_shards(self):
        if not shutil.which("parallel") or "GNU" not in output("parallel", "--version").stdout:
            self.skipTest("there is no GNU parallel here")
        done = output(SOURCE / "tools" / "cluster" / "sweep-parallel.sh", 5, self.file, self.out, env={**self.env, "PARALLEL_OPTIONS": "--will-cite"})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(len(self.shards_of()), 5)
        self.check_merged()


class Slurm(Cluster):
    def setUp(self):
        super().setUp()
        started = output(HERE / "slurm.sh", "start", self.folder / "slurm")
        self.addCleanup(output, HERE / "slurm.sh", "stop", self.folder / "slurm")
        if started.returncode == 77:
            self.skipTest(started.stdout.strip().splitlines()[-1])
        self.assertEqual(started.returncode, 0, started.stdout)
        self.env["SLURM_CONF"] = str(self.folder / "slurm" / "slurm.conf")

    def wait_for_jobs(self):
        for _ in range(600):
            jobs = output("squeue", "--noheader", "--all", "--states=all", "--format=%i %T", env=self.env).stdout.split("\n")
            states = {line.split()[1] for line in jobs if line.strip()}
            if states and not states & {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED"}:
                return states
            time.sleep(0.2)
        self.fail("the jobs do not end: %s" % jobs)

    def logs(self):
        return "".join(p.read_text() for p in sorted(self.folder.glob("*.log")))

    def submit(self, *options):
        done = output("sbatch", *options, SOURCE / "tools" / "cluster" / "sweep.sbatch", self.file, self.out, env=self.env, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.split()[-1]

    def test_an_array_of_three_tasks(self):
        self.submit("--array=1-3", "--cpus-per-task=1", "--mem-per-cpu=50M", "--time=5")
        self.assertEqual(self.wait_for_jobs(), {"COMPLETED"}, self.logs())
        self.assertIn("shard 2/3 (Slurm: SLURM_ARRAY_TASK_ID=2 of 1-3)", self.logs())
        self.ok("sweep", "merge", self.out)
        self.check_merged()

    def test_tasks_of_srun_and_the_batch_script_around_them(self):
        script = self.write("job.sh", "#!/bin/sh\n'%s' sweep '%s' --out '%s' --shard auto\necho \"alone: $?\"\nsrun --overcommit -n 3 '%s' sweep '%s' --out '%s' --shard auto -j 1\n"
                            % (PROGRAM, self.file, self.out, PROGRAM, self.file, self.out))
        done = output("sbatch", "--ntasks=1", "--mem-per-cpu=50M", "--output=job.log", script, env=self.env, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.wait_for_jobs()
        # In the script itself no launcher has cut the sweep into shares: rank 0 of the job is not a shard.
        self.assertIn("alone: 2", self.logs())
        self.assertIn("shard 3/3 (Slurm: SLURM_PROCID=2 of 3)", self.logs())
        self.ok("sweep", "merge", self.out)
        self.check_merged()

    def test_a_task_that_is_warned_ends_with_75_and_goes_back_into_the_queue(self):
        self.file.write_text(SWEEP.replace("steps: 300", "steps: 20000"))
        self.ok("sweep", self.file, "--quiet", "--force", "--out", self.folder / "whole")
        job = self.submit("--array=1-1", "--cpus-per-task=1", "--mem-per-cpu=50M", "--time=5")
        for _ in range(200):
            if list(self.out.glob("parts/*.rows")):
                break
            time.sleep(0.05)
        warned = output("scancel", "--signal=USR1", job + "_1", env=self.env)
        self.assertEqual(warned.returncode, 0, warned.stdout)
        for _ in range(200):
            if "PENDING" in output("squeue", "--noheader", "--all", "--format=%T", env=self.env).stdout:
                break
            time.sleep(0.1)
        self.assertIn("warned by the scheduler", self.logs())
        self.assertIn("back into the queue", self.logs())
        self.assertFalse((self.out / "results.csv").exists())
        # A task that was requeued waits for two minutes, unless it is told not to.
        output("scontrol", "update", "JobId=" + job + "_1", "StartTime=now", env=self.env)
        self.assertEqual(self.wait_for_jobs(), {"COMPLETED"}, self.logs())
        self.check_merged()


if __name__ == "__main__":
    unittest.main()
