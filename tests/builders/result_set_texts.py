"""Texts with copies, an index of them, and the duplicates that `Deduper` should find in a list of results."""

import random
from collections.abc import Sequence

from nearsim_db import Deduper, Document, Index
from nearsim_db.similarity.recipe import Recipe, from_mapping
from tests.builders.near_copies import edited, text
from tests.builders.word_sets import similarity


def recipe(family: str = "bottom_k", k: int = 128) -> Recipe:
    return from_mapping({"sketch": {"family": family, "k": k}})


def write_texts() -> dict[str, str]:
    """Stories with near-copies and twins, a few texts of two words, and a text without words."""
    rng = random.Random(3)
    bodies = {"empty": "", "tiny": "two words", "tiny-twin": "two  words"}
    for story in range(9):
        story_text = text(rng, rng.choice([30, 150, 400]))
        for copy, edits in enumerate([0, 0, 1, 3, 9]):
            bodies[f"s{story}-{copy}"] = edited(rng, story_text, edits)
    names = list(bodies)
    rng.shuffle(names)
    return {name: bodies[name] for name in names}


def fill(index: Index, texts: dict[str, str], family: str = "bottom_k", k: int = 128) -> dict[str, int]:
    """Index texts, and return their doc_ids."""
    index.create_profile("p", recipe(family, k))
    index.add(Document(name, body=body) for name, body in texts.items())
    return {name: doc_id for name, (doc_id, _) in rows_of(index).items()}


def rows_of(index: Index) -> dict[str, tuple[int, int]]:
    """The doc_id and the revision of every document."""
    with index.database.engine.connect() as connection:
        rows = connection.execute("SELECT external_id, doc_id, revision FROM nearsim.document")
        return {name: (doc_id, revision) for name, doc_id, revision in rows}


def expected_duplicates(
    texts: dict[str, str], names: Sequence[str], threshold: float
) -> dict[str, str | None]:
    """Return for each text the first kept text that is similar to it, or None, by comparing the exact sets."""
    kept_alike: dict[str, str | None] = {}
    for name in names:
        kept = [other for other, duplicate_of in kept_alike.items() if duplicate_of is None]
        alike = (other for other in kept if similarity(texts[name], texts[other]) >= threshold)
        kept_alike[name] = next(alike, None)
    return kept_alike


def asked(deduper: Deduper, ids: dict[str, int], names: Sequence[str]) -> dict[str, str | None]:
    by_id = {doc_id: name for name, doc_id in ids.items()}
    judged = deduper.dedupe([ids[name] for name in names])
    assert [judgement.id for judgement in judged] == [ids[name] for name in names]
    assert all(judgement.indexed for judgement in judged)
    return {
        by_id[judgement.id]: None if judgement.duplicate_of is None else by_id[judgement.duplicate_of]
        for judgement in judged
    }


def names_far_from_threshold(
    texts: dict[str, str], names: Sequence[str], threshold: float, error: float
) -> list[str]:
    """Names of documents with no similarity near the threshold, where an estimate may decide either way."""
    chosen: list[str] = []
    for name in names:
        if all(abs(similarity(texts[name], texts[other]) - threshold) > 5 * error for other in chosen):
            chosen.append(name)
    return chosen
