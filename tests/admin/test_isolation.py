"""Isolation: a reader of one tenant sees nothing of another."""

import json

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from nearsim_db.store.driver.statements import PARENTS
from tests.builders.function_trials import DRAWING, TRIALS, WRITING
from tests.builders.isolation_world import (
    FOREIGN,
    HIDDEN,
    NOWHERE,
    World,
    functions,
    leaves_of_tenant,
    look_round,
    make_busy,
    outcome,
    relations,
    told_apart,
)
from tests.builders.logins import login, user_of
from tests.builders.plan_log import nodes
from tests.builders.relations import identifier


def test_every_function_has_a_trial(world: World) -> None:
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
    assert len(seen["similar_to_by_doc_id(bigint,double precision,integer,text,integer)"]) == 2
    assert len(seen["dedupe(bigint[],double precision,text)"]) == 2
    assert len(seen["candidates(text,text)"]) == 1


def test_another_tenant_changes_nothing_for_a_reader(world: World) -> None:
    for name, seen in world.alone.items():
        if name not in {*DRAWING, "visible_workers"}:  # workers serve all tenants
            assert world.together[name] == seen, name


def test_no_row_reveals_the_other_tenant(world: World) -> None:
    for name, seen in world.together.items():
        if name not in DRAWING:
            assert not [row for row in seen if FOREIGN.search(row)], name
    with psycopg.connect(world.url) as connection:
        everything = look_round(world.url, world.url, world.foreign, list(relations(world.url)))
        assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (8,)
    # The oracle itself: a user that may see the other tenant does see it by these words and numbers.
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
    assert refused == HIDDEN
    with psycopg.connect(world.reader) as connection:
        for name, is_view in relations(world.url).items():
            reading = sql.SQL("SELECT count(*) FROM {}").format(identifier(name))
            if name in HIDDEN:
                with pytest.raises(pg.InsufficientPrivilege), connection.transaction():
                    connection.execute(reading)
            elif not is_view:
                connection.execute(reading)
                row = connection.execute(
                    "SELECT row_security_active(%s)", (identifier(name).as_string(connection),)
                ).fetchone()
                assert row == (name != "alembic_version",), name
    with psycopg.connect(world.url) as connection:
        assert connection.execute(
            "SELECT relname, reloptions FROM pg_class "
            "WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) "
            "AND relkind = 'v' AND NOT coalesce(reloptions @> ARRAY['security_invoker=true'], false) ORDER BY 1"
        ).fetchall() == [
            ("granted_generations", ["security_barrier=true"]),
            ("queued_work", ["security_barrier=true"]),
            ("visible_changes", ["security_barrier=true"]),
            ("visible_profiles", ["security_barrier=true"]),
            ("visible_workers", ["security_barrier=true"]),
        ]


def test_privileges_of_other_origin_show_nothing_more(world: World) -> None:
    with login(world.url, "nearsim_reader", "pg_read_all_data") as reader:
        with psycopg.connect(world.url) as connection:
            granting = sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA nearsim, nearsim_index TO {}")
            connection.execute(granting.format(sql.Identifier(user_of(reader))))
        found = look_round(world.url, reader, world.own, list(relations(world.url)))
    assert {name: found[name] for name in HIDDEN} == {name: [] for name in HIDDEN}
    assert not [name for name, seen in found.items() if name not in DRAWING and FOREIGN.search(str(seen))]


def test_partitions_show_only_the_readers_tenant(world: World) -> None:
    with psycopg.connect(world.reader) as reading, psycopg.connect(world.url) as everything:
        for parent in PARENTS:
            for given, is_own in ((world.own, True), (world.foreign, False)):
                for name in (leaves_of_tenant(given).name(parent), parent):
                    counting = sql.SQL("SELECT count(*) FROM {} WHERE generation_id = {}").format(
                        identifier(name), sql.Literal(given["generation"])
                    )
                    (stored,) = everything.execute(counting).fetchone() or (0,)
                    assert stored and reading.execute(counting).fetchone() == (stored * is_own,), name


def test_live_generations_of_the_readers_tenant_are_visible(world: World) -> None:
    looks = "SELECT collection_id, profile, generation_id FROM nearsim_index.visible_profiles ORDER BY collection_id"
    own, foreign = (
        (given["collection_id"], given["profile"], given["generation"])
        for given in (world.own, world.foreign)
    )
    with psycopg.connect(world.reader) as reading, psycopg.connect(world.url) as everything:
        assert reading.execute(looks).fetchall() == [own]
        assert {own, foreign} <= set(everything.execute(looks).fetchall())


def test_work_and_changes_of_the_readers_tenant_are_visible(world: World) -> None:
    looks = (
        "SELECT 'work', generation_id FROM nearsim_index.queued_work "
        "UNION ALL SELECT 'change', collection_id FROM nearsim_index.visible_changes"
    )
    own = [("change", world.own["collection_id"]), ("work", world.own["generation"])]
    foreign = {("change", world.foreign["collection_id"]), ("work", world.foreign["generation"])}
    with psycopg.connect(world.url) as connection:
        make_busy(world.url, world.own)
        rows = set(connection.execute(looks).fetchall())
        assert rows >= {*own, *foreign}
    try:
        with psycopg.connect(world.reader) as connection:
            assert sorted(set(connection.execute(looks).fetchall())) == own
    finally:
        with psycopg.connect(world.url) as connection:
            for table, column, value in (
                ("change", "collection_id", world.own["collection_id"]),
                ("work", "generation_id", world.own["generation"]),
                ("attachment", "collection_id", world.own["collection_id"]),
            ):
                connection.execute(
                    sql.SQL("DELETE FROM {} WHERE {} = %s").format(identifier(table), sql.Identifier(column)),
                    (value,),
                )


def test_hidden_rows_are_reported_like_missing_ones(world: World) -> None:
    with psycopg.connect(world.reader) as reading, psycopg.connect(world.writer) as writing:
        for signature, trial in {**TRIALS, **WRITING}.items():
            connection = writing if signature in WRITING else reading
            hidden = told_apart(outcome(connection, trial, world.foreign), world.foreign)
            missing = told_apart(outcome(connection, trial, NOWHERE), NOWHERE)
            assert hidden == missing, signature
            for names in (("like", "twin"), ("generation",), ("doc",)):
                if any(f"{{{name}}}" in trial for name in names):
                    mixed = {**world.own, **{name: world.foreign[name] for name in names}}
                    absent = {**world.own, **{name: NOWHERE[name] for name in names}}
                    hidden, missing = outcome(connection, trial, mixed), outcome(connection, trial, absent)
                    assert told_apart(hidden, world.foreign) == told_apart(missing, NOWHERE), signature


def scans(url: str, given: dict[str, object]) -> int:
    """How often the tables of a tenant's generation and their indexes were read so far."""
    leaves = leaves_of_tenant(given)
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_user_tables WHERE relname = ANY (%s)",
            ([leaves.name(parent) for parent in PARENTS],),
        ).fetchone()
    assert row
    return int(row[0])


def test_functions_do_not_read_rows_of_the_other_tenant(world: World) -> None:
    def call_all(given: dict[str, object]) -> int:
        before = scans(world.url, given)
        with psycopg.connect(world.reader) as connection:
            for trial in TRIALS.values():
                if "_leaf}" not in trial:
                    outcome(connection, trial, given)
            connection.execute("SELECT pg_stat_force_next_flush()")
        return scans(world.url, given) - before

    assert call_all(world.foreign) == 0 < call_all(world.own)


def test_views_do_not_read_rows_of_the_other_tenant(world: World) -> None:
    own, foreign = leaves_of_tenant(world.own), leaves_of_tenant(world.foreign)
    counting = sql.SQL("SELECT count(*) FROM {} WHERE generation_id = {}")
    with psycopg.connect(world.url) as everything:
        stored = {
            foreign.name(parent): everything.execute(
                counting.format(foreign.table(parent), sql.Literal(own.generation_id))
            ).fetchone()
            for parent in PARENTS
        }
    with psycopg.connect(world.reader) as connection:
        connection.execute("SET enable_seqscan = off")
        for name in (name for name, is_view in relations(world.url).items() if is_view):
            reading = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {}").format(identifier(name))
            try:
                with connection.transaction():
                    (plan,) = connection.execute(reading).fetchone() or (None,)
            except pg.InsufficientPrivilege:
                continue
            for node in nodes(plan[0]["Plan"]):
                most = stored.get(str(node.get("Relation Name")))
                if most is not None and node["Actual Loops"]:
                    read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                    # Averages of loops, of which the second is rounded.
                    assert int(read) <= most[0], (name, json.dumps(node))


def test_functions_of_a_user_see_no_row_of_the_other_tenant(world: World) -> None:
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
            "combined_pairs",
            "clusters",
            "first_publications",
            "verdict",
            "verdicts",
            "collection",
            "event",
            "generation",
        ):
            peeking = sql.SQL("SELECT FROM {} AS met WHERE pg_temp.peek(met::text)")
            connection.execute(peeking.format(identifier(name)))
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT FROM nearsim.document WHERE title::integer = 1")
    assert len(met) > 10 and not [row for row in met if FOREIGN.search(row)]


def test_statistics_of_the_other_tenant_are_not_shown(world: World) -> None:
    with psycopg.connect(world.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    with psycopg.connect(world.reader) as connection:
        for view in ("pg_stats", "pg_stats_ext", "pg_sequences"):
            rows = connection.execute(
                sql.SQL("SELECT * FROM {} AS shown WHERE schemaname IN ('nearsim', 'nearsim_index')").format(
                    sql.Identifier(view)
                )
            ).fetchall()
            leaked = [row for row in rows if FOREIGN.search(str(row[3:]))]
            assert not leaked, (view, leaked)


def test_a_reader_without_any_collection_sees_nothing(world: World) -> None:
    with login(world.url, "nearsim_reader") as reader:
        found = look_round(world.url, reader, world.own, list(relations(world.url)))
    assert {name for name in relations(world.url) if found[name] not in ([], ["refused"])} == {
        "alembic_version",
        "functions",
        "schema_floor",
        "visible_workers",
    }
