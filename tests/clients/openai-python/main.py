"""Runs OpenAI's clients for Python: main.py BASE PARAMETERS. Each step reports whether it has found what it expected."""

import asyncio
import json
import sys

import httpx
from agents import Agent, OpenAIConversationsSession, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI, NotFoundError, OpenAI
from openresponses_types import types as published
from pydantic import BaseModel

BASE = f"{sys.argv[1]}/openai/v1"
COLOUR = "[clienttool=Which colour?] [tokens=3] x"
ASK = {"type": "function", "name": "ask", "description": "Asks.", "parameters": {"type": "object"}, "strict": False}
client = OpenAI(base_url=BASE, api_key="none", max_retries=0)
steps = []


def step(body):
    name = body.__name__.replace("_", " ")
    steps.append(name)
    result = body()
    if asyncio.iscoroutine(result):
        asyncio.run(result)
    print(json.dumps({"got": {"step": name, "ok": True}}), flush=True)


@step
def a_strict_stream_accumulates_the_response():
    with client.responses.stream(model="default", input='[think] [call=scripted__echo {"text":"hi"}] [tokens=8] x') as stream:
        kinds = {event.type for event in stream}
        response = stream.get_final_response()
    assert "response.output_text.delta" in kinds and "response.mcp_call.completed" in kinds, kinds
    assert client.responses.retrieve(response.id).output_text == response.output_text


@step
def a_stream_is_resumed_by_its_numbers():
    numbers, response_id = [], None
    with client.responses.create(model="default", input="[tokens=30] [delay=5] x", background=True, stream=True) as stream:
        for event in stream:
            numbers.append(event.sequence_number)
            response_id = response_id or event.response.id
            if len(numbers) == 6:
                break
    for event in client.responses.retrieve(response_id, stream=True, starting_after=numbers[-1]):
        numbers.append(event.sequence_number)
    assert numbers == list(range(len(numbers))), numbers


@step
def a_strict_stream_of_a_response_starts_after_a_number():
    first = client.responses.create(model="default", input="[tokens=5] x")
    with client.responses.stream(response_id=first.id, starting_after=5) as stream:
        numbers = [event.sequence_number for event in stream]
        response = stream.get_final_response()
    assert numbers[0] == 6 and response.output_text == first.output_text, numbers


@step
def a_function_is_called_and_answered():
    first = client.responses.create(model="default", input=COLOUR, tools=[ASK])
    call = next(item for item in first.output if item.type == "function_call")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "teal"}
    second = client.responses.create(model="default", input=[output], previous_response_id=first.id, tools=[ASK])
    assert "teal" in second.output_text


@step
def an_answer_is_parsed():
    class Person(BaseModel):
        name: str
        age: int

    response = client.responses.parse(model="default", input="who?", text_format=Person)
    assert response.output_parsed == Person(name="scripted", age=1), response
    completion = client.chat.completions.parse(
        model="default", messages=[{"role": "user", "content": "who?"}], response_format=Person
    )
    assert completion.choices[0].message.parsed == Person(name="scripted", age=1)


@step
def a_completion_streams():
    messages = [{"role": "user", "content": "[tokens=5] x"}]
    with client.chat.completions.stream(model="default", messages=messages) as stream:
        for _ in stream:
            pass
        completion = stream.get_final_completion()
    assert completion.choices[0].finish_reason == "stop"


@step
def responses_and_events_have_the_published_schema():
    """`openresponses_types` is made from the schema of Open Responses, which knows no items of servers' own tools."""
    events = [kind for name, kind in vars(published).items() if name.endswith("StreamingEvent")]
    schemas = {next(iter(kind.model_fields["type"].annotation)).value: kind for kind in events}
    requests = {
        "response.completed": {"input": "[think] [tokens=5] x", "temperature": 0.5, "reasoning": {"effort": "low"}},
        "response.incomplete": {"input": "[finish=length] [tokens=5] x", "instructions": "Be brief.", "truncation": "auto"},
        "response.failed": {"input": "[tokens=3] [fail] x", "store": False, "metadata": {"topic": "tide"}},
        "response.function_call_arguments.done": {"input": COLOUR, "tools": [ASK], "tool_choice": "auto"},
        "response.output_text.done": {
            "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "who?"}],
            # The published format `json_schema` allows no schema but null.
            "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        },
    }
    for kind, request in requests.items():
        body = {"model": "default", **request}
        with httpx.stream("POST", f"{BASE}/responses", json={**body, "stream": True}) as response:
            lines = [line for line in response.iter_lines() if line.startswith("data: ")]
        sent = [json.loads(line[6:]) for line in lines]
        for event in sent:
            schemas[event["type"]].model_validate(event)
        assert kind in [event["type"] for event in sent], sent
        whole = httpx.get(f"{BASE}/responses/{sent[-1]['response']['id']}").json()
        assert whole == sent[-1]["response"], (whole, sent[-1])
        published.ResponseResource.model_validate(whole)
        published.ResponseResource.model_validate(httpx.post(f"{BASE}/responses", json=body).json())


@step
def an_error_is_the_clients():
    try:
        client.responses.create(model="nothing", input="x")
    except NotFoundError as error:
        assert error.code == "model_not_found", error
    else:
        raise AssertionError("there is no such model")


@step
async def an_agent_of_the_agents_sdk_uses_a_tool():
    set_tracing_disabled(True)

    @function_tool(strict_mode=False, name_override="ask")
    def ask(question: str = "") -> str:
        return "teal"

    model = OpenAIResponsesModel("default", AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0))
    agent = Agent(name="painter", instructions="Paint.", model=model, tools=[ask])
    result = await Runner.run(agent, COLOUR)
    assert "teal" in result.final_output, result.final_output
    streamed = Runner.run_streamed(agent, result.to_input_list() + [{"role": "user", "content": "[tokens=4] x"}])
    kinds = {event.type async for event in streamed.stream_events()}
    assert "raw_response_event" in kinds and streamed.final_output


@step
async def a_session_of_conversations_works_with_a_tool():
    @function_tool(strict_mode=False, name_override="ask")
    def ask(question: str = "") -> str:
        return "teal"

    openai = AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0)
    agent = Agent(name="painter", model=OpenAIResponsesModel("default", openai), tools=[ask])
    session = OpenAIConversationsSession(openai_client=openai)
    first = await Runner.run(agent, COLOUR, session=session)
    assert "teal" in first.final_output, first.final_output
    second = await Runner.run(agent, "[tokens=4] and now?", session=session)
    assert second.final_output
    roles = [item["role"] for item in await session.get_items()]
    # The model speaks before its call, too.
    assert roles == ["user", "assistant", "assistant", "user", "assistant"], roles
    await openai.close()


@step
def files_are_uploaded_read_and_deleted():
    made = client.files.create(file=("note.txt", b"the tide"), purpose="user_data")
    assert (made.filename, made.bytes, made.status) == ("note.txt", 8, "processed"), made
    assert client.files.retrieve(made.id).id == made.id
    assert client.files.content(made.id).read() == b"the tide"
    assert made.id in [file.id for file in client.files.list()]
    assert client.files.delete(made.id).deleted
    try:
        client.files.retrieve(made.id)
    except NotFoundError as error:
        assert error.request_id and error.request_id.startswith("req_"), error
    else:
        raise AssertionError("the file is deleted")


@step
def what_the_server_does_not_have_is_not_found():
    for missing in [
        lambda: client.completions.create(model="default", prompt="x"),
        lambda: client.responses.input_tokens.count(model="default", input="x"),
    ]:
        try:
            missing()
        except NotFoundError:
            continue
        raise AssertionError("the route exists")


@step
def a_completion_is_streamed_as_open_webui_asks_for_it():
    """Open WebUI sends each chat whole, and reads `data:` lines."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": "an answer"},
        {"role": "user", "content": "[tokens=3] two"},
    ]
    body = {"model": "default", "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
    with httpx.stream("POST", f"{BASE}/chat/completions", json=body) as response:
        lines = [line for line in response.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]", lines
    text = "".join(choice["delta"].get("content", "") for line in lines[:-1] for choice in json.loads(line[6:])["choices"])
    assert text, lines


print(json.dumps({"end": steps}), flush=True)
