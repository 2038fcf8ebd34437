"""Choose the generation of a profile that a command applies to."""

from collections.abc import Sequence

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.messages import suggested_command
from nearsim_db.records import GenerationId
from nearsim_db.search.live_generation import choose_newest, list_of_collection
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.generations.generation_states import PENDING, is_attended, remedy, state_label


def of_profile(connection: Connection, collection: str, profile: str | None) -> list[Generation]:
    """Return the generations of a profile, the oldest first.

    `profile` may be None if the collection has only one profile, or one named default. Raises NotFoundError if there is
    no such profile.
    """
    generations = list_of_collection(connection, collection)
    name = choose_newest(connection, collection, generations, profile).profile
    return [generation for generation in generations if generation.profile == name]


def live(generations: Sequence[Generation]) -> Generation:
    """Return the live generation. Raises ConflictError if there is none yet."""
    for generation in generations:
        if generation.state == "live":
            return generation
    raise ConflictError(
        f"profile {generations[0].profile!r} has no live index to replace yet; ingest documents, or run: "
        f"{suggested_command('build', generations[0].collection)}"
    )


def pending(generations: Sequence[Generation]) -> Generation:
    """Return the generation that is being built beside the live one, or that waits to be promoted.

    Raises NotFoundError if there is none.
    """
    for generation in generations:
        if generation.state in PENDING and generation.replaces is not None:
            return generation
    raise NotFoundError(
        f"no index is being built beside the live one of profile {generations[0].profile!r}; "
        f"start with: {generations[0].advice('reindex start')}"
    )


def comparable(generations: Sequence[Generation]) -> Generation:
    """Return the pending generation.

    Raises NotFoundError, which names the retired generations that can be compared instead, if there is none.
    """
    try:
        return pending(generations)
    except NotFoundError as error:
        retired = [
            f"generation {generation.generation_id} is retired; to compare with it: "
            f"{generation.advice('reindex diff', '--generation', str(generation.generation_id))}"
            for generation in generations
            if generation.state == "retired"
        ]
        raise NotFoundError("; ".join([str(error), *retired])) from error


def refuse_second_pending(connection: Connection, generations: Sequence[Generation]) -> None:
    """Raise ConflictError, which says what to do, if a generation is pending."""
    for generation in generations:
        if generation.state in PENDING:
            attended = is_attended(connection, generation)
            raise ConflictError(
                f"generation {generation.generation_id} of profile {generation.profile!r} is "
                f"{state_label(generation, attended=attended)}; {_remedy(generation, attended=attended)}"
            )


def _remedy(generation: Generation, *, attended: bool) -> str:
    if generation.state == "ready":
        promote, abandon = generation.advice("reindex promote"), generation.advice("reindex abandon")
        return f"to promote it: {promote}; to abandon it: {abandon}"
    return remedy(generation, attended=attended)


def refuse_unbuilt(connection: Connection, generation: Generation) -> None:
    """Raise ConflictError if the pairs and clusters of a generation are not complete yet."""
    if generation.stage != "done":
        attended = is_attended(connection, generation)
        raise ConflictError(
            f"generation {generation.generation_id} is {state_label(generation, attended=attended)} (stage "
            f"{generation.stage}) and can be compared when it is catching up or ready; "
            f"{remedy(generation, attended=attended)}"
        )


def by_id(generations: Sequence[Generation], generation_id: int) -> Generation:
    """Return the generation with an id. Raises NotFoundError, which lists the existing generations."""
    for generation in generations:
        if generation.generation_id == generation_id:
            return generation
    existing = ", ".join(f"{generation.generation_id} ({generation.state})" for generation in generations)
    raise NotFoundError(
        f"profile {generations[0].profile!r} has no generation {generation_id}; existing generations: {existing}"
    )


def last_retired(generations: Sequence[Generation]) -> Generation:
    """Return the generation that was retired last. Raises ConflictError if there is none."""
    retired = [
        generation
        for generation in generations
        if generation.state == "retired" and generation.retired_at is not None
    ]
    if not retired:
        raise ConflictError(
            f"profile {generations[0].profile!r} has no retired generation to roll back to; "
            f"to build a new one: {generations[0].advice('reindex start')}"
        )
    return max(retired, key=lambda generation: (generation.retired_at, generation.generation_id))


def droppable(generations: Sequence[Generation], generation_id: GenerationId | None) -> list[Generation]:
    """Return the generation with an id, or all retired and abandoned generations if the id is None.

    Raises ConflictError if the generation is live, or is the first build of its profile.
    """
    if generation_id is None:
        return [generation for generation in generations if generation.state in ("retired", "abandoned")]
    chosen = by_id(generations, generation_id)
    if chosen.state == "live" or chosen.is_first_build:
        raise ConflictError(
            f"generation {generation_id} is, or will be, the live index of profile {chosen.profile!r}; to drop it with "
            f"its profile: {chosen.advice('profile delete')}"
        )
    return [chosen]
