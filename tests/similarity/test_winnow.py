"""Winnowing: fingerprints against a plain-Python oracle, the guarantee, density, and comparisons."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.backend import sketch_kernels
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, from_mapping, override, parse, to_mapping, to_toml
from nearsim_db.similarity.sketch import NO_KNOWN_PAIRS, Banding, KnownPairs, Winnow
from nearsim_db.similarity.sketch.kernels import FullRows
from nearsim_db.similarity.sketch.winnow import fingerprints, run_probability
from tests.builders import plain_sketches
from tests.builders.random_sets import ragged
from tests.builders.selection import every_backend, examples

BANDING = Banding(256, 1)
KNOWN = [8550780512656854, 24610179271729843, 26386013585963478, 26959615613457156, 40202506509224641]
KNOWN_SHORT = [61736657730134799]


def oracle(ids: list[int], window: int, seed: int, id_bits: int = 64, min_fingerprints: int = 1) -> list[int]:
    """The least of each window of mixed ids, their low 56 bits, ascending."""
    mask = plain_sketches.words(seed, "winnow mask", 1)[0] if seed else 0
    points = [plain_sketches.fmix64(one ^ mask) if seed or id_bits == 32 else one for one in ids]
    width = min(window, max(1, 2 * len(points) // min_fingerprints - 1), len(points))
    windows = [points[at : at + width] for at in range(len(points) - width + 1)] if points else []
    return sorted({min(own) % 2**56 for own in windows})


def found(family: Winnow, documents: list[list[int]]) -> list[list[int]]:
    sketches = family.sketch(*ragged(documents))
    assert sketches.shape == (len(documents), 1)
    keys = fingerprints(sketches)
    return [own.tolist() for own in np.split(keys.values, keys.offsets[1:-1])] if len(keys) else []


@every_backend
@examples(60)
@given(
    documents=st.lists(st.lists(st.integers(0, 12), max_size=60), max_size=6),
    window=st.integers(1, 20),
    seed=st.sampled_from([0, 1, 2**63 - 1]),
    id_bits=st.sampled_from([32, 64]),
    min_fingerprints=st.integers(1, 40),
)
def test_fingerprints_are_the_least_of_each_window(
    backend: str, documents: list[list[int]], window: int, seed: int, id_bits: int, min_fingerprints: int
) -> None:
    family = Winnow(
        seed=seed, id_bits=id_bits, backend=backend, window=window, min_fingerprints=min_fingerprints
    )
    assert found(family, documents) == [
        oracle(own, window, seed, id_bits, min_fingerprints) for own in documents
    ]


@every_backend
def test_known_answers(backend: str) -> None:
    """Pinned: another answer would need a new scheme version."""
    rng = random.Random(3)
    ids = [rng.getrandbits(64) for _ in range(60)]
    assert found(Winnow(backend=backend), [ids, ids[:4], []]) == [KNOWN, KNOWN_SHORT, []]


@every_backend
def test_a_sketch_does_not_depend_on_the_batch(backend: str) -> None:
    rng = random.Random(4)
    documents = [[rng.getrandbits(64) for _ in range(size)] for size in (1, 0, 300, 20_000, 16, 15)]
    family = Winnow(backend=backend)
    ids, offsets = ragged(documents)
    together = family.sketch(ids, offsets)
    assert together[2:5].tolist() == family.sketch(ids, offsets[2:6]).tolist()
    assert together.tolist() == [family.sketch(*ragged([own]))[0].tolist() for own in documents]
    assert family.sketch(*ragged([])).shape == (0, 1)
    density = len(fingerprints(together[3:4]).values) / 20_000
    assert density == pytest.approx(2 / 17, rel=0.05)


@pytest.mark.parametrize(("k", "passage"), [(5, 20), (5, 5), (1, 4), (8, 13)])
def test_a_shared_run_of_the_passage_shares_a_fingerprint(k: int, passage: int) -> None:
    recipe = override(Recipe(), ["sketch.family=winnow", f"shingle.k={k}", f"match.passage={passage}"])
    encoder, rng = Encoder(resolve(recipe), "numpy"), random.Random(passage)
    words = [f"w{number}" for number in range(50_000)]
    texts = []
    for _ in range(300):
        run = rng.choices(words, k=passage)
        for _ in range(2):
            frame = rng.choices(words, k=rng.randrange(200))
            at = rng.randrange(len(frame) + 1)
            texts.append(" ".join([*frame[:at], *run, *frame[at:]]))
    sketches = encoder.encode(texts).sketches
    assert encoder.match_bands(sketches[::2], sketches[1::2])[1].all()


def test_a_short_text_is_found_inside_a_longer_one() -> None:
    """The longer one selects a shingle of every window; the short one has all of its shingles."""
    rng, trials = np.random.default_rng(8), 2_000
    for words, inside in ((60, 3), (120, 4), (200, 6)):
        ids = rng.integers(0, 2**64, (trials, words + inside), np.uint64)
        ids[:, words:] = ids[:, words // 2 : words // 2 + inside]
        offsets = np.append(0, np.cumsum([words, inside] * trials))
        sketches = Winnow(backend="numpy", min_fingerprints=64).sketch(ids.reshape(-1), offsets)
        shared = Winnow().count_shared_bands(sketches[::2], sketches[1::2], BANDING)
        window = max(1, 2 * words // 64 - 1)
        assert inside >= window and (shared > 0).all()


@pytest.mark.parametrize("period", [10, 12, 17, 25])
def test_pairs_of_scattered_changes_are_not_ruled_out(period: int) -> None:
    """One shingle run in each `period` words is changed: equal ones are as scattered as they can be."""
    rng, k = np.random.default_rng(period), 5
    for words in (100, 200, 400, 800):
        ids = rng.integers(0, 2**64, (400, 2, words), np.uint64)
        kept = np.arange(words) % period >= k
        ids[:, 1, kept] = ids[:, 0, kept]
        family = Winnow(backend="numpy", min_fingerprints=64)
        sketches = family.sketch(ids.reshape(-1), np.arange(0, ids.size + 1, words))
        rows = np.arange(0, len(sketches), 2)
        found = family.compare_rows(sketches, rows, rows + 1, BANDING)
        assert (found.shared > 0).all() and family.may_reach(found, kept.mean(), 5).all()


@pytest.mark.parametrize("run", [1, 4, 9, 13, 15, 16, 20])
def test_a_shorter_run_shares_a_fingerprint_with_its_probability(run: int) -> None:
    rng, trials, around = np.random.default_rng(run), 3_000, 60
    ids = rng.integers(0, 2**64, (trials, 2, run + around), np.uint64)
    at = around // 2
    ids[:, 1, at : at + run] = ids[:, 0, at : at + run]
    sketches = Winnow(seed=0, backend="numpy").sketch(
        ids.reshape(-1), np.arange(0, ids.size + 1, run + around)
    )
    shared = Winnow().count_shared_bands(sketches[::2], sketches[1::2], BANDING) > 0
    assert run_probability(run, 16) == pytest.approx(shared.mean(), abs=0.03)
    assert run < 16 or shared.all()


@every_backend
def test_sketches_are_compared_by_the_smaller(backend: str) -> None:
    rng = random.Random(6)
    pool = [rng.getrandbits(64) for _ in range(120)]
    documents = [rng.sample(pool, rng.randrange(1, 100)) for _ in range(30)]
    family = Winnow(backend=backend, window=3)
    sketches, own = family.sketch(*ragged(documents)), [set(one) for one in found(family, documents)]
    left, right = np.arange(30), np.roll(np.arange(30), 1)
    both = [len(own[one] & own[other]) for one, other in zip(left, right, strict=True)]
    # A fingerprint of windows of w stands for (w + 1) / 2 shingles.
    worth = [Fraction(min(3, max(1, 2 * len(ids) - 1)) + 1, 2) for ids in documents]
    estimates = [
        min(
            Fraction(1),
            shared
            * max(worth[one], worth[other])
            / min(len(own[one]) * worth[one], len(own[other]) * worth[other]),
        )
        for shared, one, other in zip(both, left, right, strict=True)
    ]
    compared = family.compare_rows(sketches, left, right, BANDING)
    assert compared.shared.tolist() == both
    ratios = zip(compared.agreeing.tolist(), compared.compared.tolist(), strict=True)
    assert [Fraction(*ratio) for ratio in ratios] == estimates
    assert family.count_shared_bands(sketches[left], sketches[right], BANDING).tolist() == both
    assert family.estimate(sketches[left], sketches[right]).tolist() == [float(one) for one in estimates]
    present = np.ones(30, bool)
    present[4] = False
    kept: list[int] = []
    expected = []
    for row in range(30):
        alike = [one for one in kept if 2 * len(own[one] & own[row]) >= min(len(own[one]), len(own[row]))]
        expected.append(alike[0] if alike and present[row] else -1)
        kept += [row] if present[row] and not alike else []
    assert family.first_similar(sketches, present, Fraction(1, 2), NO_KNOWN_PAIRS).tolist() == expected
    decided = KnownPairs(np.array([30 * 29]), np.array([True]))
    assert family.first_similar(sketches, present, Fraction(1), decided)[29] == 0


@every_backend
def test_links_of_rows_of_different_lengths_are_found_once(backend: str) -> None:
    """As for rows of one length, which first_links compares."""
    rng = np.random.default_rng(7)
    rows = np.array([rng.choice(40, 9, replace=False) for _ in range(20)])
    rows.sort(axis=1)
    keys = (rows.astype(np.int64) * 0x9E3779B97F4A7) % 2**56
    keys.sort(axis=1)
    links = [
        (bucket, one, other)
        for one in range(20)
        for other in range(one + 1, 20)
        for bucket in set(keys[one].tolist()) & set(keys[other].tolist())
    ]
    buckets, left, right = (np.array(column, np.int64) for column in zip(*links, strict=True))
    full = FullRows(np.unique(keys)[::3], np.arange(len(np.unique(keys)[::3])) % 20)
    kernels = sketch_kernels("numpy" if backend == "numpy" else "numba")
    expected = kernels.first_links(keys, False, buckets, left, right, full)
    flat: NDArray[np.uint64] = keys.reshape(-1).view(np.uint64)
    offsets = np.arange(0, keys.size + 1, 9)
    assert kernels.first_ragged_links(flat, offsets, buckets, left, right, full).tolist() == expected.tolist()
    assert 0 < expected.sum() < len(expected)


def test_a_recipe_has_the_defaults_of_its_family() -> None:
    made = from_mapping({"sketch": {"family": "winnow"}})
    assert (made.shingle.k, made.match.passage, made.match.threshold, made.window) == (5, 20, 0.5, 16)
    assert (made.cluster.linkage, made.cluster.keep) == ("representative", "longest")
    assert made == override(Recipe(), ["sketch.family=winnow"])
    assert made == from_mapping(to_mapping(made)) == parse(to_toml(made))
    assert override(made, ["sketch.family=fast_similarity"]) == Recipe()
    kept = override(
        Recipe(), ["sketch.family=winnow", "match.threshold=0.8", "shingle.k=3", "cluster.keep=latest"]
    )
    assert (kept.match.threshold, kept.shingle.k, kept.cluster.keep, kept.window) == (0.8, 3, "latest", 18)
    assert (made.match.min_fingerprints, override(made, ["match.threshold=.7"]).match.min_fingerprints) == (
        64,
        24,
    )
    assert override(made, ["match.passage_words=20"]).match.min_fingerprints == 24
    given = override(made, ["match.min_fingerprints=9", "match.threshold=.7"])
    assert override(given, ["match.threshold=.5"]).match.min_fingerprints == 9
    profile = resolve(made)
    assert (profile.band_rows, profile.expected_recall, profile.unused_rows) == (67, 1.0, 0)
    assert [run for run, _ in profile.curve()] == list(range(5, 21))
    assert [chance for _, chance in profile.curve()] == sorted(chance for _, chance in profile.curve())
    assert (profile.curve()[-1], made.never_missed, Recipe().never_missed) == ((20.0, 1.0), 20, None)
    assert override(made, ["match.min_shared_bands=3"]).never_missed == 52
    assert override(made, ["match.threshold=.75"]).match.threshold == 0.75
    assert profile.fingerprint != resolve(override(made, ["match.passage=21"])).fingerprint


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["match.passage=4"], "match.passage is 4, shorter than a shingle of shingle.k = 5"),
        (["shingle.k=30"], "match.passage is 20, shorter than a shingle of shingle.k = 30"),
        (["bands.count=4", "bands.rows=1"], "leave bands and match.amplification out"),
        (["bands.recall=0.9"], "leave bands and match.amplification out"),
        (["match.amplification=or(4)"], "leave bands and match.amplification out"),
        (["sketch.k=64"], "sketch.k is 64, but winnow keeps as many values as a text requires"),
        (["cluster.linkage=connected"], "connects documents that have nothing in common"),
        (["sketch.family=minhash", "match.passage=20"], "match.passage belongs to the family winnow"),
        (
            ["sketch.family=minhash", "match.passage_words=20"],
            "match.passage_words belongs to the family winnow",
        ),
        (["match.passage_words=4"], "match.passage_words is 4, but with match.passage = 20"),
        (["match.passage_words=20", "match.passage=21"], "only runs of 21 equal words are never missed"),
        (
            ["match.passage_words=51", "match.min_shared_bands=3"],
            "only runs of 52 equal words are never missed",
        ),
        (["match.passage_words=20", "match.verify=estimate"], "set match.verify to exact"),
        (["match.passage_words=20", "match.certain_shared_bands=9"], "match.certain_shared_bands to 0"),
    ],
)
def test_impossible_recipes_are_refused(settings: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message.replace("(", r"\(")):
        override(override(Recipe(), ["sketch.family=winnow"]), settings)
