"""What a database of many collections costs: statements of commands and of workers, locks, tables."""

from collections.abc import Callable
from typing import cast

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.admin.doctor import examine
from nearsim_db.errors import NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import generation_rows
from nearsim_db.worker.worker import Worker
from tests.builders.many_collections import DOCUMENTS, fill
from tests.builders.plan_log import explained
from tests.builders.workers import ask

FEW, MANY = 25, 60


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every statement that this process sends to a server, from here on."""
    sent: list[object] = []
    execute: Callable[..., psycopg.Cursor[tuple[object, ...]]] = psycopg.Cursor.execute

    def spy(
        self: psycopg.Cursor[tuple[object, ...]], query: object, *given: object, **named: object
    ) -> object:
        sent.append(query)
        return execute(self, query, *given, **named)

    monkeypatch.setattr(psycopg.Cursor, "execute", spy)
    return sent


@pytest.mark.slow("many collections")
def test_costs_do_not_grow_with_the_number_of_collections(
    database_url: str, monkeypatch: pytest.MonkeyPatch, statements: list[object]
) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", database_url)
    monkeypatch.setenv("NEARSIM_BACKEND", "numpy")
    costs = []
    for collections in (FEW, MANY):
        fill(database_url, collections)
        with psycopg.connect(database_url) as session:
            costs.append({"relations": count_relations(session)} | count_locks(session))
        for name, run in (("doctor", examine), ("worker", Worker(database_url).drain)):
            statements.clear()
            run()
            costs[-1][name] = len(statements)
    few, many = costs
    # A worker runs services by the clock.
    assert few.pop("worker") < 100 > many.pop("worker")
    assert few == many
    assert many["relations"] <= 500
    assert max(many[view] for view in VIEWS) <= 60


def test_collections_without_documents_cost_a_worker_nothing(
    database_url: str, statements: list[object]
) -> None:
    Worker(database_url).drain()  # compares all generations with their documents, as the schema is new
    counts = []
    for first in (0, FEW):
        for number in range(first, first + FEW):
            with Index.connect(database_url, collection=f"empty {number}") as index:
                index.create_profile("default", Recipe())
        statements.clear()
        Worker(database_url).drain()
        counts.append(len(statements))
    assert max(counts) < min(counts) + FEW


VIEWS = ("pairs", "documents", "clusters", "duplicates", "combined_pairs")


RELATIONS = """
SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE starts_with(nspname, 'nearsim')
"""


def count_relations(session: psycopg.Connection[tuple[object, ...]]) -> int:
    """Relations in the schemas of nearsim: tables, indexes, views, sequences."""
    return int(ask(session, RELATIONS))


def count_locks(session: psycopg.Connection[tuple[object, ...]]) -> dict[str, int]:
    """Locks that a query of each view takes for one collection."""
    found = {}
    for view in VIEWS:
        session.commit()
        session.execute(
            psycopg.sql.SQL("SELECT FROM nearsim.{} WHERE collection = 'tenant-00002'").format(
                psycopg.sql.Identifier(view)
            )
        )
        found[view] = ask(session, "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()")
    return found


def test_pairs_of_a_document_are_looked_for_in_its_collection_only(database_url: str) -> None:
    fill(database_url, MANY)
    with psycopg.connect(database_url) as session:
        session.execute("SET jit = off")
        document = int(ask(session, "SELECT min(left_id) FROM nearsim.similar_pair"))
        found = explained(session, f"SELECT * FROM nearsim.pairs WHERE left_id = {document}")  # noqa: S608
    assert found[0]["Actual Rows"] == 2
    loops = [node["Actual Loops"] for node in found if node.get("Relation Name") == "signature_shared"]
    assert 0 < max(loops) < MANY / 10


def test_an_error_names_some_of_many_collections(database_url: str) -> None:
    with psycopg.connect(database_url) as session:
        session.execute(
            "INSERT INTO nearsim.collection (name) SELECT format('tenant %s', number) "
            "FROM generate_series(100, 2122) AS number"
        )
    shown = (
        r"'typo' does not exist in .*: tenant 100, tenant 1000, .* and 2,003 more \(nearsim collection list\)"
    )
    with Index.connect(database_url, collection="typo") as index, pytest.raises(NotFoundError, match=shown):
        list(index.pairs())


def test_a_first_document_takes_few_statements_and_creates_nothing(
    database_url: str, statements: list[object]
) -> None:
    document = DOCUMENTS[0]
    with Index.connect(database_url, collection="before") as index:
        index.add([document])
        statements.clear()
        index.collection = "after"
        index.add([document])
        with psycopg.connect(database_url) as session:
            sent = [
                one.as_string(session) if isinstance(one, psycopg.sql.Composable) else str(one)
                for one in statements
            ]
    assert len(sent) < 80
    words = {
        line.split()[0].upper()
        for one in sent
        for line in one.splitlines()
        if line.strip() and not line.startswith("--")
    }
    assert not words & {"CREATE", "ALTER", "DROP", "TRUNCATE", "VACUUM", "ANALYZE"}
    assert {"SELECT", "UPDATE"} <= words


def test_generations_of_a_collection_are_found_by_index(
    connection: Connection, statements: list[object]
) -> None:
    connection.execute("SET enable_seqscan = off")
    generation_rows.list_generations(connection, CollectionId(1))
    plan = connection.backend.execute(
        psycopg.sql.SQL("EXPLAIN {}").format(cast(psycopg.sql.Composable, statements[-1])),
        {"collection_id": 1},
    ).fetchall()
    assert "generation_profile" in str(plan)
