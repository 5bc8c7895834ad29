"""Figures that plotly draws on pages, of traces and of histograms: to zoom in, and to read values. They show what the pictures of plot.py and
plot_hist.py show, and are made of plain lists, so that they come out the same with any version of plotly."""

import numpy as np

import plot
from plot_page import DASHES, INK, MUTED, SYMBOLS, axis, layout, numbers, power

HEIGHT = 620
MOST_MARKS = 4000  # of one kind; closer than a fraction of a pixel to another, a mark is left out
SHADES = (0.25, 0.5, 0.75, 1.0)  # shares of skipped steps that are told apart where there are too many stretches


def trace_figure(traces, names, title, log, row_of=None):
    """Losses above, scales below, of one run or several. row_of: {row of the only trace: row of a table of its events}, for links from the marks."""
    one = len(traces) == 1
    losses, scales = plot.LossAxis(traces, log), plot.ScaleAxis(traces)
    x_name = traces[0].x_name
    first = min(trace.x[0] for trace in traces)
    width = max(trace.x_end[-1] for trace in traces) - first or 1
    low, high = (10.0**losses.bottom, 10.0**losses.top) if losses.logarithmic else (losses.bottom, losses.top)
    if low is None:
        low, high = 0.0, 1.0
    span = scales.top - scales.bottom
    lanes = [] if one else [number for number, trace in enumerate(traces) if trace.skipped.any()]
    bottom = scales.bottom - 0.04 * span * (len(lanes) + 0.5) if lanes else scales.bottom
    data = []
    for number, (trace, name) in enumerate(zip(traces, names)):
        colour = plot.RUN_STYLES[number % len(plot.RUN_STYLES)][0]
        dash = DASHES[number % len(DASHES)]
        joins = plot.follows(trace)
        group = {"legendgroup": name} if not one else {}
        # Skipped steps: one run's as a tint of both panels, several runs' as bars in lanes below the scales.
        if one:
            panels = (("y", low, high), ("y2", bottom, scales.top))
            data += skipped_shapes(trace, joins, width, plot.SHADE, panels, "skipped steps", {})
        elif number in lanes:
            at = bottom + 0.04 * span * (len(lanes) - lanes.index(number) - 0.8)
            data += skipped_shapes(trace, joins, width, colour, (("y2", at, at + 0.03 * span),), f"{name}: skipped steps", {**group, "showlegend": False})
        x, y = plot.thin_line(trace.x, losses.place(trace.loss))
        label = "" if one else f"{name}: "
        data.append({"type": "scatter", "mode": "lines", "x": numbers(x), "y": numbers(y), "yaxis": "y", "name": "loss" if one else name, **group,
                     "line": {"color": plot.LOSS if one else colour, "dash": dash, "width": 1.5}, "showlegend": not one, "meta": f"run{number}-loss",
                     "hovertemplate": f"{plot_word(label)}{x_name} %{{x}}: loss %{{y:.6g}}<extra></extra>"})  # fmt: skip
        alone = plot.lone_points(y)
        if alone.any():
            data.append(marks(x[alone], y[alone], "y", "loss", "circle", 3, plot.LOSS if one else colour, f"run{number}-loss-single", group, show=False))
        zeros = np.flatnonzero(trace.loss == 0) if losses.logarithmic else np.zeros(0, np.int64)
        for rows, what, at, symbol, kind in ((np.unique(plot.nonfinite_losses(trace)), "loss inf or NaN", high, "diamond", "nonfinite"),
                                             (zeros, "loss 0", low, "triangle-down", "zero")):  # fmt: skip
            if len(rows):
                x, y = plot.thin_marks(trace.x[rows], np.full(len(rows), at), width, high - low, MOST_MARKS)
                data.append(marks(x, y, "y", label + what, symbol, 6, plot.LOSS if one else colour, f"run{number}-loss-{kind}", group, show=one, clip=False))
        level = scales.place(trace.scale)
        x, y = plot.thin_line(*plot.steps_of(trace, level))
        data.append({"type": "scatter", "mode": "lines", "x": numbers(x), "y": numbers(y), "yaxis": "y2", "name": "loss scale" if one else name, **group,
                     "line": {"color": plot.SCALE if one else colour, "dash": dash, "width": 1.5}, "showlegend": False, "meta": f"run{number}-scale",
                     "hoverinfo": "skip"})  # fmt: skip
        for code, event in enumerate(plot.EVENTS[1:], 1):
            rows = plot.marked_rows(trace, code, joins).astype(np.int64)
            if not len(rows):
                continue
            kept = thinned_rows(trace, rows, level, width, span)
            overflow = event in plot.OVERFLOWS
            words = [f"{plot_word(label)}step {trace.step[row]:.0f}: {event}<br>scale {power(trace.scale[row])}, loss {trace.loss[row]:.6g}" for row in kept]
            mark = marks(trace.x[kept], level[kept], "y2", label + (plot.MARKS[event][4] if one else event), SYMBOLS[event], 8,
                         (plot.BAD if overflow else plot.GOOD) if one else colour, f"run{number}-event-{event}", {})  # fmt: skip
            mark.update(text=words, hovertemplate="%{text}<extra></extra>", showlegend=one, **group)
            if row_of is not None:
                mark["customdata"] = [row_of.get(int(row), -1) for row in kept]
            data.append(mark)
    margin = 0.012 * width
    shapes = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "y0": at, "y1": at, "line": {"color": MUTED, "width": 1, "dash": dash}}
              for at, dash in [(at, "dot") for at in scales.borders()] + [(at, "dash") for at, _ in scales.limits]]  # fmt: skip
    notes = [{"xref": "paper", "x": 1, "xanchor": "right", "yref": "y2", "y": at, "yanchor": "bottom", "text": words, "showarrow": False,
              "font": {"size": 11, "color": MUTED}} for at, words in scales.limits]  # fmt: skip
    if losses.bottom is None:
        notes.append({"xref": "paper", "x": 0.5, "yref": "y", "y": 0.5, "text": "no step has a finite loss", "showarrow": False, "font": {"color": MUTED}})
    loss_axis = axis(domain=[0.56, 1], title={"text": "loss"}, anchor="x", exponentformat="power", type="log" if losses.logarithmic else "linear",
                     range=[losses.bottom, losses.top] if losses.bottom is not None else [0, 1], showticklabels=losses.bottom is not None)  # fmt: skip
    if losses.logarithmic:
        loss_axis["dtick"] = max(1, round((losses.top - losses.bottom) / 5)) if losses.top - losses.bottom > 2 else None
    figure_layout = layout(
        shapes=shapes, annotations=notes, hovermode="closest", xaxis=axis(anchor="y2", title={"text": x_name}, range=[first - margin, first + width + margin]),
        yaxis={k: v for k, v in loss_axis.items() if v is not None},
        yaxis2=axis(domain=[0, 0.52], title={"text": "loss scale"}, anchor="x", range=[bottom, scales.top], tickvals=[float(tick) for tick in scales.ticks],
                    ticktext=[word or f"2<sup>{int(tick)}</sup>" for tick, word in zip(scales.ticks, scales.words)]))  # fmt: skip
    if title:
        figure_layout["title"] = {"text": plot_word(title), "x": 0.01, "xanchor": "left", "font": {"size": 16}}
        figure_layout["margin"]["t"] = 50
    return {"data": data, "layout": figure_layout}


def plot_word(text):
    """Plotly takes a few tags of HTML in texts."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def marks(x, y, y_axis, name, symbol, size, colour, meta, group, show=True, clip=True):
    line = {"width": 1.5, "color": colour} if symbol.endswith("open") else {"width": 0}
    return {"type": "scatter", "mode": "markers", "x": numbers(x), "y": numbers(y), "yaxis": y_axis, "name": plot_word(name), "showlegend": show, "meta": meta,
            "marker": {"symbol": symbol, "size": size, "color": colour, "line": line}, "cliponaxis": clip, **group}  # fmt: skip


def thinned_rows(trace, rows, level, width, span):
    if len(rows) <= MOST_MARKS:
        return rows
    cells = np.round(np.column_stack((trace.x[rows] / width * plot.SLICES, level[rows] / span * (plot.SLICES / 2)))).astype(np.int64)
    return rows[np.sort(np.unique(cells, axis=0, return_index=True)[1])]


def skipped_shapes(trace, joins, width, colour, panels, name, group):
    """Filled areas, a trace for each shade and panel: plotly takes thousands of them in one trace, as shapes it would be slow."""
    left, right, share = plot.skipped_spans(trace, joins, width, most=2000, slices=1000)
    found = []
    shade_of = np.searchsorted(SHADES, share - 1e-12)
    for place, opacity in enumerate(SHADES):
        these = np.flatnonzero(shade_of == place)
        if not len(these):
            continue
        a, b = left[these], right[these]
        x = np.column_stack((a, a, b, b, np.full(len(a), np.nan))).ravel()
        for y_axis, low, high in panels:
            y = np.tile([low, high, high, low, np.nan], len(a))
            first = not found and y_axis == panels[0][0]
            found.append({"type": "scatter", "mode": "lines", "fill": "toself", "x": numbers(x), "y": numbers(y), "yaxis": y_axis, "name": plot_word(name),
                          "fillcolor": colour, "opacity": opacity, "line": {"color": colour, "width": 0.8 if len(a) <= 80 else 0}, "hoverinfo": "skip",
                          "showlegend": first, "legendgroup": name, "meta": f"skipped-{y_axis}", **group})  # fmt: skip
    return found


def histogram_figure(x, x_name, edges, panels, limits, title, label):
    """panels: [(words, exponents, share[exponent, x])]; limits: [(exponent, words)]."""
    data, shapes, notes, axes = [], [], [], {}
    bottom = min([exponents[0] - 0.5 for _, exponents, _ in panels] + [at - 2.5 for at, _ in limits])
    top = max([exponents[-1] + 0.5 for _, exponents, _ in panels] + [at + 2.5 for at, _ in limits])
    ticks = [tick for tick in range(-200, 200, 4 if top - bottom < 48 else 16) if bottom <= tick <= top]
    part = 1 / len(panels)
    for number, (words, exponents, share) in enumerate(panels):
        suffix = str(number + 1) if number else ""
        with np.errstate(divide="ignore"):
            z = np.log10(share)
        data.append({"type": "heatmap", "x": numbers(edges), "y": numbers(np.append(exponents, exponents[-1] + 1) - 0.5), "z": [numbers(row) for row in z],
                     "text": [[f"{100 * value:.3g} %" for value in row] for row in share.tolist()], "xaxis": "x" + suffix, "yaxis": "y" + suffix, "zmin": -4, "zmax": 0,
                     "colorscale": "Cividis", "reversescale": True, "showscale": number == 0, "meta": f"histogram{number}", "hoverongaps": False,
                     "hovertemplate": f"{x_name} %{{x}}, exponent %{{y}}: %{{text}}<extra></extra>",
                     "colorbar": {"title": {"text": "share of the entries", "side": "right"}, "tickvals": [-4, -3, -2, -1, 0], "outlinewidth": 0,
                                  "ticktext": ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"]}})  # fmt: skip
        axes["xaxis" + suffix] = axis(domain=[part * number, part * (number + 1) - 0.03], anchor="y" + suffix, title={"text": x_name}, showgrid=False,
                                      **({"matches": "x"} if number else {}))  # fmt: skip
        axes["yaxis" + suffix] = axis(anchor="x" + suffix, range=[bottom, top], tickvals=ticks, ticktext=[f"2<sup>{tick}</sup>" for tick in ticks],
                                      **({"matches": "y", "showticklabels": False} if number else {"title": {"text": label}}))  # fmt: skip
        for (at, what), dash in zip(limits, ("solid", "dash", "dot")):
            shapes.append({"type": "line", "xref": f"x{suffix} domain", "x0": 0, "x1": 1, "yref": "y" + suffix, "y0": at, "y1": at,
                           "line": {"color": plot.BAD, "width": 1.5, "dash": dash}})  # fmt: skip
            notes.append({"xref": f"x{suffix} domain", "x": 0.99, "xanchor": "right", "yref": "y" + suffix, "y": at, "showarrow": False, "text": what,
                          "yanchor": "top" if what == "smallest subnormal" else "bottom", "font": {"size": 11, "color": "#a03010"}})  # fmt: skip
        notes.append({"xref": f"x{suffix} domain", "x": 0, "xanchor": "left", "yref": "paper", "y": 1.01, "yanchor": "bottom", "showarrow": False, "text": words,
                      "font": {"size": 12, "color": INK}})  # fmt: skip
    figure_layout = layout(shapes=shapes, annotations=notes, **axes)
    figure_layout["margin"]["t"] = 70
    if title:
        figure_layout["title"] = {"text": plot_word(title), "x": 0.01, "xanchor": "left", "font": {"size": 16}}
    return {"data": data, "layout": figure_layout}


__all__ = ["HEIGHT", "histogram_figure", "trace_figure"]
