"""Measures what subagents cost beside their own work: makes N runs of a running server delegate, one at a time, and then
N / 20 planners execute three steps of 2 s side by side.

    python3 benches/delegate.py http://127.0.0.1:8080 200

A delegation takes from the event `subagent.started` of the run to its next `step.started`. The child's own work takes from
its first `step.started` to its last `step.completed`. A planner's turn takes from `run.queued` to `run.completed`; the answer
of its model takes no time.
"""

import json
import statistics
import sys
import urllib.request
from datetime import datetime

base, count = sys.argv[1], int(sys.argv[2])


def request(method, path, body=None, accept="application/json"):
    data = json.dumps(body).encode() if body is not None else None
    headers = {"content-type": "application/json", "accept": accept}
    return urllib.request.urlopen(urllib.request.Request(base + path, data, headers, method=method)).read().decode()


def events(stream):
    return [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]


def ms(event):
    return datetime.fromisoformat(event["at"]).timestamp() * 1000


def first(log, kind, after=0):
    return next(event for event in log[after:] if event["type"] == kind)


request("POST", "/v1/agents", {"name": "helper"})
lead = json.loads(request("POST", "/v1/agents", {"name": "lead", "subagents": [{"agent": "helper"}]}))["id"]
costs = []
for _ in range(count):
    body = {"agent_id": lead, "input": "[delegate=helper [tokens=5] help] [tokens=1]"}
    log = events(request("POST", "/v1/runs", body, "text/event-stream"))
    started = next(index for index, event in enumerate(log) if event["type"] == "subagent.started")
    delegation = ms(first(log, "step.started", started)) - ms(log[started])
    child = events(request("GET", f"/v1/runs/{log[started]['child_run_id']}/events", accept="text/event-stream"))
    work = ms(first(list(reversed(child)), "step.completed")) - ms(first(child, "step.started"))
    costs.append(delegation - work)
costs.sort()
print(f"{count} delegations: {statistics.median(costs):.1f} ms p50, {costs[int(count * 0.95)]:.1f} ms p95 beside the child's work")

planner = json.loads(request("POST", "/v1/agents", {"name": "planner of the benchmark", "kind": "planner"}))["id"]
steps = [{"step_number": n, "description": "[tokens=20] [delay=100]", "executor_required": True} for n in (1, 2, 3)]
turns = []
for _ in range(max(1, count // 20)):
    plan = json.dumps({"goal": "three at once", "steps": steps})
    log = events(request("POST", "/v1/runs", {"agent_id": planner, "input": f"[plan={plan}] [delay=0]"}, "text/event-stream"))
    turns.append(ms(log[-1]) - ms(log[0]))
turns.sort()
print(f"{len(turns)} plans of three steps of 2 s: {statistics.median(turns):.0f} ms p50, {turns[-1]:.0f} ms at most")
