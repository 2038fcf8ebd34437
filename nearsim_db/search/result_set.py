"""Find near-duplicates within a result set by the cached sketches of its documents, fast enough for every search."""

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
_MAX_BIGINT = 2**63 - 1

# The signed revision of a document, and its sketch if it has features. Revisions begin at 1.
_Signed = tuple[int, bytes | None]
_UNSIGNED: _Signed = (0, None)


@dataclass(frozen=True, slots=True)
class _State:
    """A live generation with its caches."""

    index: LiveIndex
    sketches: BoundedCache[int, _Signed]  # by doc_id
    answers: BoundedCache[bytes, bytes]  # by documents, revisions and threshold
    # Whether a pair is pinned (True) or vetoed, by the smaller and then the larger doc_id.
    verdicts: dict[int, dict[int, bool]] = field(default_factory=dict)
    checked_at: float = 0.0  # time of the monotonic clock

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
    """Finds the documents of a result set that duplicate earlier documents of it. Threads may share a deduper.

    A document is a duplicate of the first kept document before it whose estimated similarity to it is at least
    `min_similarity`, by default the threshold of the live generation's recipe. The estimate is computed from the
    sketches and is not verified; `standard_error` is its error. It is a cosine for cosine profiles, and 1 / (1 + d) if
    the profile compares by a distance d. Pinned pairs always count as duplicates, vetoed pairs never do.

    Sketches are cached by document and revision, answers by documents, revisions and similarity. A call rechecks the
    index if the last check is more than `recheck_seconds` ago: whether the generation is still live, whether documents
    were purged (which empties the caches), and which verdicts there are. With 0 every call does so.
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
        """The largest standard deviation that the estimate of a pair with similarity `min_similarity` can have."""
        state = self._current()
        return state.family.standard_error(float(self._threshold or state.threshold))

    def dedupe(
        self,
        doc_ids: Sequence[int],
        revisions: Sequence[int] | None = None,
        min_similarity: float | None = None,
    ) -> list[Judgement[int]]:
        """Return for each document of a result set, in its order, whether it is kept or a duplicate.

        If an id occurs again, it is a duplicate of the same document as before or, if it was kept, of itself. Documents
        that are not indexed are kept and marked. If the newest text of a document is not indexed yet, its older text is
        compared.

        `revisions` are the revisions in the documents' rows. If they are passed and all cached sketches are at least as
        new, nothing is read. Otherwise one query reads the signed revisions and the missing sketches. Raises InputError
        for a value that cannot be a doc_id or a revision.
        """
        revision_by_id = latest_revisions(doc_ids, revisions)
        distinct, latest = list(revision_by_id), list(revision_by_id.values()) if revisions else None
        return judgements(doc_ids, distinct, self._find_duplicates(distinct, latest, min_similarity))

    def dedupe_external(
        self, external_ids: Sequence[str], min_similarity: float | None = None
    ) -> list[Judgement[str]]:
        """Run `dedupe` for external ids, which takes another query to find their doc_ids."""
        distinct = list(dict.fromkeys(checked_ids(external_ids)))
        storable = storable_ids(distinct)
        try:
            collection_id = self._current().index.context.collection_id
            doc_id_by_name = (
                self._ask(lambda connection: documents.read_doc_ids(connection, collection_id, storable))
                or {}
            )
        except EmptyIndexError:
            doc_id_by_name = {}

        # No document has a doc_id below 1, so negative numbers represent ids without a document.
        doc_ids = [doc_id_by_name.get(name, -number) for number, name in enumerate(distinct, 1)]
        return judgements(external_ids, distinct, self._find_duplicates(doc_ids, None, min_similarity))

    def _ask(self, read: Callable[[Connection], Answer | None]) -> Answer | None:
        with translate_errors():
            return self._index.database.ask(read)

    def _find_duplicates(
        self, doc_ids: list[int], revisions: list[int] | None, min_similarity: float | None
    ) -> Ints:
        """Return (2, n) int64: the row of the document that each document duplicates, or -1; and 1 if it is indexed."""
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
        """Return the answer in the form in which it is cached; None if the generation is no longer live."""
        # If the caller passes revisions, an answer may be cached under them.
        key = _key(doc_ids, revisions, threshold) if revisions else b""
        if revisions and (cached := state.answers.get(key)) is not None:
            return cached

        signed = [entry or _UNSIGNED for entry in state.sketches.get_many(doc_ids)]
        if revisions is None or _is_outdated(signed, revisions):
            fetched = self._fetch(state, doc_ids, signed)
            if fetched is None:
                return None
            signed = fetched

        # Otherwise an answer may be cached under the signed revisions.
        if revisions is None:
            key = _key(doc_ids, [revision for revision, _ in signed], threshold)
            if (cached := state.answers.get(key)) is not None:
                return cached

        answer = _compare(state, doc_ids, signed, threshold).tobytes()
        if revisions is None or not _is_outdated(signed, revisions):
            state.answers.put(key, answer, len(key) + len(answer) + _ENTRY_BYTES)
        return answer

    def _fetch(self, state: _State, doc_ids: list[int], signed: list[_Signed]) -> list[_Signed] | None:
        """Read the signed revisions and the missing or outdated sketches in one query, and cache these sketches.

        `signed` has the cached entries. Returns None if the generation is no longer live.
        """
        revisions = [revision for revision, _ in signed]
        leaves, purged_at = state.leaves, state.index.purged_at
        rows = self._ask(
            lambda connection: GenerationTables(connection, leaves).lookups.read_signed(
                purged_at, doc_ids, revisions
            )
        )
        if rows is None:
            return None

        cached = dict(zip(doc_ids, signed, strict=True))
        current: dict[int, _Signed] = {}
        for doc_id, revision, sketch in rows:
            if cached[doc_id][0] == revision:
                current[doc_id] = cached[doc_id]
            else:
                current[doc_id] = revision, sketch
                state.sketches.put(doc_id, current[doc_id], len(sketch or b"") + _ENTRY_BYTES)
        return [current.get(doc_id, _UNSIGNED) for doc_id in doc_ids]

    def _current(self) -> _State:
        """Return the state of the live generation. Raises NotFoundError if there is none."""
        # If the state has to be checked again, one thread does so and all others wait.
        with self._lock:
            state = self._state
            if state is not None and time.monotonic() - state.checked_at < self._recheck_seconds:
                return state
            return retry_if_replaced(self._refresh)

    def _refresh(self) -> _State:
        """Read the verdicts again, and return a state that has them.

        Raises GenerationReplacedError if the generation is no longer live or documents were purged.
        """
        state = self._state or _State(
            self._index.serving(), BoundedCache(self._sketch_bytes), BoundedCache(self._answer_bytes)
        )
        leaves, purged_at = state.leaves, state.index.purged_at
        rows = self._ask(
            lambda connection: GenerationTables(connection, leaves).lookups.read_verdicts(purged_at)
        )
        self._state = None
        if rows is None:
            raise GenerationReplacedError

        verdicts: dict[int, dict[int, bool]] = {}
        for left_id, right_id, is_pinned in rows:
            verdicts.setdefault(left_id, {})[right_id] = is_pinned
        answers = state.answers
        if verdicts != state.verdicts:
            answers = BoundedCache(self._answer_bytes)
        self._state = replace(state, answers=answers, verdicts=verdicts, checked_at=time.monotonic())
        return self._state

    def _drop(self, state: _State) -> None:
        # Another thread may have opened the generation that is live now.
        with self._lock:
            if self._state is not None and self._state.sketches is state.sketches:
                self._state = None


def _is_outdated(signed: list[_Signed], revisions: list[int]) -> bool:
    """Whether a signed revision is missing, or older than the requested one."""
    return any(entry[0] < revision for entry, revision in zip(signed, revisions, strict=True))


def _key(doc_ids: list[int], revisions: list[int], threshold: Fraction) -> bytes:
    return np.array([doc_ids, revisions], np.int64).tobytes() + str(threshold).encode()


def _compare(state: _State, doc_ids: list[int], signed: list[_Signed], threshold: Fraction) -> Ints:
    """Return an array (2, n) int64 like that of `_find_duplicates`."""
    family = state.family
    # Documents without a sketch get a blank one, so that all sketches fit into one array; `is_present` excludes them.
    blank = empty_sketch(family)
    sketches = sketches_from([sketch or blank for _, sketch in signed], family)
    is_present = np.array([sketch is not None for _, sketch in signed], bool)
    first = family.first_similar(sketches, is_present, threshold, _judged_pairs(state, doc_ids))
    return np.stack((first, np.array([revision > 0 for revision, _ in signed], np.int64)))


def _judged_pairs(state: _State, doc_ids: list[int]) -> KnownPairs:
    """Return the verdicts on pairs of these documents."""
    if not state.verdicts:
        return NO_KNOWN_PAIRS

    row_by_id = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    is_pinned: dict[int, bool] = {}
    for doc_id, row in row_by_id.items():
        for partner_id, is_pinned_pair in state.verdicts.get(doc_id, {}).items():
            partner = row_by_id.get(partner_id)
            if partner is not None:
                # KnownPairs numbers pairs by: larger row * n + smaller row.
                is_pinned[max(row, partner) * len(doc_ids) + min(row, partner)] = is_pinned_pair
    pairs = sorted(is_pinned)
    return KnownPairs(np.array(pairs, np.int64), np.array([is_pinned[pair] for pair in pairs], bool))


def checked_threshold(min_similarity: float) -> Fraction:
    """Return a similarity as an exact fraction. Raises RecipeError if it is not above 0 and at most 1."""
    if not 0 < min_similarity <= 1:
        raise RecipeError(
            f"a min_similarity of {min_similarity} is out of range; choose one above 0 and at most 1"
        )
    return exact_threshold(min_similarity)


def latest_revisions(doc_ids: Sequence[int], revisions: Sequence[int] | None) -> dict[int, int]:
    """Return the distinct documents in the order of their first occurrence, each with its latest revision."""
    _check_integers("doc_ids", doc_ids, -_MAX_BIGINT)
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


def _check_integers(kind: str, numbers: Sequence[int], minimum: int) -> None:
    """Raise InputError unless all numbers are integers from `minimum` to the largest bigint."""
    for number_type in set(map(type, numbers)):
        if not issubclass(number_type, int | np.integer):
            raise InputError(f"{kind} must be integers; got {number_type.__name__}")
    for number in (min(numbers, default=minimum), max(numbers, default=minimum)):
        if not minimum <= number <= _MAX_BIGINT:
            raise InputError(f"{kind} must be from {minimum} to {_MAX_BIGINT}; got {number}")


def storable_ids(external_ids: list[str]) -> list[str]:
    """Return the ids that a stored document can have. Raises InputError for a value that is not a string."""
    for external_id in external_ids:
        if not isinstance(external_id, str):
            raise InputError(f"external ids must be strings; got {type(external_id).__name__}")
    return [external_id for external_id in external_ids if not clean(external_id)[1]]


def judgements(ids: Sequence[Id], distinct: list[Id], answer: Ints) -> list[Judgement[Id]]:
    """Return the judgement of each id, in the order of `ids`; `distinct` are the ids without repetitions.

    `answer` is (2, n) int64 for the n distinct ids: the row of the id that it duplicates, or -1 if none; and 1 if it is
    indexed, otherwise 0.
    """
    first, indexed = answer.tolist()
    judged = {
        id: Judgement(id, None if duplicated < 0 else distinct[duplicated], is_indexed > 0)
        for id, duplicated, is_indexed in zip(distinct, first, indexed, strict=True)
    }
    if len(judged) == len(ids):
        return list(judged.values())

    # A kept id that occurs again is a duplicate of itself.
    seen: set[Id] = set()
    judgements = []
    for id in ids:
        judgement = judged[id]
        judgements.append(judgement._replace(duplicate_of=id) if id in seen and judgement.keep else judgement)
        seen.add(id)
    return judgements
