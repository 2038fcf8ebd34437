"""Near-duplicates within a result set, estimated from the sketches of its documents, many times a second."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np

from nearsim_db.errors import EmptyIndexError, InputError, RecipeError
from nearsim_db.records import Id, Judgement
from nearsim_db.search.answers import checked_ids
from nearsim_db.search.live_generation import GenerationReplacedError, LiveIndex, retry_if_replaced
from nearsim_db.similarity.arrays import Ints
from nearsim_db.similarity.cache import BoundedCache
from nearsim_db.similarity.metrics import exact_threshold
from nearsim_db.similarity.sketch import NO_KNOWN_PAIRS, Family, KnownPairs
from nearsim_db.similarity.text.clean import clean
from nearsim_db.store.database import Database
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import empty_sketch, sketches_from
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.generations.tables import GenerationTables

Answer = TypeVar("Answer")

_ENTRY_BYTES = 250  # approximate overhead of a cache entry

_Signed = tuple[int, bytes | None]  # the signed revision, and the sketch if it has features
_UNSIGNED: _Signed = (0, None)  # revisions begin at 1


@dataclass(frozen=True, slots=True)
class _State:
    """A live generation with its caches. `verdicts` maps the smaller and then the larger doc_id to "is pinned"."""

    index: LiveIndex
    sketches: BoundedCache[int, _Signed]
    answers: BoundedCache[bytes, bytes]
    verdicts: dict[int, dict[int, bool]] = field(default_factory=dict)
    checked_at: float = 0.0

    @property
    def leaves(self) -> Leaves:
        return self.index.context.leaves

    @property
    def family(self) -> Family:
        return self.index.context.encoder.family

    @property
    def threshold(self) -> Fraction:
        return checked_threshold(self.index.context.encoder.profile.similarity_at_threshold)


class SearchableIndex(Protocol):
    """The index that sketches are read from."""

    @property
    def database(self) -> Database:
        """The open database."""

    def serving(self) -> LiveIndex:
        """Return the live generation. Raises NotFoundError if there is none."""


class Deduper:
    """Finds the documents of a result set that duplicate earlier ones in it. Threads may share one.

    A document is a duplicate of the first kept document before it whose estimated similarity to it is at least
    `min_similarity`, by default the threshold of the live generation's recipe. The estimate is that of the profile's
    sketch family: a cosine for cosine profiles, 1 / (1 + d) for a distance d. It is not verified; `standard_error` is
    its error. Pinned pairs always count as duplicates, vetoed pairs never.

    Sketches are cached by document and revision, answers by documents, revisions and similarity. Every
    `recheck_seconds` a call first checks that the generation is still live, that no texts were purged (which empties
    the caches) and which verdicts apply; with 0 every call does.
    """

    def __init__(
        self,
        index: SearchableIndex,
        min_similarity: float | None = None,
        *,
        sketch_bytes: int = 128 << 20,
        answer_bytes: int = 32 << 20,
        recheck_seconds: float = 5.0,
    ) -> None:
        self._index = index
        self._threshold = None if min_similarity is None else checked_threshold(min_similarity)
        self._sketch_bytes, self._answer_bytes = sketch_bytes, answer_bytes
        self._recheck_seconds = recheck_seconds
        self._lock = threading.Lock()
        self._state: _State | None = None

    @property
    def standard_error(self) -> float:
        """Largest standard deviation of the estimate of a pair whose similarity is `min_similarity`."""
        state = self._current()
        return state.family.standard_error(float(self._threshold or state.threshold))

    def dedupe(
        self,
        doc_ids: Sequence[int],
        revisions: Sequence[int] | None = None,
        min_similarity: float | None = None,
    ) -> list[Judgement[int]]:
        """Return whether each document of a result set is kept or a duplicate, in the order given.

        A repeated id is a duplicate of the same document as before, or of itself. Documents that are not indexed are
        kept, and marked. With `revisions`, those of the documents' rows, nothing is read if all cached sketches are of
        these revisions or later; without, one query reads the signed revisions and the missing sketches. A document
        whose newer text is not indexed yet is compared by its older text. Raises InputError for a value that cannot be
        a doc_id or a revision.
        """
        wanted = latest_revisions(doc_ids, revisions)
        latest = list(wanted.values()) if revisions else None
        return judgements(doc_ids, list(wanted), self._find_duplicates(list(wanted), latest, min_similarity))

    def dedupe_external(
        self, external_ids: Sequence[str], min_similarity: float | None = None
    ) -> list[Judgement[str]]:
        """Run `dedupe` for external ids, which one more query resolves."""
        names = list(dict.fromkeys(checked_ids(external_ids)))
        storable = storable_ids(names)
        try:
            collection_id = self._current().index.context.collection_id
            found = self._ask(lambda one: documents.read_doc_ids(one, collection_id, storable)) or {}
        except EmptyIndexError:
            found = {}
        # No document has a doc_id below 1.
        doc_ids = [found.get(name, -place) for place, name in enumerate(names, 1)]
        return judgements(external_ids, names, self._find_duplicates(doc_ids, None, min_similarity))

    def _ask(self, read: Callable[[Connection], Answer | None]) -> Answer | None:
        with translate_errors():
            return self._index.database.ask(read)

    def _find_duplicates(
        self, doc_ids: list[int], revisions: list[int] | None, min_similarity: float | None
    ) -> Ints:
        """Return (2, n) int64: the position of the document that each duplicates, else -1; and 1 if indexed, else 0."""
        threshold = self._threshold if min_similarity is None else checked_threshold(min_similarity)
        if not doc_ids:
            return np.zeros((2, 0), np.int64)

        def query() -> bytes:
            state = self._current()
            answer = self._answer(state, doc_ids, revisions, threshold or state.threshold)
            if answer is None:
                self._drop(state)
                raise GenerationReplacedError
            return answer

        try:
            return np.frombuffer(retry_if_replaced(query), np.int64).reshape(2, len(doc_ids))
        except EmptyIndexError:
            return np.array([[-1], [0]], np.int64).repeat(len(doc_ids), axis=1)

    def _answer(
        self, state: _State, doc_ids: list[int], revisions: list[int] | None, threshold: Fraction
    ) -> bytes | None:
        """Return the answer as it is cached; None if the generation is no longer live."""
        key = _key(doc_ids, revisions, threshold) if revisions else b""
        if revisions and (known := state.answers.get(key)) is not None:
            return known
        signed = [one or _UNSIGNED for one in state.sketches.get_many(doc_ids)]
        if revisions is None or _is_outdated(signed, revisions):
            fetched = self._fetch(state, doc_ids, signed)
            if fetched is None:
                return None
            signed = fetched
        if revisions is None:
            key = _key(doc_ids, [revision for revision, _ in signed], threshold)
            if (known := state.answers.get(key)) is not None:
                return known
        answer = _compare(state, doc_ids, signed, threshold).tobytes()
        if revisions is None or not _is_outdated(signed, revisions):
            state.answers.put(key, answer, len(key) + len(answer) + _ENTRY_BYTES)
        return answer

    def _fetch(self, state: _State, doc_ids: list[int], signed: list[_Signed]) -> list[_Signed] | None:
        """Read signed revisions and missing sketches in one query, and cache the new ones."""
        revisions = [revision for revision, _ in signed]
        leaves, purged_at = state.leaves, state.index.purged_at
        rows = self._ask(
            lambda one: GenerationTables(one, leaves).lookups.read_signed(purged_at, doc_ids, revisions)
        )
        if rows is None:
            return None
        before = dict(zip(doc_ids, signed, strict=True))
        now: dict[int, _Signed] = {}
        for doc_id, revision, sketch in rows:
            now[doc_id] = before[doc_id] if before[doc_id][0] == revision else (revision, sketch)
        for doc_id, one in now.items():
            if one is not before[doc_id]:
                state.sketches.put(doc_id, one, len(one[1] or b"") + _ENTRY_BYTES)
        return [now.get(doc_id, _UNSIGNED) for doc_id in doc_ids]

    def _current(self) -> _State:
        """Return the state of the live generation. Raises NotFoundError if there is none."""
        with self._lock:
            state = self._state
            if state is not None and time.monotonic() - state.checked_at < self._recheck_seconds:
                return state
            return retry_if_replaced(self._refresh)

    def _refresh(self) -> _State:
        """Return the state with current verdicts; a new one if its generation is not live or texts were purged."""
        state = self._state or _State(
            self._index.serving(), BoundedCache(self._sketch_bytes), BoundedCache(self._answer_bytes)
        )
        leaves, purged_at = state.leaves, state.index.purged_at
        rows = self._ask(lambda one: GenerationTables(one, leaves).lookups.read_verdicts(purged_at))
        self._state = None
        if rows is None:
            raise GenerationReplacedError
        verdicts: dict[int, dict[int, bool]] = {}
        for left_id, right_id, pinned in rows:
            verdicts.setdefault(left_id, {})[right_id] = pinned
        answers = (
            state.answers if verdicts == state.verdicts else BoundedCache[bytes, bytes](self._answer_bytes)
        )
        self._state = replace(state, answers=answers, verdicts=verdicts, checked_at=time.monotonic())
        return self._state

    def _drop(self, state: _State) -> None:
        with self._lock:
            if self._state is not None and self._state.sketches is state.sketches:
                self._state = None


def _is_outdated(signed: list[_Signed], revisions: list[int]) -> bool:
    """Whether a signed revision is older than requested, or missing."""
    return any(one[0] < revision for one, revision in zip(signed, revisions, strict=True))


def _key(doc_ids: list[int], revisions: list[int], threshold: Fraction) -> bytes:
    return np.array([doc_ids, revisions], np.int64).tobytes() + str(threshold).encode()


def _compare(state: _State, doc_ids: list[int], signed: list[_Signed], threshold: Fraction) -> Ints:
    family = state.family
    blank = empty_sketch(family)
    sketches = sketches_from([sketch or blank for _, sketch in signed], family)
    present = np.array([sketch is not None for _, sketch in signed], bool)
    first = family.first_similar(sketches, present, threshold, _known_pairs(state, doc_ids))
    return np.stack((first, np.array([revision > 0 for revision, _ in signed], np.int64)))


def _known_pairs(state: _State, doc_ids: list[int]) -> KnownPairs:
    """Return the verdicts on pairs of these documents."""
    if not state.verdicts:
        return NO_KNOWN_PAIRS
    rows = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    found: dict[int, bool] = {}
    for doc_id, row in rows.items():
        for partner, pinned in state.verdicts.get(doc_id, {}).items():
            other = rows.get(partner)
            if other is not None:
                found[max(row, other) * len(doc_ids) + min(row, other)] = pinned
    pairs = sorted(found)
    return KnownPairs(np.array(pairs, np.int64), np.array([found[pair] for pair in pairs], bool))


_LARGEST = 2**63 - 1  # of PostgreSQL's bigint


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


def judgements(given: Sequence[Id], distinct: list[Id], answer: Ints) -> list[Judgement[Id]]:
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
