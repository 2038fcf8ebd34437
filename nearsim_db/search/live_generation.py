"""Which generation of a collection answers, and why none does."""

from collections.abc import Sequence

from nearsim_db.errors import DEFAULT, NotFoundError, suggested_command
from nearsim_db.store import documents
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection


def choose_newest(collection: str, generations: Sequence[Generation], profile: str | None) -> Generation:
    """The live generation of a profile, else its newest; `profile` may be left out where there is one, or a default.

    `generations` are all of the collection. Raises NotFoundError, saying which profiles there are.
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
    """The generation that answers. Raises NotFoundError, saying why none does."""
    generation = choose_newest(collection, generations, profile)
    if generation.state == "live":
        return generation
    if generation.state == "building" and documents.any_document(connection, generation.collection_id):
        raise NotFoundError(
            f"profile {generation.profile!r} is being built (stage {generation.stage}); it answers when that is "
            f"done; if nobody is at it, run: {suggested_command('build', collection)}"
        )
    if generation.state == "abandoned":
        raise NotFoundError(f"profile {generation.profile!r} is being deleted; it has no live index any more")
    raise NotFoundError(
        f"profile {generation.profile!r} has no live index yet; ingest documents, or run: "
        f"{suggested_command('build', collection)}"
    )
