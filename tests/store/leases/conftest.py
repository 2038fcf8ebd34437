"""An index whose work is taken under leases."""

from collections.abc import Iterator

import pytest

from nearsim_db import Index
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from tests.servers.databases import Server


def fill(url: str) -> None:
    """A collection whose profile has a live index, without documents."""
    with Index.connect(url) as index:
        index.add([])


@pytest.fixture
def database_url(server: Server) -> Iterator[str]:
    """A database with that collection."""
    with server.database(fill) as url:
        yield url


@pytest.fixture
def leaves(index: Index) -> Leaves:
    """The names of the live generation's tables."""
    return index.serving().context.generation.leaves


@pytest.fixture
def other(index: Index) -> Iterator[Connection]:
    """A second connection."""
    with index.database.engine.connect() as connection:
        yield connection
