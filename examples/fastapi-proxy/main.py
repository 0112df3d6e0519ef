"""A server in front of Holdfast: it checks its own users, and forwards streams with their cursors."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

HOLDFAST = os.environ.get("HOLDFAST_URL", "http://127.0.0.1:8080")

# Holdfast sends a heartbeat every 15 s, so a longer silence is a dead connection.
TIMEOUT = httpx.Timeout(45, connect=5)

REQUEST_HEADERS = ("accept", "content-type", "idempotency-key", "last-event-id")
ANSWER_HEADERS = ("cache-control", "content-type", "retry-after", "x-accel-buffering", "x-run-id")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with httpx.AsyncClient(base_url=HOLDFAST, timeout=TIMEOUT) as http:
        app.state.http = http
        yield


app = FastAPI(lifespan=lifespan)


def credentials_of(request: Request) -> dict[str, str]:
    """Returns the headers that name the user for Holdfast. An application checks its own session here."""
    user = request.headers.get("x-demo-user", "demo")
    if not user.isalnum():
        raise HTTPException(401, "There is no such user.")
    return {"x-user": user}


@app.get("/v1/runs/{run_id}")
@app.get("/v1/runs/{run_id}/events")
@app.post("/v1/runs")
@app.post("/v1/runs/{run_id}/cancel")
@app.post("/v1/runs/{run_id}/approvals/{approval_id}")
@app.post("/v1/runs/{run_id}/tool_results/{call_id}")
async def forward(request: Request) -> Response:
    """Forwards one request. The streams of this server and of Holdfast end, or break, together."""
    headers = {name: request.headers[name] for name in REQUEST_HEADERS if name in request.headers}
    upstream = request.app.state.http.build_request(
        request.method,
        request.url.path,
        params=request.query_params,
        # The bytes of the answer pass through as they are, so Holdfast must not compress them.
        headers={**headers, **credentials_of(request), "accept-encoding": "identity"},
        # The body passes through while it arrives, and Holdfast refuses one that is too large.
        content=request.stream() if request.method == "POST" else None,
    )
    try:
        answer = await request.app.state.http.send(upstream, stream=True)
    except httpx.TransportError:
        # Clients try again after 503.
        return JSONResponse({"code": "holdfast_away", "detail": "Holdfast does not answer."}, 503)

    async def body() -> AsyncIterator[bytes]:
        try:
            # An error in this loop leaves the body without its end, which tells the client to continue after its cursor.
            async for received in answer.aiter_raw():
                yield received
        finally:
            await answer.aclose()

    passed = {name: answer.headers[name] for name in ANSWER_HEADERS if name in answer.headers}
    return StreamingResponse(body(), answer.status_code, passed)
