"""The rules for a reader of a run's events, without any request: cursor, order, pauses and the end."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from typing import cast

from ._errors import BrokenLog, ConnectionLost, StreamCut
from ._frames import FrameParser
from .wire import RunEvent

ENDS = frozenset({"run.completed", "run.failed", "run.cancelled"})
# A connection without a byte for this long is dead: the server sends a heartbeat every 15 s.
SILENCE_SECONDS = 45.0
LONGEST_PAUSE_SECONDS = 15.0
# The first pauses of a client that has no `retry:` of the server.
FIRST_PAUSE_SECONDS = 0.25
# A server that never sends the next event would keep a client busy for ever.
MOST_GAPS = 5


def number_of(event_id: str) -> tuple[int, int]:
    """Returns an event's id for comparisons: ids are two numbers, and no texts."""
    attempt, _, n = event_id.partition("-")
    return int(attempt), int(n)


def follows(cursor: str, event_id: str, base: str | None) -> bool:
    """Whether an event continues the log after the cursor without a gap."""
    have, new = number_of(cursor), number_of(event_id)
    begins = new[1] == 1 and base is not None and have >= number_of(base)
    return new > have and (begins or new == (have[0], have[1] + 1))


class Pauses:
    """The pauses between tries. They grow with each failure, and end after `patience` seconds without success."""

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.retry: float | None = None
        self._patience = patience
        self._clock = clock
        self._failures = 0
        self._since: float | None = None

    def succeed(self) -> None:
        self._failures = 0
        self._since = None

    def next(self, retry_after: float | None = None, cursor: str | None = None) -> float:
        """Returns the seconds until the next try; raises `ConnectionLost` after the deadline."""
        now = self._clock()
        self._since = now if self._since is None else self._since
        first = FIRST_PAUSE_SECONDS if self.retry is None else self.retry
        ceiling: float = min(LONGEST_PAUSE_SECONDS, first * 2.0 ** min(self._failures, 20))
        self._failures += 1
        # Clients of a returning server must not connect all at once.
        pause = max(ceiling * random.uniform(0.5, 1), retry_after or 0)
        if now + pause - self._since > self._patience:
            raise ConnectionLost(now - self._since, cursor)
        return pause


class RunFollower:
    """One stream over as many connections as it needs."""

    def __init__(self, cursor: str = "0-0", patience: float = 120) -> None:
        # The last event that the reader has.
        self.cursor = cursor
        self.is_over = False
        self._pauses = Pauses(patience)
        self._parser = FrameParser()
        self._gaps = 0

    def headers(self) -> dict[str, str]:
        return {"accept": "text/event-stream", "last-event-id": self.cursor}

    def opened(self) -> None:
        """A connection has begun."""
        self._parser = FrameParser()

    def feed(self, received: bytes) -> Iterator[RunEvent]:
        """Yields the events that these bytes complete, each once; raises `StreamCut` at one that does not follow."""
        if self._gaps == 0:
            self._pauses.succeed()
        for frame in self._parser.feed(received):
            if frame.retry is not None:
                self._pauses.retry = frame.retry / 1000
            if frame.data is None:
                continue
            event = json.loads(frame.data)
            if not follows(self.cursor, event["id"], event.get("base")):
                self._gaps += 1
                if self._gaps >= MOST_GAPS:
                    raise BrokenLog(f"event {event['id']} does not follow {self.cursor}")
                raise StreamCut(f"event {event['id']} does not follow {self.cursor}")
            self.cursor = event["id"]
            self._gaps = 0
            self._pauses.succeed()
            self.is_over = event["type"] in ENDS
            yield cast(RunEvent, event)
            if self.is_over:
                return

    def pause(self, retry_after: float | None = None) -> float:
        """Returns the seconds until the next connection."""
        return self._pauses.next(retry_after, self.cursor)
