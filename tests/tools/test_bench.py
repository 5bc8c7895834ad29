"""tools/bench as far as it goes without a build: help, and what is wrong with a command line."""

import pathlib
import subprocess
import sys
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "tools" / "bench"


def bench(*args):
    return subprocess.run([sys.executable, "-B", BENCH, *args], capture_output=True, text=True, timeout=60)


class BenchTest(unittest.TestCase):
    def test_help_says_what_it_does_and_every_option(self):
        done = bench("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--quick", "--no-jax", "--rows", "--python", "--rounds", "--json"):
            self.assertIn(option, done.stdout)

    def test_a_wrong_option_is_one_line_and_exit_2(self):
        for args, word in ((["--fast"], "--fast"), (["--rounds"], "--rounds"), (["--rounds", "no"], "--rounds")):
            done = bench(*args)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
