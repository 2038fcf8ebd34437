"""The rule c^k >> l - k + 1, on texts whose alphabet and length are known."""

import random

import numpy as np
import pytest

from nearsim_db.similarity import k_rule, presets
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.k_rule import SAMPLE_SIZE, HeadSample
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import override

LETTERS = "abcdefghijklmnopqrst"


def texts(units: str | list[str], length: int, count: int, separator: str = "") -> list[str]:
    """Texts of uniformly drawn units, so that c is close to the number of different ones."""
    drawn = random.Random(1)
    return [separator.join(drawn.choices(units, k=length)) for _ in range(count)]


def profile(*settings: str) -> Profile:
    return resolve(override(presets.load("default"), settings))


def test_runs_of_characters() -> None:
    """20^2 / 599, 20^3 / 598 and 20^4 / 597."""
    for k, ratio in ((2, "0.67"), (3, "13"), (4, None), (5, None)):
        found = k_rule.warning(profile("shingle.scheme=char", f"shingle.k={k}"), texts(LETTERS, 600, 40))
        assert (found is not None) == (ratio is not None)
        if found is not None:
            assert f" is {ratio}" in found and "20 characters" in found and "600" in found
            assert found.endswith("raise shingle.k to 4 or more")


def test_runs_of_words() -> None:
    words = [f"word{number}" for number in range(40)]
    sample = texts(words, 300, 40, " ")
    assert k_rule.warning(profile("shingle.k=3"), sample) is None
    found = k_rule.warning(profile("shingle.k=2"), sample)
    assert found is not None and "40 words in use and 300 in" in found and "5.3, which" in found


def test_what_the_rule_does_not_apply_to() -> None:
    sample = texts(LETTERS, 600, 40)
    for name in ("headlines", "realtime", "embeddings", "cs246-cosine"):
        assert k_rule.warning(resolve(presets.load(name)), sample) is None
    short = profile("shingle.scheme=char", "shingle.k=2")
    assert k_rule.warning(short, []) is None
    assert k_rule.warning(short, ["", "abc"]) is None


@pytest.mark.parametrize("order", [1, -1])
def test_the_sample_of_texts_is_that_of_the_database(order: int) -> None:
    """Those with the smallest digests, each by its first document, whatever the batches and processes."""
    drawn = np.random.default_rng(1).integers(0, 256, (3_000, 16), np.uint8)
    drawn[::7] = drawn[1]  # copies
    drawn[5] = 0  # without features
    digests, sample = drawn.view("V16").reshape(-1), HeadSample()
    nothing = np.zeros(len(digests), np.int64)
    rows = SignatureRows(
        np.arange(len(digests)),
        nothing,
        nothing.astype(np.int32),
        digests,
        nothing.reshape(-1, 1),
        nothing.astype(np.uint64),
    )
    for at in range(0, len(digests), 800)[::order]:
        chosen = (rows.doc_ids >= at) & (rows.doc_ids < at + 800)
        sample.add(rows.take(chosen), [str(row) for row in range(at, at + 800)].__getitem__)
    first = {digest.tobytes(): str(number) for number, digest in reversed(list(enumerate(digests)))}
    del first[bytes(16)]
    assert sample.texts() == [first[digest] for digest in sorted(first)[:SAMPLE_SIZE]]
