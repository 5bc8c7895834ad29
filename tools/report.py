#!/usr/bin/python3
# (Not `env python3`: see plot.py.)
"""Tells the story of a run or of a sweep on one page: verdict, numbers, plots, events, the config and how to repeat it.

The verdict is the program's (`scaletrace show --json`, results.csv), the pictures are those of plot.py and plot_sweep.py, the page is plot_page.py's.
What stands here is what the page says, in which order, and how its parts are linked.
"""

import argparse
import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter

import plot
import plot_page
import plot_sweep
from plot_page import escape
from plot_read import DataError

import numpy as np  # (plot.py has said by now what to install where it is missing)

CALLED_AS = os.environ.get("SCALETRACE_CALLED_AS", "report.py")
MOST_EVENTS = 1000  # rows of the table; each takes some 300 bytes of the page
BEST, MOST_TEXT = 10, 200_000

VERDICT_WORDS = {"ok": "ok", "raised": "the policy raised", "diverged": "diverged", "inf": "scale is inf", "zero": "scale is 0", "stuck": "stuck", "invalid": "invalid"}

STYLE = """
h2 { font-size: 1.1rem; margin: 1.8rem 0 .5rem; }
.lead { display: flex; gap: .8rem; align-items: baseline; margin: 0 0 1rem; }
.lead p { margin: 0; max-width: 46rem; font-size: 1.05rem; }
.badge { flex: none; border: 2px solid var(--c8401a); color: var(--c8401a); border-radius: 6px; padding: 0 .55rem; font-weight: 700; }
.badge.ok { border-color: var(--0b7a5a); color: var(--0b7a5a); }
.badge.open { border-color: var(--666666); color: var(--666666); border-style: dashed; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); gap: .5rem; margin: 0 0 1rem; }
.tiles div { background: var(--tile); border: 1px solid var(--dddddd); border-radius: 6px; padding: .4rem .7rem; }
.tiles dt, .note { color: var(--666666); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.1rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.scroll { overflow: auto; max-height: 26rem; border: 1px solid var(--dddddd); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th { position: sticky; top: 0; background: var(--tile); text-align: left; font-weight: 600; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--dddddd); white-space: nowrap; }
td.wide { white-space: normal; }
tr.found td { background: var(--f6e3b4); }
.overflow { color: var(--c8401a); } .growth { color: var(--0b7a5a); }
pre { background: var(--tile); border: 1px solid var(--dddddd); border-radius: 6px; padding: .6rem .8rem; overflow: auto; max-height: 30rem; font-size: .85rem; line-height: 1.4; }
summary { cursor: pointer; margin: .4rem 0; }
.filters label { margin-right: 1rem; } .filters { margin: .3rem 0; }
.bar { display: flex; height: 1.4rem; border: 1px solid var(--666666); border-radius: 4px; overflow: hidden; margin: .3rem 0; }
.bar span { border-right: 1px solid var(--666666); } .bar span:last-child { border-right: 0; }
button.plain { border: 1px solid var(--dddddd); border-radius: 6px; background: var(--tile); color: inherit; font: inherit; font-size: .85rem; cursor: pointer; }
@media print { .scroll { max-height: none; overflow: visible; border: 0; } pre { max-height: none; white-space: pre-wrap; } th { position: static; }
  h2 { break-after: avoid; } td code { white-space: normal; } .bar span { print-color-adjust: exact; } }
"""

# Rows of the table lead to their place in the plot, marks in the plot to their row.
SCRIPT = """
(function () {
  "use strict";
  const plot = scaletrace.plots[0], place = plot.place, whole = plot.figure.layout.xaxis.range.slice(), note = document.getElementById("picked");
  function mark(row) {
    document.querySelectorAll("tr.found").forEach(other => other.classList.remove("found"));
    if (row) row.classList.add("found");
    const from = row && +row.dataset.from, to = row && +row.dataset.to;
    plot.mark = row ? [{type: "rect", xref: "x", yref: "paper", y0: 0, y1: 1, x0: from, x1: to, line: {color: "#e69f00", width: 2}, fillcolor: "#e69f00", opacity: 0.35, layer: "below"}] : null;
    return [from, to];
  }
  function zoom(range) {
    place.layout.xaxis.range = range;
    place.layout.xaxis.autorange = false;
    return scaletrace.draw(plot);
  }
  document.querySelectorAll("#events a.place").forEach(link => link.addEventListener("click", event => {
    event.preventDefault();
    const row = link.closest("tr"), [from, to] = mark(row), around = Math.max(3 * (to - from), (whole[1] - whole[0]) / 40);
    note.textContent = "";
    zoom([Math.max(whole[0], from - around), Math.min(whole[1], to + around)]);
    place.scrollIntoView({block: "center"});
  }));
  place.on("plotly_click", event => {
    const number = event.points[0].customdata;
    if (number === undefined) return;
    const row = number < 0 ? null : document.getElementById("event" + number);
    mark(row);
    scaletrace.draw(plot);
    note.textContent = row ? "" : "This event is not among those in the table.";
    if (!row) return;
    row.hidden = false;
    row.scrollIntoView({block: "center"});
    history.replaceState(null, "", "#" + row.id);
  });
  document.getElementById("whole").onclick = () => { mark(null); note.textContent = ""; zoom(whole.slice()); };
  document.querySelectorAll("#events input[data-kind]").forEach(box => box.addEventListener("change", () => {
    document.querySelectorAll("#events tr[data-kind='" + box.dataset.kind + "']").forEach(row => { row.hidden = !box.checked; });
  }));
})();
"""


def program():
    """The path of scaletrace, which says the verdict."""
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "scaletrace")
    for path in (os.environ.get("SCALETRACE"), shutil.which("scaletrace"), beside):
        if path and os.access(path, os.X_OK):
            return path
    raise DataError("scaletrace: not found; SCALETRACE can name the program, which says the verdict")


def shown_by_program(path):
    """What `scaletrace show --json` says of this trace."""
    try:
        done = subprocess.run([program(), "show", path, "--json"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise DataError(f"{program()}: {error.strerror}") from None
    if done.returncode != 0:
        raise DataError(done.stderr.strip().removeprefix("scaletrace: error: ") or f"{path}: scaletrace show failed")
    return json.loads(done.stdout)


def text_of(path, most=MOST_TEXT):
    """The text of a file, or None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(most + 1)
    except OSError:
        return None
    return text if len(text) <= most else text[:most] + "\n# ... and more: see the file\n"


def json_of(path):
    try:
        return json.loads(text_of(path) or "{}")
    except ValueError:
        return {}


def scale_text(value):
    return plot_page.power(float(value))


def number(value, digits=7):
    return f"{float(value):.{digits}g}"


def count(value, singular, plural=None):
    return f"{counted(value)} {singular if value == 1 else plural or singular + 's'}"


def counted(value):
    return f"{value:,}".replace(",", "\u2009") if value >= 10000 else str(value)


def tiles(pairs):
    """pairs: (what, its value as HTML)"""
    return "<dl class=\"tiles\">" + "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in pairs) + "</dl>\n"


def code(text):
    return f"<pre>{escape(text.rstrip())}</pre>\n"


def download(name, text):
    data = base64.b64encode(text.encode()).decode()
    return f'<a download="{escape(name)}" href="data:text/yaml;base64,{data}">{escape(name)}</a>'


# ---- A run -----------------------------------------------------------------------------------------------------------


def event_rows(trace):
    """[(first, last)]: rows of the trace, in order; of an unbroken streak of one event at one scale the first and the last."""
    joins = plot.follows(trace)
    joins &= trace.scale[1:] == trace.scale[:-1]
    found = [plot.stretches(trace.event == code, joins) for code in range(1, len(plot.EVENTS))]
    rows = np.concatenate(found)
    return rows[np.argsort(rows[:, 0], kind="stable")]


def events_table(trace, rows, most, where):
    """(HTML, {row of the trace: row of the table})"""
    if not len(rows):
        return "<h2>Events</h2>\n<p>None: the scale was left as it was, and no step was skipped.</p>\n", {}
    kept = list(range(len(rows)))
    if len(rows) > most:
        kept = kept[:most - most // 2] + kept[len(rows) - most // 2:]
    row_of, lines, kinds = {}, [], Counter()
    before = -1
    for place in kept:
        first, last = (int(row) for row in rows[place])
        if place != before + 1:
            gap = rows[before + 1:place]
            lines.append(f'<tr><td colspan="6" class="note">{count(len(gap), "row")} left out here, from step {trace.step[gap[0][0]]:.0f} to {trace.step[gap[-1][1]]:.0f}</td></tr>')
        before = place
        row_of[first] = row_of[last] = place
        event = plot.EVENTS[trace.event[first]]
        kinds[event] += 1
        steps = int(trace.step[last] - trace.step[first]) + 1
        step = f"{trace.step[first]:.0f}" + (f" to {trace.step[last]:.0f}" if steps > 1 else "")
        after = scale_text(trace.scale[last + 1]) if last + 1 < len(trace) and trace.step[last + 1] == trace.step[last] + 1 else ""
        kind = "overflow" if event in plot.OVERFLOWS else "growth"
        x_end = max(trace.x_end[last], trace.x[first])
        lines.append(
            f'<tr id="event{place}" data-kind="{event}" data-from="{trace.x[first]:.10g}" data-to="{x_end:.10g}"><td><a class="place" href="#plot0">{step}</a></td>'
            f'<td class="{kind}">{plot.MARKS[event][4]}</td><td>{counted(steps) if steps > 1 else ""}</td><td>{scale_text(trace.scale[first])}</td><td>{after}</td>'
            f"<td>{number(trace.loss[first])}</td></tr>")  # fmt: skip
    boxes = "".join(f'<label><input type="checkbox" checked data-kind="{event}"> {event} ({counted(kinds[event])})</label>' for event in plot.EVENTS if kinds[event])
    said = f"{count(len(rows), 'row')}: each event, or an unbroken streak of one at one scale. "
    if len(rows) > most:
        said += f"The first {most - most // 2} and the last {most // 2} stand here, {counted(len(rows) - most)} are left out (--events N); all are in {escape(where)}. "
    return (
        f'<section id="events"><h2>Events</h2>\n<p class="note">{said}<span class="needs-script">A step leads to its place in the plot, a mark in the plot to its row.</span></p>\n'
        f'<div class="filters needs-script">{boxes}</div>\n<div class="scroll"><table><thead><tr><th>step</th><th>event</th><th>steps</th><th>scale</th><th>next scale</th>'
        f'<th>loss</th></tr></thead><tbody>\n' + "\n".join(lines) + "\n</tbody></table></div></section>\n"), row_of  # fmt: skip


def run_numbers(summary, folder):
    s = {name: float(value) if isinstance(value, str) and name.startswith(("scale", "first_loss", "last_loss")) else value for name, value in summary.items()}
    pairs = [("steps", counted(s["steps"])), ("updates", counted(s["updates"])),
             ("skipped", counted(s["skipped"]) + (f" ({100 * s['skipped'] / s['steps']:.3g} %)" if s["skipped"] else "")),
             ("loss, first and last", f"{number(s['first_loss'])} → {number(s['last_loss'])}"),
             ("scale, first and next", f"{scale_text(s['scale_first'])} → {scale_text(s['scale_last'])}"),
             ("scale in force", f"{scale_text(s['scale_min'])} to {scale_text(s['scale_max'])}"),
             ("growths", counted(s["growths"])), ("backoffs", counted(s["backoffs"]))]  # fmt: skip
    if s["forgiven"]:
        pairs.append(("overflows forgiven", counted(s["forgiven"])))
    if s["first_skip"] >= 0:
        pairs.append(("first skipped step", str(s["first_skip"])))
    seconds = json_of(os.path.join(folder, "run.json")).get("seconds")
    if isinstance(seconds, dict) and s["steps"]:
        pairs.append(("time of the steps", f"{seconds.get('steps', 0):.3g} s"))
    return tiles(pairs)


def run_report(path, output, options):
    import plot_zoom

    trace_path = os.path.join(path, "trace.csv") if os.path.isdir(path) else path
    folder = os.path.dirname(os.path.abspath(trace_path))
    trace = plot.load(trace_path, options)
    said = shown_by_program(path)
    given, resolved = (text_of(os.path.join(folder, name)) for name in ("config.yaml", "config.resolved.yaml"))
    title = options.title or plot.title_of(trace_path)
    done = said["done"] or resolved is None
    verdict = said["verdict"]
    badge = (f'<span class="badge {"ok" if verdict == "ok" else ""}">{VERDICT_WORDS[verdict]}</span>' if verdict and done else '<span class="badge open">not done</span>' if not done else
             '<span class="badge open">no verdict</span>')  # fmt: skip
    story = said["story"] or "The trace does not hold every step, or has no scale: there is nothing to say of the whole."
    if not done:
        story = f"The run is in progress, or was stopped: {count(said['rows'], 'row')}, up to step {said['last_step']}. So far: {story}"
    rows = event_rows(trace)
    table, row_of = events_table(trace, rows, options.events, os.path.basename(trace_path) + ", column event")
    names = [title]
    figure = plot_zoom.trace_figure([trace], names, "", options.log, row_of)
    picture = plot_page.inline_svg(plot.draw(trace, "", options.log), "p0", f"{title}: loss and loss scale")
    body = [f"<h1>{escape(title)}</h1>\n", f'<div class="lead">{badge}<p>{escape(story)}</p></div>\n']
    if said["summary"]:
        body.append(run_numbers(said["summary"], folder))
    body.append("<h2>Loss and loss scale</h2>\n" + plot_page.figure_place("plot0", picture, plot_zoom.HEIGHT))
    body.append('<p class="needs-script"><button class="plain" id="whole" type="button">show all</button> <span id="picked" class="note"></span></p>\n')
    body.append(table)
    if os.path.exists(os.path.join(folder, "histograms.csv")):
        body.append(histogram_section(os.path.join(folder, "histograms.csv"), title))
    body.append(repeat_run(path, folder, given, resolved))
    script = SCRIPT if row_of else SCRIPT.replace('document.querySelectorAll("#events a.place")', "[]")
    return plot_page.page(title, "".join(body), [("plot0", figure)], STYLE, script)


def histogram_section(path, title):
    import plot_hist

    tensor = "output_gradient"
    name = plot.format_of(os.path.dirname(path), tensor)
    histograms = plot_hist.Histograms(path, tensor, name, plot.FORMAT_EXPONENTS.get(name))
    heading, note = histograms.heading("")
    picture = plot_page.inline_svg(histograms.draw(None), "h0", f"{title}: exponents of {tensor}", tight=False)
    words = f"Exponents of {tensor}" + (f" against {heading}" if heading else "")
    return f"<h2>{escape(words)}</h2>\n" + (f'<p class="note">{escape(note)}</p>\n' if note else "") + plot_page.figure_place("hist0", picture)


def repeat_run(path, folder, given, resolved):
    if resolved is None:
        return ""
    name = plot.name_of(folder) or "run"
    run = json_of(os.path.join(folder, "run.json"))
    # Commands work where the files are: with the config saved here, and the folder named as it was.
    commands = [f"scaletrace run {shlex.quote(name + '.yaml')} --out again", f"scaletrace diff {shlex.quote(path)} again        # equal, to the last bit",
                f"scaletrace show {shlex.quote(path)}", f"scaletrace plot {shlex.quote(path)} -o {shlex.quote(name + '.svg')}"]  # fmt: skip
    text = ["<h2>How to repeat it</h2>\n", f"<p>Save the config with every key, {download(name + '.yaml', resolved)}, and run it:</p>\n", code("\n".join(commands))]
    if run.get("software"):
        text.append(f'<p class="note">This run: {escape(run["software"])}, started {escape(run.get("started", "?"))}.</p>\n')
    text.append("<h2>Config</h2>\n")
    if given is not None:
        text.append(code(given))
    text.append(f"<details><summary>with every key and its value</summary>\n{code(resolved)}</details>\n")
    return "".join(text)


# ---- A sweep ---------------------------------------------------------------------------------------------------------


def verdict_bar(counts, runs):
    colours = {"ok": "cfe3f1", "diverged": "f4cdbb", "stuck": "e4e4e4", "inf": "f6e3b4", "zero": "cfe3f1", "raised": "ead3e4", "invalid": "ffffff"}
    parts = "".join(f'<span title="{escape(verdict)}: {n}" style="flex: {n}; background: var(--{colours.get(verdict, "ffffff")})"></span>' for verdict, n in counts)
    rows = "".join(f"<tr><td>{escape(VERDICT_WORDS.get(verdict, verdict))}</td><td>{counted(n)}</td><td>{100 * n / runs:.3g} %</td></tr>" for verdict, n in counts)
    return (f'<div class="bar" role="img" aria-label="shares of the verdicts">{parts}</div>\n<table style="max-width: 24rem" id="verdicts"><thead><tr><th>verdict</th><th>runs</th>'
            f"<th>share</th></tr></thead><tbody>{rows}</tbody></table>\n")  # fmt: skip


def axis_words(results, name):
    values = plot_sweep.distinct(results.columns[name])
    words = [plot_sweep.number_or_word(value) for value in values]
    return ", ".join(words) if len(words) <= 6 else f"{len(words)} values, {words[0]} to {words[-1]}"


def runs_table(results, rows, name, folder, output):
    """name: id of the table. A row for each of these runs, with the command that gives its config."""
    axes = results.axes + (["seed"] if "seed" in results.columns and "seed" not in results.axes else [])
    varying = [axis for axis in axes if len(plot_sweep.distinct(results.columns[axis])) > 1]
    head = "".join(f"<th>{escape(words)}</th>" for words in ["run", *map(plot_sweep.words_of, varying), "final loss", "skipped", "next scale", "verdict", "its config"])
    lines = []
    for row in rows:
        run = int(results.columns["run"][row])
        cells = [plot_sweep.number_or_word(results.columns[axis][row]) if plot_sweep.is_text(results.columns[axis]) or not np.isnan(results.columns[axis][row]) else "" for axis in varying]
        loss, skipped, scale = (results.columns[column][row] for column in ("final_loss", "skipped", "scale_last"))
        verdict = str(results.verdict[row])
        kept = os.path.join(folder, "traces", str(run), "trace.csv")
        link = f' <a href="{escape(os.path.relpath(kept, os.path.dirname(os.path.abspath(output))))}">trace</a>' if os.path.exists(kept) else ""
        bad = "overflow" if verdict != "ok" else ""
        lines.append(f'<tr><td>{run}{link}</td>' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + f"<td>{number(loss)}</td><td>{number(skipped)}</td><td>{scale_text(scale)}</td>"
                     f'<td class="{bad}">{escape(verdict)}</td><td><code>scaletrace sweep config {escape(spec_path(folder))} {run} &gt; {run}.yaml</code></td></tr>')  # fmt: skip
    return f'<div class="scroll"><table id="{name}"><thead><tr>{head}</tr></thead><tbody>\n' + "\n".join(lines) + "\n</tbody></table></div>\n"


def spec_path(folder):
    return shlex.quote(os.path.join(os.path.relpath(folder), "sweep.yaml"))


def ranked(results):
    """(the best, the worst): rows. Best: ended ok, the smallest final loss; worst: did not end ok, or the largest."""
    severity = np.array([("ok", "stuck", "zero", "inf", "diverged", "raised", "invalid").index(v) if v in VERDICT_WORDS else 6 for v in results.verdict.tolist()])
    loss = results.columns["final_loss"]
    order = np.lexsort((results.columns["run"], np.where(np.isnan(loss), np.inf, loss), severity))
    best = [row for row in order[:BEST].tolist() if severity[row] == 0]
    valid = [row for row in order[::-1].tolist() if results.verdict[row] != "invalid"]
    return best, [row for row in valid[:BEST] if row not in best]


def sweep_pictures(results, path):
    """[(heading, the command that draws it, SVG)] of each kind that fits the axes, the most telling first."""
    folder = os.path.dirname(os.path.abspath(results.path))
    first = plot_sweep.choose(results, None, (), (), False)[0]
    found = []
    for kind in (first, *[kind for kind in plot_sweep.KINDS if kind != first]):
        if kind == "steps" and not plot_sweep.kept_traces(os.path.join(folder, "traces")):
            continue
        if kind == "rows" and not any(plot_sweep.is_text(results.columns[axis]) for axis in results.axes):
            continue  # a fan of numbers says it better
        try:
            figure = plot_sweep.draw_sweep(results, kind, [], [], "")
        except DataError:
            continue  # this kind needs other axes
        svg = plot_page.inline_svg(figure, f"p{len(found)}", f"{kind} of the sweep", tight=False)
        found.append((kind, f"scaletrace plot {shlex.quote(path)} --as {kind}", svg))
    return found


HEADINGS = {"map": "Map over two axes", "fan": "Along an axis", "rows": "Side by side", "spread": "Spread over the runs", "steps": "Kept traces over the steps"}


def sweep_report(path, results_path, output, options):
    results = plot_sweep.read_results(results_path)
    folder = os.path.dirname(os.path.abspath(results_path))
    title = options.title or plot.name_of(folder, "sweep.yaml") or os.path.basename(folder)
    plot.set_style()
    counts = Counter(results.verdict.tolist()).most_common()
    ok = dict(counts).get("ok", 0)
    badge = f'<span class="badge {"ok" if ok == len(results) else ""}">{counted(ok)} of {counted(len(results))} ok</span>'
    worst_words = ", ".join(f"{counted(n)} {VERDICT_WORDS.get(verdict, verdict)}" for verdict, n in counts if verdict != "ok")
    best, worst = ranked(results)
    story = f"{count(len(results), 'run')}" + (f": {worst_words}; the others ended ok." if worst_words and ok else f": {worst_words}." if worst_words else ", and every one ended ok.")
    if best:
        story += f" The smallest final loss is {number(results.columns['final_loss'][best[0]])}, of run {int(results.columns['run'][best[0]])}."
    axes = results.axes + (["seed"] if "seed" in results.columns and "seed" not in results.axes else [])
    body = [f"<h1>{escape(title)}</h1>\n", f'<div class="lead">{badge}<p>{escape(story)}</p></div>\n', verdict_bar(counts, len(results)), "<h2>Axes</h2>\n",
            tiles([(name, escape(axis_words(results, name))) for name in axes])]  # fmt: skip
    for kind, command, svg in sweep_pictures(results, path):
        body.append(f"<h2>{HEADINGS[kind]}</h2>\n{plot_page.figure_place('figure-' + kind, svg)}<p class=\"note\"><code>{escape(command)}</code></p>\n")
    body.append("<h2>The best runs</h2>\n" + (runs_table(results, best, "best", folder, output) if best else "<p>None ended ok.</p>\n"))
    if worst:
        body.append("<h2>The worst runs</h2>\n" + runs_table(results, worst, "worst", folder, output))
    spec = text_of(os.path.join(folder, "sweep.yaml"))
    if spec is not None:
        example = int(results.columns["run"][(best or worst or [0])[0]])
        body.append("<h2>How to repeat it</h2>\n" + f"<p>Save the config, {download('sweep.yaml', spec)}. All runs again, or one of them alone, with its trace:</p>\n" + code(
            f"scaletrace sweep sweep.yaml --out again && cmp again/results.csv {shlex.quote(os.path.relpath(results_path))}\n"
            f"scaletrace sweep config sweep.yaml {example} > {example}.yaml && scaletrace run {example}.yaml --out {example} && scaletrace report {example}"))  # fmt: skip
        body.append('<p class="note">Where the sweep was started with --set, give each of these commands the same.</p>\n<h2>Config</h2>\n' + code(spec))
    return plot_page.page(title, "".join(body), style=STYLE)


# ---- The command -----------------------------------------------------------------------------------------------------


def positive(text):
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to 100000")
    return int(text)


def main(arguments):
    parser = plot.Parser(
        prog=CALLED_AS,
        description="Tells the story of a run or of a sweep on one page: the verdict, the numbers, plots to zoom in, a table of\n"
                    "the events with links to their places in the plot and back, the config, and how to repeat it. One file (HTML)\n"
                    "that works offline, in light and dark, and on paper.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"""Examples:
  {CALLED_AS} runs/quickstart
  {CALLED_AS} runs/quickstart -o report.html --title 'What the scale did'
  {CALLED_AS} sweep-folder -o sweep.html""")  # fmt: skip
    parser.add_argument("path", metavar="RUN|TRACE|SWEEP", help="a run's folder (also one in progress), a trace (CSV), or the folder of a sweep")
    parser.add_argument("-o", "--output", metavar="FILE", help="the page; its name ends in .html (default: report.html in the folder)")
    parser.add_argument("--title", help="default: the run's or the sweep's name")
    runs = parser.add_argument_group("of a run")
    runs.add_argument("--x", choices=("step", "update", "epoch"), default="step", help="what the x axis of the plot counts")
    runs.add_argument("--log", action="store_true", help="a log axis for the loss, even where it spans little")
    runs.add_argument("--events", type=positive, default=MOST_EVENTS, metavar="N", help=f"most rows in the table of events (default: {MOST_EVENTS})")
    options = parser.parse_args(arguments)
    options.range = None
    path = options.path
    output = options.output or os.path.join(path if os.path.isdir(path) else os.path.dirname(path), "report.html")
    if not plot.is_page(output):
        parser.error(f"cannot write '{output}': the name must end in .html")
    try:
        if not os.path.exists(path):
            raise DataError(f"{path}: no such file or folder; a run's folder, a trace or a sweep's folder is wanted")
        sweep = plot_sweep.results_path(path)
        if os.path.isdir(path) and not sweep and not os.path.exists(os.path.join(path, "trace.csv")):
            raise DataError(f"{path}: has neither a trace.csv, as a run's folder, nor a results.csv, as that of a sweep that is done")
        text = sweep_report(path, sweep, output, options) if sweep else run_report(path, output, options)
        plot_page.write_page(output, text)
    except DataError as error:
        sys.stderr.write(f"{CALLED_AS}: error: {error}\n")
        return plot.EXIT_DATA
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
