"""pg_upgrade of a server of the oldest major to the newest: the index goes on as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin import access
from nearsim_db.admin.attach import attach_table, ingest_table
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.indexing.dispatch import dispatch_changes
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.embedded.account import SUPERUSER
from nearsim_db.store.embedded.cluster import Cluster
from nearsim_db.store.schema import revisions
from tests.builders.logins import as_user
from tests.builders.reindex_world import RECIPE, jaccard_pairs, stories, texts_of
from tests.builders.workers import IDLE, application, ask
from tests.servers.databases import SETTINGS
from tests.servers.homes import server_home
from tests.servers.programs import newest_major, oldest_major, programs

_STORY = """
CREATE TABLE public.story (id bigint PRIMARY KEY, body text);
INSERT INTO public.story SELECT number, 'the same words in each of these rows' FROM generate_series(1, 4) AS number
"""
# Later minor releases of the old major write a column option that the new major's pg_dump may not know.
_FORGET_COLUMN_VERSIONS = (
    "UPDATE pg_catalog.pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%'"
)
_COLLECTIONS = "SELECT array_agg(DISTINCT collection) FROM nearsim.documents"


def _fill(url: str) -> None:
    """Live generations, a verdict, an attached table, isolation, queued work, and changes that are not queued yet."""
    engine = open_engine(url)
    revisions.upgrade(engine)
    engine.dispose()
    with application(url) as app, Database.connect(url) as database:
        app.execute(_STORY.encode())
        attach_table(database, "public.story", Columns("id", "body"))
        ingest_table(Index(database, "story"), "default", None)
        index = Index(database, "default")
        index.create_profile("default", override(Recipe(), RECIPE))
        index.add(stories(40))
        index.pin("d0", "d39", "a reason")
        app.execute("CREATE ROLE analyst LOGIN IN ROLE nearsim_reader")
        access.grant(database, "analyst", "reader", ["story"])
        access.set_isolation(database, wanted=True)
        app.execute("UPDATE nearsim.document SET body = 'f0e0w0 f0e0w1' WHERE external_id = 'd8'")
        app.execute("DELETE FROM public.story WHERE id = 1")
        dispatch_changes(database.engine)
        app.execute("DELETE FROM nearsim.document WHERE external_id = 'd1'")
        app.execute("INSERT INTO public.story VALUES (5, 'the same words in each of these rows')")
        app.execute(_FORGET_COLUMN_VERSIONS.encode())
        assert ask(app, "SELECT EXISTS (SELECT FROM nearsim.work) AND EXISTS (SELECT FROM nearsim.change)")


def _upgrade(old: Cluster, new: Cluster) -> None:
    """Stop the old server, take over its data, and start the new one."""
    old.stop()
    new.initialise("other")
    new.start()  # writes its settings
    new.stop()
    scratch = new.data_directory.with_name("scratch")
    scratch.mkdir()
    new.account.give(scratch)
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


def _run(cluster: Cluster, folder: Path, program: str, *arguments: str) -> None:
    """Run a program of the server, as its user, in a folder that it can write to."""
    done = cluster.account.run(["env", "-C", str(folder), cluster.binaries.program(program), *arguments])
    assert done.returncode == 0, done.stdout + done.stderr


def _answers(index: Index) -> tuple[set[tuple[str, str]], set[frozenset[str]]]:
    """The pairs and clusters of a collection."""
    pairs = {(min(one.left, one.right), max(one.left, one.right)) for one in index.pairs()}
    return pairs, {frozenset(one.members) for one in index.clusters()}


@pytest.fixture
def upgraded() -> Iterator[str]:
    """The URL of a database that was filled on the oldest major and is on the newest."""
    with server_home() as home:
        old, new = (
            Cluster(programs()[major], home / str(major), home / "socket", SETTINGS)
            for major in (oldest_major(), newest_major())
        )
        old.initialise()
        old.start()
        _fill(old.dsn())
        _upgrade(old, new)
        yield new.dsn()


@pytest.mark.slow("upgrades a data directory")
@pytest.mark.skipif(oldest_major() == newest_major(), reason="only one major of PostgreSQL is installed")
def test_an_upgraded_index_goes_on_as_it_was(upgraded: str) -> None:
    with Database.connect(upgraded) as database, application(upgraded) as app:
        assert str(ask(app, "SHOW server_version_num")).startswith(str(newest_major()))
        assert ask(app, IDLE) is False
        index, story = Index(database, "default"), Index(database, "story")
        index.build()
        story.build()
        assert ask(app, IDLE) is True
        for collection in ("default", "story"):
            assert verify_index(database, collection, sample=None).found.faults == ()
        with application(as_user(upgraded, "analyst")) as analyst:
            assert ask(analyst, _COLLECTIONS) == ["story"]
            assert ask(analyst, "SELECT array_agg(DISTINCT collection) FROM nearsim.pairs") == ["story"]
        assert [(one.left, one.right) for one in index.verdicts()] == [("d0", "d39")]
        fresh = Index(database, "fresh")
        fresh.create_profile("default", override(Recipe(), RECIPE))
        fresh.add([Document(name, body=body) for name, body in texts_of(database).items()])
        fresh.pin("d0", "d39", "a reason")
        fresh.build()
        assert _answers(index) == _answers(fresh)
        assert len(list(story.pairs())) == 6
        app.execute("INSERT INTO public.story VALUES (6, 'the same words in each of these rows')")
        index.add([Document("new", body=texts_of(database)["d0"])])
        story.build()
        assert len(list(story.pairs())) == 10
        assert _answers(index)[0] == jaccard_pairs(texts_of(database), 0.5)
