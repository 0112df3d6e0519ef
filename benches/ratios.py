"""Prints the ratios of the medians of two commits as a Markdown table. Usage: ratios.py FOLDER

The folder has the results of run.sh, base-1.jsonl, head-1.jsonl and so on, as compare.sh writes them.
"""

import json
import pathlib
import statistics
import sys

from table import ROWS, number

# A figure that run.sh's table does not have: (what, measurement, figure).
CPU_OF_POSTGRES = ("the same, CPU ms of PostgreSQL per run", "jobs", lambda r: r["cpu_s"]["pg"] * 1e3 / r["completed"])


def rows():
    """Yields each figure of run.sh's table alone, and PostgreSQL's CPU after the runs/s."""
    for what, measurement, getters, _, _ in ROWS:
        for place, getter in enumerate(getters):
            yield what + (f", figure {place + 1}" if len(getters) > 1 else ""), measurement, getter
        if measurement == "jobs":
            yield CPU_OF_POSTGRES


def values(folder, side, measurement, getter):
    """Returns the figure of each round that has it."""
    found = []
    for path in sorted(folder.glob(f"{side}-*.jsonl")):
        for result in map(json.loads, path.read_text().splitlines()):
            if result["label"] == f"holdfast:{measurement}" and not result.get("aborted"):
                found.append(getter(result))
    return [value for value in found if value is not None]


def main(folder):
    print("|  | base | head | ratio |\n| --- | --- | --- | --- |")
    for what, measurement, getter in rows():
        sides = [values(folder, side, measurement, getter) for side in ("base", "head")]
        if not all(sides):
            continue
        base, head = map(statistics.median, sides)
        ratio = f"{head / base:.2f}" if base else "–"
        print(f"| {what} | {number(base)} | {number(head)} | {ratio} |")


main(pathlib.Path(sys.argv[1]))
