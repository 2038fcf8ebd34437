"""Isolation: what a writer of one tenant can do to another, and which users see everything."""

import json
import re
from itertools import product
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from nearsim_db import Index
from nearsim_db.admin import access
from nearsim_db.store.database import Database
from nearsim_db.store.driver.statements import PARENTS
from tests.builders.isolation_world import (
    NOWHERE,
    Connection,
    World,
    leaves_of_tenant,
    outcome,
    relations,
    told_apart,
)
from tests.builders.logins import login, user_of
from tests.builders.plan_log import explained, rows_read
from tests.builders.relations import identifier

REFUSED: list[LiteralString] = [
    "INSERT INTO nearsim.document (collection_id, external_id) VALUES ({collection_id}, 'mine')",
    "INSERT INTO nearsim.document (collection_id, external_id) VALUES ({collection_id}, {id}) "
    "ON CONFLICT (collection_id, external_id) DO UPDATE SET body = 'overwritten'",
    "INSERT INTO nearsim.document (collection_id, external_id) VALUES ({collection_id}, {id}) ON CONFLICT DO NOTHING",
    "UPDATE nearsim.document SET collection_id = {collection_id}",
    "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why) "
    "VALUES ({collection_id}, {doc}, {like}, 'pinned', 'me', 'me')",
    "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why) "
    "SELECT collection_id, {doc}, {like}, 'pinned', 'me', 'me' FROM nearsim.collection",
    "INSERT INTO nearsim.probe (collection_id, body) VALUES ({collection_id}, 'what')",
    "INSERT INTO nearsim.survivor_pin (collection_id, doc_id, by, why) VALUES ({collection_id}, {doc}, 'me', 'me')",
    "INSERT INTO nearsim.review (collection_id, by, queue, left_id, right_id) "
    "VALUES ({collection_id}, 'me', 'numbers', {doc}, {like})",
    "INSERT INTO nearsim.review (collection_id, by, queue, left_id, right_id) "
    "SELECT collection_id, 'me', 'numbers', {doc}, {like} FROM nearsim.collection",
]


def test_a_writer_cannot_change_another_tenant(world: World) -> None:
    with psycopg.connect(world.url) as connection:
        tables = ("document", "verdict", "probe", "collection", "change")
        before = {table: everything(connection, table) for table in tables}
    with psycopg.connect(world.writer) as connection:
        for command in REFUSED:
            hidden = told_apart(outcome(connection, command, world.foreign), world.foreign)
            assert hidden == told_apart(outcome(connection, command, NOWHERE), NOWHERE), command
            assert hidden[0].startswith("42501 new row violates row-level security policy"), hidden
        parts = {name: sql.Literal(value) for name, value in world.foreign.items()}
        for silent in (
            "UPDATE nearsim.document SET body = 'overwritten' WHERE doc_id = {doc}",
            "UPDATE nearsim.document SET body = 'overwritten' WHERE external_id = {id}",
            "DELETE FROM nearsim.document WHERE collection_id = {collection_id}",
            "UPDATE nearsim.verdict SET undone_at = now(), undone_by = 'me', undone_why = 'me' "
            "WHERE collection_id = {collection_id}",
        ):
            assert connection.execute(sql.SQL(silent).format(**parts)).rowcount == 0, silent
        for forbidden in (
            "INSERT INTO nearsim.document (doc_id, collection_id, external_id) OVERRIDING SYSTEM VALUE "
            "VALUES ({doc}, 1, 'mine')",
            "UPDATE nearsim.document SET revision = 1",
            "INSERT INTO nearsim.collection (name) VALUES ('secret')",
            "INSERT INTO nearsim_index.collection_access (collection_id, role_name) "
            "VALUES ({collection_id}, current_user)",
            "SELECT nextval('nearsim.document_doc_id_seq')",
            "TRUNCATE nearsim.document",
            "SELECT nearsim.set_isolation(false)",
            "ALTER TABLE nearsim.document DISABLE ROW LEVEL SECURITY",
        ):
            with pytest.raises(pg.InsufficientPrivilege), connection.transaction():
                connection.execute(sql.SQL(forbidden).format(**parts))
        with pytest.raises(psycopg.Error), connection.transaction():
            connection.execute("SET LOCAL row_security = off")
            connection.execute("SELECT * FROM nearsim.document")
        connection.commit()
    with psycopg.connect(world.url) as connection:
        assert {table: everything(connection, table) for table in tables} == before


@pytest.mark.parametrize("parent", PARENTS)
def test_rows_of_an_index_are_not_written_nor_probed(world: World, parent: str) -> None:
    """A conflict of keys, a foreign key or a lock would reveal which rows of another tenant exist."""
    with psycopg.connect(world.writer) as connection:
        for given, table in product(
            (world.own, world.foreign), (leaves_of_tenant(world.foreign).table(parent), identifier(parent))
        ):
            parts = {name: sql.Literal(value) for name, value in given.items()}
            for forbidden in INDEX_WRITES:
                with pytest.raises(pg.InsufficientPrivilege), connection.transaction():
                    connection.execute(sql.SQL(forbidden).format(table=table, **parts))
            refers = "SELECT has_table_privilege(%s, 'REFERENCES')"
            assert connection.execute(refers, (table.as_string(connection),)).fetchone() == (False,)


INDEX_WRITES: list[LiteralString] = [
    "INSERT INTO {table} (generation_id) VALUES ({generation})",
    "INSERT INTO {table} (generation_id) SELECT generation_id FROM {table} ON CONFLICT DO NOTHING",
    "COPY {table} (generation_id) FROM STDIN",
    "UPDATE {table} SET generation_id = {generation}",
    "UPDATE {table} SET generation_id = generation_id WHERE generation_id = {generation}",
    "DELETE FROM {table} WHERE generation_id = {generation}",
    "SELECT FROM {table} WHERE generation_id = {generation} FOR KEY SHARE",
    "TRUNCATE {table}",
    "LOCK TABLE {table} IN ROW SHARE MODE",
    "CREATE INDEX ON {table} (generation_id)",
    "CREATE POLICY everything ON {table} USING (true)",
    "ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE {table} ALTER generation_id SET STATISTICS 1000",
    "CREATE TRIGGER spy BEFORE INSERT ON {table} EXECUTE FUNCTION suppress_redundant_updates_trigger()",
]


@pytest.mark.parametrize("parent", PARENTS)
def test_rows_are_read_under_the_policy_in_any_way(world: World, parent: str) -> None:
    leaf = leaves_of_tenant(world.foreign).table(parent)
    parts = {"leaf": leaf, "parent": identifier(parent), "foreign": sql.Literal(world.foreign["generation"])}
    with psycopg.connect(world.reader) as reading, psycopg.connect(world.url) as everything:
        for command in READS:
            look = sql.SQL(command).format(**parts)
            with reading.cursor() as cursor, cursor.copy(look) as copied:
                assert not [row for row in copied.rows() if row[0] == str(world.foreign["generation"])], (
                    command
                )
            with everything.cursor() as cursor, cursor.copy(look) as copied:
                assert [row for row in copied.rows() if row[0] == str(world.foreign["generation"])], command


READS: list[LiteralString] = [
    "COPY {leaf} (generation_id) TO STDOUT",
    "COPY (SELECT generation_id FROM ONLY {leaf}) TO STDOUT",
    "COPY (SELECT generation_id FROM {parent} TABLESAMPLE SYSTEM (100)) TO STDOUT",
    "COPY (SELECT generation_id FROM {leaf} TABLESAMPLE BERNOULLI (100)) TO STDOUT",
    "COPY (SELECT generation_id FROM {leaf} WHERE ctid < '(9,9)') TO STDOUT",
    "COPY (SELECT max(generation_id), count(*) FROM {leaf} GROUP BY generation_id) TO STDOUT",
    "COPY (SELECT max(generation_id) FROM {leaf} HAVING max(generation_id) = {foreign}) TO STDOUT",
    "COPY (SELECT {foreign} WHERE EXISTS (SELECT FROM {leaf} WHERE generation_id = {foreign})) TO STDOUT",
    "COPY (SELECT (met).generation_id FROM (SELECT met FROM {leaf} AS met OFFSET 0) AS inner_rows) TO STDOUT",
]


def everything(connection: Connection, table: str) -> list[tuple[Any, ...]]:
    """All rows of a table."""
    return connection.execute(
        sql.SQL("SELECT * FROM {} AS found ORDER BY found::text").format(identifier(table))
    ).fetchall()


def test_a_writer_writes_its_own_tenant(world: World) -> None:
    with psycopg.connect(world.writer) as connection, connection.transaction(force_rollback=True):
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, 'new', 'x')",
            (world.own["collection_id"],),
        )
        upsert = (
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, 'plain-0', 'y') "
            "ON CONFLICT (collection_id, external_id) DO UPDATE SET body = excluded.body RETURNING doc_id"
        )
        assert connection.execute(upsert, (world.own["collection_id"],)).fetchone() == (world.own["doc"],)
        connection.execute("SELECT nearsim.pin_pair('plain-0', 'plain-3', 'they belong together')")
        connection.execute("SELECT nearsim.undo_verdict('plain-0', 'plain-3', 'they do not')")
        assert connection.execute("DELETE FROM nearsim.document").rowcount == 5


def test_a_reader_of_a_collection_cannot_write_it(world: World) -> None:
    with login(world.url, "nearsim_writer") as user:
        with Database.connect(world.url) as database:
            access.grant(database, user_of(user), "reader", ["north"])
        with psycopg.connect(user) as connection:
            assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (4,)
            assert connection.execute("UPDATE nearsim.document SET title = 'x'").rowcount == 0
            assert connection.execute("DELETE FROM nearsim.document").rowcount == 0
            for command in ("SELECT nearsim.pin_pair('plain-0', 'plain-3', 'why')", *REFUSED[:1]):
                (error,) = outcome(connection, command, world.own)
                assert "row-level security" in error
        with Database.connect(world.url) as database:
            assert access.revoke(database, user_of(user), "reader", ["north"])
        with psycopg.connect(user) as connection:
            assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (0,)


def test_the_role_cannot_be_forged(world: World) -> None:
    foreign = world.foreign["generation"]
    sees = sql.SQL("SELECT nearsim.may_see_generation({}), current_user::text").format(sql.Literal(foreign))
    with login(world.url, "nearsim_reader") as other, login(world.url, attributes="NOINHERIT") as pooled:
        with Database.connect(world.url) as database:
            access.grant(database, user_of(other), "reader", ["secret"])
        with psycopg.connect(world.url, autocommit=True) as admin:
            for member in (world.reader, other):
                admin.execute(
                    sql.SQL("GRANT {} TO {}").format(
                        sql.Identifier(user_of(member)), sql.Identifier(user_of(pooled))
                    )
                )
        with psycopg.connect(pooled) as connection:
            with pytest.raises(pg.InsufficientPrivilege), connection.transaction():
                connection.execute("SELECT FROM nearsim.document")
            for member, expected in ((world.reader, False), (other, True), (world.reader, False)):
                connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(user_of(member))))
                assert connection.execute(sees).fetchone() == (expected, user_of(member))
                rows = connection.execute("SELECT DISTINCT name FROM nearsim.collection").fetchall()
                assert rows == [("secret" if expected else "north",)]
        with psycopg.connect(world.reader) as connection:
            for forged in (
                sql.SQL("SET ROLE {}").format(sql.Identifier(user_of(other))),
                sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(user_of(other))),
                sql.SQL("SELECT set_config('role', {}, true)").format(sql.Literal(user_of(other))),
                sql.SQL("SELECT set_config('session_authorization', {}, true)").format(
                    sql.Literal(user_of(other))
                ),
            ):
                with pytest.raises(psycopg.Error), connection.transaction():
                    connection.execute(forged)
            connection.execute("SET ROLE none")
            assert connection.execute(sees).fetchone() == (False, user_of(world.reader))
        with psycopg.connect(world.url, autocommit=True) as admin:
            # Who becomes somebody else for good is that one, also after having been a third; a function that runs with
            # the rights of another sees what that one may see.
            admin.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(user_of(other))))
            admin.execute(
                sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(user_of(world.reader)))
            )
            assert admin.execute(sees).fetchone() == (False, user_of(world.reader))
            admin.execute("RESET SESSION AUTHORIZATION")
            admin.execute(
                sql.SQL(
                    "CREATE FUNCTION public.lent(integer) RETURNS boolean SECURITY DEFINER LANGUAGE sql "
                    "AS 'SELECT nearsim.may_see_generation($1)'; ALTER FUNCTION public.lent OWNER TO {}"
                ).format(sql.Identifier(user_of(other)))
            )
        for caller, given in (
            (world.url, world.own),
            (world.reader, world.foreign),
            (world.reader, world.own),
        ):
            with psycopg.connect(caller) as connection:
                lent = connection.execute("SELECT public.lent(%s)", (given["generation"],)).fetchone()
                assert lent == (given is world.foreign,)


def test_administrators_and_owners_see_everything(world: World) -> None:
    with login(world.url, "nearsim_admin") as user, psycopg.connect(user) as connection:
        assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (8,)
        row = connection.execute(
            "SELECT nearsim.may_see_generation(%s)", (world.foreign["generation"],)
        ).fetchone()
        assert row == (True,)
        assert connection.execute("SELECT count(*) FROM nearsim.band").fetchone() != (0,)
    with (
        login(world.url, "nearsim_reader", attributes="BYPASSRLS") as user,
        psycopg.connect(user) as connection,
    ):
        row = connection.execute(
            "SELECT nearsim.may_see_generation(%s)", (world.foreign["generation"],)
        ).fetchone()
        assert row == (True,)


def test_without_isolation_all_users_see_all_collections(world: World) -> None:
    with Database.connect(world.url) as database:
        access.set_isolation(database, wanted=False)
    try:
        with psycopg.connect(world.reader) as connection:
            assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (8,)
            for name in relations(world.url).keys() - {"lock_secret"}:
                connection.execute(sql.SQL("SELECT * FROM {}").format(identifier(name)))
        with Index.connect(world.reader, collection="secret") as index:
            assert len(list(index.pairs())) == 3
    finally:
        with Database.connect(world.url) as database:
            access.set_isolation(database, wanted=True)
    with psycopg.connect(world.reader) as connection:
        assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (4,)


BULK: list[LiteralString] = [
    # Neither changes nor events of these: the foreign keys are not checked either.
    "SET session_replication_role = replica",
    "INSERT INTO nearsim.document (collection_id, external_id, body) "
    "SELECT {collection_id}, 'bulk-' || n, 'x' FROM generate_series(1, 10000) AS n",
    "INSERT INTO nearsim.signature "
    "(generation_id, doc_id, revision, feature_count, feature_digest, sketch, numbers_digest, head_id) "
    "SELECT {generation}, doc_id, revision, 1, gen_random_uuid(), '', 0, doc_id FROM nearsim.document "
    "WHERE collection_id = {collection_id} AND external_id LIKE 'bulk-%'",
    "INSERT INTO nearsim.similar_pair "
    "(generation_id, left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size) "
    "SELECT {generation}, doc_id, doc_id + 1, 1, 0.9, 0.9, 9, 10 FROM {rows} AS own "
    "WHERE sketch = '' AND doc_id % 4 < 3",
    "INSERT INTO nearsim.cluster_member (generation_id, doc_id, cluster_id, is_survivor) "
    "SELECT {generation}, doc_id, doc_id - doc_id % 4, doc_id % 4 = 0 FROM {rows} AS own WHERE sketch = ''",
    "INSERT INTO nearsim.band (generation_id, bucket_hash, doc_id) "
    "SELECT {generation}, doc_id / 2, doc_id FROM {rows} AS own WHERE sketch = ''",
]


@pytest.fixture(scope="module")
def large(world: World) -> World:
    """The tenants with ten thousand documents more for each."""
    with psycopg.connect(world.url, autocommit=True) as admin:
        for given in (world.own, world.foreign):
            rows = leaves_of_tenant(given).rows("signature")
            parts = {name: sql.Literal(given[name]) for name in ("collection_id", "generation")}
            for command in BULK:
                admin.execute(sql.SQL(command).format(rows=rows, **parts))
        admin.execute("VACUUM (ANALYZE)")
    return world


def nodes_of(connection: Connection, query: sql.Composed) -> list[dict[str, Any]]:
    """The nodes of a plan that ran; what the policies ask was asked once for each table, not for each row."""
    found = explained(connection, query)
    for node in found:
        if node.get("Relation Name") == "collection_access" or "granted_generation" in str(
            node.get("Output")
        ):
            assert node["Actual Loops"] <= 1, json.dumps(node)
        assert "Relation Name" not in node or "nearsim." not in str(node.get("Filter")), json.dumps(node)
    return found


def test_lookups_under_isolation_use_indexes(large: World) -> None:
    with psycopg.connect(large.reader) as connection:
        row = connection.execute(
            "SELECT doc_id FROM nearsim.document WHERE external_id = 'bulk-17'"
        ).fetchone()
        assert row
        lookups: list[LiteralString] = [
            "SELECT title FROM nearsim.document WHERE doc_id = {doc}",
            "SELECT title FROM nearsim.document WHERE external_id = 'bulk-17'",
            "SELECT title FROM nearsim.document JOIN nearsim.collection USING (collection_id) "
            "WHERE name = 'north' AND external_id = 'bulk-17'",
            "SELECT * FROM nearsim.documents WHERE doc_id = {doc}",
            "SELECT * FROM nearsim.pairs WHERE left_id = {doc}",
            "SELECT * FROM nearsim.pairs WHERE right_id = {doc}",
            "SELECT * FROM nearsim.duplicates WHERE doc_id = {doc}",
            "SELECT * FROM nearsim.clusters WHERE cluster_id = {doc}",
        ]
        for lookup in lookups:
            query = sql.SQL(lookup).format(doc=sql.Literal(row[0]))
            for node in nodes_of(connection, query):
                if re.match("document|signature|similar|cluster", node.get("Relation Name", "")):
                    assert rows_read(node) <= 20, (lookup, json.dumps(node))


LEAF_LOOKUPS: list[LiteralString] = [
    "SELECT * FROM {signature} AS own WHERE doc_id = {doc}",
    "SELECT * FROM {signature} AS own WHERE head_id = {doc} AND head_id <> doc_id",
    "SELECT * FROM {similar_pair} AS own WHERE left_id = {doc}",
    "SELECT * FROM {similar_pair} AS own WHERE right_id = {doc}",
    "SELECT * FROM {cluster_member} AS own WHERE doc_id = {doc}",
    "SELECT * FROM {band} AS own WHERE bucket_hash = {doc} / 2",
    "SELECT doc_id FROM nearsim.band WHERE generation_id = {own} AND bucket_hash = {doc} / 2",
    "SELECT b.doc_id FROM nearsim.band AS a JOIN nearsim.band AS b USING (generation_id, band_no, bucket_hash) "
    "WHERE a.generation_id = {own} AND a.bucket_hash = {doc} / 2 AND a.doc_id < b.doc_id",
]


@pytest.mark.each_major
def test_generations_are_read_by_the_same_rows_of_the_same_indexes(large: World) -> None:
    leaves = leaves_of_tenant(large.own)
    with (
        login(large.url, "nearsim_reader", attributes="BYPASSRLS") as free,
        psycopg.connect(free) as unbound,
        psycopg.connect(large.reader) as bound,
    ):
        (doc,) = bound.execute(
            "SELECT doc_id FROM nearsim.document WHERE external_id = 'bulk-17'"
        ).fetchone() or (0,)
        for lookup in LEAF_LOOKUPS:
            command = sql.SQL(lookup).format(
                own=sql.Literal(leaves.generation_id),
                doc=sql.Literal(doc),
                **{parent: leaves.rows(parent) for parent in PARENTS},
            )
            assert bound.execute(command).fetchall() == unbound.execute(command).fetchall()
            read, expected = (
                sorted(
                    (node["Index Name"], rows_read(node))
                    for node in nodes_of(connection, command)
                    if re.match("signature|band|similar|cluster", node.get("Relation Name", ""))
                )
                for connection in (bound, unbound)
            )
            assert read == expected and read, lookup
