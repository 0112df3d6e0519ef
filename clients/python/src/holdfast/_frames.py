"""Server-sent events: bytes in, frames out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ._errors import StreamCut

# No event of the server is longer, so a longer line is none of its own.
MAX_LINE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Frame:
    """A complete frame. `retry` is in milliseconds."""

    data: str | None = None
    retry: int | None = None


class FrameParser:
    """Parses one connection. It drops an incomplete frame, which the next connection repeats.

    It splits lines at LF only, as the server does. Python's `splitlines` would also split within a text.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[str] = []

    def feed(self, received: bytes) -> Iterator[Frame]:
        self._rest += received
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        if len(rest) > MAX_LINE_BYTES:
            raise StreamCut("a line is too long")
        for line in lines:
            yield from self._line(line.removesuffix(b"\r"))

    def _line(self, line: bytes) -> Iterator[Frame]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if self._data:
                data, self._data = "\n".join(self._data), []
                yield Frame(data=data)
        elif field == b"data":
            self._data.append(value.decode(errors="replace"))
        elif field == b"retry" and value.isdigit():
            yield Frame(retry=int(value))
