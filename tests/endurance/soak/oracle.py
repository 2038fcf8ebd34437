"""What an index has to be, computed from its documents in plain Python integers, without the package's own code."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations

from nearsim_db.similarity.recipe import Recipe
from tests.builders import plain_sketches
from tests.builders.plain_text import Rules, digit_runs, hash_of, shingles

Pair = tuple[int, int]
Features = frozenset[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """A document, with the text of its table if it is attached."""

    title: str | None
    body: str | None
    vector: tuple[float, ...] | None
    source: str | None
    date: datetime

    @property
    def fact(self) -> tuple[str | None, datetime, int]:
        """Source, date and length, which rank it in a cluster."""
        return self.source, self.date, len(self.title or "") + len(self.body or "")


@dataclass(frozen=True, slots=True)
class Score:
    """The exact similarity of two documents; sizes only for sets."""

    similarity: float
    sizes: tuple[int | None, int | None]
    reaches: bool


class Expected:
    """The signatures, bands and pairs of these documents under a recipe with this banding."""

    def __init__(self, recipe: Recipe, bands: int, rows: int, documents: Mapping[int, Row]) -> None:
        self.recipe, self.bands_per_document, self.rows_per_band = recipe, bands, rows
        self.documents = dict(sorted(documents.items()))
        self.features = {doc_id: features_of(recipe, row) for doc_id, row in self.documents.items()}
        first: dict[Features, int] = {}
        self.heads = {
            doc_id: first.setdefault(own, doc_id) if own else None for doc_id, own in self.features.items()
        }
        self.numbers = {doc_id: numbers_of(recipe, row) for doc_id, row in self.documents.items()}

    @cached_property
    def sketches(self) -> dict[int, tuple[int, ...]]:
        """The sketch of each document with features."""
        return {doc_id: sketch_of(self.recipe, own) for doc_id, own in self.features.items() if own}

    @cached_property
    def keys(self) -> dict[int, list[int]]:
        """The bucket hashes of each head."""
        return {
            doc_id: self._keys_of(self.sketches[doc_id])
            for doc_id, head in self.heads.items()
            if head == doc_id
        }

    @cached_property
    def bands(self) -> list[Pair]:
        """The band rows: bucket hash as a signed number, and document."""
        return sorted((_signed64(key), doc_id) for doc_id, own in self.keys.items() for key in own)

    @cached_property
    def true_pairs(self) -> dict[Pair, tuple[int, Score]]:
        """Every pair of heads that is a candidate if linked, and reaches the threshold: shared bands and score."""
        found = {}
        sharing = {pair for members in self._buckets.values() for pair in combinations(members, 2)}
        for pair in sorted(sharing):
            shared = self._shared(pair)
            if shared >= self.recipe.match.min_shared_bands:
                score = score_of(self.recipe, self.features[pair[0]], self.features[pair[1]])
                if score.reaches:
                    found[pair] = shared, score
        return found

    @cached_property
    def least_pairs(self) -> set[Pair]:
        """The pairs that a fresh build finds: those of which one is an anchor of a bucket that they share."""
        limit = self.recipe.match.bucket_limit
        linked = {
            (anchor, other)
            for members in self._buckets.values()
            for place, anchor in enumerate(members)
            for other in members[place + 1 :]
            if not limit or place < limit
        }
        return linked & self.true_pairs.keys()

    @property
    def is_whole(self) -> bool:
        """Whether no bucket is over the limit, so that a fresh build finds all pairs."""
        limit = self.recipe.match.bucket_limit
        return not limit or all(len(members) <= limit for members in self._buckets.values())

    @cached_property
    def _buckets(self) -> dict[int, list[int]]:
        buckets = defaultdict(list)
        for doc_id, own in self.keys.items():
            for key in own:
                buckets[key].append(doc_id)
        return buckets

    def _keys_of(self, sketch: tuple[int, ...]) -> list[int]:
        seed, rows = self.recipe.sketch.seed, self.rows_per_band
        if self.recipe.sketch.family == "bottom_k":
            return plain_sketches.bottom_k_keys(list(sketch), self.bands_per_document, seed)
        return [
            plain_sketches.band_key(
                list(sketch[rows * band : rows * (band + 1)]), band, self.recipe.bands.hash, seed
            )
            for band in range(self.bands_per_document)
        ]

    def _shared(self, pair: Pair) -> int:
        return len({*self.keys[pair[0]]} & {*self.keys[pair[1]]})


def features_of(recipe: Recipe, row: Row) -> Features:
    """The distinct features, with their weights (1 for sets)."""
    if recipe.sketch.input == "vector":
        return frozenset((place, number) for place, number in enumerate(row.vector or ()) if number)
    return _features_of_text(_rules(recipe), recipe.sketch.family in _SETS, _text(row))


_SETS = ("fast_similarity", "minhash", "bottom_k")


@lru_cache(maxsize=100_000)
def _features_of_text(rules: Rules, is_set: bool, text: str) -> Features:
    counted = Counter(hash_of(shingle, rules.base) for shingle in shingles(text, rules))
    return frozenset((one, 1.0 if is_set else float(count)) for one, count in counted.items())


def numbers_of(recipe: Recipe, row: Row) -> object:
    """The runs of digits of a text, as a value to compare."""
    if recipe.sketch.input == "vector":
        return None
    return frozenset(digit_runs(_text(row), _rules(recipe)).items())


def _rules(recipe: Recipe) -> Rules:
    return _cached_rules(recipe.shingle.scheme, recipe.shingle.k, recipe.hash.base)


@lru_cache
def _cached_rules(scheme: str, k: int, base: str) -> Rules:
    return _HashedRules(scheme, k, base=base)


class _HashedRules(Rules):
    """Rules as a key of a cache, by identity: there is one object for each content."""

    __hash__ = object.__hash__


def _text(row: Row) -> str:
    return "\n".join(part for part in (row.title, row.body) if part)


def sketch_of(recipe: Recipe, features: Features) -> tuple[int, ...]:
    """The sketch, from its definition."""
    options = recipe.sketch
    return _sketch(
        *(options.family, options.functions, options.vectors, options.width),
        *(options.k, options.seed, 64 if recipe.hash.base == "poly64" else 32, features),
    )


@lru_cache(maxsize=200_000)
def _sketch(
    family: str,
    functions: str | None,
    vectors: str | None,
    width: float | None,
    k: int,
    seed: int,
    id_bits: int,
    features: Features,
) -> tuple[int, ...]:
    weights = dict(sorted(features))
    ids = list(weights)
    match family:
        case "fast_similarity":
            found = plain_sketches.fast_similarity(ids, k, seed, id_bits)
        case "minhash" if functions == "java32":
            found = plain_sketches.minhash_java32(ids, k, seed, id_bits)
        case "minhash":
            found = plain_sketches.minhash_prime32(ids, k, seed, id_bits)
        case "bottom_k":
            found = plain_sketches.bottom_k(ids, k, seed, id_bits)
        case "dart_minhash":
            found = plain_sketches.dart_minhash(weights, k, seed)
        case "hyperplane":
            found = plain_sketches.hyperplane(weights, k, seed, vectors or "gaussian")
        case _:
            found = plain_sketches.projection(weights, k, seed, width or 1.0)
    return tuple(found)


def score_of(recipe: Recipe, left: Features, right: Features) -> Score:
    """The exact similarity of two documents, and whether it reaches the threshold."""
    one, other = dict(left), dict(right)
    threshold, family = recipe.match.threshold, recipe.sketch.family
    if family in _SETS:
        common, union = len(one.keys() & other.keys()), len(one.keys() | other.keys())
        return Score(common / union, (common, union), Fraction(common, union) >= Fraction(str(threshold)))
    weights = [(one.get(place, 0.0), other.get(place, 0.0)) for place in sorted({*one, *other})]
    if family == "dart_minhash":
        found = sum(map(min, weights)) / sum(map(max, weights))
    elif family == "hyperplane":
        found = sum(a * b for a, b in weights) / math.hypot(*one.values()) / math.hypot(*other.values())
    else:
        distance = math.sqrt(sum((a - b) ** 2 for a, b in weights))
        return Score(1 / (1 + distance), (None, None), round(distance, 12) <= threshold)
    return Score(found, (None, None), round(found, 12) >= threshold)


def _signed64(word: int) -> int:
    return (word + 2**63) % 2**64 - 2**63
