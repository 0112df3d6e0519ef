"""Prints the results of run.sh, or of curves.sh, as Markdown tables. Usage: table.py RESULTS.jsonl"""

import json
import pathlib
import sys

HEALTH = ("completed", "failed", "gaps", "duplicates")


def at(*path):
    """Returns a function that reads the value at a path of a result, or None if there is none."""

    def get(result):
        for key in path:
            result = result.get(key) if isinstance(result, dict) else None
        return result

    return get


def attached(result):
    """Returns the seconds until all had attached, or infinity if some never did."""
    return result["attach_s"] if result["attached"] == result["subscribers"] else float("inf")



# (what, measurement, figures, must, aim). If the aim is larger than the requirement, more is better.
ROWS = [
    ("first token, 1 at a time, p50 / p95 ms", "ttft-1", [at("first_delta", "p50_ms"), at("first_delta", "p95_ms")], [6, 12], [3, 6]),
    ("first token, 32 at a time, p50 / p95 ms", "ttft-32", [at("first_delta", "p50_ms"), at("first_delta", "p95_ms")], [40, 120], [20, 60]),
    ("64 runs x 200 tokens at full speed, tokens/s", "throughput", [at("tokens_per_s")], [50_000], [100_000]),
    ("the same, CPU seconds per million tokens", "throughput", [at("servers_cpu_s_per_mtok")], [25], [12]),
    ("500 runs x 20 tokens/s, CPU seconds per million tokens", "paced", [at("servers_cpu_s_per_mtok")], [150], [70]),
    ("the same, delivery p50 / p99 ms", "paced", [at("delivery", "p50_ms"), at("delivery", "p99_ms")], [10, 80], [3, 25]),
    ("one run, 1,000 watchers, delivery p99 ms", "watchers-1000", [at("delivery", "p99_ms")], [40], [15]),
    ("the same, CPU seconds per million deliveries", "watchers-1000", [at("servers_cpu_s_per_mtok")], [20], [8]),
    ("one run, 5,000 watchers, all attached within s", "watchers-5000", [attached], [4], [1.5]),
    ("the same, delivery p99 ms", "watchers-5000", [at("delivery", "p99_ms")], [250], [80]),
    ("500 cut runs, resume to first event, p50 / p99 ms", "resume", [at("first_event", "p50_ms"), at("first_event", "p99_ms")], [6, 30], [2, 10]),
    ("the same, gaps / duplicates", "resume", [at("gaps"), at("duplicates")], [0, 0], [0, 0]),
    ("1-token runs, 64 at a time, runs/s", "jobs", [at("runs_per_s")], [500], [1500]),
    ("memory of the api per idle stream, KiB", "idle-streams", [at("rss", "api", "kb_per_connection")], [24], [14]),
    ("memory of the worker per idle run, KiB", "idle-runs", [at("rss", "worker", "kb_per_connection")], [64], [24]),
    ("embedded: memory at rest, MiB", "embedded", [at("rss_at_rest_mib")], [40], [20]),
    ("embedded: start to first answer, p50 ms", "embedded", [at("start_to_first_delta", "p50_ms")], [500], [150]),
    ("embedded: first token, p50 ms", "embedded", [at("first_delta", "p50_ms")], [5], [2]),
    ("Redis memory per token event while hot, B", "paced", [at("redis_bytes_per_token")], [200], [90]),
    ("replay of 50,000 events, to its first frame, p50 ms", "replay", [at("first_frame", "p50_ms")], [100], [20]),
    ("the same, frames/s on one core of the api", "replay", [at("frames_per_api_cpu_s")], [200_000], [500_000]),
    ("the same, extra memory of the api a client, KiB", "replay", [at("api_kb_per_client")], [1024], [256]),
    ("the same with an empty Redis, to its first frame, p50 ms", "replay-archive", [at("first_frame", "p50_ms")], [100], [20]),
    ("the same, frames/s on one core of the api", "replay-archive", [at("frames_per_api_cpu_s")], [200_000], [500_000]),
    ("the same, extra memory of the api a client, KiB", "replay-archive", [at("api_kb_per_client")], [1024], [256]),
    ("tool call beside the tool, 1 run at a time, p50 / p95 ms", "tools-1", [at("overhead", "p50_ms"), at("overhead", "p95_ms")], None, None),
    ("tool call beside the tool, 32 runs at a time, p50 / p95 ms", "tools-32", [at("overhead", "p50_ms"), at("overhead", "p95_ms")], None, None),
]

# The figures of one point of a curve.
CPU_PER_RUN = ("CPU ms per run", lambda r: r["servers_cpu_s"] * 1e3 / r["completed"])
CURVES = {
    "workers": [CPU_PER_RUN, ("runs/s", at("runs_per_s"))],
    "conversations": [CPU_PER_RUN, ("runs/s", at("runs_per_s")), ("first token p50 ms", at("first_delta", "p50_ms"))],
    "ended": [CPU_PER_RUN, ("runs/s", at("runs_per_s"))],
    "streams": [
        ("delivery p50 ms", at("delivery", "p50_ms")),
        ("delivery p99 ms", at("delivery", "p99_ms")),
        ("CPU µs per token", at("servers_cpu_s_per_mtok")),
    ],
    "logs": [
        ("µs per event made", at("made_us_per_event")),
        ("CPU µs per event made", at("making", "servers_cpu_s_per_mtok")),
        ("µs per event replayed", lambda r: 1e6 / r["frames_per_s"]),
        ("CPU µs per event replayed", at("servers_cpu_s_per_mtok")),
    ],
    "watchers": [
        ("delivery p50 ms", at("delivery", "p50_ms")),
        ("delivery p99 ms", at("delivery", "p99_ms")),
        ("CPU µs per delivery", at("servers_cpu_s_per_mtok")),
    ],
}


def number(value):
    if value is None:
        return "–"
    if value == float("inf"):
        return "never"
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:,.2f}" if value < 1 else f"{value:,.1f}"


def numbers(values):
    return " / ".join(number(value) for value in values) if values else "–"


def figures(results, name, getters):
    result = results.get(name)
    if result is None or result.get("aborted"):
        return None
    return [get(result) for get in getters]


def verdict(result, values, must, aim):
    if not must:
        return ""
    if not values or None in values:
        return "not measured"
    if result["failed"]:
        return f"{result['failed']} failed"
    reaches = lambda limits: all(v >= l if aim > must else v <= l for v, l in zip(values, limits))
    return "aim met" if reaches(aim) else "met" if reaches(must) else "missed"


def table_of_limits(ours, peers):
    head = ["", "must", "aim", "Holdfast", ""] + (["peer"] if peers else [])
    lines = [head, ["---"] * len(head)]
    for what, name, getters, must, aim in ROWS:
        values = figures(ours, name, getters)
        if values is None and name not in ours:
            continue
        line = [what, numbers(must), numbers(aim), numbers(values), verdict(ours[name], values, must, aim)]
        lines.append(line + ([numbers(figures(peers, name, getters))] if peers else []))
    return lines


def table_of_health(results):
    """Returns the table that shows whether the figures are reliable: failures, other load, and speed of the machine."""
    lines = [["measurement", *HEALTH, "other cores", "fixed work, ms", "first error"], ["---"] * 8]
    for label, result in results.items():
        health = [number(result.get(key)) for key in HEALTH]
        error = "aborted" if result.get("aborted") else result.get("first_error") or ""
        lines.append([label, *health, number(result.get("other_cores")), number(result.get("fixed_work_ms")), error])
    return lines


def table_of_curve(name, points):
    columns = CURVES[name]
    lines = [[name, *(what for what, _ in columns)], ["---"] * (len(columns) + 1)]
    for size, result in points.items():
        values = ["aborted"] * len(columns) if result.get("aborted") else [number(get(result)) for _, get in columns]
        lines.append([number(int(size)), *values])
    return lines


def read(path):
    """Returns the results by server or curve, and by measurement or point."""
    groups = {}
    for line in pathlib.Path(path).read_text().splitlines():
        result = json.loads(line)
        group, name = result["label"].split(":")
        groups.setdefault(group, {})[name] = result
    return groups


def main():
    groups = read(sys.argv[1])
    tables = [table_of_curve(name, points) for name, points in groups.items() if name in CURVES]
    if "holdfast" in groups:
        tables.append(table_of_limits(groups["holdfast"], groups.get("peer", {})))
    tables.append(table_of_health({f"{group} {name}": r for group, points in groups.items() for name, r in points.items()}))
    print("\n\n".join("\n".join(f"| {' | '.join(line)} |" for line in table) for table in tables))


if __name__ == "__main__":
    main()
