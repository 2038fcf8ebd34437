"""The measurement of candidates in SQL runs every statement, and these find the same pairs."""

import psycopg

from benchmarks import candidates
from tests.builders.sql_world import write_documents


def test_every_statement_finds_the_same_pairs(database_url: str) -> None:
    leaves, bucket_limit = candidates.load(database_url, write_documents(1))
    with psycopg.connect(database_url, autocommit=True) as session:
        found = candidates.measure(session, candidates.runs(leaves, bucket_limit), 1, parallel=True)
    _, _, *lines = found.splitlines()
    rows = [line.split(" | ")[1] for line in lines]
    assert len(rows) == 5 and len(set(rows)) == 1 and int(rows[0].replace(",", "")) > 0
