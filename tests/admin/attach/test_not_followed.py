"""Attached tables whose changes are not indexed: every surface says so, and no longer once that is mended."""

import re

import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.admin.doctor import examine
from nearsim_db.errors import NearsimError
from nearsim_db.search.answers import describe_collection
from nearsim_db.store.database import Database
from nearsim_db.worker.metrics import Monitor
from nearsim_db.worker.worker import Worker
from tests.builders.followed_table import PARTITIONED, attached, write
from tests.builders.logins import login, user_of
from tests.builders.selection import some
from tests.builders.workers import Application, WorkerLog, ask

# What an owner does to the table, how it is undone, and the reason that is shown.
ALTERATIONS = (
    ("RENAME body TO content", "RENAME content TO body", "its column 'body' does not exist"),
    (
        "ALTER headline TYPE integer USING 1",
        "ALTER headline TYPE text",
        "column 'headline' is of type integer; the title may be",
    ),
    (
        "DISABLE TRIGGER nearsim_1_rows",
        "ENABLE TRIGGER ALL",
        "trigger nearsim_1_rows is disabled on public.story",
    ),
    ("DROP CONSTRAINT story_pkey", "ADD PRIMARY KEY (id)", "column 'id' is not unique"),
    ("DROP COLUMN headline", "ADD headline text", "its column 'headline' does not exist"),
)
RETRIED = "UPDATE nearsim_index.attachment SET wanted_at = now() - interval '2 min'"


def shown(url: str) -> list[str | None]:
    """The problem that doctor, stats, the list of attached tables and that of a collection show."""
    found = [one for one in examine() if one.check == "attached tables"]
    with Index.connect(url, collection="story") as index:
        (listed,) = attach.list_attachments(index.database)
        assert all((one.verdict == "problem") is (listed.problem is not None) for one in found)
        return [
            found[0].finding.removeprefix("not indexed: ") if found[0].verdict == "problem" else None,
            index.stats()["trouble"],
            describe_collection(index.database, "story")["trouble"],
            listed.problem,
        ]


def drained(url: str) -> tuple[Monitor, str, dict[str, float]]:
    """A worker that drained the queue, its error, and the metrics of attached tables and of age at the end."""
    seen = list[str]()

    class Watched(Monitor):
        def session_ended(self) -> None:
            seen.append(self.exposition().decode())
            super().session_ended()

    monitor = Watched()
    error = ""
    try:
        Worker(url, monitor=monitor).drain()
    except NearsimError as failure:
        error = str(failure)
    metrics = dict(re.findall(r"^(nearsim_(?:tables|oldest)\w+) (\S+)$", seen[-1], re.MULTILINE))
    return monitor, error, {name: float(value) for name, value in metrics.items()}


@pytest.mark.slow("several builds")
@pytest.mark.parametrize("alterations", some([1, len(ALTERATIONS)], "every alteration"))
def test_an_altered_or_dropped_table_is_reported_everywhere(
    story: Index,
    app: Application,
    where: str,
    logged: WorkerLog,
    monkeypatch: pytest.MonkeyPatch,
    alterations: int,
) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", where)
    assert shown(where) == [None] * 4
    assert drained(where)[1:] == (
        "",
        {"nearsim_oldest_waiting_seconds": 0, "nearsim_tables_attached": 1, "nearsim_tables_not_followed": 0},
    )
    for number, (alteration, undo, reason) in enumerate(ALTERATIONS[:alterations]):
        app.execute(f"ALTER TABLE story {alteration}".encode())
        problem, *others = shown(where)
        assert problem is not None and reason in problem and set(others) == {problem}
        assert len(logged.events("not_followed")) == number
        monitor, error, metrics = drained(where)
        assert error == problem and monitor.health() == (False, problem)
        assert monitor.liveness()[0]
        assert metrics["nearsim_tables_not_followed"] == 1 and metrics["nearsim_oldest_waiting_seconds"] > 0
        assert [one.message for one in logged.events("not_followed")][number:] == [problem]
        app.execute(f"ALTER TABLE story {undo}".encode())
        app.execute(RETRIED.encode())
        monitor, error, metrics = drained(where)
        assert (error, metrics["nearsim_tables_not_followed"], monitor.health()[0]) == ("", 0, True)
        assert shown(where) == [None] * 4
    app.execute("DROP TABLE story")
    problem, *others = shown(where)
    assert problem is not None and "dropped" in problem and set(others) == {problem}
    monitor, error, metrics = drained(where)
    assert error == problem and monitor.health() == (False, problem)
    assert metrics["nearsim_tables_not_followed"] == 1


@pytest.mark.slow("several workers")
def test_a_revoked_privilege_is_reported_to_users_who_have_it(
    app: Application, database: Database, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's user may not read the table any more; a superuser, who may, sees the problem all the same."""
    monkeypatch.setenv("NEARSIM_DATABASE_URL", where)
    attached(database)
    with login(where, "nearsim_admin") as keeper:
        user = user_of(keeper)
        app.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        for granted in ("USAGE ON SCHEMA public", "SELECT ON story"):
            app.execute(f"GRANT {granted} TO {user}".encode())
        assert drained(keeper)[1] == ""
        for revoked, reason in (
            ("SELECT ON story", "the user may not read column 'id'"),
            ("USAGE ON SCHEMA public", "the user may not use its schema"),
        ):
            app.execute(f"REVOKE {revoked} FROM {user}".encode())
            assert shown(where) == [None] * 4
            monitor, error, _ = drained(keeper)
            assert reason in error and monitor.health() == (False, error)
            assert shown(where) == [error] * 4
            app.execute(f"GRANT {revoked} TO {user}".encode())
            app.execute(RETRIED.encode())
            assert drained(keeper)[1] == ""


def test_a_trigger_that_is_disabled_on_one_partition_is_repaired_by_attaching_again(
    where: str, app: Application, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then sweeps find what is written; the command that is shown repairs it."""
    monkeypatch.setenv("NEARSIM_DATABASE_URL", where)
    app.execute("DROP TABLE story")
    app.execute(PARTITIONED.encode())
    index = attached(database)
    app.execute("ALTER TABLE story_high DISABLE TRIGGER USER")
    app.execute("DROP TRIGGER nearsim_1_truncate ON story")
    write(app, 30, "written without a trigger")
    expected = drained(where)[1]
    assert "disabled on public.story_high" in expected and "nearsim_1_truncate is missing" in expected
    assert expected.endswith(
        "nearsim table attach public.story --id id --text body --title headline -c story"
    )
    assert ask(app, "SELECT count(*) FROM nearsim.document") == 0
    app.execute(RETRIED.encode())
    assert drained(where)[1] == expected
    assert ask(app, "SELECT count(*) FROM nearsim.document") == 1
    swept = index.sweep()
    assert swept.trouble is not None and swept.trouble == expected and index.warnings == []
    app.execute("UPDATE nearsim_index.attachment SET swept_at = now() - interval '2 min'")
    write(app, 32, "found by a build")
    index.build()
    assert index.warnings == [swept.trouble]
    assert ask(app, "SELECT count(*) FROM nearsim.document") == 2
    attached(database)
    assert shown(where) == [None] * 4
    write(app, 31, "captured again")
    assert drained(where)[1] == ""
    assert ask(app, "SELECT count(*) FROM nearsim.document") == 3


@pytest.mark.slow("a rare table")
def test_a_table_that_another_inherits_from_misses_its_rows(
    story: Index, app: Application, where: str
) -> None:
    app.execute("CREATE TABLE late () INHERITS (story)")
    assert "trigger nearsim_1_rows is missing on public.late" in drained(where)[1]


def test_an_unfinished_detach_is_reported(
    story: Index, app: Application, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", where)
    app.execute("UPDATE nearsim_index.attachment SET detaching = true")
    (found,) = [one for one in examine() if one.check == "attached tables"]
    assert (found.verdict, found.advice) == ("warning", "nearsim table detach story")
