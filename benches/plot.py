"""Draws the curves of curves.sh, one SVG each, into docs/plots. Usage: plot.py CURVES.jsonl [FOLDER]

It needs matplotlib, in its own environment, which curves.sh creates if it is missing:

    python3 -m venv target/bench/venv
    target/bench/venv/bin/pip install -r benches/requirements.txt
    target/bench/venv/bin/python benches/plot.py target/bench/curves.jsonl
"""

import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

from table import CURVES, read

# Text stays text, and equal figures make an equal file.
plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "holdfast", "font.size": 9, "font.family": ["DejaVu Sans", "sans-serif"]})
TITLES = {
    "workers": "Cost of a run, by workers (2 cores in all)",
    "conversations": "Cost of a run, by conversations that exist",
    "ended": "Cost of a run, by ended runs of the database",
    "streams": "Runs with one watcher each, by runs",
    "logs": "Cost of an event, by events of the run",
    "watchers": "One run, by its watchers",
}
PLAIN = FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
COLOURS = ["#1f6f8b", "#c8553d", "#5b8c5a", "#8a5a9e"]


def draw(name, points, file):
    points = {int(size): result for size, result in points.items() if not result.get("aborted")}
    sizes = sorted(points)
    columns = CURVES[name]
    figure, panels = plt.subplots(1, len(columns), figsize=(2.7 * len(columns), 2.4), squeeze=False, layout="constrained")
    for panel, (what, get), colour in zip(panels[0], columns, COLOURS):
        values = [get(points[size]) for size in sizes]
        panel.plot(sizes, values, marker="o", markersize=4, color=colour)
        panel.set_xscale("log")
        panel.set_xticks(sizes, minor=False)
        panel.xaxis.set_major_formatter(PLAIN)
        # On a scale from 0, small figures beside large ones would look equal.
        if max(values) > 20 * min(values):
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(PLAIN)
        else:
            panel.set_ylim(0, 1.12 * max(values))
        panel.minorticks_off()
        panel.set_xlabel({"logs": "events", "ended": "ended runs", "streams": "runs"}.get(name, name))
        panel.set_title(what, fontsize=9)
        panel.grid(axis="y", color="#e4e4e4", linewidth=0.7)
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(TITLES[name], fontsize=10)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    print(file)


def main():
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "docs/plots")
    folder.mkdir(parents=True, exist_ok=True)
    for name, points in read(sys.argv[1]).items():
        draw(name, points, folder / f"{name}.svg")


main()
