"""Bystanders: users who do something small again and again while an attack runs beside them, each timed.

They live in a process of their own, so the work of the attackers' programs does not delay their clocks."""
import http.client, json, multiprocessing, threading, time

from .server import token

FORK = multiprocessing.get_context("fork")


class Connection:
    """One user's connection, which it opens again after a failure."""

    def __init__(self, port, user):
        self.port, self.headers = port, {"authorization": f"Bearer {token(user)}", "content-type": "application/json"}
        self.open = None

    def ask(self, method, path, body=None):
        try:
            self.open = self.open or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self.open.request(method, path, None if body is None else json.dumps(body), self.headers)
            answer = self.open.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.open = None
            raise
        if answer.status >= 300:
            raise RuntimeError(f"{answer.status} {text[:200]}")
        return json.loads(text)


def one_word(connection, body=None):
    """Starts a run of one word and waits for its end."""
    run = connection.ask("POST", "/v1/runs", body or {"input": "[tokens=1]"})["run"]["id"]
    status = connection.ask("GET", f"/v1/runs/{run}/wait?timeout_ms=60000")["status"]
    if status != "completed":
        raise RuntimeError(status)


def listing(connection):
    """Reads its own list."""
    connection.ask("GET", "/v1/conversations")


def live(port, acts, count, seconds, name, report):
    times, failures = [], []

    def one(number):
        connection = Connection(port, f"{name}-{number}")
        end = time.monotonic() + seconds
        turn = number
        while (begin := time.monotonic()) < end:
            try:
                acts[turn % len(acts)](connection)
                times.append(time.monotonic() - begin)
            except (OSError, http.client.HTTPException, RuntimeError) as error:
                failures.append(str(error) or type(error).__name__)
            turn += 1
            time.sleep(max(0.0, begin + 0.1 - time.monotonic()))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.put((sorted(times), failures))


class Times:
    """The times of what bystanders did."""

    def __init__(self, times, failures):
        self.times, self.failures = times, failures

    def at(self, part):
        return self.times[min(len(self.times) - 1, int(len(self.times) * part))] * 1000 if self.times else float("nan")

    def __str__(self):
        text = f"{self.at(0.5):,.0f} / {self.at(0.95):,.0f} / {self.at(0.99):,.0f} ms"
        return text + (f", {len(self.failures)} failed ({self.failures[0][:80]})" if self.failures else "")


class Bystanders:
    """`count` users who act until `seconds` are over. Each does something every 100 ms at most."""

    def __init__(self, server, seconds, count=1, acts=(one_word,), name="bystander"):
        self.report = FORK.Queue()
        self.process = FORK.Process(target=live, args=(server.port, acts, count, seconds, name, self.report))
        self.process.start()

    def end(self):
        times = Times(*self.report.get())
        self.process.join()
        return times
