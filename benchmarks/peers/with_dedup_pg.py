"""The job with dedup-pg, which stores MinHash bands in PostgreSQL and assigns each inserted text to a cluster."""

import uuid

from dedup_pg import DedupIndex
from dedup_pg.backend.sqlalchemy import SQLAlchemyBackend
from sqlalchemy import MetaData, create_engine

from benchmarks.peers.job import ROWS, K, read_job
from benchmarks.peers.shingles import word_shingles


def _tokens(text: str) -> list[bytes]:
    return [shingle.encode() for shingle in word_shingles(text)]


def main() -> None:
    """Index a file in a table; write the survivors, or look up texts."""
    job = read_job()
    lines, texts = job.read()

    engine = create_engine(f"postgresql+psycopg2{str(job.server).removeprefix('postgresql')}")
    tables = MetaData()
    backend = SQLAlchemyBackend(
        engine=engine, base_or_metadata=tables, table_name=f"dedup_{uuid.uuid4().hex[:8]}"
    )
    index = DedupIndex(backend, num_perms=K, rows=ROWS)
    tables.create_all(engine)

    try:
        first: dict[uuid.UUID, int] = {}
        rows = enumerate(map(_tokens, texts))
        first_rows = [first.setdefault(index.query(tokens), row) if tokens else row for row, tokens in rows]
        if job.lookups:
            job.time_lookups(lambda text: index.query(_tokens(text)))
        else:
            job.finish(
                lines, ((first_row, row) for row, first_row in enumerate(first_rows) if first_row != row)
            )
    finally:
        tables.drop_all(engine)


if __name__ == "__main__":
    main()
