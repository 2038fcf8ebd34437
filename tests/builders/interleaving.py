"""Actors that go on one SQL statement at a time, in an order that a seed decides, and may be killed between any two."""

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, event

_POLL_SECONDS = 0.002
_STUCK_SECONDS = 60.0

State = Literal["running", "stopped", "ended"]
Backend = psycopg.Connection[tuple[Any, ...]]


class Killed(BaseException):
    """The actor's process ends here."""


class Actor(threading.Thread):
    """A process as the database sees it: it stops before each of its statements until it is let go on."""

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
        """Do the action, and remember what became of it."""
        try:
            self.action()
        except BaseException as error:
            self.error = None if self.killed else error
        self._become("ended")

    def pause(self, about_to: object) -> None:
        """Wait for the turn to do something."""
        if not self.killed:
            self.about_to = about_to
            self._become("stopped")
            with self.turn:
                self.turn.wait_for(lambda: self.killed or self.state == "running")
        if self.killed:
            raise Killed

    def let_go(self) -> None:
        """Give the actor its turn."""
        with self.turn:
            if self.state == "stopped":
                self.state = "running"
            self.turn.notify_all()

    def rest(self, seconds: float) -> bool:
        """Wait until the actor stops or ends, for a while; whether it did."""
        with self.turn:
            return self.turn.wait_for(lambda: self.state != "running", seconds)

    def _become(self, state: State) -> None:
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
    # In autocommit the pool asks whether the connection lives; that is no step.
    if isinstance(actor, Actor) and not backend.autocommit:
        try:
            actor.pause(about_to)
        except Killed:
            backend.close()
            raise


def step_through(engine: Engine) -> None:
    """Make the statements and commits of actors on this engine their steps."""

    @event.listens_for(engine, "connect")
    def connected(backend: Backend, record: object) -> None:
        backend.cursor_factory = _SteppedCursor

    @event.listens_for(engine, "checkout")
    def taken(backend: Backend, record: object, proxy: object) -> None:
        actor = threading.current_thread()
        if isinstance(actor, Actor):
            actor.backends.add(backend.info.backend_pid)

    @event.listens_for(engine, "checkin")
    def given_back(backend: Backend | None, record: object) -> None:
        actor = threading.current_thread()
        if isinstance(actor, Actor) and backend is not None and not backend.closed:
            actor.backends.discard(backend.info.backend_pid)

    @event.listens_for(engine, "commit")
    def committing(connection: Connection) -> None:
        backend: Any = connection.connection.driver_connection
        if backend.info.transaction_status != TransactionStatus.IDLE:
            _pause(backend, "COMMIT")


class Schedule:
    """Lets actors go on in turn, as a seeded generator of random numbers has it, until all have ended.

    `steps` says who was about to do what. Which of the parties to a deadlock is its victim is the server's to choose,
    everything else is the seed's.
    """

    def __init__(self, rng: random.Random, monitor: Backend, share_of_crashes: float = 0.0) -> None:
        self.steps: list[tuple[str, object]] = []
        self.crashes = 0
        self._rng = rng
        self._monitor = monitor
        self._share_of_crashes = share_of_crashes

    def run(self, actors: Sequence[Actor], successor: Callable[[Actor], Actor | None]) -> None:
        """Run actors to their end; `successor` says who comes after one that was killed."""
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

    def told(self) -> str:
        """The schedule, one step a line."""
        return "\n".join(f"{name:10} {_in_a_line(about_to)}" for name, about_to in self.steps)

    def _step(self, living: Sequence[Actor]) -> None:
        if self._rng.random() < self._share_of_crashes:
            self.crashes += 1
            self._kill(self._rng.choice(living))
            return
        ready = [actor for actor in living if actor.state == "stopped"]
        if ready:
            actor = self._rng.choice(ready)
            self.steps.append((actor.name, actor.about_to))
            actor.let_go()

    def _successors(self, living: Sequence[Actor], successor: Callable[[Actor], Actor | None]) -> list[Actor]:
        ended = [actor for actor in living if actor.state == "ended"]
        for actor in ended:
            if actor.error is not None:
                raise actor.error
        return [one for one in (successor(actor) for actor in ended if actor.killed) if one is not None]

    def _kill(self, actor: Actor) -> None:
        self.steps.append((actor.name, "killed"))
        actor.killed = True
        self._monitor.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE pid = ANY(%s)",
            [list(actor.backends)],
        )
        actor.let_go()
        actor.join()

    def _settle(self, living: Sequence[Actor]) -> None:
        """Wait until every actor has stopped or ended, or waits for a lock while another may go on."""
        for _ in range(int(_STUCK_SECONDS / _POLL_SECONDS)):
            running = [actor for actor in living if not actor.rest(_POLL_SECONDS)]
            able = any(actor.state == "stopped" for actor in living)
            if not running or (able and all(map(self._waits, running))):
                return
        raise TimeoutError(f"{[actor.name for actor in running]} go nowhere")

    def _waits(self, actor: Actor) -> bool:
        row = self._monitor.execute(
            "SELECT bool_or(pg_blocking_pids(pid) <> '{}') FROM unnest(%s::int[]) AS pid",
            [list(actor.backends)],
        ).fetchone()
        return actor.state == "running" and row is not None and bool(row[0])


def _in_a_line(about_to: object) -> str:
    text = about_to.as_string(None) if isinstance(about_to, sql.Composable) else str(about_to)
    return " ".join(line for line in text.splitlines() if not line.startswith("--"))[:160]
