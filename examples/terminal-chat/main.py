"""A chat in the terminal: main.py [URL] [CONVERSATION]"""

import mimetypes
import sys
from pathlib import Path

from holdfast import Answer, Client, HoldfastError
from holdfast.wire import ApprovalRequestedEvent, PartInput, Verdict


def say(text: str, end: str = "\n") -> None:
    print(text, end=end, flush=True)


def ask(client: Client, question: ApprovalRequestedEvent) -> None:
    """Asks the person at the terminal, and sends the answer."""
    say(f"\n[{question['name']} {question['input']}] Allow? y/n ", end="")
    verdict: Verdict = "approve" if sys.stdin.readline().strip().lower() in ("y", "yes") else "deny"
    run_id = question.get("child_run_id") or question["run_id"]
    client.decide(run_id, question["approval_id"], verdict)


def show(client: Client, run_id: str) -> None:
    """Shows a run's answer while it is written."""
    answer = Answer()
    for event in client.events(run_id):
        before = answer.text
        answer.apply(event)
        if not answer.text.startswith(before):
            # A worker was lost, and another one repeats a part of the text.
            say(f"\n[again]\n{answer.text}", end="")
        if event["type"] == "message.delta":
            say(event["text"], end="")
        elif event["type"] == "tool_call.started":
            say(f"\n[{event['name']}]")
        elif event["type"] == "approval.requested":
            ask(client, event)
        elif event["type"] == "run.failed":
            say(f"\n[failed: {event['error']['message']}]", end="")
    say("")


def upload(client: Client, name: str) -> PartInput:
    with open(name, "rb") as file:
        stored = client.upload(file, Path(name).name)
    is_image = (mimetypes.guess_type(name)[0] or "").startswith("image/")
    return {"type": "image", "file_id": stored["id"]} if is_image else {"type": "file", "file_id": stored["id"]}


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    conversation_id = sys.argv[2] if len(sys.argv) > 2 else None
    files: list[PartInput] = []
    with Client(url) as client:
        while True:
            say("> ", end="")
            line = sys.stdin.readline()
            text = line.strip()
            if not line or text == "/quit":
                break
            try:
                if text.startswith("/file "):
                    files.append(upload(client, text.removeprefix("/file ").strip()))
                elif text:
                    content: list[PartInput] = [*files, {"type": "text", "text": text}]
                    accepted = client.start_run(content, conversation_id=conversation_id)
                    conversation_id, files = accepted["conversation"]["id"], []
                    show(client, accepted["run"]["id"])
            except (HoldfastError, OSError) as error:
                say(f"[{error}]")
    say(conversation_id or "")


main()
