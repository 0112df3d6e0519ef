"""The asynchronous client. `make_sync.py` makes the synchronous one of this file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import httpx

from . import _calls, wire
from ._calls import Call, Token, Upload, path_of, without_none
from ._errors import Problem, StreamCut, expect_stream, json_of, problem_of
from ._follower import Pauses, RunFollower


class AsyncClient:
    """A client of one server, as one user.

    Methods repeat a request while the server is away, for `patience` seconds, if a repetition has no second effect.
    They raise `Problem` if the server refuses, `ConnectionLost` after `patience`, and otherwise errors of httpx.
    `time_zone` is the zone of the user, an IANA name; by default that of the machine, and none if it is empty.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: Token | None = None,
        user: str | None = None,
        time_zone: str | None = None,
        patience: float = 120,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._base = base_url.rstrip("/")
        self._token = token
        self._user = user
        self._zone = _calls.zone_headers(time_zone)
        self._patience = patience
        self._http = http or httpx.AsyncClient()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    # Messages and runs.

    async def start_run(
        self,
        input: wire.ContentInput,
        *,
        conversation_id: str | None = None,
        agent_id: str | None = None,
        mode: wire.SubmitMode | None = None,
        client_tools: Sequence[wire.ClientTool] | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> wire.AcceptedRun:
        """Posts a message; without `conversation_id`, in a new conversation.

        `key` is the idempotency key. With a key of its own, a program that starts again makes no second run.
        """
        body = without_none(
            input=input,
            conversation_id=conversation_id,
            agent_id=agent_id,
            mode=mode,
            client_tools=client_tools,
            metadata=metadata,
        )
        headers = {**self._zone, "idempotency-key": key or _calls.new_key()}
        return cast(wire.AcceptedRun, await self._json(Call("POST", path_of("runs"), body, headers=headers)))

    async def post_message(
        self,
        conversation_id: str,
        content: wire.ContentInput | None = None,
        *,
        replace_from: str | None = None,
        mode: wire.SubmitMode | None = None,
        client_tools: Sequence[wire.ClientTool] | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> wire.AcceptedMessage:
        """Posts a message to a conversation. `replace_from` names the message that it replaces."""
        body = without_none(
            content=content, replace_from=replace_from, mode=mode, client_tools=client_tools, metadata=metadata
        )
        headers = {**self._zone, "idempotency-key": key or _calls.new_key()}
        path = path_of("conversations", conversation_id, "messages")
        return cast(wire.AcceptedMessage, await self._json(Call("POST", path, body, headers=headers)))

    async def steer(self, conversation_id: str, content: str, *, key: str | None = None) -> wire.AcceptedMessage:
        """Posts a message that joins the live run before its next model call."""
        return await self.post_message(conversation_id, content, mode="steer", key=key)

    async def events(self, run_id: str, *, after: str = "0-0") -> AsyncIterator[wire.RunEvent]:
        """Yields the events of a run after a cursor, each once and in order, up to the terminal event.

        A lost connection is replaced by another one. The iterator ends only after the end of the run; it raises
        `ConnectionLost` after `patience` seconds without a server. An event of a later server may have a type that
        `RunEvent` lacks.
        """
        follower = RunFollower(after, self._patience)
        path = f"{self._base}{path_of('runs', run_id, 'events')}"
        while True:
            retry_after: float | None = None
            headers = {**follower.headers(), **self._headers()}
            # An agent may prefer a stream of complete messages, whose order a client cannot check.
            query = {"stream_mode": "events"}
            try:
                async with self._http.stream(
                    "GET", path, params=query, headers=headers, timeout=_calls.STREAM_TIMEOUT
                ) as response:
                    if response.status_code == 204:
                        return
                    if response.status_code != 200:
                        raise problem_of(response.status_code, response.headers, await response.aread())
                    expect_stream(response.status_code, response.headers)
                    follower.opened()
                    async for received in response.aiter_raw():
                        for event in follower.feed(received):
                            yield event
                        if follower.is_over:
                            return
            except Problem as problem:
                if not problem.may_pass_within(self._patience):
                    raise
                retry_after = problem.retry_after
            except (httpx.TransportError, StreamCut):
                pass
            await asyncio.sleep(follower.pause(retry_after))

    async def snapshot(self, run_id: str) -> tuple[wire.Snapshot, wire.EventId]:
        """Returns the message so far, and the cursor after which `events` continues it."""
        call = Call("GET", path_of("runs", run_id, "events"), query={"snapshot": "true"})
        call.headers["accept"] = "application/json"
        page = await self._json(call)
        return cast(wire.Snapshot, page["snapshot"]), page["last_event_id"]

    async def run(self, run_id: str) -> wire.Run:
        return cast(wire.Run, await self._json(Call("GET", path_of("runs", run_id))))

    async def wait(self, run_id: str) -> wire.Run:
        """Returns the run after its end, however long that takes."""
        while True:
            run = await self._json(Call("GET", path_of("runs", run_id, "wait"), query={"timeout_ms": "30000"}))
            if run["status"] in ("completed", "failed", "cancelled"):
                return cast(wire.Run, run)

    async def cancel(self, run_id: str) -> wire.Run:
        return cast(wire.Run, await self._json(Call("POST", path_of("runs", run_id, "cancel"))))

    # Questions.

    async def approvals(self, run_id: str) -> wire.Approvals:
        return cast(wire.Approvals, await self._json(Call("GET", path_of("runs", run_id, "approvals"))))

    async def decide(
        self,
        run_id: str,
        approval_id: str,
        decision: wire.Verdict,
        *,
        reason: str | None = None,
        edited_input: Any = None,
    ) -> wire.Run:
        """Answers a question. The first answer counts: a later one raises `Problem` with the code `already_decided`."""
        body = without_none(decision=decision, reason=reason, edited_input=edited_input)
        return cast(wire.Run, await self._json(Call("POST", path_of("runs", run_id, "approvals", approval_id), body)))

    async def return_output(self, run_id: str, call_id: str, output: Any) -> wire.Run:
        """Returns the output of a tool of this client: a text, or any JSON."""
        path = path_of("runs", run_id, "tool_results", call_id)
        return cast(wire.Run, await self._json(Call("POST", path, {"output": output})))

    async def return_error(self, run_id: str, call_id: str, error: str) -> wire.Run:
        """Says why a tool of this client has no output; the model reads it."""
        path = path_of("runs", run_id, "tool_results", call_id)
        return cast(wire.Run, await self._json(Call("POST", path, {"error": error})))

    # Conversations.

    async def create_conversation(
        self, *, title: str | None = None, agent_id: str | None = None
    ) -> wire.Conversation:
        # The route has no idempotency key, so a repetition could make a second conversation.
        body = without_none(title=title, agent_id=agent_id)
        call = Call("POST", path_of("conversations"), body, is_repeatable=False)
        return cast(wire.Conversation, await self._json(call))

    async def conversation(self, conversation_id: str) -> wire.Conversation:
        return cast(wire.Conversation, await self._json(Call("GET", path_of("conversations", conversation_id))))

    async def conversations(self, *, q: str | None = None) -> AsyncIterator[wire.Conversation]:
        """Yields the conversations, newest activity first; with `q`, those that have these words."""
        async for item in self._items(Call("GET", path_of("conversations"), query=without_none(q=q))):
            yield cast(wire.Conversation, item)

    async def messages(self, conversation_id: str) -> AsyncIterator[wire.Message]:
        """Yields the messages of a conversation, oldest first."""
        async for item in self._items(Call("GET", path_of("conversations", conversation_id, "messages"))):
            yield cast(wire.Message, item)

    async def delete_conversation(self, conversation_id: str) -> None:
        await self._json(Call("DELETE", path_of("conversations", conversation_id)))

    # Files.

    async def upload(self, source: bytes | BinaryIO, name: str) -> wire.StoredFile:
        """Uploads a file in pieces. After a lost connection, the upload continues where the server has it.

        It fails after `patience` seconds without a new byte.
        """
        upload = Upload(source, name)
        pauses = Pauses(self._patience)
        while True:
            try:
                stored = await self._json(upload.piece())
                if stored.get("sha256") is not None:
                    return cast(wire.StoredFile, stored)
                if upload.stored(stored["id"], stored["received"]):
                    pauses.succeed()
            except (Problem, httpx.TransportError) as error:
                is_passing = not isinstance(error, Problem) or error.may_pass_within(self._patience)
                is_offset = isinstance(error, Problem) and error.code in ("upload_offset", "upload_broken")
                if not (is_passing or is_offset):
                    raise
                await asyncio.sleep(pauses.next(error.retry_after if isinstance(error, Problem) else None))
                await self._find_offset(upload)

    async def _find_offset(self, upload: Upload) -> None:
        """Asks the server how much of the file it has."""
        if upload.file_id is None:
            return
        try:
            response = await self._response(Call("HEAD", path_of("files", upload.file_id)))
            offset = response.headers.get("upload-offset")
        except Problem as problem:
            if problem.status == 404:
                return upload.restart()
            # While the upload lasts, the server refuses to read the file and names the offset.
            offset = problem.body.get("upload-offset")
        if offset is not None:
            upload.received = int(offset)

    async def files(self) -> AsyncIterator[wire.StoredFile]:
        """Yields the caller's files, newest first."""
        async for item in self._items(Call("GET", path_of("files"))):
            yield cast(wire.StoredFile, item)

    async def download(self, file_id: str) -> bytes:
        return (await self._response(Call("GET", path_of("files", file_id)))).content

    async def delete_file(self, file_id: str) -> None:
        await self._json(Call("DELETE", path_of("files", file_id)))

    # Requests.

    def _headers(self) -> dict[str, str]:
        return _calls.authorization(self._token, self._user)

    async def _json(self, call: Call) -> Any:
        response = await self._response(call)
        return json_of(response.status_code, response.content)

    async def _items(self, call: Call) -> AsyncIterator[Any]:
        while True:
            page = await self._json(call)
            for item in page["items"]:
                yield item
            if page.get("next") is None:
                return
            call.query["cursor"] = page["next"]

    async def _response(self, call: Call) -> httpx.Response:
        """Sends a request until the server answers it."""
        pauses = Pauses(self._patience)
        while True:
            options = call.options()
            options["headers"] = {**call.headers, **self._headers()}
            try:
                response = await self._http.request(
                    call.method, f"{self._base}{call.path}", timeout=_calls.CALL_TIMEOUT, **options
                )
            except httpx.TransportError as error:
                if not (call.is_repeatable or _calls.was_not_sent(error)):
                    raise
                await asyncio.sleep(pauses.next())
                continue
            if response.is_success:
                return response
            problem = problem_of(response.status_code, response.headers, response.content)
            if "upload-offset" in response.headers:
                problem.body["upload-offset"] = response.headers["upload-offset"]
            # A refusal for the moment, or an answer of a proxy whose server is away. A fault of the server stays one.
            if not (call.is_repeatable and problem.may_pass_within(self._patience)) or problem.status == 500:
                raise problem
            await asyncio.sleep(pauses.next(problem.retry_after))
