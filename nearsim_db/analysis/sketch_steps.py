"""Sketch steps: each step from a text to its buckets, for display.

The steps are the normalised text, shingles, hashes, the signature and the band keys.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nearsim_db.analysis.pair_scores import PairScore, PairScorer, score_pairs
from nearsim_db.similarity.arrays import Keys, Ragged, Sketches
from nearsim_db.similarity.encoder import Content, Encoder, Features
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.sketch.bands import HASH_MASK
from nearsim_db.similarity.sketch.minhash import MinHash
from nearsim_db.similarity.sketch.winnow import fingerprints

# Base hashes whose 32-bit values are shown with a sign, as the systems that use them do.
_SIGNED_HASHES = ("djb2a-signed", "djb2a-cast")
# The top byte of a bucket hash is the band.
_BAND_SHIFT = 56


@dataclass(frozen=True, slots=True)
class CountedShingle:
    """A distinct shingle of a text, or a dimension of a vector."""

    shingle: str  # for a vector the dimension, such as 'dimension 7'
    hash: int
    count: int  # how often the shingle occurs in the text
    weight: float | None  # None unless the metric has weights


@dataclass(frozen=True, slots=True)
class BandKey:
    """The key of one band of a text, which is the text's bucket in that band."""

    band: int  # from 0
    hash: int  # of the rows of the band
    bucket_hash: int  # with the band in its top byte, as in the database


@dataclass(frozen=True, slots=True)
class SketchedText:
    """The results of all steps for a text or a vector."""

    normalised: str | None  # None for a vector
    shingles: tuple[CountedShingle, ...]  # in the order of the text
    signature: tuple[int, ...]  # empty if the text has no features
    bands: tuple[BandKey, ...]  # empty if the text has no features


@dataclass(frozen=True, slots=True)
class SketchedPair:
    """What two texts have in common, and their similarity."""

    common: tuple[str, ...]  # shingles
    # Places of the signatures, from 0; empty if the family does not compare places
    equal_places: tuple[int, ...]
    shared_buckets: tuple[int, ...]  # bucket hashes
    score: PairScore


@dataclass(frozen=True, slots=True)
class LinearFunction:
    """A hash function h(x) = a x + b, in the arithmetic of the recipe."""

    a: int
    b: int


@dataclass(frozen=True, slots=True)
class SketchSteps:
    """The steps of one or two texts under a recipe."""

    base: str  # name of the function that hashes a shingle
    family: str
    k: int  # size of the sketch
    functions: tuple[LinearFunction, ...]  # for minhash, one for each place of the signature; else empty
    band_count: int
    rows: int  # places of the signature in each band
    positional: bool  # whether signatures are compared place by place
    band_hash: str
    documents: tuple[SketchedText, ...]
    pair: SketchedPair | None  # None for a single text


def encoder_of(recipe: Recipe, texts: Sequence[str]) -> Encoder:
    """Return the encoder of a recipe. Document frequencies, if the recipe needs them, are counted in `texts`.

    The texts must have been cleaned.
    """
    return PairScorer(recipe, lambda: [[(text, text) for text in texts]], None).encoder


def sketch_steps(encoder: Encoder, contents: Sequence[Content]) -> SketchSteps:
    """Return the steps of one or two cleaned texts or vectors."""
    recipe, profile = encoder.profile.recipe, encoder.profile
    features = encoder.features(contents)
    sketches = encoder.sketch(features)
    keys = encoder.band_keys(sketches)

    documents = tuple(
        SketchedText(
            encoder.normalised(content) if isinstance(content, str) else None,
            tuple(_shingles(encoder, content, features, row)),
            _signature(encoder, sketches, row) if len(features.ids_of(row)) else (),
            tuple(_bands(keys, row)) if len(features.ids_of(row)) else (),
        )
        for row, content in enumerate(contents)
    )

    return SketchSteps(
        base=recipe.hash.base,
        family=recipe.sketch.family,
        k=encoder.family.k,
        functions=tuple(
            LinearFunction(a, b)
            for a, b in (encoder.family.coefficients if isinstance(encoder.family, MinHash) else ())
        ),
        band_count=profile.bands,
        rows=profile.rows,
        positional=_is_positional(encoder),
        band_hash=recipe.bands.hash,
        documents=documents,
        pair=_pair(encoder, contents, documents) if len(contents) == 2 else None,
    )


def _shingles(encoder: Encoder, content: Content, features: Features, row: int) -> Iterator[CountedShingle]:
    """Yield the distinct shingles that are features, in the order of the text."""
    begin, end = features.offsets[row], features.offsets[row + 1]
    ids = features.ids[begin:end].tolist()
    weights = [None] * len(ids) if features.weights is None else features.weights[begin:end].tolist()
    weight_of = dict(zip(ids, weights, strict=True))
    if isinstance(content, str):
        written = encoder.written_features(content)
    else:
        written = [(f"dimension {dimension}", dimension) for dimension in ids]

    counts = Counter(number for _, number in written)
    is_signed = encoder.profile.recipe.hash.base in _SIGNED_HASHES
    for number, shingle in {number: shingle for shingle, number in written}.items():
        if number in weight_of:
            shown = number - 2**32 if is_signed and 2**31 <= number < 2**32 else number
            yield CountedShingle(shingle, shown, counts[number], weight_of[number])


def _is_positional(encoder: Encoder) -> bool:
    return encoder.family.positional and not encoder.family.ordered


def _signature(encoder: Encoder, sketches: Sketches, row: int) -> tuple[int, ...]:
    if encoder.family.ordered:
        return tuple(fingerprints(sketches[row : row + 1]).values.tolist())
    values = map(int, sketches[row].tolist())
    # Sketches whose places are not compared are padded with their last value: show each value once.
    return tuple(values if encoder.family.positional else dict.fromkeys(values))


def _bands(keys: Keys, row: int) -> Iterator[BandKey]:
    row_keys = (
        keys.values[keys.offsets[row] : keys.offsets[row + 1]] if isinstance(keys, Ragged) else keys[row]
    )
    for key in dict.fromkeys(row_keys.tolist()):
        # The database stores the key as bigint, which is signed.
        yield BandKey(key >> _BAND_SHIFT, key & int(HASH_MASK), key - 2**64 if key >= 2**63 else key)


def _pair(encoder: Encoder, contents: Sequence[Content], documents: Sequence[SketchedText]) -> SketchedPair:
    left, right = documents
    right_hashes = {shingle.hash for shingle in right.shingles}
    buckets = {key.bucket_hash for key in right.bands}
    both = zip(left.signature, right.signature, strict=False)
    (score,) = score_pairs(encoder, contents)

    return SketchedPair(
        tuple(shingle.shingle for shingle in left.shingles if shingle.hash in right_hashes),
        tuple(place for place, (left, right) in enumerate(both) if left == right and _is_positional(encoder)),
        tuple(key.bucket_hash for key in left.bands if key.bucket_hash in buckets),
        score,
    )
