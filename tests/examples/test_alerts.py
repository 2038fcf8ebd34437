"""The alerts for Prometheus: they use metrics that workers export, and each fires when it should, alone."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from nearsim_db import Document, Index
from nearsim_db.admin import attach
from nearsim_db.errors import NearsimError
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.store.driver.driver_errors import cause_of_interruption
from nearsim_db.store.work import backlog, leases
from nearsim_db.worker.metrics import Monitor
from nearsim_db.worker.worker import Worker
from tests.builders.filled import database_of
from tests.builders.workers import application
from tests.examples.conftest import EXAMPLES
from tests.servers.citus import AnyServer

FILE = EXAMPLES / "prometheus" / "nearsim.rules.yml"
RULES = yaml.safe_load(FILE.read_text("utf-8"))["groups"][0]["rules"]
PROMTOOL = shutil.which("promtool", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")
FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'
STORY = "CREATE TABLE public.story (id integer PRIMARY KEY, body text)"

Samples = Mapping[str, float]
Scenario = Callable[[Database, Monitor, ExitStack], None]


def fill(url: str) -> None:
    """A collection of one document, indexed."""
    with Index.connect(url) as index:
        index.add([Document("d", body="some words of a text")])


# A database with that collection.
database = database_of(fill)


def watching(database: Database, monitor: Monitor | None = None) -> Monitor:
    """The monitor of a worker that has just done a round."""

    def read() -> backlog.Backlog:
        with database.transaction() as connection:
            return backlog.read_backlog(connection, None)

    monitor = monitor or Monitor()
    monitor.session_began(read)
    monitor.round_done()
    return monitor


def scraped(monitor: Monitor) -> Samples:
    """The samples that the worker serves, by series."""
    return {
        f"{sample.name}{{{_written(sample.labels)}}}": sample.value
        for family in text_string_to_metric_families(monitor.exposition().decode())
        for sample in family.samples
    }


def _written(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))


def run(database: Database, command: str) -> None:
    """Run a statement of another application."""
    with application(database.engine.url) as app:
        app.execute(command.encode())


def test_alerts_use_metrics_that_workers_export(database: Database) -> None:
    exported = scraped(watching(database)).keys()
    used = [one for rule in RULES for one in re.findall(r"(nearsim_\w+)(?:{(\w+=\"\w+\")})?", rule["expr"])]
    assert len(used) == len(RULES) - 1  # one is on `up`
    for name, label in used:
        assert [one for one in exported if one.startswith(f"{name}{{") and label in one], (name, label)
    assert {rule["alert"] for rule in RULES} == {alert for alerts in SCENARIOS for alert in alerts}


def old_change(database: Database, monitor: Monitor, stack: ExitStack) -> None:
    """A change that was captured an hour ago."""
    run(
        database,
        "UPDATE nearsim.document SET body = 'other'; UPDATE nearsim.change SET changed_at = now() - interval '1 h'",
    )


def silent_worker(database: Database, monitor: Monitor, stack: ExitStack) -> None:
    """A worker whose session is open, without a heartbeat for a minute."""
    connection = stack.enter_context(database.engine.connect())
    leases.open_lease(connection, "host:17")
    connection.commit()
    run(database, "UPDATE nearsim_index.lease SET beat_at = now() - interval '1 min'")


def set_aside(database: Database, monitor: Monitor, stack: ExitStack) -> None:
    """A document whose last attempt failed."""
    run(
        database,
        "INSERT INTO nearsim.work (generation_id, doc_id, stage, attempts, set_aside_at)"
        " VALUES (1, 1, 'sign', 5, now())",
    )


def renamed_column(database: Database, monitor: Monitor, stack: ExitStack) -> None:
    """An attached table whose column was renamed, as a worker finds it."""
    run(database, STORY)
    attach.attach_table(database, "public.story", Columns("id", "body"))
    attach.ingest_table(Index(database, "story"), "default", None)
    run(database, "ALTER TABLE public.story RENAME body TO content")
    with suppress(NearsimError):
        Worker(database.engine.url).drain()


def lost_database(database: Database, monitor: Monitor, stack: ExitStack) -> None:
    """A worker whose database is not there."""
    worker = Worker(database.engine.url.replace("/test_", "/missing_"), monitor=monitor)
    working = Thread(target=worker.run)
    working.start()
    while monitor.health()[1].startswith("last round"):
        working.join(0.01)
    worker.stop()
    working.join()


def full_disk(database: Database, monitor: Monitor, stack: ExitStack) -> None:
    """A server that refused for want of space, once."""
    with pytest.raises(psycopg.Error) as refusal:
        run(database, "DO $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$")
    monitor.database_lost("no space", cause_of_interruption(refusal.value))
    watching(database, monitor)


def little_disk(database: Database, monitor: Monitor, stack: ExitStack) -> None:
    """A disk of the worker with a gigabyte left."""
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 30))


def killed_worker(database: Database, monitor: Monitor, stack: ExitStack) -> None:
    """The only worker, which no longer answers."""


# The alerts that each scenario fires.
SCENARIOS: dict[tuple[str, ...], Scenario] = {
    ("NearsimBacklogOld",): old_change,
    ("NearsimWorkerSilent",): silent_worker,
    ("NearsimSetAside",): set_aside,
    ("NearsimTableNotFollowed",): renamed_column,
    ("NearsimDatabaseLost",): lost_database,
    ("NearsimDatabaseDiskFull",): full_disk,
    ("NearsimDiskLow",): little_disk,
    ("NearsimNoWorker", "NearsimWorkerGone"): killed_worker,
}


def unit_test(alerts: tuple[str, ...], before: Samples, after: Samples, up: int) -> dict[str, Any]:
    """A unit test of promtool: five minutes of the first samples, half an hour of the second, one a minute."""
    values = {'up{job="nearsim"}': f"1+0x4 {up}+0x30"}
    for series in before.keys() | after.keys():
        early = f"{before[series]}+0x4" if series in before else "_x5"
        values[series] = f"{early} {after[series]}+0x30" if series in after else f"{early} _x31"
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": shown} for series, shown in values.items()],
        "promql_expr_test": [
            {
                "expr": FIRING,
                "eval_time": "14m",
                "exp_samples": [{"labels": f'{{alertname="{one}"}}', "value": 1} for one in alerts],
            }
        ],
    }


@pytest.mark.slow("needs promtool, which `make promtool` installs")
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed; run make promtool")
def test_each_alert_fires_alone(server: AnyServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))
    tests = []
    for alerts, scenario in {(): killed_worker, **SCENARIOS}.items():
        with server.database(fill) as url, Database.connect(url) as database, ExitStack() as stack:
            monitor = watching(database)
            before = scraped(monitor)
            scenario(database, monitor, stack)
            is_gone = bool(alerts) and scenario is killed_worker
            after = {} if is_gone else scraped(monitor)
            tests.append(unit_test(alerts, before, after, up=0 if is_gone else 1))
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "tests": tests}))
    for command in (["check", "rules", str(FILE)], ["test", "rules", str(path)]):
        outcome = subprocess.run([str(PROMTOOL), *command], capture_output=True, text=True, check=False)
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
