"""Code that PostgreSQL runs for somebody else, and roles that isolation does not bind."""

from typing import Any

import psycopg
import pytest
from psycopg import sql

from nearsim_db.admin import access
from nearsim_db.admin.doctor.server import check_roles
from nearsim_db.store.database import Database
from tests.builders.isolation_world import FOREIGN, World
from tests.builders.logins import fill, login, user_of
from tests.builders.relations import identifier
from tests.builders.selection import some
from tests.builders.trapped_tables import Trap, seen_by

pytestmark = pytest.mark.each_major


def run_as_tenant(trap: Trap, *commands: str) -> None:
    with psycopg.connect(trap.owner, autocommit=True) as tenant:
        for command in commands:
            tenant.execute(command.encode())


def run_as_superuser(trap: Trap, *commands: str) -> None:
    with psycopg.connect(trap.url, autocommit=True) as admin:
        for command in commands:
            admin.execute(command.encode())


def test_queries_show_the_other_tenant_to_authorized_users(world: World, trap: Trap) -> None:
    assert sum(bool(answer and FOREIGN.search(answer)) for answer in seen_by(trap, trap.url).values()) > 40
    own = {question: answer for question, answer in trap.own_answers.items() if "1770000" not in question}
    assert not [one for one in own.items() if one[1] and FOREIGN.search(one[1])]
    assert any(answer and "pears are plain" in answer for answer in own.values())


@pytest.mark.parametrize(
    "command",
    some(
        [
            "ANALYZE {table}",
            "VACUUM ANALYZE {table}",
            "VACUUM FULL {table}",
            "CLUSTER {table} USING {table}_key",
            "REINDEX TABLE {table}",
            "REINDEX TABLE CONCURRENTLY {table}",
            "CREATE INDEX ON {table} ((trap.key(word)))",
            "CREATE INDEX CONCURRENTLY ON {table} ((trap.key(word)))",
        ],
        "every command",
        kept=2,
    ),
)
def test_functions_of_expression_indexes(trap: Trap, command: str) -> None:
    name = "".join(letter for letter in command.partition("{")[0].lower() if letter.isalpha())
    if "key(word)" in command:
        name += "expression"
    table = f"trap.bait_{name}"
    run_as_tenant(
        trap,
        f"CREATE TABLE {table} AS VALUES ('{name}')",
        f"ALTER TABLE {table} RENAME column1 TO word",
        f"CREATE INDEX bait_{name}_key ON {table} (trap.key(word))",
        "DELETE FROM trap.answer",
    )
    run_as_superuser(trap, command.format(table=table).replace("USING trap.", "USING "))
    assert trap.answers(name) == trap.own_answers


def test_refreshing_a_materialized_view(trap: Trap) -> None:
    run_as_tenant(trap, "CREATE MATERIALIZED VIEW trap.shown AS SELECT trap.look('refresh') WITH NO DATA")
    run_as_superuser(trap, "REFRESH MATERIALIZED VIEW trap.shown")
    assert trap.answers("refresh") == trap.own_answers


def test_triggers_that_foreign_keys_fire(trap: Trap) -> None:
    run_as_tenant(
        trap,
        "CREATE TABLE trap.parent (word text PRIMARY KEY)",
        "CREATE TABLE trap.child (word text REFERENCES trap.parent ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TRIGGER falls BEFORE DELETE ON trap.child FOR EACH ROW EXECUTE FUNCTION trap.fire('deleted')",
        "CREATE TRIGGER moves BEFORE UPDATE ON trap.child FOR EACH ROW EXECUTE FUNCTION trap.fire('updated')",
        "INSERT INTO trap.parent VALUES ('a')",
        "INSERT INTO trap.child VALUES ('a')",
    )
    run_as_superuser(trap, "UPDATE trap.parent SET word = 'b'", "DELETE FROM trap.parent")
    for context in ("updated", "deleted"):
        assert trap.answers(context) == trap.own_answers


def test_security_definer_functions_of_any_caller(world: World, trap: Trap) -> None:
    run_as_superuser(trap, "SELECT trap.lent('superuser')")
    assert trap.answers("superuser") == trap.own_answers
    with login(world.url, "nearsim_reader") as other, login(world.url, "nearsim_admin") as keeper:
        with Database.connect(world.url) as database:
            access.grant(database, user_of(other), "reader", ["secret"])
        assert seen_by(trap, other) != trap.own_answers
        for caller, context in ((other, "tenant"), (keeper, "administrator")):
            with psycopg.connect(caller, autocommit=True) as connection:
                connection.execute("SELECT trap.lent(%s)", (context,))
            assert trap.answers(context) == trap.own_answers


def test_sessions_that_took_the_role(trap: Trap) -> None:
    role = sql.Identifier(user_of(trap.owner))
    with psycopg.connect(trap.url, autocommit=True) as admin:
        for command in ("SET ROLE {}", "SET SESSION AUTHORIZATION {}"):
            # Plans are cached for one who sees everything first.
            admin.execute("SELECT trap.ask(question) FROM trap.question")
            admin.execute(sql.SQL(command).format(role))
            admin.execute("SELECT trap.look(%s)", (command,))
            admin.execute("RESET ROLE; RESET SESSION AUTHORIZATION")
            assert trap.answers(command) == trap.own_answers


LONG = "a text so long that it is stored apart " + " ".join(f"word{number:04}" for number in range(2_000))


def gaps(url: str) -> list[str]:
    with Database.connect(url) as database, database.engine.connect() as connection:
        return [one.finding for one in check_roles(connection) if one.check == "isolation"]


def test_a_member_of_pg_read_all_data_reads_texts_and_is_warned_of(database_url: str) -> None:
    fill(database_url)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("UPDATE nearsim.document SET body = %s WHERE external_id = 'd0'", (LONG,))
        row: Any = admin.execute(
            "SELECT CAST(reltoastrelid AS regclass) FROM pg_class WHERE oid = 'nearsim.document'::regclass"
        ).fetchone()
    stored = sql.SQL("SELECT count(*) FROM {}").format(sql.SQL(row[0]))
    with (
        login(database_url, "nearsim_reader") as plain,
        login(database_url, "nearsim_reader", "pg_read_all_data", "pg_monitor") as reader,
        Database.connect(database_url) as database,
    ):
        access.set_isolation(database, wanted=True)
        with psycopg.connect(reader) as connection:
            assert connection.execute("SELECT FROM nearsim.document").fetchall() == []
            assert connection.execute(stored).fetchone() != (0,)
        with psycopg.connect(plain) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(stored)
        more = access.rights_beyond(database, user_of(reader), "reader")
        assert [one.split(":")[0].rpartition(" ")[2] for one in more] == [
            "pg_read_all_data",
            "pg_read_all_stats",
        ]
        assert access.rights_beyond(database, user_of(plain), "reader") == []
        assert [one.split()[0] for one in gaps(database_url)] == [user_of(reader)] * 2
        access.set_isolation(database, wanted=False)
        assert gaps(database_url) == []


def test_members_who_may_change_what_others_see_are_warned_of(database_url: str) -> None:
    fill(database_url)
    roles = ["pg_write_all_data", "pg_maintain", "pg_signal_backend"]
    with psycopg.connect(database_url) as admin:
        known = {str(name) for (name,) in admin.execute("SELECT rolname FROM pg_roles").fetchall()}
        is_old = admin.info.server_version < 160000
    existing = [role for role in roles if role in known]
    with (
        login(database_url, "nearsim_reader", *existing, attributes="CREATEROLE") as reader,
        Database.connect(database_url) as database,
    ):
        access.set_isolation(database, wanted=True)
        with psycopg.connect(reader, autocommit=True) as connection:
            for command in (
                "INSERT INTO nearsim.collection (name) VALUES ('new')",
                "INSERT INTO nearsim.document (collection_id, external_id) VALUES (1, 'new')",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(command)
            for table in ("document", "verdict", "work", "collection_access"):
                deletion = sql.SQL("DELETE FROM {}").format(identifier(table))
                assert connection.execute(deletion).rowcount == 0
            connection.execute("SELECT setval('nearsim.document_doc_id_seq', 1)")
            if "pg_maintain" in existing:
                with connection.transaction():
                    connection.execute("LOCK nearsim.document")
            joined = sql.SQL("GRANT nearsim_admin TO {}").format(sql.Identifier(user_of(reader)))
            if is_old:
                connection.execute(joined)
                connection.execute("REVOKE nearsim_admin FROM CURRENT_USER")
            else:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(joined)
        reasons = " ".join(access.rights_beyond(database, user_of(reader), "reader"))
        assert [role for role in roles if role in reasons] == existing
        assert ("has CREATEROLE" in reasons) == is_old
        assert len(gaps(database_url)) == len(existing) + is_old
