"""A round: load with kills, then a drained queue, then the comparison."""

import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from nearsim_db.store.driver.statements import FIRST_OWN
from tests.endurance.soak import compare
from tests.endurance.soak.events import Listener
from tests.endurance.soak.journal import Model
from tests.endurance.soak.processes import Child, Starter
from tests.endurance.soak.recipes import draw_changes
from tests.endurance.soak.stored import read_documents, read_generation, read_generations, remains
from tests.endurance.soak.system import ATTACHED, System

_WRITERS, _WORKERS, _COMMANDS = 3, 2, 2
_DRAIN_SECONDS = 180.0
_COMMAND_SECONDS = 20.0
_CALM_SHARE = 0.5
_KINDS = ["worker", "writer", "decide", "none", "command", "backend", "server"]
_WEIGHTS = [30, 25, 15, 5, 2, 1, 1.2]
_LEFT = """
SELECT 'change', NULL, collection_id, doc_id, NULL, NULL FROM nearsim.change
UNION ALL SELECT 'work', generation_id, NULL, doc_id, queued_work.stage, error FROM nearsim_index.queued_work
    JOIN nearsim.generation USING (generation_id) WHERE state IN ('live', 'ready', 'retired') AND NOT dropping
UNION ALL SELECT 'sweep', NULL, collection_id, NULL, NULL, trouble FROM nearsim_index.attachment
    WHERE (swept_at >= wanted_at) IS NOT TRUE
"""
_HASTEN = "UPDATE nearsim.work SET due_at = now() WHERE lease_id IS NULL AND due_at > now()"
_READY = """
SELECT collection.name, profile.name FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id) WHERE generation.state = 'ready' AND NOT generation.dropping
"""
_NUMBER = re.compile(r"\d+")
_SET_ASIDE = "SELECT coalesce(error, '') FROM nearsim.work WHERE set_aside_at IS NOT NULL"


class Different(Exception):
    """Something differs from the oracle; the lines say what."""


@dataclass
class Counts:
    """What a soak has done."""

    kills: Counter[str] = field(default_factory=Counter)
    statements: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    set_aside: Counter[str] = field(default_factory=Counter)
    rounds: int = 0


def _refusal(log: Path, is_calm: bool) -> str:
    """What a command that failed has written, with its numbers left out; and whether the server was left running."""
    text = " ".join(log.read_text(errors="replace").split())
    return f"{'calm' if is_calm else 'killed'}: {_NUMBER.sub('N', text)}"


class Rounds:
    """Rounds on one database."""

    def __init__(self, system: System, folder: Path, rng: random.Random, counts: Counts) -> None:
        self._system, self._rng, self._counts = system, rng, counts
        self._starter = Starter(system.url, system.written, folder, rng)
        self._model, self._purged = Model(), set[str]()
        self._running: list[Child] = []
        self._listeners = [Listener(system, profile) for profile in system.profiles]
        self._logs: list[Path] = []
        self._is_calm = False

    def run(self, seconds: float) -> None:
        """One round; in a calm one commands, and the server under them, are left to end. Raises Different."""
        self._is_calm = self._rng.random() < _CALM_SHARE
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._refill()
            time.sleep(self._rng.random() * 0.12)
            self._disturb()
        self._settle()
        self._drain()
        self._check()
        self._counts.rounds += 1

    def close(self) -> None:
        """Kill what runs."""
        for child in self._running:
            child.kill()

    def _refill(self) -> None:
        for child in [one for one in self._running if not one.is_alive]:
            self._running.remove(child)
            self._ended(child)
        alive = Counter(child.kind for child in self._running)
        for _ in range(_WRITERS - alive["writer"]):
            self._keep(self._starter.writer())
        for _ in range(_WORKERS - alive["worker"]):
            self._keep(self._starter.worker())
        for _ in range(_COMMANDS - alive["command"]):
            self._keep(self._starter.command(*self._draw_command()))

    def _keep(self, child: Child) -> Child:
        self._running.append(child)
        self._logs.append(child.log)
        return child

    def _ended(self, child: Child) -> None:
        if child.kind == "command":
            name = " ".join(child.arguments[:2]) if child.arguments[0] == "reindex" else child.arguments[0]
            code = child.process.exitcode
            self._counts.commands[f"{name} (exit code {code})"] += 1
            if code is not None and code > 0:
                self._counts.refusals[f"{name}: {_refusal(child.log, self._is_calm)}"] += 1

    def _disturb(self) -> None:
        possible = 4 if self._is_calm else len(_KINDS)
        kind = self._rng.choices(_KINDS[:possible], _WEIGHTS[:possible])[0]
        if kind in ("worker", "writer", "command"):
            child = self._rng.choice([one for one in self._running if one.kind == kind])
            if child.is_alive:
                child.kill()
                self._counts.kills[kind] += 1
        elif kind == "server":
            self._system.kill_server()
            self._counts.kills[kind] += 1
        elif kind == "backend":
            self._counts.kills[kind] += self._system.kill_backend()
        elif kind == "decide":
            self._try_to_decide(0.5)

    def _try_to_decide(self, share: float) -> None:
        try:
            self._counts.statements["PREPARED decided by another session"] += self._system.decide_prepared(
                share
            )
        except psycopg.OperationalError:
            # A killed session takes all others with it.
            return

    def _draw_command(self) -> tuple[str, ...]:
        """A random command, every third time a promotion if a generation is ready."""
        ready = self._system.rows(_READY) if self._is_calm and self._rng.random() < 1 / 3 else []
        if ready:
            collection, name = self._rng.choice(ready)
            return ("reindex", "promote", str(name), "--collection", str(collection), "--quiet")
        profile = self._rng.choice(self._system.profiles)
        where = ("--collection", profile.collection)
        reindex = self._rng.choice(
            ["start", "start", "promote", "rollback", "drop", "pause", "resume", "abandon"]
        )
        kind = self._rng.choice(["reindex", "reindex", "reindex", "purge", "build", "sweep", "read"])
        if kind == "purge" and profile.collection != ATTACHED:
            names = [f"d{self._rng.randrange(24)}" for _ in range(2)]
            self._purged.update(names)
            return ("document", "purge", *names, *where, "--yes", "--quiet")
        if kind == "build":
            return ("build", *where, "--quiet")
        if kind == "sweep":
            return ("table", "sweep", ATTACHED, "--quiet")
        if kind == "read":
            return (self._rng.choice(["pairs", "clusters", "stats"]), *where, "--profile", profile.name)
        if reindex == "start":
            changes = draw_changes(profile.variant, self._rng)
            settings = [part for change in changes for part in ("--set", change)]
            how = self._rng.choice([(), ("--promote",), ("--promote",), ("--detach",)])
            return ("reindex", "start", profile.name, *where, *settings, *how, "--quiet")
        yes = ("--yes",) if reindex in ("drop", "abandon") else ()
        return ("reindex", reindex, profile.name, *where, *yes, "--quiet")

    def _settle(self) -> None:
        """End writers and workers, and most commands by waiting; decide all prepared transactions."""
        self._try_to_decide(1.0)
        for child in self._running:
            if child.kind == "command" and (self._is_calm or self._rng.random() < 0.8):
                child.process.join(_COMMAND_SECONDS)
                self._ended(child)
            if child.is_alive:
                child.kill()
                self._counts.kills[child.kind] += 1
        self._running.clear()
        self._system.await_end_of_writers()
        while self._system.rows("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"):
            self._try_to_decide(1.0)
        with self._system.connect() as connection:
            self._counts.statements += self._model.replay(connection)

    def _drain(self) -> None:
        if self._model.truncated:
            self._run_to_end("table", "sweep", ATTACHED, "--quiet")
            self._model.truncated = False
        workers = [self._keep(self._starter.worker()) for _ in range(2)]
        attempts = Retrying(
            retry=retry_if_result(bool), stop=stop_after_delay(_DRAIN_SECONDS), wait=wait_fixed(0.1)
        )
        try:
            attempts(self._hasten)
        except RetryError as error:
            left = error.last_attempt.result()
            raise Different("work is left:", *map(str, left[:20])) from error
        for child in workers:
            child.kill()
            self._counts.kills["worker"] += 1
        self._running.clear()

    def _hasten(self) -> list[tuple[Any, ...]]:
        """Return the work that is left; have workers do it now, also what was set aside."""
        left = self._system.rows(_LEFT)
        if left:
            self._system.rows(_HASTEN)
            aside = self._system.rows(_SET_ASIDE)
            if aside:
                self._counts.set_aside.update(error for (error,) in aside)
                self._run_to_end("work", "retry", "--all", "--quiet")
        return left

    def _run_to_end(self, *arguments: str) -> None:
        child = self._keep(self._starter.command(*arguments))
        child.process.join(_DRAIN_SECONDS)
        self._running.remove(child)
        if child.process.exitcode != 0:
            raise Different(f"{arguments} ended with {child.process.exitcode}:", child.log.read_text())

    def _check(self) -> None:
        found = [*self._tracebacks(), *self._differences()]
        if found:
            raise Different(*found)
        for log in self._logs:
            log.unlink(missing_ok=True)
        self._logs.clear()
        self._purged.clear()
        self._model.cleared.clear()

    def _tracebacks(self) -> list[str]:
        texts = [log.read_text(errors="replace") for log in self._logs if log.exists()]
        return [text for text in texts if "Traceback" in text]

    def _differences(self) -> list[str]:
        system, model = self._system, self._model
        found: list[str] = []
        with system.connect() as connection:
            documents = read_documents(connection)
            verdicts = {
                (left, right): (collection, verdict)
                for left, right, collection, verdict in connection.execute(
                    "SELECT left_id, right_id, collection_id, verdict FROM nearsim.verdict WHERE undone_at IS NULL"
                )
            }
            found += compare.wrong_documents(model, documents, system.written, self._purged)
            found += compare.wrong_story(model, documents, system.collections[ATTACHED])
            found += compare.wrong_verdicts(model, verdicts, self._purged)
            found += remains(connection)
            for generation in read_generations(connection):
                rows = {
                    doc_id: one.row(self._body(one.values))
                    for doc_id, one in documents.items()
                    if one.values["collection_id"] == generation.collection_id
                }
                revisions = {doc_id: documents[doc_id].revision for doc_id in rows}
                stored = read_generation(connection, generation)
                found += compare.wrong_index(generation, rows, revisions, verdicts, stored)
                self._counts.checks[generation.recipe.sketch.family] += 1
                kind = "shared" if generation.generation_id < FIRST_OWN else "own"
                self._counts.checks[f"indexes in {kind} tables"] += 1
                self._counts.checks["documents"] += len(stored.signatures)
                self._counts.checks["pairs"] += len(stored.pairs)
        for listener in self._listeners:
            found += listener.differences(self._purged)
        return found

    def _body(self, values: dict[str, object]) -> str | None:
        if values["collection_id"] == self._system.collections[ATTACHED]:
            row = self._model.story.get(int(str(values["external_id"])))
            return None if row is None else row["body"]
        return None if values["body"] is None else str(values["body"])
