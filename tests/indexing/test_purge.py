"""Purging: no trace of the text is left, in any generation and in files of rejects."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.errors import InputError
from nearsim_db.indexing import build
from nearsim_db.records import silent
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver.statements import PARENTS
from nearsim_db.store.generations import generation_rows
from tests.builders.purged_secret import (
    NAME,
    SECRET,
    TEXTS,
    WORD,
    assert_whole,
    doc_id_of,
    execute,
    traces,
    traces_of_id,
    with_secret,
)
from tests.builders.relations import leaves_of
from tests.builders.selection import some, some_combinations
from tests.builders.workers import ask
from tests.indexing.test_index_model import assert_bands_are_exact, clusters, components, stored_pairs


@pytest.mark.usefixtures("either_tables")
def test_purged_text_is_nowhere(database_url: str, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.jsonl"
    kept = '{"file": "a.jsonl", "line": 2, "id": "other", "reason": "no text"}\n'
    rejects.write_text(
        f'{{"file": "a.jsonl", "line": 1, "id": "{NAME}", "reason": "\'date\' is {WORD}"}}\n' + kept * 2
    )
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), ["match.threshold=0.5"]))
        index.add(with_secret()[:1])  # what is added later is in events
        index.add(with_secret())
        doc_id = doc_id_of(database_url, NAME)
        execute(
            database_url,
            "INSERT INTO nearsim.work (generation_id, doc_id, stage, attempts, error, set_aside_at) "
            "SELECT generation_id, doc_id, 'search', 5, 'ValueError: ' || body, now() "
            "FROM nearsim.document, nearsim.generation",
            "UPDATE nearsim.work SET error = (SELECT error FROM nearsim.work WHERE doc_id = 1)",
            "UPDATE nearsim.document SET source = 'x'",
            f"SELECT nearsim.veto_pair('{NAME}', 'd0', 'only one says {WORD}')",
            f"SELECT nearsim.pin_pair('{NAME}', 'd0', 'none says {WORD}')",
            "ANALYZE nearsim.document, nearsim.verdict",
        )
        before, (leaves,) = traces(database_url, doc_id), leaves_of(database_url)
        assert before.keys() == {
            *("document", "work", "change"),
            *("event", "verdict"),
            *map(leaves.name, PARENTS),
            *(() if leaves.are_shared else ("signed_document",)),
        }
        purged = index.purge([NAME, "nobody"], [rejects])
        assert traces(database_url, doc_id) == {}
        assert (purged.deleted, purged.not_found) == ([NAME], ["nobody"])
        ((generation, removed),) = purged.generations
        assert (generation.state, removed.signatures, removed.pairs) == (
            "live",
            1,
            before[leaves.name("similar_pair")],
        )
        assert removed.bands == before[leaves.name("band")]
        assert (removed.cluster_rows, purged.rejects) == (1, [(rejects, 1)])
        assert purged.changes == before["change"] + 1
        assert purged.verdicts == before["verdict"] == 2
        assert purged.events == before["event"] == len(TEXTS)
        gone = [one for one in index.events() if one.kind == "pair_gone"]
        assert {(one.left_id, one.left, one.similarity) for one in gone} == {(doc_id, None, None)}
        assert purged.work >= 1
        assert rejects.read_text() == kept * 2
        with psycopg.connect(database_url) as connection:
            row = connection.execute("SELECT purged_at FROM nearsim.collection").fetchone()
            assert row == (purged.caches_emptied_at,)
            errors = connection.execute("SELECT DISTINCT error FROM nearsim.work").fetchall()
            assert errors == [("redacted: the error was about a purged document",)]
        execute(database_url, "DELETE FROM nearsim.work")
        assert_whole(index)


def test_tables_that_generations_share_are_vacuumed_once(database_url: str) -> None:
    with Index.connect(database_url) as index, psycopg.connect(database_url, autocommit=True) as session:
        for name in ("default", "second"):
            index.create_profile(name, override(Recipe(), ["match.threshold=0.5"]))
        index.add(with_secret())
        before = count_vacuums(session)
        assert len(index.purge([NAME]).generations) == 2
        assert count_vacuums(session) - before == len(PARENTS)


def count_vacuums(session: psycopg.Connection[tuple[int]]) -> int:
    """How many times the shared tables were vacuumed."""
    return int(
        ask(session, "SELECT sum(vacuum_count) FROM pg_stat_user_tables WHERE relname LIKE '%\\_shared'")
    )


def test_twin_becomes_head_after_a_purge(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), ["match.threshold=0.5", 'fields=["body"]']))
        index.add([Document(NAME, body=SECRET), Document("twin", body=SECRET), *with_secret()[1:]])
        doc_id = doc_id_of(database_url, NAME)
        assert index.delete([NAME], purge=True) == [NAME]
        stored = stored_pairs(index)
        assert {name for pair in stored for name in pair} == {*TEXTS, "twin"}
        assert clusters(index) == components(stored)
        assert_bands_are_exact(index)
        assert traces_of_id(database_url, doc_id) == {}


SET_STATE = "UPDATE nearsim.generation SET state = %s WHERE generation_id = %s"
SET_FINGERPRINT = "UPDATE nearsim.generation SET fingerprint = 'other' WHERE generation_id = %s"


@some_combinations(
    ("tables", ["own_tables", "shared"]),
    ("state", ["retired", "abandoned", "live"]),
    ("attached", [True, False]),
    ("reproducible", [True, False]),
)
def test_purge_covers_generations_of_any_state(
    database_url: str,
    tables: str,
    state: str,
    attached: bool,
    reproducible: bool,
    request: pytest.FixtureRequest,
) -> None:
    """Tables that generations share are always attached."""
    if tables == "own_tables":
        request.getfixturevalue(tables)
    attached = attached or tables == "shared"
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), ["match.threshold=0.5"]))
        index.create_profile("other", override(Recipe(), ["match.threshold=0.4"]))
        index.add(with_secret())
        doc_id = doc_id_of(database_url, NAME)
        other = leaves_of(database_url)[1]
        with psycopg.connect(database_url) as connection:
            connection.execute(SET_STATE, [state, other.generation_id])
            for parent in reversed(PARENTS) if not attached else []:
                connection.execute(
                    sql.SQL("ALTER TABLE {} DETACH PARTITION {}").format(
                        sql.Identifier("nearsim", parent), other.table(parent)
                    )
                )
            if not reproducible:
                connection.execute(SET_FINGERPRINT, [other.generation_id])
        purged = index.purge([NAME])
        assert traces(database_url, doc_id) == {}
        found = {one.generation_id: (one.state, removed) for one, removed in purged.generations}
        assert found[other.generation_id][0] == state
        assert all(removed.signatures == 1 and removed.bands > 0 for _, removed in found.values())
        assert all(removed.pairs == len(TEXTS) and removed.cluster_rows == 1 for _, removed in found.values())
        # Nobody follows what was abandoned.
        assert bool(index.warnings) == (not reproducible and state != "abandoned")


@pytest.mark.parametrize("stage", some(["sign", "bands", "pairs", "clusters"], "every stage"))
def test_interrupted_build_is_purged_and_completed(
    database_url: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), ["match.threshold=0.5"]))
        index.add(with_secret())
        doc_id = doc_id_of(database_url, NAME)
        with index.database.transaction() as connection:
            connection.execute("INSERT INTO nearsim.profile (collection_id, name) VALUES (1, 'second')")
            connection.execute(
                "INSERT INTO nearsim.generation (profile_id, recipe, fingerprint, bands, rows) "
                "SELECT (SELECT max(profile_id) FROM nearsim.profile), recipe, fingerprint, bands, rows "
                "FROM nearsim.generation"
            )
        with index.database.transaction() as connection:
            generation = generation_rows.list_generations(connection)[-1]
        context = index._contexts.make(generation)
        assert context is not None and generation.state == "building"
        with monkeypatch.context() as patch, pytest.raises(InterruptedError):
            patch.setattr(build, "MAX_SMALL_BUILD_DOCUMENTS", 0)
            patch.setattr(build, "_vacuum", _interrupting(stage))
            build.build(index.database.engine, context, silent)
        purged = index.purge([NAME])
        assert traces(database_url, doc_id) == {}
        assert {one.state for one, _ in purged.generations} == {"live"}
        index.profile = "second"
        assert_whole_pairs(index)


def assert_whole_pairs(index: Index) -> None:
    """The profile has the pairs and clusters of the others."""
    stored = stored_pairs(index)
    assert {name for pair in stored for name in pair} == set(TEXTS)
    assert clusters(index) == components(stored)


def _interrupting(stage: str) -> Any:
    def refresh(engine: object, context: object, name: str) -> None:
        if name == stage:
            raise InterruptedError

    return refresh


def test_other_files_are_refused_before_anything_is_purged(database_url: str, tmp_path: Path) -> None:
    with Index.connect(database_url) as index:
        index.add(with_secret())
        wrong = tmp_path / "documents.jsonl"
        for content in (f'{{"id": "{NAME}", "text": "x"}}\n', "no json\n", "[]\n", "\n"):
            wrong.write_text(content)
            with pytest.raises(InputError, match="is not a reject file: line 1 "):
                index.purge([NAME], [wrong])
            assert wrong.read_text() == content
        with pytest.raises(InputError, match="cannot read"):
            index.purge([NAME], [tmp_path / "missing.jsonl"])
        assert index.get(NAME)["title"] == f"About {WORD}"


def test_ids_only_in_a_reject_file_are_purged_there(database_url: str, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.jsonl"
    rejects.write_text('{"file": "a", "line": 1, "id": "gone", "reason": "r"}\n')
    with Index.connect(database_url) as index:
        index.add(with_secret())
        purged = index.purge(["gone", "never"], [rejects])
        assert (purged.deleted, purged.not_found, purged.rejects) == ([], ["never"], [(rejects, 1)])
        assert rejects.read_text() == ""


def test_a_purge_deletes_what_killed_runs_left(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (rejects := tmp_path / "rejected" / "rejects.jsonl").parent.mkdir()
    rejects.touch()
    unfinished = f".unique.jsonl.{'0' * 16}.part"
    left = [
        tmp_path / unfinished,
        rejects.with_name(unfinished),
        tmp_path / "nearsim-copies-left" / "a.jsonl",
    ]
    left[-1].parent.mkdir()
    for path in left:
        path.write_text(SECRET)
    with Index.connect(database_url) as index:
        index.add(with_secret())
        index.purge([NAME], [rejects])
    assert not any(path.exists() for path in left)


def test_database_files_are_free_of_the_text_after_vacuum_full(database_url: str) -> None:
    """VACUUM frees the space and leaves the bytes in it; the documented remedy for those is VACUUM FULL."""
    with Index.connect(database_url) as index:
        index.add(with_secret())
        execute(database_url, "ANALYZE nearsim.document", "CHECKPOINT")
        folder = _folder(database_url)
        assert _files_with(folder, WORD)
        index.purge([NAME])
        execute(
            database_url, "VACUUM FULL nearsim.document", "VACUUM FULL pg_catalog.pg_statistic", "CHECKPOINT"
        )
        assert _files_with(folder, WORD) == []


def _folder(database_url: str) -> Path:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
        ).fetchone()
        assert row is not None
        return Path(row[0]) / "base" / str(row[1])


def _files_with(folder: Path, word: str) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if word.encode() in file.read_bytes())
