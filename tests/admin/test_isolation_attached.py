"""Texts in attached tables under isolation: read with the owner's rights, for those who may see the document."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from nearsim_db import Index
from nearsim_db.admin import access
from nearsim_db.store.database import Database
from tests.builders.followed_table import attached, words
from tests.builders.logins import login, user_of
from tests.builders.workers import Application, application, ask

pytestmark = pytest.mark.each_major

BODY = "SELECT nearsim.body_of(%s)"
SPY = """
CREATE TABLE who_ran (name text);
GRANT ALL ON who_ran TO PUBLIC;
CREATE FUNCTION spy(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS
    $$BEGIN INSERT INTO public.who_ran VALUES (current_user); RETURN true; END$$;
ALTER TABLE story ENABLE ROW LEVEL SECURITY;
CREATE POLICY spying ON story USING (spy(body));
"""
LENT = "CREATE FUNCTION public.lent(bigint) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT nearsim.body_of($1)'"


@dataclass(frozen=True)
class Tenants:
    """A document with its text in an attached table, who may see it, and who sees another collection."""

    url: str
    doc_id: int
    own: str
    other: str

    def read(self, user: str, command: str = BODY) -> object:
        """The text of the document as a user reads it."""
        with application(user) as connection:
            row = connection.execute(command.encode(), (self.doc_id,)).fetchone()
        assert row
        return row[0]


@pytest.fixture
def tenants(story: Index, app: Application, where: str, database: Database) -> Iterator[Tenants]:
    """Two tenants: the first has the attached collection, the other one has a second collection of the same table."""
    app.execute("GRANT USAGE, CREATE ON SCHEMA public TO PUBLIC; GRANT SELECT ON story TO nearsim_admin")
    attached(database, "second")
    with login(where, "nearsim_writer") as own, login(where, "nearsim_writer") as other:
        access.grant(database, user_of(own), "reader", [story.collection])
        access.grant(database, user_of(other), "writer", ["second"])
        access.set_isolation(database, wanted=True)
        doc_id = int(str(ask(app, "SELECT min(doc_id) FROM nearsim.document WHERE external_id = '3'")))
        yield Tenants(where, doc_id, own, other)


def test_texts_are_readable_if_the_document_is_visible(tenants: Tenants) -> None:
    text = words(1, 3)
    assert tenants.read(tenants.own) == text
    assert tenants.read(tenants.other) is None
    assert tenants.read(tenants.url) == text
    with login(tenants.url, "nearsim_admin") as keeper:
        assert tenants.read(keeper) == text


def test_security_definer_functions_read_what_their_owner_may_see(tenants: Tenants) -> None:
    with application(tenants.other) as connection:
        connection.execute(LENT)
    for caller in (tenants.own, tenants.other, tenants.url):
        assert tenants.read(caller, "SELECT public.lent(%s)") is None
    with application(tenants.own) as connection:
        connection.execute(LENT.replace("lent", "lent_on").encode())
    assert tenants.read(tenants.other, "SELECT public.lent_on(%s)") == words(1, 3)


def ask_for_all(connection: Application) -> None:
    """Have the view show every document that the session's user may see."""
    connection.execute(
        "SELECT set_config('nearsim.asked_documents', CAST(array_agg(number) AS text), false) "
        "FROM generate_series(1, 100) AS number"
    )


def test_updating_the_view_writes_nothing(tenants: Tenants, app: Application) -> None:
    before = app.execute("SELECT * FROM nearsim.document ORDER BY 1").fetchall()
    rows = app.execute("SELECT * FROM story ORDER BY 1").fetchall()
    with application(tenants.own) as connection:
        ask_for_all(connection)
        texts = connection.execute(
            "WITH read AS (UPDATE nearsim_index.attached_texts SET bodies = '{overwritten}' RETURNING bodies) "
            "SELECT unnest(bodies) FROM read"
        ).fetchall()
        assert sorted(texts) == sorted((row[2],) for row in rows)
        with pytest.raises(pg.InsufficientPrivilege):
            connection.execute("UPDATE nearsim_index.attached_texts SET doc_ids = '{1}'")
    with application(tenants.url) as connection:
        ask_for_all(connection)
        of_collections = connection.execute(
            "UPDATE nearsim_index.attached_texts SET bodies = NULL RETURNING cardinality(bodies)"
        ).fetchall()
        assert of_collections == [(10,), (10,)]
    assert app.execute("SELECT * FROM nearsim.document ORDER BY 1").fetchall() == before
    assert app.execute("SELECT * FROM story ORDER BY 1").fetchall() == rows


def test_trigger_ignores_forged_ids(tenants: Tenants, app: Application) -> None:
    app.execute("GRANT ALL ON nearsim_index.attached_texts TO PUBLIC")
    app.execute("GRANT EXECUTE ON FUNCTION nearsim.read_attached_texts() TO PUBLIC")
    with application(tenants.other) as connection:
        ask_for_all(connection)
        forged = connection.execute(
            "WITH read AS ("
            "UPDATE nearsim_index.attached_texts SET doc_ids = %s, external_ids = '{3}' RETURNING doc_ids) "
            "SELECT unnest(doc_ids) FROM read",
            ([tenants.doc_id],),
        ).fetchall()
        assert len(forged) == 10 and (tenants.doc_id,) not in forged
        connection.execute(
            sql.SQL(
                "CREATE VIEW public.mine AS SELECT collection_id, ARRAY[CAST({} AS bigint)] AS doc_ids, "
                "ARRAY['3'] AS external_ids, CAST(NULL AS text[]) AS bodies FROM nearsim.collection"
            ).format(sql.Literal(tenants.doc_id))
        )
        connection.execute(
            "CREATE TRIGGER mine INSTEAD OF UPDATE ON public.mine "
            "FOR EACH ROW EXECUTE FUNCTION nearsim.read_attached_texts()"
        )
        with pytest.raises(pg.InsufficientPrivilege, match=r"belongs to nearsim_index\.attached_texts"):
            connection.execute("UPDATE public.mine SET bodies = NULL")


def test_policies_of_the_attached_table_never_run(tenants: Tenants, app: Application) -> None:
    app.execute(SPY.encode())
    for user in (tenants.own, tenants.other):
        assert tenants.read(user) is None
    assert ask(app, "SELECT count(*) FROM who_ran") == 0
    app.execute("ALTER TABLE story DISABLE ROW LEVEL SECURITY")
    assert tenants.read(tenants.own) == words(1, 3)


def test_read_only_transactions_need_rights_on_the_table(tenants: Tenants, app: Application) -> None:
    def read(user: str) -> object:
        with psycopg.connect(user) as connection:
            connection.read_only = True
            return (connection.execute(BODY, (tenants.doc_id,)).fetchone() or ("no row",))[0]

    assert read(tenants.own) is None and read(tenants.url) == words(1, 3)
    app.execute(sql.SQL("GRANT SELECT ON story TO {}").format(sql.Identifier(user_of(tenants.own))))
    app.execute(sql.SQL("GRANT SELECT ON story TO {}").format(sql.Identifier(user_of(tenants.other))))
    assert read(tenants.own) == words(1, 3) and read(tenants.other) is None
