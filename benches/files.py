"""Measures uploads and downloads of 1 KiB, 1 MiB and 100 MiB, 1 and 16 at a time, in each store; their memory; and the
delivery of a run's tokens beside 8 uploads. Prints tables in Markdown.

    python3 benches/files.py target/release moto_server

The folder has `holdfast` and `fake-upstream` (benches/upstream). The second argument is the server of S3's protocol that the
tests use (tests/servers/s3/requirements.txt), which is slower than a bucket. STORES=folder is for one store, SCALE=10 for a
quick try. Clients are processes of this program, and share the cores with the server.
"""

import http.client
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import time

from deployment import Deployment, fixed_work, percentile, port, until

KIB, MIB = 2**10, 2**20
SCALE = int(os.environ.get("SCALE", 1))
STORES = os.environ.get("STORES", "folder database bucket").split()
LARGEST = 100 * MIB // SCALE
SIZES = {1 * KIB: 400, 1 * MIB: 96, LARGEST: 16}
PIECE = os.urandom(1 * MIB)
UPLOADS = 8


def contents(size):
    """Returns the parts of a file that no other one equals."""
    head = b"%PDF-1.7\n" + os.urandom(32)
    rest = size - len(head)
    return [head] + [PIECE] * (rest // len(PIECE)) + [PIECE[: rest % len(PIECE)]]


def upload(connection, size):
    headers = {"content-disposition": 'attachment; filename="a.pdf"', "content-length": str(size)}
    connection.request("POST", "/v1/files", iter(contents(size)), headers)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 201, (answer.status, text)
    return text.split(b'"id":"')[1][:36].decode()


def download(connection, ident, span=None):
    connection.request("GET", f"/v1/files/{ident}", headers={"range": f"bytes={span[0]}-{span[1] - 1}"} if span else {})
    answer = connection.getresponse()
    assert answer.status == (206 if span else 200), answer.status
    read = 0
    while part := answer.read(MIB):
        read += len(part)
    return read


def client(server_port, kind, size, count, idents, answers):
    connection = http.client.HTTPConnection("127.0.0.1", server_port)
    times, made = [], []
    for n in range(count):
        begin = time.perf_counter()
        if kind == "upload":
            made.append(upload(connection, size))
        elif kind == "download":
            assert download(connection, idents[n % len(idents)]) == size
        else:
            start = (n * 7919 * KIB) % (size - 64 * KIB)
            assert download(connection, idents[n % len(idents)], (start, start + 64 * KIB)) == 64 * KIB
        times.append((time.perf_counter() - begin) * 1000)
    answers.put((times, made))


def at_once(deployment, clients, kind, size, count, idents=()):
    """Returns MB/s, the p50 and p95 in ms, and the ids of the files."""
    answers = multiprocessing.Queue()
    each = max(1, count // clients)
    arguments = (deployment.port, kind, size, each, list(idents), answers)
    processes = [multiprocessing.Process(target=client, args=arguments) for _ in range(clients)]
    begin = time.perf_counter()
    for process in processes:
        process.start()
    results = [answers.get(timeout=600) for _ in processes]
    elapsed = time.perf_counter() - begin
    for process in processes:
        process.join()
    times = [ms for result in results for ms in result[0]]
    made = [ident for result in results for ident in result[1]]
    moved = (64 * KIB if kind == "range" else size) * each * clients
    return moved / elapsed / 1e6, statistics.median(times), percentile(times, 0.95), made


def deliveries(deployment, tokens, interval_us):
    """Returns the ms from the provider to this client for each token of a run."""
    connection = deployment.connect()
    body = f'{{"input": "fake:tokens={tokens},interval_us={interval_us}"}}'
    connection.request("POST", "/v1/runs", body, {"content-type": "application/json", "accept": "text/event-stream"})
    answer, times = connection.getresponse(), {}
    while line := answer.readline():
        now = time.time() * 1e6
        # The last event has the whole text again.
        for number, stamp in re.findall(rb"~(\d+):(\d+);", line):
            times.setdefault(int(number), (now - int(stamp)) % 1e10 / 1000)
    assert len(times) == tokens, len(times)
    return list(times.values())


def shown(times):
    return f"{statistics.median(times):.1f} / {percentile(times, 0.95):.1f} / {max(times):.1f}"


def uploading(server_port, stop):
    connection = http.client.HTTPConnection("127.0.0.1", server_port)
    while not stop.is_set():
        upload(connection, LARGEST)


def beside_uploads(deployment):
    stop = multiprocessing.Event()
    processes = [multiprocessing.Process(target=uploading, args=(deployment.port, stop)) for _ in range(UPLOADS)]
    for process in processes:
        process.start()
    time.sleep(1)
    times = deliveries(deployment, 400 // SCALE, 10_000)
    stop.set()
    for process in processes:
        process.join()
    return times


def report(store, deployment):
    server = "api" if "api" in deployment.pids else "holdfast"
    upload(deployment.connect(), KIB)
    for size, count in SIZES.items():
        name = f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
        for clients in (1, 16):
            number = 4 if size == LARGEST and clients == 1 else max(clients, count // SCALE)
            deployment.forget_peak(server)
            before, work = deployment.memory(server), fixed_work()
            rate, p50, p95, idents = at_once(deployment, clients, "upload", size, number)
            peak = (deployment.memory(server, "VmHWM") - before) / MIB
            down = at_once(deployment, clients, "download", size, number, idents)
            cells = [f"{rate:.1f} | {p50:.1f} / {p95:.1f}", f"{down[0]:.1f} | {down[1]:.1f} / {down[2]:.1f}"]
            print(f"| {store} | {name} | {clients} | {' | '.join(cells)} | {peak:.0f} |  {work} ms", flush=True)
        if size == LARGEST:
            for clients in (1, 16):
                rate, p50, p95, _ = at_once(deployment, clients, "range", size, 200 // SCALE, idents)
                print(f"| {store} | 64 KiB of {name} | {clients} | – | – | {rate:.1f} | {p50:.1f} / {p95:.1f} | – |", flush=True)
    idle = deliveries(deployment, 400 // SCALE, 10_000)
    print(f"{store}: tokens, idle {shown(idle)} ms; beside {UPLOADS} uploads {shown(beside_uploads(deployment))} ms", flush=True)


def main():
    folder, moto = sys.argv[1:3]
    upstream_port, bucket_port = port(), port()
    settings = {
        "HOLDFAST_MAX_FILE_BYTES": str(128 * MIB),
        "HOLDFAST_MAX_DATABASE_FILE_BYTES": str(128 * MIB),
        "CHAT_MODEL_PROVIDER": "openai",
        "CHAT_MODEL_NAME": "fake",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream_port}/v1",
        "OPENAI_API_KEY": "none",
    }
    bucket = {
        "HOLDFAST_FILES_URL": "s3://files/path",
        "AWS_ENDPOINT": f"http://127.0.0.1:{bucket_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    upstream = subprocess.Popen([os.path.join(folder, "fake-upstream"), "--listen", f"127.0.0.1:{upstream_port}"], **quiet)
    servers = [upstream]
    print("| store | size | at a time | upload MB/s | p50 / p95 ms | download MB/s | p50 / p95 ms | more memory, MiB |  fixed work")
    print("|---|---|---|---|---|---|---|---|")
    try:
        for store in STORES:
            if store == "bucket":
                servers.append(subprocess.Popen([moto, "-H", "127.0.0.1", "-p", str(bucket_port)], **quiet))

                def made():
                    connection = http.client.HTTPConnection("127.0.0.1", bucket_port)
                    connection.request("PUT", "/files", headers={"content-length": "0"})
                    assert connection.getresponse().status == 200

                until(made)
            database = "PostgreSQL" if store == "database" else "SQLite"
            of_store = {**settings, **(bucket if store == "bucket" else {})}
            with Deployment(os.path.join(folder, "holdfast"), database, of_store) as deployment:
                deployment.start_holdfast()
                report(store, deployment)
    finally:
        for server in servers:
            server.terminate()


if __name__ == "__main__":
    main()
