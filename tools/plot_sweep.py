"""The pictures of a sweep: a map over two axes, fans of quantiles, rows side by side, the spread over seeds, kept traces.

Reads results.csv as docs/sweeps.md describes it, and for the picture over steps the traces that the sweep kept. A quantile q of n numbers is the one
at place q (n - 1), rounded down, as in `scaletrace sweep summarize`; inf is the largest number, NaN is left out.
"""

import csv
import os
from collections import Counter

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import Normalize
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

import plot

KINDS = ("map", "fan", "rows", "spread", "steps")
LOSSES = ("first_loss", "final_loss")
SCALES = ("scale_first", "scale_min", "scale_max", "scale_last", "scale_median")
COUNTS = ("steps", "updates", "skipped", "growths", "backoffs", "steps_at_ceiling")
METRICS = COUNTS + SCALES + LOSSES
WORDS_OF = {"final_loss": "final loss", "first_loss": "first loss", "scale_median": "median scale", "scale_last": "last scale",
            "scale_first": "first scale", "scale_min": "smallest scale", "scale_max": "largest scale", "skipped": "skipped steps",
            "steps_at_ceiling": "steps at the ceiling"}  # fmt: skip
DEFAULT_METRICS = {"map": ("final_loss",), "fan": ("final_loss", "skipped"), "rows": ("final_loss", "skipped", "scale_median"),
                   "spread": ("final_loss", "skipped", "scale_median"), "steps": ()}  # fmt: skip
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
MOST_LINES, MOST_PANELS, MOST_ROWS = len(plot.RUN_STYLES), 9, 60

# Runs that did not end ok have no number worth a colour: a light tint, and a hatch that grey print keeps.
VERDICTS = {"diverged": ("#f4cdbb", "////"), "stuck": ("#e4e4e4", "...."), "inf": ("#f6e3b4", "xxxx"), "zero": ("#cfe3f1", "\\\\\\\\"),
            "raised": ("#ead3e4", "++++"), "invalid": ("#ffffff", "||||")}  # fmt: skip


# ---- Reading -------------------------------------------------------------------------------------------------------


class Results:
    """columns[name]: a float array, or for an axis with words an array of str; verdict: array of str; axes: their names."""

    def __init__(self, path, axes, columns, verdict):
        self.path, self.axes, self.columns, self.verdict = path, axes, columns, verdict

    def __len__(self):
        return len(self.verdict)

    def axis(self, word):
        """The full name of the axis (or of the seeds) that this word means: its path or the end of it."""
        names = self.axes + (["seed"] if "seed" in self.columns and "seed" not in self.axes else [])
        found = [name for name in names if name == word or name.endswith("." + word)]
        if len(found) != 1:
            raise plot.DataError(f"{self.path}: {'no axis' if not found else 'more than one axis'} '{word}'; it has {', '.join(names) or 'none'}")
        return found[0]


def results_path(path):
    """The results.csv that this argument of the command line means, or None where it means none: a run or its trace."""
    if os.path.isdir(path):
        inside = os.path.join(path, "results.csv")
        other = any(os.path.exists(os.path.join(path, name)) for name in ("trace.csv", "config.yaml"))
        sweep = os.path.exists(inside) or os.path.exists(os.path.join(path, "plan.json"))
        return inside if sweep and not other else None
    try:
        with open(path, encoding="latin-1") as file:
            header = file.readline(1 << 16)
    except OSError:
        return None
    return path if header.startswith("run,") and header.rstrip("\r\n").endswith(",verdict") else None


def read_results(path):
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            missing = [name for name in ("run", *METRICS, "verdict") if name not in header]
            if missing:
                raise plot.DataError(f"{path}: no column '{missing[0]}': this is no results.csv of a sweep")
            table = []
            for row in rows:
                if len(row) != len(header):
                    raise plot.DataError(f"{path}:{rows.line_num}: {len(row)} cells, the header has {len(header)}")
                table.append(row)
    except FileNotFoundError:
        raise plot.DataError(f"{path}: no such file; a sweep that is not complete has none: run the same command again, or `scaletrace sweep merge`") from None
    except (OSError, csv.Error) as error:
        raise plot.DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not table:
        raise plot.DataError(f"{path}: a header and no rows: nothing to draw")
    cells = dict(zip(header, zip(*table)))
    axes = [name for name in header[1:header.index("steps")] if name != "seed"]
    columns = {}
    for name in header:
        if name == "verdict":
            continue
        try:
            columns[name] = np.array([float(cell) if cell else np.nan for cell in cells[name]])
        except ValueError:
            if name in METRICS or name in ("run", "seed"):
                line, cell = next((i, c) for i, c in enumerate(cells[name], 2) if c and not is_number(c))
                raise plot.DataError(f"{path}:{line}: {name}: '{plot.shown(cell)}' is not a number") from None
            columns[name] = np.array([plot.shown(cell) or "(none)" for cell in cells[name]])
    return Results(path, axes, columns, np.array(cells["verdict"]))


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_text(values):
    return values.dtype.kind == "U"


def distinct(values):
    """The values that occur: numbers sorted, words in the order of the runs. NaN (no such key) is left out."""
    if is_text(values):
        return list(dict.fromkeys(values.tolist()))
    return np.unique(values[~np.isnan(values)]).tolist()


def free_axes(results):
    """The axes that vary by themselves: not those that another one settles, as the parameters of a policy or the others of a zip."""
    columns = {name: results.columns[name] for name in results.axes}
    codes = {name: np.unique(values, return_inverse=True)[1] for name, values in columns.items()}
    numbers = {name: int(code.max()) + 1 for name, code in codes.items()}
    free = []
    for name in sorted(results.axes, key=lambda axis: (not is_text(columns[axis]), results.axes.index(axis))):
        settled = any(len(np.unique(codes[other].astype(np.int64) * numbers[name] + codes[name])) == numbers[other] and numbers[other] <= 64 for other in free)
        if numbers[name] > 1 and not settled:
            free.append(name)
    return [name for name in results.axes if name in free]


def quantiles(values, levels=QUANTILES):
    known = np.sort(values[~np.isnan(values)])
    if not known.size:
        return np.full(len(levels), np.nan)
    return known[[int(level * (len(known) - 1)) for level in levels]]


# ---- Axes ----------------------------------------------------------------------------------------------------------


def is_power_of_two(values):
    return (values > 0) & np.isfinite(values) & (np.frexp(np.where(np.isfinite(values), values, 1))[0] == 0.5)


class Ruler:
    """Where values lie on an axis, in units of its own: logarithms, numbers, or places in a list of words.

    On a logarithmic one 0 lies below, inf above all others, both named. NaN has no place and stays NaN.
    """

    def __init__(self, name, values):
        self.name = name
        self.words = distinct(values) if is_text(values) else None
        self.zero = self.inf = None
        if self.words is not None:
            self.kind, self.low, self.high = "words", 0, len(self.words) - 1
            return
        finite = values[np.isfinite(values)]
        positive = finite[finite > 0]
        wide = positive.size and not (finite < 0).any() and positive.max() > 30 * positive.min()
        if name in SCALES and positive.size or name not in METRICS and (wide or len(np.unique(positive)) >= 4) and is_power_of_two(finite).all():
            self.kind, self.log = "log2", np.log2
        elif name not in COUNTS and wide:
            self.kind, self.log = "log10", np.log10
        else:
            self.kind = "linear"
            self.low, self.high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
            return
        self.low, self.high = self.log(positive.min()), self.log(positive.max())
        gap = max(0.08 * (self.high - self.low), 0.3)
        self.zero = self.low - gap if (values == 0).any() else None
        self.inf = self.high + gap if np.isposinf(values).any() else None

    def place(self, values):
        if self.kind == "words":
            return np.array([self.words.index(value) for value in values], float)
        values = np.asarray(values, float)
        if self.kind == "linear":
            return np.where(np.isfinite(values), values, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            placed = self.log(values)
        placed = np.where(values == 0, np.nan if self.zero is None else self.zero, placed)
        placed = np.where(np.isposinf(values), np.nan if self.inf is None else self.inf, placed)
        return np.where(np.isfinite(placed), placed, np.nan)

    def ends(self):
        low = self.low if self.zero is None else self.zero
        high = self.high if self.inf is None else self.inf
        return low, high

    def ticks(self):
        """(places, labels), or None: as matplotlib does for plain numbers."""
        if self.kind == "linear":
            return None
        if self.kind == "words":
            return list(range(len(self.words))), [plot.plain(word) for word in self.words]
        base = 2 if self.kind == "log2" else 10
        span = self.high - self.low
        if base == 10 and span < 2.2:
            decades = range(int(np.floor(self.low)), int(np.ceil(self.high)) + 1)
            pairs = [(digit, decade) for decade in decades for digit in ((1, 2, 5) if span < 1.6 else (1, 3))]
            pairs = [(d, e) for d, e in pairs if self.low - 0.02 <= np.log10(d) + e <= self.high + 0.02]
            places = [np.log10(digit) + decade for digit, decade in pairs]
            plain = -3 <= self.low and self.high <= 5
            labels = [f"{digit * 10.0**decade:g}" if plain else rf"${digit}\times10^{{{decade}}}$" for digit, decade in pairs]
        else:
            strides = (1, 2, 4, 8, 16, 32, 64, 128) if base == 2 else (1, 2, 5, 10, 20, 50, 100)
            stride = next(n for n in strides if span / n <= 7)
            first = int(np.ceil((self.low - 1e-9) / stride)) * stride
            places = list(range(first, int(np.floor(self.high + 1e-9)) + 1, stride)) or [int(round(self.low))]
            labels = [f"${base}^{{{place}}}$" for place in places]
        for place, word in ((self.zero, "0"), (self.inf, "inf")):
            if place is not None:
                places.append(place)
                labels.append(word)
        return places, labels

    def dress(self, axes, which, label=None, margin=0.04):
        """Limits, ticks and label of this axis of a panel."""
        low, high = self.ends()
        pad = margin * (high - low) if high > low else 0.5
        getattr(axes, f"set_{which}lim")(low - pad, high + pad)
        axis = getattr(axes, f"{which}axis")
        found = self.ticks()
        if found:
            axis.set_ticks(*found)
        elif self.name in COUNTS:
            axis.set_major_locator(MaxNLocator(5, integer=True))
        else:
            axis.set_major_locator(MaxNLocator(5))
        axis.set_label_text(plot.plain(label if label is not None else words_of(self.name)))

    def edges(self, values):
        """Of cells around these sorted values."""
        at = self.place(values)
        if len(at) == 1:
            return np.array([at[0] - 0.5, at[0] + 0.5])
        middle = (at[1:] + at[:-1]) / 2
        return np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))


def words_of(name):
    return WORDS_OF.get(name, name.rsplit(".", 1)[-1] if "." in name else name)


def told(name, value):
    """An axis and one of its values, in words."""
    if isinstance(value, str):
        return f"{words_of(name)} {value}"
    if value > 0 and np.isfinite(value) and (value >= 1024 or value < 0.1) and np.frexp(value)[0] == 0.5:
        return f"{words_of(name)} $2^{{{int(np.log2(value))}}}$"
    return f"{words_of(name)} {value:g}"


def number_word(value):
    return told("", value).strip().replace("$", "").replace("{", "").replace("}", "")


def number_or_word(value):
    return value if isinstance(value, str) else number_word(value)


def quantile_words(metric, group):
    """The median, and where there are more runs than one, how far they lie apart."""
    at = [number_word(value) for value in quantiles(group)]
    return f"{words_of(metric)} {at[2]}" + (f" (10 % {at[0]}, 90 % {at[4]}; {group.size} runs)" if group.size > 1 else "")


def tip(figure, axes, x, y, *words):
    """What a page says of a place of the picture: x and y are its sides, of a point the same twice."""
    if not hasattr(figure, "tips"):
        figure.tips = []
    figure.tips.append((axes, *x, *y, "\n".join(word for word in words if word)))


def some_of(values, most):
    """Of these values at most so many, evenly."""
    if len(values) <= most:
        return values
    return [values[i] for i in np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))]


# ---- Pictures ------------------------------------------------------------------------------------------------------


def choose(results, kind, by, metrics, has_traces):
    """(kind, axes, metrics) as asked for, with what was not said filled in."""
    axes = [results.axis(word) for word in by] if by else free_axes(results)
    for name in metrics:
        if name not in METRICS:
            raise plot.DataError(f"{results.path}: no metric '{plot.shown(name)}'; known: {', '.join(METRICS)}")
    numeric = [name for name in axes if not is_text(results.columns[name])]
    many = {name: len(distinct(results.columns[name])) for name in axes}
    if kind is None:
        if not axes:
            kind = "spread"
        elif len(numeric) < len(axes) or not any(many[name] > 2 for name in axes):
            kind = "rows"
        elif len([name for name in numeric if many[name] >= 6]) >= 2:
            kind = "map"
        else:
            kind = "fan"
    needed = {"map": 2, "fan": 1, "rows": 1}.get(kind, 0)
    if len(axes) < needed:
        raise plot.DataError(f"{results.path}: a {kind} needs {needed} {'axes' if needed > 1 else 'axis'}; of those it has, these vary: {', '.join(axes) or 'none'}")
    if kind == "fan" and not by:
        axes.sort(key=lambda name: (is_text(results.columns[name]), -many[name]))
    elif kind == "map" and not by:
        axes.sort(key=lambda name: -many[name])
        axes[:2] = sorted(axes[:2], key=results.axes.index)
    elif kind == "rows" and not by:
        axes.sort(key=lambda name: not is_text(results.columns[name]))
    if kind == "fan" and is_text(results.columns[axes[0]]):
        raise plot.DataError(f"{results.path}: a fan needs numbers along its x axis, and {axes[0]} has words (--as rows shows them)")
    if kind == "steps" and not has_traces:
        raise plot.DataError(f"{results.path}: no traces were kept; sweep.keep_traces: all (or sample N) in the config keeps them")
    return kind, axes, list(metrics) or list(DEFAULT_METRICS[kind])


def draw_sweep(results, kind, by, metrics, title):
    """A figure. kind: in KINDS or None, by: words for axes, metrics: columns; what is empty is chosen. Style must be set."""
    folder = os.path.join(os.path.dirname(os.path.abspath(results.path)), "traces")
    kind, axes, metrics = choose(results, kind, by, metrics, os.path.isdir(folder))
    if kind == "steps":
        return draw_steps(results, folder, axes if by else [], title)
    draw = {"map": draw_map, "fan": draw_fan, "rows": draw_rows, "spread": draw_spread}[kind]
    return draw(results, axes, metrics, title)


def frame(figure, title, note, handles=()):
    """Around the panels: title and, smaller, what the picture is made of, above; the legend below."""
    height = figure.get_size_inches()[1]
    top = 1.0
    if title:
        figure.text(0.01, 1 - 0.04 / height, plot.plain(title), fontsize=10, fontweight="bold", va="top")
        top -= 0.22 / height
    figure.text(0.01, top - 0.04 / height, note, fontsize=7.5, color=plot.MUTED, va="top")
    bottom = 0.0
    if handles:  # (Legends "outside" of the panels are newer than Debian 12's matplotlib.)
        longest = max(len(handle.get_label().replace("$", "")) for handle in handles)
        columns = max(1, min(len(handles), 4, int(figure.get_size_inches()[0] * 72 / (4.6 * longest + 50))))
        figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0), ncol=columns, frameon=False, fontsize=8, handlelength=3.2,
                      handleheight=1.2 if isinstance(handles[0], Rectangle) else 0.7, borderaxespad=0.2)  # fmt: skip
        bottom = (0.2 * -(-len(handles) // columns) + 0.06) / height
    figure.get_layout_engine().set(rect=(0, bottom, 1, top - 0.2 / height - bottom))


def over(results, shown, selected=None):
    """What each point stands for: the number of runs, and over what was not shown."""
    rest = [name for name in free_axes(results) if name not in shown]
    seeds = len(distinct(results.columns["seed"])) if "seed" in results.columns and "seed" not in shown else 1
    parts = ([f"{seeds} seeds"] if seeds > 1 else []) + [f"all {words_of(name)}" for name in rest]
    return " and ".join(parts)


def grid_lines(axes, which="y"):
    axes.grid(axis=which, color="#dddddd", linewidth=0.5, zorder=0.5)
    axes.set_axisbelow(True)


def draw_map(results, axes, metrics, title):
    """Two axes, a colour for the median of the metric; where half of the runs or more did not end ok, their verdict."""
    x_name, y_name, metric = axes[0], axes[1], metrics[0]
    panels = [(name, value) for name in axes[2:3] for value in some_of(distinct(results.columns[name]), MOST_PANELS)] or [(None, None)]
    ok = results.verdict == "ok"
    x_ruler, y_ruler = Ruler(x_name, results.columns[x_name]), Ruler(y_name, results.columns[y_name])
    rulers = (x_ruler, y_ruler)
    lists = [distinct(results.columns[name]) for name in (x_name, y_name)]
    cells = []  # of each panel: {(ix, iy): median or verdict}
    for name, value in panels:
        rows = np.ones(len(results), bool) if name is None else results.columns[name] == value
        index = [places_in(results.columns[axis], values) for axis, values in zip((x_name, y_name), lists)]
        rows &= (index[0] >= 0) & (index[1] >= 0)
        groups = {}
        for row in np.flatnonzero(rows):
            groups.setdefault((int(index[0][row]), int(index[1][row])), []).append(row)
        found = {}
        for place, members in groups.items():
            members = np.array(members)
            good = members[ok[members]]
            if 2 * len(good) > len(members):
                found[place] = float(quantiles(results.columns[metric][good], (0.5,))[0])
            else:
                found[place] = Counter(results.verdict[members[~ok[members]]].tolist()).most_common(1)[0][0]
        cells.append(found)
    numbers = np.array([value for found in cells for value in found.values() if not isinstance(value, str)] or [np.nan])
    colour = Ruler(metric, numbers)
    low, high = colour.ends()
    norm = Normalize(low, high if high > low else low + 1)
    columns = min(len(panels), 3)
    rows_of = -(-len(panels) // columns)
    figure, grid = plt.subplots(
        rows_of, columns, sharex=True, sharey=True, squeeze=False, layout="constrained",
        figsize=(5.4 if columns == 1 else 2.3 * columns + 0.9, 4.1 if rows_of == 1 and columns == 1 else 2.3 * rows_of + 0.7))  # fmt: skip
    for axes_ in grid.flat[len(panels):]:
        axes_.set_visible(False)
    scattered = len(set().union(*cells)) < 0.5 * len(lists[0]) * len(lists[1])
    mesh, used = None, []
    for number, (found, (name, value)) in enumerate(zip(cells, panels)):
        panel = grid.flat[number]
        panel.patch.set_gid(f"panel{number}")
        edges = [ruler.edges(values) for ruler, values in zip(rulers, lists)]
        image = np.full((len(lists[1]), len(lists[0])), np.nan)
        for (ix, iy), cell in found.items():
            if not isinstance(cell, str):
                image[iy, ix] = colour.place(np.array([cell]))[0]
        if scattered:
            places = sorted(place for place, cell in found.items() if not isinstance(cell, str))
            at = [ruler.place(values) for ruler, values in zip(rulers, lists)]
            mesh = panel.scatter([at[0][ix] for ix, _ in places], [at[1][iy] for _, iy in places], c=[image[iy, ix] for ix, iy in places],
                                 cmap="cividis", norm=norm, s=14, linewidths=0.3, edgecolors="white", gid=f"map{number}")  # fmt: skip
        else:
            mesh = panel.pcolormesh(*edges, np.ma.masked_invalid(image), cmap="cividis", norm=norm, gid=f"map{number}", linewidth=0,
                                    rasterized=image.size > 40000)  # fmt: skip
        at = edges if not scattered else [[value for place_ in ruler.place(values) for value in (place_, place_)] for ruler, values in zip(rulers, lists)]
        step = 2 if scattered else 1
        for (ix, iy), cell in sorted(found.items()):
            tip(figure, panel, at[0][step * ix:step * ix + 2], at[1][step * iy:step * iy + 2], f"{words_of(x_name)} {number_or_word(lists[0][ix])}",
                f"{words_of(y_name)} {number_or_word(lists[1][iy])}", cell if isinstance(cell, str) else f"{words_of(metric)} {number_word(cell)}")  # fmt: skip
        for verdict, (face, hatch) in VERDICTS.items():
            places = sorted(place for place, cell in found.items() if cell == verdict)
            if not places:
                continue
            used.append(verdict)
            if scattered:
                at = [ruler.place(values) for ruler, values in zip(rulers, lists)]
                panel.scatter([at[0][ix] for ix, _ in places], [at[1][iy] for _, iy in places], s=14, facecolors=face, edgecolors=plot.MUTED,
                              linewidths=0.5, marker="X", gid=f"verdict{number}-{verdict}")  # fmt: skip
                continue
            shapes = Path.make_compound_path(*(rectangle(edges[0][ix:ix + 2], edges[1][iy:iy + 2]) for ix, iy in places))
            panel.add_patch(PathPatch(shapes, facecolor=face, edgecolor=plot.MUTED, hatch=hatch, linewidth=0, gid=f"verdict{number}-{verdict}"))
        for ruler, which in zip(rulers, "xy"):
            ruler.dress(panel, which, label="" if len(panels) > 1 else None)
            getattr(panel, f"set_{which}lim")(edges["xy".index(which)][[0, -1]])
        for spine in ("top", "right"):
            panel.spines[spine].set_visible(True)
        if name is not None:
            panel.set_title(told(name, value), fontsize=8.5, loc="left")
    if len(panels) > 1:
        figure.supxlabel(plot.plain(words_of(x_name)), fontsize=8.5)
        figure.supylabel(plot.plain(words_of(y_name)), fontsize=8.5)
    bar = figure.colorbar(mesh, ax=grid.ravel().tolist(), pad=0.02, aspect=30)
    bar.outline.set_linewidth(0.5)
    bar.set_label(words_of(metric))
    if colour.ticks():
        places, labels = colour.ticks()
        bar.set_ticks(places, labels=labels)
    handles = [Rectangle((0, 0), 1, 1, facecolor=VERDICTS[verdict][0], edgecolor=plot.MUTED, hatch=VERDICTS[verdict][1], linewidth=0.5, label=verdict)
               for verdict in VERDICTS if verdict in used]  # fmt: skip
    shown = axes[:3]
    beyond = over(results, shown)
    left_out = "" if len(axes) < 3 or len(distinct(results.columns[axes[2]])) <= MOST_PANELS else f"; {len(panels)} of {len(distinct(results.columns[axes[2]]))} values of {words_of(axes[2])}"
    note = words_of(metric) + (f", median over {beyond}" if beyond else "") + ("; hatched: how the runs ended that were not ok" if used else "")
    frame(figure, title, note + left_out, handles)
    return figure


def rectangle(x, y):
    return Path([(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1]), (x[0], y[0])], [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY])


def places_in(values, known):
    """Of each value its place in the list, or -1."""
    if is_text(values):
        table = {value: place for place, value in enumerate(known)}
        return np.array([table.get(value, -1) for value in values.tolist()])
    order = np.asarray(known, float)
    found = np.searchsorted(order, values)
    found = np.minimum(found, len(order) - 1)
    return np.where(order[found] == values, found, -1)


def draw_fan(results, axes, metrics, title):
    """Along one axis: the median, and tints from the 10 % to the 90 % and from the 25 % to the 75 % quantile of the runs."""
    x_name, x_values = axes[0], distinct(results.columns[axes[0]])
    x_ruler = Ruler(x_name, results.columns[x_name])
    every = distinct(results.columns[axes[1]]) if len(axes) > 1 else [None]
    lines = some_of(every, MOST_LINES)
    ok = results.verdict == "ok"
    panels = metrics + ([] if ok.all() else ["ok"])
    figure, grid = plt.subplots(len(panels), 1, sharex=True, squeeze=False, layout="constrained", figsize=(6.0, 0.9 + 1.75 * len(panels)))
    spread = False
    place = places_in(results.columns[x_name], x_values)
    for number, (panel, metric) in enumerate(zip(grid[:, 0], panels)):
        panel.patch.set_gid(f"panel{number}")
        values = ok.astype(float) if metric == "ok" else results.columns[metric]
        ruler = Ruler(metric, values)
        if metric == "ok":
            ruler.low, ruler.high = 0.0, 1.0
        for order, line in enumerate(lines):
            colour, dashes, marker = plot.RUN_STYLES[order]
            rows = np.ones(len(results), bool) if line is None else results.columns[axes[1]] == line
            groups = [values[rows & (place == i)] for i in range(len(x_values))]
            present = [i for i, group in enumerate(groups) if group.size]
            x = x_ruler.place(np.array(x_values)[present])
            of = [f"{words_of(x_name)} {number_word(x_values[i])}" + (f"\n{words_of(axes[1])} {number_or_word(line)}" if line is not None else "") for i in present]
            if metric == "ok":
                for i, at, words in zip(present, x, of):
                    tip(figure, panel, (at, at), (groups[i].mean(),) * 2, words, f"{100 * groups[i].mean():.3g} % of {groups[i].size} runs end ok")
                panel.plot(x, [groups[i].mean() for i in present], color=colour, linestyle=dashes, marker=marker, markersize=2.6, linewidth=1,
                           gid=f"fan{number}-{order}", clip_on=False)  # fmt: skip
                continue
            levels = np.array([ruler.place(quantiles(groups[i])) for i in present])
            for i, at, level, words in zip(present, x, levels, of):
                tip(figure, panel, (at, at), (level[2],) * 2, words, quantile_words(metric, groups[i]))
            if any(group.size > 1 for group in groups):
                spread = True
                for low, high, alpha in ((0, 4, 0.14), (1, 3, 0.22)):
                    panel.fill_between(x, levels[:, low], levels[:, high], color=colour, alpha=alpha, linewidth=0, gid=f"fan{number}-{order}-band{low}")
            panel.plot(x, levels[:, 2], color=colour, linestyle=dashes, marker=marker, markersize=2.6, linewidth=1.2, gid=f"fan{number}-{order}")
        ruler.dress(panel, "y", "runs that end ok" if metric == "ok" else None, margin=0.07)
        if metric == "ok":
            panel.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        x_ruler.dress(panel, "x", None if number == len(panels) - 1 else "", margin=0.015)
        grid_lines(panel)
    handles = [plt.Line2D([], [], color=colour, linestyle=dashes, marker=marker, markersize=4, label=told(axes[1], line))
               for line, (colour, dashes, marker) in zip(lines, plot.RUN_STYLES) if len(axes) > 1]  # fmt: skip
    figure.align_ylabels()
    beyond = over(results, axes[:2])
    left_out = "" if len(lines) == len(every) else f"; {len(lines)} of {len(every)} values of {words_of(axes[1])}"
    note = f"median{', 25 to 75 % and 10 to 90 %' if spread else ''}{f' over {beyond}' if beyond else ''}" if spread or beyond else "one run a point"
    frame(figure, title, note + left_out, handles)
    return figure


def draw_rows(results, axes, metrics, title):
    """A row for each value (of two axes: for each pair), a column for each metric: median, and lines to the quantiles."""
    lists = [distinct(results.columns[name]) for name in axes[:2]]
    every = [(first,) for first in lists[0]] if len(lists) == 1 else [(first, second) for first in lists[0] for second in lists[1]]
    masks = {key: np.logical_and.reduce([results.columns[name] == value for name, value in zip(axes, key)]) for key in every}
    every = [key for key in every if masks[key].any()]
    keys = some_of(every, MOST_ROWS)
    figure, grid = plt.subplots(1, len(metrics), sharey=True, squeeze=False, layout="constrained", figsize=(7.2, 1.1 + 0.21 * len(keys)))
    spread = any(masks[key].sum() > 1 for key in keys)
    kept = np.logical_or.reduce([masks[key] for key in keys])
    for number, (panel, metric) in enumerate(zip(grid[0], metrics)):
        panel.patch.set_gid(f"panel{number}")
        ruler = Ruler(metric, results.columns[metric][kept])
        levels = np.array([ruler.place(quantiles(results.columns[metric][masks[key]])) for key in keys])
        heights = -np.arange(len(keys), dtype=float)
        if spread:
            panel.hlines(heights, levels[:, 0], levels[:, 4], color="#0072b2", linewidth=0.9, gid=f"rows{number}-wide", zorder=3)
            panel.hlines(heights, levels[:, 1], levels[:, 3], color="#0072b2", linewidth=3.2, gid=f"rows{number}-narrow", zorder=3)
        panel.plot(levels[:, 2], heights, "o", markersize=4.2, markerfacecolor="white", markeredgecolor="#0072b2", markeredgewidth=1.2,
                   gid=f"rows{number}-median", zorder=4, clip_on=False)  # fmt: skip
        for key, height, level in zip(keys, heights, levels[:, 2]):
            tip(figure, panel, (level, level), (height, height), "\n".join(f"{words_of(name)} {number_or_word(value)}" for name, value in zip(axes, key)),
                quantile_words(metric, results.columns[metric][masks[key]]))  # fmt: skip
            if np.isnan(level):
                panel.text(0.5, height, "NaN", transform=panel.get_yaxis_transform(), ha="center", va="center", fontsize=7.5, color=plot.MUTED)
        ruler.dress(panel, "x", margin=0.06)
        grid_lines(panel, "x")
        panel.set_ylim(-len(keys) + 0.4, 0.6)
        panel.spines["left"].set_visible(False)
        panel.tick_params(axis="y", length=0)
    names = [", ".join(told(name, value).split(" ", 1)[1] if isinstance(value, str) else told(name, value) for name, value in zip(axes, key)) for key in keys]
    grid[0][0].set_yticks(-np.arange(len(keys)), [name if "$" in name else plot.plain(name) for name in names])
    last = grid[0][-1]
    for order, key in enumerate(keys):  # how those ended that did not end ok, at the right
        ends = Counter(results.verdict[masks[key]].tolist())
        bad = [f"{count}/{masks[key].sum()} {verdict}" for verdict, count in ends.most_common() if verdict != "ok"]
        if bad:
            last.text(1.02, -order, ", ".join(bad), transform=last.get_yaxis_transform(), va="center", fontsize=7.5, color=plot.BAD)
    beyond = over(results, axes[:2])
    left_out = "" if len(keys) == len(every) else f"; {len(keys)} of {len(every)} rows"
    frame(figure, title, ((f"median, 25 to 75 % and 10 to 90 %{f' over {beyond}' if beyond else ''}" if spread else "one run a row") + left_out))
    return figure


def draw_spread(results, _, metrics, title):
    """Of each metric the share of the runs that are at most so large; the median and the 10 % and 90 % quantiles marked."""
    figure, grid = plt.subplots(1, len(metrics), sharey=True, squeeze=False, layout="constrained", figsize=(7.2 if len(metrics) > 1 else 4.2, 2.9))
    for number, (panel, metric) in enumerate(zip(grid[0], metrics)):
        panel.patch.set_gid(f"panel{number}")
        values = results.columns[metric]
        known = np.sort(values[~np.isnan(values)])
        ruler = Ruler(metric, values)
        if known.size:
            at = ruler.place(known)
            share = np.arange(1, len(known) + 1) / len(values)
            panel.step(*thinned(np.append(at[0], at), np.append(0, share)), where="post", color="#0072b2", linewidth=1.3, gid=f"spread{number}", zorder=3)
            for level, marker in ((0.1, "<"), (0.5, "o"), (0.9, ">")):
                place = int(level * (len(known) - 1))
                panel.plot(at[place], share[place], marker, color="#0072b2", markerfacecolor="white", markersize=5, markeredgewidth=1.1,
                           gid=f"spread{number}-q{int(100 * level)}", zorder=4)  # fmt: skip
                tip(figure, panel, (at[place],) * 2, (share[place],) * 2, f"{100 * level:.0f} % of the runs: {words_of(metric)} at most {number_word(known[place])}")
        else:
            panel.text(0.5, 0.5, "NaN in every run", transform=panel.transAxes, ha="center", color=plot.MUTED)
        ruler.dress(panel, "x")
        panel.set_ylim(-0.02, 1.02)
        grid_lines(panel)
        missing = len(values) - len(known)
        if missing:
            panel.text(0.98, 0.03, f"NaN: {missing} runs", transform=panel.transAxes, ha="right", fontsize=7.5, color=plot.BAD)
    grid[0][0].set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    grid[0][0].set_ylabel("runs at or below")
    ends = Counter(results.verdict.tolist()).most_common()
    frame(figure, title, f"{len(results)} runs: " + ", ".join(f"{count} {verdict}" for verdict, count in ends) + "; marks: median, 10 % and 90 %")
    return figure


def thinned(x, y, most=4000):
    if len(x) <= most:
        return x, y
    keep = np.unique(np.linspace(0, len(x) - 1, most).astype(int))
    return x[keep], y[keep]


def kept_traces(folder):
    """The numbers of the runs whose traces were kept, in order."""
    try:
        names = [name for name in os.listdir(folder) if name.isdigit() and os.path.exists(os.path.join(folder, name, "trace.csv"))]
    except OSError:
        return []
    return sorted(map(int, names))


def at_steps(trace, values, steps):
    """The values in force at these steps: those of the last row at or before each; NaN before the first."""
    place = np.searchsorted(trace.step, steps, side="right") - 1
    return np.where((place >= 0) & (steps < trace.x_end[-1]), values[np.maximum(place, 0)], np.nan)


def draw_steps(results, folder, axes, title):
    """Loss and scale over the steps, as quantiles over the kept traces; of one axis, a fan for each of its values."""
    runs = kept_traces(folder)
    row_of = {int(run): row for row, run in enumerate(results.columns["run"])}
    runs = [run for run in runs if run in row_of]
    if not runs:
        raise plot.DataError(f"{folder}: no traces of this sweep")
    traces = [plot.read_trace(os.path.join(folder, str(run), "trace.csv")) for run in some_of(runs, 1000)]
    runs = some_of(runs, 1000)
    keys = [results.columns[axes[0]][row_of[run]] for run in runs] if axes else [None] * len(runs)
    lines = some_of(list(dict.fromkeys(keys)) if not axes or is_text(results.columns[axes[0]]) else sorted(set(keys)), MOST_LINES)
    last = max(trace.step[-1] for trace in traces)
    steps = np.unique(np.linspace(0, last, 1500).astype(np.int64))
    figure, grid = plt.subplots(2, 1, sharex=True, layout="constrained", figsize=(6.0, 4.4))
    for number, (panel, name) in enumerate(zip(grid, ("final_loss", "scale_median"))):  # the rulers of a loss and a scale
        panel.patch.set_gid(f"panel{number}")
        table = np.array([at_steps(trace, trace.loss if number == 0 else trace.scale, steps) for trace in traces])
        ruler = Ruler(name, table.ravel())
        for order, line in enumerate(lines):
            colour, dashes, _ = plot.RUN_STYLES[order]
            group = table[[i for i, key in enumerate(keys) if key == line]]
            levels = np.array([ruler.place(quantiles(column)) for column in group.T]).T
            if len(group) > 1:
                for low, high, alpha in ((0, 4, 0.14), (1, 3, 0.22)):
                    panel.fill_between(steps, levels[low], levels[high], color=colour, alpha=alpha, linewidth=0, step="post" if number else None)
            if len(lines) == 1 and len(group) <= 8:
                for values in group:
                    panel.plot(steps, ruler.place(values), color=plot.MUTED, linewidth=0.5, alpha=0.7, drawstyle="steps-post" if number else "default")
            panel.plot(steps, levels[2], color=colour, linestyle=dashes, linewidth=1.3, gid=f"steps{number}-{order}",
                       drawstyle="steps-post" if number else "default", zorder=3)  # fmt: skip
        ruler.dress(panel, "y", "loss scale" if number else "loss", margin=0.06)
        grid_lines(panel)
        panel.margins(x=0.012)
    grid[1].set_xlabel("step")
    grid[1].xaxis.get_major_locator().set_params(integer=True)
    handles = [plt.Line2D([], [], color=colour, linestyle=dashes, label=told(axes[0], line))
               for line, (colour, dashes, _) in zip(lines, plot.RUN_STYLES) if axes]  # fmt: skip
    figure.align_ylabels()
    thin = "; thin: each run" if len(lines) == 1 and len(runs) <= 8 else ""
    frame(figure, title, f"median, 25 to 75 % and 10 to 90 % of {len(runs)} kept traces{thin}", handles)
    return figure
