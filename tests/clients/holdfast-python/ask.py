"""The programs of docs/clients.md."""

from holdfast import Answer, AsyncClient, Client


def ask(base, text, may_call):
    """Returns the answer to a text. `may_call` decides about the calls that need an approval."""
    with Client(base) as client:
        run = client.start_run(text)["run"]
        answer = Answer()
        for event in client.events(run["id"]):
            answer.apply(event)
            if event["type"] == "approval.requested":
                verdict = "approve" if may_call(event["name"], event["input"]) else "deny"
                client.decide(run["id"], event["approval_id"], verdict)
        return answer.text


async def ask_async(base, text):
    async with AsyncClient(base) as client:
        run = (await client.start_run(text))["run"]
        answer = Answer()
        async for event in client.events(run["id"]):
            answer.apply(event)
        return answer.text
