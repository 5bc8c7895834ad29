#!/usr/bin/env python3
"""Records what DeepSpeed's DynamicLossScaler does in a real training, as a case for `scaletrace check`.

    pip install torch numpy && DS_BUILD_OPS=0 pip install deepspeed
    python3 record_deepspeed.py cases/deepspeed-dynamic
    scaletrace check cases/deepspeed-dynamic

The scaler object is DeepSpeed's own; around it stands the loop that its optimizers have: backward with the scale, look
for an overflow, update the scale, step unless there was one. The gradients pass through float16.
"""

import csv
import os
import pathlib
import sys
import types

import torch

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed  # noqa: E402  (it reads the environment)
from deepspeed.runtime.fp16 import loss_scaler  # noqa: E402

# The scaler asks for its rank, to log on one machine only. There is one process here, and no need to start a group.
loss_scaler.dist = types.SimpleNamespace(get_rank=lambda: 0)

INIT_SCALE, SCALE_WINDOW, HYSTERESIS, STEPS = 2.0**10, 7, 2, 300


def main(folder):
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    x, y = torch.randn(64, 16), torch.randn(64, 4)
    scaler = loss_scaler.DynamicLossScaler(init_scale=INIT_SCALE, scale_window=SCALE_WINDOW, min_scale=1,
                                           delayed_shift=HYSTERESIS, consecutive_hysteresis=False, raise_error_at_min_scale=True,
                                           dtype=torch.half)
    rows, events = [], ""
    for step in range(STEPS):
        scale = scaler.loss_scale
        targets = y * 1e6 if step in (100, 101, 102, 180) else y
        model.zero_grad()
        output = model(x).half()
        loss = torch.nn.functional.mse_loss(output.float(), targets)
        scaler.backward(loss)
        overflow = any(bool(loss_scaler.has_inf_or_nan(p.grad)) for p in model.parameters())
        scaler.update_scale(overflow)
        if not overflow:
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad / scale
        rows.append([step, scale, int(not overflow)])
        events += "O" if overflow else "F"

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "expected.csv", "w", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["step", "loss_scale", "grads_finite"])
        writer.writerows(rows)
    lines = [events[i:i + 60] for i in range(0, len(events), 60)]
    (folder / "events.txt").write_text("\n".join(lines) + "\n")
    (folder / "config.yaml").write_text(
        f"# DynamicLossScaler of DeepSpeed {deepspeed.__version__}, recorded by docs/guides/record_deepspeed.py.\n"
        f"scaler: {{policy: deepspeed, init_scale: {INIT_SCALE:g}, growth_interval: {SCALE_WINDOW}, hysteresis: {HYSTERESIS}}}\n")
    print(f"{folder}: {STEPS} steps, {events.count('O')} overflows, scale {rows[0][1]:g} at first, {rows[-1][1]:g} at last")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "deepspeed-dynamic"))
