"""Actors that run SQL statements one at a time, in an order that a seed decides. They can be killed in between."""

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import psycopg
from psycopg import sql

from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.connection import Backend
from tests.builders.engine_hooks import in_transaction, on_connect

_POLL_SECONDS = 0.002
_STUCK_SECONDS = 60.0

State = Literal["running", "paused", "ended"]


# Not a subclass of Exception, because the code under test may catch Exception.
class Killed(BaseException):
    """Ends the action of a killed actor."""


class Actor(threading.Thread):
    """A thread that stands for a process. It pauses before each SQL statement until it is resumed."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self.action = action
        self.state: State = "running"
        self.about_to: object = None
        self.backends: set[int] = set()
        self.killed = False
        self.error: BaseException | None = None
        self.turn = threading.Condition()

    def run(self) -> None:
        """Run the action and record its error, if any."""
        try:
            self.action()
        except BaseException as error:
            self.error = None if self.killed else error
        self._change_state("ended")

    def pause(self, about_to: object) -> None:
        """Wait before a statement until the schedule resumes this actor. Raises Killed if the actor is to end here."""
        if not self.killed:
            self.about_to = about_to
            self._change_state("paused")
            with self.turn:
                self.turn.wait_for(lambda: self.killed or self.state == "running")
        if self.killed:
            raise Killed

    def resume(self) -> None:
        """Let the actor execute its next statement."""
        with self.turn:
            if self.state == "paused":
                self.state = "running"
            self.turn.notify_all()

    def wait_until_paused(self, seconds: float) -> bool:
        """Wait until the actor pauses or ends, and return whether it did so within the time."""
        with self.turn:
            return self.turn.wait_for(lambda: self.state != "running", seconds)

    def _change_state(self, state: State) -> None:
        with self.turn:
            self.state = state
            self.turn.notify_all()


class _SteppedCursor(psycopg.Cursor[Any]):
    """A cursor whose statements are steps of its actor."""

    def execute(self, query: Any, *args: Any, **options: Any) -> "_SteppedCursor":
        _pause(self.connection, query)
        return super().execute(query, *args, **options)

    def copy(self, statement: Any, *args: Any, **options: Any) -> Any:
        _pause(self.connection, statement)
        return super().copy(statement, *args, **options)


def _pause(backend: Backend, about_to: object) -> None:
    actor = threading.current_thread()
    # In autocommit, only the pool's check of the connection runs. It is not a step.
    if isinstance(actor, Actor) and not backend.autocommit:
        try:
            actor.pause(about_to)
        except Killed:
            backend.close()
            raise


class _SteppedConnection(Connection):
    """A connection whose commits are steps of its actor. The actor records its sessions."""

    def __init__(self, backend: Backend, give_back: Callable[[Backend], None]) -> None:
        super().__init__(backend, give_back)
        self._actor = threading.current_thread()
        if isinstance(self._actor, Actor):
            self._actor.backends.add(backend.info.backend_pid)

    def commit(self) -> None:
        if in_transaction(self):
            _pause(self.backend, "COMMIT")
        super().commit()

    def close(self) -> None:
        backend = self._backend
        super().close()
        if isinstance(self._actor, Actor) and backend is not None and not backend.closed:
            self._actor.backends.discard(backend.info.backend_pid)


def step_through(engine: Engine) -> None:
    """Make each statement and each commit that an actor runs on this engine a step of the actor."""

    def connected(backend: Backend) -> None:
        backend.cursor_factory = _SteppedCursor

    on_connect(engine, connected)
    engine.connection_type = _SteppedConnection


class Schedule:
    """Resumes actors in an order drawn from a seeded generator, until all actors have ended.

    `steps` lists the actors and statements in this order. The server chooses the victim of a deadlock; everything else
    depends on the seed alone.
    """

    def __init__(self, rng: random.Random, monitor: Backend, share_of_crashes: float = 0.0) -> None:
        self.steps: list[tuple[str, object]] = []
        self.crashes = 0
        self._rng = rng
        self._monitor = monitor
        self._share_of_crashes = share_of_crashes

    def run(self, actors: Sequence[Actor], successor: Callable[[Actor], Actor | None]) -> None:
        """Run actors to their end. `successor` returns the replacement of a killed actor, None for no replacement."""
        living: list[Actor] = []
        to_come = list(actors)

        try:
            while living or to_come:
                for actor in to_come:
                    actor.start()
                    living.append(actor)
                    self._settle(living)
                self._step(living)
                self._settle(living)
                to_come = self._successors(living, successor)
                living = [actor for actor in living if actor.state != "ended"]
        finally:
            for actor in living:
                self._kill(actor)

    def listing(self) -> str:
        """The steps of the schedule, one on each line."""
        return "\n".join(f"{name:10} {_one_line(about_to)}" for name, about_to in self.steps)

    def _step(self, living: Sequence[Actor]) -> None:
        if self._rng.random() < self._share_of_crashes:
            self.crashes += 1
            self._kill(self._rng.choice(living))
            return
        ready = [actor for actor in living if actor.state == "paused"]
        if ready:
            actor = self._rng.choice(ready)
            self.steps.append((actor.name, actor.about_to))
            actor.resume()

    def _successors(self, living: Sequence[Actor], successor: Callable[[Actor], Actor | None]) -> list[Actor]:
        ended = [actor for actor in living if actor.state == "ended"]
        for actor in ended:
            if actor.error is not None:
                raise actor.error
        return [
            started
            for started in (successor(actor) for actor in ended if actor.killed)
            if started is not None
        ]

    def _kill(self, actor: Actor) -> None:
        self.steps.append((actor.name, "killed"))
        actor.killed = True
        self._monitor.execute(
            # With a timeout, the function waits until the sessions have ended, and have released their locks.
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE pid = ANY(%s)",
            [list(actor.backends)],
        )
        actor.resume()
        actor.join()

    def _settle(self, living: Sequence[Actor]) -> None:
        """Wait until every actor has paused or ended, or waits for a lock while another can continue."""
        for _ in range(int(_STUCK_SECONDS / _POLL_SECONDS)):
            running = [actor for actor in living if not actor.wait_until_paused(_POLL_SECONDS)]
            # An actor that waits for a lock may keep waiting while another actor can continue.
            able = any(actor.state == "paused" for actor in living)
            if not running or (able and all(map(self._waits, running))):
                return
        raise TimeoutError(f"{[actor.name for actor in running]} do not proceed")

    def _waits(self, actor: Actor) -> bool:
        row = self._monitor.execute(
            "SELECT bool_or(pg_blocking_pids(pid) <> '{}') FROM unnest(%s::int[]) AS pid",
            [list(actor.backends)],
        ).fetchone()
        return actor.state == "running" and row is not None and bool(row[0])


def _one_line(about_to: object) -> str:
    text = about_to.as_string(None) if isinstance(about_to, sql.Composable) else str(about_to)
    return " ".join(line for line in text.splitlines() if not line.startswith("--"))[:160]
