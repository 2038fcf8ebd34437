"""Look-ups: what a document that is not in the index would be paired with, verified; nothing is written."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.records import Document, Match
from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import Screened, screen
from nearsim_db.store import lookups
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import digest_uuid
from nearsim_db.store.driver.engine import is_missing_table, translated

_ASKED = 0  # the doc_id of what is not in the index: smaller than any document's
_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class Serving:
    """A live generation at work; its cache holds no features of texts that were purged until `purged_at`."""

    context: Context
    purged_at: datetime | None


@dataclass(frozen=True, slots=True)
class Question:
    """A document with features, encoded: features as `Metric` takes them, sketch (1, k), keys (1, bands) uint64."""

    features: NDArray[Any]
    digest: UUID
    sketch: NDArray[np.generic]
    keys: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Found:
    """A document that was found, by number, and what is told of it."""

    doc_id: int
    match: Match


class Lookups:
    """Look-ups in whichever generation serves, by any number of threads.

    What they need of it is resolved once, and again when the answer to a look-up says that it does not serve any more.
    """

    def __init__(self, database: Database, resolve: Callable[[], Serving]) -> None:
        self._database = database
        self._resolve = resolve
        self._serving: Serving | None = None

    def serving(self) -> Serving:
        """The generation that answers. Raises NotFoundError where none does."""
        serving = self._serving
        if serving is None:
            serving = self._serving = self._resolve()
        return serving

    def forget(self) -> None:
        """Resolve again before the next look-up."""
        self._serving = None

    def find(self, document: Document) -> list[Match]:
        """The documents that one would be paired with, the most similar first.

        Twins are expanded; the document that this one would replace is left out.
        """
        return others(document, self.find_all(document))

    def find_locked(self, connection: Connection, document: Document) -> tuple[Context, list[Match]]:
        """Return the documents that one would be paired with, on the caller's connection, and the live generation.

        Locks the document's stripes, so that no other caller adds a near-duplicate before this transaction ends.
        """
        while True:
            serving = self.serving()
            question = encode(serving.context.encoder, document)
            if question is None:
                return serving.context, []
            try:
                lookups.hold_stripes(connection, serving.context.leaves, question.keys)
                found = look_up(connection, serving, question)
            except Exception as error:
                if not is_missing_table(error):
                    raise
                found = None
            if found is not None:
                return serving.context, others(document, found)
            connection.rollback()
            self.forget()

    def find_all(self, document: Document) -> list[Found]:
        """The same with the numbers of the documents, that which this one would replace included."""
        for _ in range(_ATTEMPTS):
            serving = self.serving()
            _refuse_text(serving.context, document)
            question = encode(serving.context.encoder, document)
            with translated():
                found = (
                    []
                    if question is None
                    else self._database.ask(partial(look_up, serving=serving, question=question))
                )
            if found is not None:
                return found
            self.forget()
        raise NotFoundError("the index is being replaced again and again; try later")


def _refuse_text(context: Context, document: Document) -> None:
    """Raise InputError for a text without a name, which no vector belongs to, where vectors are compared."""
    if context.encoder.takes_vectors and document.vector is None and not document.external_id:
        raise InputError(
            f"profile {context.generation.profile!r} compares vectors, and a text by itself has none; ask about a "
            "document that is stored or that is given with its vector, or name a profile that compares texts"
        )


def others(document: Document, found: list[Found]) -> list[Match]:
    """What was found without the document that this one would replace."""
    return [one.match for one in found if one.match.external_id != document.external_id]


def encode(encoder: Encoder, document: Document) -> Question | None:
    """A document as it is looked up; None for one without features, which matches nothing."""
    features = encoder.features([encoder.content_of(document.title, document.body, document.vector)])
    if not len(features.ids):
        return None
    sketch = encoder.sketch(features)
    own = features.of(0)
    return Question(own, digest_uuid(encoder.digest(own)), sketch, encoder.band_keys(sketch))


def look_up(connection: Connection, serving: Serving, question: Question) -> list[Found] | None:
    """All that a question would be paired with, or None where the generation does not serve any more.

    What is committed before is seen; a document whose text is newer than its signature is not.
    """
    context, family = serving.context, serving.context.encoder.family
    linked = lookups.look_up_anchors(
        connection,
        context.leaves,
        context.bucket_limit,
        question.digest,
        question.keys,
        family.dtype,
        family.k,
        serving.purged_at,
    )
    if linked is None:
        return None
    evidence = _verify(connection, context, question, linked) if len(linked.doc_ids) else {}
    if not evidence:
        return []
    evidences = list(evidence.values())
    twins = lookups.read_twins(connection, context.leaves, list(evidence))
    found = [
        Found(doc_id, Match(external_id, title, *evidences[place - 1]))
        for place, doc_id, external_id, title in twins
    ]
    return sorted(found, key=_least_similar_last)


def _least_similar_last(found: Found) -> float:
    return -found.match.similarity


# similarity, intersection, union, estimate, shared bands, distance
Evidence = tuple[float, int | None, int | None, float, int, float | None]


def _verify(
    connection: Connection, context: Context, question: Question, linked: Signatures
) -> dict[UUID, Evidence]:
    """Which of the linked heads are alike enough, by digest."""
    asked = Signatures(np.array([_ASKED]), question.sketch, [question.digest])
    signed = asked.joined(linked)
    rows = np.arange(1, len(signed.doc_ids))
    screened = screen(context.encoder, signed, np.zeros_like(rows), rows)
    match = context.encoder.profile.recipe.match
    if match.verify == "estimate":
        return _evidence(signed, screened, screened.sketch_scores)
    features = _features(connection, context, question, signed, screened.right.tolist())
    screened = screened.take(np.array([row in features for row in screened.right.tolist()], bool))
    sets = [question.features, *(features[row] for row in screened.right.tolist())]
    places = np.arange(1, len(sets))
    scores = context.encoder.compare(sets, np.zeros_like(places), places)
    kept = context.encoder.metric.reaches(scores, match.threshold)
    return _evidence(signed, screened.take(kept), scores.take(kept))


def _evidence(signed: Signatures, screened: Screened, scores: Scores) -> dict[UUID, Evidence]:
    unknown = [None] * len(screened.left)
    columns = (
        scores.similarity.tolist(),
        unknown if scores.intersection is None else scores.intersection.tolist(),
        unknown if scores.union is None else scores.union.tolist(),
        screened.estimate.round(6).tolist(),
        screened.shared_bands.tolist(),
        unknown if scores.distance is None else scores.distance.tolist(),
    )
    digests = [signed.digests[row] for row in screened.right.tolist()]
    return dict(zip(digests, zip(*columns, strict=True), strict=True))


def _features(
    connection: Connection, context: Context, question: Question, signed: Signatures, rows: list[int]
) -> dict[int, NDArray[Any]]:
    """The features of signed rows, from wherever they can be had."""
    found = {row: question.features for row in rows if signed.digests[row] == question.digest}
    wanted = [row for row in rows if row not in found]
    found |= steps.read_features(connection, context, signed, wanted)
    missing = {signed.digests[row]: row for row in wanted if row not in found}
    if missing:
        # A head that was deleted or changed and is not signed again yet: its twins have the features that it had.
        twins = lookups.read_twins(connection, context.leaves, list(missing))
        digests = list(missing)
        doc_ids = np.array([doc_id for _, doc_id, _, _ in twins], np.int64)
        stand_ins = Signatures(doc_ids, signed.sketches[:0], [digests[place - 1] for place, _, _, _ in twins])
        for at, ids in steps.read_features(connection, context, stand_ins, range(len(twins))).items():
            found[missing[stand_ins.digests[at]]] = ids
    return found
