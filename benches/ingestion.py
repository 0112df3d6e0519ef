"""Measures what a chat feels while a document of 10 MB of text is ingested on SQLite, whose one writer both need: the time of a
message's submission, and the delivery of a run's tokens. Prints a table in Markdown.

    python3 benches/ingestion.py target/release

The folder has `holdfast` and `fake-upstream` (benches/upstream). MEGABYTES=1 is for a quick try.
"""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

from deployment import Deployment, fixed_work, port
from files import deliveries, shown
from knowledge import Document
from vectors import Hashes, Provider

MEGABYTES = float(os.environ.get("MEGABYTES", 10))


def serve_vectors(addresses):
    provider = Provider(Hashes(384))
    addresses.put(provider.settings())
    provider.run()


def submissions(deployment, until):
    """Submits a message each 20 ms until the event, and returns how long each took, in ms."""
    connection, times = deployment.connect(), []
    while not until.is_set():
        begin = time.perf_counter()
        deployment.request("POST", "/v1/runs", {"input": "fake:tokens=5,interval_us=1000"}, connection=connection)
        times.append((time.perf_counter() - begin) * 1000)
        time.sleep(max(0, 0.02 - (time.perf_counter() - begin)))
    return times


def felt(deployment, work):
    """Returns the times of submissions and of tokens during the work, and the seconds that it took."""
    done, submitted, delivered = threading.Event(), [], []

    def follow():
        while not done.is_set():
            delivered.extend(deliveries(deployment, 100, 10_000))

    threads = [threading.Thread(target=lambda: submitted.extend(submissions(deployment, done))), threading.Thread(target=follow)]
    for thread in threads:
        thread.start()
    begin = time.perf_counter()
    work()
    elapsed = time.perf_counter() - begin
    done.set()
    for thread in threads:
        thread.join()
    return submitted, delivered, elapsed


def main():
    folder = sys.argv[1]
    upstream_port = port()
    parts, size = [], 0
    while size < MEGABYTES * 1e6:
        parts.append(Document(len(parts) * 10, 10).text)
        size += len(parts[-1].encode())
    text = "\n\n".join(parts).encode()
    addresses = multiprocessing.Queue()
    provider = multiprocessing.Process(target=serve_vectors, args=(addresses,), daemon=True)
    provider.start()
    settings = {
        "CHAT_MODEL_PROVIDER": "openai",
        "CHAT_MODEL_NAME": "fake",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream_port}/v1",
        "OPENAI_API_KEY": "none",
    }
    of_provider = addresses.get()
    upstream = subprocess.Popen([os.path.join(folder, "fake-upstream"), "--listen", f"127.0.0.1:{upstream_port}"])
    print("| meanwhile | submission p50 / p95 / max ms | token p50 / p95 / max ms | seconds | fixed work ms |\n|---|---|---|---|---|")
    try:
        for kind, extra in [("by words", {}), ("with vectors", of_provider)]:
            with Deployment(os.path.join(folder, "holdfast"), "SQLite", {**settings, **extra}) as deployment:
                deployment.start_holdfast()
                collection = deployment.request("POST", "/v1/collections", {"name": "Ports"})["id"]
                deployment.ingest(collection, "small.txt", b"The harbour master opens the lock.")
                for name, work in [
                    ("nothing", lambda: time.sleep(10)),
                    (f"a document of {MEGABYTES:g} MB, {kind}", lambda: deployment.ingest(collection, "large.txt", text)),
                ]:
                    speed = fixed_work()
                    submitted, delivered, elapsed = felt(deployment, work)
                    print(f"| {name} | {shown(submitted)} | {shown(delivered)} | {elapsed:.1f} | {speed} |", flush=True)
    finally:
        upstream.terminate()
        provider.terminate()


if __name__ == "__main__":
    main()
