"""Which generation of a profile a command means, and why there is none."""

from collections.abc import Sequence

from nearsim_db.errors import ConflictError, NotFoundError, suggested_command
from nearsim_db.records import GenerationId
from nearsim_db.search.live_generation import choose_newest
from nearsim_db.store import catalog
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import COMING, is_attended, remedy, word


def of_profile(connection: Connection, collection: str, profile: str | None) -> list[Generation]:
    """The generations of a profile, the oldest first.

    `profile` may be left out where there is one, or a default. Raises NotFoundError, saying what there is.
    """
    collection_id = catalog.get_collection(connection, collection).collection_id
    there = catalog.list_generations(connection, collection_id)
    name = choose_newest(collection, there, profile).profile
    return [one for one in there if one.profile == name]


def live(generations: Sequence[Generation]) -> Generation:
    """The one that answers. Raises ConflictError where none does yet."""
    for one in generations:
        if one.state == "live":
            return one
    raise ConflictError(
        f"profile {generations[0].profile!r} has no live index to replace yet; ingest documents, or run: "
        f"{suggested_command('build', generations[0].collection)}"
    )


def coming(generations: Sequence[Generation]) -> Generation:
    """The one that is built beside the live one, or waits to be promoted. Raises NotFoundError."""
    for one in generations:
        if one.state in COMING and one.replaces is not None:
            return one
    raise NotFoundError(
        f"nothing is being built beside the live index of profile {generations[0].profile!r}; "
        f"begin with: {generations[0].advice('reindex start')}"
    )


def to_compare(generations: Sequence[Generation]) -> Generation:
    """The one that is coming. Raises NotFoundError, which names those that could be compared instead."""
    try:
        return coming(generations)
    except NotFoundError as error:
        others = [
            f"generation {one.generation_id} is retired; to compare with it: "
            f"{one.advice('reindex diff', '--generation', str(one.generation_id))}"
            for one in generations
            if one.state == "retired"
        ]
        raise NotFoundError("; ".join([str(error), *others])) from error


def refuse_another(connection: Connection, generations: Sequence[Generation]) -> None:
    """Raises ConflictError where a generation is coming already, saying what can be done with it."""
    for one in generations:
        if one.state in COMING:
            attended = is_attended(connection, one)
            raise ConflictError(
                f"generation {one.generation_id} of profile {one.profile!r} is "
                f"{word(one, attended=attended)}; {_choice(one, attended=attended)}"
            )


def _choice(coming: Generation, *, attended: bool) -> str:
    if coming.state == "ready":
        promote, abandon = coming.advice("reindex promote"), coming.advice("reindex abandon")
        return f"to let it answer: {promote}; to give it up: {abandon}"
    return remedy(coming, attended=attended)


def refuse_unbuilt(connection: Connection, generation: Generation) -> None:
    """Raises ConflictError where its pairs and clusters are not all there yet."""
    if generation.stage != "done":
        attended = is_attended(connection, generation)
        raise ConflictError(
            f"generation {generation.generation_id} is {word(generation, attended=attended)} (stage "
            f"{generation.stage}) and can be compared when it is catching up or ready; "
            f"{remedy(generation, attended=attended)}"
        )


def numbered(generations: Sequence[Generation], generation_id: int) -> Generation:
    """The one of that number. Raises NotFoundError."""
    for one in generations:
        if one.generation_id == generation_id:
            return one
    known = ", ".join(f"{one.generation_id} ({one.state})" for one in generations)
    raise NotFoundError(
        f"profile {generations[0].profile!r} has no generation {generation_id}; there are: {known}"
    )


def last_retired(generations: Sequence[Generation]) -> Generation:
    """The one that answered before the live one. Raises ConflictError where it is not kept."""
    kept = [one for one in generations if one.state == "retired" and one.retired_at is not None]
    if not kept:
        raise ConflictError(
            f"no generation of profile {generations[0].profile!r} is kept to go back to; "
            f"a new one is built by: {generations[0].advice('reindex start')}"
        )
    return max(kept, key=lambda one: (one.retired_at, one.generation_id))


def to_drop(generations: Sequence[Generation], generation_id: GenerationId | None) -> list[Generation]:
    """What is retired or abandoned, or the one that was asked for. Raises ConflictError for the live one."""
    if generation_id is None:
        return [one for one in generations if one.state in ("retired", "abandoned")]
    chosen = numbered(generations, generation_id)
    if chosen.state == "live" or chosen.is_first_build:
        raise ConflictError(
            f"generation {generation_id} is the one that answers for profile {chosen.profile!r}, or is to be; "
            f"with the profile it goes by: {chosen.advice('profile delete')}"
        )
    return [chosen]
