"""The arguments of `Deduper`, checked, and its judgements."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError, RecipeError
from nearsim_db.records import Judgement
from nearsim_db.similarity.metrics import exact_threshold
from nearsim_db.similarity.text.clean import clean

_LARGEST = 2**63 - 1  # of PostgreSQL's bigint

Id = TypeVar("Id", int, str)


def checked_threshold(min_similarity: float) -> Fraction:
    """Return a similarity as an exact fraction. Raises RecipeError unless it is above 0 and at most 1."""
    if not 0 < min_similarity <= 1:
        raise RecipeError(
            f"a min_similarity of {min_similarity} is out of range; choose one above 0 and at most 1"
        )
    return exact_threshold(min_similarity)


def latest_revisions(doc_ids: Sequence[int], revisions: Sequence[int] | None) -> dict[int, int]:
    """Return the documents in order of first occurrence, each with the latest revision given for it."""
    _check_integers("doc_ids", doc_ids, -_LARGEST)
    if revisions is None:
        return dict.fromkeys(doc_ids, 0)
    _check_integers("revisions", revisions, 1)
    if len(revisions) != len(doc_ids):
        raise InputError(f"got {len(doc_ids)} doc_ids but {len(revisions)} revisions; give one for each")
    latest = dict(zip(doc_ids, revisions, strict=True))
    if len(latest) < len(doc_ids):
        for doc_id, revision in zip(doc_ids, revisions, strict=True):
            latest[doc_id] = max(latest[doc_id], revision)
    return latest


def _check_integers(kind: str, numbers: Sequence[int], least: int) -> None:
    """Raise InputError unless all are integers from `least` to the largest bigint."""
    for found in set(map(type, numbers)):
        if not issubclass(found, int | np.integer):
            raise InputError(f"{kind} must be integers; got {found.__name__}")
    for one in (min(numbers, default=least), max(numbers, default=least)):
        if not least <= one <= _LARGEST:
            raise InputError(f"{kind} must be from {least} to {_LARGEST}; got {one}")


def storable_ids(external_ids: list[str]) -> list[str]:
    """Return the ids that documents can have. Raises InputError for a value that is not a string."""
    for one in external_ids:
        if not isinstance(one, str):
            raise InputError(f"external ids must be strings; got {type(one).__name__}")
    return [one for one in external_ids if not clean(one)[1]]


def judgements(given: Sequence[Id], distinct: list[Id], answer: NDArray[np.int64]) -> list[Judgement[Id]]:
    """Return the judgement of each given id.

    `answer` is (2, n) int64 for the n distinct ids: the position of the id that each duplicates, else -1; and 1 if it
    is indexed, else 0.
    """
    first, indexed = answer.tolist()
    judged = {
        one: Judgement(one, None if other < 0 else distinct[other], signed > 0)
        for one, other, signed in zip(distinct, first, indexed, strict=True)
    }
    if len(judged) == len(given):
        return list(judged.values())
    seen: set[Id] = set()
    judgements = []
    for one in given:
        found = judged[one]
        judgements.append(found._replace(duplicate_of=one) if one in seen and found.keep else found)
        seen.add(one)
    return judgements
