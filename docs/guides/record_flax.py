#!/usr/bin/env python3
"""Records what flax.training.dynamic_scale.DynamicScale does in a real training, as a case for `scaletrace check`.

    pip install jax flax
    python3 record_flax.py cases/flax-dynamic-scale
    scaletrace check cases/flax-dynamic-scale

The loss of a linear model is computed in float16, so that its gradients overflow where the scale is too large; which
steps did is Flax's own finding and goes to events.txt.
"""

import csv
import pathlib
import sys

import flax
import jax
import jax.numpy as jnp
from flax.training.dynamic_scale import DynamicScale

INIT_SCALE, GROWTH_INTERVAL, STEPS = 2.0**10, 7, 300


def main(folder):
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    x, y = jax.random.normal(keys[0], (64, 16)), jax.random.normal(keys[1], (64, 4))
    w = jax.random.normal(keys[2], (16, 4)) * 0.1
    # float32 from the first step on, as after a jit.
    scaler = DynamicScale(scale=jnp.float32(INIT_SCALE), growth_interval=GROWTH_INTERVAL)

    def loss(w, y):
        error = x.astype(jnp.float16) @ w.astype(jnp.float16) - y.astype(jnp.float16)
        return jnp.mean(jnp.square(error.astype(jnp.float32)))

    @jax.jit
    def train_step(scaler, w, y):
        scaler, finite, _, gradient = scaler.value_and_grad(loss)(w, y)
        return scaler, finite, jnp.where(finite, w - 0.01 * gradient, w)

    rows, events = [], ""
    for step in range(STEPS):
        scale = float(scaler.scale)
        scaler, finite, w = train_step(scaler, w, y * 3e4 if step in (100, 101, 180) else y)
        rows.append([step, repr(scale), int(finite)])
        events += "F" if finite else "O"

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "expected.csv", "w", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["step", "loss_scale", "grads_finite"])
        writer.writerows(rows)
    lines = [events[i:i + 60] for i in range(0, len(events), 60)]
    (folder / "events.txt").write_text("\n".join(lines) + "\n")
    (folder / "config.yaml").write_text(
        f"# DynamicScale of Flax {flax.__version__} (JAX {jax.__version__}), recorded by docs/guides/record_flax.py.\n"
        f"scaler: {{policy: flax, init_scale: {INIT_SCALE:g}, growth_interval: {GROWTH_INTERVAL}}}\n")
    print(f"{folder}: {STEPS} steps, {events.count('O')} overflows, scale {rows[0][1]} at first, {rows[-1][1]} at last")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "flax-dynamic-scale"))
