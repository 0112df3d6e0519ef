"""Follows a run with the package `httpx-sse`: main.py BASE {"run_id": …}"""

import json
import sys
import time

import httpx
from httpx_sse import connect_sse


def follow(url):
    """Yields the events of a run, each once, also if connections break."""
    cursor = "0-0"
    with httpx.Client(timeout=45) as client:                   # three heartbeats
        while True:
            try:
                with connect_sse(client, "GET", url, headers={"Last-Event-ID": cursor}) as source:
                    if source.response.is_client_error:        # asking again would not help
                        source.response.raise_for_status()
                    for frame in source.iter_sse():
                        if not frame.data:                     # `retry:` comes as an event without data
                            continue
                        cursor = frame.id
                        yield frame.json()
                        if frame.event in ("run.completed", "run.failed", "run.cancelled"):
                            return
            except httpx.TransportError as error:
                print(f"at {cursor}: {error!r}", file=sys.stderr)
            time.sleep(1)


def fold(pieces, event):
    """Returns the pieces of the answer after this event."""
    at = lambda event_id: [int(part) for part in event_id.split("-")]
    if "base" in event:
        pieces = [piece for piece in pieces if at(piece["id"]) <= at(event["base"])]
    if event["type"] == "message.delta":
        pieces.append(event)
    return pieces


base, parameters = sys.argv[1:]
pieces = []
for event in follow(f"{base}/v1/runs/{json.loads(parameters)['run_id']}/events"):
    pieces = fold(pieces, event)
    print(json.dumps({"got": event}), flush=True)
print(json.dumps({"end": "".join(piece["text"] for piece in pieces)}))
