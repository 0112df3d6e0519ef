"""Attacks by runs: answers of a hostile tool server, trees of subagents, and owners who take every slot."""
import http.server, json, threading, time

from .beside import Attack, again, side_by_side
from .server import MALLORY, tally, token


def small_values():
    """Returns 16.5 MB of small values."""
    return b"[" + b"{}," * 5_499_999 + b"{}]"


class HostileTools(http.server.BaseHTTPRequestHandler):
    """A tool server (JSON-RPC over plain POST) whose results are full of small values."""

    flood = small_values()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        start = b'{"jsonrpc":"2.0","id":%s,"result":' % json.dumps(request.get("id")).encode()
        if request["method"] == "initialize":
            result = json.dumps({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}).encode()
        elif request["method"] == "tools/list":
            tool = {"name": "flood", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
            result = json.dumps({"tools": [tool]}).encode()
        else:
            result = b'{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":%s}}' % self.flood
        body = start + result + b"}"
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *_):
        pass


class Answers(Attack):
    """Runs call a tool server that answers with 16.5 MB of small values, three calls at once."""

    def prepare(self, server):
        self.tools = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HostileTools)
        threading.Thread(target=self.tools.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self.tools.server_port}/"
        definition = {"name": "flooded", "mcp_servers": [{"name": "evil", "transport": "rpc", "url": url}]}
        definition["tools"] = {"evil__flood": {"effect": "read_only"}}
        self.agent = server.operate("POST", "/v1/agents", definition)["id"]

    def strike(self, server, until):
        text = "[parallel] " + "[call=evil__flood {}] " * 3 + "[tokens=1]"

        def send():
            run = server.json("POST", "/v1/runs", {"input": text, "agent_id": self.agent}, MALLORY)["run"]["id"]
            return server.complete(run, MALLORY), None

        return "runs: " + tally(again(until, send))


class Trees(Attack):
    """One message to agents that delegate to each other, ten calls at a time."""

    def prepare(self, server):
        name = {"name": "even"}
        self.agent = server.operate("POST", "/v1/agents", name)["id"]
        other = {"name": "odd", "subagents": [{"agent": self.agent}]}
        odd = server.operate("POST", "/v1/agents", other)["id"]
        cycle = {"name": "even", "subagents": [{"agent": odd}]}
        operator = {"authorization": "Bearer " + token("operator", role="operator")}
        answer = server.ask("PATCH", f"/v1/agents/{self.agent}", cycle, **operator)
        self.cycle = f"{answer[0]} {answer[1] or ''}".strip()
        if answer[0] >= 300:
            answer = server.ask("PATCH", f"/v1/agents/{self.agent}", {**cycle, "recursive": 8}, **operator)
            self.cycle += f", with recursive: {answer[0]} {answer[1] or ''}".rstrip()

    def strike(self, server, until):
        leaf = "[tokens=1]"
        for depth, name in enumerate(["odd", "even", "odd"]):
            # At once only in the innermost ones, because an owner's unfinished runs have a limit too.
            leaf = ("" if depth else "[parallel] ") + f"[delegate={name} {leaf}] " * 11 + "[tokens=1]"
        answer = server.ask("POST", "/v1/runs", {"input": leaf, "agent_id": self.agent}, MALLORY)
        if answer[0] >= 300:
            return f"a cycle: {self.cycle}; the message: {answer[0]} {answer[1]}"
        run = json.loads(answer[2])["run"]["id"]
        server.complete(run, MALLORY, within_ms=60_000)
        status = server.json("GET", f"/v1/runs/{run}", user=MALLORY)["status"]
        started = server.query("select count(*) from agent_runs where owner_id = ?", MALLORY)
        time.sleep(max(0.0, until - time.monotonic()))
        return f"a cycle: {self.cycle}; one message: {started} runs, {status}"


class Slots(Attack):
    """Owners keep a hundred runs of a minute each."""

    greedy = 12

    def strike(self, server, until):
        def send(i):
            answer = server.ask("POST", "/v1/runs", {"input": "[tokens=2] [delay=60000]"}, f"greedy-{i}")
            if answer[0] == 429:
                time.sleep(0.5)
            return answer

        return f"{self.greedy} owners: " + tally(side_by_side(self.greedy, until, send))


class OneOwner(Slots):
    __doc__, greedy = "One owner keeps a hundred runs of a minute each.", 1


class ThreeOwners(Slots):
    __doc__, greedy = "Three owners keep a hundred runs of a minute each.", 3


ATTACKS = [Answers, Trees, OneOwner, ThreeOwners, Slots]
