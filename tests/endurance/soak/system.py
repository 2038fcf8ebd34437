"""The server and database of a soak, which are killed and come back."""

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg
from psycopg import sql
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from nearsim_db.admin import attach
from nearsim_db.index import Index
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.workers import wait_until
from tests.endurance.soak.journal import SCHEMA, Connection
from tests.endurance.soak.recipes import VARIANTS, draw_recipe, takes_vectors

# Only processes are killed, never the machine: nothing has to reach the disk.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_prepared_transactions": "50",
    "deadlock_timeout": "50ms",
    "shared_buffers": "64MB",
    "log_statement": "none",
}
_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.05
ATTACHED = "story"
_TEMPLATE = "soak_template"
_NO_WRITERS = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'soak writer')"


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of the soak: where it is, and the variant of its recipe."""

    collection: str
    name: str
    variant: str


class System:
    """One database on the server, with profiles of several families."""

    def __init__(self, cluster: PostgresCluster, name: str, rng: random.Random) -> None:
        self.cluster, self._rng = cluster, rng
        self.url = cluster.dsn(name)
        self._create(name)
        self.profiles = self._make_profiles()
        with self.connect() as connection:
            rows = connection.execute("SELECT name, collection_id FROM nearsim.collection").fetchall()
        self.collections: dict[str, int] = {str(name): int(number) for name, number in rows}

    @property
    def written(self) -> list[int]:
        """The collections that writers write to."""
        return [number for name, number in self.collections.items() if name != ATTACHED]

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection in autocommit, as soon as the server accepts one."""
        attempts = Retrying(
            retry=retry_if_exception_type(psycopg.OperationalError),
            stop=stop_after_delay(_PATIENCE_SECONDS),
            wait=wait_fixed(_POLL_SECONDS),
            reraise=True,
        )
        with attempts(psycopg.connect, self.url, autocommit=True) as connection:
            yield connection

    def rows(self, command: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own; return its rows."""
        with self.connect() as connection:
            cursor = connection.execute(command.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def kill_server(self) -> None:
        """kill -9 the postmaster, and start another, which recovers."""
        postmaster = self.cluster.status()
        if postmaster is not None:
            postmaster.process.kill()
            with suppress(psutil.TimeoutExpired):
                postmaster.process.wait(10)
        self.cluster.start()

    def kill_backend(self) -> bool:
        """kill -9 the server's process of a random session, upon which the postmaster restarts all of them."""
        rows = self.rows(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        if not rows:
            return False
        with suppress(ProcessLookupError):
            os.kill(int(self._rng.choice(rows)[0]), signal.SIGKILL)
        return True

    def decide_prepared(self, share: float) -> int:
        """Commit or roll back prepared transactions, each with this probability; return how many."""
        decided = 0
        with self.connect() as connection:
            for (name,) in connection.execute(
                "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
            ):
                if self._rng.random() < share:
                    decision = self._rng.choice(["COMMIT PREPARED {}", "ROLLBACK PREPARED {}"])
                    with suppress(
                        psycopg.errors.UndefinedObject, psycopg.errors.ObjectNotInPrerequisiteState
                    ):
                        connection.execute(sql.SQL(decision).format(sql.Literal(name)))
                        decided += 1
        return decided

    def await_end_of_writers(self) -> None:
        """Wait until the server has noticed that its writers were killed."""
        with self.connect() as connection:
            wait_until(connection, _NO_WRITERS)

    def _create(self, name: str) -> None:
        with psycopg.connect(self.cluster.dsn("postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT FROM pg_database WHERE datname = %s", (_TEMPLATE,)).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
                Database.initialise(self.cluster.dsn(_TEMPLATE))
            make = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
            connection.execute(make.format(sql.Identifier(name), sql.Identifier(_TEMPLATE)))
        self.rows(SCHEMA)

    def _make_profiles(self) -> list[Profile]:
        variants = list(VARIANTS)
        self._rng.shuffle(variants)
        attached = next(one for one in variants if not takes_vectors(one))
        variants.remove(attached)
        wanted = [
            *(Profile("news", f"p{place}", variant) for place, variant in enumerate(variants[:3])),
            *(Profile("other", f"p{place}", variant) for place, variant in enumerate(variants[3:5])),
            Profile(ATTACHED, "p0", attached),
        ]
        with Database.connect(self.url) as database:
            columns = Columns("id", "body", title="headline", source="source", published_at="day")
            attach.attach_table(database, "public.story", columns, ATTACHED)
            for one in wanted:
                index = Index(database, one.collection)
                index.create_profile(one.name, draw_recipe(one.variant, self._rng))
                index.build()
        return wanted

    def drop(self) -> None:
        """Drop the database."""
        name = psycopg.conninfo.conninfo_to_dict(self.url)["dbname"]
        with psycopg.connect(self.cluster.dsn("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(str(name))))
