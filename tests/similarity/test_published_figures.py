"""Published figures for sketches, bands and curves, where they are correct."""

import zlib
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import presets
from nearsim_db.similarity.amplification import parse
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.lsh import match_probability
from nearsim_db.similarity.metrics import METRICS
from nearsim_db.similarity.profile import resolve, restore
from nearsim_db.similarity.recipe import override, to_mapping
from nearsim_db.similarity.sketch import Banding, MinHash, band_keys, make_family
from nearsim_db.similarity.sketch.bands import exclusive_or
from nearsim_db.similarity.sketch.minhash import next_ints
from tests.builders import plain_text
from tests.builders.selection import every_backend

NEUTRON_STARS = ["astronomers", "strike", "gravitational", "gold", "colliding", "neutron", "stars"]
FRONTIER = ["new", "frontier", "science", "astronomers", "witness", "neutron", "stars", "colliding"]


def crc32(strings: list[str]) -> NDArray[np.uint64]:
    return np.array([zlib.crc32(one.encode()) for one in strings], np.uint64)


def each_alone(ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.arange(len(ids) + 1, dtype=np.int64)


def all_together(ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.array([0, len(ids)], np.int64)


# --- Newshound, Clustering at Scale


@every_backend
def test_newshounds_hash_function_is_exact(backend: str) -> None:
    ids = crc32(NEUTRON_STARS)
    family = MinHash(id_bits=32, backend=backend, coefficients=[(1319152729, 9549623503)])
    values = family.sketch(ids, each_alone(ids))[:, 0].tolist()
    assert values == [609633111, 3937114268, 3400217643, 2032910552, 1267324443, 561063020, 402953603]
    assert family.sketch(ids, all_together(ids)).tolist() == [[402953603]]


def jaccard_counts(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> tuple[int, int]:
    """The sizes of the intersection and the union that the metric finds."""
    scores = METRICS["jaccard"].compare([left, right], np.zeros(1, np.int64), np.ones(1, np.int64), "numpy")
    assert scores.intersection is not None and scores.union is not None
    return int(scores.intersection[0]), int(scores.union[0])


HEADLINES = {
    "Astronomers Strike Gravitational Gold In Colliding Neutron Stars": NEUTRON_STARS,
    "New frontier for science as astronomers witness neutron stars colliding": FRONTIER,
    "Iraq says captures positions south of Kirkuk including airbase": (
        ["iraq", "says", "captures", "positions", "south", "kirkuk", "including", "airbase"]
    ),
    "Several reportedly injured in shooting at UPS facility in San Francisco": (
        ["several", "reportedly", "injured", "shooting", "ups", "facility", "san", "francisco"]
    ),
    "Multiple people injured after shooting in Alexandria": (
        ["multiple", "people", "injured", "shooting", "alexandria"]
    ),
}


@every_backend
@pytest.mark.parametrize("preset", ["newshound", "newshound-60x4", "newshound-80x3"])
def test_newshounds_five_bags_of_words(preset: str, backend: str) -> None:
    features = Encoder(resolve(presets.load(preset)), backend).features([*HEADLINES])
    bags = [features.of(at) for at in range(len(HEADLINES))]
    assert [bag.tolist() for bag in bags] == [sorted(crc32(words).tolist()) for words in HEADLINES.values()]
    scores = [jaccard_counts(bags[left], bags[right]) for left, right in ((0, 1), (0, 2), (1, 2), (3, 4))]
    assert scores == [(4, 11), (0, 15), (0, 16), (2, 11)]


@pytest.mark.parametrize("preset", ["newshound", "headlines", "cs246-cosine", "cs246-euclidean"])
def test_news_and_numbers_are_not_stop_words(preset: str) -> None:
    texts = ["One billion", "Two billion", "New Microsoft", "Microsoft says", "Says Microsoft"]
    features = Encoder(resolve(presets.load(preset))).features(texts)
    one, two, new, says, turned = (
        set(features.ids[at:end].tolist()) for at, end in pairwise(features.offsets)
    )
    assert (len(one & two), len(one | two)) == (len(new & says), len(new | says)) == (1, 3)
    assert says == turned and len(says) == 2


def test_newshounds_xor_is_exact_above_32_bits() -> None:
    rows = [2**32 + 14, 2**32 - 1, 2**32, 0]
    keys = exclusive_or(np.array(rows, np.uint64).reshape(1, 4, 1), 2**32 - 1, 2**32 + 14)
    assert keys.tolist() == [[((2**32 - 1) * row + 2**32 + 14) % 4294967311 for row in rows]]


# --- RiskIQ, MinHashing and LSH, part 2

JAVA_COEFFICIENTS = [
    *(
        (-1460590454, 747279288),
        (-1334692577, -539670452),
        (-501340078, -143413999),
        (-435906689, -805361287),
    ),
    *((749770455, -1541468361), (-249298484, -338966450), (635996137, 90530340), (1369061647, -58898435)),
    *((-803104915, 442009989), (-1559981388, -486785452)),
]
JAVA_VALUES = [
    *(480357896, 1614176836, 543325601, -1459947919, 197787375),
    *(-1314960722, 1201186924, 1044615541, -789411859, -145694732),
]


def test_javas_random_number_generator() -> None:
    drawn = next_ints(1337, 20).tolist()
    assert list(zip(drawn[::2], drawn[1::2], strict=True)) == JAVA_COEFFICIENTS


@every_backend
def test_riskiqs_hash_collection(backend: str) -> None:
    shingle = np.array([5861128], np.uint64)
    family = make_family("minhash", 10, 1337, 32, {"functions": "java32"}, backend)
    assert family.sketch(shingle, each_alone(shingle)).tolist() == [JAVA_VALUES]
    explicit = MinHash(id_bits=32, functions="java32", backend=backend, coefficients=JAVA_COEFFICIENTS)
    assert explicit.sketch(shingle, each_alone(shingle)).tolist() == [JAVA_VALUES]


def test_riskiqs_buckets_are_djb2a_of_the_joined_rows() -> None:
    keys = band_keys(np.array([JAVA_VALUES], np.int32), Banding(3, 3, "djb2a-joined"))
    joined = [".".join(map(str, JAVA_VALUES[at : at + 3])) for at in (0, 3, 6)]
    assert joined[1] == "-1459947919.197787375.-1314960722"
    expected = [plain_text.djb2a(one.encode()) for one in joined]
    assert keys.tolist() == [[band << 56 | value for band, value in enumerate(expected)]]


# --- Stanford CS246, Theory of LSH

# At 0.2, 0.3 ... 0.9, and at 0.1, 0.2 ... 0.8.
AND_OR = [0.0064, 0.0320, 0.0985, 0.2275, 0.4260, 0.6666, 0.8785, 0.9860]
OR_AND = [0.0140, 0.1215, 0.3334, 0.5740, 0.7725, 0.9015, 0.9680, 0.9936]


def test_four_way_constructions() -> None:
    for place, (first, second) in enumerate(zip(AND_OR, OR_AND, strict=True), 1):
        assert parse("or(4, and(4))").probability((place + 1) / 10) == pytest.approx(first, abs=5e-5)
        assert match_probability((place + 1) / 10, 4, 4) == pytest.approx(first, abs=5e-5)
        assert parse("and(4, or(4))").probability(place / 10) == pytest.approx(second, abs=5e-5)


def test_the_cascade_of_256_functions() -> None:
    cascade = parse("or(4, and(4, and(4, or(4))))")
    assert cascade.functions == 256
    assert cascade.probability(0.8) == pytest.approx(0.99999959, abs=5e-9)
    assert cascade.probability(0.2) == pytest.approx(0.00087148, abs=5e-9)


# --- Detecting documents near duplications in realtime

STORY = (
    "The markets rallied on Friday. Traders were buying shares in banks, after the central bank lowered its rate! "
    "The markets rallied on Friday. Analysts said: it is too early to tell?"
)
SENTENCES = [
    "the market ralli friday",
    "trader were buy share bank after the central bank lower it rate",
    "analyst said too earli tell",
]


@every_backend
def test_a_sketch_is_the_sorted_crc32_of_stemmed_sentences(backend: str) -> None:
    encoder = Encoder(resolve(presets.load("realtime")), backend)
    encoded = encoder.encode([STORY])
    kept = [" ".join(word for word in one.split()) for one in SENTENCES]
    expected = np.sort(crc32(kept)).tolist()
    assert encoded.counts.tolist() == [3]
    assert encoded.sketches[0, :3].tolist() == expected
    assert set(encoded.sketches[0, 3:].tolist()) == {expected[-1]}


def test_own_coefficients_replace_those_of_the_seed() -> None:
    """The article's functions a x + b modulo 4294967311, on the CRC-32 of its words."""
    pairs = [(3, 5), (2_654_435_761, 40_503), (7, 4_294_967_310)]
    settings = [f"sketch.coefficients={[list(pair) for pair in pairs]}", "sketch.k=3", "bands.count=1"]
    profile = resolve(override(presets.load("newshound"), settings))
    (sketch,) = Encoder(profile).encode([" ".join(NEUTRON_STARS)]).sketches.tolist()
    hashes = crc32(NEUTRON_STARS).tolist()
    assert sketch == [min((a * x + b) % 4_294_967_311 for x in hashes) for a, b in pairs]
    assert restore(to_mapping(profile.recipe), profile.fingerprint, 1, 3) == profile
    with pytest.raises(RecipeError, match=r"sketch\.coefficients"):
        override(presets.load("newshound"), settings[:1])


def test_the_end_of_a_field_ends_a_sentence() -> None:
    encoder = Encoder(resolve(presets.load("realtime")))
    body = "The storm closed the ferry. Nobody was hurt."
    one, other = (encoder.text_of(title, body) for title in ("Storm in north", "Ferry stops again"))
    features = encoder.features([one, other])
    assert len(features.of(0)) == len(features.of(1)) == 3
    assert len(np.intersect1d(features.of(0), features.of(1))) == 2
