#!/usr/bin/python3
# (Not `env python3`: Debian's matplotlib belongs to Debian's interpreter, and another python3 may stand first on PATH.)
"""Draws a trace: the loss above, the loss scale below as steps on a log2 axis, with a mark for each event.

Reads trace.csv as the program writes it (or any CSV with its columns) and writes a PNG, SVG or PDF, or an HTML page to zoom in. What the columns
and events mean is settled in lib/trace and lib/base/event.h; this file only shows them.
"""

import argparse
import logging
import os
import re
import sys

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # nothing about its font cache, which the first call builds
try:
    import matplotlib

    matplotlib.use("Agg")  # no display is needed, nor looked for
    import numpy as np
    from matplotlib import collections as mpl_collections
    from matplotlib import pyplot as plt
    from matplotlib.colors import to_rgb
    from matplotlib.path import Path
    from matplotlib.transforms import ScaledTranslation
except ImportError as missing:
    sys.stderr.write(f"{os.environ.get('SCALETRACE_CALLED_AS', 'plot.py')}: error: {missing}; on Debian and Ubuntu: apt-get install python3-matplotlib\n")
    sys.exit(3)

from plot_page import escape, figure_place, inline_svg, page, write_file, write_page
from plot_read import EVENTS, OVERFLOWS, DataError, name_of, place, read_trace, shown  # noqa: F401 (some of them for the other files)

EXIT_USAGE, EXIT_DATA = 2, 3
FORMATS = (".png", ".svg", ".pdf", ".html")
CALLED_AS = os.environ.get("SCALETRACE_CALLED_AS", "plot.py")  # the program hands `scaletrace plot` over to this file

# Line thinning: at most four points (first, lowest, highest, last) for each of this many slices of the x axis. That
# is finer than the pixels of the picture, so the thinned line looks like the full one.
SLICES = 3000


# ---- What is drawn, computed from the rows -------------------------------------------------------------------------


def follows(trace):
    """For each row but the first: whether it continues the row above it without a step between them that might differ.

    A thinned trace keeps of an unbroken streak of one event only the first and the last row; a counter of finite steps
    that still stands at 0 tells such a streak from two separate events.
    """
    adjacent = np.diff(trace.step) == 1
    if trace.good is not None:
        adjacent |= (trace.good[1:] == 0) & (trace.event[1:] == trace.event[:-1]) & (trace.event[1:] != 0)
    return adjacent


def stretches(mask, joins):
    """[first, last] rows of each unbroken stretch of rows where mask holds; joins: see follows()."""
    linked = mask[1:] & mask[:-1] & joins
    starts = mask.copy()
    starts[1:] &= ~linked
    ends = mask.copy()
    ends[:-1] &= ~linked
    return np.column_stack((np.flatnonzero(starts), np.flatnonzero(ends)))


def marked_rows(trace, code, joins):
    """Rows that get the mark of this event: all, but of an unbroken streak at one scale only the first and last."""
    same = joins & (trace.scale[1:] == trace.scale[:-1])
    return np.unique(stretches(trace.event == code, same))


def thin_line(x, y):
    """Points that draw the same line as (x, y) at the size of the picture; gaps (NaN) stay gaps."""
    if len(x) <= 4 * SLICES:
        return x, y
    width = x[-1] - x[0] or 1  # 0 in updates where every step was skipped
    slice_of = np.minimum(((x - x[0]) * (SLICES / width)).astype(np.int64), SLICES - 1)
    starts = np.flatnonzero(np.diff(slice_of, prepend=-1))
    ends = np.append(starts[1:], len(x))
    order = np.lexsort((y, slice_of))  # by value inside each slice, NaN last
    finite = np.add.reduceat((~np.isnan(y)).astype(np.int64), starts)
    lowest = order[starts]
    highest = order[np.maximum(starts, starts + finite - 1)]
    gap = np.where(finite < ends - starts, order[ends - 1], lowest)
    keep = np.unique(np.concatenate((starts, ends - 1, lowest, highest, gap)))
    return x[keep], y[keep]


def thin_marks(x, y, x_range, y_range, most=4000):
    """Leaves out marks that would lie within a fraction of a pixel of another one of the same kind."""
    if len(x) <= most:
        return x, y
    cell = np.round(np.column_stack((x / x_range * SLICES, y / y_range * (SLICES / 2)))).astype(np.int64)
    keep = np.sort(np.unique(cell, axis=0, return_index=True)[1])
    return x[keep], y[keep]


# ---- The picture ---------------------------------------------------------------------------------------------------

INK, MUTED, LOSS, SCALE, BAD, GOOD = "#1a1a1a", "#666666", "#1f5a93", "#1a1a1a", "#c8401a", "#0b7a5a"
SHADE = "#f7dfd6"  # of skipped steps: a light tint of BAD, about as dark as the grid in grey


def with_bar(up):
    """A triangle that runs against a bar: stopped by a limit."""
    sign = 1 if up else -1
    return Path(
        [(-0.5, -0.6 * sign), (0.5, -0.6 * sign), (0, 0.3 * sign), (-0.5, -0.6 * sign),
         (-0.6, 0.35 * sign), (0.6, 0.35 * sign), (0.6, 0.6 * sign), (-0.6, 0.6 * sign), (-0.6, 0.35 * sign)],
        [Path.MOVETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY,
         Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY])  # fmt: skip


# event: marker, relative size, colour, side of the line that it stands on (0: on it), words.
# Told apart by shape first, so that grey print keeps them; beside the line, so that dense marks leave it readable.
MARKS = {
    "growth": ("^", 0.9, GOOD, -1, "growth"),
    "ceiling": (with_bar(True), 1.1, GOOD, -1, "growth: at the ceiling"),
    "backoff": ("v", 1.0, BAD, 1, "overflow: backed off"),
    "floor": (with_bar(False), 1.1, BAD, 1, "overflow: at the floor"),
    "forgiven": ("o", 0.9, BAD, 1, "overflow: forgiven"),
    "overflow": ("x", 1.0, BAD, 0, "overflow"),
    "raise": ("*", 1.8, BAD, 0, "overflow: raised"),
}

STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine draws the same
    "font.size": 8.5,
    "axes.linewidth": 0.7,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "lines.solid_joinstyle": "round",
    "path.simplify": True,
    "agg.path.chunksize": 20000,
    "svg.hashsalt": "scaletrace",  # ids in the SVG depend on the content alone
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "figure.dpi": 100,
    "savefig.dpi": 220,
}


def set_style():
    matplotlib.rcdefaults()  # not the user's matplotlibrc: the same trace gives the same picture everywhere
    matplotlib.rcParams.update(STYLE)


# Of each format: floor(log2) of its largest number, of its smallest normal and of its smallest subnormal number, as
# `scaletrace formats` lists them.
FORMAT_EXPONENTS = {
    "float32": (127, -126, -149), "tfloat32": (127, -126, -136), "bfloat16": (127, -126, -133),
    "float16": (15, -14, -24), "float8_e5m2": (15, -14, -16), "float8_e4m3fn": (8, -6, -9), "float8_e4m3": (7, -6, -9),
    "float8_e3m4": (3, -2, -6), "float8_e5m2fnuz": (15, -15, -17), "float8_e4m3fnuz": (7, -7, -10),
    "float6_e3m2fn": (4, -2, -4), "float6_e2m3fn": (2, 0, -3), "float4_e2m1fn": (2, 0, -1),
}  # fmt: skip


def limit_of(format_name):
    """(log2 of the first power of two that the format cannot hold, words), or None."""
    if format_name not in FORMAT_EXPONENTS or format_name == "float32":
        return None
    return FORMAT_EXPONENTS[format_name][0] + 1, f"largest {format_name}"


def format_of(folder, tensor="output_gradient"):
    """The format of this tensor in the run in this folder, or None: of a line that the program wrote."""
    try:
        with open(os.path.join(folder, "config.resolved.yaml"), encoding="utf-8", errors="replace") as file:
            found = re.search(rf"^  {tensor}: \{{format: (\w+)", file.read(), re.MULTILINE)
            return found.group(1) if found else None
    except OSError:
        return None


# Runs on one pair of axes: told apart by colour (Okabe and Ito's, safe for the colour-blind), dashes and marker.
RUN_STYLES = [
    ("#0072b2", "-", "o"), ("#d55e00", (0, (5, 1.5)), "s"), ("#009e73", (0, (1.2, 1.2)), "^"),
    ("#1a1a1a", (0, (5, 1.5, 1.2, 1.5)), "D"), ("#cc79a7", (0, (8, 2)), "v"), ("#e69f00", (0, (3, 1, 1, 1, 1, 1)), "P"),
    ("#56b4e9", (0, (2.5, 2.5)), "X"),
]  # fmt: skip


class ScaleAxis:
    """A log2 axis for the scales of some traces, with rows of their own for inf and 0, which have no place on it.

    low, high: powers of two that hold all finite scales, and the largest number of a format where a scale comes near it. limits: [(log2, words)].
    rows: {inf or -inf: place}; bottom, top: of the axis; ticks, words.
    """

    def __init__(self, traces):
        with np.errstate(divide="ignore"):
            known = np.log2(np.concatenate([trace.scale[np.append(True, trace.scale[1:] != trace.scale[:-1])] for trace in traces]))
        finite = known[np.isfinite(known)]
        self.low, self.high = (np.floor(finite.min()), np.ceil(finite.max())) if finite.size else (0.0, 0.0)
        if self.high == self.low:
            self.low, self.high = self.low - 1, self.high + 1
        self.limits = []
        for limit in sorted({limit_of(trace.format) for trace in traces} - {None}):
            if limit[0] - self.high <= 4:
                self.limits.append(limit)
                self.low, self.high = min(self.low, limit[0]), max(self.high, limit[0])
        span = self.high - self.low
        self.ticks = list(power_ticks(self.low, self.high)) if finite.size else []
        self.words = [None] * len(self.ticks)  # of powers: 2^k
        self.bottom, self.top, self.rows = self.low - 0.1 * span, self.high + 0.1 * span, {}
        for value, place_of, word in ((np.inf, self.high + 0.2 * span, "inf"), (-np.inf, self.low - 0.2 * span, "0")):
            if (known == value).any():
                self.rows[value] = place_of
                self.ticks.append(place_of)
                self.words.append(word)
        if np.inf in self.rows:
            self.top = self.rows[np.inf] + 0.09 * span
        if -np.inf in self.rows:
            self.bottom = self.rows[-np.inf] - 0.09 * span

    def place(self, scale):
        with np.errstate(divide="ignore"):
            level = np.log2(scale)
        for value, at in self.rows.items():
            level = np.where(level == value, at, level)
        return level

    def borders(self):
        """Between the rows of inf and 0 and the powers of two."""
        return [(at + (self.high if value > 0 else self.low)) / 2 for value, at in self.rows.items()]

    def dress(self, axes):
        for at in self.borders():
            axes.axhline(at, color=MUTED, linewidth=0.7, linestyle=(0, (1, 2.5)), zorder=1)
        axes.set_ylim(self.bottom, self.top)
        axes.set_yticks(self.ticks, [word or f"$2^{{{int(tick)}}}$" for tick, word in zip(self.ticks, self.words)])
        for number, (at, words) in enumerate(self.limits):
            axes.axhline(at, color=MUTED, linewidth=0.9, linestyle=(0, (5, 2)), zorder=1.5, gid="limit" + (str(number) if number else ""))
            axes.annotate(words, (1, at), xycoords=("axes fraction", "data"), xytext=(0, 2), textcoords="offset points",
                          ha="right", fontsize=7, color=MUTED)  # fmt: skip


def steps_of(trace, level):
    """The corners of a step function: a row's scale holds until the next row, the last one's to the end of its step."""
    same = (level[1:] == level[:-1]) | (np.isnan(level[1:]) & np.isnan(level[:-1]))
    changes = np.flatnonzero(np.append(True, ~same))
    end = trace.x_end[-1] if trace.x_end[-1] > trace.x[0] else trace.x[0] + 1
    return np.append(np.repeat(trace.x[changes], 2)[1:], end), np.repeat(level[changes], 2)


class LossAxis:
    """An axis for the losses of some traces: logarithmic where they span much, or as asked. bottom, top: in log10 on a logarithmic one; None without a finite loss."""

    def __init__(self, traces, log=False):
        known = np.concatenate([trace.loss[np.isfinite(trace.loss)] for trace in traces])
        positive = known[known > 0]
        self.logarithmic = bool(positive.size) and not (known < 0).any() and (log or positive.max() > 30 * positive.min())
        self.bottom = self.top = None
        if self.logarithmic:
            # Zeros, which a log axis has no place for, lie on its lower edge.
            bottom, top = np.log10(positive.min()), np.log10(positive.max())
            pad = 0.06 * (top - bottom) or 0.5
            bottom, top = bottom - pad * (3 if (known == 0).any() else 1), top + pad
            self.bottom, self.top = max(bottom, -320), min(top, 308)
        elif known.size:
            low, high = known.min(), known.max()
            pad = 0.06 * (high - low) or 0.05 * abs(high) or 1
            self.bottom, self.top = low - pad, high + pad

    def place(self, loss):
        """Finite losses as they are drawn, NaN for all others."""
        placed = np.where(np.isfinite(loss), loss, np.nan)
        return np.where(loss == 0, 10.0**self.bottom, placed) if self.logarithmic else placed

    def dress(self, axes):
        if self.logarithmic:
            axes.set_yscale("log")
            axes.set_ylim(10.0**self.bottom, 10.0**self.top)
            label_decades(axes, self.bottom, self.top)
        elif self.bottom is not None:
            axes.set_ylim(self.bottom, self.top)
            axes.ticklabel_format(axis="y", useMathText=True, scilimits=(-3, 4))
        else:
            axes.set_yticks([])
            axes.text(0.5, 0.5, "no step has a finite loss", transform=axes.transAxes, ha="center", color=MUTED)


def nonfinite_losses(trace):
    """[first, last] rows of each unbroken stretch of losses that are inf or NaN."""
    return stretches(~np.isfinite(trace.loss), np.diff(trace.step) == 1)


LANE = 0.035  # height of a run's lane of skipped steps, of the panel


def draw_overlay(traces, names, title, log):
    """Several runs: their losses above, their scales below; a filled mark at each growth, a hollow one at each overflow.

    Skipped steps are bars in a lane for each run below its scales, losses that are not finite marks in a row for each run above.
    """
    set_style()
    figure, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(6.0, 4.5), gridspec_kw={"height_ratios": (1, 1.15), "hspace": 0.1})
    upper.patch.set_gid("panel-loss")
    lower.patch.set_gid("panel-scale")
    losses, scales = LossAxis(traces, log), ScaleAxis(traces)
    losses.dress(upper)
    scales.dress(lower)
    first = min(trace.x[0] for trace in traces)
    width = max(trace.x_end[-1] for trace in traces) - first or 1
    lower.set_xlim(first - 0.012 * width, first + 1.012 * width)
    handles, hints = [], {"filled mark: growth, hollow: overflow": True}
    skipping = [number for number, trace in enumerate(traces) if trace.skipped.any()]
    for number, trace in enumerate(traces):
        colour, dashes, marker = RUN_STYLES[number % len(RUN_STYLES)]
        line = {"color": colour, "linestyle": dashes, "linewidth": 1}
        upper.plot(*thin_line(trace.x, losses.place(trace.loss)), gid=f"run{number}-loss", **line)
        level = scales.place(trace.scale)
        lower.plot(*thin_line(*steps_of(trace, level)), gid=f"run{number}-scale", **line)
        joins = follows(trace)
        for kind, codes, face in (("growth", ("growth", "ceiling"), colour), ("overflow", OVERFLOWS, "white")):
            rows = np.unique(np.concatenate([marked_rows(trace, EVENTS.index(code), joins) for code in codes])).astype(np.int64)
            if len(rows):
                marks = thin_marks(trace.x[rows], level[rows], width, scales.top - scales.bottom, most=400)
                lower.plot(*marks, marker, color=colour, markerfacecolor=face, markersize=3.2 if len(rows) < 120 else 2,
                           markeredgewidth=0.7, gid=f"run{number}-{kind}", zorder=4)  # fmt: skip
        ends = np.unique(nonfinite_losses(trace))
        if len(ends):
            x, y = thin_marks(trace.x[ends], np.full(len(ends), 0.985 - LANE * number), width, 1)
            upper.plot(x, y, marker, color=colour, markersize=3.4, markeredgewidth=0, transform=upper.get_xaxis_transform(), clip_on=False,
                       gid=f"run{number}-loss-nonfinite", zorder=4)  # fmt: skip
            hints["marks above: loss inf or NaN"] = True
        zeros = np.flatnonzero(trace.loss == 0) if losses.logarithmic else ()
        if len(zeros):
            x, y = thin_marks(trace.x[zeros], np.full(len(zeros), 0.02), width, 1)
            upper.plot(x, y, marker, color=colour, markerfacecolor="white", markersize=3, transform=upper.get_xaxis_transform(), gid=f"run{number}-loss-zero")
            hints["hollow marks above at the bottom: loss 0"] = True
        if number in skipping:
            at = LANE * (len(skipping) - skipping.index(number) - 1)
            left, right, share = skipped_spans(trace, joins, width)
            bars = mpl_collections.PolyCollection(
                [((a, at), (b, at), (b, at + 0.8 * LANE), (a, at + 0.8 * LANE)) for a, b in zip(left, right)], transform=lower.get_xaxis_transform(),
                facecolors=[(*to_rgb(colour), part) for part in share], edgecolors=[(*to_rgb(colour), part) for part in share],
                linewidths=0.6 if len(left) <= 80 else 0, zorder=1)  # fmt: skip
            bars.set_gid(f"run{number}-skipped")
            lower.add_collection(bars, autolim=False)
            hints["bars: skipped steps"] = True
        handles.append(plt.Line2D([], [], color=colour, linestyle=dashes, marker=marker, markersize=4, label=plain(names[number])))
    if skipping:  # room for their lanes
        part = LANE * (len(skipping) + 0.5)
        lower.set_ylim(scales.top - (scales.top - scales.bottom) / (1 - part), scales.top)
    upper.set_ylabel("loss")
    lower.set_ylabel("loss scale")
    lower.set_xlabel(traces[0].x_name)
    lower.xaxis.get_major_locator().set_params(integer=True)
    upper.tick_params(axis="x", which="both", length=0, labelbottom=False)
    for axes in (upper, lower):
        axes.grid(axis="y", color="#dddddd", linewidth=0.5, zorder=0.5)
        axes.set_axisbelow(True)
    if title:
        upper.set_title(plain(title), fontsize=10, fontweight="bold", loc="left", pad=8)
    below = lower.transAxes + ScaledTranslation(0, -34 / 72, figure.dpi_scale_trans)
    columns = min(3, len(handles))
    lower.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=below, frameon=False,
                 ncol=columns, fontsize=8, handlelength=3.2, borderaxespad=0)  # fmt: skip
    lower.annotate("; ".join(hints), (0.5, 0), xycoords="axes fraction", xytext=(0, -38 - 12.5 * -(-len(handles) // columns)), textcoords="offset points",
                   ha="center", va="top", fontsize=7, color=MUTED)  # fmt: skip
    figure.align_ylabels()
    return figure


def plain(text):
    return text.replace("$", r"\$")


def draw(trace, title, log=False):
    set_style()
    figure, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(6.0, 4.3), gridspec_kw={"height_ratios": (1, 1.15), "hspace": 0.1})

    first, last = trace.x[0], trace.x_end[-1]  # a step holds its scale until the next one begins
    if last <= first:
        last = first + 1
    margin = 0.012 * (last - first)
    lower.set_xlim(first - margin, last + margin)
    joins = follows(trace)
    shaded = shade_skipped(trace, joins, (upper, lower), last - first)
    handles = draw_loss(upper, trace, joins, log)
    handles += draw_scale(lower, trace, joins, last - first)
    if shaded:
        handles.append((shaded, "skipped steps"))

    upper.tick_params(axis="x", which="both", length=0, labelbottom=False)
    upper.spines["bottom"].set_visible(False)
    lower.set_xlabel(trace.x_name)
    lower.xaxis.get_major_locator().set_params(integer=True)
    lower.ticklabel_format(axis="x", style="plain", useOffset=False)
    if last - first >= 20000:
        lower.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace(",", "\u2009"))
    for axes in (upper, lower):
        axes.grid(axis="y", color="#dddddd", linewidth=0.5, zorder=0.5)
        axes.set_axisbelow(True)
    if title:
        upper.set_title(title.replace("$", r"\$"), fontsize=10, fontweight="bold", loc="left", pad=8)
    if handles:
        below = lower.transAxes + ScaledTranslation(0, -34 / 72, figure.dpi_scale_trans)
        lower.legend(
            [handle for handle, _ in handles], [words for _, words in handles], loc="upper center",
            bbox_to_anchor=(0.5, 0), bbox_transform=below, ncol=len(handles) if len(handles) <= 4 else 3, frameon=False,
            fontsize=8, handlelength=1.4, handletextpad=0.5, columnspacing=1.6, borderaxespad=0)  # fmt: skip
    figure.align_ylabels()
    return figure


def skipped_spans(trace, joins, width, most=400, slices=400):
    """(left, right, share): where on the x axis steps were skipped. Of stretches too many to tell apart, slices with the share that was skipped."""
    runs = stretches(trace.skipped, joins)
    left, right, share = trace.x[runs[:, 0]], trace.x_end[runs[:, 1]], np.ones(len(runs))
    if len(runs) > most and trace.x_name != "update":  # (in updates, skipped steps have no width to share)
        edges = np.linspace(trace.x[0], trace.x[0] + width, slices + 1)
        through = np.cumsum(right - left)  # skipped steps up to and with each stretch
        before = np.append(0, through[:-1])
        skipped = np.interp(edges, np.column_stack((left, right)).ravel(), np.column_stack((before, through)).ravel())
        share = np.clip(np.diff(skipped) / np.diff(edges), 0, 1)
        left, right, share = edges[:-1][share > 0], edges[1:][share > 0], share[share > 0]
    return left, right, share


def shade_skipped(trace, joins, panels, width):
    """Tinted where the update was skipped; of stretches too many to tell apart, the darker the larger their share."""
    left, right, share = skipped_spans(trace, joins, width)
    if not len(left):
        return None
    hairline = 0.6 if len(left) <= 80 else 0  # so that a single step among thousands is seen
    shades = SHADE if (share == 1).all() else [(*to_rgb(SHADE), part) for part in share]
    for axes in panels:
        spans = mpl_collections.PolyCollection(
            [((a, 0), (b, 0), (b, 1), (a, 1)) for a, b in zip(left, right)], transform=axes.get_xaxis_transform(),
            facecolors=shades, edgecolors=shades, linewidths=hairline, zorder=0)  # fmt: skip
        spans.set_gid("skipped-" + ("loss" if axes is panels[0] else "scale"))
        axes.add_collection(spans, autolim=False)
    return plt.Rectangle((0, 0), 1, 1, facecolor=SHADE, edgecolor=SHADE)


def draw_loss(axes, trace, joins, log=False):
    axes.patch.set_gid("panel-loss")
    axes.set_ylabel("loss")
    width = max(trace.x_end[-1] - trace.x[0], 1e-9)
    axis = LossAxis([trace], log)
    axis.dress(axes)
    handles = []
    zero = trace.loss == 0
    if axis.logarithmic and zero.any():
        x, y = thin_marks(trace.x[zero], np.full(zero.sum(), 1.0), width, 1)
        low = axes.plot(x, 0.02 * y, "v", color=LOSS, markersize=3, markeredgewidth=0, clip_on=False,
                        transform=axes.get_xaxis_transform(), gid="loss-zero")[0]  # fmt: skip
        handles.append((low, "loss 0"))

    x, y = thin_line(trace.x, axis.place(trace.loss))
    axes.plot(x, y, color=LOSS, linewidth=1.1, gid="loss", zorder=3)
    alone = lone_points(y)
    if alone.any():  # a line cannot show a single point between two gaps
        axes.plot(x[alone], y[alone], ".", color=LOSS, markersize=2.5, markeredgewidth=0, gid="loss-single", zorder=3)

    runs = nonfinite_losses(trace)
    if len(runs):
        at_top = axes.get_xaxis_transform()
        bars = mpl_collections.LineCollection(
            [((trace.x[a], 0.985), (trace.x_end[b], 0.985)) for a, b in runs if b > a], transform=at_top,
            colors=LOSS, linewidths=2.2, zorder=4, gid="loss-nonfinite-stretch")  # fmt: skip
        axes.add_collection(bars, autolim=False)
        ends = np.unique(runs)
        x, y = thin_marks(trace.x[ends], np.full(len(ends), 1.0), width, 1)
        mark = axes.plot(x, 0.985 * y, "D", color=LOSS, markersize=3.4, markeredgewidth=0, transform=at_top,
                         clip_on=False, gid="loss-nonfinite", zorder=4)[0]  # fmt: skip
        handles.append((mark, "loss inf or NaN"))
    return handles


def lone_points(y):
    """Whether a point stands between two gaps (NaN)."""
    alone = ~np.isnan(y)
    alone[1:] &= np.isnan(y[:-1])
    alone[:-1] &= np.isnan(y[1:])
    return alone


def label_decades(axes, bottom, top):
    """Labels a log axis from 10^bottom to 10^top: 1, 2, 5 of each decade if few, every n-th decade if many."""
    within = range(int(np.floor(bottom)), int(np.ceil(top)) + 1)
    if top - bottom < 2.2:
        plain = -3 <= bottom and top <= 5
        pairs = [(digit, decade) for decade in within for digit in (1, 2, 5)]
        axes.set_yticks(
            [digit * 10.0**decade for digit, decade in pairs],
            [f"{digit * 10.0**decade:g}" if plain else rf"${digit}\times10^{{{decade}}}$" for digit, decade in pairs])
        axes.set_yticks([], minor=True)
        axes.set_ylim(10.0**bottom, 10.0**top)
        return
    stride = next(n for n in (1, 2, 5, 10, 20, 50, 100) if (top - bottom) / n <= 6)
    decades = range(int(np.ceil(bottom / stride)) * stride, int(np.floor(top)) + 1, stride)
    axes.set_yticks([10.0**decade for decade in decades], [f"$10^{{{decade}}}$" for decade in decades])
    minor = [digit * 10.0**decade for decade in within for digit in range(2, 10)] if top - bottom <= 4.5 else []
    axes.set_yticks([tick for tick in minor if bottom <= np.log10(tick) <= top], minor=True)


def draw_scale(axes, trace, joins, width):
    axes.patch.set_gid("panel-scale")
    axes.set_ylabel("loss scale")
    axis = ScaleAxis([trace])
    axis.dress(axes)
    level = axis.place(trace.scale)
    x, y = thin_line(*steps_of(trace, level))
    axes.plot(x, y, color=SCALE, linewidth=1.1 if len(x) < 500 else 0.7, gid="scale", solid_joinstyle="miter", zorder=3)

    rows = {name: marked_rows(trace, EVENTS.index(name), joins) for name in MARKS}
    most = max(map(len, rows.values()))
    size = 4.6 if most <= 60 else 3.4 if most <= 250 else 2.4
    handles = []
    for name, (marker, relative, colour, side, words) in MARKS.items():
        if not len(rows[name]):
            continue
        x, y = thin_marks(trace.x[rows[name]], level[rows[name]], width, axis.top - axis.bottom)
        look = {"marker": marker, "linestyle": "none", "color": colour, "markeredgewidth": 0}
        if marker in ("x", "o"):
            look.update(markeredgewidth=1.1, markeredgecolor=colour, markerfacecolor="white")
        beside = ScaledTranslation(0, side * (0.5 * size * relative + 1.4) / 72, axes.figure.dpi_scale_trans)
        axes.plot(x, y, gid="event-" + name, clip_on=False, zorder=5, markersize=size * relative,
                  transform=axes.transData + beside, **look)  # fmt: skip
        handles.append((plt.Line2D([], [], markersize=5 * relative, **look), words))
    return handles


def power_ticks(low, high):
    for step in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        first = np.ceil(low / step) * step
        ticks = np.arange(first, high + 0.5, step)
        if len(ticks) <= 7:
            break
    return ticks


def save(figure, path):
    metadata = {".svg": {"Date": None, "Creator": "scaletrace"}, ".pdf": {"CreationDate": None}, ".png": {}}
    extension = os.path.splitext(path)[1].lower()
    write_file(path, lambda part: figure.savefig(
        part, format=extension[1:], metadata=metadata[extension], bbox_inches="tight", pad_inches=0.06))
    plt.close(figure)


def parse_range(text):
    found = re.fullmatch(r"([0-9.]*):([0-9.]*)", text)
    try:
        first, last = (float(part) if part else default for part, default in zip(found.groups(), (-np.inf, np.inf)))
    except (AttributeError, ValueError):
        raise argparse.ArgumentTypeError(f"'{text}' is not A:B, two numbers of which either may be left out") from None
    if not first <= last:
        raise argparse.ArgumentTypeError(f"'{text}' ends before it begins")
    return first, last


def load(path, options):
    trace = read_trace(path)
    trace.format = format_of(os.path.dirname(os.path.abspath(path)))
    place(path, trace, options.x, options.range)
    return trace


def title_of(path):
    return name_of(os.path.dirname(os.path.abspath(path))) or os.path.splitext(os.path.basename(path))[0]


def names_of(paths):
    """The runs' names, where each has one of its own; else their folders; else the paths as given."""
    folders = [os.path.basename(os.path.dirname(os.path.abspath(path))) for path in paths]
    for names in ([title_of(path) for path in paths], folders, paths):
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def is_page(path):
    return path.lower().endswith(".html")


def write_trace_page(traces, names, title, log, output):
    """The picture as a page: plotly's to zoom in, matplotlib's for paper."""
    import plot_zoom

    picture = draw_overlay(traces, names, "", log) if len(traces) > 1 else draw(traces[0], "", log)
    words = title or " and ".join(names)
    title = words if title is None else title
    body = (f"<h1>{escape(title)}</h1>\n" if title else "") + figure_place("plot0", inline_svg(picture, "p0", words), plot_zoom.HEIGHT)
    write_page(output, page(words, body, [("plot0", plot_zoom.trace_figure(traces, names, "", log))]))


def hist_places(options, path, steps):
    """(which of the steps of histograms.csv are drawn, where they lie on the x axis)."""
    x = np.asarray(steps, float)
    if options.x != "step":
        trace_path = os.path.join(os.path.dirname(path), "trace.csv")
        trace = read_trace(trace_path)
        place(trace_path, trace, options.x, None)
        x = np.interp(x, trace.step, trace.x)
    low, high = options.range or (-np.inf, np.inf)
    kept = np.flatnonzero((x >= low) & (x <= high))
    if not len(kept):
        raise DataError(f"{path}: no histogram between {options.x} {low:g} and {high:g}; it has {x[0]:g} to {x[-1]:g}")
    return kept, x[kept]


def draw_hist(parser, options):
    import plot_hist

    if len(options.traces) > 1 and options.output:
        parser.error("--hist draws one run into one --output")
    if options.log:
        parser.error("--log is for the loss, which --hist does not draw")
    for run in options.traces:
        path = os.path.join(run, "histograms.csv") if os.path.isdir(run) else run
        output = checked_output(parser, options.output or os.path.splitext(path)[0] + ".png", [path])
        name = format_of(os.path.dirname(os.path.abspath(path)), options.tensor)
        title = title_of(path) if options.title is None else options.title
        set_style()
        try:
            histograms = plot_hist.Histograms(path, options.tensor, name, FORMAT_EXPONENTS.get(name))
            histograms.place(options.x, *hist_places(options, path, histograms.steps))
            if is_page(output):
                import plot_zoom

                heading, note = histograms.heading(title)
                body = (f"<h1>{escape(heading)}</h1>\n" if heading else "") + (f"<p>{escape(note)}</p>\n" if note else "")
                picture = inline_svg(histograms.draw(None), "p0", heading or "histograms", tight=False)
                figure = plot_zoom.histogram_figure(histograms.x, options.x, histograms.edges(), histograms.panels(), histograms.limits(), "", histograms.label())
                write_page(output, page(heading or "histograms", body + figure_place("plot0", picture, plot_zoom.HEIGHT), [("plot0", figure)]))
            else:
                save(histograms.draw(title), output)
        except DataError as error:
            sys.stderr.write(f"{CALLED_AS}: error: {error}\n")
            return EXIT_DATA
        print(output)
    return 0


def draw_sweep(parser, options, path):
    import plot_sweep

    output = checked_output(parser, options.output or os.path.splitext(path)[0] + ".png", [path])
    title = options.title
    if title is None:
        folder = os.path.dirname(os.path.abspath(path))
        title = name_of(folder, "sweep.yaml") or os.path.basename(folder)
    set_style()
    try:
        results = plot_sweep.read_results(path)
        figure = plot_sweep.draw_sweep(results, options.kind, options.by, options.metric, "" if is_page(output) else title)
        if is_page(output):
            body = (f"<h1>{escape(title)}</h1>\n" if title else "") + figure_place("plot0", inline_svg(figure, "p0", title or "sweep", tight=False))
            write_page(output, page(title or "sweep", body))
        else:
            save(figure, output)
    except DataError as error:
        sys.stderr.write(f"{CALLED_AS}: error: {error}\n")
        return EXIT_DATA
    print(output)
    return 0


def checked_output(parser, output, inputs):
    if os.path.splitext(output)[1].lower() not in FORMATS:
        parser.error(f"cannot write '{output}': the name must end in {', '.join(FORMATS)}")
    if any(os.path.realpath(output) == os.path.realpath(path) for path in inputs):
        parser.error(f"'{output}' would overwrite the trace")
    return output


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the program does."""

    def error(self, message):
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def words(text):
    return [word for word in text.split(",") if word]


def main(arguments):
    parser = Parser(
        prog=CALLED_AS,
        description="Draws a trace: the loss above, the loss scale below, a mark for each event. Or the results of a sweep.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"""Examples:
  {CALLED_AS} runs/quickstart
  {CALLED_AS} trace.csv -o figure.pdf --title 'growth every 50'
  {CALLED_AS} runs/a runs/b -o both.svg
  {CALLED_AS} --hist runs/fp16-no-scaling -o exponents.png
  {CALLED_AS} sweep-folder --as map --by lr,init_scale -o map.svg""")
    parser.add_argument(
        "traces", metavar="RUN|TRACE|SWEEP", nargs="+",
        help="a trace (CSV), or a folder with a trace.csv in it; several: all in one picture with -o, else one of each")
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="what to write: .png, .svg, .pdf, or .html to zoom in (default: a PNG beside the trace)")
    parser.add_argument("--title", help="default: the run's name; '' for none")
    parser.add_argument("--x", choices=("step", "update", "epoch"), default="step", help="what the x axis counts")
    parser.add_argument("--range", type=parse_range, metavar="A:B", help="draw only this part of the x axis")
    parser.add_argument("--log", action="store_true", help="a log axis for the loss, even where it spans little")
    parser.add_argument("--hist", action="store_true",
                        help="draw histograms.csv of RUN instead: exponents against the range of the format")  # fmt: skip
    parser.add_argument("--tensor", default="output_gradient", help="of which tensor (default: output_gradient)")
    sweeps = parser.add_argument_group("of a sweep (its folder, or results.csv)")
    sweeps.add_argument("--as", dest="kind", choices=("map", "fan", "rows", "spread", "steps"),
                        help="map: two axes, a colour for the metric; fan: quantiles along an axis; rows: values side by side; spread: over the "
                             "runs; steps: loss and scale of the kept traces (default: what fits the axes)")  # fmt: skip
    sweeps.add_argument("--by", type=words, default=[], metavar="AXES", help="which axes, with commas: x, y, panels of a map; x, lines of a fan")
    sweeps.add_argument("--metric", type=words, default=[], metavar="COLUMNS", help="which columns of the results, with commas")
    options = parser.parse_args(arguments)
    if options.hist:
        return draw_hist(parser, options)
    import plot_sweep

    sweep = [path for path in map(plot_sweep.results_path, options.traces) if path]
    if sweep:
        if len(options.traces) > 1:
            parser.error("a sweep is drawn by itself: give no other run or sweep with it")
        return draw_sweep(parser, options, sweep[0])
    if options.kind or options.by or options.metric:
        parser.error(f"--as, --by and --metric are for sweeps, and {options.traces[0]} is none (no results.csv)")

    paths = [os.path.join(trace, "trace.csv") if os.path.isdir(trace) else trace for trace in options.traces]
    groups = [paths] if options.output else [[path] for path in paths]
    for group in groups:
        output = checked_output(parser, options.output or os.path.splitext(group[0])[0] + ".png", group)
        title = options.title
        if title is None:
            title = title_of(group[0]) if len(group) == 1 else None if is_page(output) else ""
        try:
            traces = [load(path, options) for path in group]
            if is_page(output):
                write_trace_page(traces, names_of(group), title, options.log, output)
            elif len(group) > 1:
                save(draw_overlay(traces, names_of(group), title, options.log), output)
            else:
                save(draw(traces[0], title, options.log), output)
        except DataError as error:
            sys.stderr.write(f"{CALLED_AS}: error: {error}\n")
            return EXIT_DATA
        print(output)
    return 0


if __name__ == "__main__":
    import plot  # this file, under the name by which plot_sweep.py knows it

    sys.exit(plot.main(sys.argv[1:]))
