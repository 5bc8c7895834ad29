"""Pages (HTML): one file each that fetches nothing, light or dark as the reader likes, grey on paper.

Every picture is there as matplotlib draws it, an SVG whose colours are variables of the page: on paper, where scripts are off, and for pictures of
sweeps. Those of traces and histograms are drawn a second time by plotly, to zoom in and read values. What is drawn of a trace: plot.py.
"""

import html
import io
import json
import math
import os
import re

import numpy as np

import plot_read

# Colours of the pictures: in the light, in the dark.
PALETTE = {
    "#1a1a1a": "#e6e6e6", "#666666": "#a3a8ae", "#dddddd": "#3b4047", "#ffffff": "#15181c",
    "#1f5a93": "#7fb5ea", "#c8401a": "#ff8d63", "#0b7a5a": "#45c79d", "#f7dfd6": "#3b251d", "#a03010": "#ffb295",
    "#0072b2": "#58ace4", "#d55e00": "#ff8c42", "#009e73": "#35c79b", "#cc79a7": "#e39cc4", "#e69f00": "#f0b43c", "#56b4e9": "#8fd0f5",
    "#f4cdbb": "#5e3120", "#e4e4e4": "#41464d", "#f6e3b4": "#52451b", "#cfe3f1": "#1f4058", "#ead3e4": "#4d2d45",
}  # fmt: skip

STYLE = """
:root { color-scheme: light dark; %(light)s --tile: #f5f6f7; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { %(dark)s --tile: #1f2329; --link: #7fb5ea; } }
:root[data-theme=dark] { color-scheme: dark; %(dark)s --tile: #1f2329; --link: #7fb5ea; }
:root[data-theme=light] { color-scheme: light; }
body { margin: 0 auto; padding: 1.2rem 1.4rem 3rem; min-height: 3rem; max-width: 70rem; background: var(--ffffff); color: var(--1a1a1a);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 3rem .6rem 0; overflow-wrap: anywhere; }
a { color: var(--link); }
sup { line-height: 0; }
#theme { position: absolute; top: 1rem; right: max(1.4rem, calc(50%% - 33.6rem)); border: 1px solid var(--dddddd); border-radius: 6px; background: var(--tile);
  color: inherit; font: inherit; font-size: .85rem; padding: .15rem .6rem; cursor: pointer; }
.figure { margin: .4rem 0 1.2rem; }
.picture svg { display: block; width: 100%%; max-width: 54rem; height: auto; margin: 0 auto; }
.picture [id*="-map"] path, .picture [id*="-histogram"] path { shape-rendering: crispEdges; }  /* no seams between cells */
.plot { width: 100%%; }
.scripts .with-plot .picture { display: none; }
html:not(.scripts) .plot, html:not(.scripts) #theme, html:not(.scripts) .needs-script { display: none; }
@media print {
  :root:root:root { color-scheme: light; %(light)s --tile: #ffffff; --link: #1a1a1a; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  #theme, .plot, .needs-script { display: none !important; }
  .scripts .with-plot .picture { display: block; }
  .picture svg { max-width: 16cm; }
  .figure, tr, li { break-inside: avoid; }
  a { text-decoration: none; }
}
"""

SCRIPT = """
(function () {
  "use strict";
  const palette = %(palette)s, root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)"), plots = [];
  root.classList.add("scripts");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  // The same figure with the other colours.
  function themed(value) {
    if (Array.isArray(value)) return value.length && typeof value[0] === "number" ? value : value.map(themed);
    if (value && value.type === "heatmap" && dark()) value = {...value, reversescale: !value.reversescale};  // many: far from the colour of the page
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, themed(v)]));
    return typeof value === "string" && dark() && palette[value] || value;
  }
  function draw(plot) {
    const layout = themed(plot.figure.layout);
    // What the reader zoomed to stays.
    for (const [name, axis] of Object.entries(plot.place.layout || {})) {
      if (/^[xy]axis\\d*$/.test(name) && layout[name] && axis.range && axis.autorange !== true) layout[name].range = axis.range.slice();
    }
    if (plot.mark) layout.shapes = (layout.shapes || []).concat(themed(plot.mark));
    return Plotly.react(plot.place, themed(plot.figure.data), layout, {responsive: true, displaylogo: false, scrollZoom: true,
      modeBarButtonsToRemove: ["select2d", "lasso2d"]});
  }
  window.scaletrace = {plots, add(id, figure) { const plot = {figure, place: document.getElementById(id)}; plots.push(plot); draw(plot); return plot; }, draw};
  const button = document.getElementById("theme");
  const label = () => { button.textContent = dark() ? "light" : "dark"; };
  button.onclick = () => { root.dataset.theme = dark() ? "light" : "dark"; label(); plots.forEach(draw); };
  system.addEventListener("change", () => { label(); plots.forEach(draw); });
  label();
})();
"""


def variables(place):
    return " ".join(f"--{light[1:]}: {(light, dark)[place]};" for light, dark in PALETTE.items())


def escape(text):
    return html.escape(str(text), quote=True)


def script_json(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("</", "<\\/").replace("<!--", "<\\!--")


def page(title, body, figures=(), style="", script=""):
    """The text of a page. figures: (id, what plotly shall draw there); the body has a place for each, made by figure_place."""
    own = {"light": variables(0), "dark": variables(1)}
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>{STYLE % own}{style}</style>\n</head>\n<body>\n',  # no icon is asked for
        '<button id="theme" type="button" title="light or dark">dark</button>\n', body, "\n"]  # fmt: skip
    if figures:
        parts.append(f'<script>window.PlotlyConfig = {{MathJaxConfig: "local"}};</script>\n<script>{plotly_library()}</script>\n')
    parts.append(f"<script>{SCRIPT % {'palette': script_json(PALETTE)}}")
    parts += [f"scaletrace.add({script_json(name)}, {script_json(figure)});\n" for name, figure in figures]
    parts.append(f"{script}</script>\n</body>\n</html>\n")
    return "".join(parts)


def plotly_library():
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise plot_read.DataError("a page (.html) of a trace needs plotly; on Debian and Ubuntu: apt-get install python3-plotly") from None
    return get_plotlyjs().replace("</script", "<\\/script")


def figure_place(name, picture, height=None):
    """Where a figure stands: the picture, and before it the place for plotly where it draws one."""
    plot = f'<div id="{name}" class="plot" style="height: {height}px"></div>' if height else ""
    return f'<div class="figure{" with-plot" if height else ""}">{plot}<div class="picture">{picture}</div></div>'


def write_page(path, text):
    def write(part):
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)

    write_file(path, write)


def write_file(path, write):
    """What write(part) puts into a file beside it becomes the file at this path, or nothing does."""
    part = f"{path}.part"
    try:
        if os.path.isdir(path):
            raise plot_read.DataError(f"{path}: is a folder; the name of a file is wanted")
        write(part)
        os.replace(part, path)
    except OSError as error:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise plot_read.DataError(f"{path}: {error.strerror or error}") from None


# ---- Pictures of matplotlib ------------------------------------------------------------------------------------------


def inline_svg(figure, prefix, label, tight=True):
    """A figure as an element of a page: colours are the page's, ids begin with the prefix. figure.tips: [(axes, x0, x1, y0, y1, text)] in data."""
    from matplotlib import pyplot as plt

    figure.patch.set_visible(False)
    for axes in figure.axes:
        if axes.get_facecolor() == (1, 1, 1, 1):
            axes.set_facecolor("none")
    text = io.StringIO()
    more = {"bbox_inches": "tight", "pad_inches": 0.06} if tight else {}
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, **more)
    svg = text.getvalue()
    svg = svg[svg.index("<svg"):].rstrip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(r"(: ?)(#[0-9a-f]{6})\b", lambda found: found[1] + (f"var(--{found[2][1:]})" if found[2] in PALETTE else found[2]), svg)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = svg.replace("url(#", f"url(#{prefix}-")
    # Only these presentation attributes are black by default: text as outlines.
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" fill="var(--1a1a1a)" ', 1)
    width, height = figure.get_size_inches() * 72
    spots = []
    for axes, x0, x1, y0, y1, words in () if tight else getattr(figure, "tips", ()):
        corners = axes.transData.transform([(x0, y0), (x1, y1)]) * 72 / figure.dpi
        (left, bottom), (right, top) = corners.min(axis=0), corners.max(axis=0)
        if not np.isfinite(corners).all():
            continue
        grow = max(0, 7 - (right - left)) / 2, max(0, 7 - (top - bottom)) / 2  # a point is hit from nearby
        spots.append(f'<rect class="tip" fill="transparent" x="{left - grow[0]:.2f}" y="{height - top - grow[1]:.2f}" width="{right - left + 2 * grow[0]:.2f}" '
                     f'height="{top - bottom + 2 * grow[1]:.2f}"><title>{escape(words)}</title></rect>')  # fmt: skip
    plt.close(figure)
    return svg.replace("</svg>", "".join(spots) + "</svg>") if spots else svg


# ---- Figures of plotly -----------------------------------------------------------------------------------------------

INK, MUTED, GRID, PAPER = "#1a1a1a", "#666666", "#dddddd", "#ffffff"
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "5px,5px")
SYMBOLS = {"growth": "triangle-up", "ceiling": "triangle-up-open", "backoff": "triangle-down", "floor": "triangle-down-open",
           "forgiven": "circle-open", "overflow": "x-thin-open", "raise": "star"}  # fmt: skip


def numbers(values):
    """Finite numbers, whole ones without a point; None for all others."""
    return [None if not math.isfinite(value) else int(value) if value == int(value) and abs(value) < 2**53 else value for value in np.asarray(values, float).tolist()]


def power(value):
    if not np.isfinite(value) or value <= 0:
        return "inf" if value > 0 else "0" if value == 0 else "NaN"
    exponent = math.log2(value)
    return f"2<sup>{exponent:.0f}</sup>" if exponent == round(exponent) else f"2<sup>{exponent:.4g}</sup>"


def axis(**more):
    return {"gridcolor": GRID, "linecolor": INK, "tickcolor": INK, "zeroline": False, "showline": True, "ticks": "outside", "ticklen": 4, **more}


def layout(title="", **more):
    return {"paper_bgcolor": PAPER, "plot_bgcolor": PAPER, "font": {"color": INK, "family": 'system-ui, "DejaVu Sans", sans-serif', "size": 13},
            "margin": {"l": 70, "r": 20, "t": 30, "b": 50}, "hoverlabel": {"bgcolor": PAPER, "font": {"color": INK}}, "dragmode": "zoom",
            "legend": {"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0}, "uirevision": "1", **more}  # fmt: skip
