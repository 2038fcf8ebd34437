"""The live generation: choose the one that answers queries, say why if none does, and retry if it is replaced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn, TypeVar

from nearsim_db.errors import EmptyIndexError, NotFoundError
from nearsim_db.messages import suggested_command
from nearsim_db.records import DEFAULT, Document
from nearsim_db.store import query_rows
from nearsim_db.store.access import collection_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import is_missing_table
from nearsim_db.store.generations import generation_rows, generation_states
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.query_rows import DocumentState

if TYPE_CHECKING:
    from nearsim_db.indexing.context import Context, ContextFactory

Answer = TypeVar("Answer")

_MAX_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class LiveIndex:
    """A live generation, ready to be searched."""

    context: "Context"
    purged_at: datetime | None  # time of the last purge; the context's cache has no features of purged texts

    def incomparable_reason(self, document: Document) -> str | None:
        """Return why a document cannot be looked up, which is that it has nothing that the profile compares.

        Returns None if it can be looked up. This includes an empty document, and a document with an id where vectors
        are compared, because its vector may be stored.
        """
        encoder, profile = self.context.encoder, self.context.generation.profile
        if encoder.takes_vectors:
            if document.vector is not None or document.external_id:
                return None
            return (
                f"profile {profile!r} compares vectors, and this text has none; look up a document that is stored or "
                "has a vector, or name a profile that compares texts"
            )

        compared = encoder.profile.recipe.fields
        present = [field for field, text in (("title", document.title), ("body", document.body)) if text]
        if not present or any(field in compared for field in present):
            return None

        # Only two fields can be compared, so the profile compares one of them and the document has the other.
        return (
            f"profile {profile!r} compares the {compared[0]} only, and this document has only a {present[0]}: give its "
            f"text as {compared[0]}, or name a profile that compares the {present[0]}"
        )


def open_live(
    connection: Connection, contexts: "ContextFactory", collection: str, profile: str | None
) -> LiveIndex:
    """Open the live generation of a profile.

    Raises NotFoundError, with the reason, if none is live, and FingerprintError or RecipeError if this version would
    make different sketches.
    """
    generation = find_live(connection, collection, profile)
    purges = collection_rows.read_purges(connection, [generation.collection_id])
    return LiveIndex(contexts.make(generation), purges.get(generation.collection_id))


def list_of_collection(connection: Connection, collection: str) -> list[Generation]:
    """Return the generations of a collection. Raises MissingCollectionError if there is no collection of this name."""
    collection_id = collection_rows.get_collection(connection, collection).collection_id
    return generation_rows.list_generations(connection, collection_id)


def find_newest(connection: Connection, collection: str, profile: str | None) -> Generation:
    """Return the live generation of a profile, or its newest if none is live. Raises the errors of `choose_newest`."""
    generations = list_of_collection(connection, collection)
    return choose_newest(connection, collection, generations, profile)


def choose_newest(
    connection: Connection, collection: str, generations: Sequence[Generation], profile: str | None
) -> Generation:
    """Return the live generation of a profile, or its newest generation if none is live.

    `generations` are all generations of the collection. `profile` may be None if the collection has only one profile,
    or one named default. Raises NotFoundError, which lists the profiles, if there is no such profile, and
    EmptyIndexError if there are neither profiles nor documents.
    """
    if not generations and profile in (None, DEFAULT):
        _refuse_empty(connection, collection)
        raise NotFoundError(
            f"collection {collection!r} has documents but no profile; create one: "
            f"{suggested_command('build', collection)}"
        )

    profile = profile or _default_profile(connection, generations)
    of_profile = [generation for generation in generations if generation.profile == profile]
    if not of_profile:
        refuse_profile(collection, profile, generations)
    return next((generation for generation in of_profile if generation.state == "live"), of_profile[-1])


def _default_profile(connection: Connection, generations: Sequence[Generation]) -> str:
    if not generations:
        return DEFAULT
    name = generation_rows.default_profile(connection, generations[0].collection_id)
    if name is None:
        names = ", ".join(_names(generations))
        raise NotFoundError(f"the collection has several profiles; name one of: {names}")
    return name


def _refuse_empty(connection: Connection, collection: str) -> None:
    collection_id = collection_rows.get_collection(connection, collection).collection_id
    if not query_rows.has_documents(connection, collection_id):
        raise EmptyIndexError(f"collection {collection!r} has no documents yet")


def refuse_profile(collection: str, profile: str, generations: Sequence[Generation]) -> NoReturn:
    """Raise NotFoundError for a profile that a collection does not have."""
    names = ", ".join(_names(generations)) or "none yet"
    raise NotFoundError(f"collection {collection!r} has no profile {profile!r}; existing profiles: {names}")


def _names(generations: Sequence[Generation]) -> list[str]:
    return sorted({generation.profile for generation in generations})


def find_live(connection: Connection, collection: str, profile: str | None) -> Generation:
    """Return the live generation of a profile.

    Raises NotFoundError, with the reason, if none is live; EmptyIndexError if the collection has no documents.
    """
    generation = find_newest(connection, collection, profile)
    if generation.state == "live":
        return generation

    if generation.state == "abandoned":
        raise NotFoundError(f"profile {generation.profile!r} is being deleted and has no live index")
    _refuse_empty(connection, collection)
    if generation.state == "building":
        raise NotFoundError(
            f"profile {generation.profile!r} is being built (stage {generation.stage}) and answers when that is done; "
            f"if no process is building it, run: {suggested_command('build', collection)}"
        )

    state = generation_states.state_label(generation, attended=True)
    raise NotFoundError(
        f"profile {generation.profile!r} has no live index: generation {generation.generation_id} is {state}; "
        f"{generation_states.remedy(generation, attended=True)}"
    )


class GenerationReplacedError(Exception):
    """The generation that a query uses is no longer live."""


def retry_if_replaced(query: Callable[[], Answer], reset: Callable[[], None] = lambda: None) -> Answer:
    """Run a query; if the generation that it reads was replaced or dropped, run it again on the new live generation.

    `reset` is called before each retry. Raises NotFoundError after 50 attempts. The query must raise the errors of the
    driver untranslated, because a missing table is recognised by the driver's error.
    """
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        try:
            return query()
        except Exception as error:
            if not isinstance(error, GenerationReplacedError) and not is_missing_table(error):
                raise
            if attempt < _MAX_ATTEMPTS:
                reset()
    raise NotFoundError(
        f"the live index was replaced during each of {_MAX_ATTEMPTS} attempts; try again later"
    )


def refuse_unindexed(
    connection: Connection, generation: Generation, doc_id: int, external_id: str
) -> str | None:
    """Return a warning if the index has an older text of a document, or if its text has no features.

    Raises NotFoundError, with the reason, for a document that is not in the index.
    """
    tables = generation.tables(connection)

    # Documents that are not in the index.
    if tables.shown.has_expired(doc_id):
        age = generation.recipe["retain"]["age"]
        raise NotFoundError(
            f"document {external_id!r} is outside the retention window of profile {generation.profile!r} ({age})"
        )
    state = tables.shown.read_document_state(doc_id)
    if state is None:
        raise NotFoundError(f"document {external_id!r} was deleted just now")
    if state.signed is None:
        raise NotFoundError(f"document {external_id!r} {_reason(state, generation.profile)}")

    # Documents whose indexed state may surprise the caller.
    if state.signed != state.revision:
        newer = "waits to be indexed" if state.waits else "is not indexed; see: nearsim work list --failed"
        return f"a newer text of document {external_id!r} {newer}; results are for the older text"
    if not state.feature_count:
        takes_vectors = generation.recipe["sketch"].get("input") == "vector"
        reason = (
            "it has no vector that can be compared" if takes_vectors else "its text is empty or too short"
        )
        return f"document {external_id!r} has no features, as {reason}; it matches nothing"
    return None


def _reason(state: DocumentState, profile: str) -> str:
    if state.set_aside:
        reason = f"could not be indexed and was set aside in stage sign by profile {profile!r}"
        return f"{reason}; see: nearsim work list --failed"
    if state.waits:
        return f"waits to be indexed by profile {profile!r}: a worker or nearsim build indexes it"
    return f"is not in the index of profile {profile!r} (discarded from the queue?); it is queued when it changes"
