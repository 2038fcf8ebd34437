"""Lookup requests from SQL: answers of a worker, and errors without one."""

import random
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.statements import statement
from nearsim_db.store.signatures import lookup_requests
from nearsim_db.worker.worker import Worker
from tests.builders.workers import BLOCKED, Application, application, ask, running, wait_until

WORDS = [f"word{number}" for number in range(300)]
COLUMNS = "external_id, title, similarity, intersection_size, union_size, shared_bands, estimate"
ASK = "SELECT nearsim.ask(%s, title => %s, min_similarity => %s, deadline => '1 minute')"
READ = sql.SQL("SELECT {} FROM nearsim.similar_to_text(%s)").format(sql.SQL(COLUMNS))
CALL = "CALL nearsim.similar_to_text(%s, collection => %s, profile => %s, deadline => %s)"

Row = tuple[object, ...]


def texts() -> dict[str, str]:
    """Families of near-copies with twins among them."""
    rng = random.Random(8)
    bodies = {}
    for family in range(12):
        words = rng.choices(WORDS, k=40)
        for member in range(5):
            bodies[f"f{family}-{member}"] = " ".join(words)
            words[rng.randrange(40)] = rng.choice(WORDS) if member % 2 else words[0]
    return bodies


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    """An index of some families, every fifth document of which has a title."""
    with Index.connect(database_url) as index:
        index.create_profile("default", from_mapping({"bands": {"count": 64, "rows": 2}}))
        index.add(
            Document(name, f"title {at}" if at % 5 == 0 else None, body)
            for at, (name, body) in enumerate(texts().items())
        )
        yield index


@pytest.fixture
def other(database_url: str, index: Index) -> Iterator[Application]:
    """Another application."""
    with application(database_url) as connection:
        yield connection


def put(other: Application, body: str, title: str | None = None, min_similarity: float | None = None) -> int:
    """Insert a request; return its probe_id."""
    return int(ask(other, ASK, body, title, min_similarity))


def checked(index: Index, body: str, title: str | None = None, min_similarity: float = 0.0) -> list[Row]:
    """The results of Python, in the columns of SQL."""
    return [
        (
            one.external_id,
            one.title,
            one.similarity,
            one.intersection,
            one.union,
            one.shared_bands,
            pytest.approx(one.estimate, abs=1e-6),
        )
        for one in index.check(Document("", title, body), min_similarity)
    ]


@pytest.mark.slow("many look-ups")
def test_worker_answers_like_check(database_url: str, index: Index, other: Application) -> None:
    with running(database_url):
        requests = [
            (body, title, least)
            for body in [*texts().values(), "nothing of the sort", "!?"]
            for title, least in ((None, 0.0), ("title 5", 0.9))
        ]
        numbers = [put(other, body, title, least) for body, title, least in requests]
        answers = [other.execute(READ, (number,)).fetchall() for number in numbers]
        assert answers == [checked(index, *one) for one in requests]
        assert sum(map(len, answers)) > len(texts())
        body = texts()["f3-1"]
        row = other.execute(CALL, (body, None, "default", "1 minute")).fetchone()
        assert row is not None and isinstance(row[0], list)
        first = put(other, body)
        whole = other.execute("SELECT to_jsonb(f) FROM nearsim.similar_to_text(%s) AS f", (first,)).fetchall()
        assert row[0] == [one for (one,) in whole] and row[0]
        simple = sql.SQL("CALL nearsim.similar_to_text({})").format(sql.Literal("!?")).as_string(other)
        assert other.execute(simple.encode()).fetchone() == ([],)


def test_applications_write_requests_and_read_answers_in_sql(
    database_url: str, index: Index, other: Application
) -> None:
    body = texts()["f0-0"]
    other.execute(
        "INSERT INTO nearsim.probe (collection_id, body, deadline) SELECT collection_id, %s, now() + '1 minute'"
        " FROM nearsim.collection",
        (body,),
    )
    assert ask(other, "SELECT asked_by = current_user AND answered_at IS NULL FROM nearsim.probe") is True
    assert Worker(database_url).drain() == 0
    found = other.execute(
        "SELECT external_id, similarity FROM nearsim.probe_match JOIN nearsim.document USING (doc_id)"
        " ORDER BY similarity DESC, doc_id"
    ).fetchall()
    assert found == [(one.external_id, one.similarity) for one in index.similar_to_text(body)]
    # Documents deleted since are in no answer.
    other.execute("DELETE FROM nearsim.document WHERE external_id = 'f0-0'")
    rest = other.execute("SELECT external_id FROM nearsim.similar_to_text(1)").fetchall()
    assert rest == [(name,) for name, _ in found if name != "f0-0"]


def test_without_a_worker_a_request_times_out(database_url: str, other: Application) -> None:
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="no worker") as raised:
        other.execute(CALL, ("a text", None, None, "0.2 seconds"))
    assert "nearsim worker" in (raised.value.diag.message_hint or "")
    assert Worker(database_url).drain() == 0
    assert ask(other, "SELECT answered_at FROM nearsim.probe") is None
    with pytest.raises(psycopg.errors.NoDataFound, match="there is no probe 7"):
        other.execute("SELECT nearsim.similar_to_text(7)")


def test_open_transactions_cannot_wait_for_an_answer(database_url: str, other: Application) -> None:
    with psycopg.connect(database_url) as open_one:
        with pytest.raises(psycopg.errors.InvalidTransactionTermination) as raised:
            open_one.execute(CALL, ("a text", None, None, "1 minute"))
        assert "requires autocommit" in (raised.value.diag.context or "")
        open_one.rollback()
        put(open_one, "a text")
        with pytest.raises(
            psycopg.errors.ObjectNotInPrerequisiteState, match="was requested in this transaction"
        ):
            open_one.execute("SELECT nearsim.similar_to_text(2)")
        open_one.rollback()
        number = put(other, "a text")
        open_one.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="too old to see the answer"):
            open_one.execute("SELECT nearsim.similar_to_text(%s)", (number,))
    assert ask(other, "SELECT count(*) FROM nearsim.probe") == 1


@pytest.mark.slow("several profiles")
def test_requests_name_a_collection_and_profile_if_there_are_several(
    database_url: str, index: Index, other: Application
) -> None:
    index.create_profile("second", Recipe())
    number = put(other, "a text")
    assert Worker(database_url).drain() == 0
    assert other.execute(READ, (number,)).fetchall() == []
    other.execute("UPDATE nearsim.profile SET name = 'first' WHERE name = 'default'")
    number = put(other, "a text")
    assert Worker(database_url).drain() == 0
    with pytest.raises(psycopg.errors.RaiseException, match="several profiles; name one of: first, second"):
        other.execute(READ, (number,))
    other.execute("UPDATE nearsim.profile SET name = 'default' WHERE name = 'first'")
    index.database.create_collection("news")
    with pytest.raises(psycopg.errors.AmbiguousParameter, match="name one of: 'default', 'news'"):
        put(other, "a text")
    with pytest.raises(psycopg.errors.NoDataFound):
        other.execute("SELECT nearsim.ask('a text', collection => 'new')")
    other.execute("SELECT nearsim.ask('a text', collection => 'news', deadline => '1 minute')")
    assert Worker(database_url, "default").drain() == 0
    assert ask(other, "SELECT answered_at FROM nearsim.probe ORDER BY probe_id DESC LIMIT 1") is None
    assert Worker(database_url, "news").drain() == 0
    # An empty collection answers with nothing.
    assert ask(other, "SELECT error IS NULL FROM nearsim.probe ORDER BY probe_id DESC LIMIT 1")
    assert ask(other, "SELECT answered_at IS NOT NULL FROM nearsim.probe ORDER BY probe_id DESC LIMIT 1")


@pytest.mark.slow("starts a process")
def test_requests_do_not_wait_for_a_batch(database_url: str, index: Index, other: Application) -> None:
    with running(database_url), psycopg.connect(database_url) as holding:
        holding.execute("LOCK nearsim_index.signature_shared IN SHARE MODE")
        other.execute("UPDATE nearsim.document SET body = body || ' once more'")
        wait_until(other, BLOCKED)
        body = "some words that nobody else has written before or since"
        assert other.execute(READ, (put(other, body),)).fetchall() == []
        assert ask(other, BLOCKED)


@pytest.mark.slow("300 lookups by two processes")
def test_two_workers_answer_each_request_once(database_url: str, index: Index, other: Application) -> None:
    other.execute("CREATE TABLE public.answered AS SELECT 0 AS worker, probe_id FROM nearsim.probe")
    other.execute(
        "CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO public.answered VALUES (pg_backend_pid(), NEW.probe_id); RETURN NULL; END'"
    )
    other.execute(
        "CREATE TRIGGER note AFTER UPDATE ON nearsim.probe FOR EACH ROW EXECUTE FUNCTION public.note()"
    )
    bodies = [*texts().values()] * 5
    with running(database_url) as one, running(database_url) as two:
        one.wait_for_line("starts")
        two.wait_for_line("starts")
        numbers = [put(other, body) for body in bodies]
        for number, body in zip(numbers, bodies, strict=True):
            assert other.execute(READ, (number,)).fetchall() == checked(index, body)
    assert ask(other, "SELECT count(*) = count(DISTINCT probe_id) FROM public.answered") is True
    assert ask(other, "SELECT count(*) FROM public.answered") == len(bodies)


@pytest.mark.slow("kills a process")
def test_requests_of_a_killed_worker_are_answered_by_another(
    database_url: str, index: Index, other: Application
) -> None:
    body = texts()["f1-0"]
    with running(database_url) as killed, psycopg.connect(database_url) as holding:
        holding.execute("LOCK nearsim.probe_match IN SHARE MODE")
        number = put(other, body)
        wait_until(other, BLOCKED)
        killed.process.kill()
        killed.wait()
    assert ask(other, "SELECT count(answered_at) FROM nearsim.probe") == 0
    with running(database_url, "--once") as another:
        assert another.wait() == 0
    assert other.execute(READ, (number,)).fetchall() == checked(index, body) != []


@pytest.mark.slow("starts a worker")
def test_requests_are_deleted_when_old_and_with_their_collection_or_a_purge(
    database_url: str, index: Index, other: Application
) -> None:
    other.execute(
        "INSERT INTO nearsim.probe (collection_id, body, asked_at, deadline)"
        " SELECT collection_id, minutes, now() - '2 hours'::interval, now() - minutes * interval '1 minute'"
        " FROM nearsim.collection, unnest(ARRAY[59, 61]) AS minutes"
    )
    assert Worker(database_url).drain() == 0
    assert ask(other, "SELECT body FROM nearsim.probe") == "59"
    assert index.purge(["f0-0"]).probes == 1
    put(other, texts()["f0-1"])
    assert Worker(database_url).drain() == 0
    assert ask(other, "SELECT count(*) > 0 FROM nearsim.probe_match") is True
    delete_collection(index.database, "default")
    assert ask(other, "SELECT count(*) FROM nearsim.probe") == 0
    assert ask(other, "SELECT count(*) FROM nearsim.probe_match") == 0


@pytest.mark.slow("a process over several changes")
def test_caches_are_dropped_after_a_purge_or_a_promotion(
    database_url: str, index: Index, other: Application
) -> None:
    """A worker keeps answering while its cached state of the index changes."""
    body = texts()["f2-0"]
    with running(database_url):
        for change in ("purge", "profile"):
            assert other.execute(READ, (put(other, body),)).fetchall() == checked(index, body) != []
            if change == "purge":
                index.purge(["f2-1"])
            else:
                index.delete_profile("default")
                index.create_profile("default", from_mapping({"match": {"threshold": 0.95}}))
        assert other.execute(READ, (put(other, body),)).fetchall() == checked(index, body) != []
        with Index.connect(database_url, collection="news") as news:
            news.add([Document("one", body=body)])
        ask_default = "SELECT nearsim.ask(%s, collection => 'default')"
        before = other.execute(READ, other.execute(ask_default, (body,)).fetchone()).fetchall()
        for name, new_name in (("default", "old"), ("news", "default")):
            index.database.rename_collection(name, new_name)
        after = other.execute(READ, other.execute(ask_default, (body,)).fetchone()).fetchall()
        assert [row[0] for row in (*before, *after)] == ["f2-0", "one"]


def test_invalid_requests_are_refused(connection: Connection) -> None:
    inner = connection.backend
    inner.execute("INSERT INTO nearsim.collection (name) VALUES ('default')")
    insert = sql.SQL("INSERT INTO nearsim.probe (collection_id, {}) VALUES (1, {})")
    for column, value, constraint in (
        ("min_similarity", "NaN", "probe_min_similarity_possible"),
        ("min_similarity", "-0.1", "probe_min_similarity_possible"),
        ("min_similarity", "1.1", "probe_min_similarity_possible"),
        ("asked_at", "infinity", "probe_moments_finite"),
        ("deadline", "-infinity", "probe_moments_finite"),
    ):
        with pytest.raises(psycopg.errors.CheckViolation, match=constraint), inner.transaction():
            inner.execute(insert.format(sql.Identifier(column), value))
    ask = "SELECT nearsim.ask('a text', deadline => CAST(%s AS interval))"
    for deadline in ("0", "24 hours", "1 day", None):
        inner.execute(ask, (deadline,))
    waits = inner.execute("SELECT max(deadline - asked_at) > '23 hours 59 minutes' FROM nearsim.probe")
    assert waits.fetchone() == (True,)
    for deadline in ("30 days", "24:00:01", "-1 second", "1000000 years"):
        with pytest.raises(psycopg.errors.InvalidParameterValue), inner.transaction():
            inner.execute(ask, (deadline,))


def test_taking_requests_reads_only_waiting_ones(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute("INSERT INTO nearsim.collection (name) VALUES ('default')")
        connection.execute(
            "INSERT INTO nearsim.probe (collection_id, body, asked_at, deadline, answered_at)"
            " SELECT 1, 'a text', now() - interval '1 hour', now() + n * interval '1 second' - interval '1 hour',"
            " CASE WHEN n % 2 = 0 THEN now() END FROM generate_series(1, 3610) AS n"
        )
        connection.execute("ANALYZE nearsim.probe")
        explain = sql.SQL("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) ") + statement("take_probes")
        lines = connection.execute(explain, {"collection": None, "batch": 8}).fetchall()
        plan = "\n".join(str(line) for (line,) in lines)
        assert "Index Scan using probe_waiting" in plan
        assert "Rows Removed" not in plan and "Seq Scan on probe" not in plan
        assert [one.probe_id for one in lookup_requests.take(connection, None, 8)] == [
            3601,
            3603,
            3605,
            3607,
            3609,
        ]


@pytest.mark.slow("kills a connection of a process")
def test_a_lost_connection_is_reopened(database_url: str, index: Index, other: Application) -> None:
    body = texts()["f5-0"]
    with running(database_url) as worker:
        with psycopg.connect(database_url) as holding:
            holding.execute("LOCK nearsim.probe_match IN SHARE MODE")
            number = put(other, body)
            wait_until(other, BLOCKED)
            other.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE NOT granted")
        worker.wait_for_line("retrying until the server answers")
        assert other.execute(READ, (number,)).fetchall() == checked(index, body) != []
