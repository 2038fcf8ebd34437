"""The soak's oracle agrees with an index of every family, and finds what is changed in one."""

import random
from collections.abc import Iterator

import psycopg
import pytest

from nearsim_db import Index
from tests.builders.selection import some
from tests.endurance.soak.compare import wrong_documents, wrong_index
from tests.endurance.soak.contents import draw_fields
from tests.endurance.soak.journal import Connection, Model
from tests.endurance.soak.recipes import VARIANTS, draw_recipe
from tests.endurance.soak.stored import read_documents, read_generation, read_generations

_INSERT = """
INSERT INTO nearsim.document (collection_id, external_id, title, body, vector, source, published_at)
VALUES (1, %(name)s, %(title)s, %(body)s, %(vector)s, %(source)s, %(published_at)s) RETURNING doc_id
"""


def differences(connection: Connection) -> list[str]:
    """The faults that the oracle finds in the only generation."""
    documents = read_documents(connection)
    (generation,) = read_generations(connection)
    rows = {doc_id: one.row(one.values["body"]) for doc_id, one in documents.items()}
    revisions = {doc_id: one.revision for doc_id, one in documents.items()}
    return [*wrong_index(generation, rows, revisions, {}, read_generation(connection, generation))]


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("variant", some(list(VARIANTS), "every family"))
def test_index_agrees_with_the_oracle(connection: Connection, database_url: str, variant: str) -> None:
    rng = random.Random(variant)
    with Index.connect(database_url) as index:
        index.create_profile("default", draw_recipe(variant, rng))
        for number in range(40):
            connection.execute(_INSERT, {"name": f"d{number}", **draw_fields(rng)})
        index.build()
        assert differences(connection) == []
        connection.execute(
            "UPDATE nearsim.document SET body = 'aa bb cc', vector = '{1,2}' WHERE doc_id % 3 = 0"
        )
        connection.execute("DELETE FROM nearsim.document WHERE doc_id % 7 = 0")
        index.build()
        assert differences(connection) == []
    keys = {
        "signature": "doc_id",
        "band": "bucket_hash",
        "similar_pair": "left_id",
        "cluster_member": "doc_id",
    }
    for table, key in keys.items():
        with connection.transaction(force_rollback=True):
            connection.execute(
                psycopg.sql.SQL("DELETE FROM {table} WHERE {key} = (SELECT min({key}) FROM {table})").format(
                    table=psycopg.sql.Identifier("nearsim", table), key=psycopg.sql.Identifier(key)
                )
            )
            assert differences(connection)


def test_documents_are_as_their_writers_left_them(connection: Connection, database_url: str) -> None:
    rng, model = random.Random(1), Model()
    with Index.connect(database_url) as index:
        index.database.create_collection("default")
    for number in range(3):
        row = {"collection_id": 1, "external_id": f"d{number}", **draw_fields(rng)}
        ((doc_id,),) = connection.execute(_INSERT, {"name": f"d{number}", **row}).fetchall()
        model.apply(["put", doc_id, row])
    assert [*wrong_documents(model, read_documents(connection), [1], set())] == []
    connection.execute("DELETE FROM nearsim.document WHERE external_id IN ('d1', 'd2')")
    model.apply(["set", 1, {"source": "another"}])
    found = [*wrong_documents(model, read_documents(connection), [1], {"d2"})]
    assert len(found) == 2
    assert model.documents.keys() == {1, 2}
