"""scaletrace step: JSON in, JSON out."""

import json
import struct
import time
import unittest

from support import SOURCE, Case, run

EXAMPLE = {"params": {"w": [[0.5], [-1.25]], "b": [0.1]}, "x": [[1, 2], [0.5, -1]], "y": [[-1.9], [1.5]], "loss_scale": 1024,
           "good_steps": 0, "lr": 0.1, "growth_interval": 2}


def bits(value):
    """The f32 of a number or of the strings for non-finite ones; all NaNs are one."""
    value = float(value)
    return "nan" if value != value else struct.pack("<f", value) if abs(value) <= 3.4028235677973366e38 else str(value)


def same(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a, b))
    return bits(a) == bits(b)


class Step(Case):
    def test_every_golden_step_comes_out_equal(self):
        for folder in sorted((SOURCE / "tests" / "golden" / "step").iterdir()):
            name, profile = folder.name.rsplit("-", 1)
            golden = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
            text = "\n".join(json.dumps(case["input"]) for case in golden) + "\n"
            answers = self.ok("step", "--format", name, "--profile", profile, input=text).stdout.splitlines()
            self.assertEqual(len(answers), len(golden))
            for i, (answer, case) in enumerate(zip(map(json.loads, answers), golden)):
                expected = case["output"]
                self.assertEqual(sorted(answer), sorted(expected))
                self.assertTrue(same(answer["params"]["w"], expected["params"]["w"]), (folder.name, i))
                self.assertTrue(same(answer["params"]["b"], expected["params"]["b"]), (folder.name, i))
                self.assertTrue(same(answer["loss_scale"], expected["loss_scale"]), (folder.name, i))
                self.assertEqual(answer["good_steps"], expected["good_steps"])
                self.assertEqual(answer["grads_finite"], expected["grads_finite"])

    def test_one_object_may_span_lines_and_come_from_a_file(self):
        path = self.write("one.json", json.dumps(EXAMPLE, indent=2))
        answer = json.loads(self.ok("step", path).stdout)
        self.assertEqual(answer["good_steps"], 1)
        self.assertAlmostEqual(answer["loss"], 0.005159, places=6)
        self.assertEqual(self.ok("step", path).stdout, self.ok("step", "-", input=json.dumps(EXAMPLE)).stdout)

    def test_a_bad_line_gets_an_error_with_its_number_and_the_answers_before_it_stay(self):
        good = json.dumps(EXAMPLE)
        for bad in ["{", "[]", "nonsense", '{"params": 1}', good.replace("1024", "0"), good.replace("1024", '"nan"'), good.replace("[-1.9]", "[1, 2]"),
                    good.replace("lr", "rl"), good.replace('"good_steps": 0', '"good_steps": 2'), good.replace('"growth_interval": 2', '"growth_interval": 0'),
                    good.replace("1024", "1e39"), good.replace("1024", "01"), good[:-1] + ', "lr": 0.1}', "\x00"]:
            with self.subTest(bad):
                done = run("step", input=good + "\n\n" + good + "\n" + bad + "\n" + good + "\n")
                self.assertEqual(done.returncode, 3)
                self.assertEqual(done.stdout.count("\n"), 2)
                self.assertRegex(done.stderr, r"^scaletrace: error: standard input:4: .*\n$")

    def test_nothing_is_an_error(self):
        self.assertIn("found nothing", self.fails(3, "step", input="\n \n"))

    def test_junk_of_100_mb_and_deep_nesting_are_errors_within_a_second_or_two(self):
        for junk in [b"x" * 100_000_000, b"[" * 100_000_000, b'{"a":' * 10_000, b"{" * 100_000_000, b"\n" * 50_000_000 + b"1"]:
            start = time.monotonic()
            done = run("step", input=junk, text=False)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(done.stderr.count(b"\n"), 1)
            self.assertLess(time.monotonic() - start, 10)  # two seconds on a machine that does nothing else

    def test_a_directory_and_a_missing_file_are_errors(self):
        self.fails(3, "step", self.folder)
        self.fails(3, "step", self.folder / "nowhere")

    def test_an_unknown_format_or_profile_is_a_usage_error(self):
        self.fails(2, "step", "--format", "float7", input="")
        self.fails(2, "step", "--profile", "sloppy", input="")


if __name__ == "__main__":
    unittest.main()
