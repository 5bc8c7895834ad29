#!/usr/bin/env python3
"""Records what torch.amp.GradScaler does in a real training, as a case for `scaletrace check`.

    pip install torch numpy
    python3 record_torch.py cases/torch-gradscaler
    scaletrace check cases/torch-gradscaler

A linear model is trained in float16 on the CPU until its gradients overflow; some batches are a million times too
large besides. Which steps overflowed is PyTorch's own finding and goes to events.txt; the scale of every step goes to
expected.csv; config.yaml says which scaler that was.
"""

import csv
import pathlib
import sys

import torch

INIT_SCALE, GROWTH_INTERVAL, STEPS = 2.0**10, 7, 300


def main(folder):
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=INIT_SCALE, growth_interval=GROWTH_INTERVAL)
    x, y = torch.randn(64, 16), torch.randn(64, 4)
    rows, events = [], ""
    for step in range(STEPS):
        scale, tracker = scaler.get_scale(), scaler.state_dict()["_growth_tracker"]
        targets = y * 1e6 if step in (100, 101, 180) else y
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            output = model(x)
        loss = torch.nn.functional.mse_loss(output.float(), targets)
        # The gradient passes through float16 on its way to the weights, so that a large scale overflows.
        output_gradient = (torch.autograd.grad(loss, output, retain_graph=True)[0].float() * scaler.scale(torch.ones(()))).half()
        output.backward(output_gradient)
        scaler.unscale_(optimizer)
        finite = all(bool(torch.isfinite(p.grad).all()) for p in model.parameters())
        scaler.step(optimizer)
        scaler.update()
        # good_steps is scaletrace's word: finite steps since the scale last changed, which is PyTorch's growth tracker.
        rows.append([step, scale, tracker, int(finite)])
        events += "F" if finite else "O"

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "expected.csv", "w", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["step", "loss_scale", "good_steps", "grads_finite"])
        writer.writerows(rows)
    lines = [events[i:i + 60] for i in range(0, len(events), 60)]
    (folder / "events.txt").write_text("\n".join(lines) + "\n")
    (folder / "config.yaml").write_text(
        f"# torch.amp.GradScaler of PyTorch {torch.__version__.split('+')[0]}, recorded by docs/guides/record_torch.py.\n"
        f"scaler: {{policy: pytorch, init_scale: {INIT_SCALE:g}, growth_interval: {GROWTH_INTERVAL}}}\n")
    print(f"{folder}: {STEPS} steps, {events.count('O')} overflows, scale {rows[0][1]:g} at first, {rows[-1][1]:g} at last")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "torch-gradscaler"))
