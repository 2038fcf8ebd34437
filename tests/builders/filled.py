"""Fixtures of databases with some content. A server fills a template once, and copies it for each test."""

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from nearsim_db import Database
from tests.servers.citus import AnyServer
from tests.servers.databases import Fill

Scope = Literal["function", "module"]


def address_of(fill: Fill, scope: Scope = "function") -> Any:
    """Return a fixture: the URL of a database with this content."""

    @pytest.fixture(scope=scope)
    def address(server: AnyServer) -> Iterator[str]:
        with server.database(fill) as url:
            yield url

    return address


def database_of(fill: Fill, scope: Scope = "function") -> Any:
    """Return a fixture: an open database with this content."""

    @pytest.fixture(scope=scope)
    def database(server: AnyServer) -> Iterator[Database]:
        with server.database(fill) as url, Database.connect(url) as opened:
            yield opened

    return database
