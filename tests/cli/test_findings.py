"""The shipped configs on precision show what their comments and docs/precision.md say."""

import csv
import json
import unittest

from support import SOURCE, Case


class Findings(Case):
    def finding(self, name, *args):
        """Summary and rows of a shipped config."""
        out = self.folder / (name + str(len(args)))
        done = self.ok("run", SOURCE / "configs" / (name + ".yaml"), "--json", "--out", out, *args)
        with open(out / "trace.csv") as f:
            return json.loads(done.stdout)["summary"], list(csv.DictReader(f))

    def test_float16_without_a_scale_stalls_where_a_scale_or_bfloat16_learns(self):
        none, rows = self.finding("fp16-no-scaling")
        scaled, scaled_rows = self.finding("fp16-static-scale")
        bfloat16, bfloat16_rows = self.finding("bf16-needs-no-scaling")
        self.assertEqual((none["skipped"], scaled["skipped"], bfloat16["skipped"]), (0, 0, 0))
        self.assertGreater(none["last_loss"], 10 * scaled["last_loss"])
        self.assertLess(abs(bfloat16["last_loss"] / scaled["last_loss"] - 1), 0.05)
        self.assertEqual(float(rows[-1]["output_gradient_underflow"]), 1)
        self.assertLess(float(scaled_rows[-1]["output_gradient_underflow"]), 0.01)
        self.assertEqual({row["output_gradient_underflow"] for row in bfloat16_rows}, {"0"})
        # Once all gradients are 0 nothing moves.
        self.assertEqual(rows[-1]["loss"], rows[-2]["loss"])

    def test_a_scale_that_is_too_large_skips_for_ever_and_a_dynamic_one_recovers(self):
        fixed, _ = self.finding("fp16-scale-too-large")
        self.assertEqual((fixed["updates"], fixed["skipped"]), (0, 400))
        self.assertEqual(fixed["first_loss"], fixed["last_loss"])
        dynamic, _ = self.finding("fp16-scale-too-large", "--set", "scaler={policy: pytorch, init_scale: 2^46}")
        self.assertEqual(dynamic["backoffs"], dynamic["skipped"])
        self.assertLess(dynamic["last_loss"], fixed["last_loss"] / 100)

    def test_fp8_loses_gradients_until_the_scale_has_grown(self):
        summary, rows = self.finding("fp8-hybrid")
        underflow = [float(row["output_gradient_underflow"]) for row in rows]
        self.assertGreater(underflow[0], 0.1)
        self.assertLess(underflow[-1], 0.01)
        self.assertGreater(summary["backoffs"], 0)
        self.assertLess(summary["last_loss"], summary["first_loss"] / 100)
        saturating, _ = self.finding("fp8-hybrid", "--set", "precision.output_gradient={format: float8_e5m2, overflow: saturate}", "--set", "scaler.growth_interval=10")
        self.assertGreater(saturating["scale_max"], 4 * summary["scale_max"])

    def test_bfloat16_masters_stall_unless_they_are_rounded_at_random(self):
        stalled, rows = self.finding("bf16-masters-stall")
        stochastic, _ = self.finding("bf16-masters-stochastic")
        exact, _ = self.finding("bf16-masters-stall", "--set", "precision.master=float32")
        self.assertGreater(stalled["last_loss"], 100 * stochastic["last_loss"])
        self.assertLess(stochastic["last_loss"], 100 * exact["last_loss"])
        self.assertEqual(rows[-1]["loss"], rows[-20]["loss"])
        self.assertGreater(float(rows[-1]["grad_norm"]), 0)

    def test_clipping_before_the_division_by_the_scale_stops_the_learning(self):
        right, _ = self.finding("clip-unscaled")
        wrong, rows = self.finding("clip-scaled")
        self.assertLess(right["last_loss"], right["first_loss"] / 100)
        self.assertGreater(wrong["last_loss"], 0.9 * wrong["first_loss"])
        for row in rows[:50]:
            if row["grads_finite"] == "1":
                self.assertAlmostEqual(float(row["grad_norm"]) * float(row["loss_scale"]), 1, delta=1e-3)

    def test_the_overflow_of_a_micro_batch_skips_its_step(self):
        summary, rows = self.finding("accumulation-overflow")
        self.assertGreater(summary["backoffs"], 5)
        self.assertEqual(summary["backoffs"], summary["skipped"])
        self.assertLess(summary["last_loss"], summary["first_loss"] / 100)
        for row in rows:
            if row["event"] == "backoff":
                self.assertEqual(row["grads_finite"], "0")

    def test_histograms_hold_every_entry_of_every_tensor_and_survive_an_interruption(self):
        out = self.folder / "h"
        self.ok("run", SOURCE / "configs" / "fp16-no-scaling.yaml", "--quiet", "--out", out)
        counts = {}
        with open(out / "histograms.csv") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(list(rows[0]), ["step", "tensor", "loss_scale", "exponent", "count"])
        for row in rows:
            key = (int(row["step"]), row["tensor"])
            counts[key] = counts.get(key, 0) + int(row["count"])
        sizes = {"input": 1024 * 8, "weight": 8 * 8 + 8, "activation": 1024 * 8, "output_gradient": 1024 * 8, "gradient": 8 * 8 + 8}
        self.assertEqual(counts, {(step, tensor): size for step in range(0, 400, 50) for tensor, size in sizes.items()})


if __name__ == "__main__":
    unittest.main()
