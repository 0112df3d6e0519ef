"""Parts of calls that the synchronous and the asynchronous client share."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx

from ._follower import SILENCE_SECONDS

Token = str | Callable[[], str]

# The server's own part of a file: pieces of this size lose nothing.
PIECE_BYTES = 1024 * 1024

CALL_TIMEOUT = httpx.Timeout(60)
STREAM_TIMEOUT = httpx.Timeout(SILENCE_SECONDS, connect=15)


@dataclass
class Call:
    """A request that the client may send several times."""

    method: str
    path: str
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    # Whether a repetition has no second effect.
    is_repeatable: bool = True

    def options(self) -> dict[str, Any]:
        body = {"json": self.body} if self.body is not None else {}
        content = {"content": self.content} if self.content is not None else {}
        return {"params": self.query, "headers": self.headers, **body, **content}


def new_key() -> str:
    """Returns an idempotency key: a message that is sent twice with it is one run."""
    return str(uuid.uuid4())


def path_of(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def authorization(token: Token | None, user: str | None) -> dict[str, str]:
    if token is not None:
        return {"authorization": f"Bearer {token if isinstance(token, str) else token()}"}
    return {} if user is None else {"x-user": user}


def zone_headers(time_zone: str | None) -> dict[str, str]:
    """Returns the header by which a model knows the date where the reader is: the machine's zone by default.

    UTC is no zone of a machine: most servers have it, and it says nothing about their users.
    """
    zone = own_zone() if time_zone is None else time_zone
    return {"time-zone": zone} if zone else {}


def own_zone() -> str:
    name = os.environ.get("TZ", "").removeprefix(":") or os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    return name if re.fullmatch(r"(?!Etc/)[A-Za-z_]+(/[A-Za-z0-9_+-]+)+", name) else ""


def was_not_sent(error: httpx.TransportError) -> bool:
    """Whether the server cannot have seen the request."""
    return isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))


class Upload:
    """The pieces of one file, and the offset from which the upload continues."""

    def __init__(self, source: bytes | BinaryIO, name: str) -> None:
        self._source = source
        self._name = name
        self.size = len(source) if isinstance(source, bytes) else source.seek(0, os.SEEK_END)
        self._most = 0
        self.restart()

    def restart(self) -> None:
        self.key = new_key()
        self.file_id: str | None = None
        self.received = 0

    def piece(self) -> Call:
        """Returns the request with the next piece."""
        end = min(self.received + PIECE_BYTES, self.size)
        headers = {"content-type": "application/octet-stream"}
        # An empty file has no range, and the server refuses it.
        if self.size > 0:
            headers["content-range"] = f"bytes {self.received}-{end - 1}/{self.size}"
        content = self._read(self.received, end)
        if self.file_id is not None:
            return Call("PATCH", path_of("files", self.file_id), headers=headers, content=content, is_repeatable=False)
        headers["content-disposition"] = f"attachment; filename*=UTF-8''{quote(self._name, safe='')}"
        headers["idempotency-key"] = self.key
        return Call("POST", path_of("files"), headers=headers, content=content, is_repeatable=False)

    def stored(self, file_id: str, received: int) -> bool:
        """The server has stored the bytes up to `received`. Returns whether one of them is new."""
        self.file_id, self.received = file_id, received
        is_new = received > self._most
        self._most = max(self._most, received)
        return is_new

    def _read(self, start: int, end: int) -> bytes:
        if isinstance(self._source, bytes):
            return self._source[start:end]
        self._source.seek(start)
        return self._source.read(end - start)
