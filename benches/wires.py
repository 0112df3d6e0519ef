"""Measures the relay on each wire: 64 runs at full speed with one client each, and one run with 1,000 watchers.

    python3 benches/wires.py target/release/holdfast [WATCHERS]

One embedded process, on SQLite. Prints a table: CPU of the process in ms per 1,000 tokens and client, and its ratio to the native
wire's. The runs' own work is part of the first figure, and little of the second.
"""

import asyncio
import json
import os
import sys

from deployment import Deployment

RUNS, TOKENS = 64, 400
WATCHED_TOKENS, DELAY_MS = 200, 20
TICKS = os.sysconf("SC_CLK_TCK")
LANGGRAPH = {"assistant_id": "agent", "stream_mode": ["messages-tuple"]}


def message(text):
    return {"role": "user", "parts": [{"kind": "text", "text": text}]}


def body_of(wire, n, text):
    """Returns the path and the body of a request that starts a run on a wire, and streams it."""
    return {
        "native": ("/v1/runs", {"input": text}),
        "ai-sdk": ("/api/chat", {"id": f"a{n}", "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": text}]}]}),
        "responses": ("/openai/v1/responses", {"input": text, "stream": True}),
        "completions": ("/openai/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "stream": True}),
        "AG-UI": ("/ag-ui", {"threadId": f"t{n}", "runId": f"r{n}", "messages": [{"id": "1", "role": "user", "content": text}]}),
        "LangGraph": ("/langgraph/runs/stream", {**LANGGRAPH, "input": {"messages": [{"role": "user", "content": text}]}}),
        "A2A": ("/a2a", {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": {**message(text), "messageId": f"m{n}", "kind": "message"}}}),
    }[wire]


def path_of(wire, run, thread):
    """Returns the request by which a watcher follows a run; its body is empty for a GET."""
    return {
        "LangGraph": (f"/langgraph/threads/{thread}/runs/{run}/stream?stream_mode=messages-tuple", None),
        "native": (f"/v1/runs/{run}/events", None),
        "ai-sdk": (f"/v1/runs/{run}/events?wire=ai-sdk", None),
        "responses": (f"/openai/v1/responses/resp_{run.replace('-', '')}?stream=true", None),
        "AG-UI": (f"/ag-ui/runs/{run}", None),
        "A2A": ("/a2a", {"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": run}}),
    }.get(wire)


async def stream(port, path, body, first=None):
    """Reads a stream to its end, and returns its bytes. `first` gets the head of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    data = json.dumps(body).encode() if body else b""
    head = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: text/event-stream\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), (path, answer, await reader.read())
    if first:
        first(answer.decode())
    count = 0
    while chunk := await reader.read(1 << 16):
        count += len(chunk)
    writer.close()
    return count


def cpu(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


async def runs(port, pid, wire, offset):
    before = cpu(pid)
    requests = [body_of(wire, offset + n, f"[tokens={TOKENS}] {n}") for n in range(RUNS)]
    await asyncio.gather(*[stream(port, path, body) for path, body in requests])
    return (cpu(pid) - before) / (RUNS * TOKENS / 1000)


async def watchers(deployment, pid, wire, count):
    port = deployment.port
    started = asyncio.get_running_loop().create_future()

    def note(head):
        line = next(line for line in head.split("\r\n") if line.startswith("x-run-id: "))
        started.set_result(line.removeprefix("x-run-id: "))

    text = f"[tokens={WATCHED_TOKENS}] [delay={DELAY_MS}] watched"
    own = asyncio.create_task(stream(port, *body_of("native", 0, text), note))
    run = await started
    thread = (await asyncio.to_thread(deployment.request, "GET", f"/v1/runs/{run}"))["conversation_id"]
    request = path_of(wire, run, thread)
    before = cpu(pid)
    await asyncio.gather(own, *[stream(port, *request) for _ in range(count)])
    return (cpu(pid) - before) / (count * WATCHED_TOKENS / 1000)


async def measure(deployment, count):
    port, pid = deployment.port, deployment.pids["holdfast"]
    rows, wires = {}, ["native", "ai-sdk", "responses", "completions", "AG-UI", "LangGraph", "A2A"]
    await runs(port, pid, "native", 0)
    for round in range(3):
        for place, wire in enumerate(wires):
            offset = (round * len(wires) + place + 1) * RUNS
            rows.setdefault(wire, ([], []))[0].append(await runs(port, pid, wire, offset))
            if path_of(wire, "", ""):
                rows[wire][1].append(await watchers(deployment, pid, wire, count))
    print(f"| wire | {RUNS} runs, ms | of native | {count:,} watchers, ms | of native |\n|---|---|---|---|---|")
    medians = {wire: [sorted(times)[1] if times else None for times in row] for wire, row in rows.items()}
    for wire, row in medians.items():
        cells = [f"{value:.2f} | {value / native:.2f}" if value else "– | –" for value, native in zip(row, medians["native"])]
        print(f"| {wire} | {' | '.join(cells)} |")


limits = {"HOLDFAST_STREAMS_PER_USER": "0", "HOLDFAST_STREAMS_PER_ADDRESS": "0", "HOLDFAST_RUNS_PER_OWNER": "0"}
with Deployment(sys.argv[1], "SQLite", limits) as deployment:
    deployment.start_holdfast()
    asyncio.run(measure(deployment, int(sys.argv[2]) if len(sys.argv) > 2 else 1000))
