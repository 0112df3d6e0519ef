"""Uses LangGraph's SDK for Python: main.py BASE {"thread": …, "steps": [{"do": …}, …]}."""

import asyncio
import contextlib
import io
import json
import pathlib
import sys

from langgraph_sdk import get_client

base, parameters = sys.argv[1:]
parameters = json.loads(parameters)
if parameters.get("example"):
    source = (pathlib.Path(__file__).parent / "example.py").read_text()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(source.replace("http://127.0.0.1:8080", base), "example.py", "exec"))
    print(json.dumps({"got": text.getvalue()}))
    print(json.dumps({"end": None}))
    sys.exit()

if parameters.get("graph"):
    from graph import run

    print(json.dumps({"end": run(base)}))
    sys.exit()

client = get_client(url=f"{base}/langgraph", api_key=None)
thread, assistant = parameters["thread"], parameters.get("assistant", "agent")
modes = ["values", "messages-tuple", "updates", "custom"]
run_id = None


def report(line):
    print(json.dumps(line), flush=True)


def created(run):
    global run_id
    run_id = run["run_id"]


def human(text):
    return {"messages": [{"role": "user", "content": text}]}


async def each(frames):
    async for part in frames:
        report({"got": {"id": part.id, "event": part.event, "data": part.data}})


async def create(**options):
    return await client.threads.create(thread_id=thread, **options)


async def stream(say, **options):
    frames = client.runs.stream(thread, assistant, input=human(say), stream_mode=modes, on_run_created=created, **options)
    await each(frames)


async def resume(value):
    frames = client.runs.stream(thread, assistant, command={"resume": value}, stream_mode=modes, on_run_created=created)
    await each(frames)


async def join_stream(**options):
    await each(client.runs.join_stream(thread, run_id, **options))


async def start(say):
    run = await client.runs.create(thread, assistant, input=human(say))
    created(run)
    return run


async def wait(say):
    return await client.runs.wait(thread, assistant, input=human(say), raise_error=False)


async def main():
    actions = {
        "create": create,
        "stream": stream,
        "resume": resume,
        "joinStream": join_stream,
        "start": start,
        "wait": wait,
        "join": lambda: client.runs.join(thread, run_id),
        "cancel": lambda **options: client.runs.cancel(thread, run_id, **options),
        "cancelMany": lambda **options: client.runs.cancel_many(thread_id=thread, run_ids=[run_id], **options),
        "again": lambda: client.runs.wait(thread, assistant, raise_error=False),
        "runs": lambda **options: client.runs.list(thread, **options),
        "run": lambda: client.runs.get(thread, run_id),
        "state": lambda: client.threads.get_state(thread),
        "update": lambda **options: client.threads.update_state(thread, **options),
        "history": lambda: client.threads.get_history(thread),
        "search": lambda **options: client.threads.search(**options),
    }
    result = None
    for number, step in enumerate(parameters["steps"]):
        options = {name: value for name, value in step.items() if name != "do"}
        result = await actions[step["do"]](**options)
        report({"got": {"step": number, "runId": run_id, "result": result}})
    report({"end": result})


asyncio.run(main())
