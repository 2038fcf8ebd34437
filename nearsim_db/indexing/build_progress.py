"""Progress of a build, recorded for estimates. Each commit checks that the build was not paused or abandoned."""

from nearsim_db.errors import BuildStoppedError
from nearsim_db.store import generation_rows, generations
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.work import queue


def begin(connection: Connection, generation: Generation, stage: str, done: int = 0) -> None:
    """Record when a stage began or resumed, and how much of it was done; commit."""
    at = queue.server_time(connection).timestamp()
    began = {"stage": stage, "at": at, "done": done}
    generation_rows.add_figures(connection, generation, {"began": began, "done": done, "total": None})
    commit(connection, generation)


def commit(
    connection: Connection, generation: Generation, done: int | None = None, total: int | None = None
) -> None:
    """Commit, with progress if `done` is given. Raises BuildStoppedError if the build was stopped meanwhile."""
    check_not_stopped(connection, generation)
    if done is not None:
        generation_rows.add_figures(connection, generation, {"done": done, "total": total})
    connection.commit()


def record(engine: Engine, generation: Generation, done: int, total: int) -> None:
    """Record progress of a stage that commits only at its end, in a transaction of its own."""
    with engine.begin() as connection:
        generation_rows.add_figures(connection, generation, {"done": done, "total": total})


def add_seconds(connection: Connection, generation: Generation, stage: str, seconds: float) -> None:
    """Add to the recorded duration of a stage; commit."""
    figures = generation_rows.reread(connection, generation).figures.get("seconds", {})
    spent = {**figures, stage: round(figures.get(stage, 0.0) + seconds, 3)}
    generation_rows.add_figures(connection, generation, {"seconds": spent})
    connection.commit()


def check_not_stopped(connection: Connection, generation: Generation) -> None:
    """Raise BuildStoppedError if the generation was paused or abandoned."""
    state = generations.read_state(connection, generation)
    if state != "building":
        raise BuildStoppedError(generation.generation_id, state, generation.advice("reindex resume"))
