"""word_diff: runs of equal, removed and added words, against longest common subsequences by brute force."""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, LiteralString

import psycopg
import pytest

Session = psycopg.Connection[tuple[Any, ...]]

RUNS: LiteralString = "SELECT operation, words, word_count FROM nearsim.word_diff(%s, %s) ORDER BY place"


@pytest.fixture
def session(database_url: str) -> Iterator[Session]:
    """A session in a database with a collection."""
    with psycopg.connect(database_url, autocommit=True) as session:
        session.execute("INSERT INTO nearsim.collection (name) VALUES ('news')")
        yield session


def runs(session: Session, left: str, right: str) -> list[tuple[str, str | None, int]]:
    """Store two texts, and return what word_diff says of them."""
    session.execute("DELETE FROM nearsim.document")
    session.execute(
        "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, 'a', %s), (1, 'b', %s)",
        (left, right),
    )
    return [(operation, words, count) for operation, words, count in session.execute(RUNS, ("a", "b"))]


def longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""

    @cache
    def of(i: int, j: int) -> int:
        if i == len(left) or j == len(right):
            return 0
        if left[i] == right[j]:
            return 1 + of(i + 1, j + 1)
        return max(of(i + 1, j), of(i, j + 1))

    return of(0, 0)


def side(found: list[tuple[str, str | None, int]], operation: str) -> list[str]:
    """Return the words of one text, from the equal runs and its own."""
    return [
        word for kind, words, _ in found if kind in ("equal", operation) for word in (words or "").split()
    ]


def test_runs_rebuild_both_texts_with_the_fewest_changes(session: Session) -> None:
    rng = random.Random(7)
    for vocabulary in ("ab", "abcdef", "abcdefghijklmnopqrstuvwxyz"):
        for _ in range(25):
            left, right = (rng.choices(vocabulary, k=rng.randint(0, 30)) for _ in range(2))
            found = runs(session, " ".join(left), " ".join(right))
            assert (side(found, "removed"), side(found, "added")) == (left, right)
            changed = sum(count for operation, _, count in found if operation != "equal")
            assert changed == len(left) + len(right) - 2 * longest_common(left, right)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (
            "서울에서 열린 회의에서 정부는",
            "부산에서 열린 회의에서 정부는",
            [("removed", "서울에서", 1), ("added", "부산에서", 1), ("equal", "열린 회의에서 정부는", 3)],
        ),
        (
            "北京今天下雪了，气温零下5度。",
            "北京今天下雨了，气温零下5度。",
            [("equal", "北京今天下", 5), ("removed", "雪", 1), ("added", "雨", 1), ("equal", "了，气温零下5度。", 9)],
        ),
        (
            "Le prix naïf 1,250.50 €.",
            "Le prix  naïf\n1,250.51 €.",
            [("equal", "Le prix naïf", 3), ("removed", "1,250.50", 1), ("added", "1,250.51", 1), ("equal", "€.", 2)],
        ),
        ("यह हिन्दी है", "यह हिन्दी था", [("equal", "यह हिन्दी", 2), ("removed", "है", 1), ("added", "था", 1)]),
        ("same words", "same words", [("equal", "same words", 2)]),
        ("", "one", [("added", "one", 1)]),
        ("", "", []),
    ],
)  # fmt: skip
def test_words_of_every_script(
    session: Session, left: str, right: str, expected: list[tuple[str, str, int]]
) -> None:
    assert runs(session, left, right) == expected


def test_words_after_the_limit_are_counted(session: Session) -> None:
    words = [f"word{chr(97 + number % 7)}" for number in range(10_003)]
    assert runs(session, " ".join(words), "other words") == [
        ("removed", " ".join(words[:10_000]), 10_000),
        ("added", "other words", 2),
        ("not compared", None, 3),
    ]


def test_many_changes_end_in_a_single_one(session: Session) -> None:
    left = [
        f"{letter}{other}"
        for letter in "abcdefghijklmnopqrstuvwxyz"
        for other in "abcdefghijklmnopqrstuvwxyz"
    ]
    found = runs(session, " ".join(left), " ".join(f"x{word}" for word in left))
    assert side(found, "removed") == left
    assert side(found, "added") == [f"x{word}" for word in left]


def test_titles_are_compared_before_bodies(session: Session) -> None:
    session.execute(
        "INSERT INTO nearsim.document (collection_id, external_id, title, body)"
        " VALUES (1, 'a', 'Old title', 'one text'), (1, 'b', 'New title', 'one text')"
    )
    (a, b) = session.execute("SELECT min(doc_id), max(doc_id) FROM nearsim.document").fetchone() or (0, 0)
    expected = [("removed", "Old", 1), ("added", "New", 1), ("equal", "title\none text", 3)]
    assert session.execute(RUNS, ("a", "b")).fetchall() == expected
    by_number = "SELECT operation, words, word_count FROM nearsim.word_diff_by_doc_id(%s, %s) ORDER BY place"
    assert session.execute(by_number, (a, b)).fetchall() == expected


def test_documents_of_different_collections_are_not_compared(session: Session) -> None:
    session.execute("INSERT INTO nearsim.collection (name) VALUES ('other')")
    session.execute(
        "INSERT INTO nearsim.document (collection_id, external_id) VALUES (1, 'a'), (2, 'b'), (1, 'c')"
    )
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="are in different collections"):
        session.execute(RUNS, ("a", "b"))
    with pytest.raises(psycopg.errors.NoDataFound, match="there is no document 'z'"):
        session.execute(RUNS, ("a", "z"))
