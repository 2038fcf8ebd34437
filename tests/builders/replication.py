"""Logical replication from another database on the same server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

from psycopg import sql

from tests.builders.workers import Application, application

_SUBSCRIBE = """
CREATE SUBSCRIPTION taken CONNECTION {} PUBLICATION everything WITH (create_slot = false, slot_name = {}{})
"""


@contextmanager
def publishing(url: str, slot: str, *commands: LiteralString) -> Iterator[Application]:
    """A database in which these commands were executed. The last command creates the publication `everything`."""
    with application(url) as admin:
        name = f"{admin.info.dbname}_publisher"
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        with application(url.replace(f"/{admin.info.dbname}?", f"/{name}?")) as publisher:
            for command in commands:
                publisher.execute(command)
            # Publisher and subscriber are on the same server, where CREATE SUBSCRIPTION would wait for its own
            # transaction if it created the slot.
            publisher.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
            yield publisher
            publisher.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def subscribed(
    subscriber: Application, publisher: Application, slot: str, options: LiteralString = ""
) -> Iterator[None]:
    """A subscription `taken` for the block. At the end, its slot stays with the publisher."""
    info = publisher.info
    address = f"host={info.host} port={info.port} user={info.user} dbname={info.dbname}"
    subscriber.execute(sql.SQL(_SUBSCRIBE).format(address, slot, sql.SQL(options)))
    try:
        yield
    finally:
        # Without the name of a slot, DROP keeps the slot. Only a disabled subscription can lose this name.
        subscriber.execute("ALTER SUBSCRIPTION taken DISABLE")
        subscriber.execute("ALTER SUBSCRIPTION taken SET (slot_name = NONE)")
        subscriber.execute("DROP SUBSCRIPTION taken")
