"""Whether the index has a document, and whether what it has is the document's current text."""

from nearsim_db.errors import NotFoundError
from nearsim_db.similarity.recipe import retained_seconds
from nearsim_db.store import query_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.query_rows import DocumentState, read_document_state


def refuse_outside(connection: Connection, generation: Generation, doc_id: int, external_id: str) -> None:
    """Raise NotFoundError for a document that is not indexed because it is too old."""
    age = generation.recipe.get("retain", {}).get("age", "none")
    if query_rows.is_past_retention(connection, generation.collection_id, doc_id, retained_seconds(age)):
        raise NotFoundError(
            f"document {external_id!r} is outside the retention window of profile {generation.profile!r} ({age})"
        )


def refuse_unindexed(
    connection: Connection, generation: Generation, doc_id: int, external_id: str
) -> str | None:
    """Return a warning if the indexed text is an older one or has no features.

    Raises NotFoundError, with the reason, for a document that is not in the index.
    """
    state = read_document_state(connection, generation.leaves, doc_id)
    if state is None:
        raise NotFoundError(f"document {external_id!r} was deleted just now")
    if state.signed is None:
        raise NotFoundError(f"document {external_id!r} {_reason(state, generation.profile)}")
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
