"""Uses the package `holdfast-client`: main.py BASE PARAMETERS

The parameters are {"client": "sync" | "async"} with {"input": …, "key": …} or {"run_id": …, "patience": …}; or {"calls": true};
or {"ask": …}.
"""

import asyncio
import io
import json
import sys

from ask import ask, ask_async
from holdfast import Answer, AsyncClient, BrokenLog, Client, ConnectionLost, Problem

BASE, PARAMETERS = sys.argv[1], json.loads(sys.argv[2])


def got(report):
    print(json.dumps({"got": report}), flush=True)


def follow():
    with Client(BASE, patience=PARAMETERS.get("patience", 120)) as client:
        run_id = PARAMETERS.get("run_id")
        if run_id is None:
            run_id = client.start_run(PARAMETERS["input"], key=PARAMETERS["key"])["run"]["id"]
        answer = Answer()
        for event in client.events(run_id):
            answer.apply(event)
            got(event)
        return answer.text


async def follow_async():
    async with AsyncClient(BASE, patience=PARAMETERS.get("patience", 120)) as client:
        run_id = PARAMETERS.get("run_id")
        if run_id is None:
            run_id = (await client.start_run(PARAMETERS["input"], key=PARAMETERS["key"]))["run"]["id"]
        answer = Answer()
        async for event in client.events(run_id):
            answer.apply(event)
            got(event)
        return answer.text


def steer(client):
    """Posts a message during a call, which the next step reads."""
    run = client.start_run('[call=scripted__echo {"text": "ready", "delay_ms": 5000}] [tokens=4]')["run"]
    for event in client.events(run["id"]):
        if event["type"] == "tool_call.started":
            client.steer(run["conversation_id"], "[tokens=1] shorter")
        if event["type"] == "message.steered":
            got({"type": event["type"]})
    return run


def approve(client):
    """Changes the arguments of a call."""
    run = client.start_run("[approval=send it] [tokens=2] x")["run"]
    for event in client.events(run["id"]):
        if event["type"] == "approval.requested":
            questions = client.approvals(run["id"])["items"]
            client.decide(run["id"], questions[0]["id"], "approve", edited_input={"action": "send half"})
        if event["type"] == "approval.resolved":
            got({"edited_input": event.get("edited_input")})


def answer_tool(client):
    run = client.start_run("[clienttool=Which colour?] [tokens=2] x", client_tools=[{"name": "ask"}])["run"]
    for event in client.events(run["id"]):
        if event["type"] == "tool_call.started" and event["by"] == "client":
            client.return_output(run["id"], event["call_id"], {"answer": "teal"})
        if event["type"] == "tool_call.completed":
            got({"output": event.get("output")})


def cancel(client):
    run = client.start_run("[tokens=2000] [delay=20] x")["run"]
    for event in client.events(run["id"]):
        if event["type"] == "message.delta":
            client.cancel(run["id"])
            break
    got({"status": client.wait(run["id"])["status"]})


def keep_file(client):
    contents = b"a line of a file\n" * 160_000
    # The test breaks the connection after the first piece.
    got({"uploads": len(contents)})
    sys.stdin.readline()
    stored = client.upload(io.BytesIO(contents), "größe.txt")
    got({"name": stored["name"], "is_equal": client.download(stored["id"]) == contents})
    got({"files": [file["id"] == stored["id"] for file in client.files()]})
    client.delete_file(stored["id"])


def calls():
    with Client(BASE) as client:
        run = steer(client)
        approve(client)
        answer_tool(client)
        cancel(client)
        keep_file(client)
        got({"conversations": len(list(client.conversations()))})
        got({"roles": [message["role"] for message in client.messages(run["conversation_id"])]})
        got({"snapshot": client.snapshot(run["id"])[0]["status"]})
        try:
            list(client.events("01a20274-a660-77df-a2a7-89516bdf4c45"))
        except Problem as problem:
            got({"code": problem.code})
    return "called"


def run_program():
    if "calls" in PARAMETERS:
        return calls()
    is_async = PARAMETERS["client"] == "async"
    if "ask" in PARAMETERS:
        text = PARAMETERS["ask"]
        return asyncio.run(ask_async(BASE, text)) if is_async else ask(BASE, text, lambda name, input: True)
    try:
        return asyncio.run(follow_async()) if is_async else follow()
    except ConnectionLost as lost:
        return {"lost_after": lost.cursor}
    except BrokenLog as broken:
        return {"broken": str(broken)}
    except Problem as problem:
        return {"refused": problem.code}


print(json.dumps({"end": run_program()}))
