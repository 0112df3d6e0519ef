"""A stdio MCP server whose tool `work` takes its time, with progress or without."""
import json, sys, time


def write(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def work(params):
    token = params["_meta"]["progressToken"]
    for done in range(params["arguments"]["pieces"]):
        # The pauses are what the test is about: each is shorter than the time without a sign of life, and all are longer.
        time.sleep(0.2)
        if not params["arguments"].get("silent"):
            write({"method": "notifications/progress", "params": {"progressToken": token, "progress": done}})
    return {"content": [{"type": "text", "text": "finished"}]}


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        info = {"name": "steady", "version": "1"}
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        write({"id": message["id"], "result": result})
    elif method == "tools/list":
        tools = [{"name": "work", "inputSchema": {"type": "object"}}]
        write({"id": message["id"], "result": {"tools": tools}})
    elif method == "tools/call":
        write({"id": message["id"], "result": work(message["params"])})
