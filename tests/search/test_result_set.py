"""Near-duplicates within a result set, against brute force, also while the index changes."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
import psycopg
import pytest

from nearsim_db import Deduper, Document, Index, Judgement
from nearsim_db.errors import InputError, RecipeError, SchemaError
from nearsim_db.similarity.profile import make_family
from nearsim_db.similarity.recipe import from_mapping
from tests.builders.result_set_texts import (
    asked,
    expected_duplicates,
    fill,
    names_far_from_threshold,
    rows_of,
    write_texts,
)
from tests.builders.selection import some
from tests.builders.word_sets import shingles, similarity

FAMILIES = ["fast_similarity", "minhash", "bottom_k"]
every_family = pytest.mark.parametrize("family", some(FAMILIES, "every family"))


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return write_texts()


@every_family
def test_results_equal_the_exact_sets_within_the_error(
    index: Index, texts: dict[str, str], family: str
) -> None:
    ids = fill(index, texts, family, k=512)
    for least in (0.4, 0.75):
        deduper = Deduper(index, least)
        assert deduper.standard_error == pytest.approx((least * (1 - least) / 512) ** 0.5)
        names = names_far_from_threshold(texts, list(texts), least, deduper.standard_error)
        assert len(names) > 30
        expected = expected_duplicates(texts, names, least)
        assert sum(of is not None for of in expected.values()) > 15
        assert asked(deduper, ids, names) == expected
        assert asked(deduper, ids, names[::-1]) == expected_duplicates(texts, names[::-1], least)


@pytest.mark.slow("several builds")
def test_default_threshold_is_that_of_the_live_recipe(index: Index) -> None:
    """Sets of fewer than k ids are compared exactly, so the pairs are those of the recipe."""
    rng = random.Random(6)
    texts = {f"d{number}": " ".join(rng.choices("abcd", k=12)) for number in range(40)}
    chosen = {"sketch": {"family": "bottom_k"}, "match": {"threshold": 0.35}}
    index.create_profile("p", from_mapping(chosen))
    index.add(Document(name, body=body) for name, body in texts.items())
    ids = {name: doc_id for name, (doc_id, _) in rows_of(index).items()}
    deduper = Deduper(index, recheck_seconds=0)
    expected = expected_duplicates(texts, list(texts), 0.35)
    assert asked(deduper, ids, list(texts)) == expected != expected_duplicates(texts, list(texts), 0.7)
    assert deduper.standard_error == pytest.approx((0.35 * 0.65 / 128) ** 0.5)
    assert asked(Deduper(index, 0.7), ids, list(texts)) == expected_duplicates(texts, list(texts), 0.7)
    index.delete_profile("p")
    index.create_profile("p", from_mapping(chosen | {"match": {"threshold": 0.8}}))
    assert asked(deduper, ids, list(texts)) == expected_duplicates(texts, list(texts), 0.8) != expected
    index.delete_profile("p")
    counted = {"shingle": {"scheme": "bag"}, "sketch": {"family": "projection"}, "match": {"threshold": 3}}
    index.create_profile("p", from_mapping(counted))
    family = make_family(from_mapping(counted))
    assert deduper.standard_error == pytest.approx(family.standard_error(1 / (1 + 3)))


def test_estimates_may_verify_bottom_k(index: Index, texts: dict[str, str]) -> None:
    index.create_profile(
        "p", from_mapping({"sketch": {"family": "bottom_k"}, "match": {"verify": "estimate"}})
    )
    index.add(Document(name, body=body) for name, body in texts.items())
    for pair in index.pairs():
        assert pair.intersection is not None and pair.union is not None
        assert pair.similarity == pair.intersection / pair.union == pytest.approx(pair.estimate, abs=1e-6)
        exact = similarity(texts[pair.left], texts[pair.right])
        if len(shingles(texts[pair.left])) < 128 and len(shingles(texts[pair.right])) < 128:
            assert pair.similarity == exact >= 0.7


def test_invalid_calls_are_refused_and_unknown_ids_not_indexed(index: Index, texts: dict[str, str]) -> None:
    ids = fill(index, texts)
    deduper, near = Deduper(index), ids["s0-0"]
    for least in (0.0, 1.1, -0.5):
        with pytest.raises(RecipeError, match=str(least)):
            Deduper(index, least)
    with pytest.raises(RecipeError):
        deduper.dedupe([1], min_similarity=0.0)
    with pytest.raises(InputError):
        deduper.dedupe([1, 2], [1])
    for doc_ids in ([None, 1], ["1", "2"], [1.5, 2], [1, 2**63], [-(2**63)]):
        with pytest.raises(InputError, match="doc_ids must be"):
            deduper.dedupe(cast(list[int], doc_ids))
    for revisions in ([0], [-1], [2**63], ["1"], [None]):
        with pytest.raises(InputError, match="revisions must be"):
            deduper.dedupe([near], cast(list[int], revisions))
    for external_id in (None, 1, b"s0-0"):
        with pytest.raises(InputError, match="external ids"):
            deduper.dedupe_external(["s0-0", cast(str, external_id)])
    assert deduper.dedupe([near], [1]) == [Judgement(near, None, True)]
    assert deduper.dedupe([*np.array([near, 2**63 - 1])]) == [
        Judgement(near, None, True),
        Judgement(2**63 - 1, None, False),
    ]
    assert deduper.dedupe_external(["a\0b", "s0-0", "\ud800", "a\0b"]) == [
        Judgement("a\0b", None, False),
        Judgement("s0-0", None, True),
        Judgement("\ud800", None, False),
        Judgement("a\0b", "a\0b", False),
    ]


def test_unindexed_ids_are_kept_and_marked_and_repeated_ids_are_duplicates(
    index: Index, texts: dict[str, str]
) -> None:
    ids = fill(index, texts)
    near, first, empty = ids["s0-0"], ids["s0-1"], ids["empty"]
    given = [-5, first, near, first, 10**9, empty, near, -5, empty]
    assert Deduper(index).dedupe(given) == [
        Judgement(-5, None, False),
        Judgement(first, None, True),
        Judgement(near, first, True),
        Judgement(first, first, True),
        Judgement(10**9, None, False),
        Judgement(empty, None, True),
        Judgement(near, first, True),
        Judgement(-5, -5, False),
        Judgement(empty, empty, True),
    ]
    assert Deduper(index).dedupe([]) == []


def test_external_ids_give_the_same_results(index: Index, texts: dict[str, str]) -> None:
    ids = fill(index, texts)
    deduper, names = Deduper(index), [*list(texts)[:30], "nobody", *list(texts)[:3], "no one", "nobody"]
    judged = deduper.dedupe_external(names)
    numbers = deduper.dedupe([ids.get(name, -1 if name == "nobody" else -2) for name in names])
    by_id = {doc_id: name for name, doc_id in ids.items()} | {-1: "nobody"}
    assert judged == [
        Judgement(name, None if one.duplicate_of is None else by_id[one.duplicate_of], one.indexed)
        for name, one in zip(names, numbers, strict=True)
    ]
    assert not judged[30].indexed and judged[-1].duplicate_of == "nobody"


def test_changed_text_is_compared_once_indexed(index: Index, texts: dict[str, str]) -> None:
    ids = fill(index, texts)
    deduper, pair = Deduper(index), [ids["s0-0"], ids["s1-0"]]
    revisions = [index.get(name)["revision"] for name in ("s0-0", "s1-0")]
    assert [one.keep for one in deduper.dedupe(pair)] == [True, True]
    assert [one.keep for one in deduper.dedupe(pair, revisions)] == [True, True]
    index.add([Document("s1-0", body=texts["s0-0"])])
    assert [one.keep for one in deduper.dedupe(pair)] == [True, False]
    later = [revisions[0], index.get("s1-0")["revision"]]
    assert [one.keep for one in deduper.dedupe(pair, later)] == [True, False]


def test_a_revision_that_is_not_indexed_yet_is_waited_for(
    index: Index, texts: dict[str, str], database_url: str
) -> None:
    ids = fill(index, texts)
    deduper, pair = Deduper(index), [ids["s0-0"], ids["s1-0"]]
    with psycopg.connect(database_url) as plain:
        plain.execute("UPDATE nearsim.document SET body = %s WHERE doc_id = %s", (texts["s0-0"], ids["s1-0"]))
    later = [index.get(name)["revision"] for name in ("s0-0", "s1-0")]
    assert [one.keep for one in deduper.dedupe(pair, later)] == [True, True]
    index.build()
    assert [one.keep for one in deduper.dedupe(pair, later)] == [True, False]


def test_given_revisions_avoid_further_reads(index: Index, texts: dict[str, str], database_url: str) -> None:
    """With connections refused, warm calls still return results; an unknown document needs the server."""
    ids = fill(index, texts)
    rows = {name: revision for name, (_, revision) in rows_of(index).items()}
    names, new = list(texts)[:-1], list(texts)[-1]
    deduper = Deduper(index, recheck_seconds=3_600)
    answer = deduper.dedupe([ids[name] for name in names], [rows[name] for name in names])
    with psycopg.connect(database_url, autocommit=True) as plain:
        plain.execute("ALTER TABLE nearsim.collection RENAME TO elsewhere")
    try:
        for order in (names, names[::-1], names):
            again = deduper.dedupe([ids[name] for name in order], [rows[name] for name in order])
            assert (again == answer) == (order is names)
        with pytest.raises(SchemaError):
            deduper.dedupe([ids[new]], [rows[new]])
    finally:
        with psycopg.connect(database_url, autocommit=True) as plain:
            plain.execute("ALTER TABLE nearsim.elsewhere RENAME TO collection")
    assert deduper.dedupe([ids[name] for name in names]) == answer


def test_purge_clears_the_caches(index: Index, texts: dict[str, str], database_url: str) -> None:
    ids = fill(index, texts)
    names = list(texts)
    revisions = rows_of(index)
    rows = [revisions[name][1] for name in names]
    deduper = Deduper(index, recheck_seconds=0)
    deduper.dedupe([ids[name] for name in names], rows)
    before = deduper._state
    assert before is not None and len(before.sketches) == len(names) and len(before.answers) == 1
    index.purge(["s0-0"])
    gone = deduper.dedupe([ids[name] for name in names], rows)[names.index("s0-0")]
    assert gone == Judgement(ids["s0-0"], None, False)
    after = deduper._state
    assert after is not None and len(after.sketches) == len(names) - 1
    with psycopg.connect(database_url) as plain:
        plain.execute("UPDATE nearsim.collection SET purged_at = now()")
    patient = Deduper(index, recheck_seconds=3_600)
    assert patient.dedupe([ids["s0-0"]]) == [gone]
    patient.dedupe(list(ids.values()))
    cached = patient._state
    index.purge(["s0-2"])
    patient.dedupe([ids["s0-1"]])
    assert cached is not None and patient._state is not None
    assert patient._state.sketches is not cached.sketches and len(patient._state.sketches) == 1


def judge(database_url: str, index: Index, pair: tuple[int, int], verdict: str) -> None:
    with psycopg.connect(database_url) as plain:
        plain.execute(
            "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why) "
            "SELECT collection_id, %s, %s, %s, 'somebody', 'a test' FROM nearsim.document WHERE doc_id = %s",
            (*sorted(pair), verdict, min(pair)),
        )


def test_vetoed_pairs_are_no_duplicates_and_pinned_ones_are(
    index: Index, texts: dict[str, str], database_url: str
) -> None:
    ids = fill(index, texts)
    deduper = Deduper(index, recheck_seconds=0)
    twin, other, apart = ids["s0-0"], ids["s0-1"], ids["s5-0"]
    given = [other, twin, apart, ids["empty"]]
    assert [one.duplicate_of for one in deduper.dedupe(given)] == [None, other, None, None]
    judge(database_url, index, (twin, other), "vetoed")
    judge(database_url, index, (apart, other), "pinned")
    judge(database_url, index, (ids["empty"], twin), "pinned")
    assert [one.duplicate_of for one in deduper.dedupe(given)] == [None, None, other, twin]
    backwards = [one.duplicate_of for one in deduper.dedupe(given[::-1])]
    assert backwards == [None, None, ids["empty"], apart]
    with psycopg.connect(database_url) as plain:
        plain.execute(
            "UPDATE nearsim.verdict SET undone_at = now(), undone_by = 'somebody', undone_why = 'a test'"
        )
    assert [one.duplicate_of for one in deduper.dedupe(given)] == [None, other, None, None]


def test_caches_are_bounded_and_a_lost_connection_reopened(
    index: Index, texts: dict[str, str], database_url: str
) -> None:
    ids = fill(index, texts)
    deduper = Deduper(index, sketch_bytes=10_000, answer_bytes=3_000)
    unbounded = Deduper(index)
    for place in range(0, len(texts) - 20, 5):
        names = list(texts)[place : place + 20]
        assert asked(deduper, ids, names) == asked(unbounded, ids, names)
        assert deduper._state is not None
        assert len(deduper._state.sketches) <= 8 and len(deduper._state.answers) <= 4
    before = unbounded.dedupe(list(ids.values()))
    with psycopg.connect(database_url, autocommit=True) as plain:
        plain.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    assert Deduper(index).dedupe(list(ids.values())) == before == deduper.dedupe(list(ids.values()))


@pytest.mark.slow("many threads")
def test_threads_share_a_deduper(index: Index, texts: dict[str, str]) -> None:
    ids = list(fill(index, texts).values())
    rng = random.Random(7)
    sets = [rng.sample(ids, 40) for _ in range(30)]
    alone = [Deduper(index).dedupe(one) for one in sets]
    shared = Deduper(index, sketch_bytes=40_000, recheck_seconds=0.001)
    started = threading.Barrier(6)

    def work(first: int) -> bool:
        started.wait()
        return all(shared.dedupe(sets[at % 30]) == alone[at % 30] for at in range(first, first + 60))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))
