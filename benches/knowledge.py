"""Measures the retrieval from a collection of 10,000 documents with 100,000 passages, among those of other owners, on both
databases. Prints a table in Markdown.

    python3 benches/knowledge.py target/release/holdfast

It makes its own PostgreSQL, Redis, data folder and provider of vectors. DOCUMENTS=200 and REQUESTS=20 are for a quick
try, DIMENSIONS=384 for other vectors, and DATABASES=SQLite for one of the two.

SQL fills the collections with what an ingestion stores: texts in pieces of 8,192 characters, passages of at most 1,200,
their words with the number of the collection, and vectors. Then one document is ingested by the program, which takes the
sample of the words. The texts are made: words of a vocabulary of 200,000 by Zipf's law, and one document of ten is Chinese.
"""

import bisect
import itertools
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import time

from deployment import Deployment, fixed_work, percentile
from vectors import Hashes, Provider

DOCUMENTS = int(os.environ.get("DOCUMENTS", 10_000))
DIMENSIONS = int(os.environ.get("DIMENSIONS", 768))
DATABASES = os.environ.get("DATABASES", "PostgreSQL SQLite").split()
REQUESTS = int(os.environ.get("REQUESTS", 200))
PER_DOCUMENT, OTHERS = 10, 10
PIECE = 8192
AT = "2026-11-26T00:00:00.000+00:00"
MODEL = "openai/bench"
# No worker looks for vectors of the other owners' documents in the background.
NOTE_VECTORS = f"""
    update documents
    set vectors_of = '{MODEL}',
        vectors_at = indexed_at,
        vectors_model = case when owner_id = 'debug_user' then '{MODEL}' end,
        embedded = case when owner_id = 'debug_user' then passages else 0 end
"""


def uuid(space, n):
    return f"01a00000-0000-7{space:03x}-8000-{n:012x}"


class Language:
    """Makes texts by Zipf's law, and the words that the index has of them."""

    def __init__(self, words, exponent):
        self.words = words
        self.sums = list(itertools.accumulate(1 / (rank + 2.7) ** exponent for rank in range(len(words))))

    def pick(self, dice, count):
        total = self.sums[-1]
        return [self.words[bisect.bisect(self.sums, dice.random() * total)] for _ in range(count)]


def made_word(n):
    """Returns a word. Its digit keeps the program from taking it for an English one with an ending."""
    syllables = ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "ve", "wi", "zo"]
    parts = []
    while n or not parts:
        n, rest = divmod(n, len(syllables))
        parts.append(syllables[rest])
    return "".join(parts) + "7"


LATIN = Language([made_word(n) for n in range(200_000)], 1.0)
HAN = Language([chr(0x4E00 + n) for n in range(6_000)], 1.0)


def passage(dice, is_chinese):
    """Returns the text of a passage and its words in the index."""
    if is_chinese:
        sentences = ["".join(HAN.pick(dice, dice.randint(8, 30))) for _ in range(20)]
        pairs = [sentence[at : at + 2] for sentence in sentences for at in range(len(sentence) - 1)]
        return "。".join(sentences) + "。", pairs
    words = LATIN.pick(dice, dice.randint(80, 160))
    return " ".join(words) + ".", words


class Document:
    def __init__(self, n, count):
        dice = random.Random(n)
        self.n, self.is_chinese = n, (n * 7 + n // 10) % 10 == 9
        self.passages, parts, at = [], [], 0
        for number in range(count):
            text, words = passage(dice, self.is_chinese)
            self.passages.append((number, at, at + len(text), words))
            parts.append(text)
            at += len(text) + 2
        self.text = "\n\n".join(parts)
        self.pieces = [self.text[start : start + PIECE] for start in range(0, len(self.text), PIECE)]


def collections():
    """Returns the collections: owner, number of documents, first document. The measured one is in the middle."""
    first = 0
    for n in range(OTHERS + 1):
        count = DOCUMENTS if n == OTHERS // 2 else DOCUMENTS // 10
        yield ("debug_user" if n == OTHERS // 2 else f"other{n}"), count, first
        first += count


def vector(dice):
    values = [byte - 127.5 for byte in dice.randbytes(DIMENSIONS)]
    length = sum(x * x for x in values) ** 0.5
    import array

    return array.array("f", (x / length for x in values)).tobytes()


def lexemes(number, words):
    places = {}
    for at, word in enumerate(words, 1):
        places.setdefault(word, []).append(str(at))
    return " ".join(f"c{number}z{word}:{','.join(places[word][:255])}" for word in sorted(places))


class Filler:
    """Takes the rows of all collections in the order of the tables' references."""

    def fill(self):
        dice = random.Random(7)
        for number, (owner, count, first) in enumerate(collections(), 1):
            self.collection(number, uuid(1, number), owner)
            for n in range(first, first + count):
                document = Document(n, PER_DOCUMENT)
                self.document(document, uuid(1, number), owner)
                vectors = [vector(dice) for _ in document.passages] if owner == "debug_user" else []
                self.contents(document, number, vectors)
        self.finish()


class SqliteFiller(Filler):
    def __init__(self, file):
        self.database = sqlite3.connect(file)
        self.database.execute("pragma synchronous = off")

    def collection(self, number, ident, owner):
        columns = "number, id, owner_id, name, readable_by, created_at"
        row = (number, blob(ident), owner, "Ports", "owner", AT)
        self.database.execute(f"insert into collections ({columns}) values (?, ?, ?, ?, ?, ?)", row)

    def document(self, document, collection, owner):
        columns = "id, collection_id, owner_id, conversation_id, run_id, file_id, title, media_type, bytes, chars, passages"
        spaces = [blob(uuid(space, document.n)) for space in (2, 3, 4, 5)]
        row = (spaces[0], blob(collection), owner, *spaces[1:], f"{document.n}.txt", "text/plain", len(document.text))
        row += (len(document.text), len(document.passages), AT, AT, AT)
        marks = ", ".join("?" * len(row))
        statement = f"insert into documents ({columns}, extracted_at, indexed_at, created_at) values ({marks})"
        self.database.execute(statement, row)

    def contents(self, document, number, vectors):
        ident = blob(uuid(2, document.n))
        texts = [(ident, piece, body) for piece, body in enumerate(document.pieces)]
        self.database.executemany("insert into document_texts values (?, ?, ?)", texts)
        of_passage = [
            (document.n * PER_DOCUMENT + at + 1, ident, at, start, end, " ".join(f"c{number}z{word}" for word in words))
            for at, start, end, words in document.passages
        ]
        columns = "id, document_id, number, start_at, end_at, words"
        self.database.executemany(f"insert into passages ({columns}) values (?, ?, ?, ?, ?, ?)", of_passage)
        words = [(row[0], row[-1]) for row in of_passage]
        self.database.executemany("insert into passage_words (rowid, words) values (?, ?)", words)
        of_vectors = [(ident, at, MODEL, bytes_) for at, bytes_ in enumerate(vectors)]
        self.database.executemany("insert into passage_vectors values (?, ?, ?, ?)", of_vectors)

    def finish(self):
        self.database.execute(NOTE_VECTORS)
        self.database.commit()
        self.database.execute("pragma wal_checkpoint(truncate)")
        self.database.close()


class PostgresFiller(Filler):
    TABLES = {
        "collections": "id, owner_id, name, readable_by, created_at",
        "documents": "id, collection_id, owner_id, conversation_id, run_id, file_id, title, media_type, bytes, chars, "
        "passages, extracted_at, indexed_at, created_at",
        "document_texts": "document_id, number, body",
        "passages": "document_id, number, start_at, end_at, words",
        "passage_vectors": "document_id, number, model, vector",
    }

    def __init__(self, deployment):
        self.psql = [*deployment.psql, "-c", "set search_path to kb, public"]
        # An index that is made of all rows is made in a minute; otherwise each passage would change a hundred leaves.
        self.sql("drop index if exists passages_by_word", "alter table documents disable trigger all")
        self.files = {}
        for table in self.TABLES:
            self.files[table] = open(os.path.join(deployment.work, f"{table}.copy"), "w")

    def sql(self, *statements):
        subprocess.run([*self.psql, *(flag for each in statements for flag in ("-c", each))], check=True, stdout=subprocess.DEVNULL)

    def write(self, table, *row):
        self.files[table].write("\t".join(str(value).replace("\\", "\\\\").replace("\n", "\\n") for value in row) + "\n")

    def collection(self, number, ident, owner):
        self.write("collections", ident, owner, "Ports", "owner", AT)

    def document(self, document, collection, owner):
        spaces = [uuid(space, document.n) for space in (2, 3, 4, 5)]
        length = len(document.text)
        row = (spaces[0], collection, owner, *spaces[1:], f"{document.n}.txt", "text/plain", length, length)
        self.write("documents", *row, len(document.passages), AT, AT, AT)

    def contents(self, document, number, vectors):
        ident = uuid(2, document.n)
        for piece, body in enumerate(document.pieces):
            self.write("document_texts", ident, piece, body)
        for at, start, end, words in document.passages:
            self.write("passages", ident, at, start, end, lexemes(number, words))
        for at, bytes_ in enumerate(vectors):
            self.write("passage_vectors", ident, at, MODEL, "\\x" + bytes_.hex())

    def finish(self):
        for table, columns in self.TABLES.items():
            self.files[table].close()
            self.sql(f"\\copy {table} ({columns}) from '{self.files[table].name}'")
            os.remove(self.files[table].name)
        index = "create index passages_by_word on passages using gin (words) with (fastupdate = off)"
        self.sql("alter table documents enable trigger all", "set maintenance_work_mem = '512MB'", index)
        self.sql(NOTE_VECTORS)
        self.sql("vacuum analyze")


def blob(text):
    return bytes.fromhex(text.replace("-", ""))


def questions():
    """Returns the questions of each kind, as texts."""
    dice = random.Random(11)
    first = next(first for owner, _, first in collections() if owner == "debug_user")

    def of_passage(is_chinese):
        while True:
            document = Document(first + dice.randrange(DOCUMENTS), PER_DOCUMENT)
            if document.is_chinese == is_chinese:
                _, start, end, words = dice.choice(document.passages)
                return document.text[start:end], words

    def phrase():
        words = of_passage(False)[1]
        at = dice.randrange(len(words) - 8)
        return " ".join(words[at : at + 8])

    def chinese():
        text = of_passage(True)[0]
        at = dice.randrange(len(text) - 12)
        return text[at : at + 12]

    kinds = {
        "three rare words": lambda: " ".join(made_word(dice.randrange(20_000, 150_000)) for _ in range(3)),
        "four common words": lambda: " ".join(made_word(dice.randrange(0, 60)) for _ in range(4)),
        "the commonest word": lambda: made_word(0),
        "eight words in a row of a passage": phrase,
        "twelve characters of a Chinese passage": chinese,
        "32 words of a passage": lambda: " ".join(dict.fromkeys(of_passage(False)[1]).keys())[:400],
    }
    return {kind: [make() for _ in range(REQUESTS)] for kind, make in kinds.items()}


def measure(call, of):
    times = []
    for each in of:
        begin = time.perf_counter()
        call(each)
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times), percentile(times, 0.95), max(times)


def moment(event):
    from datetime import datetime

    return datetime.fromisoformat(event["at"]).timestamp() * 1000


def retrieval(deployment, collection, question):
    """Returns the ms from the start of a run to the event that names its passages."""
    conversation = deployment.request("POST", "/v1/conversations", {"knowledge": [collection]})["id"]
    body = {"conversation_id": conversation, "input": f"{question} [tokens=1] [delay=0]"}
    run = deployment.request("POST", "/v1/runs", body, {"prefer": "respond-async"})["run"]["id"]
    log = deployment.events(run)
    kinds = [event["type"] for event in log]
    assert "context.retrieved" in kinds, kinds
    return moment(log[kinds.index("context.retrieved")]) - moment(log[kinds.index("attempt.started")])


def timed(name, work):
    begin = time.perf_counter()
    result = work()
    print(f"{name}: {time.perf_counter() - begin:.1f} s", file=sys.stderr)
    return result


def fill(deployment):
    if deployment.database == "PostgreSQL":
        PostgresFiller(deployment).fill()
    else:
        SqliteFiller(os.path.join(deployment.work, "data", "holdfast.db")).fill()


def report(deployment, asked):
    """Returns the figures of a deployment by kind of question: words, and a run's with vectors."""
    name, results = deployment.database, {}
    deployment.start_holdfast()
    collection = uuid(1, OTHERS // 2 + 1)
    ingest = lambda: deployment.ingest(collection, "harbour.md", b"The harbour master opens the lock.")
    timed("one document", ingest)
    connection = deployment.connect()

    def search(question):
        return deployment.search(collection, question, 20, connection)

    assert search("harbour master")[0]["text"] == "The harbour master opens the lock."
    for kind, texts in asked.items():
        found = sum(len(search(text)) for text in texts[:20]) / 20
        rounds = [(fixed_work(), *measure(search, texts)) for _ in range(3)]
        results[kind] = best = min(rounds, key=lambda each: each[2])
        figures = f"p50 {best[1]:.1f}, p95 {best[2]:.1f}, max {best[3]:.1f}"
        print(name, kind, f"{found:.1f} passages, work {best[0]} ms, {figures}", file=sys.stderr)
    worker = "worker" if name == "PostgreSQL" else "holdfast"
    before = deployment.memory(worker)
    results["first"] = retrieval(deployment, collection, "harbour master")
    results["memory"] = (deployment.memory(worker) - before) / 2**20
    print(name, f"first {results['first']:.0f} ms, {results['memory']:.0f} MiB", file=sys.stderr)
    for kind, texts in asked.items():
        rounds = []
        for part in range(2):
            speed = fixed_work()
            times = [retrieval(deployment, collection, text) for text in texts[part * REQUESTS // 4 : (part + 1) * REQUESTS // 4]]
            rounds.append((speed, statistics.median(times), percentile(times, 0.95), max(times)))
        results[kind, "vectors"] = best = min(rounds, key=lambda each: each[2])
        figures = f"p50 {best[1]:.1f}, p95 {best[2]:.1f}, max {best[3]:.1f}"
        print(name, kind, f"with vectors: work {best[0]} ms, {figures}", file=sys.stderr)
    print(name, "load", os.getloadavg(), file=sys.stderr)
    return results


def table(results, kinds):
    print("| question | " + " | ".join(f"{name}, words | {name}, a run's, with vectors" for name in results) + " |")
    print("|---|" + "---|---|" * len(results))
    for kind in kinds:
        keys = [(of, key) for of in results.values() for key in (kind, (kind, "vectors"))]
        print(f"| {kind} | " + " | ".join(f"{of[key][1]:.1f} / {of[key][2]:.1f}" for of, key in keys) + " |")
    cells = [f"– | {of['first']:.0f} ms, {of['memory']:.0f} MiB" for of in results.values()]
    print(f"| the first one of a worker, which reads the vectors | {' | '.join(cells)} |")


def main():
    asked, results = questions(), {}
    provider = Provider(Hashes(DIMENSIONS))
    provider.start()
    settings = {**provider.settings(), "HOLDFAST_OWNER_DOCUMENTS": "1000000"}
    for name in DATABASES:
        with Deployment(sys.argv[1], name, settings) as deployment:
            timed(f"{name}: filled", lambda: fill(deployment))
            results[name] = report(deployment, asked)
    table(results, asked)


if __name__ == "__main__":
    main()
