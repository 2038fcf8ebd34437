"""The measurement of candidates in SQL runs every statement, and those that return pairs find the same."""

import psycopg

from benchmarks import candidates
from tests.builders.sql_world import write_documents


def test_every_statement_finds_the_same_pairs(database_url: str) -> None:
    leaves = candidates.load(database_url, write_documents(1))
    with psycopg.connect(database_url, autocommit=True) as session:
        found = candidates.measure(session, candidates.runs(leaves), 1, parallel=True)
    _, _, *lines = found.splitlines()
    rows = [int(line.split(" | ")[1].replace(",", "")) for line in lines]
    # The build's own statement returns a row for each bucket, with its members.
    build, function, query, join = rows
    assert function == query == join > 0 < build
