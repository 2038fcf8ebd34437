"""Deliberately damaged indexes: what verify-index finds and how it repairs them."""

from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import VerifyResult, verify_index
from nearsim_db.errors import ConflictError
from nearsim_db.records import GenerationId
from nearsim_db.store.database import Database
from nearsim_db.store.driver.statements import FIRST_OWN, PARENTS, Leaves
from tests.builders.filled import database_of
from tests.builders.selection import some

_LENGTH = 40
_FAMILIES = 10


def _text(family: int, *changes: int) -> str:
    """Forty words of a family, those at some places exchanged: 3 of 38 shingles each."""
    return " ".join(f"f{family}{'other' if place in changes else 'word'}{place}" for place in range(_LENGTH))


def _fill(url: str) -> None:
    """Families of four: the first, one like it, its twin, and one that is like both; and two that are like nothing."""
    documents = [Document("empty", body="..."), Document("alone", body=_text(99))]
    for family in range(_FAMILIES):
        texts = _text(family), _text(family, 20), _text(family), _text(family, 5)
        documents += [
            Document(f"{family}-{name}", body=text) for name, text in zip("abcd", texts, strict=True)
        ]
    with Index.connect(url) as index:
        index.add(documents)


# An index that every test restores.
mended = database_of(_fill, "module")


# The same index for a single test.
database = database_of(_fill)


def _run(database: Database, *commands: LiteralString, generation: int = 1) -> None:
    """Run SQL with a generation's tables filled in, and 3-a, 3-b, 3-c and 4-a as {a}, {b}, {c} and {other}."""
    leaves = Leaves(GenerationId(generation))
    names: dict[str, sql.Composable] = {parent: leaves.table(parent) for parent in PARENTS}
    names["generation"] = sql.Literal(generation)
    for name, external_id in {"a": "3-a", "b": "3-b", "c": "3-c", "other": "4-a"}.items():
        chosen = sql.SQL("(SELECT doc_id FROM nearsim.document WHERE external_id = {})")
        names[name] = chosen.format(sql.Literal(external_id))
    with _plain(database) as connection:
        for command in commands:
            connection.execute(sql.SQL(command).format(**names))


def _plain(database: Database) -> psycopg.Connection[tuple[Any, ...]]:
    url = database.engine.url
    return psycopg.connect(url)


def _content(database: Database, generation: int = 1) -> dict[str, list[tuple[Any, ...]]]:
    """All that an index holds, but for its number and when pairs were verified."""
    columns: dict[str, LiteralString] = {
        "signature": "doc_id, revision, feature_count, feature_digest, sketch, numbers_digest, head_id",
        "band": "bucket_hash, doc_id",
        "similar_pair": "left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size",
        "cluster_member": "doc_id, cluster_id, is_survivor",
    }
    query = sql.SQL("SELECT {columns} FROM {rows} AS rows ORDER BY {columns}")
    leaves = Leaves(GenerationId(generation))
    with _plain(database) as connection:
        return {
            table: connection.execute(
                query.format(columns=sql.SQL(names), rows=leaves.rows(table))
            ).fetchall()
            for table, names in columns.items()
        }


def _kinds(outcome: VerifyResult) -> dict[str, int]:
    return {fault.kind: fault.count for fault in outcome.found.faults}


def _all(database: Database, *, repair: bool = False) -> VerifyResult:
    return verify_index(database, sample=None, repair=repair)


# what is done to the index, and the faults it causes
_BREAKS: dict[str, tuple[list[LiteralString], dict[str, int]]] = {
    "a byte of a sketch": (
        ["UPDATE {signature} SET sketch = set_byte(sketch, 9, get_byte(sketch, 9) # 1) WHERE doc_id = {a}"],
        {"wrong_sketch": 1},
    ),
    "a sketch that is too short": (
        ["UPDATE {signature} SET sketch = substr(sketch, 3) WHERE doc_id = {a}"],
        {"wrong_sketch": 1},
    ),
    "a digest": (
        ["UPDATE {signature} SET feature_digest = gen_random_uuid() WHERE doc_id = {b}"],
        {"wrong_features": 1},
    ),
    "a count and numbers": (
        ["UPDATE {signature} SET feature_count = 7, numbers_digest = 8 WHERE doc_id = {c}"],
        {"wrong_features": 1},
    ),
    "a revision": (
        ["UPDATE {signature} SET revision = revision - 1 WHERE doc_id = {a}"],
        {"outdated": 1},
    ),
    "a twin that is its own head": (
        ["UPDATE {signature} SET head_id = doc_id WHERE doc_id = {c}"],
        {"wrong_head": 1, "wrong_cluster": 1},
    ),
    "a lost signature": (
        ["DELETE FROM {signature} WHERE doc_id = {b}"],
        {"unsigned": 1, "wrong_cluster": 1},
    ),
    "a signature without document": (
        [
            "INSERT INTO {signature} (generation_id, doc_id, revision, feature_count, feature_digest, sketch,"
            " numbers_digest, head_id) SELECT {generation}, 9999, 1,"
            " feature_count, feature_digest, sketch, 0, 9999 FROM {signature} WHERE doc_id = {a}"
        ],
        {"stray_signature": 1},
    ),
    "lost band rows": (
        ["DELETE FROM {band} WHERE doc_id = {a} AND band_no < 3"],
        {"missing_bands": 1},
    ),
    "a band row too many": (
        ["INSERT INTO {band} (generation_id, bucket_hash, doc_id) SELECT {generation}, 77, {a}"],
        {"stray_bands": 1},
    ),
    "a band row of another hash": (
        [
            "INSERT INTO {band} (generation_id, bucket_hash, doc_id)"
            " SELECT generation_id, bucket_hash + 1, doc_id FROM {band} WHERE doc_id = {a} AND band_no = 5",
            "DELETE FROM {band} WHERE bucket_hash ="
            " (SELECT min(bucket_hash) FROM {band} WHERE doc_id = {a} AND band_no = 5) AND doc_id = {a}",
        ],
        {"missing_bands": 1},
    ),
    "band rows of no document": (
        ["INSERT INTO {band} (generation_id, bucket_hash, doc_id) VALUES ({generation}, 77, 9999)"],
        {"stray_bands": 1},
    ),
    "another similarity": (
        ["UPDATE {similar_pair} SET similarity = 0.99 WHERE left_id = {a} AND right_id = {b}"],
        {"rescored_pair": 1},
    ),
    "other counts": (
        ["UPDATE {similar_pair} SET shared_bands = shared_bands - 1 WHERE left_id = {a}"],
        {"rescored_pair": 2},
    ),
    "a lost pair": (
        ["DELETE FROM {similar_pair} WHERE left_id = {a} AND right_id = {b}"],
        {"missing_pair": 1},
    ),
    "a pair of unlike documents": (
        [
            "INSERT INTO {similar_pair} (generation_id, left_id, right_id, shared_bands, estimate, similarity,"
            " intersection_size, union_size) VALUES ({generation}, {a}, {other}, 9, 0.9, 0.9, 9, 10)"
        ],
        {"untrue_pair": 1, "wrong_cluster": 1},
    ),
    "a member of another cluster": (
        [
            "UPDATE {cluster_member} SET is_survivor = false, cluster_id ="
            " (SELECT cluster_id FROM {cluster_member} WHERE doc_id = {other}) WHERE doc_id = {b}"
        ],
        {"wrong_cluster": 1},
    ),
    "a lost member": (["DELETE FROM {cluster_member} WHERE doc_id = {c}"], {"wrong_cluster": 1}),
    "another survivor": (
        ["UPDATE {cluster_member} SET is_survivor = (doc_id = {b}) WHERE doc_id IN ({a}, {b})"],
        {"wrong_survivor": 1},
    ),
    "all members": (["TRUNCATE {cluster_member}"], {"wrong_cluster": _FAMILIES}),
}  # fmt: skip
_SEEN_BY_ALL_ONLY = ("a band row too many", "band rows of no document")


@pytest.mark.parametrize("broken", some(list(_BREAKS), "every fault", kept=8))
def test_faults_are_reported_and_repaired(mended: Database, broken: str) -> None:
    commands, faults = _BREAKS[broken]
    before = _content(mended)
    _run(mended, *commands)
    assert _kinds(_all(mended)) == faults
    assert _kinds(verify_index(mended)) == ({} if broken in _SEEN_BY_ALL_ONLY else faults)
    outcome = _all(mended, repair=True)
    assert outcome.is_repaired and outcome.rebuilt is None, outcome
    assert _content(mended) == before


_DAMAGE: dict[str, tuple[list[LiteralString], str]] = {
    "a dropped index": (["DROP INDEX nearsim_index.band_100000001_bucket_hash_doc_id_idx"], "missing_index"),
    "an index is not valid": (
        ["UPDATE pg_index SET indisvalid = false WHERE indrelid = 'nearsim_index.band_100000001'::regclass"],
        "unusable_index",
    ),
    "an index misses a row": (
        [
            "UPDATE pg_index SET indisready = false WHERE indrelid = 'nearsim_index.band_100000001'::regclass",
            "INSERT INTO {band} (generation_id, bucket_hash, doc_id) VALUES ({generation}, 77, 1)",
            "UPDATE pg_index SET indisready = true WHERE indrelid = 'nearsim_index.band_100000001'::regclass",
        ],
        "wrong_index",
    ),
    "as after a crash": (["ALTER TABLE {band} SET UNLOGGED", "TRUNCATE {band}"], "unlogged_table"),
    "a dropped table": (["DROP TABLE {band}"], "missing_table"),
    "a table is no partition": (
        ["ALTER TABLE nearsim.signature DETACH PARTITION {signature}"],
        "detached_table",
    ),
    "a dropped trigger": (["DROP TRIGGER follow_delete ON {signature}"], "missing_constraint"),
}  # fmt: skip


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("own_tables")
@pytest.mark.parametrize("damage", some(list(_DAMAGE), "every damage", kept=2))
def test_damaged_tables_are_reported_and_the_index_rebuilt(database: Database, damage: str) -> None:
    commands, kind = _DAMAGE[damage]
    first, second = FIRST_OWN + 1, FIRST_OWN + 2
    before = _content(database, first)
    _run(database, *commands, generation=first)
    outcome = _all(database)
    assert _kinds(outcome) == {kind: 1}
    if kind != "wrong_index":
        assert _kinds(verify_index(database, sample=1)) == {kind: 1}
    repaired = _all(database, repair=True)
    assert repaired.is_repaired and repaired.rebuilt == second
    assert _content(database, second) == before
    with _plain(database) as connection:
        states = connection.execute("SELECT generation_id, state FROM nearsim.generation").fetchall()
    assert states == [(second, "live")]


def test_many_faults_lead_to_a_rebuild(database: Database) -> None:
    with Index(database, "default") as index:
        index.add(Document(f"more-{number}", body=f"{number} and nothing") for number in range(120))
    before = _content(database)
    _run(database, "DELETE FROM {band} WHERE doc_id % 5 <> 0")
    outcome = _all(database, repair=True)
    assert outcome.is_repaired and outcome.rebuilt == 2
    assert _content(database, 2) == before


def test_an_index_of_another_scheme_is_reported_and_rebuilt(database: Database) -> None:
    before = _content(database)
    _run(database, "UPDATE nearsim.generation SET fingerprint = repeat('0', 64)")
    assert _kinds(_all(database)) == {"other_scheme": 1}
    outcome = verify_index(database, repair=True)
    assert outcome.is_repaired and outcome.rebuilt == 2
    assert _content(database, 2) == before


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("own_tables")
@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("wrong_index", "UPDATE nearsim_index.signed_document SET head_id = NULL WHERE doc_id % 2 = 0"),
        ("wrong_index", "DELETE FROM nearsim_index.signed_document WHERE doc_id = {a}"),
        ("missing_index", "DROP INDEX nearsim_index.signed_document_head"),
        ("missing_index", "ALTER TABLE nearsim_index.signed_document DROP CONSTRAINT signed_document_pkey"),
    ],
)
def test_copies_of_signatures_for_views_are_restored(
    database: Database, kind: str, damage: LiteralString
) -> None:
    Reindex(database, "default").start()
    _run(database, damage)
    assert {(fault.kind, fault.table) for fault in _all(database).found.faults} == {(kind, "signed_document")}
    repaired = _all(database, repair=True)
    assert repaired.is_repaired and repaired.rebuilt is None
    for number in (1, 2):
        assert verify_index(database, generation=FIRST_OWN + number, sample=None).found.faults == ()


@pytest.mark.usefixtures("own_tables")
def test_an_index_that_is_not_live_is_not_rebuilt(database: Database) -> None:
    begun, first = Reindex(database, "default").start(), FIRST_OWN + 1
    _run(database, "DROP TABLE {band}", generation=begun.generation_id)
    with pytest.raises(ConflictError, match="is ready and cannot be repaired"):
        verify_index(database, generation=begun.generation_id, repair=True)
    Reindex(database, "default").pause()
    _run(database, "DELETE FROM {similar_pair}", generation=first)
    assert verify_index(database, generation=first, repair=True).is_repaired
    abandon: LiteralString = (
        "UPDATE nearsim.generation SET state = 'abandoned' WHERE generation_id = {generation}"
    )
    _run(database, abandon, generation=begun.generation_id)
    with pytest.raises(ConflictError, match="only a built one can be verified"):
        verify_index(database, generation=begun.generation_id)
