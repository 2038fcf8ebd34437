"""The relay that counts what a server sends."""

from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from benchmarks.relay import relay
from nearsim_db.store.embedded.cluster import connection_uri
from tests.servers.homes import server_home


def test_messages_and_bytes_are_counted(database_url: str) -> None:
    at = conninfo_to_dict(database_url)
    with (
        server_home() as home,
        relay(Path(str(at["host"])), home / "relay") as traffic,
        psycopg.connect(connection_uri(home / "relay", str(at["dbname"])), autocommit=True) as connection,
    ):
        messages, size = traffic.messages, traffic.bytes
        text = "x" * 1000
        rows = connection.execute("SELECT %s::text FROM generate_series(1, 3000)", [text]).fetchall()
        assert rows == [(text,)] * 3000
        # ParseComplete, BindComplete, RowDescription, a DataRow for each, CommandComplete, ReadyForQuery
        assert traffic.messages - messages == 3005
        assert 3000 * len(text) < traffic.bytes - size < 3000 * (len(text) + 20)
