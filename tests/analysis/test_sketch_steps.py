"""The steps from a text to its buckets: the figures of the published systems, and laws for all presets."""

import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from nearsim_db.analysis.sketch_steps import SketchSteps, encoder_of, sketch_steps
from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import override

NEUTRON_STARS = "Astronomers Strike Gravitational Gold In Colliding Neutron Stars"
FRONTIER = "New frontier for science as astronomers witness neutron stars colliding"
STORY = "The harbour lamp was lit at dusk, by 2 people of the town. Café <b>Öre</b> opened; nobody saw 🎈 it."


def steps(preset: str, texts: Sequence[str], *settings: str) -> SketchSteps:
    """The steps of one or two texts under a preset with some keys set."""
    return sketch_steps(encoder_of(override(presets.load(preset), settings), texts), texts)


def test_newshounds_words_have_their_crc32() -> None:
    (document,) = steps("newshound", [NEUTRON_STARS]).documents
    assert [(each.shingle, each.hash) for each in document.shingles] == [
        ("astronomers", 2746117606),
        ("strike", 231155648),
        ("gravitational", 921500173),
        ("gold", 1202265425),
        ("colliding", 4140090749),
        ("neutron", 3567888722),
        ("stars", 18726956),
    ]


def test_the_least_value_of_newshounds_function_is_exact() -> None:
    one = ("sketch.k=1", "bands.count=1", "bands.rows=1", "match.certain_shared_bands=0")
    found = steps("newshound", [NEUTRON_STARS], "sketch.coefficients=[[1319152729, 9549623503]]", *one)
    assert found.documents[0].signature == (402953603,)


def test_newshounds_headlines_share_4_of_11_words() -> None:
    pair = steps("newshound", [NEUTRON_STARS, FRONTIER]).pair
    assert pair is not None
    assert pair.common == ("astronomers", "colliding", "neutron", "stars")
    assert (pair.score.intersection, pair.score.union, pair.score.similarity) == (4, 11, 4 / 11)
    assert len(pair.shared_buckets) == pair.score.shared_bands == 3
    assert pair.score.estimate == round(len(pair.equal_places) / 120, 6)


def test_riskiqs_values_of_its_shingle() -> None:
    found = steps("riskiq", ["he"], "shingle.k=2", "sketch.k=10")
    (document,) = found.documents
    assert [(each.shingle, each.hash) for each in document.shingles] == [("he", 5861128)]
    assert (found.functions[0].a, found.functions[0].b) == (-1460590454, 747279288)
    assert document.signature[:5] == (480357896, 1614176836, 543325601, -1459947919, 197787375)
    assert (found.band_count, found.rows) == (3, 3)
    assert [(key.band, key.hash) for key in document.bands] == [
        (0, 155039969),
        (1, 50441694),
        (2, 3712986847),
    ]


@pytest.mark.parametrize(
    ("preset", "text", "settings", "shingles"),
    [
        ("background", "abcdabd", ["shingle.k=2"], ["ab", "bc", "cd", "da", "bd"]),
        ("background", "abcab", ["shingle.k=2"], ["ab", "bc", "ca"]),
        (
            "background-words",
            "it is trivial to show",
            [],
            ["it is trivial", "is trivial to", "trivial to show"],
        ),
    ],
)
def test_shingles_of_the_examples_of_text_books(
    preset: str, text: str, settings: list[str], shingles: list[str]
) -> None:
    (document,) = steps(preset, [text], *settings).documents
    assert [each.shingle for each in document.shingles] == shingles


def test_sentences_are_shingles_with_their_crc32() -> None:
    (document,) = steps("realtime", ["The lamps were lit. Nobody was there."]).documents
    assert [each.shingle for each in document.shingles] == ["the lamp were lit", "nobodi was there"]
    assert [each.hash for each in document.shingles] == [
        zlib.crc32(each.shingle.encode()) for each in document.shingles
    ]


@pytest.mark.parametrize("name", sorted(set(presets.names()) - {"embeddings"}))
@pytest.mark.parametrize("text", [STORY, "lamp", "", "ab ab ab ab ab ab ab"])
def test_equal_shingles_have_equal_ids_under_every_preset(name: str, text: str) -> None:
    written = Encoder(resolve(presets.load(name)), "numpy").written_features(text)
    assert len(set(written)) == len(dict(written)) == len({number for _, number in written})


def test_shingles_of_utf16_units_are_as_many_as_their_ids() -> None:
    recipe = override(presets.load("riskiq"), ["hash.base=djb2a-cast"])
    assert len(Encoder(resolve(recipe), "numpy").written_features("a🎈bcdefg")) == 5


def test_a_text_without_features_has_no_buckets() -> None:
    found = steps("default", ["...", "the lamp was lit"])
    assert (found.documents[0].shingles, found.documents[0].signature, found.documents[0].bands) == (
        (),
        (),
        (),
    )
    assert found.pair is not None and found.pair.score.similarity is None


def test_a_vector_has_dimensions() -> None:
    encoder = Encoder(resolve(presets.load("embeddings")), "numpy")
    found = sketch_steps(encoder, [np.array([0.0, 1.0, 0.5]), np.array([0.0, 1.0, 0.5])])
    assert [(each.shingle, each.weight) for each in found.documents[0].shingles] == [
        ("dimension 1", 1.0),
        ("dimension 2", 0.5),
    ]
    assert found.pair is not None and found.pair.score.similarity == 1.0
