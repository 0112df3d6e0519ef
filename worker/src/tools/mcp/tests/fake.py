"""An MCP server on standard input and output with faults on demand: each tool is one fault."""
import json, os, subprocess, sys, threading, time

cancelled, waiting, late, lists, notes = [], [], [], 0, []


def send(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(id, result):
    send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))


def text(id, value):
    answer(id, {"content": [{"type": "text", "text": value}]})


def tools():
    names = ["echo"] + ["more"] * (lists > 1)
    return [{"name": name, "description": "d", "inputSchema": {"type": "object"}} for name in names]


def call(id, params):
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "echo":
        text(id, arguments.get("text", ""))
    elif name == "key":
        text(id, params["_meta"]["holdfast/idempotency-key"])
    elif name == "note":
        notes.append(arguments.get("text", "nothing"))
        text(id, ", ".join(notes))
    elif name == "cwd":
        text(id, os.getcwd())
    elif name == "env":
        text(id, json.dumps(sorted(os.environ)))
    elif name == "pids":
        child = subprocess.Popen(["sleep", "1000"])
        text(id, json.dumps([os.getpid(), child.pid]))
    elif name == "big":
        chunk = "x" * 1_000_000
        sys.stdout.write('{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"')
        for _ in range(arguments.get("megabytes", 100)):
            sys.stdout.write(chunk)
        send('"}]},"id":%d}' % id)
    elif name == "large":
        content = '{"type":"text","text":"fine"}'
        if "text" in arguments:
            content = '{"type":"text","text":"%s"}' % ("x" * arguments["text"])
        if "picture" in arguments:
            content = '{"type":"image","mimeType":"image/png","data":"%s"}' % ("A" * arguments["picture"])
        values = "0," * (arguments.get("values", 1) - 1)
        send('{"jsonrpc":"2.0","id":%d,"result":{"content":[%s],"_meta":{"a":[%s0]}}}' % (id, content, values))
    elif name == "unfinished":
        sys.stdout.write('{"jsonrpc":"2.0","result":"' + "x" * 1_000_000)
        sys.stdout.flush()
    elif name == "noise":
        for line in ["only noise", '{"level":"info"}', '{"jsonrpc":"1.0","id":%d,"result":{}}' % id, '{"jsonrpc":"2.0"}',
                     '{"jsonrpc":"2.0","id":%d,"result":' % id, "[]", "null"]:
            send(line)
        text(id, "after the noise")
    elif name == "broken_characters":
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\\ud83db\xffc"}]}}\n' % id)
        sys.stdout.flush()
    elif name == "no_number":
        send('\ufeff{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"mean":NaN,"sum":3}}}' % id)
    elif name == "nothing":
        answer(id, {})
    elif name == "asks_at_length":
        messages = [{"role": "user", "content": {"type": "text", "text": "x" * 80_000}}]
        params = {"messages": messages, "maxTokens": 10}
        send(json.dumps({"jsonrpc": "2.0", "id": "ask", "method": "sampling/createMessage", "params": params}))
        refusal = json.loads(sys.stdin.readline())
        text(id, json.dumps([refusal["id"], refusal["error"]["code"]]))
    elif name == "wrong_id":
        answer(id + 1000, {"content": []})
    elif name == "text_id":
        text(str(id), "as a text")
    elif name == "no_content":
        answer(id, {"surprise": True})
    elif name == "rpc_error":
        send(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no such thing"}}))
    elif name == "is_error":
        answer(id, {"content": [{"type": "text", "text": "out of paper"}], "isError": True})
    elif name == "die":
        os._exit(1)
    elif name == "change":
        text(id, "changed")
        send(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        text_of_secret = os.environ.get("SECRET")
        print("the secret is", text_of_secret, file=sys.stderr, flush=True)
    elif name == "wait_for_cancel":
        waiting.append(id)
        settle()
    elif name == "late":
        late.append(id)
    elif name == "wedge":
        # Stops reading its input.
        while True:
            time.sleep(60)
    elif name == "hang":
        pass


def settle():
    while waiting and cancelled:
        text(waiting.pop(), str(cancelled.pop()))


if "exits" in sys.argv:
    print("first line\n\ncannot read the key", os.environ.get("SECRET"), file=sys.stderr, flush=True)
    sys.exit(3)
if "gated" in sys.argv:
    gate = sys.argv[-1]
    with open(gate + ".starts", "a") as starts:
        starts.write("start\n")
    with open(gate + ".writing", "w") as pid:
        pid.write(str(os.getpid()))
    os.rename(gate + ".writing", gate + ".pid")
    while not os.path.exists(gate):
        time.sleep(0.01)
if "silent" in sys.argv:
    print("loading", os.environ.get("SECRET"), "and a large index", file=sys.stderr, flush=True)
    threading.Event().wait()
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        version = "1999-01-01" if "old" in sys.argv else params["protocolVersion"]
        answer(id, {"protocolVersion": version, "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fake", "version": "1"}, "instructions": "Call echo first."})
    elif method == "tools/list":
        lists += 1
        answer(id, {"tools": tools()})
        if "leaves" in sys.argv:
            break
    elif method == "tools/call":
        call(id, params)
    elif method == "notifications/cancelled":
        cancelled.append(params["requestId"])
        if params["requestId"] in late:
            text(params["requestId"], "too late")
        settle()
