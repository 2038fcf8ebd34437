"""Change capture: every way to write a document adds a row to `change`, and does nothing else."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.indexing.queue.dispatch import dispatch_changes

Backend = psycopg.Connection[tuple[Any, ...]]

INSERT = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES "
EDIT = "UPDATE nearsim.document SET body = body || ' again' WHERE external_id = 'a'"


@pytest.fixture
def backend(database_url: str) -> Iterator[Backend]:
    """Another application: two collections, in the first of them the documents 1 and 2, whose changes are taken."""
    with psycopg.connect(database_url, autocommit=True) as backend:
        backend.execute("INSERT INTO nearsim.collection (name) VALUES ('one'), ('two')")
        backend.execute(INSERT + "(1, 'a', 'some words'), (1, 'b', 'other words')")
        backend.execute("DELETE FROM nearsim.change")
        yield backend


def noted(backend: Backend) -> list[tuple[int | None, int | None]]:
    """The changes since the last call: (collection_id, doc_id)."""
    return sorted(backend.execute("DELETE FROM nearsim.change RETURNING collection_id, doc_id").fetchall())


def revisions(backend: Backend) -> dict[int, int]:
    """The revision of every document."""
    return dict(backend.execute("SELECT doc_id, revision FROM nearsim.document").fetchall())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (INSERT + "(1, 'c', 'x')", [(1, 3)]),
        (INSERT + "(1, 'c', 'x'), (2, 'c', 'x'), (2, 'd', NULL)", [(1, 3), (2, 4), (2, 5)]),
        (INSERT + "(1, 'a', 'x') ON CONFLICT DO NOTHING", []),
        (
            INSERT + "(1, 'a', 'x'), (1, 'c', 'x') ON CONFLICT (collection_id, external_id)"
            " DO UPDATE SET body = excluded.body",
            [(1, 1), (1, 4)],
        ),
        (
            INSERT
            + "(1, 'a', 'x') ON CONFLICT (collection_id, external_id) DO UPDATE SET body = 'y' WHERE false",
            [],
        ),
        ("UPDATE nearsim.document SET body = 'x'", [(1, 1), (1, 2)]),
        ("UPDATE nearsim.document SET title = 'x' WHERE external_id = 'b'", [(1, 2)]),
        ("UPDATE nearsim.document SET external_id = 'z' WHERE external_id = 'b'", [(1, 2)]),
        ("UPDATE nearsim.document SET body = 'x' WHERE false", []),
        ("UPDATE nearsim.document SET collection_id = 2 WHERE external_id = 'b'", [(1, 2), (2, 2)]),
        ("DELETE FROM nearsim.document WHERE external_id = 'b'", [(1, 2)]),
        ("DELETE FROM nearsim.document", [(1, 1), (1, 2)]),
        ("DELETE FROM nearsim.collection WHERE name = 'one'", []),  # no index is left to update
        ("TRUNCATE nearsim.document", [(None, None)]),
        ("TRUNCATE nearsim.document RESTART IDENTITY CASCADE", [(None, None)]),
        ("DO $$ BEGIN UPDATE nearsim.document SET source = 's'; DELETE FROM nearsim.document; END $$", None),
        (
            "WITH gone AS (DELETE FROM nearsim.document WHERE doc_id = 1 RETURNING *)"
            " INSERT INTO nearsim.document (collection_id, external_id) SELECT 2, external_id FROM gone",
            [(1, 1), (2, 3)],
        ),
        (
            "MERGE INTO nearsim.document USING (VALUES ('a', 'x'), ('b', NULL), ('c', 'x')) AS given (name, body)"
            " ON document.external_id = given.name"
            " WHEN MATCHED AND given.body IS NULL THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET body = given.body"
            " WHEN NOT MATCHED THEN INSERT (collection_id, external_id, body) VALUES (1, name, given.body)",
            [(1, 1), (1, 2), (1, 3)],
        ),
    ],
)
def test_each_written_document_is_captured(
    backend: Backend, command: str, expected: list[tuple[int, int]] | None
) -> None:
    backend.execute(command)
    assert noted(backend) == (expected if expected is not None else [(1, 1), (1, 1), (1, 2), (1, 2)])


def test_copy_captures_every_row(backend: Backend) -> None:
    with backend.cursor().copy("COPY nearsim.document (collection_id, external_id, body) FROM STDIN") as copy:
        for number in range(100):
            copy.write_row((1, f"n{number}", "copied words"))
    assert noted(backend) == [(1, doc_id) for doc_id in range(3, 103)]


def test_revision_increases_with_every_effective_update(backend: Backend) -> None:
    before = revisions(backend)
    backend.execute("UPDATE nearsim.document SET body = body, revision = 0 WHERE external_id = 'a'")
    backend.execute("UPDATE nearsim.document SET body = body WHERE external_id = 'b'")
    after = revisions(backend)
    assert after[1] > before[1] and after[2] == before[2]
    backend.execute("UPDATE nearsim.document SET body = 'x'")
    backend.execute("UPDATE nearsim.document SET body = 'y'")
    assert min(revisions(backend).values()) > max(after.values())


@pytest.mark.parametrize("revision", [-5, 1_000_000])
def test_updates_replace_a_revision_set_by_an_insert(backend: Backend, revision: int) -> None:
    backend.execute(
        "INSERT INTO nearsim.document (collection_id, external_id, revision) VALUES (1, 'c', %s)", (revision,)
    )
    backend.execute("UPDATE nearsim.document SET body = 'x' WHERE external_id = 'c'")
    assert revisions(backend)[3] > max(revisions(backend)[2], revision)


def test_rolled_back_changes_are_not_captured(backend: Backend) -> None:
    with backend.transaction():
        backend.execute(INSERT + "(1, 'c', 'kept')")
        with backend.transaction(force_rollback=True):
            backend.execute(INSERT + "(1, 'd', 'not kept')")
            backend.execute(EDIT)
    with backend.transaction(force_rollback=True):
        backend.execute(EDIT)
    assert noted(backend) == [(1, 3)]


@pytest.fixture
def writer(backend: Backend, database_url: str) -> Iterator[Backend]:
    """A session of a role that may write documents and see nothing else."""
    backend.execute("CREATE ROLE document_writer")
    backend.execute("GRANT USAGE ON SCHEMA nearsim TO document_writer")
    backend.execute("GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON nearsim.document TO document_writer")
    # set_revision draws from it in the name of the writer.
    backend.execute("GRANT USAGE ON SEQUENCE nearsim.document_revision TO document_writer")
    with psycopg.connect(database_url, autocommit=True) as session:
        session.execute("SET ROLE document_writer")
        yield session
    backend.execute("DROP OWNED BY document_writer")
    backend.execute("DROP ROLE document_writer")


def test_writes_of_a_role_with_rights_on_documents_only_are_captured(
    backend: Backend, writer: Backend
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        writer.execute("SELECT FROM nearsim.change")
    for command in (INSERT + "(1, 'c', 'x')", EDIT, "DELETE FROM nearsim.document WHERE external_id = 'b'"):
        writer.execute(command)
    assert noted(backend) == [(1, 1), (1, 2), (1, 3)]
    writer.execute("TRUNCATE nearsim.document")
    assert noted(backend) == [(None, None)]


def test_temporary_tables_do_not_shadow_the_change_table(backend: Backend, writer: Backend) -> None:
    writer.execute("CREATE TEMP TABLE change (collection_id integer, doc_id bigint)")
    writer.execute("SET search_path = pg_temp, public")
    writer.execute(EDIT)
    assert writer.execute("SELECT count(*) FROM change").fetchone() == (0,)
    assert noted(backend) == [(1, 1)]


def locked(backend: Backend, pid: int) -> set[tuple[str, str]]:
    """The tables of nearsim that a session has locked, with the lock modes."""
    rows = backend.execute(
        "SELECT relname, mode FROM pg_locks JOIN pg_class ON pg_class.oid = relation"
        " WHERE pid = %s AND relkind = 'r' "
        "AND relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))",
        [pid],
    )
    return set(rows.fetchall())


@pytest.mark.parametrize("command", [EDIT, "DELETE FROM nearsim.document", INSERT + "(1, 'c', 'x')"])
def test_writers_lock_only_document_and_change_and_do_not_wait(
    backend: Backend, database_url: str, command: str
) -> None:
    with psycopg.connect(database_url) as session:
        session.execute(command)
        tables = {name for name, _ in locked(backend, session.info.backend_pid)}
        # An insert looks its collection up, with or without our triggers.
        assert {"document", "change"} <= tables <= {"document", "change", "collection"}
        modes = {mode for _, mode in locked(backend, session.info.backend_pid)}
        assert modes <= {"AccessShareLock", "RowShareLock", "RowExclusiveLock"}
        backend.execute("SET statement_timeout = '20s'")
        backend.execute(INSERT + "(1, 'other', 'from another session')")
        assert noted(backend)[0][0] == 1


def test_writers_wait_for_neither_dispatchers_nor_builds(backend: Backend, database_url: str) -> None:
    """Documents can be written while every other table is locked."""
    backend.execute("SET statement_timeout = '20s'")
    with psycopg.connect(database_url) as session:
        session.execute("LOCK TABLE nearsim.profile, nearsim.generation, nearsim.work, nearsim_index.lease")
        session.execute("LOCK TABLE nearsim.signature, nearsim.band, nearsim.similar_pair")
        session.execute("SELECT FROM nearsim.change FOR UPDATE")
        backend.execute(EDIT)
        backend.execute(INSERT + "(1, 'c', 'x')")
    assert noted(backend) == [(1, 1), (1, 3)]


def test_replicated_changes_are_found_by_a_full_comparison(database_url: str, backend: Backend) -> None:
    """A change row for everything finds inserted and deleted rows. Edits are not found: replication keeps the
    revision."""
    with Index.connect(database_url) as index:
        index.add(Document(name, body="the very same words in each of these texts") for name in "uvw")
        collection_id = index.serving().context.generation.collection_id
        with backend.transaction():
            backend.execute("SET LOCAL session_replication_role = replica")
            backend.execute("DELETE FROM nearsim.document WHERE external_id = 'u'")
            backend.execute(
                "INSERT INTO nearsim.document (collection_id, external_id, body)"
                " SELECT %s, 'x', body FROM nearsim.document WHERE external_id = 'v'",
                [collection_id],
            )
            backend.execute("UPDATE nearsim.document SET body = 'edited' WHERE external_id = 'w'")
        assert backend.execute("SELECT count(*) FROM nearsim.change").fetchone() == (0,)
        index.build()
        assert index.stats()["indexed"] == 3 and {pair.left for pair in index.pairs()} == {"v"}
        backend.execute("INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL)")
        dispatch_changes(index.database.engine)
        index.build()
        assert {(pair.left, pair.right) for pair in index.pairs()} == {("v", "w"), ("v", "x"), ("w", "x")}


def test_change_rows_name_a_document_a_source_row_a_table_or_everything(backend: Backend) -> None:
    command = "INSERT INTO nearsim.change (collection_id, doc_id, external_id) VALUES (%s, %s, %s)"
    for values in ((None, 1, None), (None, None, "x"), (1, 1, "x")):
        with pytest.raises(psycopg.errors.CheckViolation):
            backend.execute(command, values)
