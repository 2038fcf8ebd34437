"""pg_dump of a server of the oldest major, restored on the newest: the index goes on as it was."""

import subprocess
from pathlib import Path

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.attach import attach_table, ingest_table
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.reindex_world import LOWER, RECIPE, fill, jaccard_pairs, pairs_of, stories, texts_of
from tests.builders.workers import IDLE, application, ask
from tests.servers.databases import Servers
from tests.servers.programs import newest_major, oldest_major, programs

_STORY = """
CREATE TABLE public.story (id bigint PRIMARY KEY, body text);
INSERT INTO story SELECT number, 'the same words in each of these rows' FROM generate_series(1, 4) AS number
"""
DISTINCT = (
    "SELECT count(*) FROM pg_stats WHERE n_distinct = -1 AND schemaname IN ('nearsim', 'nearsim_index')"
)


def _fill(url: str) -> None:
    """A retired generation and a live one, verdicts, an attached table, and changes that nobody has indexed."""
    fill(url)
    with application(url) as app, Database.connect(url) as database:
        app.execute("SET search_path = public")
        app.execute(_STORY.encode())
        attach_table(database, "public.story", Columns("id", "body"))
        ingest_table(Index(database, "story"), "default", None)
        reindex = Reindex(database, "default")
        reindex.start(override(Recipe(), [*RECIPE, *LOWER]))
        reindex.promote()
        index = Index(database, "default")
        index.pin("d0", "d39", "a reason")
        index.veto("d4", "d5", "a reason")
        app.execute("UPDATE nearsim.document SET body = 'f0e0w0 f0e0w1' WHERE external_id = 'd8'")
        app.execute("DELETE FROM nearsim.document WHERE external_id = 'd1'")
        app.execute("DELETE FROM public.story WHERE id = 1")


@pytest.mark.slow("dumps and restores a database")
@pytest.mark.skipif(oldest_major() == newest_major(), reason="only one major of PostgreSQL is installed")
def test_a_dump_of_the_oldest_major_is_restored_on_the_newest(servers: Servers, tmp_path: Path) -> None:
    old, new = servers.of_major(oldest_major()), servers.of_major(newest_major())
    dump = str(tmp_path / "nearsim.dump")
    with old.database(_fill) as source, new.empty_database() as target:
        # A newer major's pg_dump may be of an older date than the server's minor release, and fail on its catalog.
        _run(oldest_major(), "pg_dump", "--format=custom", "--file", dump, "--dbname", source)
        _run(newest_major(), "pg_restore", "--exit-on-error", "--dbname", target, dump)
        with Database.connect(target) as database, application(target) as app:
            Database.initialise(target)
            assert ask(app, DISTINCT) == ask(app, "SELECT 2 + count(*) FROM nearsim.generation")
            assert ask(app, IDLE) is False
            index, story = Index(database, "default"), Index(database, "story")
            index.build()
            story.build()
            assert ask(app, IDLE) is True
            texts = texts_of(database)
            assert pairs_of(database, 3) == jaccard_pairs(texts, 0.3)
            assert pairs_of(database, 1) == jaccard_pairs(texts, 0.5)
            assert len(list(story.pairs())) == 3
            for collection in ("default", "story"):
                assert verify_index(database, collection, sample=None).found.faults == ()
            assert {(one.left, one.right) for one in index.verdicts()} == {("d0", "d39"), ("d4", "d5")}
            app.execute("INSERT INTO public.story VALUES (5, 'the same words in each of these rows')")
            index.add([*stories(4), Document("new", body=texts["d0"])])
            story.build()
            assert pairs_of(database, 3) == jaccard_pairs(texts_of(database), 0.3)
            assert len(list(story.pairs())) == 6
            reindex = Reindex(database, "default")
            reindex.rollback()
            reindex.drop()
            assert pairs_of(database, 1) == jaccard_pairs(texts_of(database), 0.5)


def _run(major: int, program: str, *arguments: str) -> None:
    """Run a program of a major."""
    path = programs()[major].program(program)
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
