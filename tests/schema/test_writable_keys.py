"""Tables that writers may write: each column that names a row of another table names one of the same collection."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors as pg

from nearsim_db import Index
from tests.builders.logins import login
from tests.servers.databases import Server

# Numbers that writers may write, with the foreign keys that they are in.
WRITABLE_NUMBERS = """
SELECT relname, attname, ARRAY(
    SELECT conname FROM pg_constraint WHERE conrelid = pg_class.oid AND contype = 'f' AND attnum = ANY (conkey)
    ORDER BY 1)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) AND relkind IN ('r', 'p')
    AND NOT relispartition AND atttypid IN ('bigint'::regtype, 'integer'::regtype, 'bigint[]'::regtype, 'oid'::regtype)
    AND (has_column_privilege('nearsim_writer', pg_class.oid, attnum, 'INSERT')
        OR has_column_privilege('nearsim_writer', pg_class.oid, attnum, 'UPDATE'))
"""
# Their foreign keys have the collection in them.
KEYS = {
    ("document", "collection_id"): ["document_collection_fkey"],
    ("probe", "collection_id"): ["probe_collection_fkey"],
    ("checked_insertion", "collection_id"): ["checked_insertion_collection_fkey"],
    ("verdict", "collection_id"): ["verdict_collection_fkey"],
    ("survivor_pin", "collection_id"): ["survivor_pin_collection_fkey"],
    ("review", "collection_id"): [
        *("review_collection_fkey", "review_pin_fkey", "review_replaced_fkey", "review_verdict_fkey")
    ],
    ("review", "left_id"): ["review_pin_fkey", "review_replaced_fkey", "review_verdict_fkey"],
    ("review", "right_id"): ["review_replaced_fkey", "review_verdict_fkey"],
    ("review", "verdict_id"): ["review_verdict_fkey"],
    ("review", "replaced_id"): ["review_replaced_fkey"],
    ("review", "pin_id"): ["review_pin_fkey"],
}
# Documents may be deleted before the rows about them, so a trigger checks these.
DOCUMENTS = {("verdict", "left_id"), ("verdict", "right_id"), ("survivor_pin", "doc_id")}
NO_KEYS = {
    ("document", "doc_id"): "the table's own key",
    ("document", "revision"): "set by a trigger",
    ("document", "body_length"): "a length",
    ("probe", "max_matches"): "a number of rows",
    ("checked_insertion", "generation_id"): "the trigger lock_buckets checks it",
    ("checked_insertion", "bucket_hashes"): "hashes of a text",
    ("review", "decision_id"): "groups rows of one user and name",
}
INSERTS = {
    "verdict": "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why) "
    "VALUES (%(collection)s, %(left)s, %(right)s, 'vetoed', 'me', 'me')",
    "survivor_pin": "INSERT INTO nearsim.survivor_pin (collection_id, doc_id, by, why) "
    "VALUES (%(collection)s, %(right)s, 'me', 'me')",
    "review": "INSERT INTO nearsim.review (collection_id, by, queue, left_id, right_id) "
    "VALUES (%(collection)s, 'me', 'numbers', %(left)s, %(right)s)",
}
ANSWERS = {
    "verdict_id": "UPDATE nearsim.review SET answer = 'same', decided_at = now(), verdict_id = %s WHERE by = 'me'",
    "replaced_id": "UPDATE nearsim.review SET answer = 'same', decided_at = now(), replaced_id = %s WHERE by = 'me'",
    "pin_id": "UPDATE nearsim.review SET answer = 'kept', decided_at = now(), pin_id = %s WHERE by = 'me'",
}
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def writer(server: Server) -> Iterator[Connection]:
    """A writer in a database with the collections own (documents 1 and 2) and other (3 and 4)."""
    with server.database() as url:
        for collection in ("own", "other"):
            with Index.connect(url, collection=collection) as index:
                index.add([{"id": "a", "text": "one two"}, {"id": "b", "text": "three four"}])
                index.veto("a", "b", f"a reason of {collection}")
                index.keep("a", f"a reason of {collection}")
        with login(url, "nearsim_writer") as address, psycopg.connect(address) as connection:
            yield connection


def test_each_writable_number_is_a_checked_key_or_no_key(writer: Connection) -> None:
    writable = {(str(row[0]), str(row[1])): row[2] for row in writer.execute(WRITABLE_NUMBERS)}
    checked = KEYS | {column: [] for column in DOCUMENTS} | {column: [] for column in NO_KEYS}
    assert writable == checked


@pytest.mark.parametrize("table", INSERTS)
def test_a_row_names_documents_of_its_collection_only(writer: Connection, table: str) -> None:
    messages = set()
    for right in (3, 99):
        values = {"collection": 1, "left": 1, "right": right}
        with pytest.raises(pg.ForeignKeyViolation) as refused, writer.transaction():
            writer.execute(INSERTS[table].encode(), values)
        messages.add(str(refused.value).replace(str(right), "?"))
    assert len(messages) == 1


@pytest.mark.parametrize("column", ANSWERS)
def test_a_review_names_verdicts_and_choices_about_its_documents_only(
    writer: Connection, column: str
) -> None:
    writer.execute(INSERTS["review"].encode(), {"collection": 1, "left": 1, "right": 2})
    for number in (2, 99):
        refusal = pytest.raises(pg.ForeignKeyViolation, match=f"review_{column.removesuffix('_id')}_fkey")
        with refusal, writer.transaction():
            writer.execute(ANSWERS[column].encode(), (number,))
    writer.execute(ANSWERS[column].encode(), (1,))


def test_a_writer_states_no_other_user_as_the_reviewer(writer: Connection) -> None:
    writer.execute(INSERTS["review"].encode(), {"collection": 1, "left": 1, "right": 2})
    stated = "SELECT reviewer = current_user FROM nearsim.review"
    assert writer.execute(stated).fetchall() == [(True,)]
    for forbidden in (
        "INSERT INTO nearsim.review (collection_id, reviewer, by, queue, left_id, right_id) "
        "VALUES (1, 'postgres', 'me', 'numbers', 1, 2)",
        "UPDATE nearsim.review SET reviewer = 'postgres'",
    ):
        with pytest.raises(pg.InsufficientPrivilege), writer.transaction():
            writer.execute(forbidden)
