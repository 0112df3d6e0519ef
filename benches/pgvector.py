"""Compares pgvector with a scan of vectors in memory, as a worker does it.

Fills a table with the vectors of one collection among others, and measures questions about that collection: by pgvector without an
index, by its index HNSW, and by a product of all vectors in memory, one byte for each dimension. Prints a table.

    python3 -m venv venv && venv/bin/pip install pgserver numpy psycopg2-binary
    venv/bin/python benches/pgvector.py [PASSAGES] [DIMENSIONS]

pgserver is a package with PostgreSQL and pgvector.
"""
import io
import statistics
import sys
import tempfile
import time

import numpy
import pgserver
import psycopg2

PASSAGES = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
DIMENSIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 384
QUESTIONS = 40
NEAREST = 50


def unit(vectors):
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def made(random, centres, count):
    """Returns vectors near some centres, as texts about some subjects have them."""
    near = centres[random.integers(len(centres), size=count)]
    return unit(near + 0.6 * random.standard_normal((count, DIMENSIONS)) / DIMENSIONS**0.5).astype(numpy.float32)


def copy(cursor, collection, vectors):
    for start in range(0, len(vectors), 5000):
        rows = "".join(
            f"{collection}\t{start + n}\t[{','.join(f'{x:.6f}' for x in vector)}]\n" for n, vector in enumerate(vectors[start : start + 5000])
        )
        cursor.copy_expert("copy passage_vectors from stdin", io.StringIO(rows))


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


def main():
    random = numpy.random.default_rng(7)
    centres = unit(random.standard_normal((300, DIMENSIONS)))
    own, others = made(random, centres, PASSAGES), made(random, centres, PASSAGES)
    questions = made(random, centres, QUESTIONS)
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(folder)
        connection = psycopg2.connect(server.get_uri())
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("create extension vector")
        cursor.execute("select extversion, current_setting('server_version') from pg_extension where extname = 'vector'")
        print("pgvector %s, PostgreSQL %s" % cursor.fetchone())
        cursor.execute(f"create table passage_vectors (collection int, number int, embedding vector({DIMENSIONS}))")
        copy(cursor, 1, own)
        copy(cursor, 2, others)
        cursor.execute("create index on passage_vectors (collection)")
        cursor.execute("vacuum analyze passage_vectors")

        def nearest(question):
            text = "[" + ",".join(map(str, question)) + "]"
            cursor.execute(
                f"select number from passage_vectors where collection = 1 order by embedding <=> %s::vector limit {NEAREST}", (text,)
            )
            return {row[0] for row in cursor.fetchall()}

        exact, *without = measured(questions, nearest)
        cursor.execute("select pg_total_relation_size('passage_vectors') / 2")
        size = cursor.fetchone()[0]
        cursor.execute("set maintenance_work_mem = '2GB'")
        begin = time.perf_counter()
        cursor.execute("create index neighbours on passage_vectors using hnsw (embedding vector_cosine_ops)")
        build = time.perf_counter() - begin
        cursor.execute("set hnsw.ef_search = 200")
        found, *with_index = measured(questions, nearest)
        recall = statistics.mean(len(one & other) / len(one) for one, other in zip(exact, found))
        cursor.execute("select pg_relation_size('neighbours') / 2")
        index = cursor.fetchone()[0]
        cursor.close()
        connection.close()
        server.cleanup()
    scale = 127 / min(4 / DIMENSIONS**0.5, 1)
    coded = lambda vectors: numpy.clip(numpy.round(vectors * scale), -127, 127).astype(numpy.int8)
    codes = coded(own)

    def in_memory(question):
        scores = numpy.empty(len(codes), dtype=numpy.int32)
        wanted = coded(question[None, :])[0].astype(numpy.int32)
        for start in range(0, len(codes), 4096):
            scores[start : start + 4096] = codes[start : start + 4096].astype(numpy.int32) @ wanted
        return set(numpy.argpartition(-scores, NEAREST)[:NEAREST].tolist())

    found, *memory = measured(questions, in_memory)
    kept = statistics.mean(len(one & other) / len(one) for one, other in zip(exact, found))
    print(f"{PASSAGES} passages of the collection, as many of others, {DIMENSIONS} dimensions, {NEAREST} nearest")
    print("| search | p50 | p95 | of the nearest | bytes of the collection |")
    print("|---|---|---|---|---|")
    print(f"| pgvector without an index of neighbours | {without[0]:.0f} ms | {without[1]:.0f} ms | all | {size / 2**20:.0f} MiB on disk |")
    print(
        f"| pgvector, HNSW (built in {build:.0f} s for both) | {with_index[0]:.0f} ms | {with_index[1]:.0f} ms | {recall:.2f} | {(size + index) / 2**20:.0f} MiB on disk |"
    )
    print(f"| one byte a dimension in memory, by numpy | {memory[0]:.0f} ms | {memory[1]:.0f} ms | {kept:.2f} | {codes.nbytes / 2**20:.0f} MiB of memory |")


if __name__ == "__main__":
    main()
