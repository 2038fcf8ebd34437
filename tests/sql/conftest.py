"""A copy of one filled collection, for tests that ask about it or change it."""

from collections.abc import Iterator

import pytest

from tests.builders.sql_world import World, fill, filled
from tests.servers.databases import Server


@pytest.fixture
def whole(server: Server) -> Iterator[World]:
    """The default collection under the default rules, with a retired generation."""
    with server.database(fill) as url, filled(url) as found:
        yield found
