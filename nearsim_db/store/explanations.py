"""What the index has on two documents as a pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.rows import fetch_all, fetch_one
from nearsim_db.store.driver.statements import Leaves, statement


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """The evidence of `nearsim.why` for two documents, the smaller doc_id on the left.

    `similarity` is that of the stored pair. `are_candidates`: their shared bands satisfy the recipe; `are_linked`: the
    bucket limit leaves a bucket that they share. The states say what keeps a document from being compared, None if
    nothing does. Estimate, shared bands, candidates and links are None unless both documents have features.
    """

    is_pair: bool
    are_twins: bool
    similarity: float | None
    estimate: float | None
    shared_bands: int | None
    numbers_differ: bool | None
    left_numbers: Sequence[str] | None
    right_numbers: Sequence[str] | None
    verified_at: datetime | None
    verdict: Literal["pinned", "vetoed"] | None
    verdict_by: str | None
    verdict_why: str | None
    same_cluster: bool
    are_candidates: bool | None
    are_linked: bool | None
    left_state: str | None
    right_state: str | None


@dataclass(frozen=True, slots=True)
class SharedBucket:
    """A bucket that two documents share: its band, from 0, its hash as 16 hexadecimal digits, and its number of heads.

    `place` is that of the earlier of the two among them, from 1; the bucket links the two if it is within the limit.
    """

    band: int
    bucket: str
    members: int
    place: int


def read_evidence(connection: Connection, left_id: int, right_id: int, profile: str) -> PairEvidence:
    """Return the evidence for two documents of a collection in the live generation of a profile."""
    parameters = {"left_id": left_id, "right_id": right_id, "profile": profile}
    return fetch_one(connection, PairEvidence, statement("read_pair_evidence"), parameters)


def read_shared_buckets(
    connection: Connection, leaves: Leaves, left_id: int, right_id: int
) -> list[SharedBucket]:
    """Return the buckets that two documents share, by band; none unless both have features."""
    parameters = {"left_id": left_id, "right_id": right_id}
    return fetch_all(connection, SharedBucket, statement("read_shared_buckets", leaves), parameters)
