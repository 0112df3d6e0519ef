"""Checks /openapi.json: main.py BASE {"seconds": …}. A validator reads it, and a generator makes a client of it that compiles.
For this number of seconds, schemathesis sends requests that the document allows or forbids, with all of its checks."""

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
    """Runs a package's program, and reports success or its output.

    It also reports while the program works, because the test waits for lines.
    """
    with open(f"{folder}/output", "w+", encoding="utf-8") as output:
        run = subprocess.Popen([BIN / name, *args], cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        while run.poll() is None:
            try:
                run.wait(timeout=15)
            except subprocess.TimeoutExpired:
                report({"got": {"name": name, "verdict": "at work"}})
        output.seek(0)
        report({"got": {"name": name, "verdict": "accepted" if run.returncode == 0 else output.read()[-20_000:]}})


with tempfile.TemporaryDirectory() as folder:
    with urllib.request.urlopen(f"{BASE}/openapi.json") as answer:
        (pathlib.Path(folder) / "openapi.json").write_bytes(answer.read())
    judge("openapi-spec-validator", "openapi.json")
    generated = ["generate", "--path", "openapi.json", "--meta", "none", "--output-path", "client", "--fail-on-warning"]
    judge("openapi-python-client", *generated, "--config", HERE / "generator.yaml")
    compiles = compileall.compile_dir(f"{folder}/client", quiet=1)
    report({"got": {"name": "compileall", "verdict": "accepted" if compiles else "the client does not compile"}})
    # All checks are on by default. A list of checks here would override the file, which turns some off for one operation.
    fuzz = ["run", "openapi.json", "--url", BASE, "--max-time", str(SECONDS), "--seed", "1"]
    judge("schemathesis", "--no-color", "--config-file", HERE / "schemathesis.toml", *fuzz)
report({"end": "judged"})
