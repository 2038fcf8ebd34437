"""Near-duplicates within a result set, against brute force over the exact sets."""

import random
from typing import cast

import numpy as np
import pytest

from nearsim_db import Deduper, Document, Index, Judgement
from nearsim_db.errors import InputError, RecipeError
from nearsim_db.similarity.profile import make_family
from nearsim_db.similarity.recipe import from_mapping
from tests.builders.result_set_texts import (
    asked,
    clear_of_the_error,
    fill,
    first_kept_alike,
    rows_of,
    write_texts,
)
from tests.builders.selection import some
from tests.builders.word_sets import shingles, similarity

FAMILIES = ["fast_similarity", "minhash", "bottom_k"]
every_family = pytest.mark.parametrize("family", some(FAMILIES, "every family"))


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return write_texts()


@every_family
def test_results_equal_the_exact_sets_within_the_error(
    index: Index, texts: dict[str, str], family: str
) -> None:
    ids = fill(index, texts, family, k=512)
    for least in (0.4, 0.75):
        deduper = Deduper(index, least)
        assert deduper.standard_error == pytest.approx((least * (1 - least) / 512) ** 0.5)
        names = clear_of_the_error(texts, list(texts), least, deduper.standard_error)
        assert len(names) > 30
        expected = first_kept_alike(texts, names, least)
        assert sum(of is not None for of in expected.values()) > 15
        assert asked(deduper, ids, names) == expected
        assert asked(deduper, ids, names[::-1]) == first_kept_alike(texts, names[::-1], least)


def test_default_threshold_is_that_of_the_live_recipe(index: Index) -> None:
    """Sets of fewer than k ids are compared exactly, so the pairs are those of the recipe."""
    rng = random.Random(6)
    texts = {f"d{number}": " ".join(rng.choices("abcd", k=12)) for number in range(40)}
    chosen = {"sketch": {"family": "bottom_k"}, "match": {"threshold": 0.35}}
    index.create_profile("p", from_mapping(chosen))
    index.add(Document(name, body=body) for name, body in texts.items())
    ids = {name: doc_id for name, (doc_id, _) in rows_of(index).items()}
    deduper = Deduper(index, recheck_seconds=0)
    expected = first_kept_alike(texts, list(texts), 0.35)
    assert asked(deduper, ids, list(texts)) == expected != first_kept_alike(texts, list(texts), 0.7)
    assert deduper.standard_error == pytest.approx((0.35 * 0.65 / 128) ** 0.5)
    assert asked(Deduper(index, 0.7), ids, list(texts)) == first_kept_alike(texts, list(texts), 0.7)
    index.delete_profile("p")
    index.create_profile("p", from_mapping(chosen | {"match": {"threshold": 0.8}}))
    assert asked(deduper, ids, list(texts)) == first_kept_alike(texts, list(texts), 0.8) != expected
    index.delete_profile("p")
    counted = {"shingle": {"scheme": "bag"}, "sketch": {"family": "projection"}, "match": {"threshold": 3}}
    index.create_profile("p", from_mapping(counted))
    family = make_family(from_mapping(counted))
    assert deduper.standard_error == pytest.approx(family.standard_error(1 / (1 + 3)))


def test_estimates_may_verify_bottom_k(index: Index, texts: dict[str, str]) -> None:
    index.create_profile(
        "p", from_mapping({"sketch": {"family": "bottom_k"}, "match": {"verify": "estimate"}})
    )
    index.add(Document(name, body=body) for name, body in texts.items())
    for pair in index.pairs():
        assert pair.intersection is not None and pair.union is not None
        assert pair.similarity == pair.intersection / pair.union == pytest.approx(pair.estimate, abs=1e-6)
        exact = similarity(texts[pair.left], texts[pair.right])
        if len(shingles(texts[pair.left])) < 128 and len(shingles(texts[pair.right])) < 128:
            assert pair.similarity == exact >= 0.7


def test_invalid_calls_are_refused_and_unknown_ids_not_indexed(index: Index, texts: dict[str, str]) -> None:
    ids = fill(index, texts)
    deduper, near = Deduper(index), ids["s0-0"]
    for least in (0.0, 1.1, -0.5):
        with pytest.raises(RecipeError, match=str(least)):
            Deduper(index, least)
    with pytest.raises(RecipeError):
        deduper.dedupe([1], min_similarity=0.0)
    with pytest.raises(InputError):
        deduper.dedupe([1, 2], [1])
    for doc_ids in ([None, 1], ["1", "2"], [1.5, 2], [1, 2**63], [-(2**63)]):
        with pytest.raises(InputError, match="doc_ids must be"):
            deduper.dedupe(cast(list[int], doc_ids))
    for revisions in ([0], [-1], [2**63], ["1"], [None]):
        with pytest.raises(InputError, match="revisions must be"):
            deduper.dedupe([near], cast(list[int], revisions))
    for external_id in (None, 1, b"s0-0"):
        with pytest.raises(InputError, match="external ids"):
            deduper.dedupe_external(["s0-0", cast(str, external_id)])
    assert deduper.dedupe([near], [1]) == [Judgement(near, None, True)]
    assert deduper.dedupe([*np.array([near, 2**63 - 1])]) == [
        Judgement(near, None, True),
        Judgement(2**63 - 1, None, False),
    ]
    assert deduper.dedupe_external(["a\0b", "s0-0", "\ud800", "a\0b"]) == [
        Judgement("a\0b", None, False),
        Judgement("s0-0", None, True),
        Judgement("\ud800", None, False),
        Judgement("a\0b", "a\0b", False),
    ]
