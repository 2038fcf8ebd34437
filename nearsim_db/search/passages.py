"""Find the passages that two documents share, and the documents through which a document's passages spread."""

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
from nearsim_db.similarity.text.pages import shown_text
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import to_bigint
from nearsim_db.store.generations.generation_rows import Generation

# How many fingerprints are looked up to count the documents that contain a passage.
_MAX_FINGERPRINTS_PER_PASSAGE = 16
_MAX_FINGERPRINTS_PER_PAIR = 4_096
_MAX_DOCUMENTS_COUNTED = 100


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A document that contains a passage."""

    id: str
    title: str | None
    source: str | None
    published_at: datetime | None
    place: Span  # where the passage is in the text of this document
    equal: int  # the number of equal words, as in `Passage`
    share: float  # the fraction of equal words, as in `Passage`


@dataclass(frozen=True, slots=True)
class SpreadPassage:
    """A passage of a document that other documents contain too."""

    place: Span  # where the passage is in the text of the document
    first_seen: str | None  # id of the earliest document that contains it, None if no document has a date
    # The documents that contain the passage, this document included, by date; documents without a date are last.
    occurrences: tuple[Occurrence, ...]


def compared_text(document: Mapping[str, Any], recipe: Recipe) -> str:
    """Return the text of a document in whose characters the places of passages are counted."""
    return clean(shown_text(document, recipe.fields, html=recipe.normalise.html))[0]


def passages_of(connection: Connection, generation: Generation, left: str, right: str) -> list[Passage]:
    """Return the passages that two texts share, in the order of `rare_first`.

    Under containment, each passage has the number of documents that contain it, estimated from its fingerprints and at
    most _MAX_DOCUMENTS_COUNTED.
    """
    profile = profile_of(generation)
    passages = PassageFinder(profile.recipe, backend.resolve(), generation.common).find(left, right)
    if not passages or not _is_contained(profile.recipe):
        return passages

    # Use the windows of long texts: shorter texts that contain the passage have these fingerprints too.
    recipe = override(profile.recipe, ["match.min_fingerprints=1"])
    encoder = Encoder(replace(profile, recipe=recipe), plain_characters=backend.FIRST_PLAIN_CHARACTERS)
    encoder.ignore(generation.common)
    keys = encoder.ragged_keys(encoder.encode([passage.left.text for passage in passages]).sketches)

    # Take a few fingerprints of each passage, spread evenly over it, and count the documents that have them.
    max_keys = max(1, min(_MAX_FINGERPRINTS_PER_PASSAGE, _MAX_FINGERPRINTS_PER_PAIR // len(passages)))
    keys_by_passage = [keys.take(slice(row, row + 1)).values for row in range(len(passages))]
    chosen = [own_keys[:: -(-len(own_keys) // max_keys) or 1] for own_keys in keys_by_passage]
    members, _ = generation.tables(connection).buckets.read_anchors(_MAX_DOCUMENTS_COUNTED, Ragged.of(chosen))
    sizes = Counter(bucket for bucket, _ in members)

    # The count of a passage is the median of the counts of its fingerprints.
    counts = [
        sorted(sizes[key] for key in to_bigint(own_keys).tolist() if key in sizes) for own_keys in chosen
    ]
    return rare_first(
        replace(passage, documents=own_counts[(len(own_counts) - 1) // 2] if own_counts else None)
        for passage, own_counts in zip(passages, counts, strict=True)
    )


def passages_if_contained(
    connection: Connection, generation: Generation, left: str, right: str
) -> list[Passage]:
    """Return the passages of `passages_of` under containment, otherwise none."""
    is_contained = _is_contained(profile_of(generation).recipe)
    return passages_of(connection, generation, left, right) if is_contained else []


def _is_contained(recipe: Recipe) -> bool:
    return METRIC_OF_FAMILY[recipe.sketch.family] == "containment"


def spread_of(
    asked: Mapping[str, Any], similar: Iterable[Mapping[str, Any]], recipe: Recipe, finder: PassageFinder
) -> list[SpreadPassage]:
    """Return the passages that the document `asked` shares with similar documents, in the order of its text.

    Passages that overlap in its text are joined, even if it shares them with different documents.
    """
    asked_tokens = finder.tokens(compared_text(asked, recipe))
    shared: list[tuple[Passage, Mapping[str, Any]]] = []
    for other in similar:
        tokens = finder.tokens(compared_text(other, recipe))
        passages = find_passages(asked_tokens, tokens, finder.rules)
        shared += [(passage, _named(other)) for passage in passages]
    shared.sort(key=lambda item: (item[0].left.start, item[0].left.end))

    groups: list[list[tuple[Passage, Mapping[str, Any]]]] = []
    group_end = 0
    for passage, named in shared:
        if not groups or passage.left.start >= group_end:
            groups.append([])
            group_end = 0
        groups[-1].append((passage, named))
        group_end = max(group_end, passage.left.end)
    return [_joined(asked, asked_tokens.text, group) for group in groups]


def _named(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": document["external_id"]} | {
        name: document[name] for name in ("title", "source", "published_at")
    }


def _joined(
    asked: Mapping[str, Any], text: str, group: Sequence[tuple[Passage, Mapping[str, Any]]]
) -> SpreadPassage:
    """Join the passages of a group into one; `text` is the text of the document `asked`."""
    spans = [passage.left for passage, _ in group]
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    first_word, end_word = min(span.first_word for span in spans), max(span.end_word for span in spans)
    place = Span(start, end, first_word, end_word, text[start:end])

    occurrences = [
        Occurrence(**named, place=passage.right, equal=passage.equal, share=passage.share)
        for passage, named in group
    ]
    occurrences.append(Occurrence(**_named(asked), place=place, equal=end_word - first_word, share=1.0))
    dated = [occurrence for occurrence in occurrences if occurrence.published_at]
    dated.sort(key=attrgetter("published_at", "id"))
    undated = [occurrence for occurrence in occurrences if not occurrence.published_at]
    undated.sort(key=attrgetter("id"))
    return SpreadPassage(place, dated[0].id if dated else None, (*dated, *undated))
