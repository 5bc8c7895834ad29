"""scaletrace plot and report: they find their script and a Python, hand the arguments on, and return the script's exit code. What is drawn: tests/tools."""

import os
import subprocess
import tempfile
import unittest

from support import PROGRAM

class PlotCommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("plot.py", "report.py"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write("import os, sys\nprint(os.environ['SCALETRACE_CALLED_AS'], sys.argv[1:])\n"
                           "if 'report' in sys.argv[0]: print(os.environ['SCALETRACE'])\nsys.exit(len(sys.argv) + 40)\n")

    def plot(self, *arguments, tools=None, command="plot"):
        environment = {**os.environ, "SCALETRACE_TOOLS": tools or self.folder}
        return subprocess.run([PROGRAM, command, *arguments], capture_output=True, text=True, env=environment, timeout=60)

    def test_arguments_and_exit_code_are_the_scripts(self):
        done = self.plot("a b", "--x", "update", "--help", "-o", "c.svg", "--title", "")
        if "python3-matplotlib" in done.stderr:
            self.skipTest("matplotlib is not installed (Debian: python3-matplotlib)")
        self.assertEqual(done.stdout, "scaletrace plot ['a b', '--x', 'update', '--help', '-o', 'c.svg', '--title', '']\n")
        self.assertEqual((done.returncode, done.stderr), (49, ""))

    def test_report_is_told_where_the_program_is(self):
        done = self.plot("a", command="report")
        if "python3-matplotlib" in done.stderr:
            self.skipTest("matplotlib is not installed (Debian: python3-matplotlib)")
        self.assertEqual(done.stdout, "scaletrace report ['a']\n%s\n" % os.path.realpath(PROGRAM))
        self.assertEqual((done.returncode, done.stderr), (42, ""))

    def test_a_folder_without_the_script_is_an_error_in_one_line(self):
        done = self.plot("a", tools=os.path.join(self.folder, "none"))
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1))
        self.assertIn("SCALETRACE_TOOLS must name a folder that has plot.py", done.stderr)

if __name__ == "__main__":
    unittest.main()
