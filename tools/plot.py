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


def log2_of(scale):
    with np.errstate(divide="ignore"):
        level = np.log2(scale)
    return np.where(np.isfinite(level), level, np.nan)


def draw_overlay(traces, names, title, log):
    """Several runs: their losses above, their scales below; a filled mark at each growth, a hollow one at each overflow."""
    set_style()
    figure, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(6.0, 4.5), gridspec_kw={"height_ratios": (1, 1.15), "hspace": 0.1})
    upper.patch.set_gid("panel-loss")
    lower.patch.set_gid("panel-scale")
    known = np.concatenate([trace.loss[np.isfinite(trace.loss)] for trace in traces])
    if known.size and (known > 0).all() and (log or known.max() > 30 * known.min()):
        upper.set_yscale("log")
    handles = []
    for number, trace in enumerate(traces):
        colour, dashes, marker = RUN_STYLES[number % len(RUN_STYLES)]
        loss = np.where(np.isfinite(trace.loss), trace.loss, np.nan)
        upper.plot(*thin_line(trace.x, loss), color=colour, linestyle=dashes, linewidth=1, gid=f"run{number}-loss")
        level = log2_of(trace.scale)
        changes = np.flatnonzero(np.append(True, ~(level[1:] == level[:-1])))
        x = np.append(np.repeat(trace.x[changes], 2)[1:], trace.x_end[-1])
        lower.plot(*thin_line(x, np.repeat(level[changes], 2)), color=colour, linestyle=dashes, linewidth=1,
                   gid=f"run{number}-scale")  # fmt: skip
        joins = follows(trace)
        for kind, codes, face in (("growth", ("growth", "ceiling"), colour), ("overflow", OVERFLOWS, "white")):
            rows = np.unique(np.concatenate([marked_rows(trace, EVENTS.index(code), joins) for code in codes]))
            rows = rows[np.isfinite(level[rows])].astype(np.int64)
            if len(rows):
                marks = thin_marks(trace.x[rows], level[rows], max(trace.x_end[-1] - trace.x[0], 1e-9), 20, most=400)
                lower.plot(*marks, marker, color=colour, markerfacecolor=face, markersize=3.2 if len(rows) < 120 else 2,
                           markeredgewidth=0.7, gid=f"run{number}-{kind}", zorder=4)  # fmt: skip
        handles.append(plt.Line2D([], [], color=colour, linestyle=dashes, marker=marker, markersize=4, label=names[number]))
    low, high = lower.get_ylim()
    ticks = list(power_ticks(np.floor(low), np.ceil(high)))
    lower.set_yticks(ticks, [f"$2^{{{int(tick)}}}$" for tick in ticks])
    lower.set_ylim(low, high)
    upper.set_ylabel("loss")
    lower.set_ylabel("loss scale")
    lower.set_xlabel(traces[0].x_name + "        (filled mark: growth, hollow: overflow)")
    upper.tick_params(axis="x", which="both", length=0, labelbottom=False)
    for axes in (upper, lower):
        axes.grid(axis="y", color="#dddddd", linewidth=0.5, zorder=0.5)
        axes.set_axisbelow(True)
        axes.margins(x=0.012)
    if title:
        upper.set_title(plain(title), fontsize=10, fontweight="bold", loc="left", pad=8)
    below = lower.transAxes + ScaledTranslation(0, -36 / 72, figure.dpi_scale_trans)
    for handle in handles:
        handle.set_label(plain(handle.get_label()))
    lower.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=below, frameon=False,
                 ncol=min(3, len(handles)), fontsize=8, handlelength=3.2, borderaxespad=0)  # fmt: skip
    figure.align_ylabels()
    return figure


def plain(text):
    return text.replace("$", r"\$")


def write_html(traces, names, title, path, log):
    """The same as a page that can be zoomed and asked for values; one file, with nothing to fetch."""
    try:
        from plotly import graph_objects
        from plotly.subplots import make_subplots
    except ImportError:
        raise DataError("a page (.html) needs plotly; on Debian and Ubuntu: apt-get install python3-plotly") from None
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.05)
    dashes = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
    symbols = {"growth": "triangle-up", "ceiling": "triangle-up-open", "backoff": "triangle-down", "floor": "triangle-down-open",
               "forgiven": "circle-open", "overflow": "x", "raise": "star"}  # fmt: skip
    for number, (trace, name) in enumerate(zip(traces, names)):
        colour = RUN_STYLES[number % len(RUN_STYLES)][0]
        line = {"color": colour, "dash": dashes[number % len(dashes)], "width": 1.5}
        group = {"legendgroup": name, "mode": "lines", "line": line}
        x, y = thin_line(trace.x, np.where(np.isfinite(trace.loss), trace.loss, np.nan))
        figure.add_trace(graph_objects.Scattergl(x=x, y=y, name=name, **group), row=1, col=1)
        level = log2_of(trace.scale)
        changes = np.flatnonzero(np.append(True, ~(level[1:] == level[:-1])))
        x = np.append(np.repeat(trace.x[changes], 2)[1:], trace.x_end[-1])
        x, y = thin_line(x, np.repeat(level[changes], 2))
        figure.add_trace(graph_objects.Scattergl(x=x, y=y, name=name, showlegend=False, **group), row=2, col=1)
        joins = follows(trace)
        for code, event in enumerate(EVENTS[1:], 1):
            rows = marked_rows(trace, code, joins).astype(np.int64)
            if len(rows):
                x, y = thin_marks(trace.x[rows], level[rows], max(trace.x_end[-1] - trace.x[0], 1e-9), 20)
                marker = {"symbol": symbols[event], "size": 7, "color": BAD if event in OVERFLOWS else GOOD}
                marker["line"] = {"width": 1, "color": colour}
                label = event if len(traces) == 1 else f"{name}: {event}"
                figure.add_trace(graph_objects.Scattergl(x=x, y=y, name=label, mode="markers", marker=marker), row=2, col=1)
    figure.update_yaxes(title_text="loss", type="log" if log else "linear", row=1, col=1)
    figure.update_yaxes(title_text="loss scale", tickprefix="2<sup>", ticksuffix="</sup>", row=2, col=1)
    figure.update_xaxes(title_text=traces[0].x_name, row=2, col=1)
    figure.update_layout(title_text=title, template="plotly_white", height=760, font_family="sans-serif")
    text = figure.to_html(include_plotlyjs=True)
    for number, name in enumerate(dict.fromkeys(re.findall(r'<div id="([-0-9a-f]{36})"', text))):
        text = text.replace(name, f"plot{number}")  # drawn by lot, while the same input shall give the same bytes
    write_file(path, lambda part: open(part, "w", encoding="utf-8").write(text))


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
    handles += draw_scale(lower, trace, joins, last, limit_of(trace.format))
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


def shade_skipped(trace, joins, panels, width):
    """Tinted where the update was skipped; of stretches too many to tell apart, the darker the larger their share."""
    runs = stretches(trace.skipped, joins)
    if not len(runs):
        return None
    left, right, shade = trace.x[runs[:, 0]], trace.x_end[runs[:, 1]], SHADE
    hairline = 0.6 if len(runs) <= 80 else 0  # so that a single step among thousands is seen
    if len(runs) > 400 and trace.x_name != "update":  # (in updates, skipped steps have no width to share)
        edges = np.linspace(trace.x[0], trace.x[0] + width, 401)
        through = np.cumsum(right - left)  # skipped steps up to and with each stretch
        before = np.append(0, through[:-1])
        skipped = np.interp(edges, np.column_stack((left, right)).ravel(), np.column_stack((before, through)).ravel())
        share = np.diff(skipped) / np.diff(edges)
        left, right, share = edges[:-1][share > 0], edges[1:][share > 0], share[share > 0]
        shade = 1 - np.outer(share, 1 - np.array(to_rgb(SHADE)))
    for axes in panels:
        spans = mpl_collections.PolyCollection(
            [((a, 0), (b, 0), (b, 1), (a, 1)) for a, b in zip(left, right)], transform=axes.get_xaxis_transform(),
            facecolors=shade, edgecolors=shade, linewidths=hairline, zorder=0)  # fmt: skip
        spans.set_gid("skipped-" + ("loss" if axes is panels[0] else "scale"))
        axes.add_collection(spans, autolim=False)
    return plt.Rectangle((0, 0), 1, 1, facecolor=SHADE, edgecolor=SHADE)


def draw_loss(axes, trace, joins, log=False):
    axes.patch.set_gid("panel-loss")
    axes.set_ylabel("loss")
    width = max(trace.x_end[-1] - trace.x[0], 1e-9)
    loss = np.where(np.isfinite(trace.loss), trace.loss, np.nan)
    known = loss[~np.isnan(loss)]
    positive = known[known > 0]
    logarithmic = bool(positive.size) and not (known < 0).any() and (log or positive.max() > 30 * positive.min())
    handles = []

    if logarithmic:
        # Zeros, which a log axis has no place for, lie on its lower edge.
        bottom, top = np.log10(positive.min()), np.log10(positive.max())
        pad = 0.06 * (top - bottom) or 0.5
        bottom, top = bottom - pad * (3 if (known == 0).any() else 1), top + pad
        axes.set_yscale("log")
        bottom, top = max(bottom, -320), min(top, 308)
        axes.set_ylim(10.0**bottom, 10.0**top)
        zero = loss == 0
        if zero.any():
            x, y = thin_marks(trace.x[zero], np.full(zero.sum(), 1.0), width, 1)
            low = axes.plot(x, 0.02 * y, "v", color=LOSS, markersize=3, markeredgewidth=0, clip_on=False,
                            transform=axes.get_xaxis_transform(), gid="loss-zero")[0]  # fmt: skip
            handles.append((low, "loss 0"))
            loss = np.where(zero, axes.get_ylim()[0], loss)
        label_decades(axes, bottom, top)
    elif known.size:
        low, high = known.min(), known.max()
        pad = 0.06 * (high - low) or 0.05 * abs(high) or 1
        axes.set_ylim(low - pad, high + pad)
        axes.ticklabel_format(axis="y", useMathText=True, scilimits=(-3, 4))
    else:
        axes.set_yticks([])

    x, y = thin_line(trace.x, loss)
    axes.plot(x, y, color=LOSS, linewidth=1.1, gid="loss", zorder=3)
    alone = ~np.isnan(y)
    alone[1:] &= np.isnan(y[:-1])
    alone[:-1] &= np.isnan(y[1:])
    if alone.any():  # a line cannot show a single point between two gaps
        axes.plot(x[alone], y[alone], ".", color=LOSS, markersize=2.5, markeredgewidth=0, gid="loss-single", zorder=3)

    bad = ~np.isfinite(trace.loss)
    if bad.any():
        runs = stretches(bad, np.diff(trace.step) == 1)
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
        if not known.size:
            axes.text(0.5, 0.5, "no step has a finite loss", transform=axes.transAxes, ha="center", color=MUTED)
    return handles


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


def draw_scale(axes, trace, joins, end, limit=None):
    axes.patch.set_gid("panel-scale")
    axes.set_ylabel("loss scale")
    with np.errstate(divide="ignore"):
        level = np.log2(trace.scale)
    finite = level[np.isfinite(level)]
    low, high = (np.floor(finite.min()), np.ceil(finite.max())) if finite.size else (0.0, 0.0)
    if high == low:
        low, high = low - 1, high + 1
    if limit is not None:  # the largest number of the format, where the scale comes near it
        if limit[0] - high > 4:
            limit = None
        else:
            low, high = min(low, limit[0]), max(high, limit[0])
    span = high - low
    ticks = list(power_ticks(low, high)) if finite.size else []
    labels = [f"$2^{{{int(tick)}}}$" for tick in ticks]
    bottom, top = low - 0.1 * span, high + 0.1 * span
    for value, place, word in ((np.inf, high + 0.2 * span, "inf"), (-np.inf, low - 0.2 * span, "0")):
        if not (level == value).any():
            continue
        # Neither has a place on a log axis: a row of its own, set off by a dotted line.
        level = np.where(level == value, place, level)
        middle = (place + (high if value > 0 else low)) / 2
        axes.axhline(middle, color=MUTED, linewidth=0.7, linestyle=(0, (1, 2.5)), zorder=1)
        ticks.append(place)
        labels.append(word)
        bottom, top = (bottom, place + 0.09 * span) if value > 0 else (place - 0.09 * span, top)
    axes.set_ylim(bottom, top)
    axes.set_yticks(ticks, labels)

    # The step function as its corners: a row's scale holds until the next row, the last one's to the end of its step.
    if limit is not None:
        axes.axhline(limit[0], color=MUTED, linewidth=0.9, linestyle=(0, (5, 2)), zorder=1.5, gid="limit")
        axes.annotate(limit[1], (1, limit[0]), xycoords=("axes fraction", "data"), xytext=(0, 2), textcoords="offset points",
                      ha="right", fontsize=7, color=MUTED)
    same = (level[1:] == level[:-1]) | (np.isnan(level[1:]) & np.isnan(level[:-1]))
    changes = np.flatnonzero(np.append(True, ~same))
    x = np.append(np.repeat(trace.x[changes], 2)[1:], end)
    x, y = thin_line(x, np.repeat(level[changes], 2))
    axes.plot(x, y, color=SCALE, linewidth=1.1 if len(x) < 500 else 0.7, gid="scale", solid_joinstyle="miter", zorder=3)

    rows = {name: marked_rows(trace, EVENTS.index(name), joins) for name in MARKS}
    most = max(map(len, rows.values()))
    size = 4.6 if most <= 60 else 3.4 if most <= 250 else 2.4
    handles = []
    for name, (marker, relative, colour, side, words) in MARKS.items():
        if not len(rows[name]):
            continue
        x, y = thin_marks(trace.x[rows[name]], level[rows[name]], end - trace.x[0], top - bottom)
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


def write_file(path, write):
    """What write(part) puts into a file beside it becomes the file at this path, or nothing does."""
    part = f"{path}.part"
    try:
        write(part)
        os.replace(part, path)
    except OSError as error:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise DataError(f"{path}: {error.strerror or error}") from None


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


def draw_hist(parser, options):
    import plot_hist

    if len(options.traces) > 1 and options.output:
        parser.error("--hist draws one run into one --output")
    for run in options.traces:
        path = os.path.join(run, "histograms.csv") if os.path.isdir(run) else run
        output = options.output or os.path.splitext(path)[0] + ".png"
        if os.path.splitext(output)[1].lower() not in FORMATS[:3]:
            parser.error(f"cannot write '{output}' with --hist: the name must end in {', '.join(FORMATS[:3])}")
        name = format_of(os.path.dirname(os.path.abspath(path)), options.tensor)
        title = title_of(path) if options.title is None else options.title
        set_style()
        try:
            save(plot_hist.draw_histograms(path, options.tensor, name, FORMAT_EXPONENTS.get(name), title), output)
        except (DataError, plot_hist.HistogramError) as error:
            sys.stderr.write(f"{CALLED_AS}: error: {error}\n")
            return EXIT_DATA
        print(output)
    return 0


def draw_sweep(parser, options, path):
    import plot_sweep

    output = options.output or os.path.splitext(path)[0] + ".png"
    if os.path.splitext(output)[1].lower() not in FORMATS[:3]:
        parser.error(f"cannot write '{output}' of a sweep: the name must end in {', '.join(FORMATS[:3])}")
    title = options.title
    if title is None:
        folder = os.path.dirname(os.path.abspath(path))
        title = name_of(folder, "sweep.yaml") or os.path.basename(folder)
    set_style()
    try:
        results = plot_sweep.read_results(path)
        save(plot_sweep.draw_sweep(results, options.kind, options.by, options.metric, title), output)
    except DataError as error:
        sys.stderr.write(f"{CALLED_AS}: error: {error}\n")
        return EXIT_DATA
    print(output)
    return 0


def words(text):
    return [word for word in text.split(",") if word]


def main(arguments):
    parser = argparse.ArgumentParser(
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
        output = options.output or os.path.splitext(group[0])[0] + ".png"
        if os.path.splitext(output)[1].lower() not in FORMATS:
            parser.error(f"cannot write '{output}': the name must end in {', '.join(FORMATS)}")
        if any(os.path.realpath(output) == os.path.realpath(path) for path in group):
            parser.error(f"'{output}' would overwrite the trace")
        title = options.title
        if title is None:
            title = title_of(group[0]) if len(group) == 1 else ""
        try:
            traces = [load(path, options) for path in group]
            if output.lower().endswith(".html"):
                write_html(traces, names_of(group), title, output, options.log)
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
