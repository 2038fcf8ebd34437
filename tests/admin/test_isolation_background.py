"""Code of a tenant in background processes: autovacuum and the apply worker of logical replication."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg import sql

from tests.builders.isolation_world import World
from tests.builders.logins import user_of
from tests.builders.replication import publishing, subscribed
from tests.builders.trapped_tables import Trap
from tests.builders.workers import Application, application, wait_until

pytestmark = [pytest.mark.each_major, pytest.mark.slow("waits for autovacuum and for replication")]

SLOT = "taken_by_a_tenant"
TABLE = "CREATE TABLE trap.feed (id bigint PRIMARY KEY, word text)"


@contextmanager
def eager_autovacuum(admin: Application) -> Iterator[None]:
    """Autovacuum runs every second for the block; tests have it off otherwise."""
    try:
        admin.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
        admin.execute("ALTER SYSTEM SET autovacuum = on")
        admin.execute("SELECT pg_reload_conf()")
        yield
    finally:
        admin.execute("ALTER SYSTEM RESET autovacuum_naptime")
        admin.execute("ALTER SYSTEM RESET autovacuum")
        admin.execute("SELECT pg_reload_conf()")


def test_autovacuum(trap: Trap) -> None:
    with application(trap.owner) as tenant, application(trap.url) as admin:
        tenant.execute(
            "CREATE TABLE trap.swept (word text) WITH (autovacuum_analyze_threshold = 0, "
            "autovacuum_analyze_scale_factor = 0, autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0)"
        )
        tenant.execute("CREATE INDEX ON trap.swept (trap.key(word))")
        with eager_autovacuum(admin):
            with tenant.transaction():
                tenant.execute("INSERT INTO trap.swept VALUES ('autovacuum')")
                tenant.execute("DELETE FROM trap.answer")
            wait_until(admin, "SELECT autoanalyze_count > 0 FROM pg_stat_user_tables WHERE relname = 'swept'")
            wait_until(admin, "SELECT count(*) > 0 FROM trap.answer WHERE context = 'autovacuum'")
    assert trap.answers("autovacuum") == trap.own_answers


@pytest.fixture
def publisher(world: World, trap: Trap) -> Iterator[Application]:
    """Another database, which publishes a table."""
    created = ("CREATE SCHEMA trap", TABLE, "CREATE PUBLICATION everything FOR TABLE trap.feed")
    with publishing(world.url, SLOT, *created) as publisher:
        yield publisher


def test_replication_runs_triggers_as_the_owner_of_the_table(
    trap: Trap, publisher: Application, major: int
) -> None:
    with application(trap.owner) as tenant:
        tenant.execute(TABLE)
        tenant.execute(
            "CREATE TRIGGER applied BEFORE INSERT ON trap.feed FOR EACH ROW EXECUTE FUNCTION trap.fire('applied')"
        )
        tenant.execute("ALTER TABLE trap.feed ENABLE ALWAYS TRIGGER applied")
    with application(trap.url) as subscriber:
        with subscribed(subscriber, publisher, SLOT, ", copy_data = false, enabled = false"):
            if major < 16:
                own_subscription(subscriber, user_of(trap.owner))
            subscriber.execute("ALTER SUBSCRIPTION taken ENABLE")
            publisher.execute("INSERT INTO trap.feed VALUES (1, 'a')")
            wait_until(subscriber, "SELECT count(*) = 1 FROM trap.feed")
        wait_until(subscriber, "SELECT NOT bool_or(active) FROM pg_replication_slots")
    assert trap.answers("applied") == trap.own_answers


def own_subscription(subscriber: Application, owner: str) -> None:
    """Give the subscription to a user: before PostgreSQL 16 its owner runs the triggers, and may be demoted later."""
    for command in (
        "ALTER ROLE {} SUPERUSER",
        "ALTER SUBSCRIPTION taken OWNER TO {}",
        "ALTER ROLE {} NOSUPERUSER",
    ):
        subscriber.execute(sql.SQL(command).format(sql.Identifier(owner)))
