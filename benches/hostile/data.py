"""Attacks on what is stored: documents and their removal, histories that requests bring, changes of a workspace."""
import itertools, json, random, time

from .beside import Attack, again, side_by_side
from .bystander import listing, one_word
from .server import MALLORY, tally


def random_words(bytes_):
    """Returns a text of this many bytes whose words are all different, the worst for an index of words."""
    dice = random.Random(bytes_)
    words = (f"{dice.getrandbits(40):x}" for _ in itertools.count())
    text = bytearray()
    while len(text) < bytes_:
        text += " ".join(itertools.islice(words, 10_000)).encode() + b"\n\n"
    return bytes(text[:bytes_])


class Deletions(Attack):
    """A user ingests a document of 16 MB of random words and deletes it, again and again."""

    text = random_words(16_000_000)

    def ingest(self, server):
        file = server.upload("words.txt", "text/plain", self.text, MALLORY)
        added = server.json("POST", f"/v1/collections/{self.collection}/documents", {"file_id": file}, MALLORY)
        status = server.complete(added["run"]["id"], MALLORY, within_ms=60_000)
        return added["document"]["id"], file, status

    def prepare(self, server):
        self.collection = server.json("POST", "/v1/collections", {"name": "words"}, MALLORY)["id"]
        self.documents = [self.ingest(server)]

    def strike(self, server, until):
        deleted = 0
        while time.monotonic() < until:
            document, file, _ = self.documents.pop() if self.documents else self.ingest(server)
            server.ask("DELETE", f"/v1/documents/{document}", user=MALLORY)
            server.ask("DELETE", f"/v1/files/{file}", user=MALLORY)
            deleted += 1
            # One removal has this long before the next document comes.
            time.sleep(max(0.0, min(25.0, until - time.monotonic())))
        return f"{deleted} documents deleted"


class Histories(Attack):
    """An anonymous address sends histories of 3.5 MB with its messages."""

    def strike(self, server, until):
        secret = server.json("POST", "/v1/users/anonymous")["token"]
        turns = [{"role": ("user", "assistant")[number % 2], "content": "x" * 3_500} for number in range(1_000)]
        body = {"model": "default", "messages": turns + [{"role": "user", "content": "[tokens=1]"}]}
        before, begun = server.stored(), time.monotonic()

        def send():
            answer = server.ask("POST", "/openai/v1/chat/completions", body, authorization="Bearer " + secret)
            time.sleep(0.1)
            return answer

        answers = again(until, send)
        minutes = (time.monotonic() - begun) / 60
        return f"{tally(answers)}; {(server.stored() - before) / minutes:,.0f} MiB a minute on disk"


class Changes(Attack):
    """Three users delete and restore projects of 250 documents of 256 KiB."""

    users, documents = [MALLORY, "trudy", "eve"], 250

    def prepare(self, server):
        self.projects = []
        for user in self.users:
            project = server.json("POST", "/v1/workspace/projects", {"name": "Large"}, user)["id"]
            for number in range(self.documents):
                document = {"title": f"Document {number}", "project_id": project, "body": "x" * 262_144}
                server.json("POST", "/v1/workspace/documents", document, user)
            self.projects.append(project)

    def strike(self, server, until):
        def change(index):
            path, user = f"/v1/workspace/projects/{self.projects[index]}", self.users[index]
            deleted = server.ask("DELETE", path, user=user, timeout=60)
            restored = server.ask("POST", path + "/restore", user=user, timeout=60)
            return deleted[:2], restored[:2]

        answers = side_by_side(3, until, change)
        return tally([answer for pair in answers for answer in pair if isinstance(answer, tuple)])


class Papers(Changes):
    """Three users delete and restore projects of 30 documents of 256 KiB, which the bounds still admit."""

    documents = 30


class Crowd(Changes):
    """Three users delete and restore projects of 1,900 tasks, which the bounds still admit."""

    def prepare(self, server):
        self.projects = []
        for user in self.users:
            project = server.json("POST", "/v1/workspace/projects", {"name": "Crowded"}, user)["id"]
            tasks = [{"title": f"Task {number}", "project_id": project} for number in range(1_900)]
            for task in tasks:
                server.json("POST", "/v1/workspace/tasks", task, user)
            self.projects.append(project)


class Reads(Attack):
    """A user reads a thread of 1,000 long messages by 32 connections, on three wires."""

    acts = (listing, one_word)
    settings = {"HOLDFAST_RUNS_PER_OWNER": "2000"}

    def prepare(self, server):
        first = server.json("POST", "/v1/runs", {"input": "[tokens=300] [delay=0]"}, MALLORY)
        self.thread = first["conversation"]["id"]
        body = {"content": "[tokens=300] [delay=0] " + "y" * 1_000, "stream": False}
        for _ in range(500):
            while server.ask("POST", f"/v1/conversations/{self.thread}/messages", body, MALLORY)[0] == 429:
                time.sleep(0.02)

    def strike(self, server, until):
        paths = [
            f"/api/chat/{self.thread}/messages",
            f"/langgraph/threads/{self.thread}/state",
            f"/v1/conversations/{self.thread}/messages?limit=200",
        ]
        answers = side_by_side(32, until, lambda i: server.ask("GET", paths[i % 3], user=MALLORY)[:2])
        return tally(answers)


ATTACKS = [Deletions, Histories, Changes, Papers, Crowd, Reads]
