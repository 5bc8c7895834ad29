"""The picture of `plot --hist`: exponents of a tensor's entries over time, against the range of its format.

Reads histograms.csv of a run's folder: step,tensor,loss_scale,exponent,count, where exponent is floor(log2|v|) before
rounding, or zero, inf, nan.
"""

import csv

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm

from plot_read import DataError

WORDS = ("zero", "inf", "nan")


def read_histograms(path, tensor):
    """(steps, scales, table): table[i] is {exponent or word: count} of steps[i]."""
    steps, scales, table, tensors = [], [], [], {}
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            if header != ["step", "tensor", "loss_scale", "exponent", "count"]:
                raise DataError(f"{path}: the header is not step,tensor,loss_scale,exponent,count")
            for row in rows:
                if len(row) != 5:
                    raise DataError(f"{path}:{rows.line_num}: {len(row)} cells, the header has 5")
                tensors[row[1]] = True
                if row[1] != tensor:
                    continue
                try:
                    step, scale, count = int(row[0]), float(row[2]), int(row[4])
                    exponent = row[3] if row[3] in WORDS else int(row[3])
                except ValueError as error:
                    raise DataError(f"{path}:{rows.line_num}: {error}") from None
                if not steps or steps[-1] != step:
                    steps.append(step)
                    scales.append(scale)
                    table.append({})
                table[-1][exponent] = count
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; trace.histograms: N in the config writes one every N steps") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    if not steps:
        raise DataError(f"{path}: no rows of the tensor '{tensor}'; it has {', '.join(tensors) or 'none'}")
    return np.array(steps), np.array(scales), table


def shares(table, shifts):
    """(exponents, share[exponent, step]) of all entries, exponents moved by shifts[step] (not finite: left out)."""
    moved = [
        {e + int(shift): n for e, n in counts.items() if e not in WORDS} if np.isfinite(shift) else {}
        for counts, shift in zip(table, shifts)
    ]
    found = [exponent for counts in moved for exponent in counts] or [0]
    exponents = np.arange(min(found), max(found) + 1)
    share = np.zeros((len(exponents), len(table)))
    for column, (counts, whole) in enumerate(zip(moved, table)):
        for exponent, count in counts.items():
            share[exponent - exponents[0], column] = count / sum(whole.values())
    return exponents, share


class Histograms:
    """What is drawn of one tensor. limits: (exponents of the largest, the smallest normal, the smallest subnormal number) of its format, or None."""

    def __init__(self, path, tensor, format_name, limits):
        self.tensor, self.format_name, self.exponents_of_format = tensor, format_name, limits
        self.steps, self.scales, self.table = read_histograms(path, tensor)
        self.x_name, self.x = "step", self.steps

    def place(self, x_name, kept, x):
        """Keeps these of the histograms, and puts them on another x axis."""
        self.x_name, self.x = x_name, x
        self.steps, self.scales, self.table = self.steps[kept], self.scales[kept], [self.table[i] for i in kept]

    def edges(self):
        return np.append(self.x, 2 * self.x[-1] - self.x[-2] if len(self.x) > 1 and self.x[-1] > self.x[-2] else self.x[-1] + 1) - (0.5 if self.x_name == "step" else 0)

    def panels(self):
        """[(words, exponents, share[exponent, step])]: as computed, and of gradients without the scale besides."""
        with np.errstate(divide="ignore"):
            log_scale = np.log2(self.scales)
        scaled = bool((log_scale != 0).any()) and self.tensor in ("output_gradient", "gradient")
        panels = [("as computed, with the scale" if scaled else "as computed", np.zeros(len(self.steps)))]
        if scaled:
            panels.append(("without the scale", -np.floor(log_scale)))
        return [(words, *shares(self.table, shifts)) for words, shifts in panels]

    def limits(self):
        """[(place on the axis of exponents, words)]"""
        if not self.exponents_of_format:
            return []
        largest, normal, subnormal = self.exponents_of_format
        return [(largest + 0.5, "largest"), (normal - 0.5, "smallest normal"), (subnormal - 0.5, "smallest subnormal")]

    def label(self):
        return f"magnitude of {self.tensor} entries"

    def heading(self, title):
        """(title and format, the share of the entries that have no exponent)"""
        special = {word: sum(counts.get(word, 0) for counts in self.table) for word in WORDS}
        whole = sum(sum(counts.values()) for counts in self.table)
        note = ", ".join(f"{word} {100 * count / whole:.2g} %" for word, count in special.items() if count)
        return ": ".join(word for word in (title, self.format_name) if word), note

    def draw(self, title):
        """A figure; without a heading where the title is None."""
        panels = self.panels()
        scaled = len(panels) > 1
        figure, grid = plt.subplots(1, len(panels), sharey=True, squeeze=False, figsize=(6.4 if scaled else 4.6, 3.6), layout="constrained")
        edges = self.edges()
        bottom, top = np.inf, -np.inf
        for number, (axes, (words, exponents, share)) in enumerate(zip(grid[0], panels)):
            bottom, top = min(bottom, exponents[0] - 0.5), max(top, exponents[-1] + 0.5)
            mesh = axes.pcolormesh(edges, np.append(exponents, exponents[-1] + 1) - 0.5, np.ma.masked_equal(share, 0),
                                   cmap="cividis_r", norm=LogNorm(1e-4, 1), gid=f"histogram{number}", rasterized=False)  # fmt: skip
            for (level, what), dashes in zip(self.limits(), ("-", (0, (5, 2)), (0, (1.2, 1.5)))):
                axes.axhline(level, color="#c8401a", linestyle=dashes, linewidth=1.1, gid=f"limit{number}-{what.replace(' ', '-')}")
                above = what != "smallest subnormal"
                axes.annotate(what, (0.99, level), xycoords=("axes fraction", "data"), xytext=(0, 2 if above else -2), fontsize=7,
                              textcoords="offset points", ha="right", va="bottom" if above else "top", color="#a03010",
                              bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6})  # fmt: skip
                bottom, top = min(bottom, level - 2.5), max(top, level + 2.5)
            axes.set_title(words, fontsize=8.5, loc="left")
            axes.set_xlabel(self.x_name)
        ticks = [tick for tick in range(-200, 200, 4 if top - bottom < 48 else 16) if bottom <= tick <= top]
        grid[0][0].set_ylim(bottom, top)
        grid[0][0].set_yticks(ticks, [f"$2^{{{tick}}}$" for tick in ticks])
        grid[0][0].set_ylabel(self.label())
        figure.colorbar(mesh, ax=grid[0].tolist(), label="share of the entries", pad=0.02)
        if title is not None:
            heading, note = self.heading(title)
            figure.suptitle(heading.replace("$", r"\$") + (f"   ({note})" if note else ""), fontsize=10, fontweight="bold")
        return figure
