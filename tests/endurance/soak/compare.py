"""The comparison after each round: everything that differs from the oracle, as lines to print."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from nearsim_db.similarity.profile import resolve
from tests.builders.plain_clusters import Evidence
from tests.endurance.soak.journal import Model
from tests.endurance.soak.oracle import Expected, Row
from tests.endurance.soak.stored import Generation, Stored, StoredDocument


def wrong_documents(
    model: Model, documents: Mapping[int, StoredDocument], written: list[int], purged: set[str]
) -> Iterator[str]:
    """Yield documents that are not as the writers left them; those with a name in `purged` may be gone, and are
    then removed from the model.
    """
    stored = {
        doc_id: one.values for doc_id, one in documents.items() if one.values["collection_id"] in written
    }
    for doc_id in stored.keys() | model.documents.keys():
        expected, found = model.documents.get(doc_id), stored.get(doc_id)
        if found is None and expected is not None and expected["external_id"] in purged:
            del model.documents[doc_id]
            model.verdicts = {pair: one for pair, one in model.verdicts.items() if doc_id not in pair}
        elif expected != found:
            yield f"document {doc_id} is {found}, expected {expected}"


def wrong_story(model: Model, documents: Mapping[int, StoredDocument], collection_id: int) -> Iterator[str]:
    """Yield documents of the attached table that differ from its rows."""
    stored = {}
    for one in documents.values():
        values = one.values
        if values["collection_id"] == collection_id:
            facts = values["title"], values["source"], values["published_at"]
            stored[int(values["external_id"])] = (*facts, one.body_digest, one.body_length)
    for number in stored.keys() | model.story.keys():
        row = model.story.get(number)
        expected = None
        if row is not None:
            text = row["body"]
            digest = hashlib.md5((text or "").encode(), usedforsecurity=False).hexdigest()
            length = None if text is None else len(text)
            expected = row["headline"], row["source"], row["day"], digest, length
        if stored.get(number) != expected:
            yield f"attached document {number} is {stored.get(number)}, expected {expected}"


def wrong_verdicts(
    model: Model, stored: Mapping[tuple[int, int], tuple[int, str]], purged: set[str]
) -> Iterator[str]:
    """Yield pairs whose current verdict is not the one that was given last.

    A purge deletes verdicts, also if the documents were purged before a TRUNCATE that hides this from the model.
    """
    for pair in stored.keys() | model.verdicts.keys():
        if pair not in stored and any(model.cleared.get(one) in purged for one in pair):
            del model.verdicts[pair]
        elif stored.get(pair) != model.verdicts.get(pair):
            yield f"verdict on {pair} is {stored.get(pair)}, expected {model.verdicts.get(pair)}"


def wrong_index(
    generation: Generation,
    rows: Mapping[int, Row],
    revisions: Mapping[int, int],
    verdicts: Mapping[tuple[int, int], tuple[int, str]],
    stored: Stored,
) -> Iterator[str]:
    """Yield everything in a generation that differs from the oracle."""
    expected = Expected(generation.recipe, generation.bands, generation.rows, rows)
    prefix = f"generation {generation.generation_id} ({generation.recipe.sketch.family}, {generation.state})"
    judged = {
        pair: verdict
        for pair, (collection, verdict) in verdicts.items()
        if collection == generation.collection_id
    }
    checks = (
        wrong_signatures(expected, revisions, stored),
        wrong_bands(expected, stored),
        wrong_pairs(expected, stored),
        _wrong_clusters(expected, judged, stored),
    )
    for check in checks:
        yield from (f"{prefix}: {line}" for line in check)


def wrong_signatures(expected: Expected, revisions: Mapping[int, int], stored: Stored) -> Iterator[str]:
    """Yield signatures that are not those of the documents."""
    numbers = _classes({one: sign.numbers for one, sign in stored.signatures.items()})
    if stored.signatures.keys() == expected.documents.keys() and numbers != _classes(expected.numbers):
        yield f"classes of equal numbers are {numbers}, expected {_classes(expected.numbers)}"
    for doc_id in stored.signatures.keys() | expected.documents.keys():
        found = stored.signatures.get(doc_id)
        if found is None or doc_id not in expected.documents:
            yield f"document {doc_id} is {'signed' if found else 'not signed'}"
            continue
        facts = (
            *(revisions[doc_id], len(expected.features[doc_id])),
            *(expected.sketches.get(doc_id), expected.heads[doc_id]),
        )
        if (found.revision, found.feature_count, found.sketch, found.head) != facts:
            yield f"signature of {doc_id} is {found}, expected {facts}"


def _classes(values: Mapping[int, Any]) -> list[list[int]]:
    groups = defaultdict(list)
    for doc_id, value in sorted(values.items()):
        groups[value].append(doc_id)
    return sorted(groups.values())


def wrong_bands(expected: Expected, stored: Stored) -> Iterator[str]:
    """Yield how the band rows differ."""
    if stored.bands != expected.bands:
        missing = sorted({*expected.bands} - {*stored.bands})
        extra = sorted({*stored.bands} - {*expected.bands})
        yield f"bands: missing {missing[:5]}, extra {extra[:5]}, {len(stored.bands)} of {len(expected.bands)}"


def wrong_pairs(expected: Expected, stored: Stored) -> Iterator[str]:
    """Yield pairs of a fresh build that are missing, and stored ones that are not true."""
    for pair in sorted(expected.least_pairs - stored.pairs.keys()):
        yield f"pair {pair} is missing"
    for pair, (shared, similarity, *sizes) in stored.pairs.items():
        true = expected.true_pairs.get(pair)
        if true is None:
            yield f"pair {pair} is not one"
        elif expected.is_whole and pair not in expected.least_pairs:
            yield f"pair {pair} shares no bucket"
        elif (
            shared != true[0]
            or tuple(sizes) != true[1].sizes
            or not math.isclose(similarity, true[1].similarity, abs_tol=1e-9)
        ):
            yield f"pair {pair} is stored as {shared, similarity, sizes}, expected {true}"


def _wrong_clusters(
    expected: Expected, verdicts: Mapping[tuple[int, int], str], stored: Stored
) -> Iterator[str]:
    if any(sign.head not in (None, one, *stored.signatures) for one, sign in stored.signatures.items()):
        return
    evidence = Evidence(
        expected.recipe.cluster,
        {one: sign.head for one, sign in stored.signatures.items() if sign.head is not None},
        {one: sign.numbers for one, sign in stored.signatures.items()},
        {doc_id: row.fact for doc_id, row in expected.documents.items()},
        {pair: similarity for pair, (_, similarity, *_) in stored.pairs.items()},
        verdicts,
        resolve(expected.recipe).similarity_at_threshold,
    )
    if not evidence.numbers.keys() <= evidence.facts.keys():
        return
    clusters = evidence.clusters()
    for doc_id in clusters.keys() | stored.members.keys():
        if clusters.get(doc_id) != stored.members.get(doc_id):
            yield f"document {doc_id} is in {stored.members.get(doc_id)}, expected {clusters.get(doc_id)}"
