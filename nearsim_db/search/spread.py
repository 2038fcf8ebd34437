"""The spread of a document's passages: which other documents have each of them, by time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from nearsim_db.similarity.passages import Passage, PassageFinder, Span, find_passages
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text.clean import clean
from nearsim_db.similarity.text.markup import shown_text


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
