"""The text of an answer, from its events."""

from __future__ import annotations

from ._follower import number_of
from .wire import RunEvent


class Answer:
    """Folds events to the answer's text. After a worker's death, an event's `base` takes back later pieces."""

    def __init__(self) -> None:
        self._pieces: list[tuple[str, str]] = []

    def apply(self, event: RunEvent) -> None:
        base = event.get("base")
        if isinstance(base, str):
            self._pieces = [piece for piece in self._pieces if number_of(piece[0]) <= number_of(base)]
        if event["type"] == "message.delta":
            self._pieces.append((event["id"], event["text"]))

    @property
    def text(self) -> str:
        return "".join(text for _, text in self._pieces)
