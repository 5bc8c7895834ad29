#!/usr/bin/python3
# (Not `env python3`: Debian's matplotlib belongs to Debian's interpreter, and another python3 may stand first on PATH.)
"""Draws a trace: the loss above, the loss scale below as steps on a log2 axis, with a mark for each event.

Reads trace.csv as the program writes it (or any CSV with its columns) and writes one PNG, SVG or PDF. What the columns
and events mean is settled in lib/trace and lib/base/event.h; this file only shows them.
"""

import argparse
import logging
import os
import re
import sys
import warnings

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
    sys.stderr.write(f"plot.py: error: {missing}; on Debian and Ubuntu: apt-get install python3-matplotlib\n")
    sys.exit(3)

EXIT_USAGE, EXIT_DATA = 2, 3
FORMATS = (".png", ".svg", ".pdf")

# Line thinning: at most four points (first, lowest, highest, last) for each of this many slices of the x axis. That
# is finer than the pixels of the picture, so the thinned line looks like the full one.
SLICES = 3000


class DataError(Exception):
    """What is wrong with the input, in one line."""


# ---- Reading -------------------------------------------------------------------------------------------------------

EVENTS = ("", "raise", "floor", "forgiven", "backoff", "overflow", "ceiling", "growth")  # lib/base/event.h
OVERFLOWS = ("raise", "floor", "forgiven", "backoff", "overflow")  # events of steps whose gradients were not finite


class Trace:
    """Arrays, one entry a row: step, loss, scale, good (float; good may be None), skipped (bool), event (in EVENTS)."""


def read_trace(path):
    try:
        with open(path, "rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                raise DataError(f"{path}: the file is empty")
            file.seek(-1, os.SEEK_END)
            complete = file.read(1) == b"\n"
        with open(path, encoding="latin-1", newline="") as file:  # every byte is a character
            header = file.readline(1 << 16).rstrip("\r\n").split(",")
            wanted = wanted_columns(path, header)
            table = read_table(path, file, header, wanted, complete)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None

    trace = Trace()
    trace.step, trace.loss, trace.scale = table["step"], table["loss"], table["loss_scale"]
    trace.good = table["good_steps"] if "good_steps" in wanted else None
    not_later = np.flatnonzero(~(np.diff(trace.step) > 0))
    if not_later.size or not np.isfinite(trace.step).all():
        row = int(not_later[0]) + 1 if not_later.size else 0
        raise DataError(f"{path}:{row + 2}: step {trace.step[row]:g} does not come after the one before it")
    negative = np.flatnonzero(trace.scale < 0)
    if negative.size:
        raise DataError(f"{path}:{negative[0] + 2}: loss_scale {trace.scale[negative[0]]:g} is negative")

    trace.event = np.zeros(len(table), np.int8)
    if "event" in wanted:
        known = table["event"] == b""
        for code, name in enumerate(EVENTS[1:], 1):
            this = table["event"] == name.encode()
            trace.event[this] = code
            known |= this
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            cell = shown(table["event"][row].decode("latin-1"))
            raise DataError(f"{path}:{row + 2}: event: '{cell}' is none of {', '.join(EVENTS[1:])}")
    if "grads_finite" in wanted:
        trace.skipped = table["grads_finite"] == 0
        if "event" not in wanted:
            trace.event[trace.skipped] = EVENTS.index("overflow")
    else:
        trace.skipped = np.isin(trace.event, [EVENTS.index(name) for name in OVERFLOWS])
    return trace


def wanted_columns(path, header):
    found = f"(found: {shown(','.join(header))})"
    for name in ("step", "loss", "loss_scale"):
        if name not in header:
            raise DataError(f"{path}: no column '{name}' {found}")
    if "grads_finite" not in header and "event" not in header:
        raise DataError(f"{path}: neither a column 'grads_finite' nor one 'event' {found}")
    if len(set(header)) != len(header):
        raise DataError(f"{path}: a column stands twice in the header {found}")
    return [name for name in ("step", "loss", "loss_scale", "good_steps", "grads_finite", "event") if name in header]


def read_table(path, file, header, wanted, complete):
    """The rows as an array with the header's names; columns that are not wanted keep one byte a cell."""
    types = [(name, "S1" if name not in wanted else "S12" if name == "event" else "f8") for name in header]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "no data": said below
            table = np.loadtxt(file, dtype=types, delimiter=",", comments=None, ndmin=1)
    except ValueError as error:
        raise bad_row(path, types, complete) or DataError(f"{path}: {shown(str(error))}") from None
    if not complete:
        raise DataError(f"{path}: the last line is cut off (it has no line end)")
    if not len(table):
        raise DataError(f"{path}: a header and no rows: nothing to draw")
    return table


def bad_row(path, types, complete):
    """The error of the first row that cannot be read, or None. Slow: for files that are known to be bad."""
    with open(path, encoding="latin-1", newline="") as file:
        for number, line in enumerate(file, 1):
            if not complete and not line.endswith("\n"):
                return DataError(f"{path}:{number}: the last line is cut off (it has no line end)")
            cells = line.rstrip("\r\n").split(",")
            if number == 1 or cells == [""]:
                continue
            if len(cells) != len(types):
                return DataError(f"{path}:{number}: {len(cells)} cells, the header has {len(types)}")
            for (name, kind), cell in zip(types, cells):
                if kind != "f8":
                    continue
                try:
                    float(cell)
                except ValueError:
                    return DataError(f"{path}:{number}: {name}: '{shown(cell)}' is not a number")
    return None


def shown(text, longest=80):
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def name_of(folder):
    """The `name` of the run in this folder, or None. A line of a file that the program wrote needs no YAML reader."""
    try:
        with open(os.path.join(folder, "config.resolved.yaml"), encoding="utf-8", errors="replace") as file:
            for line in file:
                found = re.match(r"name:\s*(.+?)\s*$", line)
                if found:
                    return found.group(1).strip("\"'")
    except OSError:
        pass
    return None


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
    slice_of = np.minimum(((x - x[0]) * (SLICES / (x[-1] - x[0]))).astype(np.int64), SLICES - 1)
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


def draw(trace, title):
    matplotlib.rcdefaults()  # not the user's matplotlibrc: the same trace gives the same picture everywhere
    matplotlib.rcParams.update(STYLE)
    figure, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(6.0, 4.3), gridspec_kw={"height_ratios": (1, 1.15), "hspace": 0.1})

    first, last = trace.step[0], trace.step[-1] + 1  # a step holds its scale until the next one begins
    margin = 0.012 * (last - first)
    lower.set_xlim(first - margin, last + margin)
    joins = follows(trace)
    shaded = shade_skipped(trace, joins, (upper, lower), last - first)
    handles = draw_loss(upper, trace, joins)
    handles += draw_scale(lower, trace, joins, last)
    if shaded:
        handles.append((shaded, "skipped steps"))

    upper.tick_params(axis="x", which="both", length=0, labelbottom=False)
    upper.spines["bottom"].set_visible(False)
    lower.set_xlabel("step")
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
    left, right, shade = trace.step[runs[:, 0]], trace.step[runs[:, 1]] + 1, SHADE
    hairline = 0.6 if len(runs) <= 80 else 0  # so that a single step among thousands is seen
    if len(runs) > 400:
        edges = np.linspace(trace.step[0], trace.step[0] + width, 401)
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


def draw_loss(axes, trace, joins):
    axes.patch.set_gid("panel-loss")
    axes.set_ylabel("loss")
    loss = np.where(np.isfinite(trace.loss), trace.loss, np.nan)
    known = loss[~np.isnan(loss)]
    positive = known[known > 0]
    logarithmic = bool(positive.size) and not (known < 0).any() and positive.max() > 30 * positive.min()
    handles = []

    if logarithmic:
        # Zeros, which a log axis has no place for, lie on its lower edge.
        bottom, top = np.log10(positive.min()), np.log10(positive.max())
        pad = 0.06 * (top - bottom)
        bottom, top = bottom - pad * (3 if (known == 0).any() else 1), top + pad
        axes.set_yscale("log")
        bottom, top = max(bottom, -320), min(top, 308)
        axes.set_ylim(10.0**bottom, 10.0**top)
        zero = loss == 0
        if zero.any():
            x, y = thin_marks(trace.step[zero], np.full(zero.sum(), 1.0), trace.step[-1] - trace.step[0] + 1, 1)
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

    x, y = thin_line(trace.step, loss)
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
            [((trace.step[a], 0.985), (trace.step[b] + 1, 0.985)) for a, b in runs if b > a], transform=at_top,
            colors=LOSS, linewidths=2.2, zorder=4, gid="loss-nonfinite-stretch")  # fmt: skip
        axes.add_collection(bars, autolim=False)
        ends = np.unique(runs)
        x, y = thin_marks(trace.step[ends], np.full(len(ends), 1.0), trace.step[-1] - trace.step[0] + 1, 1)
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


def draw_scale(axes, trace, joins, end):
    axes.patch.set_gid("panel-scale")
    axes.set_ylabel("loss scale")
    with np.errstate(divide="ignore"):
        level = np.log2(trace.scale)
    finite = level[np.isfinite(level)]
    low, high = (np.floor(finite.min()), np.ceil(finite.max())) if finite.size else (0.0, 0.0)
    if high == low:
        low, high = low - 1, high + 1
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
    same = (level[1:] == level[:-1]) | (np.isnan(level[1:]) & np.isnan(level[:-1]))
    changes = np.flatnonzero(np.append(True, ~same))
    x = np.append(np.repeat(trace.step[changes], 2)[1:], end)
    x, y = thin_line(x, np.repeat(level[changes], 2))
    axes.plot(x, y, color=SCALE, linewidth=1.1 if len(x) < 500 else 0.7, gid="scale", solid_joinstyle="miter", zorder=3)

    rows = {name: marked_rows(trace, EVENTS.index(name), joins) for name in MARKS}
    most = max(map(len, rows.values()))
    size = 4.6 if most <= 60 else 3.4 if most <= 250 else 2.4
    handles = []
    for name, (marker, relative, colour, side, words) in MARKS.items():
        if not len(rows[name]):
            continue
        x, y = thin_marks(trace.step[rows[name]], level[rows[name]], end - trace.step[0], top - bottom)
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
    part = f"{path}.part"
    try:
        figure.savefig(part, format=extension[1:], metadata=metadata[extension], bbox_inches="tight", pad_inches=0.06)
        os.replace(part, path)
    except OSError as error:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise DataError(f"{path}: {error.strerror or error}") from None


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="plot.py",
        description="Draws a trace: the loss above, the loss scale below, a mark for each event.",
        epilog="examples:  plot.py runs/quickstart   plot.py trace.csv -o figure.pdf --title 'growth every 50'")
    parser.add_argument(
        "traces", metavar="TRACE|RUNFOLDER", nargs="+",
        help="a trace (CSV), or a folder with a trace.csv in it; several: a picture of each")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="what to write: .png, .svg or .pdf (default: a PNG beside the trace)")
    parser.add_argument("--title", help="default: the run's name; '' for none")
    options = parser.parse_args(arguments)

    if options.output is not None and len(options.traces) > 1:
        parser.error(f"found {len(options.traces)} traces with one --output; allowed: one trace, or no --output")
    paths = [os.path.join(trace, "trace.csv") if os.path.isdir(trace) else trace for trace in options.traces]
    for path in paths:
        output = options.output or os.path.splitext(path)[0] + ".png"
        if os.path.splitext(output)[1].lower() not in FORMATS:
            parser.error(f"cannot write '{output}': the name must end in {', '.join(FORMATS)}")
        if os.path.realpath(output) == os.path.realpath(path):
            parser.error(f"'{output}' would overwrite the trace")
        title = options.title
        if title is None:
            folder = os.path.dirname(os.path.abspath(path))
            title = name_of(folder) or os.path.splitext(os.path.basename(path))[0]
        try:
            save(draw(read_trace(path), title), output)
        except DataError as error:
            sys.stderr.write(f"plot.py: error: {error}\n")
            return EXIT_DATA
        print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
