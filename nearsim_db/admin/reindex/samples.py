"""A sample of the differences between two generations, with texts and reasons."""

from collections.abc import Sequence

from nearsim_db.admin.reindex.diff_result import Evidence, SampledDocument, SampledPair, Samples
from nearsim_db.admin.reindex.why_no_pair import MissingPairs
from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.indexing.context import make_encoder
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.text.markup import strip_html
from nearsim_db.store import diffs, reports
from nearsim_db.store.diffs import DiffPair, GenerationTables, Tie
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.reports import ReadText

_TEXT_CHARACTERS = 10_000
_FIELDS = ("title", "body")

NO_SAMPLES = Samples((), (), (), (), ())


def read_samples(
    connection: Connection, live: Generation, new: Generation, amount: int, backend: str | None
) -> Samples:
    """Draw at most `amount` of each kind, after pairs and clusters were counted in the same transaction."""
    both = GenerationTables(live.leaves, new.leaves)
    return Samples(
        _lost(connection, live, new, diffs.sample_lost(connection, both, amount), backend),
        _gained(connection, live, new, diffs.sample_gained(connection, both, amount), backend),
        _rescored(connection, live, new, diffs.sample_rescored(connection, both, amount)),
        tuple(diffs.sample_merged(connection, both, amount)),
        tuple(diffs.sample_split(connection, both, amount)),
    )


def _lost(
    connection: Connection, live: Generation, new: Generation, chosen: list[DiffPair], backend: str | None
) -> tuple[SampledPair, ...]:
    texts = _SampledTexts(connection, live, (live, new), chosen)
    missing = MissingPairs(connection, new, _encoder(new, backend), _ids(chosen))
    sampled = []
    for one in chosen:
        evidence, reason = missing.explain(one.left_id, one.right_id)
        same = "before: identical features; " if one.live is not None and one.live.twins else ""
        before = _evidence(one.live, live)
        sampled.append(SampledPair(*texts.sides(one), one.pairs, before, evidence, f"{same}now: {reason}"))
    return tuple(sampled)


def _gained(
    connection: Connection, live: Generation, new: Generation, chosen: list[DiffPair], backend: str | None
) -> tuple[SampledPair, ...]:
    texts = _SampledTexts(connection, new, (live, new), chosen)
    missing = MissingPairs(connection, live, _encoder(live, backend), _ids(chosen))
    sampled = []
    for one in chosen:
        evidence, reason = missing.explain(one.left_id, one.right_id)
        same = "; now: identical features" if one.new is not None and one.new.twins else ""
        after = _evidence(one.new, new)
        sampled.append(SampledPair(*texts.sides(one), one.pairs, evidence, after, f"before: {reason}{same}"))
    return tuple(sampled)


def _rescored(
    connection: Connection, live: Generation, new: Generation, chosen: list[DiffPair]
) -> tuple[SampledPair, ...]:
    texts = _SampledTexts(connection, new, (live, new), chosen)
    return tuple(
        SampledPair(
            *texts.sides(one),
            one.pairs,
            _evidence(one.live, live),
            _evidence(one.new, new),
            _why_rescored(one),
        )
        for one in chosen
    )


def _why_rescored(pair: DiffPair) -> str:
    if pair.live is not None and pair.live.twins:
        return "before: identical features"
    if pair.new is not None and pair.new.twins:
        return "now: identical features"
    return "the shingling or metric changed, so similarity differs"


class _SampledTexts:
    """The documents of some pairs with their texts, as far as they exist."""

    def __init__(
        self,
        connection: Connection,
        generation: Generation,
        both: Sequence[Generation],
        chosen: Sequence[DiffPair],
    ) -> None:
        doc_ids = sorted({doc_id for pair in _ids(chosen) for doc_id in pair})
        recipes = [one.recipe for one in both]
        self._fields = [name for name in _FIELDS if any(name in one["fields"] for one in recipes)]
        self._html = any(one["normalise"]["html"] for one in recipes)
        self._documents = diffs.read_documents(connection, generation.leaves, doc_ids)
        self._texts = reports.read_texts(
            connection, generation.leaves, generation.collection_id, doc_ids, _TEXT_CHARACTERS
        )

    def sides(self, pair: DiffPair) -> tuple[SampledDocument, SampledDocument]:
        """Return the two documents of a pair."""
        return self._side(pair.left_id), self._side(pair.right_id)

    def _side(self, doc_id: int) -> SampledDocument:
        one, text = self._documents[doc_id], self._texts.get(doc_id)
        name = f"#{doc_id}" if one.external_id is None else one.external_id
        if text is None:
            return SampledDocument(name, doc_id, one.title, None, False, False)
        is_cut = (text.characters or 0) > _TEXT_CHARACTERS
        return SampledDocument(name, doc_id, one.title, self._content(text), is_cut, text.stale)

    def _content(self, text: ReadText) -> str:
        """Return what either recipe compares of a document."""
        values = {"title": text.title, "body": text.body}
        content = "\n\n".join(value for name in self._fields if (value := values[name]))
        return strip_html(content) if self._html else content


def _evidence(tie: Tie | None, generation: Generation) -> Evidence:
    """Return the evidence of a pair; twins share all bands."""
    assert tie is not None
    shared = generation.bands if tie.twins else tie.shared_bands
    return Evidence(True, tie.twins, tie.similarity, shared)


def _ids(chosen: Sequence[DiffPair]) -> list[tuple[int, int]]:
    return [(one.left_id, one.right_id) for one in chosen]


def _encoder(generation: Generation, backend: str | None) -> Encoder | None:
    """Return the encoder of a generation, None if this version would make different sketches."""
    try:
        return make_encoder(generation, backend)
    except (FingerprintError, RecipeError):
        return None
