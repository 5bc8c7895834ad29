"""The C++ library as an outside project sees it: installed, found by CMake, linked, and telling a late growth."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parent / "project"
CASE = {
    "config.yaml": "scaler: {policy: pytorch, init_scale: 1024, growth_interval: 5}\n",
    "events.txt": "13F 1O 19F 1O 19F 1O 6F\n",
    "expected.csv": "step,loss_scale,grads_finite\n0,1,1\n",
}


class Outside(unittest.TestCase):
    def test_a_project_builds_against_the_install_and_holds_its_own_scaler_to_a_public_one(self):
        build = os.environ.get("SCALETRACE_BUILD")
        if not build:
            self.skipTest("SCALETRACE_BUILD names no build folder: ctest sets it")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="scaletrace-outside-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)

        def call(*command):
            done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

        call("cmake", "--install", build, "--prefix", folder / "prefix", "--component", "testing")
        header = folder / "prefix" / "include" / "scaletrace" / "testing.h"
        self.assertNotIn('#include "', header.read_text())
        # The generator of the build itself: another one's program may not be installed.
        cache = (pathlib.Path(build) / "CMakeCache.txt").read_text()
        generator = re.search(r"^CMAKE_GENERATOR:INTERNAL=(.*)$", cache, re.MULTILINE).group(1)
        call("cmake", "-G", generator, "-S", PROJECT, "-B", folder / "build", "-DCMAKE_PREFIX_PATH=%s" % (folder / "prefix"),
             "-DCMAKE_CXX_FLAGS=" + os.environ.get("SCALETRACE_CXX_FLAGS", ""), "-DCMAKE_CXX_COMPILER=" + os.environ.get("SCALETRACE_CXX", "c++"))
        call("cmake", "--build", folder / "build")
        (folder / "case").mkdir()
        for name, text in CASE.items():
            (folder / "case" / name).write_text(text)
        out = call(folder / "build" / "outside", folder / "case", folder)
        for text in ["simulated equal\n", "late first difference: step 5, column loss_scale: 2048 in expected, 1024 in got", "comes 1 step late in got, at step 6",
                     "written equal\n", "again equal\n", "case equal and equal and equal\n", "none.csv: cannot open: No such file"]:
            self.assertIn(text, out)
        self.assertTrue((folder / "mine.csv").read_text().startswith("step,loss_scale,grads_finite\n0,1024,1\n"))


if __name__ == "__main__":
    unittest.main()
