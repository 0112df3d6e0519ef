"""A private server of an attack, and the requests that attackers send to it. Nothing here sends to another host."""
import base64, hashlib, hmac, http.client, json, os, random, socket, sqlite3, subprocess, tempfile, threading, time

KEY = "a secret of this benchmark, long enough for HS256"
BASE = {"HOLDFAST_JWT_KEY": KEY}
VICTIM, MALLORY = "victim", "mallory"


def token(user, **claims):
    def encode(part):
        return base64.urlsafe_b64encode(part).rstrip(b"=")

    claims = {"sub": user, "exp": 4102444800, **claims}
    body = encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + encode(json.dumps(claims).encode())
    return (body + b"." + encode(hmac.new(KEY.encode(), body, hashlib.sha256).digest())).decode()


def free_port():
    """Returns a port that the system gives to no other program until the server has it."""
    while True:
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
                return free.getsockname()[1]
            except OSError:
                continue


class Server:
    """A private server, its memory, and the probe of its health."""

    def __init__(self, program, **settings):
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory()
        environment = {
            "PATH": os.environ["PATH"],
            "HOLDFAST_ADDR": f"127.0.0.1:{self.port}",
            "HOLDFAST_DATA_DIR": self.folder.name,
            "CHAT_MODEL_PROVIDER": "scripted",
            **(BASE if settings.pop("is_jwt", True) else {}),
            **settings,
        }
        self.log = open(os.path.join(self.folder.name, "log"), "wb")
        self.process = subprocess.Popen([program], env=environment, stdout=self.log, stderr=self.log)
        for _ in range(200):
            try:
                if self.ask("GET", "/readyz")[0] == 200:
                    break
            except OSError:
                time.sleep(0.05)
        else:
            raise RuntimeError("the server does not start: " + open(self.log.name).read()[-500:])
        self.before = self.memory()
        self.peak = self.before
        self.slowest = 0.0
        self.unanswered = 0
        self.stopped = threading.Event()
        self.probe = threading.Thread(target=self.watch)
        self.probe.start()

    def memory(self):
        try:
            with open(f"/proc/{self.process.pid}/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
        except (OSError, StopIteration):
            return 0.0

    def watch(self):
        while not self.stopped.is_set():
            started_at = time.monotonic()
            try:
                self.ask("GET", "/healthz", timeout=20)
            except OSError:
                self.unanswered += 1
            self.slowest = max(self.slowest, time.monotonic() - started_at)
            self.peak = max(self.peak, self.memory())
            self.stopped.wait(0.05)

    def ask(self, method, path, body=None, user=None, timeout=30, address="127.0.0.1", **headers):
        """Makes one request; returns status, problem code and the complete body. Bytes are sent as they are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout, source_address=(address, 0))
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if user:
            headers["authorization"] = f"Bearer {token(user)}"
        if body is not None and not isinstance(body, bytes):
            headers["content-type"] = "application/json"
            body = json.dumps(body)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()
        try:
            code = json.loads(text).get("code")
        except (ValueError, AttributeError):
            code = None
        return answer.status, code, text

    def json(self, method, path, body=None, user=None, **headers):
        """Makes one request that must succeed; returns its JSON."""
        status, code, text = self.ask(method, path, body, user, **headers)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {code} {text[:300]}")
        return json.loads(text) if text else None

    def operate(self, method, path, body=None):
        """Makes one request as an operator; returns its JSON."""
        return self.json(method, path, body, authorization="Bearer " + token("operator", role="operator"))

    def upload(self, name, media_type, contents, user=None, **headers):
        """Stores a file; returns its id, or the refusal."""
        disposition = f'attachment; filename="{name}"'
        headers = {"content_type": media_type, "content_disposition": disposition, **headers}
        status, code, text = self.ask("POST", "/v1/files", contents, user, timeout=120, **headers)
        return json.loads(text)["id"] if status == 201 else f"{status} {code}"

    def complete(self, run_id, user=None, within_ms=60_000, **headers):
        """Waits for the end of a run; returns its status."""
        path = f"/v1/runs/{run_id}/wait?timeout_ms={within_ms}"
        answer = self.ask("GET", path, user=user, timeout=within_ms / 1000 + 10, **headers)
        return json.loads(answer[2]).get("status")

    def stored(self):
        """Returns the MiB in the data folder."""
        sizes = (os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(self.folder.name) for name in names)
        return sum(sizes) / 2**20

    def query(self, sql, *values):
        """Returns the one value of a query of the server's database."""
        database = sqlite3.connect(f"file:{self.folder.name}/holdfast.db?mode=ro", uri=True)
        try:
            return database.execute(sql, values).fetchone()[0]
        finally:
            database.close()

    def open(self, path, user):
        """Sends a GET on a connection with a small buffer; returns the socket and the beginning of the response."""
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.settimeout(30)
        opened.connect(("127.0.0.1", self.port))
        opened.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token(user)}\r\n\r\n".encode())
        return opened, opened.recv(1024)

    def stream(self, path, user):
        """Opens a stream from another address and leaves it open; returns the socket and the status line."""
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=3, source_address=("127.0.0.2", 0))
        opened.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\nauthorization: Bearer {token(user)}\r\n\r\n".encode())
        try:
            return opened, opened.recv(64).split(b"\r\n")[0].decode() or "closed"
        except ConnectionError:
            return opened, "closed"
        except OSError:
            return opened, "no answer"

    def end(self):
        self.stopped.set()
        self.probe.join()
        died = self.process.poll()
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
        figures = f"/healthz at most {self.slowest * 1000:,.0f} ms"
        if self.unanswered:
            figures += f", {self.unanswered} unanswered"
        figures += f"; memory {self.before:.0f} → {self.peak:.0f} MiB"
        return figures + (f"; THE PROCESS DIED ({died})" if died is not None else "")


def concurrently(count, work):
    """Runs `work(i)` in `count` threads and returns what each returned or raised."""
    results = [None] * count

    def one(i):
        try:
            results[i] = work(i)
        except OSError as error:
            results[i] = ("disconnected", type(error).__name__, b"")

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def tally(results):
    counts = {}
    for status, code, *_ in results:
        name = f"{status} {code}" if code else str(status)
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items()))
