"""What the index knows of a document that it is asked about, and what to tell where that is not its text of now."""

from nearsim_db.errors import NotFoundError
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection
from nearsim_db.store.standings import Standing, read_standing


def refuse_absent(
    connection: Connection, generation: Generation, doc_id: int, external_id: str
) -> str | None:
    """Raise NotFoundError, with the reason, for a document that is not in the index; returns what to warn of else."""
    standing = read_standing(connection, generation.leaves, doc_id)
    if standing is None:
        raise NotFoundError(f"document {external_id!r} was deleted just now")
    if standing.signed is None:
        raise NotFoundError(f"document {external_id!r} {_reason(standing, generation.profile)}")
    if standing.signed != standing.revision:
        newer = "waits to be indexed" if standing.waits else "is not indexed; see: nearsim work list --failed"
        return f"a newer text of document {external_id!r} {newer}; this is the answer for the one before"
    if not standing.feature_count:
        takes_vectors = generation.recipe["sketch"].get("input") == "vector"
        why = "it has no vector that can be compared" if takes_vectors else "its text is empty or too short"
        return f"document {external_id!r} has no features, as {why}: nothing is like it"
    return None


def _reason(standing: Standing, profile: str) -> str:
    if standing.set_aside:
        return f"could not be indexed and was set aside at sign by profile {profile!r}; see: nearsim work list --failed"
    if standing.waits:
        return f"waits to be indexed by profile {profile!r}: a worker or nearsim build takes it in"
    return (
        f"is not in the index of profile {profile!r} (discarded from the queue?); "
        "it comes back when it changes"
    )
