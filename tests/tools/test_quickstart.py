"""tools/quickstart and tools/test as shell programs: arguments, and what they do and say where packages, rights or a
build step are missing. apt, cmake and the like are stand-ins that note how they were called; the whole set-up on a
bare system is tried outside of this test.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# A program that notes its call, then does what the test asks for.
STAND_IN = """#!/bin/bash
echo "$(basename "$0") $*" >>"$CALLS"
{body}
"""

PROGRAM = """
mkdir -p runs/quickstart
echo trace >runs/quickstart/trace.csv
echo "quickstart: the scale grew and fell"
"""


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "a project")  # a space: paths are quoted, or this fails
        self.bin = os.path.join(folder.name, "bin")
        self.calls_file = os.path.join(folder.name, "calls")
        os.makedirs(os.path.join(self.folder, "tools"))
        os.makedirs(os.path.join(self.folder, "elsewhere"))
        os.mkdir(self.bin)
        for name in ("quickstart", "test", "lib.sh"):
            shutil.copy(os.path.join(ROOT, "tools", name), os.path.join(self.folder, "tools", name))
        self.stand_in("dpkg-query", "echo -n installed")
        for name in ("apt-get", "ctest"):
            self.stand_in(name)
        self.stand_in("sudo", "exit 1")
        self.stand_in("id", "echo 0")
        self.stand_in("scaletrace", PROGRAM)
        self.stand_in("cmake", f"""
if [[ $1 == --build ]]; then cp "{self.bin}/scaletrace" build; else touch build/CMakeCache.txt; fi""")
        self.stand_in("plot.py", where=os.path.join(self.folder, "tools"))

    def stand_in(self, name, body="exit 0", where=None):
        path = os.path.join(where or self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(STAND_IN.format(body=body))
        os.chmod(path, 0o755)

    def script(self, name, *arguments, cwd="elsewhere"):
        open(self.calls_file, "w", encoding="utf-8").close()
        done = subprocess.run(
            [os.path.join(self.folder, "tools", name), *arguments], cwd=os.path.join(self.folder, cwd),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            env={"PATH": self.bin + ":/usr/bin:/bin", "CALLS": self.calls_file, "TERM": "dumb"})  # fmt: skip
        with open(self.calls_file, encoding="utf-8") as file:
            calls = file.read().splitlines()
        self.calls = [call for call in calls if not call.startswith(("dpkg-query", "id "))]
        return done

    def called(self, start):
        return [call for call in self.calls if call.startswith(start)]

    def test_help_explains_and_does_nothing(self):
        for name in ("quickstart", "test"):
            for flag in ("--help", "-h"):
                done = self.script(name, flag)
                self.assertEqual((done.returncode, done.stderr, self.calls), (0, "", []))
                self.assertIn(f"usage: tools/{name}", done.stdout)
                self.assertIn("--no-install", done.stdout)

    def test_unknown_and_malformed_arguments_exit_with_2_and_do_nothing(self):
        for name in ("quickstart", "test"):
            for arguments in (("--colour",), ("now",), ("--jobs",), ("--jobs", "0"), ("--jobs", "two"), ("",)):
                with self.subTest((name, arguments)):
                    done = self.script(name, *arguments)
                    self.assertEqual((done.returncode, done.stdout, self.calls), (2, "", []))
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                    self.assertTrue(done.stderr.startswith(f"tools/{name}: "), done.stderr)
        self.assertEqual(self.script("quickstart", "--full").returncode, 2)

    def test_with_every_package_there_apt_is_not_asked(self):
        done = self.script("quickstart")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.called("apt-get") + self.called("sudo"), [])
        self.assertIn("all there", done.stdout)

    def test_only_missing_packages_are_installed(self):
        self.stand_in("dpkg-query", '[[ ${!#} == ninja-build ]] && exit 1; echo -n installed')
        done = self.script("quickstart")
        self.assertEqual(done.returncode, 0, done.stderr)
        update, install = self.called("apt-get")
        self.assertTrue(update.endswith(" update"))
        self.assertTrue(install.endswith(" install -y --no-install-recommends ninja-build"), install)

    def test_a_removed_package_whose_settings_remain_counts_as_missing(self):
        self.stand_in("dpkg-query", "[[ ${!#} == cmake ]] && echo -n config-files || echo -n installed")
        self.script("quickstart")
        self.assertTrue(self.called("apt-get")[1].endswith(" cmake"))

    def test_without_root_it_goes_through_sudo(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo")
        done = self.script("quickstart")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.called("apt-get"), [])
        self.assertTrue(any("apt-get" in call and "install -y" in call for call in self.called("sudo")))

    def test_with_neither_root_nor_sudo_it_names_the_line_to_run(self):
        self.stand_in("dpkg-query", "[[ ${!#} == libhwy-dev || ${!#} == cmake ]] && exit 1; echo -n installed")
        self.stand_in("id", "echo 1000")
        done = self.script("quickstart")
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs root", done.stderr)
        self.assertIn("apt-get install --no-install-recommends cmake libhwy-dev\n", done.stderr)
        self.assertEqual(self.called("cmake"), [])

    def test_no_install_leaves_packages_alone(self):
        self.stand_in("dpkg-query", "exit 1")
        done = self.script("quickstart", "--no-install")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.called("apt-get"), [])

    def test_it_builds_runs_draws_and_says_what_to_do_next(self):
        done = self.script("quickstart", "--jobs", "3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.called("cmake --build"), ["cmake --build build --parallel 3 --target scaletrace"])
        (run,) = self.called("scaletrace")
        self.assertIn("run configs/quickstart.yaml --out runs/quickstart", run)
        (plot,) = self.called("plot.py")
        self.assertEqual(plot, "plot.py runs/quickstart -o runs/quickstart/trace.png")
        self.assertIn(os.path.join(self.folder, "runs/quickstart/trace.png"), done.stdout)
        self.assertIn("\nquickstart: the scale grew and fell\n", done.stdout)
        following = done.stdout[done.stdout.index("Next:") :].splitlines()
        self.assertEqual(shlex.split(following[1]), ["cd", self.folder])
        self.assertEqual(len(following), 5)

    def test_from_the_project_itself_no_cd_is_told(self):
        self.assertNotIn("  cd ", self.script("quickstart", cwd=".").stdout)

    def test_a_second_call_works_and_keeps_the_tests_of_a_tree_that_has_them(self):
        self.script("quickstart")
        self.assertIn("-DSCALETRACE_TESTS=OFF", self.called("cmake -S")[0])
        done = self.script("quickstart")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("SCALETRACE_TESTS", self.called("cmake -S")[0])

    def test_a_step_that_fails_ends_with_the_last_lines_of_the_log_and_its_place(self):
        self.stand_in("cmake", 'seq 1000; [[ $1 != --build ]] || { echo "no such header"; exit 7; }')
        done = self.script("quickstart")
        self.assertEqual(done.returncode, 7)
        self.assertIn("    no such header\n", done.stderr)
        self.assertIn("    1000\n", done.stderr)
        self.assertNotIn("    900\n", done.stderr)
        self.assertIn(os.path.join(self.folder, "build/quickstart.log"), done.stderr)
        self.assertEqual(self.called("scaletrace"), [])

    def test_the_tests_run_after_the_build_and_their_verdict_is_passed_on(self):
        self.stand_in("ctest", 'echo "100% tests passed, 0 tests failed out of 12"')
        done = self.script("test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "100% tests passed, 0 tests failed out of 12")
        self.assertIn("--no-tests=error", self.called("ctest")[0])
        self.assertIn("-DSCALETRACE_TESTS=ON", self.called("cmake -S")[0])
        self.stand_in("ctest", "exit 8")
        self.assertEqual(self.script("test").returncode, 8)

    def full(self, differing=""):
        """tools/test --full with a program that writes the same trace from every build folder but `differing`."""
        os.makedirs(os.path.join(self.folder, "configs"), exist_ok=True)
        for name in ("one", "two"):
            open(os.path.join(self.folder, "configs", name + ".yaml"), "w", encoding="utf-8").close()
        self.stand_in("scaletrace", f"""
out=${{!#}}; mkdir -p "$out"
echo "$2" >"$out/trace.csv"; echo "{{}}" >"$out/final.json"
if [[ "{differing}" && $0 == *"{differing}"* ]]; then echo more >>"$out/trace.csv"; fi""")
        self.stand_in("cmake", f'if [[ $1 == --build ]]; then cp "{self.bin}/scaletrace" "$2"; else mkdir -p "$4"; fi')
        return self.script("test", "--full")

    def test_the_full_matrix_builds_and_tests_five_ways_and_compares_their_traces(self):
        done = self.full()
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "7 passed, 0 failed")
        self.assertEqual(len(self.called("ctest")), 5)
        self.assertEqual(len(self.called("scaletrace")), 2 * 6)
        self.assertTrue(any("--preset asan-ubsan" in call for call in self.calls))

    def test_the_full_matrix_fails_when_one_build_makes_another_trace(self):
        done = self.full(differing="clang++-Release")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "5 passed, 2 failed")

    def test_the_full_matrix_fails_when_the_tests_of_one_build_fail(self):
        self.stand_in("ctest", "[[ $2 != *g++-Debug ]] || exit 8")
        done = self.full()
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: the tests of build/full-g++-Debug", done.stdout)


if __name__ == "__main__":
    unittest.main()
