"""Graphs of LangGraph whose node is this server, by `RemoteGraph`: each result has the texts of the graph's messages."""

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph


def texts(values):
    return [message["content"] if isinstance(message, dict) else message.content for message in values["messages"]]


def after_a_node(remote):
    """A node of the graph has answered before this server does, twice in one thread."""
    graph = StateGraph(MessagesState)
    graph.add_node("draft", lambda state: {"messages": [AIMessage(f"Draft {len(state['messages'])}.")]})
    graph.add_node("remote", remote)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "remote")
    app = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "drafts"}}
    app.invoke({"messages": [HumanMessage("one")]}, config)
    return texts(app.invoke({"messages": [HumanMessage("two")]}, config))


def after_a_handoff(remote):
    """A supervisor hands each question over by a call of its own, and names the thread of this server."""
    config = {"configurable": {"thread_id": "handoffs"}}
    messages, answers = [], []
    for number, question in enumerate(["one", "two"]):
        call = {"name": "transfer", "args": {"to": "expert"}, "id": f"call-{number}"}
        messages += [
            HumanMessage(question, id=f"q{number}"),
            AIMessage("", tool_calls=[call]),
            ToolMessage("Transferred.", name="transfer", tool_call_id=call["id"]),
        ]
        answers.append(texts(remote.invoke({"messages": messages}, config)))
        messages.append(AIMessage(answers[-1][-1]))
    return answers


def run(base):
    remote = RemoteGraph("agent", url=f"{base}/langgraph", api_key="none", name="remote")
    return {"node": after_a_node(remote), "handoff": after_a_handoff(remote)}
