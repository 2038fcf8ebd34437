"""Near-duplicates within a result set, told from the sketches of its documents, many times a second."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError, RecipeError
from nearsim_db.records import Judgement
from nearsim_db.search.cache import BoundedCache
from nearsim_db.search.live_generation import LiveIndex
from nearsim_db.search.retry import GenerationReplacedError, retry_if_replaced
from nearsim_db.similarity.metrics import exact_threshold
from nearsim_db.similarity.sketch import NO_KNOWN_PAIRS, Family, KnownPairs
from nearsim_db.similarity.text.clean import clean
from nearsim_db.store import result_sets
from nearsim_db.store.database import Database
from nearsim_db.store.driver.codec import sketches_from
from nearsim_db.store.driver.engine import translated
from nearsim_db.store.driver.statements import Leaves

_LARGEST = 2**63 - 1  # of PostgreSQL's bigint
_ENTRY_BYTES = 250  # what a cache takes for an entry beside its bytes, about

Id = TypeVar("Id", int, str)

_Held = tuple[int, bytes | None]  # the revision that was signed, its sketch where it has features
_NOTHING: _Held = (0, None)  # of a document that is not signed; revisions begin at 1


@dataclass(frozen=True, slots=True)
class _State:
    """A serving generation, and what is held of it in memory. `alike` says of pairs, smaller doc_id first, what people
    decided."""

    index: LiveIndex
    sketches: BoundedCache[int, _Held]
    answers: BoundedCache[bytes, bytes]
    alike: dict[int, dict[int, bool]] = field(default_factory=dict)
    checked_at: float = 0.0

    @property
    def leaves(self) -> Leaves:
        return self.index.context.leaves

    @property
    def family(self) -> Family:
        return self.index.context.encoder.family


class SearchableIndex(Protocol):
    """What result sets are read through: an `Index`."""

    @property
    def database(self) -> Database:
        """The open database."""

    def serving(self) -> LiveIndex:
        """Return the live generation. Raises NotFoundError where there is none."""


class Deduper:
    """Tells which documents of a result set are near-duplicates of others in it. Threads may share one.

    First come stays: a document is a duplicate of the first document before it that is kept and whose similarity to it,
    estimated from the two sketches, is at least `min_similarity`: what the profile's family estimates, so a cosine
    where that is a cosine, and 1 / (1 + d) where it is a distance d. Nothing is verified; `standard_error` says how
    much an estimate varies. A pair that a person pinned is alike, a vetoed one is not, whatever the estimate.

    Sketches are kept in memory by document and revision, answers by the documents, their revisions and the similarity.
    Every `recheck_seconds` a call asks first whether the generation still serves, whether texts were purged (then
    all is let go) and which verdicts stand; with 0 every call does.
    """

    def __init__(
        self,
        index: SearchableIndex,
        min_similarity: float = 0.7,
        *,
        sketch_bytes: int = 128 << 20,
        answer_bytes: int = 32 << 20,
        recheck_seconds: float = 5.0,
    ) -> None:
        self._index = index
        self._threshold = _checked(min_similarity)
        self._sketch_bytes, self._answer_bytes = sketch_bytes, answer_bytes
        self._recheck_seconds = recheck_seconds
        self._lock = threading.Lock()
        self._state: _State | None = None

    @property
    def standard_error(self) -> float:
        """The standard deviation of the estimate of a pair whose similarity is `min_similarity`, at most."""
        return self._current().family.standard_error(float(self._threshold))

    def dedupe(
        self,
        doc_ids: Sequence[int],
        revisions: Sequence[int] | None = None,
        min_similarity: float | None = None,
    ) -> list[Judgement[int]]:
        """What becomes of each document of a result set, in the order given.

        An id that comes again is a duplicate of what it was of before, or of itself. Documents that the index does not
        hold are kept, and marked. `revisions` are those of the documents' rows, where the caller has them at hand: then
        nothing is read if all sketches here are of these revisions or later; without them one query reads how the
        documents are signed now, and the sketches that are not here. A document whose newer text is not indexed yet
        is compared by its older one. Raises InputError for what cannot be a doc_id or a revision.
        """
        threshold = self._threshold if min_similarity is None else _checked(min_similarity)
        wanted = _latest(doc_ids, revisions)
        first = self._first_alike(list(wanted), list(wanted.values()) if revisions else None, threshold)
        return _judgements(doc_ids, list(wanted), first)

    def dedupe_external(
        self, external_ids: Sequence[str], min_similarity: float | None = None
    ) -> list[Judgement[str]]:
        """The same by external ids, which one more query turns into doc_ids."""
        names = list(dict.fromkeys(external_ids))
        storable = _storable(names)
        state = self._current()
        collection_id = state.index.context.generation.collection_id
        with translated():
            found = self._index.database.ask(
                lambda connection: result_sets.read_doc_ids(connection, collection_id, storable)
            )
        # No document has a doc_id below 1.
        doc_ids = [(found or {}).get(name, -place) for place, name in enumerate(names, 1)]
        threshold = self._threshold if min_similarity is None else _checked(min_similarity)
        return _judgements(external_ids, names, self._first_alike(doc_ids, None, threshold))

    def _first_alike(
        self, doc_ids: list[int], revisions: list[int] | None, threshold: Fraction
    ) -> NDArray[np.int64]:
        """(2, n): the place of the document that each is a duplicate of, else -1; and 1 for what is indexed, else 0."""
        if not doc_ids:
            return np.zeros((2, 0), np.int64)

        def query() -> bytes:
            state = self._current()
            answer = self._answer(state, doc_ids, revisions, threshold)
            if answer is None:
                self._drop(state)
                raise GenerationReplacedError
            return answer

        return np.frombuffer(retry_if_replaced(query), np.int64).reshape(2, len(doc_ids))

    def _answer(
        self, state: _State, doc_ids: list[int], revisions: list[int] | None, threshold: Fraction
    ) -> bytes | None:
        """The answer as it is kept; None where the generation does not serve any more."""
        key = _key(doc_ids, revisions, threshold) if revisions else b""
        if revisions and (known := state.answers.get(key)) is not None:
            return known
        held = [one or _NOTHING for one in state.sketches.get_many(doc_ids)]
        if revisions is None or _behind(held, revisions):
            fetched = self._fetch(state, doc_ids, held)
            if fetched is None:
                return None
            held = fetched
        if revisions is None:
            key = _key(doc_ids, [revision for revision, _ in held], threshold)
            if (known := state.answers.get(key)) is not None:
                return known
        answer = _compare(state, doc_ids, held, threshold).tobytes()
        if revisions is None or not _behind(held, revisions):
            state.answers.put(key, answer, len(key) + len(answer) + _ENTRY_BYTES)
        return answer

    def _fetch(self, state: _State, doc_ids: list[int], held: list[_Held]) -> list[_Held] | None:
        """How documents are signed now, in one query; what is new of it is kept."""
        revisions = [revision for revision, _ in held]
        with translated():
            rows = self._index.database.ask(
                lambda connection: result_sets.read_signed(
                    connection, state.leaves, state.index.purged_at, doc_ids, revisions
                )
            )
        if rows is None:
            return None
        before = dict(zip(doc_ids, held, strict=True))
        now: dict[int, _Held] = {}
        for doc_id, revision, sketch in rows:
            now[doc_id] = before[doc_id] if before[doc_id][0] == revision else (revision, sketch)
        for doc_id, one in now.items():
            if one is not before[doc_id]:
                state.sketches.put(doc_id, one, len(one[1] or b"") + _ENTRY_BYTES)
        return [now.get(doc_id, _NOTHING) for doc_id in doc_ids]

    def _current(self) -> _State:
        """The state of whichever generation serves. Raises NotFoundError where none does."""
        with self._lock:
            state = self._state
            if state is not None and time.monotonic() - state.checked_at < self._recheck_seconds:
                return state
            return retry_if_replaced(self._refresh)

    def _refresh(self) -> _State:
        state = self._state or _State(
            self._index.serving(), BoundedCache(self._sketch_bytes), BoundedCache(self._answer_bytes)
        )
        self._state = self._rechecked(state)
        if self._state is None:
            raise GenerationReplacedError
        return self._state

    def _rechecked(self, state: _State) -> _State | None:
        """The state with the verdicts of now; None where its generation does not serve, or its texts were purged."""
        with translated():
            rows = self._index.database.ask(
                lambda connection: result_sets.read_verdicts(connection, state.leaves, state.index.purged_at)
            )
        if rows is None:
            return None
        alike: dict[int, dict[int, bool]] = {}
        for left_id, right_id, pinned in rows:
            alike.setdefault(left_id, {})[right_id] = pinned
        answers = state.answers if alike == state.alike else BoundedCache[bytes, bytes](self._answer_bytes)
        return replace(state, answers=answers, alike=alike, checked_at=time.monotonic())

    def _drop(self, state: _State) -> None:
        with self._lock:
            if self._state is not None and self._state.sketches is state.sketches:
                self._state = None


def _checked(min_similarity: float) -> Fraction:
    if not 0 < min_similarity <= 1:
        raise RecipeError(
            f"a min_similarity of {min_similarity} is impossible; choose one above 0 and at most 1"
        )
    return exact_threshold(min_similarity)


def _latest(doc_ids: Sequence[int], revisions: Sequence[int] | None) -> dict[int, int]:
    """The documents in the order they first come in, with the latest of the revisions given for each."""
    _refuse_beyond("doc_ids", doc_ids, -_LARGEST)
    if revisions is None:
        return dict.fromkeys(doc_ids, 0)
    _refuse_beyond("revisions", revisions, 1)
    if len(revisions) != len(doc_ids):
        raise InputError(f"{len(doc_ids)} doc_ids came with {len(revisions)} revisions; give one for each")
    latest = dict(zip(doc_ids, revisions, strict=True))
    if len(latest) < len(doc_ids):
        for doc_id, revision in zip(doc_ids, revisions, strict=True):
            latest[doc_id] = max(latest[doc_id], revision)
    return latest


def _refuse_beyond(kind: str, numbers: Sequence[int], least: int) -> None:
    """Raise InputError unless all are whole numbers that a bigint holds, from `least` on."""
    for found in set(map(type, numbers)):
        if not issubclass(found, int | np.integer):
            raise InputError(f"{kind} are whole numbers; one given is of type {found.__name__}")
    for one in (min(numbers, default=least), max(numbers, default=least)):
        if not least <= one <= _LARGEST:
            raise InputError(f"{kind} are from {least} to {_LARGEST}; {one} is not")


def _storable(external_ids: list[str]) -> list[str]:
    """Those that documents may have. Raises InputError for what is no string."""
    for one in external_ids:
        if not isinstance(one, str):
            raise InputError(f"external ids are strings; one given is of type {type(one).__name__}")
    return [one for one in external_ids if not clean(one)[1]]


def _behind(held: list[_Held], revisions: list[int]) -> bool:
    """Whether something is older than asked for, or not there."""
    return any(one[0] < revision for one, revision in zip(held, revisions, strict=True))


def _key(doc_ids: list[int], revisions: list[int], threshold: Fraction) -> bytes:
    return np.array([doc_ids, revisions], np.int64).tobytes() + str(threshold).encode()


def _compare(state: _State, doc_ids: list[int], held: list[_Held], threshold: Fraction) -> NDArray[np.int64]:
    family = state.family
    blank = bytes(family.k * family.dtype.itemsize)
    sketches = sketches_from([sketch or blank for _, sketch in held], family.dtype, family.k)
    present = np.array([sketch is not None for _, sketch in held], bool)
    first = family.first_similar(sketches, present, threshold, _decided(state, doc_ids))
    return np.stack((first, np.array([revision > 0 for revision, _ in held], np.int64)))


def _decided(state: _State, doc_ids: list[int]) -> KnownPairs:
    """What people decided of pairs of these documents."""
    if not state.alike:
        return NO_KNOWN_PAIRS
    rows = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    found: dict[int, bool] = {}
    for doc_id, row in rows.items():
        for partner, pinned in state.alike.get(doc_id, {}).items():
            other = rows.get(partner)
            if other is not None:
                found[max(row, other) * len(doc_ids) + min(row, other)] = pinned
    pairs = sorted(found)
    return KnownPairs(np.array(pairs, np.int64), np.array([found[pair] for pair in pairs], bool))


def _judgements(given: Sequence[Id], distinct: list[Id], answer: NDArray[np.int64]) -> list[Judgement[Id]]:
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
