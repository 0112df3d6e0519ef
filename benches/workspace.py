"""Measures a workspace of 10,000 entities among 1,000,000 tasks of others, on both databases: lists, searches, and a project of
500 entities. Prints a table in Markdown.

    python3 benches/workspace.py target/release/holdfast

It makes its own PostgreSQL, Redis and data folder, and takes some minutes. OTHERS=10000 is for a quick try.
"""

import glob
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

program = os.path.abspath(sys.argv[1])
OTHERS = int(os.environ.get("OTHERS", 1_000_000))
OWN, PROJECTS, WITHIN, REQUESTS = 9_200, 20, 10, 200
EVERY = OTHERS // OWN + 1
AT = "2026-11-26T00:00:00.000+00:00"
WORDS = ["Call", "Measure", "Paint", "Repair", "Order", "Count", "Plan", "Write"]
THINGS = ["harbour", "tide", "crane", "rope", "lantern", "ledger", "anchor", "chart", "signal", "pier"]
work = tempfile.mkdtemp()
processes = []


def title(n):
    return f"{WORDS[n % 8]} the {THINGS[n // 8 % 10]} {n}"


def port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(command, **settings):
    log = open(os.path.join(work, "log"), "a")
    processes.append(subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings}))


def until(works):
    for _ in range(600):
        try:
            return works()
        except Exception:
            time.sleep(0.1)
    raise SystemExit(f"a server did not start; see {work}/log")


def request(path, body=None):
    data = json.dumps(body).encode() if body else None
    call = urllib.request.Request(base + path, data, {"content-type": "application/json"})
    return json.loads(urllib.request.urlopen(call).read())


def uuid(space, n):
    return f"01a00000-0000-7{space:03x}-8000-{n:012x}"


def rows():
    """Returns the rows of each table: projects, tasks, and the other kinds of the measured owner's projects."""
    projects = [(uuid(1, p), "debug_user", f"Port {p}") for p in range(PROJECTS)]
    others = [(uuid(1, PROJECTS + o), f"other{o}", f"Port {o}") for o in range(OTHERS // 1000 + 1)]
    yield "projects", "name", None, projects + others
    tasks = []
    for n in range(OTHERS + OWN):
        is_own = n % EVERY == 0
        project = n // EVERY % PROJECTS if is_own else PROJECTS + n % (OTHERS // 1000 + 1)
        owner = "debug_user" if is_own else f"other{n % (OTHERS // 1000 + 1)}"
        tasks.append((uuid(2, n), owner, uuid(1, project), title(n), n % 6 or None))
    yield "tasks", "title", "priority", tasks
    for space, (kind, name) in enumerate([("goals", "name"), ("plans", "name"), ("documents", "title"), ("outputs", "name")], 3):
        of_kind = [(uuid(space, p * WITHIN + n), "debug_user", uuid(1, p), title(n)) for p in range(PROJECTS) for n in range(WITHIN)]
        yield kind, name, None, of_kind


STATES = {"projects": "planning", "tasks": "todo", "plans": "draft", "goals": "open", "documents": "draft", "outputs": "draft"}


def fill_sqlite(file):
    database = sqlite3.connect(file)
    blob = lambda text: bytes.fromhex(text.replace("-", ""))
    for kind, name, extra, of_kind in rows():
        within = "" if kind == "projects" else "project_id, "
        columns = f"id, owner_id, {within}{name}, folded, state, props, version, created_at, updated_at{', priority' if extra else ''}"
        values = []
        for row in of_kind:
            (ident, owner), rest = row[:2], row[2:]
            project = [] if kind == "projects" else [blob(rest[0])]
            own_title = rest[0] if kind == "projects" else rest[1]
            values.append([blob(ident), owner, *project, own_title, own_title.lower(), STATES[kind], "{}", 1, AT, AT, *(rest[2:] if extra else [])])
        marks = ", ".join("?" * len(values[0]))
        database.executemany(f"insert into onto_{kind} ({columns}) values ({marks})", values)
    database.commit()
    database.execute("analyze")
    database.close()


def fill_postgres(psql):
    for kind, name, extra, of_kind in rows():
        within = "" if kind == "projects" else "project_id, "
        columns = f"id, owner_id, {within}{name}, folded, state, props, version, created_at, updated_at{', priority' if extra else ''}"
        copy = subprocess.Popen([*psql, "-c", f"copy kb.onto_{kind} ({columns}) from stdin"], stdin=subprocess.PIPE, text=True)
        for row in of_kind:
            (ident, owner), rest = row[:2], row[2:]
            project = [] if kind == "projects" else [rest[0]]
            own_title = rest[0] if kind == "projects" else rest[1]
            values = [ident, owner, *project, own_title, own_title.lower(), STATES[kind], "{}", "1", AT, AT]
            values += ["\\N" if rest[2] is None else str(rest[2])] if extra else []
            copy.stdin.write("\t".join(values) + "\n")
        copy.stdin.close()
        assert copy.wait() == 0
    subprocess.run([*psql, "-c", "vacuum analyze"], check=True, stdout=subprocess.DEVNULL)


def measure(call):
    times = []
    for n in range(REQUESTS):
        begin = time.perf_counter()
        call(n)
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    return statistics.median(times), times[int(REQUESTS * 0.95)]


def details(n):
    arguments = {"project_id": uuid(1, n % PROJECTS)}
    call = {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "get_onto_project_details", "arguments": arguments}}
    answer = request("/mcp/rpc", call)
    assert not answer["result"]["isError"], answer


def search(query):
    def call(n):
        found = request("/v1/workspace/search?" + urllib.parse.urlencode({"q": query.format(THINGS[n % 10])}))["items"]
        assert found, query

    return call


MEASURED = [
    ("`search_ontology`, one word", search("{}")),
    ("`search_ontology`, two words", search("paint the {}")),
    ("`search_ontology`, a typing error", search("harbuor")),
    ("tasks, newest first", lambda n: request("/v1/workspace/tasks")),
    ("tasks of a project", lambda n: request(f"/v1/workspace/tasks?project_id={uuid(1, n % PROJECTS)}")),
    ("tasks of a priority", lambda n: request(f"/v1/workspace/tasks?priority={n % 5 + 1}&limit=200")),
    ("tasks that are due (there are none)", lambda n: request("/v1/workspace/tasks?due_before=2030-01-01")),
    ("projects", lambda n: request("/v1/workspace/projects")),
    ("documents of a project", lambda n: request(f"/v1/workspace/documents?project_id={uuid(1, n % PROJECTS)}")),
    ("`get_onto_project_details`, 500 entities", details),
]

results = {}
try:
    for name in ["PostgreSQL", "SQLite"]:
        address = f"127.0.0.1:{port()}"
        base = f"http://{address}"
        settings = {"HOLDFAST_ADDR": address, "HOLDFAST_LOG": "warn", "HOLDFAST_DATA_DIR": os.path.join(work, "data")}
        if name == "PostgreSQL":
            binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
            (pg_port, redis_port), cluster = (port(), port()), os.path.join(work, "pg")
            as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "nogroup", "--clear-groups"] if os.getuid() == 0 else []
            if as_postgres:
                os.chmod(work, 0o755)
                os.mkdir(cluster)
                shutil.chown(cluster, "postgres")
            subprocess.run([*as_postgres, f"{binaries}/initdb", "-D", cluster, "-A", "trust", "-U", "postgres"], check=True, stdout=subprocess.DEVNULL, cwd="/")
            start([*as_postgres, f"{binaries}/postgres", "-D", cluster, "-p", str(pg_port), "-c", f"unix_socket_directories={cluster}", "-c", "shared_buffers=256MB"])
            start(["redis-server", "--port", str(redis_port), "--save", "", "--appendonly", "no"])
            psql = [f"{binaries}/psql", "-h", "127.0.0.1", "-p", str(pg_port), "-U", "postgres", "-q", "-v", "ON_ERROR_STOP=1"]
            until(lambda: subprocess.run([*psql, "-c", "create database holdfast"], check=True, stderr=subprocess.DEVNULL))
            psql += ["-d", "holdfast"]
            settings |= {"DATABASE_URL": f"postgres://postgres@127.0.0.1:{pg_port}/holdfast", "REDIS_URL": f"redis://127.0.0.1:{redis_port}"}
            subprocess.run([program, "migrate"], check=True, env={**os.environ, **settings})
            fill_postgres(psql)
            start([program, "api"], **settings)
        else:
            subprocess.run([program, "migrate"], check=True, env={**os.environ, **settings})
            fill_sqlite(os.path.join(work, "data", "holdfast.db"))
            start([program], **settings)
        until(lambda: request("/v1/workspace/projects"))
        for what, call in MEASURED:
            measure(call)
            results[what, name] = measure(call)
            print(name, what, *(f"{ms:.1f}" for ms in results[what, name]), file=sys.stderr)
        processes.pop().terminate()
finally:
    for process in processes:
        process.terminate()
    shutil.rmtree(work, ignore_errors=True)

print("| request | PostgreSQL p50 / p95 ms | SQLite p50 / p95 ms |\n|---|---|---|")
for what, _ in MEASURED:
    cells = [f"{p50:.1f} / {p95:.1f}" for p50, p95 in (results[what, name] for name in ["PostgreSQL", "SQLite"])]
    print(f"| {what} | {' | '.join(cells)} |")
