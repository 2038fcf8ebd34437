"""The same collection in a plain database and on a Citus cluster."""

from collections.abc import Iterator

import pytest

from tests.servers.citus import CitusServer


@pytest.fixture
def urls(citus: CitusServer, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A plain database, and one whose band rows are on two nodes, or as many as its parameter says."""
    # First on the cluster, which creates the roles on its nodes, too.
    with (
        citus.database(nodes=getattr(request, "param", None)) as distributed,
        citus.plain_database() as plain,
    ):
        yield plain, distributed
