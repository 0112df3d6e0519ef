"""Calls an agent with A2A's client: main.py BASE {"path": "/a2a", "legacy": false, "steps": […]}

A step streams a text (up to a cut), sends one, decides, subscribes, reads, lists or cancels. The program keeps the task as a client
shows it.
"""

import asyncio
import json
import sys
from uuid import uuid4

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict, ParseDict

base, parameters = sys.argv[1:]
parameters = json.loads(parameters)
shown = {"id": "", "context": "", "state": 0, "text": "", "asks": []}


def report(line):
    print(json.dumps(line), flush=True)


def text_of(parts):
    return "".join(part.text for part in parts)


def show_status(status):
    shown["state"] = status.state
    shown["asks"] = [MessageToDict(part.data) for part in status.message.parts if part.HasField("data")]


def show(update):
    """Applies an update to the task that the client shows."""
    kind = update.WhichOneof("payload")
    value = getattr(update, kind)
    event = None
    if kind == "task":
        parts = [part for artifact in value.artifacts for part in artifact.parts]
        shown.update(id=value.id, context=value.context_id, text=text_of(parts))
        show_status(value.status)
    elif kind == "status_update":
        event = MessageToDict(value.metadata).get("event")
        show_status(value.status)
    else:
        shown["text"] = (shown["text"] if value.append else "") + text_of(value.artifact.parts)
    report({"got": {"kind": kind, "event": event, "state": shown["state"]}})
    return kind


def request(part, task="", context="", message=""):
    message = a2a.Message(message_id=message or str(uuid4()), role=a2a.ROLE_USER, parts=[part], task_id=task, context_id=context)
    return a2a.SendMessageRequest(message=message)


async def stream(updates, cut):
    texts = 0
    async for update in updates:
        texts += show(update) == "artifact_update"
        if texts == cut:
            break
    await updates.aclose()


async def run(clients, step):
    streaming, polling = clients
    names = {"context": step.get("contextId", ""), "message": step.get("messageId", ""), "task": step.get("taskId", "")}
    if "stream" in step:
        await stream(streaming.send_message(request(a2a.Part(text=step["stream"]), **names)), step.get("cut"))
    elif "send" in step:
        await stream(polling.send_message(request(a2a.Part(text=step["send"]), **names)), None)
    elif "decide" in step:
        part = ParseDict({"data": step["decide"]}, a2a.Part())
        await stream(streaming.send_message(request(part, task=shown["id"])), None)
    elif "subscribe" in step:
        await stream(streaming.subscribe(a2a.SubscribeToTaskRequest(id=shown["id"])), step.get("cut"))
    elif "get" in step:
        show(a2a.StreamResponse(task=await streaming.get_task(a2a.GetTaskRequest(id=shown["id"]))))
    elif "cancel" in step:
        show(a2a.StreamResponse(task=await streaming.cancel_task(a2a.CancelTaskRequest(id=shown["id"]))))
    elif "list" in step:
        page = await streaming.list_tasks(a2a.ListTasksRequest(context_id=shown["context"]))
        report({"got": {"listed": [task.id for task in page.tasks]}})


async def main():
    address = f"{base}{parameters['path']}"
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, address).get_agent_card()
    if parameters.get("legacy"):
        older = [interface for interface in card.supported_interfaces if interface.protocol_version == "0.3"]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(older)
    clients = [ClientFactory(ClientConfig(streaming=streaming)).create(card) for streaming in (True, False)]
    for number, step in enumerate(parameters["steps"]):
        error = None
        try:
            await run(clients, step)
        except Exception as failure:  # The test reads what went wrong.
            error = f"{type(failure).__name__}: {failure}"
        report({"got": {"step": number, **shown, "error": error}})
    report({"end": shown})


asyncio.run(main())
