"""What the tests of the program share: where it is, how it is run, a folder for each test."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SCALETRACE", str(SOURCE / "build" / "scaletrace"))
CONFIGS = sorted((SOURCE / "configs").glob("*.yaml"))

TINY = """\
name: tiny
steps: {steps}
data: {{kind: gaussian, samples: 8, features: 3, outputs: 2}}
scaler: {{policy: jax-step, init_scale: 2^120, growth_interval: 5}}
"""


def run(*args, **kwargs):
    """The finished process, its output as text. Hangs for no longer than `timeout` (60 s)."""
    kwargs.setdefault("timeout", 60)
    kwargs.setdefault("text", True)
    return subprocess.run([PROGRAM, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="scaletrace-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def ok(self, *args, **kwargs):
        done = run(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fails(self, code, *args, **kwargs):
        """One line on stderr that begins with the program's name, and that exit code; returns the line."""
        done = run(*args, **kwargs)
        self.assertEqual(done.returncode, code, done.stderr)
        lines = done.stderr.rstrip("\n").split("\n")
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("scaletrace: error: "), lines[0])
        return lines[0][len("scaletrace: error: "):]
