#!/usr/bin/env python3
"""How time and memory grow with each size of the work: measures with scaletrace_bench and draws docs/growth.png.

usage: tools/growth.py [--bench PROGRAM] [--out FILE.png] [--csv FILE.csv] [--quick]

Needs build/bench/apps/bench/scaletrace_bench (tools/bench builds it) and matplotlib. Every size but the threads goes over three decades, the others stay as
the titles say. A line of slope 1 is drawn where growth in proportion is expected.
"""

import argparse
import csv
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# title, label, sizes, (B, D, K, runs, steps) for a size
SWEEPS = [
    ("rows B  (D 16, K 1)", "B", [10, 30, 100, 300, 1000, 3000, 10000], lambda n: (n, 16, 1, 1, min(20000, 400000 // n))),
    ("features D  (B 16, K 1)", "D", [10, 30, 100, 300, 1000, 3000, 10000], lambda n: (16, n, 1, 1, min(20000, 400000 // n))),
    ("outputs K  (B 16, D 16)", "K", [10, 30, 100, 300, 1000, 3000, 10000], lambda n: (16, 16, n, 1, min(20000, 40000 // n))),
    ("steps  (one run of 2x2x1)", "steps", [100, 300, 1000, 3000, 10000, 30000, 100000], lambda n: (2, 2, 1, 1, n)),
    ("threads  (512x1024x256)", "threads", [1, 2, 4, 8], lambda n: (512, 1024, 256, 1, 20)),
    ("runs  (of 2x2x1, 1,000 steps)", "runs", [100, 300, 1000, 3000, 10000, 30000, 100000], lambda n: (2, 2, 1, n, 1000)),
]


def measure(bench, B, D, K, runs, steps, threads, rounds):
    """Nanoseconds of the whole and kilobytes at the peak, the best of some rounds."""
    command = [bench, B, D, K, runs, max(steps, 3), "strict", "bfloat16", "fresh" if runs > 1 else f"threads={threads}"]
    done = subprocess.run(list(map(str, command)), input="\n" * rounds, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()[1:]]
    return min(float(ns) for ns, _ in lines), max(int(kilobytes) for _, kilobytes in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default=ROOT / "build/bench/apps/bench/scaletrace_bench")
    parser.add_argument("--out", default=ROOT / "docs/growth.png")
    parser.add_argument("--csv", default=ROOT / "docs/growth.csv")
    parser.add_argument("--quick", action="store_true", help="one round for each size")
    args = parser.parse_args()
    if not pathlib.Path(args.bench).exists():
        sys.exit(f"growth.py: {args.bench} is not there; tools/bench builds it")

    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(SWEEPS), figsize=(3.2 * len(SWEEPS), 6), layout="constrained")
    rows = []
    for column, (title, label, sizes, shape) in enumerate(SWEEPS):
        times, memory = [], []
        for n in sizes:
            B, D, K, runs, steps = shape(n)
            ns, kilobytes = measure(args.bench, B, D, K, runs, steps, n if label == "threads" else 1, 1 if args.quick else 4)
            # Of a step where the size is that of a step, else of all the work.
            times.append(ns * (runs * steps if label in ("steps", "runs") else 1) / 1e3)
            memory.append(kilobytes / 1024)
            rows.append([label, n, B, D, K, runs, steps, f"{times[-1]:.3f}", f"{memory[-1]:.1f}"])
            print(*rows[-1], flush=True)
        above, below = axes[0][column], axes[1][column]
        above.loglog(sizes, times, "o-", color="C0")
        if label == "threads":
            above.set_ylim(min(times) / 2, max(times) * 2)
            above.axvline(os.cpu_count(), ls="--", color="grey")
            above.annotate("processors", (os.cpu_count(), max(times) * 1.6), xytext=(3, 0), textcoords="offset points", fontsize=8, color="grey")
        else:
            above.loglog(sizes, [times[-1] * n / sizes[-1] for n in sizes], ":", color="grey", label="in proportion")
        above.set_title(title, fontsize=10)
        below.loglog(sizes, memory, "s-", color="C1")
        below.set_ylim(5, max(300, 1.5 * max(memory)))
        below.set_xlabel(label)
        if label == "threads":
            for axis in (above, below):
                axis.set_xticks(sizes, [str(n) for n in sizes])
                axis.minorticks_off()
        for axis in (above, below):
            axis.grid(True, which="major", alpha=0.3)
    axes[0][0].set_ylabel("µs for a step (B, D, K, threads)\nor for all (steps, runs)")
    axes[1][0].set_ylabel("peak memory, MB")
    axes[0][0].legend(fontsize=8)
    figure.savefig(args.out, dpi=110)
    with open(args.csv, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["size", "value", "rows", "features", "outputs", "runs", "steps", "microseconds", "peak_megabytes"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
