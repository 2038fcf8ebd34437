"""Which generation of a profile answers queries, and the reason if none does."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from nearsim_db.errors import DEFAULT, NotFoundError, suggested_command
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.records import CollectionId
from nearsim_db.store import catalog, documents
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection


@dataclass(frozen=True, slots=True)
class LiveIndex:
    """A live generation with its context, whose cache holds no features of texts purged until `purged_at`."""

    context: Context
    purged_at: datetime | None


def open_live(
    connection: Connection,
    contexts: ContextFactory,
    collection_id: CollectionId,
    collection: str,
    profile: str | None,
) -> LiveIndex:
    """Open the live generation of a profile.

    Raises NotFoundError, with the reason, if none is live, and FingerprintError or RecipeError if this version would
    make different sketches.
    """
    generations = catalog.list_generations(connection, collection_id)
    generation = choose_live(connection, collection, generations, profile)
    return LiveIndex(contexts.make(generation), catalog.read_purges(connection).get(collection_id))


def choose_newest(collection: str, generations: Sequence[Generation], profile: str | None) -> Generation:
    """Return the live generation of a profile, else its newest.

    `profile` may be None if the collection has only one, or one named default. `generations` are all of the
    collection. Raises NotFoundError, which lists the profiles.
    """
    names = sorted({one.profile for one in generations})
    if profile is None and len(names) > 1 and DEFAULT not in names:
        raise NotFoundError(f"the collection has several profiles; name one of: {', '.join(names)}")
    wanted = profile or (names[0] if len(names) == 1 else DEFAULT)
    own = [one for one in generations if one.profile == wanted]
    if not own:
        raise NotFoundError(
            f"collection {collection!r} has no profile {wanted!r}; there are: {', '.join(names) or 'none yet'}"
        )
    return next((one for one in own if one.state == "live"), own[-1])


def choose_live(
    connection: Connection, collection: str, generations: Sequence[Generation], profile: str | None
) -> Generation:
    """Return the live generation of a profile. Raises NotFoundError, with the reason, if none is live."""
    generation = choose_newest(collection, generations, profile)
    if generation.state == "live":
        return generation
    if generation.state == "building" and documents.any_document(connection, generation.collection_id):
        raise NotFoundError(
            f"profile {generation.profile!r} is being built (stage {generation.stage}) and answers when that is done; "
            f"if no process is building it, run: {suggested_command('build', collection)}"
        )
    if generation.state == "abandoned":
        raise NotFoundError(f"profile {generation.profile!r} is being deleted and has no live index")
    raise NotFoundError(
        f"profile {generation.profile!r} has no live index yet; ingest documents, or run: "
        f"{suggested_command('build', collection)}"
    )
