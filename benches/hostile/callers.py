"""Attacks that take one moment. Each starts its own server, and returns the attacker's responses and the server's figures."""
import json, os, socket, threading, time

from .server import MALLORY, VICTIM, Server, concurrently, tally, token


def patterns(program):
    """client_tools whose schema compiles hundreds of regular expressions"""
    server = Server(program)

    def schema(count):
        return {"properties": {f"p{i}": {"pattern": f"\\pL{{100}}{i}"} for i in range(count)}}

    def body(count):
        return {"input": "[tokens=1]", "client_tools": [{"name": "ask", "input_schema": schema(count)}]}

    small = concurrently(3, lambda _: server.ask("POST", "/v1/runs", body(150), timeout=60))
    large = concurrently(1, lambda _: server.ask("POST", "/v1/runs", body(480), timeout=60))
    return f"3 × 150 patterns: {tally(small)}; 480 patterns, {len(json.dumps(body(480))) // 1024} KiB: {tally(large)}", server.end()


def rules(program):
    """a schema of thousands of rules against arguments of thousands of items"""
    server = Server(program)
    schema = {"type": "object", "properties": {"a": {"items": {"allOf": [{"minimum": 0}] * 4300}}}}
    text = "[call=ask " + json.dumps({"a": [1] * 20000}, separators=(",", ":")) + "] [tokens=1]"
    started_at = time.monotonic()
    answer = server.ask("POST", "/v1/runs", {"input": text, "client_tools": [{"name": "ask", "input_schema": schema}]}, timeout=60)
    answered = time.monotonic() - started_at
    slowest = 0.0
    for _ in range(100):
        started_at = time.monotonic()
        server.ask("GET", "/v1/users/me", user=VICTIM, timeout=60)
        slowest = max(slowest, time.monotonic() - started_at)
        time.sleep(0.03)
    return f"{tally([answer])} after {answered:.2f} s; another user's request took at most {slowest * 1000:,.0f} ms", server.end()


def streams(program):
    """one user who opens streams of a run that waits, until no connection is left"""
    server = Server(program, HOLDFAST_MAX_CONNECTIONS="500", HOLDFAST_CONNECTIONS_PER_ADDRESS="100")
    run = json.loads(server.ask("POST", "/v1/runs", {"input": "[approval]"}, user=MALLORY)[2])
    path = f"/v1/runs/{run['run']['id']}/events"
    opened = [server.stream(path, MALLORY) for _ in range(40)]
    more_streams = concurrently(560, lambda _: server.stream(path, MALLORY))
    opened += [stream for stream in more_streams if isinstance(stream[0], socket.socket)]
    open_streams = sum("200" in status for _, status in opened)
    refused = sum("429" in status for _, status in opened)
    closed = sum(status == "closed" for _, status in opened)
    try:
        started_at = time.monotonic()
        status = server.ask("GET", "/v1/runs", user=VICTIM, timeout=5)[0]
        victim = f"{status} in {(time.monotonic() - started_at) * 1000:.0f} ms"
    except OSError:
        victim = "no answer in 5 s"
    figures = server.end()
    for stream, _ in opened:
        stream.close()
    return f"600 attempts: {open_streams} streams held, {refused} × 429, {closed} closed unread; another user: {victim}", figures


def slots(program):
    """one user whose runs pause for a minute and hold the worker's slots"""
    server = Server(program)
    posted = [server.ask("POST", "/v1/runs", {"input": "[tokens=2] [delay=60000]"}, user=MALLORY) for _ in range(400)]
    started_at = time.monotonic()
    answer = server.ask("POST", "/v1/runs", {"input": "[tokens=1]"}, user=VICTIM)
    run = json.loads(answer[2])
    run_id = run["run"]["id"]
    try:
        ended = json.loads(server.ask("GET", f"/v1/runs/{run_id}/wait?timeout_ms=10000", user=VICTIM)[2])
        status = ended["status"]
    except (OSError, ValueError):
        status = "no answer"
    return f"400 runs: {tally(posted)}; another user's run: {status} after {time.monotonic() - started_at:.2f} s", server.end()


def writes(program):
    """an anonymous caller who stores briefings as fast as it can"""
    server = Server(program)
    agent = {"name": "clerk", "system_prompt": ""}
    operator = "Bearer " + token("operator", role="operator")
    agent_json = json.loads(server.ask("POST", "/v1/agents", agent, authorization=operator)[2])
    secret = json.loads(server.ask("POST", "/v1/users/anonymous")[2])["token"]
    body = {"agent_id": agent_json["id"], "title": "Briefing", "summary": "x" * 65_000, "data": {"x": "x" * 65_000}}
    started_at = time.monotonic()
    posted = [server.ask("POST", "/v1/briefings", body, authorization="Bearer " + secret) for _ in range(200)]
    took = time.monotonic() - started_at
    stored = sum(os.path.getsize(os.path.join(server.folder.name, name)) for name in os.listdir(server.folder.name))
    return f"200 briefings of 130 KB in {took:.1f} s: {tally(posted)}; {stored / 2**20:.0f} MiB on disk", server.end()


def pages(program):
    """a list of runs with long answers, requested by clients that read nothing"""
    server = Server(program)
    runs = []
    for _ in range(12):
        answer = json.loads(server.ask("POST", "/v1/runs", {"input": "[tokens=100000] [delay=0]"}, user=MALLORY)[2])
        runs.append(answer["run"]["id"])
    for run_id in runs:
        server.ask("GET", f"/v1/runs/{run_id}/wait?timeout_ms=60000", user=MALLORY, timeout=70)
    size = len(server.ask("GET", "/v1/runs", user=MALLORY)[2])
    server.before = server.peak = server.memory()
    silent = []
    for _ in range(30):
        opened = socket.create_connection(("127.0.0.1", server.port))
        opened.sendall(f"GET /v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token(MALLORY)}\r\n\r\n".encode())
        silent.append(opened)
    time.sleep(3)
    figures = server.end()
    for opened in silent:
        opened.close()
    return f"GET /v1/runs of 12 runs: {size / 1e6:.2f} MB; 30 clients that do not read", figures


def status_of(head):
    return int(head.split(b" ")[1])


def count_statuses(opened):
    statuses = [status_of(head) for _, head in opened]
    return ", ".join(f"{statuses.count(status)} × {status}" for status in sorted(set(statuses)))


def trickle(program):
    """100 clients of one user who read a list of 1 MB at 100 bytes a second"""
    # The time is lowered in proportion, because two minutes are too long for a benchmark.
    server = Server(program, HOLDFAST_ANSWER_TIMEOUT_MS="10000")
    operator = "Bearer " + token("operator", role="operator")
    agent_json = json.loads(server.ask("POST", "/v1/agents", {"name": "clerk", "system_prompt": ""}, authorization=operator)[2])
    body = {"agent_id": agent_json["id"], "title": "Briefing", "summary": "x" * 60_000, "data": {"x": "x" * 60_000}}
    for _ in range(10):
        server.ask("POST", "/v1/briefings", body, user=MALLORY)
    server.before = server.peak = server.memory()
    opened = [server.open("/v1/briefings", MALLORY) for _ in range(100)]
    readers = [(reader, head) for reader, head in opened if status_of(head) == 200]
    started_at = time.monotonic()
    victim = server.ask("GET", "/v1/briefings", user=VICTIM)
    while time.monotonic() - started_at < 15:
        for reader, _ in readers:
            try:
                reader.recv(100)
            except OSError:
                pass
        time.sleep(1)
    kept = server.memory()
    complete = 0
    for reader, head in readers:
        received = len(head)
        try:
            while chunk := reader.recv(65536):
                received += len(chunk)
                if received > 900_000:
                    complete += 1
                    break
        except OSError:
            pass
    for reader, _ in opened:
        reader.close()
    return f"{count_statuses(opened)}; after 15 s {complete} connections still receive their answer ({kept:.0f} MiB in all); another user: {tally([victim])}", server.end()


def searches(program):
    """50 searches of one user at once, beside another user's search"""
    server = Server(program)
    runs = []
    for _ in range(20):
        answer = json.loads(server.ask("POST", "/v1/runs", {"input": "[tokens=100000] [delay=0]"}, user=MALLORY)[2])
        runs.append(answer["run"]["id"])
    for run_id in runs:
        server.ask("GET", f"/v1/runs/{run_id}/wait?timeout_ms=120000", user=MALLORY, timeout=130)
    path = "/v1/conversations?q=nothing+of+the+kind+is+ever+said"
    started_at = time.monotonic()
    server.ask("GET", path, user=MALLORY)
    alone = time.monotonic() - started_at
    results = []
    attack = threading.Thread(target=lambda: results.extend(concurrently(50, lambda _: server.ask("GET", path, user=MALLORY))))
    attack.start()
    time.sleep(0.3)
    started_at = time.monotonic()
    victim = server.ask("GET", path, user=VICTIM)
    waited = time.monotonic() - started_at
    attack.join()
    return f"one search takes {alone * 1000:,.0f} ms; 50 at once: {tally(results)}; another user's search: {tally([victim])} after {waited * 1000:,.0f} ms", server.end()


def restores(program):
    """40 restorations at once of a conversation with 1,000 questions, beside another user's message"""
    server = Server(program)
    first = json.loads(server.ask("POST", "/v1/runs", {"input": "[tokens=0]"}, user=MALLORY)[2])
    conversation, question = first["conversation"]["id"], first["message"]["id"]
    path = f"/v1/conversations/{conversation}/messages"
    for number in range(1_000):
        body = {"content": f"[tokens=0] {number}", "stream": False}
        while server.ask("POST", path, body, user=MALLORY)[0] == 429:
            time.sleep(0.05)
    edit = {"content": "[tokens=0]", "replace_from": question}
    other = json.loads(server.ask("POST", path, edit, user=MALLORY)[2])["message"]["id"]
    started_at = time.monotonic()
    server.ask("POST", f"{path}/{question}/restore", user=MALLORY)
    alone = time.monotonic() - started_at
    results = []
    restore = lambda index: server.ask("POST", f"{path}/{other if index % 2 else question}/restore", user=MALLORY)
    attack = threading.Thread(target=lambda: results.extend(concurrently(40, restore)))
    attack.start()
    time.sleep(0.3)
    started_at = time.monotonic()
    victim = server.ask("POST", "/v1/runs", {"input": "[tokens=0]"}, user=VICTIM)
    waited = time.monotonic() - started_at
    attack.join()
    return f"one takes {alone * 1000:,.0f} ms; 40 at once: {tally(results)}; another user's message: {tally([victim])} after {waited * 1000:,.0f} ms", server.end()


def approvals(program):
    """the approvals of a run with inputs of 3.5 MB, requested by 30 clients that do not read"""
    # A model writes such inputs by itself; the scripted one copies them from the user's message.
    server = Server(program, HOLDFAST_MAX_CONTENT_BYTES="8000000", HOLDFAST_MAX_BODY_BYTES="8000000")
    call = "[call=scripted__approval " + json.dumps({"action": "x" * 500_000}) + "] "
    posted = server.ask("POST", "/v1/runs", {"input": call * 7 + "[parallel] [tokens=1]"}, user=MALLORY)
    run_id = json.loads(posted[2])["run"]["id"]
    for _ in range(600):
        if json.loads(server.ask("GET", f"/v1/runs/{run_id}", user=MALLORY)[2])["status"] == "waiting":
            break
        time.sleep(0.1)
    path = f"/v1/runs/{run_id}/approvals"
    size = len(server.ask("GET", path, user=MALLORY)[2])
    server.before = server.peak = server.memory()
    opened = [server.open(path, MALLORY) for _ in range(30)]
    time.sleep(2)
    figures = server.end()
    for reader, _ in opened:
        reader.close()
    return f"{size / 1e6:.2f} MB an answer; {count_statuses(opened)}", figures


def forwarded(program):
    """made-up X-Forwarded-For entries behind a trusted proxy"""
    server = Server(program, HOLDFAST_TRUSTED_PROXIES="127.0.0.1/32")
    body = {"input": "[tokens=1]"}
    made_up = [
        server.ask("POST", "/v1/runs", body, x_forwarded_for=f"198.51.100.{i}, 203.0.113.5") for i in range(100)
    ]
    for _ in range(12):
        server.ask("POST", "/v1/runs", body, x_forwarded_for="192.0.2.77, 203.0.113.6")
    victim = server.ask("POST", "/v1/runs", body, x_forwarded_for="192.0.2.77")
    return f"100 runs under made-up addresses: {tally(made_up)}; the caller who really has one of the addresses: {tally([victim])}", server.end()


ATTACKS = [patterns, rules, streams, slots, writes, pages, trickle, searches, restores, approvals, forwarded]
