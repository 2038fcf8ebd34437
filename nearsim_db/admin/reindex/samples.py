"""Some of what differs between two generations, with texts, and with the reasons as far as they can be told."""

from collections.abc import Sequence

from nearsim_db.admin.reindex.diff_result import Evidence, SampledDocument, SampledPair, Samples
from nearsim_db.admin.reindex.why_no_pair import Absences
from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.indexing.context import make_encoder
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.text.normalise import strip_html
from nearsim_db.store import diffs, report_pairs
from nearsim_db.store.catalog import Generation
from nearsim_db.store.diffs import Both, DiffPair, Tie
from nearsim_db.store.driver import Connection
from nearsim_db.store.report_pairs import ReadText

_TEXT_CHARACTERS = 10_000
_FIELDS = ("title", "body")

NO_SAMPLES = Samples((), (), (), (), ())


def read(
    connection: Connection, live: Generation, new: Generation, amount: int, backend: str | None
) -> Samples:
    """At most `amount` of each kind; after pairs and clusters were counted in the same transaction."""
    both = Both(live.leaves, new.leaves)
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
    shown = _Shown(connection, live, (live, new), chosen)
    absences = Absences(connection, new, _encoder(new, backend), _ids(chosen))
    sampled = []
    for one in chosen:
        evidence, reason = absences.tell(one.left_id, one.right_id)
        same = "before they had the same features; " if one.live is not None and one.live.twins else ""
        before = _evidence(one.live, live)
        sampled.append(SampledPair(*shown.sides(one), one.pairs, before, evidence, f"{same}now: {reason}"))
    return tuple(sampled)


def _gained(
    connection: Connection, live: Generation, new: Generation, chosen: list[DiffPair], backend: str | None
) -> tuple[SampledPair, ...]:
    shown = _Shown(connection, new, (live, new), chosen)
    absences = Absences(connection, live, _encoder(live, backend), _ids(chosen))
    sampled = []
    for one in chosen:
        evidence, reason = absences.tell(one.left_id, one.right_id)
        same = "; now they have the same features" if one.new is not None and one.new.twins else ""
        after = _evidence(one.new, new)
        sampled.append(SampledPair(*shown.sides(one), one.pairs, evidence, after, f"before: {reason}{same}"))
    return tuple(sampled)


def _rescored(
    connection: Connection, live: Generation, new: Generation, chosen: list[DiffPair]
) -> tuple[SampledPair, ...]:
    shown = _Shown(connection, new, (live, new), chosen)
    return tuple(
        SampledPair(
            *shown.sides(one), one.pairs, _evidence(one.live, live), _evidence(one.new, new), _turn(one)
        )
        for one in chosen
    )


def _turn(pair: DiffPair) -> str:
    """What happened to a pair of both generations."""
    if pair.live is not None and pair.live.twins:
        return "before they had the same features"
    if pair.new is not None and pair.new.twins:
        return "now they have the same features"
    return "their features, or what measures them, are others"


class _Shown:
    """The documents of some pairs as people read them, as far as they are still there."""

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
        self._standings = diffs.read_standings(connection, generation.leaves, doc_ids)
        self._texts = report_pairs.read_texts(
            connection, generation.leaves, generation.collection_id, doc_ids, _TEXT_CHARACTERS
        )

    def sides(self, pair: DiffPair) -> tuple[SampledDocument, SampledDocument]:
        """The two documents of a pair."""
        return self._side(pair.left_id), self._side(pair.right_id)

    def _side(self, doc_id: int) -> SampledDocument:
        one, text = self._standings[doc_id], self._texts.get(doc_id)
        name = f"#{doc_id}" if one.external_id is None else one.external_id
        if text is None:
            return SampledDocument(name, doc_id, one.title, None, False, False)
        is_cut = (text.characters or 0) > _TEXT_CHARACTERS
        return SampledDocument(name, doc_id, one.title, self._content(text), is_cut, text.stale)

    def _content(self, text: ReadText) -> str:
        """What either recipe compares of a document."""
        values = {"title": text.title, "body": text.body}
        content = "\n\n".join(value for name in self._fields if (value := values[name]))
        return strip_html(content) if self._html else content


def _evidence(tie: Tie | None, generation: Generation) -> Evidence:
    """What makes a pair; twins share all bands."""
    assert tie is not None
    shared = generation.bands if tie.twins else tie.shared_bands
    return Evidence(True, tie.twins, tie.similarity, shared)


def _ids(chosen: Sequence[DiffPair]) -> list[tuple[int, int]]:
    return [(one.left_id, one.right_id) for one in chosen]


def _encoder(generation: Generation, backend: str | None) -> Encoder | None:
    """What a generation was built with; None where this version would build it otherwise."""
    try:
        return make_encoder(generation, backend)
    except (FingerprintError, RecipeError):
        return None
