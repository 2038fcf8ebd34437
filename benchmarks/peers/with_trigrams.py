"""The job with PostgreSQL's extension pg_trgm: a table with a GIN index on the texts is joined with itself.

The similarity of pg_trgm compares the character trigrams of words, not word 3-shingles.
"""

import psycopg

from benchmarks.peers.job import THRESHOLD, read_job

_TABLE = "CREATE TEMPORARY TABLE text_of (doc_row integer PRIMARY KEY, body text)"
_INDEX = "CREATE INDEX ON text_of USING gin (body gin_trgm_ops)"
_PAIRS = """
SELECT one.doc_row, other.doc_row FROM text_of AS one JOIN text_of AS other
ON one.body % other.body AND one.doc_row < other.doc_row
"""
_LOOKUP = "SELECT doc_row FROM text_of WHERE body %% %s"


def main() -> None:
    """Index a file in a table; write the survivors, or look up texts."""
    job = read_job()
    lines, texts = job.read()
    with psycopg.connect(str(job.server), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        connection.execute("SELECT set_config('pg_trgm.similarity_threshold', %s, false)", (str(THRESHOLD),))
        connection.execute(_TABLE)
        with connection.cursor().copy("COPY text_of FROM STDIN") as copy:
            for place, text in enumerate(texts):
                copy.write_row((place, text.replace("\0", "")))
        connection.execute(_INDEX)
        connection.execute("ANALYZE text_of")

        if job.lookups:
            job.time_lookups(lambda text: connection.execute(_LOOKUP, (text.replace("\0", ""),)).fetchall())
        else:
            job.finish(lines, ((int(left), int(right)) for left, right in connection.execute(_PAIRS)))


if __name__ == "__main__":
    main()
