"""Judges /openapi.json: main.py BASE {"seconds": …}. A validator reads it, a generator makes a client of it that compiles,
and schemathesis sends what the document allows, and what it forbids, for so many seconds, with all of its checks."""

import compileall
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

BASE, SECONDS = sys.argv[1], json.loads(sys.argv[2])["seconds"]
BIN = pathlib.Path(sys.executable).parent
HERE = pathlib.Path(__file__).parent


def report(line):
    print(json.dumps(line), flush=True)


def judge(name, *args):
    """Runs a package's program; its verdict is what it says when it refuses. The test waits only so long for a line."""
    with open(f"{folder}/said", "w+", encoding="utf-8") as said:
        run = subprocess.Popen([BIN / name, *args], cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        while run.poll() is None:
            try:
                run.wait(timeout=15)
            except subprocess.TimeoutExpired:
                report({"got": {"name": name, "verdict": "at work"}})
        said.seek(0)
        report({"got": {"name": name, "verdict": "accepted" if run.returncode == 0 else said.read()[-20_000:]}})


with tempfile.TemporaryDirectory() as folder:
    with urllib.request.urlopen(f"{BASE}/openapi.json") as answer:
        (pathlib.Path(folder) / "openapi.json").write_bytes(answer.read())
    judge("openapi-spec-validator", "openapi.json")
    generated = ["generate", "--path", "openapi.json", "--meta", "none", "--output-path", "client", "--fail-on-warning"]
    judge("openapi-python-client", *generated, "--config", HERE / "generator.yaml")
    compiles = compileall.compile_dir(f"{folder}/client", quiet=1)
    report({"got": {"name": "compileall", "verdict": "accepted" if compiles else "the client does not compile"}})
    # All checks are on. To name them here would turn those on that the file turns off for one operation.
    fuzz = ["run", "openapi.json", "--url", BASE, "--max-time", str(SECONDS), "--seed", "1"]
    judge("schemathesis", "--no-color", "--config-file", HERE / "schemathesis.toml", *fuzz)
report({"end": "judged"})
