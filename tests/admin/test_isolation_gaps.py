"""Roles of PostgreSQL that isolation does not bind are named by db grant and doctor."""

from typing import Any

import psycopg
import pytest
from psycopg import sql

from nearsim_db.admin import access
from nearsim_db.admin.doctor.server import check_roles
from nearsim_db.store.database import Database
from tests.builders.logins import fill, login, user_of
from tests.builders.relations import identifier

pytestmark = pytest.mark.each_major

LONG = "a text so long that it is stored apart " + " ".join(f"word{number:04}" for number in range(2_000))


def gaps(url: str) -> list[str]:
    with Database.connect(url) as database, database.engine.connect() as connection:
        return [one.finding for one in check_roles(connection) if one.check == "isolation"]


def test_a_member_of_pg_read_all_data_reads_texts_and_is_warned_of(database_url: str) -> None:
    fill(database_url)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("UPDATE nearsim.document SET body = %s WHERE external_id = 'd0'", (LONG,))
        row: Any = admin.execute(
            "SELECT CAST(reltoastrelid AS regclass) FROM pg_class WHERE oid = 'nearsim.document'::regclass"
        ).fetchone()
    stored = sql.SQL("SELECT count(*) FROM {}").format(sql.SQL(row[0]))
    with (
        login(database_url, "nearsim_reader") as plain,
        login(database_url, "nearsim_reader", "pg_read_all_data", "pg_monitor") as reader,
        Database.connect(database_url) as database,
    ):
        access.set_isolation(database, wanted=True)
        with psycopg.connect(reader) as connection:
            assert connection.execute("SELECT FROM nearsim.document").fetchall() == []
            assert connection.execute(stored).fetchone() != (0,)
        with psycopg.connect(plain) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(stored)
        more = access.rights_beyond(database, user_of(reader), "reader")
        assert [one.split(":")[0].rpartition(" ")[2] for one in more] == [
            "pg_read_all_data",
            "pg_read_all_stats",
        ]
        assert access.rights_beyond(database, user_of(plain), "reader") == []
        assert [one.split()[0] for one in gaps(database_url)] == [user_of(reader)] * 2
        access.set_isolation(database, wanted=False)
        assert gaps(database_url) == []


def test_members_who_may_change_what_others_see_are_warned_of(database_url: str) -> None:
    fill(database_url)
    roles = ["pg_write_all_data", "pg_maintain", "pg_signal_backend"]
    with psycopg.connect(database_url) as admin:
        known = {str(name) for (name,) in admin.execute("SELECT rolname FROM pg_roles").fetchall()}
        is_old = admin.info.server_version < 160000
    existing = [role for role in roles if role in known]
    with (
        login(database_url, "nearsim_reader", *existing, attributes="CREATEROLE") as reader,
        Database.connect(database_url) as database,
    ):
        access.set_isolation(database, wanted=True)
        with psycopg.connect(reader, autocommit=True) as connection:
            for command in (
                "INSERT INTO nearsim.collection (name) VALUES ('new')",
                "INSERT INTO nearsim.document (collection_id, external_id) VALUES (1, 'new')",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(command)
            for table in ("document", "verdict", "work", "collection_access"):
                deletion = sql.SQL("DELETE FROM {}").format(identifier(table))
                assert connection.execute(deletion).rowcount == 0
            connection.execute("SELECT setval('nearsim.document_doc_id_seq', 1)")
            if "pg_maintain" in existing:
                with connection.transaction():
                    connection.execute("LOCK nearsim.document")
            joined = sql.SQL("GRANT nearsim_admin TO {}").format(sql.Identifier(user_of(reader)))
            if is_old:
                connection.execute(joined)
                connection.execute("REVOKE nearsim_admin FROM CURRENT_USER")
            else:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(joined)
        reasons = " ".join(access.rights_beyond(database, user_of(reader), "reader"))
        assert [role for role in roles if role in reasons] == existing
        assert ("has CREATEROLE" in reasons) == is_old
        assert len(gaps(database_url)) == len(existing) + is_old
