"""Prints the results of run.sh as a Markdown table. Usage: table.py RESULTS.jsonl"""

import json
import pathlib
import sys


def num(value, digits=1):
    return "-" if value is None else f"{value:,.{digits}f}"


def lat(summary):
    if not summary:
        return "-"
    return " / ".join(num(summary[k]) for k in ("p50_ms", "p95_ms", "p99_ms"))


def describe(r):
    """(scenario, {metric: value}) of one result."""
    s = r["scenario"]
    if r.get("aborted"):
        return s, {"aborted": "yes"}
    health = f"{r['completed']} ok, {r['failed']} failed, {r['gaps']} gaps, {r['duplicates']} dup"
    noise = num(r.get("other_cores"), 2)
    cpu = num(r.get("servers_cpu_s_per_mtok"))
    if s == "ttft":
        return f"ttft c={r['concurrency']}", {"first delta p50/p95/p99 ms": lat(r["first_delta"]), "health": health}
    if s == "throughput":
        return f"throughput c={r['concurrency']}", {
            "tokens/s": num(r["tokens_per_s"], 0), "server CPU s/Mtok": cpu, "other cores": noise, "health": health}
    if s == "jobs":
        return f"jobs c={r['concurrency']}", {
            "jobs/s": num(r["runs_per_s"]), "server CPU ms/job": num(r["servers_cpu_s"] * 1e3 / max(1, r["completed"]), 2),
            "other cores": noise, "health": health}
    if s == "paced":
        return f"paced runs={r['runs']}", {
            "delivery p50/p95/p99 ms": lat(r["delivery"]), "gap excess": lat(r["gap_excess"]),
            "wall/ideal s": f"{r['wall_s']:.1f}/{r['ideal_wall_s']:.1f}", "server CPU s/Mtok": cpu,
            "other cores": noise, "health": health}
    if s == "fanout":
        api = r["rss_idle"].get("api", {})
        return f"fanout subs={r['subscribers']}", {
            "delivery p50/p95/p99 ms": lat(r["delivery"]), "attached": f"{r['attached']} in {r['attach_s']:.1f} s",
            "API KiB/conn": num(api.get("kb_per_connection")), "server CPU s/Mdelivery": cpu,
            "other cores": noise, "health": health}
    if s == "resume":
        return f"resume runs={r['runs']}", {
            "first event": lat(r["first_event"]), "first new token": lat(r["first_new_token"]),
            "exact": f"{r['exact']}/{r['runs']}", "gone": str(r["gone"]), "sent again": str(r["tokens_sent_again"]),
            "other cores": noise, "health": health}
    if s == "tools":
        return f"tools c={r['concurrency']}", {
            "overhead p50/p95/p99 ms": lat(r["overhead"]), "whole call": lat(r["call"]), "health": health}
    if s == "idle":
        kinds = {k: num(v["kb_per_connection"]) for k, v in r["rss"].items() if k not in ("loadgen", "upstream")}
        return f"idle {'distinct' if r['distinct'] else 'same run'} n={r['open']}", {
            "KiB/conn by process": ", ".join(f"{k} {v}" for k, v in kinds.items()), "opened in s": num(r["open_s"])}
    return s, {}


def main():
    print("| scenario | result |\n| --- | --- |")
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        result = json.loads(line)
        scenario, metrics = describe(result)
        print(f"| {scenario} | {'; '.join(f'{k}: {v}' for k, v in metrics.items())} |")


main()
