"""Roles: what each may do, tested by doing it; ownership."""

from itertools import groupby
from operator import itemgetter
from typing import LiteralString

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.similarity.recipe import Recipe
from tests.builders.logins import TEXTS, fill, login, user_of
from tests.builders.relations import identifier

pytestmark = pytest.mark.each_major


# (table, columns) that may be written; None stands for all of them.
ASKING = {
    ("probe", "INSERT"): {
        "collection_id",
        "profile",
        "title",
        "body",
        "min_similarity",
        "max_matches",
        "external_id",
        "purpose",
        "deadline",
    }
}
WRITING = {
    ("document", "INSERT"): None,
    ("document", "UPDATE"): None,
    ("collection", "INSERT"): {"name"},
    ("checked_insertion", "INSERT"): {"collection_id", "generation_id", "external_id", "bucket_hashes"},
    ("verdict", "INSERT"): {"collection_id", "left_id", "right_id", "verdict", "by", "why"},
    ("verdict", "UPDATE"): {"undone_by", "undone_why", "undone_at"},
    ("survivor_pin", "INSERT"): {"collection_id", "doc_id", "by", "why"},
    ("survivor_pin", "UPDATE"): {"undone_by", "undone_why", "undone_at"},
    ("review", "INSERT"): {
        *("collection_id", "by", "queue", "left_id", "right_id", "leased_until", "probability")
    },
    ("review", "UPDATE"): {
        *("leased_until", "answer", "why", "decided_at", "decision_id", "verdict_id", "replaced_id"),
        *("pin_id", "undone_at"),
    },
}
ASKED = {
    "ask",
    "await_answer",
    "similar_to_text",
    "answer_to",
    "commit_request",
    "ask_apart",
    "check_text",
    "find_request",
    "attached_bodies",
    "source_texts",
}
WRITTEN = {
    *("check_insert", "lock_asked", "refuse_outdated"),
    *("pin_pair", "veto_pair", "pin_survivor", "unpin_survivor"),
    *("pin_pair_by_doc_id", "veto_pair_by_doc_id", "pin_survivor_by_doc_id", "unpin_survivor_by_doc_id"),
    "undo_verdict_by_doc_id",
    *(
        "undo_verdict",
        "undo_current_verdicts",
        "store_verdicts",
        "require_reason",
        "named_verdict",
        "named_choice",
    ),
}

# Without a column the server asks for the right on any one of them.
_TRIALS: dict[str, tuple[LiteralString, LiteralString]] = {
    "INSERT": (
        "INSERT INTO {table} DEFAULT VALUES",
        "INSERT INTO {table} ({column}) OVERRIDING SYSTEM VALUE VALUES (DEFAULT)",
    ),
    "UPDATE": (
        "SELECT FROM {table} WHERE false FOR UPDATE",
        "UPDATE {table} SET {column} = DEFAULT WHERE false",
    ),
}


def refused(connection: "psycopg.Connection[tuple[object, ...]]", command: sql.SQL | sql.Composed) -> bool:
    """Whether the server refuses a statement for lack of rights; other errors are ignored."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(command)
    except pg.InsufficientPrivilege:
        return True
    except psycopg.Error:
        return False
    return False


def columns(url: str) -> list[tuple[str, str, bool]]:
    """(table or view, column, whether it is a view) of everything in the schema."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT relname, attname, relkind = 'v' FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
            "WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) "
            "AND relkind IN ('r', 'p', 'v') AND attnum > 0 "
            "AND NOT attisdropped AND attgenerated = '' ORDER BY 1, 2"
        ).fetchall()


def written(url: str, user: str) -> dict[tuple[str, str], set[str]]:
    """What a user may write, found by trying every column of every table."""
    found: dict[tuple[str, str], set[str]] = {}
    with psycopg.connect(user) as connection:
        for table, of_table in groupby(columns(url), key=itemgetter(0)):
            names = [column for _, column, is_view in of_table if not is_view]
            for kind, (any_column, one_column) in _TRIALS.items():
                parts = {"table": identifier(table)}
                if not names or refused(connection, sql.SQL(any_column).format(**parts)):
                    continue
                for name in names:
                    trial = sql.SQL(one_column).format(**parts, column=sql.Identifier(name))
                    if not refused(connection, trial):
                        found.setdefault((table, kind), set()).add(name)
    return found


def expected(url: str, rights: dict[tuple[str, str], set[str] | None]) -> dict[tuple[str, str], set[str]]:
    """The expected rights, from a rule."""
    return {
        (table, kind): given or {column for name, column, _ in columns(url) if name == table}
        for (table, kind), given in rights.items()
    }


def test_readers_and_writers_write_only_what_their_role_allows(database_url: str) -> None:
    fill(database_url)
    with (
        login(database_url) as nobody,
        login(database_url, "nearsim_reader") as reader,
        login(database_url, "nearsim_writer") as writer,
    ):
        assert written(database_url, nobody) == {}
        assert written(database_url, reader) == expected(database_url, {**ASKING})
        assert written(database_url, writer) == expected(database_url, {**ASKING, **WRITING})


@pytest.mark.usefixtures("own_tables")
@pytest.mark.parametrize("role", ["nearsim_reader", "nearsim_writer"])
def test_tables_and_views_can_be_read_but_not_truncated_or_altered(database_url: str, role: str) -> None:
    fill(database_url)
    tables = {name: is_view for name, _, is_view in columns(database_url)}
    assert {"document", "band_100000001", "band_shared", "alembic_version", "work"} <= set(tables)
    with (
        login(database_url, role) as user,
        login(database_url) as nobody,
        psycopg.connect(user, autocommit=True) as connection,
        psycopg.connect(nobody, autocommit=True) as outside,
    ):
        for table, is_view in tables.items():
            name = identifier(table)
            reading = sql.SQL("SELECT * FROM {} LIMIT 1").format(name)
            assert refused(outside, reading), table
            assert refused(connection, reading) is (table == "lock_secret"), table
            dropping = sql.SQL("DROP VIEW {}" if is_view else "DROP TABLE {}").format(name)
            assert refused(connection, dropping), table
            if not is_view:
                deletes = role == "nearsim_writer" and table == "document"
                deleting = sql.SQL("DELETE FROM {} WHERE false").format(name)
                assert refused(connection, deleting) is not deletes, table
                assert refused(connection, sql.SQL("TRUNCATE {}").format(name)), table
        for command in (
            "CREATE TABLE nearsim.mine (a int)",
            "CREATE FUNCTION nearsim.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE TABLE public.mine (doc_id bigint REFERENCES nearsim.document)",
            "CREATE TRIGGER mine BEFORE INSERT ON nearsim.document EXECUTE FUNCTION nearsim.capture_written()",
            "ALTER TABLE nearsim.document ENABLE ROW LEVEL SECURITY",
            "DROP SCHEMA nearsim CASCADE",
            "CREATE TABLE nearsim_index.mine (a int)",
            "DROP SCHEMA nearsim_index CASCADE",
            "SET ROLE nearsim_admin",
            "SELECT nextval('nearsim.document_doc_id_seq')",
            "SELECT setval('nearsim.document_revision', 1)",
        ):
            assert refused(connection, sql.SQL(command)), command
        # A trigger function in the wrong hands could note changes that never were.
        connection.execute("CREATE TEMP TABLE bait (collection_id int, doc_id bigint)")
        bait = "CREATE TRIGGER bait AFTER INSERT ON bait EXECUTE FUNCTION nearsim.capture_truncated()"
        assert refused(connection, sql.SQL(bait))


def callable_functions(url: str, user: str) -> dict[str, bool]:
    """Each routine of the schema by its signature, with whether a user may call it, found by trying."""
    found = {}
    with psycopg.connect(user) as connection, psycopg.connect(url) as admin:
        admin.execute("SET search_path = pg_catalog")
        routines = admin.execute(
            "SELECT oid::regprocedure::text, proname, prokind = 'p', ARRAY(SELECT format_type(one, NULL) "
            "FROM unnest(coalesce(CASE prokind WHEN 'p' THEN proallargtypes END, proargtypes)) AS one) "
            "FROM pg_proc WHERE pronamespace = 'nearsim'::regnamespace"
        ).fetchall()
        for signature, name, is_procedure, types in routines:
            nulls = sql.SQL(", ").join(sql.SQL(f"NULL::{one} AS a{at}") for at, one in enumerate(types))
            given = sql.SQL(", ").join(sql.Identifier(f"a{at}") for at in range(len(types)))
            parts = {"name": sql.Identifier("nearsim", name), "nulls": nulls, "given": given}
            call = sql.SQL("SELECT {name}({given}) FROM (SELECT {nulls} OFFSET 0) AS asked").format(**parts)
            if is_procedure:
                bare = sql.SQL(", ").join(sql.SQL(f"NULL::{one}") for one in types)
                call = sql.SQL("CALL {}({})").format(parts["name"], bare)
            denials = (
                f"permission denied for {'procedure' if is_procedure else 'function'} {name}",
                "permission denied for schema nearsim_index",
            )
            try:
                with connection.transaction(force_rollback=True):
                    connection.execute(call)
                found[signature] = True
            except psycopg.Error as error:
                found[signature] = not any(denial in str(error) for denial in denials)
    return found


def test_functions_that_write_require_the_right_to(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("SET search_path = pg_catalog")
        kinds = {
            signature: (name, is_trigger, is_volatile)
            for signature, name, is_trigger, is_volatile in connection.execute(
                "SELECT oid::regprocedure::text, proname, "
                "prorettype IN ('trigger'::regtype, 'event_trigger'::regtype), provolatile = 'v' "
                "FROM pg_proc WHERE pronamespace = 'nearsim'::regnamespace"
            )
        }
    asked = {
        one
        for one, (name, trigger, volatile) in kinds.items()
        if not trigger and (not volatile or name in ASKED)
    }
    judged = {one for one, (name, _, _) in kinds.items() if name in WRITTEN}
    assert asked and judged
    for roles, may in ((), set[str]()), (["nearsim_reader"], asked), (["nearsim_writer"], asked | judged):
        with login(database_url, *roles) as user:
            with psycopg.connect(database_url) as connection:
                connection.execute(sql.SQL("GRANT USAGE ON SCHEMA nearsim TO {}").format(_identified(user)))
            found = callable_functions(database_url, user)
        assert {one for one, allowed in found.items() if allowed} == may, roles
    with login(database_url, "nearsim_admin") as admin:
        assert all(callable_functions(database_url, admin).values())


def test_each_role_can_do_its_work(database_url: str) -> None:
    fill(database_url)
    with login(database_url, "nearsim_writer") as writer, psycopg.connect(writer) as connection:
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) "
            "SELECT collection_id, 'd9', 'pears are late' FROM nearsim.collection"
        )
        connection.execute("UPDATE nearsim.document SET title = 'late' WHERE external_id = 'd9'")
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id) SELECT collection_id, 'd9' "
            "FROM nearsim.collection ON CONFLICT (collection_id, external_id) DO UPDATE SET title = 'later'"
        )
        connection.execute("SELECT nearsim.pin_pair('d0', 'd9', 'the same event')")
        connection.execute("SELECT nearsim.undo_verdict('d0', 'd9', 'it is not')")
        connection.execute("DELETE FROM nearsim.document WHERE external_id = 'd9'")
        connection.execute("INSERT INTO nearsim.collection (name) VALUES ('mine')")
        changes = connection.execute("SELECT count(*) FROM nearsim.change").fetchone()
    assert changes and changes[0] >= 4
    with login(database_url, "nearsim_reader") as reader, psycopg.connect(reader) as connection:
        (asked,) = connection.execute("SELECT nearsim.ask('a text', collection => 'news')").fetchone() or (
            None,
        )
        assert connection.execute(
            "SELECT asked_by FROM nearsim.probe WHERE probe_id = %s", (asked,)
        ).fetchone() == (user_of(reader),)


def test_administrators_maintain_each_others_indexes(database_url: str) -> None:
    with (
        login(database_url, "nearsim_admin") as first,
        login(database_url, "nearsim_admin") as second,
        login(database_url, "nearsim_reader") as reader,
    ):
        fill(first)
        with Index.connect(reader, collection="news") as index:
            assert len(list(index.pairs())) == 1
        with Index.connect(second, collection="news") as index:
            index.add([Document("more", body=TEXTS[0])])
            assert len(list(index.pairs())) == 3
            index.create_profile("second", Recipe())
            index.build()
            delete_collection(index.database, "news")
        with psycopg.connect(database_url) as connection:
            owners = connection.execute(
                "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class "
                "WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace)"
            ).fetchall()
    assert owners == [("nearsim_admin",)]


def test_wrong_privileges_are_repaired(database_url: str) -> None:
    with (
        psycopg.connect(database_url) as connection,
        login(database_url, "nearsim_reader") as user,
        login(database_url, "nearsim_admin") as admin,
    ):
        connection.execute("GRANT SELECT, DELETE ON nearsim.document TO PUBLIC")
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA nearsim TO nearsim_reader")
        connection.execute(
            "CREATE TABLE nearsim.newer (a int); CREATE VIEW nearsim.newest AS SELECT * FROM nearsim.newer"
        )
        connection.commit()
        connection.execute("SELECT nearsim.grant_rights()")
        connection.commit()
        assert written(database_url, user) == expected(database_url, {**ASKING})
        with psycopg.connect(user) as reading:
            assert refused(reading, sql.SQL("DELETE FROM nearsim.document"))
            reading.execute("SELECT FROM nearsim.newest")
        with psycopg.connect(admin) as managing:
            managing.execute("SELECT nearsim.grant_rights()")
            managing.execute("DROP TABLE nearsim.newer CASCADE")


def _identified(user: str) -> sql.Identifier:
    return sql.Identifier(user_of(user))


@pytest.mark.parametrize("invoker", ["true", "false"])
def test_an_own_view_shows_rows_to_readers_and_a_function_to_others(database_url: str, invoker: str) -> None:
    fill(database_url)
    with (
        login(database_url) as reader,
        psycopg.connect(database_url, autocommit=True) as owner,
        psycopg.connect(reader, autocommit=True) as reading,
    ):
        name = _identified(reader)
        options = sql.SQL("WITH (security_invoker = {})").format(sql.Literal(invoker))
        view = sql.SQL("CREATE VIEW public.own_view {} AS SELECT doc_id FROM nearsim.duplicates")
        owner.execute(view.format(options))
        owner.execute(
            "CREATE FUNCTION public.own_function() RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER "
            "SET search_path = pg_catalog, pg_temp BEGIN ATOMIC SELECT doc_id FROM nearsim.duplicates; END"
        )
        owner.execute(sql.SQL("GRANT SELECT ON public.own_view TO {}").format(name))
        assert refused(reading, sql.SQL("SELECT * FROM public.own_view"))
        assert len(reading.execute("SELECT public.own_function()").fetchall()) == 1
        owner.execute(sql.SQL("GRANT nearsim_reader TO {}").format(name))
        assert len(reading.execute("SELECT * FROM public.own_view").fetchall()) == 1
