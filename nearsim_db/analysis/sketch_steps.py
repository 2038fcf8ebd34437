"""The steps from a text to its buckets, to look at: normalised text, shingles, hashes, signature, band keys."""

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

# Base hashes whose values their systems print with a sign.
_SIGNED_HASHES = ("djb2a-signed", "djb2a-cast")
# The top byte of a bucket hash is the band.
_BAND_SHIFT = 56


@dataclass(frozen=True, slots=True)
class CountedShingle:
    """A distinct shingle of a text, or a dimension of a vector, as 'dimension 7'."""

    shingle: str
    hash: int
    count: int  # of its places in the text
    weight: float | None  # None unless the metric has weights


@dataclass(frozen=True, slots=True)
class BandKey:
    """A bucket of a text."""

    band: int
    hash: int  # of the rows of the band
    bucket_hash: int  # with the band in its top byte, as in the database


@dataclass(frozen=True, slots=True)
class SketchedText:
    """What a text, or a vector, becomes. Without features it has no signature and no band keys."""

    normalised: str | None  # None for a vector
    shingles: tuple[CountedShingle, ...]  # in the order of the text
    signature: tuple[int, ...]
    bands: tuple[BandKey, ...]


@dataclass(frozen=True, slots=True)
class SketchedPair:
    """What two texts share: shingles, places of their signatures, bands; and what follows from it."""

    common: tuple[str, ...]
    equal_places: tuple[int, ...]  # of the signatures, from 0; none if places are not compared
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

    base: str  # the hash of a shingle
    family: str
    k: int
    functions: tuple[LinearFunction, ...]  # of minhash, one a place of the signature
    band_count: int
    rows: int  # places of a band
    positional: bool  # whether signatures are compared place by place
    band_hash: str
    documents: tuple[SketchedText, ...]
    pair: SketchedPair | None  # of two


def encoder_of(recipe: Recipe, texts: Sequence[str]) -> Encoder:
    """Return the encoder of a recipe, with weights by frequency in these cleaned texts if the recipe has any."""
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
    """Yield the distinct shingles of a content that are features, in the order of the text."""
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
    # Short sketches of single values are filled with the last one.
    return tuple(values if encoder.family.positional else dict.fromkeys(values))


def _bands(keys: Keys, row: int) -> Iterator[BandKey]:
    own = keys.values[keys.offsets[row] : keys.offsets[row + 1]] if isinstance(keys, Ragged) else keys[row]
    for key in dict.fromkeys(own.tolist()):
        # A bigint is signed.
        yield BandKey(key >> _BAND_SHIFT, key & int(HASH_MASK), key - 2**64 if key >= 2**63 else key)


def _pair(encoder: Encoder, contents: Sequence[Content], documents: Sequence[SketchedText]) -> SketchedPair:
    left, right = documents
    others = {shingle.hash for shingle in right.shingles}
    buckets = {key.bucket_hash for key in right.bands}
    both = zip(left.signature, right.signature, strict=False)
    (score,) = score_pairs(encoder, contents)

    return SketchedPair(
        tuple(shingle.shingle for shingle in left.shingles if shingle.hash in others),
        tuple(place for place, (left, right) in enumerate(both) if left == right and _is_positional(encoder)),
        tuple(key.bucket_hash for key in left.bands if key.bucket_hash in buckets),
        score,
    )
