"""dedupe in SQL against its rule in Python."""

import random
from itertools import combinations

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.store.driver import Connection
from tests.builders.sql_world import EMPTY, RULES, THRESHOLD, World
from tests.sql.test_similar import decide

DEDUPE = "SELECT place, doc_id, keep, duplicate_of, similarity, indexed FROM nearsim.dedupe(CAST(%s AS bigint[]), %s)"
UNKNOWN = 10**9

Verdicts = dict[tuple[int, int], str]
Answer = tuple[int, int, bool, int | None, float | None, bool]


def expected(known: World, asked: list[int], least: float, verdicts: Verdicts) -> list[Answer]:
    """Each document in turn: the most similar of those kept so far that reaches the least similarity."""
    decided: dict[int, tuple[int | None, float | None]] = {}
    rows: list[Answer] = []
    for place, doc_id in enumerate(asked, 1):
        if doc_id in decided:
            found = decided[doc_id] if decided[doc_id][0] is not None else (doc_id, 1.0)
        else:
            kept = [one for one, (duplicate_of, _) in decided.items() if duplicate_of is None]
            scores = {one: similarity_of(known, doc_id, one, least, verdicts) for one in kept}
            alike = {one: score for one, score in scores.items() if score is not None}
            best = max(alike, key=lambda one: alike[one], default=None)
            found = (None, None) if best is None else (best, alike[best] if alike[best] >= 0 else None)
            decided[doc_id] = found
        rows.append((place, doc_id, found[0] is None, *found, doc_id in known.texts))
    return rows


def similarity_of(known: World, one: int, other: int, least: float, verdicts: Verdicts) -> float | None:
    """The similarity of possible duplicates; -1 for pinned pairs without one."""
    verdict = verdicts.get((min(one, other), max(one, other)))
    stored = one in known.texts and other in known.texts and known.is_pair(one, other)
    if verdict == "pinned":
        return known.similarity(one, other) if stored else -1
    if verdict == "vetoed" or not stored or known.similarity(one, other) < least:
        return None
    return known.similarity(one, other)


def test_random_result_sets_with_and_without_verdicts(whole: World) -> None:
    rng, verdicts = random.Random(4), Verdicts()
    check_result_sets(whole, rng, verdicts)
    pairs = list(combinations(whole.doc_ids, 2))
    alike = [pair for pair in pairs if whole.is_pair(*pair)]
    verdicts |= dict.fromkeys(rng.sample(pairs, 40), "pinned") | dict.fromkeys(
        rng.sample(alike, 60), "vetoed"
    )
    verdicts |= dict.fromkeys(rng.sample(alike, 10), "pinned")
    for (left, right), verdict in verdicts.items():
        decide(whole, left, right, verdict)
    check_result_sets(whole, rng, verdicts)


def check_result_sets(known: World, rng: random.Random, verdicts: Verdicts) -> None:
    """Sets of several sizes, with repeated and unknown documents."""
    for size in (1, 2, 5, 10, 30, 62, 62, 62):
        asked = rng.sample([*known.doc_ids, UNKNOWN], size)
        asked += rng.choices(asked, k=size // 3)
        least = rng.choice([None, THRESHOLD, 0.8, 1.0])
        found = known.ask(DEDUPE, asked, least)
        assert found == expected(known, asked, THRESHOLD if least is None else least, verdicts)


def test_twins_of_one_head_are_duplicates_of_the_first(database_url: str) -> None:
    copies = [Document(f"c{number}", body="One and the same text, " * 3) for number in range(5)]
    with Index.connect(database_url) as index:
        known = World.build(index, RULES, copies)
        asked = known.doc_ids[::-1]
        found = known.ask("SELECT doc_id, keep, duplicate_of, similarity FROM nearsim.dedupe(%s)", asked)
        assert found == [(asked[0], True, None, None), *((one, False, asked[0], 1.0) for one in asked[1:])]
        decide(known, asked[0], asked[2], "vetoed")
        found = known.ask("SELECT duplicate_of FROM nearsim.dedupe(%s)", asked)
        assert found == [(None,), (asked[0],), (None,), (asked[0],), (asked[0],)]


def test_unindexed_and_unknown_documents_are_kept(whole: World) -> None:
    with Index.connect(whole.index.database.engine.url, collection="other") as index:
        index.add([Document("d1", body="some text")])
        there = index.get("d1")["doc_id"]
    empty = next(one for one, name in whole.names.items() if name == EMPTY)
    first = whole.doc_ids[2]
    for asked, least in (([first], 0.4), ([first], 1.1), ([first, there], None)):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            whole.ask(DEDUPE, asked, least)
    whole.ask(
        "INSERT INTO nearsim.document (collection_id, external_id, body) "
        "SELECT collection_id, 'new', body FROM nearsim.document WHERE doc_id = %s",
        first,
    )
    new = whole.row("SELECT nearsim.document_named('new') AS doc_id")["doc_id"]
    asked = [first, new, UNKNOWN, None, empty, UNKNOWN, None]
    found = whole.ask("SELECT doc_id, keep, duplicate_of, indexed FROM nearsim.dedupe(%s)", asked)
    assert found == [
        (first, True, None, True),
        (new, True, None, False),
        (UNKNOWN, True, None, False),
        (None, True, None, False),
        (empty, True, None, True),
        (UNKNOWN, False, UNKNOWN, False),
        (None, True, None, False),
    ]
    # A deleted document is unknown, although its signature is there until a worker comes by.
    twin = whole.doc_ids[3]
    whole.ask("DELETE FROM nearsim.document WHERE doc_id = %s", twin)
    kept = "SELECT keep, indexed FROM nearsim.dedupe(%s)"
    assert whole.ask(kept, [twin, twin]) == [(True, False), (False, False)]


def test_empty_and_unknown_ids(connection: Connection) -> None:
    assert connection.execute("SELECT * FROM nearsim.dedupe('{}')").fetchall() == []
    assert connection.execute("SELECT * FROM nearsim.dedupe(NULL)").fetchall() == []
    found = connection.execute("SELECT doc_id, keep, indexed FROM nearsim.dedupe('{7,8}')").fetchall()
    assert found == [(7, True, False), (8, True, False)]
