"""A private deployment of Holdfast for the measurements in Python: PostgreSQL, Redis, an api and a worker, or one embedded
process on SQLite. All of it ends with the `with` block."""

import glob
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse


def port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(works):
    for _ in range(300):
        try:
            return works()
        except Exception:
            time.sleep(0.1)
    return works()


def fixed_work():
    """Returns the ms of a fixed piece of work on one core: a measure of the machine's current speed."""
    begin = time.perf_counter()
    sum(i * i for i in range(2_000_000))
    return round((time.perf_counter() - begin) * 1e3)


def percentile(times, part):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


class Deployment:
    """`database` is PostgreSQL or SQLite. `settings` are variables of the environment of its processes."""

    def __init__(self, program, database, settings=None, folder=None):
        self.program, self.database = os.path.abspath(program), database
        self.work = tempfile.mkdtemp(dir=folder)
        self.port, self.processes, self.pids = port(), [], {}
        self.settings = {
            "HOLDFAST_ADDR": f"127.0.0.1:{self.port}",
            "HOLDFAST_LOG": "warn",
            "HOLDFAST_DATA_DIR": os.path.join(self.work, "data"),
            **(settings or {}),
        }

    def __enter__(self):
        try:
            if self.database == "PostgreSQL":
                self.start_servers()
            self.run([self.program, "migrate"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.work, ignore_errors=True)

    def start_servers(self):
        binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        (pg_port, redis_port), cluster = (port(), port()), os.path.join(self.work, "pg")
        as_postgres = []
        if os.getuid() == 0:
            # PostgreSQL refuses root.
            as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "nogroup", "--clear-groups"]
            os.chmod(self.work, 0o755)
            os.mkdir(cluster)
            shutil.chown(cluster, "postgres")
        initdb = [*as_postgres, f"{binaries}/initdb", "-D", cluster, "-A", "trust", "-U", "postgres"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd="/")
        options = [f"unix_socket_directories={cluster}", "shared_buffers=256MB", "max_wal_size=4GB"]
        flags = [flag for option in options for flag in ("-c", option)]
        self.start("pg", [*as_postgres, f"{binaries}/postgres", "-D", cluster, "-p", str(pg_port), *flags], cwd="/")
        redis = ["redis-server", "--port", str(redis_port), "--save", "", "--appendonly", "no"]
        self.start("redis", redis, cwd=self.work)
        psql = [f"{binaries}/psql", "-h", "127.0.0.1", "-p", str(pg_port), "-U", "postgres", "-q"]
        self.psql = [*psql, "-v", "ON_ERROR_STOP=1", "-d", "holdfast"]
        create = [*psql, "-c", "create database holdfast"]
        until(lambda: subprocess.run(create, check=True, stderr=subprocess.DEVNULL))
        self.settings |= {
            "DATABASE_URL": f"postgres://postgres@127.0.0.1:{pg_port}/holdfast",
            "REDIS_URL": f"redis://127.0.0.1:{redis_port}",
        }

    def start(self, name, command, **options):
        log = open(os.path.join(self.work, f"{name}.log"), "a")
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **self.settings}, **options)
        self.processes.append(process)
        self.pids[name] = process.pid

    def run(self, command):
        subprocess.run(command, check=True, env={**os.environ, **self.settings})

    def start_holdfast(self):
        roles = {"api": ["api"], "worker": ["worker"]} if self.database == "PostgreSQL" else {"holdfast": []}
        for name, arguments in roles.items():
            self.start(name, [self.program, *arguments])
        try:
            until(lambda: self.request("GET", "/readyz"))
        except OSError:
            for name in roles:
                print(open(os.path.join(self.work, f"{name}.log")).read()[-2000:], file=sys.stderr)
            raise

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port)

    def request(self, method, path, body=None, headers=None, connection=None):
        """Returns the JSON of an answer. A connection can be kept for many requests."""
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        kind = {"content-type": "application/json"} if isinstance(body, (dict, list)) else {}
        own = connection or self.connect()
        own.request(method, path, data, {**kind, **(headers or {})})
        answer = own.getresponse()
        text = answer.read()
        if connection is None:
            own.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text) if text[:1] in (b"{", b"[") else text

    def events(self, run):
        """Returns the events of a run until its end."""
        stream = self.request("GET", f"/v1/runs/{run}/events", headers={"accept": "text/event-stream"})
        return [json.loads(line[6:]) for line in stream.decode().splitlines() if line.startswith("data: ")]

    def upload(self, name, contents):
        headers = {"content-disposition": f"attachment; filename=\"{urllib.parse.quote(name)}\""}
        return self.request("POST", "/v1/files", contents, headers)

    def ingest(self, collection, name, contents, title=None):
        """Adds a document to a collection, waits until it is ready, and returns it."""
        body = {"file_id": self.upload(name, contents)["id"], "title": title or name}
        added = self.request("POST", f"/v1/collections/{collection}/documents", body)
        self.events(added["run"]["id"])
        document = self.request("GET", f"/v1/documents/{added['document']['id']}")
        assert document["status"] == "ready", document
        return document

    def search(self, collection, query, limit, connection=None):
        path = f"/v1/collections/{collection}/search?" + urllib.parse.urlencode({"query": query, "limit": limit})
        return self.request("GET", path, connection=connection)["items"]

    def memory(self, name, field="VmRSS"):
        """Returns the resident memory of a process, in bytes; `VmHWM` is its peak."""
        with open(f"/proc/{self.pids[name]}/status") as status:
            line = next(line for line in status if line.startswith(field))
        return int(line.split()[1]) * 1024

    def forget_peak(self, name):
        with open(f"/proc/{self.pids[name]}/clear_refs", "w") as references:
            references.write("5")
