"""The step in JAX, in the form that is fastest there: jit, scan over the steps, vmap over the runs, donated state.

usage: jax_peer.py B D K RUNS STEPS KEEP      KEEP: trace (loss, scale, counter and flag of every step), or end (the last state and two counts of
                                               each run, the loop written out eight times); one line on standard input starts a measurement, the answer is nanoseconds for a step of a run
       jax_peer.py --check FOLDER             against golden steps (tests/golden/step/bfloat16-strict): parameters, scale, counter, flag

Without XLA_FLAGS=--xla_allow_excess_precision=false XLA leaves out a rounding (profile excess).
"""

import functools
import json
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np


def peak_kilobytes():
    """The most memory that this process has had; getrusage would count what the process that started it had."""
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM:")).split()[1])


def gradient_step(w, b, x, y, scale, good, lr, interval):
    """One step; x (B, D), y (B, K), w (D, K), b (K), all float32. Returns the new state and the loss and the flag."""
    compute = jnp.bfloat16

    def scaled_loss(w, b):
        prediction = jnp.matmul(x.astype(compute), w.astype(compute)) + b.astype(compute)
        error = prediction.astype(jnp.float32) - y
        loss = jnp.mean(error * error)
        return loss * scale, loss

    (_, loss), (gw, gb) = jax.value_and_grad(scaled_loss, argnums=(0, 1), has_aux=True)(w, b)
    gw, gb = gw / scale, gb / scale
    finite = jnp.isfinite(gw).all() & jnp.isfinite(gb).all()
    w = jnp.where(finite, w - lr * gw, w)
    b = jnp.where(finite, b - lr * gb, b)
    grow = finite & (good + 1 >= interval)
    new_scale = jnp.where(finite, jnp.where(grow, scale * 2, scale), jnp.maximum(scale / 2, 1.0))
    new_good = jnp.where(finite & ~grow, good + 1, 0)
    return w, b, new_scale, new_good, loss, finite


def run(w, b, scale, good, x, y, lr, steps):
    """`steps` steps as one compiled loop: the last state, and what a trace holds of every step."""

    def body(state, _):
        w, b, scale, good = state
        w, b, new_scale, new_good, loss, finite = gradient_step(w, b, x, y, scale, good, lr, 2000)
        return (w, b, new_scale, new_good), (loss, scale, good, finite)

    return jax.lax.scan(body, (w, b, scale, good), None, length=steps)


def run_to_end(w, b, scale, good, x, y, lr, steps):
    """The same for those who want no trace: the last state with the number of skipped steps and the last loss. Nothing of the steps in between is kept."""

    def body(state, _):
        w, b, scale, good, skipped, loss = state
        w, b, scale, good, loss, finite = gradient_step(w, b, x, y, scale, good, lr, 2000)
        return (w, b, scale, good, skipped + ~finite, loss), None

    return jax.lax.scan(body, (w, b, scale, good, jnp.int32(0), jnp.float32(0)), None, length=steps, unroll=8)[0]


def serve(B, D, K, runs, steps, keep):
    rng = np.random.default_rng(0)
    shape = () if runs == 1 else (runs,)
    x = jnp.asarray(rng.standard_normal(shape + (B, D), dtype=np.float32))
    teacher = rng.standard_normal(shape + (D, K), dtype=np.float32)
    y = jnp.matmul(x, teacher) + 0.1 * rng.standard_normal(shape + (B, K), dtype=np.float32)
    loop = functools.partial(run if keep == "trace" else run_to_end, steps=steps)
    compiled = jax.jit(loop if runs == 1 else jax.vmap(loop), donate_argnums=(0, 1, 2, 3))
    lr = jnp.full(shape, 1e-3, jnp.float32)

    def measure():
        state = (jnp.zeros(shape + (D, K)), jnp.zeros(shape + (K,)), jnp.full(shape, 65536.0), jnp.zeros(shape, jnp.int32))
        jax.block_until_ready(state)
        start = time.perf_counter()
        jax.block_until_ready(compiled(*state, x, y, lr))
        return (time.perf_counter() - start) / steps / runs * 1e9

    measure()
    measure()
    print("ready", flush=True)
    for _ in sys.stdin:
        ns = measure()
        print(f"{ns:.4f} {peak_kilobytes()}", flush=True)


def check(folder):
    one = jax.jit(gradient_step)
    checked = 0
    for line in (pathlib.Path(folder) / "steps.jsonl").read_text().splitlines():
        case = json.loads(line)
        given, expected = case["input"], case["output"]
        numbers = lambda value: np.asarray(value, dtype=object).astype(np.float32)  # "inf" and "nan" are strings
        x, y, w, b = (numbers(v) for v in (given["x"], given["y"], given["params"]["w"], given["params"]["b"]))
        out = one(w, b, x, y, numbers(given["loss_scale"]), given["good_steps"], numbers(given["lr"]), given["growth_interval"])
        same = lambda ours, theirs: np.array_equal(np.asarray(ours), numbers(theirs), equal_nan=True)
        ok = (same(out[0], expected["params"]["w"]) and same(out[1], expected["params"]["b"]) and same(out[2], expected["loss_scale"]) and
              int(out[3]) == expected["good_steps"] and bool(out[5]) == expected["grads_finite"])
        if not ok:
            sys.exit(f"jax_peer.py: step {checked} differs from the golden one: {line}")
        checked += 1
    print(f"{checked} steps equal the golden ones")


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2])
    else:
        serve(*map(int, sys.argv[1:6]), sys.argv[6])
