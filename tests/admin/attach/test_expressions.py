"""Attached tables of which some rows are documents, with texts by SQL expressions and dates of any range."""

import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.errors import ConflictError, InputError, NotFoundError
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.attached.tables import Columns, join_texts
from nearsim_db.store.database import Database
from tests.builders.followed_table import RECIPE
from tests.builders.selection import some
from tests.builders.workers import Application, ask

TABLE = """
CREATE TABLE item (item_id integer PRIMARY KEY, payload jsonb NOT NULL, lead text, deleted_at timestamptz, "50%" text);
GRANT SELECT ON item TO PUBLIC;
INSERT INTO item (item_id, payload, lead)
SELECT number, jsonb_build_object('name', name, 'body', body), CASE WHEN number < 3 THEN 'lead' END
FROM (VALUES
    (1, 'One', 'The storm closed the ferry to the island for a second day, the harbour master said.'),
    (2, 'Two', 'The storm closed the ferry to the island for a second day, the harbour master said.'),
    (3, NULL, 'A court in the capital sentenced two men over the theft of paintings last winter.')
) AS written (number, name, body)
"""
COLUMNS = Columns(
    "item_id", join_texts(["lead", "payload ->> 'body'"]), "payload ->> 'name'", where="deleted_at IS NULL"
)


@pytest.fixture
def item(database: Database, app: Application) -> Index:
    app.execute(TABLE.encode())
    attach.attach_table(database, "item", COLUMNS)
    index = Index(database, "item")
    attach.ingest_table(index, "default", Recipe())
    return index


def documents(app: Application) -> list[tuple[object, ...]]:
    found = app.execute(
        "SELECT external_id, title, nearsim.body_of(doc_id) FROM nearsim.document ORDER BY external_id"
    )
    return found.fetchall()


def expected(app: Application) -> list[tuple[object, ...]]:
    """The documents that the rows of the table are."""
    found = app.execute(
        "SELECT item_id, payload ->> 'name', lead, payload ->> 'body' FROM item WHERE deleted_at IS NULL "
        "ORDER BY item_id"
    )
    return [(str(key), title, f"{lead or ''}\n{body or ''}") for key, title, lead, body in found.fetchall()]


def test_expressions_compute_texts_and_titles(item: Index, app: Application) -> None:
    assert documents(app) == expected(app)
    assert [(pair.left, pair.right) for pair in item.pairs()] == [("1", "2")]


def test_documents_follow_the_condition_and_every_column_of_an_expression(
    item: Index, app: Application
) -> None:
    for change in (
        "UPDATE item SET deleted_at = now() WHERE item_id = 2",
        'UPDATE item SET payload = payload || \'{"body": "Another text altogether"}\' WHERE item_id = 1',
        "UPDATE item SET lead = 'A new lead' WHERE item_id = 3",
        "UPDATE item SET deleted_at = NULL WHERE item_id = 2",
        'INSERT INTO item VALUES (4, \'{"body": "Never seen"}\', NULL, now())',
        "DELETE FROM item WHERE item_id = 3",
    ):
        app.execute(change.encode())
        item.build()
        assert documents(app) == expected(app), change


def test_a_sweep_finds_rows_that_no_longer_meet_the_condition(item: Index, app: Application) -> None:
    app.execute("ALTER TABLE item DISABLE TRIGGER ALL; UPDATE item SET deleted_at = now() WHERE item_id = 1")
    app.execute("ALTER TABLE item ENABLE TRIGGER ALL")
    assert item.sweep().gone == 1
    assert documents(app) == expected(app)


def test_texts_of_an_expression_are_kept_when_the_table_is_detached(
    item: Index, app: Application, database: Database
) -> None:
    before = documents(app)
    attach.detach(database, "item", keep=True)
    assert documents(app) == before


@pytest.mark.parametrize(
    ("columns", "error", "reason"),
    [
        (Columns("item_id", "bdy"), NotFoundError, "'bdy'"),
        (Columns("item_id", "payload ->> body"), InputError, "body"),
        (Columns("item_id", "lead", where="deleted_at < now()"), InputError, "immutable"),
        (Columns("item_id", "lead", where="lead"), InputError, "boolean"),
        (Columns("item_id", "lead", where="EXISTS (SELECT 1)"), InputError, "subquery"),
        (Columns("item_id", "public.own(lead)"), InputError, "public.own"),
        (
            Columns("item_id", "lead", "CASE WHEN mood = 'well' THEN lead END"),
            InputError,
            "not part of PostgreSQL",
        ),
        (Columns("item_id", "lead", "CASE WHEN mood IS NULL THEN lead END"), InputError, "not of a type of"),
        (Columns("item_id", "lead) STORED, DROP COLUMN (payload"), InputError, "neither a column nor"),
    ],
)
def test_expressions_that_cannot_be_used(
    database: Database, app: Application, columns: Columns, error: type[Exception], reason: str
) -> None:
    app.execute(TABLE.encode())
    app.execute(
        "CREATE FUNCTION own(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1';"
        "CREATE TYPE mood AS ENUM ('well'); ALTER TABLE item ADD COLUMN mood mood"
    )
    with pytest.raises(error, match=reason):
        attach.attach_table(database, "item", columns)
    assert ask(app, "SELECT count(*) FROM nearsim.collection") == 0


def test_percent_signs_in_expressions_are_no_placeholders(database: Database, app: Application) -> None:
    app.execute(TABLE.encode())
    app.execute("""UPDATE item SET "50%" = '50% of ' || lead""")
    columns = Columns("item_id", "lead || '%s'", "\"50%\" || ' %(x)s'", where="\"50%\" LIKE '50\\%%'")
    attach.attach_table(database, "item", columns)
    attach.ingest_table(Index(database, "item"), "default", Recipe())
    assert documents(app) == [(key, "50% of lead %(x)s", "lead%s") for key in ("1", "2")]


def test_a_column_of_an_expression_that_is_altered_stops_the_reading(
    item: Index, app: Application, database: Database
) -> None:
    app.execute("ALTER TABLE item RENAME COLUMN lead TO intro")
    (listed,) = attach.list_attachments(database)
    assert listed.problem is not None
    assert "'lead' does not exist" in listed.problem
    attach.attach_table(database, "item", Columns("item_id", "intro", where="deleted_at IS NULL"))
    item.build()
    assert attach.list_attachments(database)[0].problem is None


def test_a_view_is_refused_with_the_table_that_it_reads(database: Database, app: Application) -> None:
    app.execute(TABLE.encode())
    app.execute("CREATE VIEW shown AS SELECT item_id, lead FROM item WHERE deleted_at IS NULL")
    with pytest.raises(InputError, match=r"attach the table that it reads, public\.item, with --where"):
        attach.attach_table(database, "shown", Columns("item_id", "lead"))
    with pytest.raises(ConflictError):
        attach.attach_table(database, "item", COLUMNS, " ")


INFINITE = {"infinity": "infinity", "-infinity": "-infinity"}
ANCIENT = {"0044-03-15 BC": "0044-03-15 00:00:00+00 BC", "10000-01-01": "10000-01-01 00:00:00+00"}
LAST = {"294276-12-31": "294276-12-31 00:00:00+00"}
DATES: dict[str, dict[str, str | None]] = {
    "timestamptz": {**INFINITE, **ANCIENT, **LAST},
    "timestamp": {**INFINITE, **ANCIENT, **LAST},
    "date": {**INFINITE, **ANCIENT, **LAST, "294277-01-01": None, "5874897-12-31": None},
    "moment": {"infinity": "infinity", "5874897-12-31": None},
}


@pytest.mark.parametrize("kind", some(list(DATES), "every type"))
def test_every_date_is_read(app: Application, database: Database, kind: str) -> None:
    app.execute("CREATE DOMAIN moment AS date")
    app.execute(f"CREATE TABLE dated (id int PRIMARY KEY, body text, at {kind})".encode())
    app.execute("SET TimeZone = 'UTC'")
    for number, date in enumerate(DATES[kind]):
        app.execute("INSERT INTO dated VALUES (%s, 'a text', %s)", (number, date))
    attached = attach.attach_table(database, "dated", Columns("id", "body", published_at="at"))
    with Index(database, attached.collection) as index:
        assert attach.ingest_table(index, "default", RECIPE).new == len(DATES[kind])
        found = [index.get(str(number))["published_at"] for number in range(len(DATES[kind]))]
    assert found == list(DATES[kind].values())
