"""A standby that is promoted while a worker and an application are at work, which then go on with it."""

from contextlib import suppress
from threading import Event, Thread

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.reindex_world import jaccard_pairs, pairs_of, texts_of
from tests.builders.server_kills import kill
from tests.builders.workers import IDLE, application, running, wait_until
from tests.servers.standby import primary_and_standby

_RECIPE = ["shingle.k=1", "match.threshold=0.5", "bands.count=64", "bands.rows=1", "match.bucket_limit=0"]
_WRITE = (
    "INSERT INTO nearsim.document (collection_id, external_id, body) SELECT collection_id, %s, %s "
    "FROM nearsim.collection ON CONFLICT (collection_id, external_id) DO UPDATE SET body = excluded.body"
)


def both(primary: PostgresCluster, standby: PostgresCluster) -> str:
    """The address of whichever of them takes writes."""
    hosts = ",".join(str(one.socket_directory).replace("/", "%2F") for one in (primary, standby))
    return f"postgresql://nearsim@/nearsim?host={hosts}&port=5432,5432&target_session_attrs=read-write"


def write(url: str, stopped: Event, written: list[int]) -> None:
    """An application that writes until it is stopped, whichever server takes it."""
    while not stopped.is_set():
        with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as connection:
            while not stopped.is_set():
                number = len(written)
                words = (
                    f"a{number % 5} b{number % 5} c{number % 5} d{number % 5} e{number % 11} f{number % 7}"
                )
                connection.execute(_WRITE, (f"d{number % 60}", words))
                written.append(number)


@pytest.mark.slow("starts two servers and kills one")
def test_work_goes_on_with_a_promoted_standby(major: int) -> None:
    with primary_and_standby(major) as (primary, standby):
        url, stopped, written = both(primary, standby), Event(), list[int]()
        with Index.connect(url) as index:
            index.create_profile("default", override(Recipe(), _RECIPE))
            index.build()
        writer = Thread(target=write, args=(url, stopped, written))
        with running(url) as worker:
            worker.wait_for_line("starts")
            writer.start()
            with application(primary.dsn()) as app:
                wait_until(app, "SELECT count(*) >= 50 FROM nearsim.document")
            with Index.connect(standby.dsn()) as reading:
                list(reading.pairs())
            kill(primary)
            before = len(written)
            _promote(standby)
            with application(standby.dsn()) as app:
                while len(written) < before + 100:
                    app.execute("SELECT pg_sleep(0.02)")
                stopped.set()
                writer.join()
                wait_until(app, IDLE)
        with Database.connect(standby.dsn()) as database:
            assert pairs_of(database, 1) == jaccard_pairs(texts_of(database), 0.5)
            assert verify_index(database, sample=None).found.faults == ()


def _promote(cluster: PostgresCluster) -> None:
    arguments = [cluster.binaries.program("pg_ctl"), "promote", "--wait", "-D", str(cluster.data_directory)]
    assert cluster.account.run(arguments).returncode == 0
