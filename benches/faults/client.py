"""A client that starts one run, loses its connection again and again, and checks every event that it receives."""

import asyncio
import json
import re
import uuid

GREETING = "This is Holdfast's scripted model; set CHAT_MODEL_PROVIDER to connect a real one.".split()
CYCLE = "anchor beacon cable dock eddy fathom gale harbour island jetty keel lantern".split()
TERMINAL = {"run.completed", "run.failed", "run.cancelled"}
#: A connection that is silent for longer counts as dead; heartbeats come every 15 s.
SILENCE = 46


def scripted_answer(tokens):
    """Returns the scripted model's answer."""
    words = [GREETING[k - 1] if k <= len(GREETING) else f"{CYCLE[k % len(CYCLE)]}{k}" for k in range(1, tokens + 1)]
    return "".join(word + " " for word in words)


class RequestFailed(Exception):
    """The connection or the server failed; a retry may succeed."""


class Violation(Exception):
    """A promise was broken."""


class Response:
    def __init__(self, status, headers, reader, writer):
        self.status, self.headers, self.reader, self.writer = status, headers, reader, writer

    async def chunks(self):
        """Yields the parts of the body; a clean end ends the iteration."""
        if "content-length" in self.headers:
            yield await self.reader.readexactly(int(self.headers["content-length"]))
            return
        while self.headers.get("transfer-encoding") == "chunked":
            size = int(await asyncio.wait_for(self.reader.readuntil(b"\r\n"), SILENCE), 16)
            data = await self.reader.readexactly(size + 2)
            if size == 0:
                return
            yield data[:-2]

    async def json(self):
        return json.loads(b"".join([chunk async for chunk in self.chunks()]) or b"null")

    async def events(self):
        buffer = b""
        async for chunk in self.chunks():
            *frames, buffer = (buffer + chunk).split(b"\n\n")
            for frame in frames:
                data = [line[6:] for line in frame.split(b"\n") if line.startswith(b"data: ")]
                if data:
                    yield json.loads(data[0])


class Log:
    """The events that one client has received; `take` checks that none is missing."""

    def __init__(self):
        self.cursor, self.events, self.ended = (0, 0), [], None

    def take(self, event):
        at = tuple(int(part) for part in event["id"].split("-"))
        base = tuple(int(part) for part in event["base"].split("-")) if event.get("base") else None
        starts_attempt = at[1] == 1 and (base is None or self.cursor >= base)
        if at <= self.cursor or not (starts_attempt or at == (self.cursor[0], self.cursor[1] + 1)):
            raise Violation(f"order: {event['id']} does not follow {self.cursor}")
        if self.ended:
            raise Violation(f"doubled: {event['id']} comes after the end")
        if at[1] == 1 and base is not None:
            self.events = [kept for kept in self.events if kept[0] <= base]
        self.cursor = at
        self.events.append((at, event.get("text", "") if event["type"] == "message.delta" else ""))
        if event["type"] in TERMINAL:
            self.ended = event["type"]

    def text(self):
        return "".join(text for _, text in self.events)


class Client:
    def __init__(self, stack, rng, totals, violations):
        self.stack, self.rng, self.totals, self.violations = stack, rng, totals, violations
        self.user, self.key, self.run_id = f"user-{rng.randrange(40)}", uuid.UUID(int=rng.getrandbits(128)).hex, None
        self.tokens, self.delay = rng.choice([20, 80, 200, 400]), rng.choice([10, 30, 50])
        self.log = Log()

    async def ask(self, method, path, body=None, **headers):
        """Sends one request to one of the APIs."""
        gate = self.stack.gates[self.rng.choice(["api-1", "api-2"])]
        headers = {"host": f"127.0.0.1:{gate.port}", "x-user": self.user, "connection": "close"} | headers
        body = json.dumps(body).encode() if body is not None else b""
        if body:
            headers |= {"content-type": "application/json", "content-length": str(len(body))}
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        try:
            lines = [f"{method} {path} HTTP/1.1"] + [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join(lines + ["", ""]).encode() + body)
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SILENCE)).decode("latin-1")
        except BaseException:
            writer.close()
            raise
        first, *rest = head.strip().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
        response = Response(int(first.split()[1]), fields, reader, writer)
        if response.status == 503 or response.status == 429:
            writer.close()
            raise RequestFailed(str(response.status))
        if response.status not in (200, 202, 204):
            problem = await response.json()
            writer.close()
            what = f"HTTP {response.status} {problem.get('code')}: {method} {re.sub('[0-9a-f-]{36}|[?].*', '…', path)}"
            if response.status >= 500:
                # Counted and retried, so that later behaviour is checked too.
                self.violations[what] += 1
                raise RequestFailed(what)
            raise Violation(what)
        return response

    async def post(self, **headers):
        directive = f"[tokens={self.tokens}] [delay={self.delay}] hi"
        response = await self.ask("POST", "/v1/runs", {"input": directive}, idempotency_key=self.key, **headers)
        run_id = response.headers.get("x-run-id")
        if run_id is None:
            run_id = (await response.json())["run"]["id"]
        if self.run_id not in (None, run_id):
            raise Violation(f"doubled: one key, two runs: {self.run_id} and {run_id}")
        if self.run_id is None:
            self.run_id = run_id
            self.totals["runs"] += 1
        return response

    async def read(self, response):
        """Reads events, and sometimes disconnects early."""
        left = self.rng.choice([3, 20, 100, 10_000])
        try:
            if response.status == 204:
                return
            async for event in response.events():
                self.log.take(event)
                left -= 1
                if left == 0 and not self.log.ended:
                    return
            if not self.log.ended:
                raise Violation("a stream ended cleanly in mid-run")
        finally:
            response.writer.close()

    async def connect_once(self):
        """Makes one connection of a random kind."""
        sse, cursor = {"accept": "text/event-stream"}, "{}-{}".format(*self.log.cursor)
        path = f"/v1/runs/{self.run_id}/events"
        kind = self.rng.choice(["header", "query", "repost", "restart", "page", "snapshot", "wait"])
        if self.run_id is None:
            response = await self.post(**self.rng.choice([sse, {"accept": "application/json"}]))
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                await self.read(response)
            else:
                response.writer.close()
            return
        self.totals["reconnects"] += 1
        if kind == "header":
            await self.read(await self.ask("GET", path, last_event_id=cursor, **sse))
        elif kind == "query":
            await self.read(await self.ask("GET", f"{path}?after={cursor}", **sse))
        elif kind == "repost":
            await self.read(await self.post(last_event_id=cursor, **sse))
        elif kind == "restart":
            self.log = Log()
            await self.read(await self.ask("GET", path, **sse))
        elif kind == "page":
            page = await self.ask("GET", f"{path}?after={cursor}&limit=200", accept="application/json")
            for event in (await page.json())["events"]:
                self.log.take(event)
            page.writer.close()
        elif kind == "snapshot":
            response = await self.ask("GET", f"{path}?snapshot=true", accept="application/json")
            snapshot = await response.json()
            response.writer.close()
            if not scripted_answer(self.tokens).startswith(snapshot["snapshot"]["text"]):
                raise Violation("order: a snapshot is no prefix of the answer")
        else:
            response = await self.ask("GET", f"/v1/runs/{self.run_id}/wait?timeout_ms=1000", accept="application/json")
            await response.json()
            response.writer.close()

    async def follow_to_end(self):
        """Reconnects until the run has ended, and then compares message, events and a replay with the answer."""
        await self.repeat_until(lambda: self.log.ended is not None, self.connect_once)
        self.run = None
        await self.repeat_until(lambda: self.run is not None, self.read_run)
        if self.run["status"] != "completed" or self.log.ended != "run.completed":
            raise Violation(f"failed: {self.run['status']}, {self.run.get('error')}")
        expected = scripted_answer(self.tokens)
        for what, text in [("message", self.run["output_message"]["content"]), ("fold", self.log.text())]:
            if text != expected:
                raise Violation(f"lost or doubled: the {what} has {len(text)} characters, not {len(expected)}")
        # One more read from the start: the replay must equal the pieces that were read before.
        first_log, self.log = self.log, Log()
        response = None
        while not self.log.ended:
            self.log = Log()
            try:
                response = await self.ask("GET", f"/v1/runs/{self.run_id}/events", accept="text/event-stream")
                async for event in response.events():
                    self.log.take(event)
                response.writer.close()
            except (OSError, EOFError, asyncio.TimeoutError, RequestFailed):
                await asyncio.sleep(0.3)
        if self.log.text() != first_log.text():
            raise Violation("lost or doubled: a replay differs from the events that were followed")
        self.totals["ended"] += 1

    async def read_run(self):
        response = await self.ask("GET", f"/v1/runs/{self.run_id}", accept="application/json")
        self.run = await response.json()
        response.writer.close()

    async def repeat_until(self, done, step):
        while not done():
            try:
                await step()
            except (OSError, EOFError, asyncio.TimeoutError, RequestFailed, ValueError):
                # `ValueError`: a body that was truncated in the middle of its JSON or of a chunk's size.
                await asyncio.sleep(self.rng.uniform(0.05, 1))
