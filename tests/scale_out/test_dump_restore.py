"""A dump of a cluster's database, restored on a plain server or another cluster: `schema init` places its band rows."""

import os
import subprocess
from collections.abc import Iterator

import pytest
from psycopg import sql

from nearsim_db import Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import SchemaError
from nearsim_db.store.citus import placement
from nearsim_db.store.database import Database
from tests.builders.logins import login, user_of
from tests.builders.restored_cluster import parts_of
from tests.builders.scale_out_world import answers, documents, index_at
from tests.builders.workers import application
from tests.servers.citus import CitusServer

pytestmark = pytest.mark.slow("starts a cluster")


class _InterruptedError(Exception):
    """Ends a build whose band rows are loaded, and not attached yet."""


def _interrupt(step: str, done: int, total: int | None) -> None:
    if step == "candidates":
        raise _InterruptedError


def _fill(url: str) -> None:
    """A live generation, and one whose build was interrupted."""
    with index_at(url) as index:
        index.add(documents(120, seed=31))
        with pytest.raises(_InterruptedError):
            Reindex(index.database, "default", progress=_interrupt).start(settings=["match.threshold=0.2"])


@pytest.fixture(scope="module")
def dump(citus: CitusServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URL of a database of a cluster, and its dump, taken as the README says."""
    file = str(tmp_path_factory.mktemp("dump") / "nearsim.dump")
    with citus.database(_fill) as url:
        _run(citus, "pg_dump", "-n", "nearsim", "-n", "nearsim_index", "--format=custom", "--file", file, url)
        yield url, file


def _run(citus: CitusServer, *command: str) -> None:
    program = citus.coordinator.binaries.program(command[0])
    without = {"PGOPTIONS": "-c citus.enable_ddl_propagation=off"}
    done = subprocess.run([program, *command[1:]], env=os.environ | without, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _restore(citus: CitusServer, file: str, url: str) -> None:
    _run(citus, "pg_restore", "--exit-on-error", "--dbname", url, file)
    with pytest.raises(SchemaError, match=r"a Citus cluster.*nearsim schema init"):
        Database.connect(url)
    assert Database.inspect(url).nodes == ()


def _goes_on_like(original: str, restored: str) -> None:
    """The index answers, finishes the interrupted build, and takes new documents, as the dumped one does."""
    found = []
    for url in (original, restored):
        with Index.connect(url) as index:
            first, reindex = answers(index), Reindex(index.database, "default")
            reindex.resume()
            reindex.promote()
            index.add(documents(20, seed=33, first=110))
            assert verify_index(index.database, sample=None).is_sound
            found.append((first, answers(index), index.stats(recount=True)["pairs"]))
    assert found[1] == found[0] and found[0][0] != found[0][1]


def test_on_a_plain_server(citus: CitusServer, dump: tuple[str, str]) -> None:
    with citus.bare_database() as target, citus.plain_database() as plain:
        _restore(citus, dump[1], target)
        Database.initialise(target)
        with application(target) as here, application(plain) as there:
            found, expected = parts_of(here), parts_of(there)
            assert found["functions"] == expected["functions"]
            assert found["default"] == expected["default"]
            assert found["generations"] == [(1, False), (2, False)]
            assert all(using != "false" for _, _, using in found["policies"])
        _goes_on_like(dump[0], target)


@pytest.mark.parametrize("attributes", ["SUPERUSER", "NOSUPERUSER NOCREATEROLE"])
def test_on_another_cluster(citus: CitusServer, dump: tuple[str, str], attributes: str) -> None:
    with (
        citus.empty_database() as target,
        login(target, "nearsim_admin", attributes=attributes) as own_url,
        citus.database(_fill) as original,
    ):
        with application(target) as session:
            names = map(sql.Identifier, (session.info.dbname, user_of(own_url)))
            session.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(*names))
        _restore(citus, dump[1], own_url)
        Database.initialise(own_url)
        with application(target) as here, application(dump[0]) as there:
            assert parts_of(here) == parts_of(there)
            local = "SELECT pg_relation_size('nearsim_index.band_shared')"
            assert here.execute(local).fetchall() == [(0,)]
        with Database.connect(target) as database, database.transaction() as connection:
            assert all(one.rows or one.bytes for one in placement.measure_nodes(connection))
        _goes_on_like(original, own_url)


def test_on_a_coordinator_that_is_to_keep_the_rows(citus: CitusServer, dump: tuple[str, str]) -> None:
    with citus.empty_database() as target:
        _restore(citus, dump[1], target)
        Database.initialise(target, citus="no")
        with Index.connect(target) as index, index.database.transaction() as connection:
            assert placement.list_nodes(connection) and not placement.is_distributed(connection)
            assert index.stats(recount=True)["pairs"]
