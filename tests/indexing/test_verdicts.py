"""Verdicts: which are allowed, and that clusters obey them in every order of events."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.indexing import steps
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.records import WorkStage
from nearsim_db.search.answers import list_newest
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.generations import generation_states
from tests.builders.selection import some_combinations

Session = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def session(database_url: str) -> Iterator[Session]:
    """A session in a database with documents a, b and c of collection one, and a, b and d of collection two."""
    with psycopg.connect(database_url, autocommit=True) as session:
        session.execute("INSERT INTO nearsim.collection (name) VALUES ('one'), ('two')")
        session.execute(
            "INSERT INTO nearsim.document (collection_id, external_id)"
            " VALUES (1, 'a'), (1, 'b'), (1, 'c'), (2, 'a'), (2, 'b'), (2, 'd')"
        )
        session.execute("DELETE FROM nearsim.change")
        yield session


def ledger(session: Session) -> list[tuple[Any, ...]]:
    """All verdicts in order."""
    return session.execute(
        "SELECT left_id, right_id, verdict, by, why, undone_by, undone_why, undone_at IS NULL"
        " FROM nearsim.verdict ORDER BY verdict_id"
    ).fetchall()


def test_a_notice_says_when_clusters_follow_a_judgement(session: Session) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    for call in (
        "veto_pair('a', 'c', 'unlike')",
        "pin_pair_by_doc_id(1, 3, 'alike')",
        "undo_verdict('a', 'c', 'who knows')",
        "pin_survivor('c', 'the original')",
        "unpin_survivor('c', 'no original')",
    ):
        session.execute(sql.SQL("SELECT * FROM nearsim.") + sql.SQL(call))
    verdict, choice = (
        f"clusters follow the {judgement} when a worker or nearsim build next runs"
        for judgement in ("verdict", "choice")
    )
    assert told == [verdict, verdict, verdict, choice, choice]


def test_new_verdict_replaces_the_current_one_and_history_is_kept(session: Session) -> None:
    made = session.execute("SELECT * FROM nearsim.pin_pair_by_doc_id(3, 1, 'alike', 'anna')").fetchone()
    assert made is not None and made[1:7] == (1, 1, 3, "pinned", "anna", "alike")
    session.execute("SELECT nearsim.veto_pair_by_doc_id(1, 3, why => 'unlike', by => 'bert')")
    undone = session.execute(
        "SELECT * FROM nearsim.undo_verdict_by_doc_id(3, 1, 'who knows', 'carl')"
    ).fetchone()
    assert undone is not None and (undone[4], undone[9]) == ("vetoed", "who knows")
    session.execute("SELECT nearsim.pin_pair_by_doc_id(1, 3, 'alike')")
    (user,) = session.execute("SELECT current_user").fetchone() or ()
    assert ledger(session) == [
        (1, 3, "pinned", "anna", "alike", "bert", "unlike", False),
        (1, 3, "vetoed", "bert", "unlike", "carl", "who knows", False),
        (1, 3, "pinned", user, "alike", None, None, True),
    ]


def test_documents_may_be_named_by_external_id(session: Session) -> None:
    session.execute("SELECT nearsim.pin_pair('c', 'a', 'alike')")
    session.execute("SELECT nearsim.veto_pair('b', 'a', 'unlike', collection => 'two')")
    assert [row[:3] for row in ledger(session)] == [(1, 3, "pinned"), (4, 5, "vetoed")]
    session.execute("SELECT nearsim.undo_verdict('c' COLLATE \"POSIX\", 'a', 'thought again', 'anna')")
    assert [row[7] for row in ledger(session)] == [False, True]


@pytest.mark.parametrize(
    ("names", "arguments"),
    [
        (("pin_pair", "veto_pair", "undo_verdict"), "('c', 'a', 'a reason')"),
        (
            ("pin_pair_by_doc_id", "veto_pair_by_doc_id", "undo_verdict_by_doc_id"),
            "(3, 1, 'a reason')",
        ),
    ],
)
def test_the_reply_to_a_verdict_names_the_collection_and_both_documents(
    session: Session, names: Sequence[str], arguments: str
) -> None:
    session.execute("UPDATE nearsim.document SET title = upper(external_id) WHERE external_id <> 'c'")
    columns = "collection, left_external_id, right_external_id, left_title, right_title"
    for name in names:
        reply = session.execute(f"SELECT {columns} FROM nearsim.{name}{arguments}".encode())  # noqa: S608
        assert reply.fetchall() == [("one", "a", "c", "A", None)]


@pytest.mark.parametrize(
    ("names", "arguments"),
    [
        (("pin_survivor", "unpin_survivor"), "('d', 'a reason')"),
        (("pin_survivor_by_doc_id", "unpin_survivor_by_doc_id"), "(6, 'a reason')"),
    ],
)
def test_the_reply_to_a_choice_names_the_collection_and_the_document(
    session: Session, names: Sequence[str], arguments: str
) -> None:
    session.execute("UPDATE nearsim.document SET title = upper(external_id)")
    columns = "doc_id, collection, external_id, title"
    for name in names:
        reply = session.execute(f"SELECT {columns} FROM nearsim.{name}{arguments}".encode())  # noqa: S608
        assert reply.fetchall() == [(6, "two", "d", "D")]


INVALID = [
    ("pin_pair_by_doc_id(1, 1, 'x')", "about two documents, not about 1 and itself"),
    ("veto_pair_by_doc_id(1, 99, 'x')", "there is no document 99"),
    ("veto_pair_by_doc_id(1, NULL, 'x')", "there is no document null"),
    ("pin_pair_by_doc_id(3, 4, 'x')", "documents 3 and 4 are in different collections"),
    ("pin_pair_by_doc_id(1, 2, ' ')", "needs a reason"),
    ("pin_pair_by_doc_id(1, 2, NULL)", "needs a reason"),
    ("pin_pair_by_doc_id(1, 2, 'x', '')", "an author"),
    ("pin_survivor_by_doc_id(1, ' ')", "the choice of a document to keep needs a reason"),
    ("unpin_survivor_by_doc_id(1, 'x', '')", "needs a reason .* and an author"),
    ("unpin_survivor_by_doc_id(1, 'x')", "document 1 was not chosen to be kept"),
    ("undo_verdict_by_doc_id(1, 2, 'x')", "documents 1 and 2 have no verdict to undo"),
    ("pin_pair('a', 'a', 'x', collection => 'one')", "about two documents, not about 'a' and itself"),
    ("pin_pair('a', 'b', 'x')", "in several collections; name one of: one, two"),
    ("pin_pair('a', 'z', 'x')", "there is no document 'z'"),
    ("pin_pair('a', NULL, 'x')", "there is no document NULL"),
    ("pin_pair('a', 'd', 'x', collection => 'one')", "there is no document 'd' in collection 'one'"),
    ("pin_pair('c', 'd', 'x')", "documents 'c' and 'd' are in different collections"),
    ("undo_verdict('c', 'a', 'x')", "documents 'c' and 'a' have no verdict to undo"),
]


def test_invalid_verdicts_are_refused(session: Session) -> None:
    for call, message in INVALID:
        with pytest.raises(psycopg.Error, match=message) as refused:
            session.execute(sql.SQL("SELECT nearsim.") + sql.SQL(call))
        assert refused.value.sqlstate in ("P0002", "22023")
    assert ledger(session) == []


def test_later_of_two_concurrent_verdicts_applies(session: Session, database_url: str) -> None:
    with (
        psycopg.connect(database_url) as first,
        psycopg.connect(database_url, autocommit=True) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        first.execute("SELECT nearsim.pin_pair_by_doc_id(1, 2, 'alike', 'anna')")
        waiting = pool.submit(second.execute, "SELECT nearsim.veto_pair_by_doc_id(1, 2, 'unlike', 'bert')")
        first.commit()
        waiting.result()
    assert [row[2:] for row in ledger(session)] == [
        ("pinned", "anna", "alike", "bert", "unlike", False),
        ("vetoed", "bert", "unlike", None, None, True),
    ]


def test_many_concurrent_verdicts_succeed(session: Session, database_url: str) -> None:
    """The pair is given in both orders."""
    judge = (
        "SELECT nearsim.pin_pair_by_doc_id(1, 2, 'alike', %s)",
        "SELECT nearsim.veto_pair_by_doc_id(2, 1, 'unlike', %s)",
    )

    def decide(name: str) -> None:
        with psycopg.connect(database_url, autocommit=True) as own:
            for turn in range(60):
                own.execute(judge[turn % 2], (name,))

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(decide, "abcde"))
    judged = ledger(session)
    assert [sum(row[3] == name for row in judged) for name in "abcde"] == [60] * 5
    assert [row[-1] for row in judged].count(True) == 1


def test_clusters_are_queued_in_every_generation_and_documents_are_not_signed_again(
    session: Session, database_url: str
) -> None:
    session.execute("INSERT INTO nearsim.profile (collection_id, name) VALUES (1, 'p'), (2, 'q')")
    session.execute(
        "INSERT INTO nearsim.generation (profile_id, state, recipe, fingerprint) VALUES"
        " (1, 'building', '{}', ''), (1, 'live', '{}', ''), (1, 'retired', '{}', ''), (1, 'abandoned', '{}', ''),"
        " (2, 'live', '{}', '')"
    )
    session.execute("SELECT nearsim.veto_pair_by_doc_id(2, 3, 'unlike')")
    engine = open_engine(database_url)
    assert dispatch_changes(engine) == 2
    engine.dispose()
    queued = session.execute("SELECT generation_id, stage, doc_id FROM nearsim.work ORDER BY 1, 3").fetchall()
    assert queued == [(generation, "link", doc_id) for generation in (1, 2, 3) for doc_id in (2, 3)]


def test_verdicts_need_no_rights_on_the_queue(session: Session, database_url: str) -> None:
    session.execute("CREATE ROLE judge")
    session.execute("GRANT USAGE ON SCHEMA nearsim TO judge")
    session.execute("GRANT SELECT ON nearsim.document, nearsim.collection, nearsim.verdict TO judge")
    session.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA nearsim TO judge")
    session.execute("GRANT UPDATE (title) ON nearsim.document TO judge")
    session.execute(
        "GRANT INSERT (collection_id, left_id, right_id, verdict, by, why) ON nearsim.verdict TO judge"
    )
    session.execute("GRANT UPDATE (undone_by, undone_why, undone_at) ON nearsim.verdict TO judge")
    try:
        with psycopg.connect(database_url, autocommit=True) as judging:
            judging.execute("SET ROLE judge")
            judging.execute("SELECT nearsim.pin_pair('a', 'c', 'alike')")
            judging.execute("SELECT nearsim.undo_verdict_by_doc_id(1, 3, 'not so')")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                judging.execute("DELETE FROM nearsim.verdict")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                judging.execute("UPDATE nearsim.verdict SET why = 'other'")
    finally:
        session.execute("DROP OWNED BY judge")
        session.execute("DROP ROLE judge")
    assert [row[3] for row in ledger(session)] == ["judge"]
    assert session.execute("SELECT DISTINCT stage FROM nearsim.change").fetchall() == [("link",)]


STORY = "one two three four five six seven eight nine ten eleven twelve"
TEXTS = {"a": STORY, "b": STORY, "c": f"{STORY} thirteen", "x": "nothing that is like any of the others here"}


def clusters(index: Index) -> set[frozenset[str]]:
    """The members of every cluster."""
    return {frozenset(cluster.members) for cluster in index.clusters()}


def grouped(*names: str) -> set[frozenset[str]]:
    """Clusters of documents of one letter each."""
    return {frozenset(one) for one in names}


@some_combinations(("linked", [False, True]), ("existing", [False, True]))
def test_verdicts_during_a_build_are_applied(
    database_url: str, monkeypatch: pytest.MonkeyPatch, linked: bool, existing: bool
) -> None:
    """The verdict is committed before or after the build has linked."""
    with Index.connect(database_url) as index, psycopg.connect(database_url) as person:
        decide = "SELECT nearsim.veto_pair('a', 'b', 'two'), nearsim.pin_pair('b', 'x', 'one') FROM nearsim.generation"
        place, name = (generation_states, "finish_build") if linked else (steps, "rebuild_clusters")
        done = getattr(place, name)

        def interrupted(*given: object) -> object:
            if not existing:
                person.execute(decide)
            person.commit()
            return done(*given)

        monkeypatch.setattr(place, name, interrupted)
        index.create_profile("default", override(Recipe(), ["match.threshold=0.5"]))
        with index.database.transaction() as connection:
            for external_id, body in TEXTS.items():
                connection.execute(
                    "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)",
                    (external_id, body),
                )
        if existing:
            person.execute(decide)
        index.build()
        assert clusters(index) == grouped("ac", "bx")


@pytest.mark.parametrize("linkage", ["connected", "representative"])
def test_pinned_documents_are_linked_when_both_are_signed(database_url: str, linkage: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), [f"cluster.linkage={linkage}"]))
        index.add([Document("x", body=TEXTS["x"])])
        with index.database.transaction() as connection:
            connection.execute(
                "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, 'empty', '')"
            )
            connection.execute("SELECT nearsim.pin_pair('x', 'empty', 'somebody knows')")
        (generation,) = list_newest(index.database, index.collection)
        context = index._contexts.make(generation)
        assert context is not None
        dispatch_changes(index.database.engine)
        with index.database.lease() as lease_id:
            stages: list[WorkStage] = ["link", "sign"]
            for stage in stages:
                assert Runner(index.database.engine, context).work(stage, lease_id) > 0
        assert clusters(index) == set()
        index.build()
        assert clusters(index) == {frozenset({"x", "empty"})}
        index.delete(["empty"])
        assert clusters(index) == set()
        assert [verdict.right[0] for verdict in index.verdicts()] == ["#"]


def test_verdicts_persist_after_text_changes_and_new_profiles(database_url: str) -> None:
    documents = [Document(name, body=body) for name, body in TEXTS.items()]
    with Index.connect(database_url, profile="default") as index:
        index.create_profile("default", override(Recipe(), ["match.threshold=0.5"]))
        index.add(documents)
        index.veto("a", "b", "two")
        index.veto("c", "a", "two", by="anna")
        assert clusters(index) == grouped("bc")
        index.add([Document("b", body=TEXTS["x"]), Document("x", body=TEXTS["a"])])
        assert clusters(index) == grouped("ax")
        index.create_profile("other", override(Recipe(), ["match.threshold=0.6"]))
        index.profile = "other"
        assert clusters(index) == grouped("ax")
        index.add(documents)
        index.undo("a", "c", "one", by="anna")
        assert clusters(index) == grouped("ac")
        assert [(one.left, one.right, one.by) for one in index.verdicts("anna", undone=True)] == [
            ("a", "c", "anna")
        ]


def test_purge_removes_verdicts_and_relinks_clusters(database_url: str) -> None:
    """Two chains are linked in the middle and separated by a veto on their ends, one of which is purged."""
    chain = [
        Document(name, body=" ".join(f"w{one}" for one in range(first, first + 12)))
        for name, first in zip("abcdef", (0, 2, 4, 8, 10, 12), strict=True)
    ]
    with Index.connect(database_url) as index:
        index.create_profile(
            "default",
            override(Recipe(), ["match.threshold=0.4", "shingle.k=1", "bands.rows=1", "bands.count=64"]),
        )
        index.add(chain)
        assert clusters(index) == grouped("abcdef")
        index.veto("a", "f", "two")
        assert clusters(index) == grouped("abc", "def")
        purged = index.purge(["f"])
        assert purged.verdicts == 1 and purged.work == 0
        assert clusters(index) == grouped("abcde")
        assert list(index.verdicts(undone=True)) == []


def test_python_returns_the_verdict_with_the_documents(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.add([Document("a", "First", "some text"), Document("b", "Second", "other words")])
        pinned = index.pin("b", "a", "alike", by="anna")
        assert list(index.verdicts()) == [pinned]
        assert (pinned.collection, pinned.left, pinned.right) == ("default", "a", "b")
        assert (pinned.left_title, pinned.right_title, pinned.verdict) == ("First", "Second", "pinned")
        undone = index.undo("a", "b", "unlike", by="bert")
        assert (undone.left_title, undone.verdict, undone.undone_by) == ("First", "pinned", "bert")


def test_python_returns_the_choice_with_the_document(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.add([Document("a", "First", "some text"), Document("b", "Second", "some text")])
        choice = index.keep("b", "the better one", by="anna")
        assert (choice.collection, choice.id, choice.title, choice.by) == ("default", "b", "Second", "anna")
        assert index.keep("b", "not so", by="bert", undo=True).undone_why == "not so"
