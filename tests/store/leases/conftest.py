"""An index whose work is taken under leases."""

from collections.abc import Iterator

import pytest

from nearsim_db import Index
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from tests.builders.filled import address_of


def fill(url: str) -> None:
    """A collection whose profile has a live index, without documents."""
    with Index.connect(url) as index:
        index.add([])


# A database with that collection.
database_url = address_of(fill)


@pytest.fixture
def leaves(index: Index) -> Leaves:
    """The names of the live generation's tables."""
    return index.serving().context.generation.leaves


@pytest.fixture
def other(index: Index) -> Iterator[Connection]:
    """A second connection."""
    with index.database.engine.connect() as connection:
        yield connection
