"""Runs agent frameworks for Python that demand a call by `tool_choice`: main.py BASE PARAMETERS. Each step reports its result."""

import json
import os
import sys

os.environ.setdefault("LANGSMITH_TRACING", "false")

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_openai import ChatOpenAI
from openai import OpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

BASE = f"{sys.argv[1]}/openai/v1"


class Person(BaseModel):
    name: str
    age: int


steps = []


def step(body):
    name = body.__name__.replace("_", " ")
    steps.append(name)
    body()
    print(json.dumps({"got": {"step": name, "ok": True}}), flush=True)


@step
def an_agent_of_smolagents_calls_its_tools():
    asked = []

    @tool
    def weather(city: str) -> str:
        """Returns the weather.

        Args:
            city: The city.
        """
        asked.append(city)
        return "rain"

    model = OpenAIServerModel("default", api_base=BASE, api_key="none")
    # Standard output has the results of the steps alone.
    agent = ToolCallingAgent(tools=[weather], model=model, max_steps=3, verbosity_level=-1)
    # Each request demands a call. Without a directive, the scripted model calls the first tool with an example of its arguments.
    answer = agent.run('[call=weather {"city": "Rome"}]')
    assert (asked, answer) == (["Rome"], "scripted"), (asked, answer)
    final = agent.run('[call=final_answer {"answer": "rain"}]')
    assert final == "rain", final


@step
def the_default_output_of_pydantic_ai_is_a_call():
    model = OpenAIChatModel("default", provider=OpenAIProvider(base_url=BASE, api_key="none"))
    agent = Agent(model, output_type=Person)
    assert agent.run_sync("Who?").output == Person(name="scripted", age=1)


@step
def a_tool_of_pydantic_ai_is_answered_in_the_same_run():
    model = OpenAIChatModel("default", provider=OpenAIProvider(base_url=BASE, api_key="none"))
    agent = Agent(model)

    @agent.tool_plain
    def colour(question: str) -> str:
        return "teal"

    result = agent.run_sync('[call=colour {"question": "which?"}] [tokens=3] x')
    assert "teal" in result.output, result.output


@step
def the_tool_strategy_of_langchain_gives_an_object():
    model = ChatOpenAI(model="default", base_url=BASE, api_key="none")
    agent = create_agent(model, tools=[], response_format=ToolStrategy(Person))
    state = agent.invoke({"messages": [{"role": "user", "content": "Who?"}]})
    assert state["structured_response"] == Person(name="scripted", age=1), state


@step
def a_function_is_called_that_the_request_names():
    client = OpenAI(base_url=BASE, api_key="none", max_retries=0)
    function = {"name": "ask", "parameters": {"type": "object", "properties": {"question": {"type": "string"}}}}
    completion = client.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "[tokens=3] x"}],
        tools=[{"type": "function", "function": function}],
        tool_choice={"type": "function", "function": {"name": "ask"}},
    )
    call = completion.choices[0].message.tool_calls[0]
    assert (call.function.name, len(call.id) <= 40) == ("ask", True), call


print(json.dumps({"end": steps}), flush=True)
