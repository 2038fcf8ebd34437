"""Passages of documents of an index: of two, the rare ones first, and which documents have those of one, by time."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from nearsim_db.search.answers import profile_of
from nearsim_db.similarity import backend
from nearsim_db.similarity.arrays import Ragged
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.passages import Passage, PassageFinder, Span, find_passages, rare_first
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe.sections import METRIC_OF_FAMILY
from nearsim_db.similarity.text.clean import clean
from nearsim_db.similarity.text.markup import shown_text
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import to_bigint
from nearsim_db.store.generations.generation_rows import Generation

_MOST_FINGERPRINTS, _MOST_OF_ALL = 16, 4_096  # of a passage and of all of a pair, whose documents are counted
_MOST_DOCUMENTS = 100


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A document that has a passage, where in its text, and the equal words and their share, as in `Passage`."""

    id: str
    title: str | None
    source: str | None
    published_at: datetime | None
    place: Span
    equal: int
    share: float


@dataclass(frozen=True, slots=True)
class SpreadPassage:
    """A part of a document that others have too.

    `place` is in the document; `occurrences` are by time, that document among them, those without a date last.
    `first_seen` is the id of the earliest, None if none has a date.
    """

    place: Span
    first_seen: str | None
    occurrences: tuple[Occurrence, ...]


def compared_text(document: Mapping[str, Any], recipe: Recipe) -> str:
    """Return the text of a document in which passages have their places."""
    return clean(shown_text(document, recipe.fields, html=recipe.normalise.html))[0]


def passages_of(connection: Connection, generation: Generation, left: str, right: str) -> list[Passage]:
    """Return the passages that two texts share, as `rare_first` orders them.

    Under containment the documents are counted that have a passage's fingerprints, up to _MOST_DOCUMENTS.
    """
    profile = profile_of(generation)
    found = PassageFinder(profile.recipe, backend.resolve(), generation.common).find(left, right)
    if not found or not _is_contained(profile.recipe):
        return found
    # The windows of long texts, whose fingerprints shorter texts with the passage have too.
    recipe = override(profile.recipe, ["match.min_fingerprints=1"])
    encoder = Encoder(replace(profile, recipe=recipe), plain_characters=backend.FEW_CHARACTERS)
    encoder.ignore(generation.common)
    keys = encoder.ragged_keys(encoder.encode([one.left.text for one in found]).sketches)
    rows = [keys.take(slice(row, row + 1)).values for row in range(len(found))]
    most = max(1, min(_MOST_FINGERPRINTS, _MOST_OF_ALL // len(found)))
    chosen = [own[:: -(-len(own) // most) or 1] for own in rows]
    members, _ = generation.tables(connection).buckets.read_anchors(_MOST_DOCUMENTS, Ragged.of(chosen))
    sizes = Counter(bucket for bucket, _ in members)
    counted = [sorted(sizes[key] for key in to_bigint(own).tolist() if key in sizes) for own in chosen]
    return rare_first(
        replace(one, documents=own[(len(own) - 1) // 2] if own else None)
        for one, own in zip(found, counted, strict=True)
    )


def passages_if_contained(
    connection: Connection, generation: Generation, left: str, right: str
) -> list[Passage]:
    """Return what `passages_of` does under containment, otherwise none."""
    is_contained = _is_contained(profile_of(generation).recipe)
    return passages_of(connection, generation, left, right) if is_contained else []


def _is_contained(recipe: Recipe) -> bool:
    return METRIC_OF_FAMILY[recipe.sketch.family] == "containment"


def spread_of(
    asked: Mapping[str, Any], others: Iterable[Mapping[str, Any]], recipe: Recipe, finder: PassageFinder
) -> list[SpreadPassage]:
    """Return the passages that a document has in common with others, in the order of its text.

    Passages that overlap in it, of one document or several, are one.
    """
    own = finder.tokens(compared_text(asked, recipe))
    found: list[tuple[Passage, Mapping[str, Any]]] = []
    for other in others:
        tokens = finder.tokens(compared_text(other, recipe))
        found += [(one, _named(other)) for one in find_passages(own, tokens, finder.rules)]
    found.sort(key=lambda one: (one[0].left.start, one[0].left.end))
    groups: list[list[tuple[Passage, Mapping[str, Any]]]] = []
    end = 0
    for one in found:
        if not groups or one[0].left.start >= end:
            groups.append([])
        groups[-1].append(one)
        end = max(end if len(groups[-1]) > 1 else 0, one[0].left.end)
    return [_joined(asked, own.text, group) for group in groups]


def _named(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": document["external_id"]} | {
        name: document[name] for name in ("title", "source", "published_at")
    }


def _joined(
    asked: Mapping[str, Any], text: str, group: Sequence[tuple[Passage, Mapping[str, Any]]]
) -> SpreadPassage:
    lefts = [one.left for one, _ in group]
    start, end = min(one.start for one in lefts), max(one.end for one in lefts)
    first, last = min(one.first_word for one in lefts), max(one.end_word for one in lefts)
    place = Span(start, end, first, last, text[start:end])
    occurrences = [
        Occurrence(**named, place=one.right, equal=one.equal, share=one.share) for one, named in group
    ]
    occurrences.append(Occurrence(**_named(asked), place=place, equal=last - first, share=1.0))
    dated = sorted((one for one in occurrences if one.published_at), key=attrgetter("published_at", "id"))
    undated = sorted((one for one in occurrences if not one.published_at), key=attrgetter("id"))
    return SpreadPassage(place, dated[0].id if dated else None, (*dated, *undated))
