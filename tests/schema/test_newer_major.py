"""A database of the oldest major on the newest, by pg_dump or pg_upgrade: the index goes on as it was."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin import access
from nearsim_db.admin.attach import attach_table, ingest_table
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.account import SUPERUSER
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.logins import as_user
from tests.builders.reindex_world import LOWER, RECIPE, fill, jaccard_pairs, pairs_of, stories, texts_of
from tests.builders.workers import IDLE, application, ask
from tests.servers.databases import SETTINGS
from tests.servers.homes import server_home
from tests.servers.programs import newest_major, oldest_major, programs

pytestmark = [
    pytest.mark.slow("moves a database to another server"),
    pytest.mark.skipif(oldest_major() == newest_major(), reason="only one major of PostgreSQL is installed"),
]

_STORY = """
CREATE TABLE public.story (id bigint PRIMARY KEY, body text);
INSERT INTO public.story SELECT number, 'the same words in each of these rows' FROM generate_series(1, 4) AS number
"""
_ANALYST = b"CREATE ROLE analyst LOGIN IN ROLE nearsim_reader"
_DISTINCT = (
    "SELECT count(*) FROM pg_stats WHERE n_distinct = -1 AND schemaname IN ('nearsim', 'nearsim_index')"
)
_EXPECTED_DISTINCT = "SELECT 2 + count(*) FROM pg_inherits WHERE inhparent = 'nearsim.band'::regclass"
# Later minor releases of the old major write a column option that the new major's pg_dump may not know.
_FORGET_COLUMN_VERSIONS = (
    "UPDATE pg_catalog.pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%'"
)


def _fill(url: str) -> None:
    """A retired generation and a live one, verdicts, an attached table, isolation, queued work, and changes that
    are not queued yet.
    """
    Database.initialise(url)
    fill(url)
    with application(url) as app, Database.connect(url) as database:
        app.execute(_STORY.encode())
        attach_table(database, "public.story", Columns("id", "body"))
        ingest_table(Index(database, "story"), "default", None)
        reindex = Reindex(database, "default")
        reindex.start(override(Recipe(), [*RECIPE, *LOWER]))
        reindex.promote()
        index = Index(database, "default")
        index.pin("d0", "d39", "a reason")
        index.veto("d4", "d5", "a reason")
        app.execute(_ANALYST)
        access.grant(database, "analyst", "reader", ["story"])
        access.set_isolation(database, wanted=True)
        app.execute("UPDATE nearsim.document SET body = 'f0e0w0 f0e0w1' WHERE external_id = 'd8'")
        app.execute("DELETE FROM public.story WHERE id = 1")
        dispatch_changes(database.engine)
        app.execute("DELETE FROM nearsim.document WHERE external_id = 'd1'")
        app.execute("INSERT INTO public.story VALUES (5, 'the same words in each of these rows')")
        app.execute(_FORGET_COLUMN_VERSIONS.encode())
        assert ask(app, "SELECT EXISTS (SELECT FROM nearsim.work) AND EXISTS (SELECT FROM nearsim.change)")


def _run(cluster: PostgresCluster, folder: Path, program: str, *arguments: str) -> None:
    """Run a program of the server, as its user, in a folder that it can write to."""
    done = cluster.account.run(["env", "-C", str(folder), cluster.binaries.program(program), *arguments])
    assert done.returncode == 0, done.stdout + done.stderr


def by_dump(old: PostgresCluster, new: PostgresCluster, scratch: Path) -> None:
    """Dump the database and restore it on a server that has the roles."""
    dump = str(scratch / "nearsim.dump")
    # A newer major's pg_dump may be of an older date than the server's minor release, and fail on its catalog.
    _run(old, scratch, "pg_dump", "--format=custom", "--file", dump, "--dbname", old.dsn())
    old.stop()
    new.initialise("other")
    new.start()
    Database.initialise(new.dsn("other"))
    with application(new.dsn("other")) as app:
        app.execute(_ANALYST)
        app.execute("CREATE DATABASE nearsim TEMPLATE template0")
    _run(new, scratch, "pg_restore", "--exit-on-error", "--dbname", new.dsn(), dump)
    Database.initialise(new.dsn())
    with application(new.dsn()) as app:
        assert ask(app, _DISTINCT) == ask(app, _EXPECTED_DISTINCT)


def by_pg_upgrade(old: PostgresCluster, new: PostgresCluster, scratch: Path) -> None:
    """Stop the old server, take over its data, and start the new one."""
    old.stop()
    new.initialise("other")
    new.start()  # writes its settings
    new.stop()
    _run(new, scratch, "pg_checksums", "--disable", "-D", str(new.data_directory))
    _run(
        new,
        scratch,
        "pg_upgrade",
        *("--username", SUPERUSER, "--socketdir", str(scratch)),
        *("--old-bindir", str(old.binaries.directory), "--new-bindir", str(new.binaries.directory)),
        *("--old-datadir", str(old.data_directory), "--new-datadir", str(new.data_directory)),
    )
    new.start()


@pytest.fixture(params=[by_dump, by_pg_upgrade])
def moved(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database that was filled on the oldest major and is on the newest."""
    move: Callable[[PostgresCluster, PostgresCluster, Path], None] = request.param
    with server_home() as home:
        old, new = (
            PostgresCluster(programs()[major], home / str(major), home / "socket", SETTINGS)
            for major in (oldest_major(), newest_major())
        )
        old.initialise()
        old.start()
        _fill(old.dsn())
        scratch = home / "scratch"
        scratch.mkdir()
        new.account.give(scratch)
        move(old, new, scratch)
        yield new.dsn()


def test_a_moved_index_goes_on_as_it_was(moved: str) -> None:
    with Database.connect(moved) as database, application(moved) as app:
        assert str(ask(app, "SHOW server_version_num")).startswith(str(newest_major()))
        assert ask(app, IDLE) is False
        index, story = Index(database, "default"), Index(database, "story")
        index.build()
        story.build()
        assert ask(app, IDLE) is True
        texts = texts_of(database)
        assert pairs_of(database, 3) == jaccard_pairs(texts, 0.3)
        assert pairs_of(database, 1) == jaccard_pairs(texts, 0.5)
        assert len(list(story.pairs())) == 6
        for collection in ("default", "story"):
            assert verify_index(database, collection, sample=None).found.faults == ()
        with application(as_user(moved, "analyst")) as analyst:
            for view in ("documents", "pairs"):
                seen = f"SELECT array_agg(DISTINCT collection) FROM nearsim.{view}"  # noqa: S608
                assert ask(analyst, seen) == ["story"]
        assert {(one.left, one.right) for one in index.verdicts()} == {("d0", "d39"), ("d4", "d5")}
        app.execute("INSERT INTO public.story VALUES (6, 'the same words in each of these rows')")
        index.add([*stories(4), Document("new", body=texts["d0"])])
        story.build()
        assert len(list(story.pairs())) == 10
        assert pairs_of(database, 3) == jaccard_pairs(texts_of(database), 0.3)
        reindex = Reindex(database, "default")
        reindex.rollback()
        reindex.drop()
        assert pairs_of(database, 1) == jaccard_pairs(texts_of(database), 0.5)
