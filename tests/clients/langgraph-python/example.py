from langgraph_sdk import get_sync_client

client = get_sync_client(url="http://127.0.0.1:8080/langgraph", api_key=None)
question = {"messages": [{"role": "user", "content": "[tokens=5] hello"}]}
for part in client.runs.stream("tide", "agent", input=question, stream_mode="messages-tuple", if_not_exists="create"):
    if part.event == "messages":
        print(part.data[0]["content"], end="")
print()
print(client.threads.get_state("tide")["values"]["messages"][-1]["content"])
