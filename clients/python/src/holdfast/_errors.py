"""Failures of calls and streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class HoldfastError(Exception):
    """A call or a stream has failed."""


class Problem(HoldfastError):
    """The server refused a request with problem+json (RFC 9457)."""

    def __init__(self, status: int, code: str, detail: str, body: dict[str, Any], retry_after: float | None) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        # Stable and lower case, such as `conversation_busy`.
        self.code = code
        self.detail = detail
        self.body = body
        # Seconds until the client may try again.
        self.retry_after = retry_after

    @property
    def may_pass(self) -> bool:
        """Whether a later request might succeed."""
        return self.status in (408, 429) or self.status >= 500

    def may_pass_within(self, patience: float) -> bool:
        """Whether a request after at most so many seconds might succeed."""
        return self.may_pass and (self.retry_after or 0) <= patience


class ConnectionLost(HoldfastError):
    """No connection was possible for as long as the client waits. `cursor` is the last event that a stream gave."""

    def __init__(self, seconds: float, cursor: str | None = None) -> None:
        place = f" after event {cursor}" if cursor is not None else ""
        super().__init__(f"the server could not be reached for {seconds:.0f} s{place}")
        self.cursor = cursor


class BrokenLog(HoldfastError):
    """Several connections in a row sent events that do not follow the cursor."""


class StreamCut(Exception):
    """A connection ended too early, and the next one continues after the cursor. It never leaves this package."""


def problem_of(status: int, headers: Mapping[str, str], content: bytes) -> Problem:
    """Returns the problem of a response, also of one that a proxy wrote."""
    try:
        parsed = json.loads(content)
    except ValueError:
        parsed = None
    body: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
    text = content[:200].decode(errors="replace")
    return Problem(
        status, str(body.get("code", f"http_{status}")), str(body.get("detail", text)), body, seconds_of(headers)
    )


def expect_stream(status: int, headers: Mapping[str, str]) -> None:
    if not headers.get("content-type", "").startswith("text/event-stream"):
        raise Problem(status, "not_a_stream", "the answer is no stream of events", {}, None)


def json_of(status: int, content: bytes) -> Any:
    """Returns the JSON of a successful response; some page instead of it is a `Problem`."""
    try:
        return json.loads(content) if content else None
    except ValueError:
        raise Problem(status, "not_json", "the answer is not JSON", {}, None) from None


def seconds_of(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds of `Retry-After`; the server writes no dates."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None
