"""kill -9 of the server anywhere in promote, drop and detach: run again, they end as if nothing had happened."""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Database, Index
from nearsim_db.admin import attach
from nearsim_db.admin.reindex import Reindex
from nearsim_db.errors import NearsimError, NotFoundError
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.driver.statements import FIRST_OWN, PARENTS
from tests.builders.reindex_world import (
    LOWER,
    RECIPE,
    fill,
    jaccard_pairs,
    leaf_tables,
    pairs_of,
    reader,
    states,
    texts_of,
)
from tests.builders.server_kills import ServerKill, kill
from tests.builders.workers import application, ask, running, wait_until
from tests.servers.citus import AnyServer

pytestmark = [pytest.mark.slow("kills a server many times"), pytest.mark.each_major]

_STEP = 3
_STORY = """
CREATE TABLE public.story (id bigint PRIMARY KEY, body text);
INSERT INTO public.story SELECT number, 'the same words in each row' FROM generate_series(1, 4) AS number
"""

Operation = Callable[[Database], object]


def _fill(url: str) -> None:
    """Make a generation to promote, and attach a table."""
    fill(url)
    with application(url) as app, Database.connect(url) as database:
        app.execute(_STORY.encode())
        attach.attach_table(database, "public.story", Columns("id", "body"))
        attach.ingest_table(Index(database, "story"), "default", None)
        Reindex(database, "default").start(override(Recipe(), [*RECIPE, *LOWER]))


def _fill_own(url: str) -> None:
    """The same, in tables of their own."""
    _fill(url)


def promote(database: Database) -> object:
    """Promote generation 3."""
    return Reindex(database, "default").promote()


def promote_and_drop(database: Database) -> object:
    """Promote it unless that was done, and drop generation 1."""
    with suppress(NotFoundError):
        promote(database)
    return Reindex(database, "default").drop()


def detach(database: Database) -> object:
    """Delete the collection of the attached table."""
    return attach.detach(database, "story", keep=False)


def detach_and_keep(database: Database) -> object:
    """Keep the collection, with copies of the texts."""
    return attach.detach(database, "story", keep=True)


def check_promoted(database: Database) -> None:
    """Both generations are whole, and the new one is live."""
    assert states(database) == {1: "retired", 2: "live", 3: "live"}
    texts = texts_of(database)
    assert pairs_of(database, 1) == jaccard_pairs(texts, 0.5)
    assert pairs_of(database, 3) == jaccard_pairs(texts, 0.3)


def check_dropped(database: Database) -> None:
    """Nothing of the old generation is left."""
    assert list(states(database).values()) == ["live", "live"]
    _check_no_remains(database)
    assert pairs_of(database, max(states(database))) == jaccard_pairs(texts_of(database), 0.3)


def check_detached(database: Database) -> None:
    """Neither triggers nor anything of the collection is left."""
    assert states(database) == {1: "live", 3: "ready"}
    _check_no_remains(database)
    _check_table(database, 0)


def check_kept(database: Database) -> None:
    """The triggers are gone, and the collection has the texts and its index."""
    assert states(database) == {1: "live", 2: "live", 3: "ready"}
    _check_table(database, 4)
    assert pairs_of(database, 2) == {(str(a), str(b)) for a in range(1, 5) for b in range(a + 1, 5)}


def _check_no_remains(database: Database) -> None:
    """There are no tables and no rows of generations that do not exist."""
    own = [number for number in states(database) if number >= FIRST_OWN]
    assert leaf_tables(database) == 2 * len(own)  # of signatures and bands
    with application(database.engine.url) as app:
        for parent in PARENTS:
            remains = sql.SQL(
                "SELECT count(*) FROM nearsim.{} "
                "WHERE generation_id NOT IN (SELECT generation_id FROM nearsim.generation)"
            ).format(sql.Identifier(parent))
            assert app.execute(remains).fetchone() == (0,)


def _check_table(database: Database, kept: int) -> None:
    with application(database.engine.url) as app:
        assert (
            ask(app, "SELECT count(*) FROM pg_trigger WHERE tgrelid = CAST('public.story' AS regclass)") == 0
        )
        assert ask(app, "SELECT count(*) FROM public.story") == 4
        assert (
            ask(app, "SELECT count(*) FROM nearsim.document WHERE body = 'the same words in each row'")
            == kept
        )


@pytest.mark.parametrize(
    ("operation", "check"),
    [
        (promote, check_promoted),
        (promote_and_drop, check_dropped),
        (detach, check_detached),
        (detach_and_keep, check_kept),
    ],
)
def test_an_operation_whose_server_is_killed_is_run_again(
    server_to_kill: AnyServer, major: int, operation: Operation, check: Callable[[Database], None]
) -> None:
    """Before every third statement or commit; each major tries others of them."""
    step, killed = 1 + major % _STEP, 0
    while _run_killed(server_to_kill, operation, check, step):
        step, killed = step + _STEP, killed + 1
    assert killed


def _run_killed(
    server: AnyServer, operation: Operation, check: Callable[[Database], None], step: int
) -> bool:
    """Kill the server before a step of the operation; return whether it had so many steps."""
    with server.database(_fill) as url:
        with Database.connect(url) as database:
            server_kill = ServerKill(server.cluster, step)
            server_kill.watch(database.engine)
            with suppress(NearsimError, psycopg.OperationalError):
                operation(database)
        if not server_kill.is_done:
            return False
        server.cluster.start()
        with Database.connect(url) as database:
            assert sorted(state == "live" for state in states(database).values()).count(True) in (1, 2)
            with suppress(NotFoundError):
                operation(database)
            check(database)
    return True


@pytest.mark.usefixtures("own_tables")
def test_a_server_killed_while_a_drop_waits_for_a_reader(server_to_kill: AnyServer) -> None:
    """The partition is left half detached; the next worker finishes the drop."""
    with server_to_kill.database(_fill_own) as url:
        with Database.connect(url) as database:
            promote(database)
            with suppress(psycopg.OperationalError), application(url) as app, reader(url, "band"):
                dropping = Thread(target=_drop_in_vain, args=(database,))
                dropping.start()
                wait_until(app, "SELECT count(*) > 0 FROM pg_inherits WHERE inhdetachpending")
                kill(server_to_kill.cluster)
                dropping.join()
        server_to_kill.cluster.start()
        with running(url), application(url) as app:
            wait_until(app, "SELECT count(*) = 2 FROM nearsim.generation")
        with Database.connect(url) as database:
            check_dropped(database)


def _drop_in_vain(database: Database) -> None:
    with suppress(NearsimError, psycopg.OperationalError):
        Reindex(database, "default").drop()
