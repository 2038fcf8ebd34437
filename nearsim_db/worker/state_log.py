"""Log records on generations and collections that need manual action."""

import logging

from nearsim_db.errors import suggested_command
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.store import collection_rows, generations
from nearsim_db.store.generation_rows import Generation
from nearsim_db.worker.scope import Scope

_log = logging.getLogger("nearsim.worker")


class StateLog:
    """Logs each state once, when it is first seen."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._unindexed: set[CollectionId] = set()
        self._left_behind: set[GenerationId] = set()

    def mark_ready(self) -> None:
        """Mark generations that have caught up as ready to be promoted, and log them."""
        contexts = self._scope.contexts
        with self._scope.engine.connect() as connection:
            ready = generations.mark_ready(connection)
            connection.commit()
            found = [contexts.find(connection, one) for one in ready]
        for one in [context.generation for context in found if context is not None]:
            compare, promote = one.advice("reindex diff"), one.advice("reindex promote")
            _log.info(
                f"{contexts.describe(one)} has caught up; compare: {compare}; then: {promote}",
                extra={"event": "ready", "facts": contexts.facts(one)},
            )

    def log_left_behind(self) -> None:
        """Log builds beside a live index whose process died."""
        with self._scope.engine.connect() as connection:
            left = generations.find_unattended(connection, self._scope.collection_id)
        for generation in left:
            if generation.generation_id not in self._left_behind:
                _log.warning(
                    _left_behind(generation), extra={"event": "left_behind", "facts": _facts(generation)}
                )
        self._left_behind = {one.generation_id for one in left}

    def log_unindexed(self) -> None:
        """Log collections that have documents and no profile."""
        with self._scope.engine.connect() as connection:
            unindexed = collection_rows.list_unindexed(connection)
        for one in unindexed:
            if self._scope.includes(one.collection_id) and one.collection_id not in self._unindexed:
                self._unindexed.add(one.collection_id)
                build = suggested_command("build", one.name)
                _log.warning(
                    f"collection {one.name} has documents but no profile; create one: {build}",
                    extra={"event": "no_profile", "facts": {"collection": one.name}},
                )


def _left_behind(generation: Generation) -> str:
    remedy = generations.remedy(generation, attended=False)
    return (
        f"the build of generation {generation.generation_id} of profile {generation.profile} of collection "
        f"{generation.collection} was left behind: its process ended; {remedy}"
    )


def _facts(generation: Generation) -> dict[str, object]:
    return {"profile": generation.profile, "generation": generation.generation_id}
