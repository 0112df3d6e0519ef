"""A stdio MCP server that keeps notes, and starts once its gate is open, if it has one. It writes a line for each start."""
import json, os, sys, time

notes = []
if len(sys.argv) > 1:
    gate = sys.argv[1]
    with open(gate + ".starts", "a") as starts:
        starts.write("start\n")
    while not os.path.exists(gate):
        time.sleep(0.01)


def keep(arguments):
    notes.append(arguments["text"])
    return ", ".join(notes)


def kept_in_home(arguments):
    path = os.path.join(os.getcwd(), "kept.txt")
    with open(path, "a") as file:
        file.write(arguments["text"] + "\n")
    with open(path) as file:
        return json.dumps({"cwd": os.getcwd(), "home": os.environ.get("HOME"), "lines": file.read().split()})


tools = {"note": keep, "keep": kept_in_home}
schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def answer(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        info = {"name": "notes", "version": "1"}
        answer(id, {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        answer(id, {"tools": [{"name": name, "inputSchema": schema} for name in tools]})
    elif method == "tools/call":
        text = tools[params["name"]](params["arguments"])
        answer(id, {"content": [{"type": "text", "text": text}]})
