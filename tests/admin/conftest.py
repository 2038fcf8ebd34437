"""Fixtures: two tenants, and what the owner of one of them can make others run."""

from collections.abc import Iterator

import pytest

from tests.builders.isolation_world import World, two_tenants
from tests.builders.selection import some
from tests.builders.trapped_tables import Trap, set_trap
from tests.servers.databases import Server


@pytest.fixture(scope="module", params=some(["shared", "own"], "both kinds of tables"))
def tables(request: pytest.FixtureRequest) -> str:
    """Whether the generations of the tenants share their tables or have own ones."""
    return str(request.param)


@pytest.fixture(scope="module")
def world(server: Server, tables: str) -> Iterator[World]:
    """Two tenants under isolation."""
    with two_tenants(server, tables) as world:
        yield world


@pytest.fixture(scope="module")
def trap(world: World) -> Trap:
    """Tables of a tenant that report who runs their code."""
    return set_trap(world, world.reader)
