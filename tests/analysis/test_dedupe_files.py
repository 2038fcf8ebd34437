"""The temporary index of `dedupe`: apart from all other collections, unlogged, and checked before it is believed."""

import errno
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.analysis.dedupe_files import Outputs, dedupe
from nearsim_db.errors import NearsimError, UnreachableError
from nearsim_db.indexing import catch_up, feature_spool, ingest
from nearsim_db.indexing.shingle_length import HeadSample
from nearsim_db.readers import Source
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.k_rule import SAMPLE_SIZE
from nearsim_db.similarity.recipe import Recipe, from_mapping, override
from nearsim_db.store.database import Database
from nearsim_db.store.driver.locks import Lock
from tests.builders.reindex_world import RECIPE, words

TABLES = """
SELECT relname, relpersistence::text, EXISTS (SELECT FROM pg_inherits WHERE inhrelid = pg_class.oid)
FROM pg_class WHERE relnamespace = 'nearsim_index'::regnamespace AND relkind = 'r' ORDER BY relname
"""
HOLDER = """
SELECT pg_terminate_backend(pid, 60000) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
WHERE locktype = 'advisory' AND classid = 28276 AND datname = current_database()
"""
CAPTURED = "SELECT count(*) FROM nearsim.change WHERE collection_id IS NOT NULL"
KNOWN = "SELECT reltuples FROM pg_class WHERE oid = 'nearsim.signature'::regclass"


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    """A file of three documents, two of them alike."""
    file = tmp_path / "stories.jsonl"
    texts = {"a": "one two three four five", "b": "one two three four five", "c": "six seven eight"}
    file.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()))
    return file


def run(url: str, stories: Path, at_step: Callable[[str], None]) -> list[str]:
    """De-duplicate the file; return the ids that are kept. `at_step` is called with each step of the progress."""
    output = stories.with_name("unique.jsonl")
    with Database.connect(url) as database:
        dedupe(
            database,
            Source([stories]),
            Recipe(),
            Outputs(output),
            lambda step, done, total: at_step(step),
        )
    return [json.loads(line)["id"] for line in output.read_text().splitlines()]


def test_its_tables_are_unlogged_and_never_attached(database_url: str, stories: Path) -> None:
    """No statement over all collections reads them, and the collection leaves nothing behind."""
    seen: list[list[tuple[object, ...]]] = []
    with psycopg.connect(database_url, autocommit=True) as watching:
        kept = run(database_url, stories, lambda step: seen.append(watching.execute(TABLES).fetchall()))
        assert kept == ["a", "c"]
        parents = ("band", "cluster_member", "signature", "similar_pair")
        assert seen[-1] == [(f"{parent}_1", "u", False) for parent in parents]
        assert watching.execute(TABLES).fetchall() == []
        assert watching.execute(CAPTURED).fetchone() == (0,)


def test_its_end_does_not_wait_for_other_indexes(database_url: str, stories: Path) -> None:
    """While the partitions of another index are detached, which takes as long as their readers."""
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s, 0)", (Lock.DROP.value,))
        assert run(database_url, stories, lambda step: None) == ["a", "c"]
        assert other.execute(TABLES).fetchall() == []


def test_a_permanent_index_is_logged(database_url: str) -> None:
    """Only what is thrown away may be lost in a crash."""
    with Index.connect(database_url) as index, psycopg.connect(database_url) as watching:
        index.add([Document("a", body="one two three")])
        assert {row[1:] for row in watching.execute(TABLES)} == {("p", True)}


def test_results_are_not_written_if_the_server_lost_the_index(database_url: str, stories: Path) -> None:
    """A crash of the server ends all connections and empties unlogged tables."""
    with psycopg.connect(database_url, autocommit=True) as other:

        def crash(step: str) -> None:
            if step == "clusters":
                other.execute(HOLDER)

        with pytest.raises(UnreachableError):
            run(database_url, stories, crash)
        assert not stories.with_name("unique.jsonl").exists()
        assert other.execute("SELECT count(*) FROM nearsim.collection").fetchone() == (0,)


def test_a_small_build_does_not_analyze_all_collections(database_url: str) -> None:
    """Statistics over all collections are updated once these have doubled."""
    known = []
    with Index.connect(database_url) as index, psycopg.connect(database_url, autocommit=True) as watching:
        for name, count in (("large", 10), ("small", 9), ("medium", 5)):
            one = Index(index.database, name)
            one.add(Document(str(number), body=f"text {number} of {name}") for number in range(count))
            known.append(watching.execute(KNOWN).fetchone())
    assert known == [(10,), (10,), (24,)]


STORY = "port said on monday that it will close its northern terminal for two weeks in march"


def write_stories(path: Path, stories: dict[str, str]) -> Path:
    path.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in stories.items()))
    return path


BUCKET_ROWS = "SELECT count(*) AS rows FROM nearsim_index.band_1 GROUP BY bucket_hash"


def test_only_shared_buckets_are_loaded(database_url: str, tmp_path: Path) -> None:
    """Nothing is searched for after the build of a temporary index."""
    texts = {"a": STORY, "b": f"{STORY} again", "c": STORY[::-1]}
    rows: list[int] = []
    with psycopg.connect(database_url, autocommit=True) as watching:

        def watch(step: str) -> None:
            if step == "candidates":
                rows[:] = [row for (row,) in watching.execute(BUCKET_ROWS)]

        kept = run(database_url, write_stories(tmp_path / "stories.jsonl", texts), watch)
    assert kept == ["a", "c"]
    assert rows and set(rows) == {2}


@pytest.mark.parametrize(("keep", "stored"), [("earliest", 0), ("longest", 3)])
def test_texts_are_stored_only_if_they_are_read_again(
    database_url: str, tmp_path: Path, keep: str, stored: int
) -> None:
    """While the features are in a temporary file nothing reads a text, unless the longest is kept."""
    texts = {"a": STORY, "b": f"{STORY} again", "c": STORY[::-1]}
    path, found = write_stories(tmp_path / "stories.jsonl", texts), list[object]()
    with (
        psycopg.connect(database_url, autocommit=True) as watching,
        Database.connect(database_url) as database,
    ):

        def watch(step: str, done: int, total: int | None) -> None:
            found[:] = watching.execute("SELECT count(body) FROM nearsim.document").fetchone() or ()

        recipe = from_mapping({"cluster": {"keep": keep}})
        dedupe(database, Source([path]), recipe, Outputs(tmp_path / "unique.jsonl"), watch)
    assert found == [stored]
    kept = [json.loads(line)["id"] for line in (tmp_path / "unique.jsonl").read_text().splitlines()]
    assert kept == {"earliest": ["a", "c"], "longest": ["b", "c"]}[keep]


def test_documents_without_features_are_all_kept(database_url: str, tmp_path: Path) -> None:
    path = write_stories(tmp_path / "stories.jsonl", {"a": "", "b": "", "c": "?!"})
    assert run(database_url, path, lambda step: None) == ["a", "b", "c"]


@pytest.mark.parametrize("bound", ["_MOST_BYTES", "_MOST_DOCUMENTS"])
def test_texts_whose_features_do_not_fit_are_stored(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(feature_spool, bound, 5)
    monkeypatch.setattr(ingest, "_BATCH_DOCUMENTS", 4)
    texts = {f"{number}-{copy}": f"{STORY} {number} {copy}" for number in range(20) for copy in "ab"}
    texts |= {
        name: " ".join(f"{word}{name}" for word in text.split())
        for name, text in texts.items()
        if "b" in name
    }
    path, found = write_stories(tmp_path / "stories.jsonl", texts), list[object]()
    with psycopg.connect(database_url, autocommit=True) as watching:

        def watch(step: str) -> None:
            found[:] = watching.execute("SELECT count(body) FROM nearsim.document").fetchone() or ()

        kept = run(database_url, path, watch)
    assert 0 < int(str(found[0])) < len(texts)
    assert len(kept) == 21
    assert kept[:2] == ["0-a", "0-b"]


def test_a_full_disk_ends_it(database_url: str, stories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The features of documents that are stored without their texts must be kept."""

    def fail(*given: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.pwritev", fail)
    with pytest.raises(NearsimError, match="set TMPDIR to a folder with room"):
        run(database_url, stories, lambda step: None)


@pytest.mark.parametrize("order", [1, -1])
def test_the_sample_of_texts_is_that_of_the_database(order: int) -> None:
    """Those with the smallest digests, each by its first document, whatever the batches and processes."""
    drawn = np.random.default_rng(1).integers(0, 256, (3_000, 16), np.uint8)
    drawn[::7] = drawn[1]  # copies
    drawn[5] = 0  # without features
    digests, samples = drawn.view("V16").reshape(-1), [HeadSample(), HeadSample()]
    nothing = np.zeros(len(digests), np.int64)
    rows = SignatureRows(
        np.arange(len(digests)),
        nothing,
        nothing.astype(np.int32),
        digests,
        nothing.reshape(-1, 1),
        nothing.astype(np.uint64),
    )
    for number, at in list(enumerate(range(0, len(digests), 800)))[::order]:
        chosen = (rows.doc_ids >= at) & (rows.doc_ids < at + 800)
        samples[number % 2].add(rows.take(chosen), [str(row) for row in range(at, at + 800)].__getitem__)
    samples[0].merge(samples[1])
    first = {digest.tobytes(): str(number) for number, digest in reversed(list(enumerate(digests)))}
    del first[bytes(16)]
    assert samples[0].texts() == [first[digest] for digest in sorted(first)[:SAMPLE_SIZE]]


@pytest.mark.slow("child processes")
@pytest.mark.parametrize("keep", ["earliest", "longest"])
def test_helpers_leave_the_same_documents(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    """Texts are stored in one case, in the other only their features are."""
    path = write_stories(tmp_path / "in.jsonl", {f"d{at}": words(at) for at in range(400)})
    recipe = override(Recipe(), [*RECIPE, f"cluster.keep={keep}"])
    monkeypatch.setattr(ingest, "_BATCH_DOCUMENTS", 20)
    survivors = []
    for least in (1 << 40, 0):
        monkeypatch.setattr(catch_up, "_MANY_BYTES", least)
        output = tmp_path / f"{least}.jsonl"
        with Database.connect(database_url) as database:
            database.jobs = 3
            dedupe(database, Source([path]), recipe, Outputs(output))
        survivors.append(output.read_bytes())
    assert survivors[0] == survivors[1]
    assert survivors[0].count(b"\n") == 200
