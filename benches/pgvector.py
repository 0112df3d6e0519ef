"""Compares pgvector with a scan of vectors in memory, as a worker does it.

Fills the tables of `migrations/pgvector.sql` with the vectors of one collection and as many of others, and measures questions about
that collection: by the statement of a worker (`NEAREST` in knowledge/src/storage/embeddings.rs), by an index HNSW, and by a product
of all vectors in memory, one byte for each dimension. Prints a table. With `exact`, it leaves the index out, which is slow to build.

    python3 -m venv venv && venv/bin/pip install pgserver numpy psycopg2-binary
    venv/bin/python benches/pgvector.py [PASSAGES] [DIMENSIONS] [exact]

pgserver is a package with PostgreSQL and pgvector.
"""
import io
import pathlib
import statistics
import struct
import sys
import tempfile
import time
import uuid

import numpy
import pgserver
import psycopg2

PASSAGES = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
DIMENSIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 384
HAS_INDEX = "exact" not in sys.argv
OF_DOCUMENT = 200
QUESTIONS = 40
NEAREST = 50
MODEL = "openai/m"

# The columns that the statement reads.
SCHEMA = """
    create schema kb;
    set search_path = kb;
    create table documents (
        id uuid primary key, collection_id uuid, vectors_model text, embedded bigint, vectors_at timestamptz,
        indexed_at timestamptz, deleted_at timestamptz
    );
    create table passage_vectors (document_id uuid, model text, number bigint, primary key (document_id, model, number));
"""
EXACT = """
    prepare nearest (uuid, text, text, bigint, bigint) as
    select e.document_id, e.number, embedding_product(e.embedding, (select embedding_of($3))) as similarity
    from documents d
    join passage_embeddings e on e.document_id = d.id
    where e.model = $2 and e.dimensions = $4 and d.collection_id = $1 and d.vectors_model = $2 and d.embedded > 0
      and d.indexed_at is not null and d.deleted_at is null
    order by similarity desc, e.document_id, e.number
    limit $5
"""
BY_INDEX = f"""
    select e.document_id, e.number
    from documents d
    join passage_embeddings e on e.document_id = d.id
    where d.collection_id = %s
    order by e.embedding::public.vector({DIMENSIONS}) operator(public.<#>) %s::public.vector
    limit {NEAREST}
"""


def unit(vectors):
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def made(random, centres, count):
    """Returns vectors near some centres, as texts about some subjects have them."""
    near = centres[random.integers(len(centres), size=count)]
    return unit(near + 0.6 * random.standard_normal((count, DIMENSIONS)) / DIMENSIONS**0.5).astype(numpy.float32)


def row(*fields):
    return struct.pack(">h", len(fields)) + b"".join(struct.pack(">i", len(field)) + field for field in fields)


def copy(cursor, table, columns, rows):
    file = io.BytesIO(b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0) + b"".join(rows) + struct.pack(">h", -1))
    cursor.copy_expert(f"copy {table} ({columns}) from stdin with (format binary)", file)


def fill(cursor, collection, vectors):
    """Adds a document with these vectors; returns its id."""
    document = uuid.uuid4()
    cursor.execute(
        "insert into documents values (%s, %s, %s, %s, now(), now(), null)", (str(document), collection, MODEL, len(vectors))
    )
    keys = [(document.bytes, MODEL.encode(), struct.pack(">q", number)) for number in range(len(vectors))]
    copy(cursor, "passage_vectors", "document_id, model, number", (row(*key) for key in keys))
    head = struct.pack(">hh", DIMENSIONS, 0)
    embeddings = (row(*key, head + vector.tobytes()) for key, vector in zip(keys, vectors.astype(">f4")))
    copy(cursor, "passage_embeddings", "document_id, model, number, embedding", embeddings)
    return str(document)


def measured(questions, ask):
    """Returns the nearest of each question, and the median and the 95th percentile in ms."""
    ask(questions[0])
    found, times = [], []
    for question in questions:
        begin = time.perf_counter()
        found.append(ask(question))
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    return found, statistics.median(times), times[int(len(times) * 0.95) - 1]


def share(exact, found):
    return statistics.mean(len(one & other) / len(one) for one, other in zip(exact, found))


def main():
    random = numpy.random.default_rng(7)
    centres = unit(random.standard_normal((300, DIMENSIONS)))
    questions = made(random, centres, QUESTIONS)
    own, other = str(uuid.uuid4()), str(uuid.uuid4())
    scale = 127 / min(4 / DIMENSIONS**0.5, 1)
    coded = lambda vectors: numpy.clip(numpy.round(vectors * scale), -127, 127).astype(numpy.int8)
    places, codes, rows = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(folder)
        connection = psycopg2.connect(server.get_uri())
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("create extension vector")
        cursor.execute("select extversion, current_setting('server_version') from pg_extension where extname = 'vector'")
        print("pgvector %s, PostgreSQL %s" % cursor.fetchone())
        cursor.execute(SCHEMA)
        cursor.execute((pathlib.Path(__file__).parent.parent / "migrations/pgvector.sql").read_text())
        for start in range(0, PASSAGES, OF_DOCUMENT):
            vectors = made(random, centres, min(OF_DOCUMENT, PASSAGES - start))
            document = fill(cursor, own, vectors)
            places += [(document, number) for number in range(len(vectors))]
            codes.append(coded(vectors))
            fill(cursor, other, made(random, centres, len(vectors)))
        cursor.execute("vacuum analyze")
        # As each connection of a worker.
        cursor.execute("set jit = off; set plan_cache_mode = force_generic_plan")
        cursor.execute(EXACT)
        text = lambda question: "[" + ",".join(map(str, question)) + "]"

        def exactly(question):
            cursor.execute("execute nearest (%s, %s, %s, %s, %s)", (own, MODEL, text(question), DIMENSIONS, NEAREST))
            return {row[:2] for row in cursor.fetchall()}

        exact, *without = measured(questions, exactly)
        cursor.execute("select pg_total_relation_size('passage_embeddings') / 2")
        size = cursor.fetchone()[0]
        rows.append(("pgvector, as a worker asks it", *without, "all", f"{size / 2**20:.0f} MiB on disk"))
        if HAS_INDEX:
            cursor.execute("set maintenance_work_mem = '2GB'")
            begin = time.perf_counter()
            cursor.execute(
                f"create index neighbours on passage_embeddings using hnsw ((embedding::public.vector({DIMENSIONS})) public.vector_ip_ops)"
            )
            build = time.perf_counter() - begin
            cursor.execute("set hnsw.ef_search = 200")

            def by_index(question):
                cursor.execute(BY_INDEX, (own, text(question)))
                return set(cursor.fetchall())

            found, *with_index = measured(questions, by_index)
            cursor.execute("select pg_relation_size('neighbours') / 2")
            disk = f"{(size + cursor.fetchone()[0]) / 2**20:.0f} MiB on disk"
            rows.append((f"pgvector, HNSW (built in {build:.0f} s for both)", *with_index, f"{share(exact, found):.2f}", disk))
        cursor.close()
        connection.close()
        server.cleanup()
    codes = numpy.concatenate(codes)

    def in_memory(question):
        scores = numpy.empty(len(codes), dtype=numpy.int32)
        wanted = coded(question[None, :])[0].astype(numpy.int32)
        for start in range(0, len(codes), 4096):
            scores[start : start + 4096] = codes[start : start + 4096].astype(numpy.int32) @ wanted
        return {places[place] for place in numpy.argpartition(-scores, NEAREST)[:NEAREST]}

    found, *memory = measured(questions, in_memory)
    memory_bytes = f"{codes.nbytes / 2**20:.0f} MiB of memory"
    rows.append(("one byte a dimension in memory, by numpy", *memory, f"{share(exact, found):.2f}", memory_bytes))
    print(f"{PASSAGES} passages of the collection, as many of others, {DIMENSIONS} dimensions, {NEAREST} nearest")
    print("| search | p50 | p95 | of the nearest | bytes of the collection |")
    print("|---|---|---|---|---|")
    for search, median, late, kept, size in rows:
        print(f"| {search} | {median:.0f} ms | {late:.0f} ms | {kept} | {size} |")


if __name__ == "__main__":
    main()
