"""From texts to what the store keeps of them: counts, digests and sketches; and to features, for verification."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nearsim_db.backend import resolve as resolve_backend
from nearsim_db.profile import Profile, make_family
from nearsim_db.text import Shingler
from nearsim_db.text.clean import clean

_CHUNK_CHARACTERS = (
    1 << 16
)  # so that the ids of a chunk stay in the cache of one core; twice that is a third slower


@dataclass(frozen=True, slots=True)
class Features:
    """Distinct shingle ids of a batch, sorted: document i has `ids[offsets[i]:offsets[i + 1]]`.

    `ids` is uint64, `offsets` int64 of n + 1, `numbers` uint64 of n.
    """

    ids: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    numbers: NDArray[np.uint64]

    def of(self, index: int) -> NDArray[np.uint64]:
        """The features of one document."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch as the store keeps it. Of n: counts int32, digests void of 16 bytes, numbers uint64; sketches (n, k).

    A document whose count is 0 has no features: its digest and sketch mean nothing.
    """

    counts: NDArray[np.int32]
    digests: NDArray[np.void]
    sketches: NDArray[np.generic]
    numbers: NDArray[np.uint64]


class Encoder:
    """Encodes texts under one profile. It keeps no scratch between calls, so threads may share it."""

    def __init__(self, profile: Profile, backend: str | None = None) -> None:
        self.profile = profile
        self.backend = resolve_backend(backend)
        self.family = make_family(profile.recipe, self.backend)
        self._shingler = Shingler(profile.recipe, self.backend)
        self._banding = (profile.bands, profile.rows, profile.recipe.bands.hash, profile.recipe.sketch.seed)
        self._digest_key = bytes.fromhex(profile.fingerprint)

    def text_of(self, title: str | None, body: str | None) -> str:
        """The recipe's fields joined by a newline, missing and empty ones left out."""
        fields = {"title": title, "body": body}
        return clean("\n".join(value for name in self.profile.recipe.fields if (value := fields[name])))[0]

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Counts, digests and sketches of a batch."""
        parts = [self._encode_chunk(chunk) for chunk in _chunks(texts)]
        if not parts:
            return self._encode_chunk([])
        return Encoded(
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.digests for part in parts]),
            np.concatenate([part.sketches for part in parts]),
            np.concatenate([part.numbers for part in parts]),
        )

    def features(self, texts: Sequence[str]) -> Features:
        """The sorted distinct features of a batch."""
        shingles = self._shingler.shingles(texts)
        ids, offsets = _distinct(shingles.ids, shingles.offsets)
        return Features(ids, offsets, shingles.numbers)

    def band_keys(self, sketches: NDArray[np.generic]) -> NDArray[np.uint64]:
        """The bucket hashes of sketches: (n, bands) uint64."""
        return self.family.band_keys(sketches, *self._banding)

    def shared_bands(self, left: NDArray[np.generic], right: NDArray[np.generic]) -> NDArray[np.int64]:
        """How many bands two sketches share, row by row: (m, k) and (m, k) to int64 of m."""
        return self.family.count_shared_bands(left, right, *self._banding)

    def sign(self, texts: Sequence[str]) -> NDArray[np.uint64]:
        """Text in, bucket hashes out: (n, bands) uint64, nothing else computed. For measuring, and for queries."""
        keys = []
        for chunk in _chunks(texts):
            shingles = self._shingler.shingles(chunk)
            keys.append(self.band_keys(self.family.sketch(shingles.ids, shingles.offsets)))
        return np.concatenate(keys) if keys else np.zeros((0, self.profile.bands), np.uint64)

    def digest(self, ids: NDArray[np.uint64]) -> bytes:
        """128 bits that stand for one set of sorted distinct features under this profile."""
        return hashlib.blake2b(ids.data, digest_size=16, key=self._digest_key).digest()

    def _encode_chunk(self, texts: Sequence[str]) -> Encoded:
        features = self.features(texts)
        counts = np.diff(features.offsets).astype(np.int32)
        digests = b"".join(self.digest(features.of(i)) for i in range(len(texts)))
        return Encoded(
            counts,
            np.frombuffer(digests, "V16"),
            self.family.sketch(features.ids, features.offsets),
            features.numbers,
        )


def _chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    begin, size = 0, 0
    for end, one in enumerate(texts):
        if size and size + len(one) > _CHUNK_CHARACTERS:
            yield texts[begin:end]
            begin, size = end, 0
        size += len(one)
    if begin < len(texts):
        yield texts[begin:]


def _distinct(
    ids: NDArray[np.uint64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    ids = ids.copy()
    bounds = offsets.tolist()
    for begin, end in pairwise(bounds):
        ids[begin:end].sort()
    first = np.ones(len(ids), bool)
    first[1:] = ids[1:] != ids[:-1]
    first[offsets[:-1][np.diff(offsets) > 0]] = True
    kept = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(first, out=kept[1:])
    return ids[first], kept[offsets]
