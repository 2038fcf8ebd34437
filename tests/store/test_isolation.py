"""Collections kept apart: what a reader, and a writer, of one tenant can find out about another, or do to it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from nearsim_db import Document, Index, access
from nearsim_db.database import Database
from nearsim_db.records import GenerationId
from nearsim_db.store.statements import PARENTS, Leaves
from tests.conftest import _SERVERS, Servers
from tests.logins import login, user_of
from tests.store.function_trials import DRAWING, TRIALS, WRITING

Connection = psycopg.Connection[tuple[Any, ...]]
Row = dict[str, Any]

# All ids of the other tenant are such numbers, and all its texts and names hold the word.
FIRST = 1_770_000_000
FOREIGN = re.compile(r"\b177\d{7}\b|secret")
ALIKE = ["the storm closed the ferry for a day", "the storm closed the ferry for a week"]

SHOWN: LiteralString = "generation_id, doc_id, head_id, revision, feature_count, numbers_digest"
# What isolation hides altogether; every partition is hidden, too.
HIDDEN = {"band", "change", "event_draft", "lease", "work"}


def tenant(url: str, name: str, word: str) -> dict[str, object]:
    """A collection with a pair, a twin and a verdict: what it can be asked about."""
    with Index.connect(url, collection=name) as index:
        texts = [*ALIKE, ALIKE[0], f"pears are {word} late this year and few"]
        index.add(
            [Document(f"{word}-{at}", title=word, body=text, source=word) for at, text in enumerate(texts)]
        )
        (generation, _) = next(one for one in index.profiles())
    with psycopg.connect(url) as connection:
        connection.execute("SELECT nearsim.veto_pair(%s, %s, 'for a test', 'x')", (f"{word}-1", f"{word}-3"))
        asked = connection.execute(
            "SELECT nearsim.ask(%s, collection => %s, deadline => '0 seconds')", (f"a {word}", name)
        ).fetchone()
        ids = connection.execute(
            "SELECT doc_id FROM nearsim.document WHERE collection_id = %s ORDER BY 1",
            (generation.collection_id,),
        ).fetchall()
    assert asked
    doc, like, twin, _ = (row[0] for row in ids)
    return {
        "collection": name,
        "collection_id": generation.collection_id,
        "generation": generation.generation_id,
        "profile": "default",
        "doc": doc,
        "like": like,
        "twin": twin,
        "id": f"{word}-0",
        "twin_id": f"{word}-2",
        "probe": asked[0],
    }


NOWHERE: dict[str, object] = {
    "collection": "nowhere",
    "collection_id": 880_000,
    "generation": 880_000,
    "profile": "default",
    "doc": 880_000,
    "like": 880_001,
    "twin": 880_002,
    "id": "nowhere-0",
    "twin_id": "nowhere-2",
    "probe": 880_000,
}


def outcome(connection: Connection, trial: LiteralString, given: dict[str, object]) -> list[str]:
    """What the server answers, rows or the error, as texts; nothing stays."""
    call = sql.SQL(trial).format(**{name: sql.Literal(value) for name, value in given.items()})
    try:
        with connection.transaction(force_rollback=True):
            return [str(row) for row in connection.execute(call).fetchall()]
    except psycopg.Error as error:
        told = error.diag
        return [f"{error.sqlstate} {told.message_primary} {told.message_detail} {told.message_hint}"]


def told_apart(answers: list[str], given: dict[str, object]) -> list[str]:
    """The same without what was asked for, so that answers about different things compare."""
    words = sorted({str(value) for value in given.values()}, key=len, reverse=True)
    return [re.sub(rf"\b({'|'.join(map(re.escape, words))})\b", "?", answer) for answer in answers]


@dataclass
class World:
    """A tenant whose reader looks round, alone and then with another tenant in the same database."""

    url: str
    reader: str
    writer: str
    own: dict[str, object]
    foreign: dict[str, object]
    alone: dict[str, list[str]]
    together: dict[str, list[str]]


def relations(url: str) -> dict[str, bool]:
    """Tables and views of the schema, each with whether it is a view."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, relkind = 'v' FROM pg_class "
            "WHERE relnamespace = 'nearsim'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1"
        ).fetchall()
    return dict(rows)


def functions(url: str, role: str) -> set[str]:
    """Functions that a role may call and that are not constant in their arguments, by signature."""
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path = pg_catalog")
        rows = connection.execute(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'nearsim'::regnamespace "
            "AND (provolatile <> 'i' OR prosecdef) AND has_function_privilege(%s, oid, 'EXECUTE')",
            (role,),
        ).fetchall()
    return {str(row[0]).removeprefix("nearsim.") for row in rows}


def look_round(url: str, reader: str, own: dict[str, object], names: list[str]) -> dict[str, list[str]]:
    """Everything that a reader can read: all rows of these tables and views, and the answers of all functions."""
    found: dict[str, list[str]] = {}
    with psycopg.connect(reader) as connection:
        for name in names:
            columns = sql.SQL(SHOWN if name == "signature" else "*")
            reading = sql.SQL("SELECT {} FROM {} AS found").format(columns, sql.Identifier("nearsim", name))
            try:
                with connection.transaction(force_rollback=True):
                    found[name] = sorted(str(row) for row in connection.execute(reading).fetchall())
            except pg.InsufficientPrivilege:
                found[name] = ["refused"]
        for signature, trial in TRIALS.items():
            found[signature] = outcome(connection, trial, own)
    return found


def make_busy(url: str, given: dict[str, object]) -> None:
    """Let a tenant have work waiting and failing, a table that is followed, and noted changes of every kind."""
    with psycopg.connect(url) as connection:
        for command in (
            "INSERT INTO nearsim.attachment (collection_id, relation, id_column, text_column) "
            "VALUES ({collection_id}, 'pg_catalog.pg_class', 'secret', 'secret')",
            "INSERT INTO nearsim.change (collection_id, doc_id) "
            "VALUES ({collection_id}, {doc}), ({collection_id}, NULL)",
            "INSERT INTO nearsim.change (collection_id, external_id) VALUES ({collection_id}, {id})",
            "INSERT INTO nearsim.work (generation_id, stage, doc_id) VALUES ({generation}, 'compare', 0)",
            "INSERT INTO nearsim.work (generation_id, stage, doc_id, attempts, error) "
            "VALUES ({generation}, 'sign', {doc}, 2, 'secret')",
            "INSERT INTO nearsim.lease (worker) VALUES ('secret:1')",
        ):
            values = {name: sql.Literal(value) for name, value in given.items()}
            connection.execute(sql.SQL(command).format(**values))


@pytest.fixture(scope="module", params=sorted(_SERVERS, reverse=True), ids=lambda major: f"pg{major}")
def world(request: pytest.FixtureRequest, servers: Servers) -> Iterator[World]:
    """North is there, and its reader looks round; then comes the other, and it looks again."""
    admin, url = servers.new_database(request.param)
    with login(url, "nearsim_reader") as reader, login(url, "nearsim_writer") as writer:
        own = tenant(url, "north", "plain")
        with Database.connect(url) as database:
            access.grant(database, user_of(reader), "reader", ["north"])
            access.grant(database, user_of(writer), "writer", ["north"])
            access.set_isolation(database, wanted=True)
        with psycopg.connect(reader) as connection:
            asked = connection.execute("SELECT nearsim.ask('mine', deadline => '0 seconds')").fetchone()
            assert asked
            own["probe"] = asked[0]
        names = list(relations(url))
        alone = look_round(url, reader, own, names)
        with psycopg.connect(url) as connection:
            for table, column in (
                ("collection", "collection_id"),
                ("profile", "profile_id"),
                ("generation", "generation_id"),
                ("document", "doc_id"),
                ("verdict", "verdict_id"),
                ("event", "event_id"),
                ("probe", "probe_id"),
            ):
                parts = {"table": sql.Identifier("nearsim", table), "column": sql.Identifier(column)}
                connection.execute(
                    sql.SQL("ALTER TABLE {table} ALTER {column} RESTART WITH {first}").format(
                        **parts, first=sql.Literal(FIRST)
                    )
                )
        foreign = tenant(url, "secret", "secret")
        make_busy(url, foreign)
        together = look_round(url, reader, own, names)
        yield World(url, reader, writer, own, foreign, alone, together)
    with admin.connect() as connection:
        connection.exec_driver_sql(f'DROP DATABASE "{url.split("/")[3].split("?")[0]}" WITH (FORCE)')
    admin.dispose()


def test_every_function_is_tried(world: World) -> None:
    readers = functions(world.url, "nearsim_reader")
    assert readers == set(TRIALS), "say in TRIALS how to try it"
    assert functions(world.url, "nearsim_writer") - readers == set(WRITING), "say in WRITING how to try it"


def test_a_reader_sees_its_own_tenant(world: World) -> None:
    seen = world.alone
    assert len(seen["document"]) == 4 and len(seen["documents"]) == 4
    assert len(seen["pairs"]) == 3 and len(seen["clusters"]) == 1 and len(seen["duplicates"]) == 2
    assert len(seen["similar_pair"]) == 1 and len(seen["cluster_member"]) == 3
    assert len(seen["collection"]) == len(seen["profiles"]) == len(seen["generations"]) == 1
    assert (
        len(seen["verdict"]) == len(seen["verdicts"]) == 1
        and len(seen["collection_access"]) == 1
        and len(seen["probe"]) == 1
    )
    assert len(seen["similar_to(bigint,double precision,integer,text)"]) == 2
    assert len(seen["dedupe(bigint[],double precision,text)"]) == 2


def test_nothing_changes_for_a_reader_when_another_tenant_comes(world: World) -> None:
    for name, seen in world.alone.items():
        if name not in DRAWING:
            assert world.together[name] == seen, name


def test_no_row_tells_of_the_other_tenant(world: World) -> None:
    for name, seen in world.together.items():
        if name not in DRAWING:
            assert not [row for row in seen if FOREIGN.search(row)], name
    with psycopg.connect(world.url) as connection:
        everything = look_round(world.url, world.url, world.foreign, list(relations(world.url)))
        assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (8,)
    # The oracle itself: whoever may see the other tenant does see it by these words and numbers.
    telling = {name for name, seen in everything.items() if any(FOREIGN.search(row) for row in seen)}
    assert {
        "document",
        "documents",
        "pairs",
        "clusters",
        "verdict",
        "verdicts",
        "event",
        "signature",
        "probe",
    } <= telling


def test_tables_are_read_under_a_policy_or_not_at_all(world: World) -> None:
    refused = {name for name, seen in world.alone.items() if seen == ["refused"]}
    assert {name for name in refused if not re.search(r"_\d+$", name)} == HIDDEN | {"backlog"}
    with psycopg.connect(world.reader) as connection:
        for name, is_view in relations(world.url).items():
            reading = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("nearsim", name))
            if name in HIDDEN or re.search(r"_\d+$", name):
                with pytest.raises(pg.InsufficientPrivilege), connection.transaction():
                    connection.execute(reading)
            elif not is_view:
                connection.execute(reading)
                row = connection.execute("SELECT row_security_active(%s)", (f"nearsim.{name}",)).fetchone()
                assert row == (name != "alembic_version",), name
        for column in ("sketch", "feature_digest", "*"):
            with pytest.raises(pg.InsufficientPrivilege), connection.transaction():
                selected = sql.SQL(column) if column == "*" else sql.Identifier(column)
                connection.execute(sql.SQL("SELECT {} FROM nearsim.signature").format(selected))
    with psycopg.connect(world.url) as connection:
        assert (
            connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'nearsim'::regnamespace AND relkind = 'v' "
                "AND NOT coalesce(reloptions @> ARRAY['security_invoker=true'], false)"
            ).fetchall()
            == []
        )


def test_what_is_hidden_is_answered_for_as_what_is_not_there(world: World) -> None:
    with psycopg.connect(world.reader) as reading, psycopg.connect(world.writer) as writing:
        for signature, trial in {**TRIALS, **WRITING}.items():
            connection = writing if signature in WRITING else reading
            hidden = told_apart(outcome(connection, trial, world.foreign), world.foreign)
            missing = told_apart(outcome(connection, trial, NOWHERE), NOWHERE)
            assert hidden == missing, signature
            if "{like}" not in trial and "{twin}" not in trial:
                continue
            mixed = {**world.own, "like": world.foreign["like"], "twin": world.foreign["twin"]}
            absent = {**world.own, "like": NOWHERE["like"], "twin": NOWHERE["twin"]}
            hidden, missing = outcome(connection, trial, mixed), outcome(connection, trial, absent)
            assert told_apart(hidden, world.foreign) == told_apart(missing, NOWHERE), signature


def scans(url: str, generation: object) -> int:
    """How often a generation's own tables and their indexes were read so far."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_user_tables WHERE relname ~ %s",
            (f"_{generation}$",),
        ).fetchone()
    assert row
    return int(row[0])


def test_functions_and_views_do_no_work_on_the_other_tenant(world: World) -> None:
    views = [name for name, is_view in relations(world.url).items() if is_view]
    before = scans(world.url, world.foreign["generation"]), scans(world.url, world.own["generation"])
    with psycopg.connect(world.reader) as connection:
        for given in (world.own, world.foreign):
            for trial in TRIALS.values():
                outcome(connection, trial, given)
        for name in views:
            reading = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {}").format(
                sql.Identifier("nearsim", name)
            )
            try:
                with connection.transaction():
                    (plan,) = connection.execute(reading).fetchone() or (None,)
            except pg.InsufficientPrivilege:
                continue
            for node in nodes(plan[0]["Plan"]):
                if str(node.get("Relation Name", "")).endswith(f"_{world.foreign['generation']}"):
                    assert node["Actual Loops"] == 0, (name, json.dumps(node))
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.commit()
    after = scans(world.url, world.foreign["generation"]), scans(world.url, world.own["generation"])
    assert after[0] == before[0] and after[1] > before[1]


def nodes(plan: Row) -> Iterator[Row]:
    """All nodes of a plan."""
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


def test_functions_of_ones_own_meet_no_row_of_the_other_tenant(world: World) -> None:
    met: list[str] = []
    with psycopg.connect(world.reader) as connection:
        connection.add_notice_handler(lambda notice: met.append(str(notice.message_primary)))
        connection.execute(
            "CREATE FUNCTION pg_temp.peek(text) RETURNS boolean COST 0.0000001 LANGUAGE plpgsql "
            "AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
        )
        for name in (
            "document",
            "documents",
            "pairs",
            "clusters",
            "verdict",
            "verdicts",
            "collection",
            "event",
            "generation",
        ):
            peeking = sql.SQL("SELECT FROM {} AS met WHERE pg_temp.peek(met::text)")
            connection.execute(peeking.format(sql.Identifier("nearsim", name)))
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT FROM nearsim.document WHERE title::integer = 1")
    assert len(met) > 10 and not [row for row in met if FOREIGN.search(row)]


def test_statistics_of_the_other_tenant_are_not_shown(world: World) -> None:
    with psycopg.connect(world.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    with psycopg.connect(world.reader) as connection:
        for view in ("pg_stats", "pg_stats_ext", "pg_sequences"):
            rows = connection.execute(
                sql.SQL("SELECT * FROM {} AS shown WHERE schemaname = 'nearsim'").format(sql.Identifier(view))
            ).fetchall()
            told = [row for row in rows if FOREIGN.search(str(row[3:]))]
            assert not told, (view, told)


def test_a_reader_without_any_collection_sees_nothing(world: World) -> None:
    with login(world.url, "nearsim_reader") as reader:
        found = look_round(world.url, reader, world.own, list(relations(world.url)))
    assert {name for name in relations(world.url) if found[name] not in ([], ["refused"])} == {
        "alembic_version",
        "functions",
    }


REFUSED: list[LiteralString] = [
    "INSERT INTO nearsim.document (collection_id, external_id) VALUES ({collection_id}, 'mine')",
    "INSERT INTO nearsim.document (collection_id, external_id) VALUES ({collection_id}, {id}) "
    "ON CONFLICT (collection_id, external_id) DO UPDATE SET body = 'overwritten'",
    "INSERT INTO nearsim.document (collection_id, external_id) VALUES ({collection_id}, {id}) ON CONFLICT DO NOTHING",
    "UPDATE nearsim.document SET collection_id = {collection_id}",
    "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why) "
    "VALUES ({collection_id}, {doc}, {like}, 'pinned', 'me', 'me')",
    "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why) "
    "SELECT collection_id, {doc}, {like}, 'pinned', 'me', 'me' FROM nearsim.collection",
    "INSERT INTO nearsim.probe (collection_id, body) VALUES ({collection_id}, 'what')",
]


def test_a_writer_cannot_reach_into_another_tenant(world: World) -> None:
    with psycopg.connect(world.url) as connection:
        tables = ("document", "verdict", "probe", "collection", "change")
        before = {table: everything(connection, table) for table in tables}
    with psycopg.connect(world.writer) as connection:
        for command in REFUSED:
            hidden = told_apart(outcome(connection, command, world.foreign), world.foreign)
            assert hidden == told_apart(outcome(connection, command, NOWHERE), NOWHERE), command
            assert hidden[0].startswith("42501 new row violates row-level security policy"), hidden
        parts = {name: sql.Literal(value) for name, value in world.foreign.items()}
        for silent in (
            "UPDATE nearsim.document SET body = 'overwritten' WHERE doc_id = {doc}",
            "UPDATE nearsim.document SET body = 'overwritten' WHERE external_id = {id}",
            "DELETE FROM nearsim.document WHERE collection_id = {collection_id}",
            "UPDATE nearsim.verdict SET undone_at = now(), undone_by = 'me', undone_why = 'me' "
            "WHERE collection_id = {collection_id}",
        ):
            assert connection.execute(sql.SQL(silent).format(**parts)).rowcount == 0, silent
        for forbidden in (
            "INSERT INTO nearsim.document (doc_id, collection_id, external_id) OVERRIDING SYSTEM VALUE "
            "VALUES ({doc}, 1, 'mine')",
            "UPDATE nearsim.document SET revision = 1",
            "INSERT INTO nearsim.collection (name) VALUES ('secret')",
            "INSERT INTO nearsim.collection_access (collection_id, role_name) VALUES ({collection_id}, current_user)",
            "SELECT nextval('nearsim.document_doc_id_seq')",
            "TRUNCATE nearsim.document",
            "SELECT nearsim.set_isolation(false)",
            "ALTER TABLE nearsim.document DISABLE ROW LEVEL SECURITY",
        ):
            with pytest.raises(pg.InsufficientPrivilege), connection.transaction():
                connection.execute(sql.SQL(forbidden).format(**parts))
        with pytest.raises(psycopg.Error), connection.transaction():
            connection.execute("SET LOCAL row_security = off")
            connection.execute("SELECT * FROM nearsim.document")
        connection.commit()
    with psycopg.connect(world.url) as connection:
        assert {table: everything(connection, table) for table in tables} == before


def everything(connection: Connection, table: str) -> list[tuple[Any, ...]]:
    """All rows of a table."""
    return connection.execute(
        sql.SQL("SELECT * FROM {} AS found ORDER BY found::text").format(sql.Identifier("nearsim", table))
    ).fetchall()


def test_a_writer_writes_its_own_tenant(world: World) -> None:
    with psycopg.connect(world.writer) as connection, connection.transaction(force_rollback=True):
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, 'new', 'x')",
            (world.own["collection_id"],),
        )
        upsert = (
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, 'plain-0', 'y') "
            "ON CONFLICT (collection_id, external_id) DO UPDATE SET body = excluded.body RETURNING doc_id"
        )
        assert connection.execute(upsert, (world.own["collection_id"],)).fetchone() == (world.own["doc"],)
        connection.execute("SELECT nearsim.pin_pair('plain-0', 'plain-3', 'they belong together')")
        connection.execute("SELECT nearsim.undo_verdict('plain-0', 'plain-3', 'they do not')")
        assert connection.execute("DELETE FROM nearsim.document").rowcount == 5


def test_who_may_only_read_a_collection_does_not_write_it(world: World) -> None:
    with login(world.url, "nearsim_writer") as user:
        with Database.connect(world.url) as database:
            access.grant(database, user_of(user), "reader", ["north"])
        with psycopg.connect(user) as connection:
            assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (4,)
            assert connection.execute("UPDATE nearsim.document SET title = 'x'").rowcount == 0
            assert connection.execute("DELETE FROM nearsim.document").rowcount == 0
            for command in ("SELECT nearsim.pin_pair('plain-0', 'plain-3', 'why')", *REFUSED[:1]):
                (told,) = outcome(connection, command, world.own)
                assert "row-level security" in told
        with Database.connect(world.url) as database:
            assert access.revoke(database, user_of(user), "reader", ["north"])
        with psycopg.connect(user) as connection:
            assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (0,)


def test_the_caller_is_who_asks_whatever_is_tried(world: World) -> None:
    foreign = world.foreign["generation"]
    sees = sql.SQL("SELECT nearsim.sees_generation({}), nearsim.caller()::text").format(sql.Literal(foreign))
    with login(world.url, "nearsim_reader") as other, login(world.url, attributes="NOINHERIT") as pooled:
        with Database.connect(world.url) as database:
            access.grant(database, user_of(other), "reader", ["secret"])
        with psycopg.connect(world.url, autocommit=True) as admin:
            for member in (world.reader, other):
                admin.execute(
                    sql.SQL("GRANT {} TO {}").format(
                        sql.Identifier(user_of(member)), sql.Identifier(user_of(pooled))
                    )
                )
        with psycopg.connect(pooled) as connection:
            with pytest.raises(pg.InsufficientPrivilege), connection.transaction():
                connection.execute("SELECT FROM nearsim.document")
            for member, expected in ((world.reader, False), (other, True), (world.reader, False)):
                connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(user_of(member))))
                assert connection.execute(sees).fetchone() == (expected, user_of(member))
                rows = connection.execute("SELECT DISTINCT name FROM nearsim.collection").fetchall()
                assert rows == [("secret" if expected else "north",)]
        with psycopg.connect(world.reader) as connection:
            for forged in (
                sql.SQL("SET ROLE {}").format(sql.Identifier(user_of(other))),
                sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(user_of(other))),
                sql.SQL("SELECT set_config('role', {}, true)").format(sql.Literal(user_of(other))),
                sql.SQL("SELECT set_config('session_authorization', {}, true)").format(
                    sql.Literal(user_of(other))
                ),
            ):
                with pytest.raises(psycopg.Error), connection.transaction():
                    connection.execute(forged)
            connection.execute("SET ROLE none")
            assert connection.execute(sees).fetchone() == (False, user_of(world.reader))
        with psycopg.connect(world.url, autocommit=True) as admin:
            # Who becomes somebody else for good is that one, also after having been a third; functions that run with
            # the rights of another do not change who asks.
            admin.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(user_of(other))))
            admin.execute(
                sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(user_of(world.reader)))
            )
            assert admin.execute(sees).fetchone() == (False, user_of(world.reader))
            admin.execute("RESET SESSION AUTHORIZATION")
            admin.execute(
                sql.SQL(
                    "CREATE FUNCTION public.lent(integer) RETURNS boolean SECURITY DEFINER LANGUAGE sql "
                    "AS 'SELECT nearsim.sees_generation($1)'; ALTER FUNCTION public.lent OWNER TO {}"
                ).format(sql.Identifier(user_of(other)))
            )
            assert admin.execute("SELECT public.lent(%s)", (foreign,)).fetchone() == (True,)
        with psycopg.connect(world.reader) as connection:
            assert connection.execute("SELECT public.lent(%s)", (foreign,)).fetchone() == (False,)


def test_administrators_and_owners_see_everything(world: World) -> None:
    with login(world.url, "nearsim_admin") as user, psycopg.connect(user) as connection:
        assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (8,)
        row = connection.execute(
            "SELECT nearsim.sees_generation(%s)", (world.foreign["generation"],)
        ).fetchone()
        assert row == (True,)
        assert connection.execute("SELECT count(*) FROM nearsim.band").fetchone() != (0,)
    with (
        login(world.url, "nearsim_reader", attributes="BYPASSRLS") as user,
        psycopg.connect(user) as connection,
    ):
        row = connection.execute(
            "SELECT nearsim.sees_generation(%s)", (world.foreign["generation"],)
        ).fetchone()
        assert row == (True,)


def test_turned_off_everybody_sees_everything_again(world: World) -> None:
    with Database.connect(world.url) as database:
        access.set_isolation(database, wanted=False)
    try:
        with psycopg.connect(world.reader) as connection:
            assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (8,)
            for name in relations(world.url):
                connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier("nearsim", name)))
        with Index.connect(world.reader, collection="secret") as index:
            assert len(list(index.pairs())) == 3
    finally:
        with Database.connect(world.url) as database:
            access.set_isolation(database, wanted=True)
    with psycopg.connect(world.reader) as connection:
        assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (4,)


BULK: list[LiteralString] = [
    # Neither changes nor events of these: the foreign keys are not checked either.
    "SET session_replication_role = replica",
    "INSERT INTO nearsim.document (collection_id, external_id, body) "
    "SELECT {collection_id}, 'bulk-' || n, 'x' FROM generate_series(1, 10000) AS n",
    "INSERT INTO {signature} (doc_id, revision, feature_count, feature_digest, sketch, numbers_digest, head_id) "
    "SELECT doc_id, revision, 1, gen_random_uuid(), '', 0, doc_id FROM nearsim.document "
    "WHERE collection_id = {collection_id} AND external_id LIKE 'bulk-%'",
    "INSERT INTO {similar_pair} (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size) "
    "SELECT doc_id, doc_id + 1, 1, 0.9, 0.9, 9, 10 FROM {signature} WHERE sketch = '' AND doc_id % 4 < 3",
    "INSERT INTO {cluster_member} (doc_id, cluster_id, is_survivor) "
    "SELECT doc_id, doc_id - doc_id % 4, doc_id % 4 = 0 FROM {signature} WHERE sketch = ''",
]


def test_look_ups_under_isolation_go_by_their_indexes(world: World) -> None:
    with psycopg.connect(world.url, autocommit=True) as admin:
        for given in (world.own, world.foreign):
            leaves = Leaves(GenerationId(int(str(given["generation"]))))
            parts = {parent: leaves.table(parent) for parent in PARENTS}
            for command in BULK:
                admin.execute(
                    sql.SQL(command).format(**parts, collection_id=sql.Literal(given["collection_id"]))
                )
        admin.execute("VACUUM (ANALYZE)")
    with psycopg.connect(world.reader) as connection:
        row = connection.execute(
            "SELECT doc_id FROM nearsim.document WHERE external_id = 'bulk-17'"
        ).fetchone()
        assert row
        for lookup in (
            "SELECT title FROM nearsim.document WHERE doc_id = {doc}",
            "SELECT title FROM nearsim.document WHERE external_id = 'bulk-17'",
            "SELECT title FROM nearsim.document JOIN nearsim.collection USING (collection_id) "
            "WHERE name = 'north' AND external_id = 'bulk-17'",
            "SELECT * FROM nearsim.documents WHERE doc_id = {doc}",
            "SELECT * FROM nearsim.pairs WHERE left_id = {doc}",
            "SELECT * FROM nearsim.pairs WHERE right_id = {doc}",
            "SELECT * FROM nearsim.duplicates WHERE doc_id = {doc}",
            "SELECT * FROM nearsim.clusters WHERE cluster_id = {doc}",
        ):
            explain = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) " + lookup).format(doc=sql.Literal(row[0]))
            (plan,) = connection.execute(explain).fetchone() or ((),)
            for node in nodes(plan[0]["Plan"]):
                if re.match("document|signature|similar|cluster", node.get("Relation Name", "")):
                    read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                    assert read * node["Actual Loops"] <= 20, (lookup, json.dumps(node))
