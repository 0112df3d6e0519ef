"""Measures how long a long chat takes to open: posts N questions to a running server, then reads the chat 20 times.

    python3 benches/history.py http://127.0.0.1:8080 500
"""

import json
import statistics
import sys
import time
import urllib.request

base, count = sys.argv[1], int(sys.argv[2])
QUESTION = '[think] [call=scripted__echo {"text":"hi"}] [tokens=60] [delay=0]'


def request(method, path, body=None):
    data = json.dumps(body).encode() if body else None
    headers = {"content-type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(base + path, data, headers, method=method)).read()


for n in range(count):
    parts = [{"type": "text", "text": f"{QUESTION} {n}"}]
    request("POST", "/api/chat", {"id": "long", "messages": [{"id": f"m{n}", "role": "user", "parts": parts}]})
times = []
for _ in range(20):
    start = time.perf_counter()
    history = request("GET", "/api/chat/long/messages")
    times.append((time.perf_counter() - start) * 1000)
messages = len(json.loads(history))
print(f"{messages} messages, {len(history)} bytes: {statistics.median(times):.1f} ms p50, {max(times):.1f} ms at most")
