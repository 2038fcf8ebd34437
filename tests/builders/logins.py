"""Temporary users of a server. All databases of the server share the roles of nearsim."""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.store.driver.engine import parse_url

ROLES = ["nearsim_reader", "nearsim_writer", "nearsim_admin"]
TEXTS = ["the storm closed the ferry for a day", "the storm closed the ferry for a week", "pears are late"]


@contextmanager
def login(url: str, *roles: str, attributes: str = "") -> Iterator[str]:
    """Create a user with these roles for the block, and yield the URL of the database for this user."""
    name = f"user_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.SQL(f"CREATE ROLE {{}} LOGIN {attributes}").format(sql.Identifier(name)))
        for role in roles:
            admin.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(name)))
    try:
        yield as_user(url, name)
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            # A role with objects or rights in the database cannot be dropped.
            admin.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(name)))
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def as_user(url: str, name: str) -> str:
    """The same URL with another user."""
    return re.sub(r"(?<=://)[^@/]*(?=@)", name, url)


def user_of(url: str) -> str:
    """The user of a URL."""
    return parse_url(url).get("user", "")


def fill(url: str, collection: str = "news") -> None:
    """Build a small index."""
    with Index.connect(url, collection=collection) as index:
        index.add([Document(f"d{number}", body=body) for number, body in enumerate(TEXTS)])
