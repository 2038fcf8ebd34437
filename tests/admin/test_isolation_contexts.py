"""Code of a tenant that PostgreSQL runs for somebody else sees only what the tenant may see."""

import psycopg
import pytest
from psycopg import sql

from nearsim_db.admin import access
from nearsim_db.store.database import Database
from tests.builders.isolation_world import FOREIGN, World
from tests.builders.logins import login, user_of
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
