"""The records of files, encoded: sketches and features in temporary files, a few numbers of each in memory."""

import mmap
import os
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Self, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.ranks import Ranks
from nearsim_db.errors import InputError
from nearsim_db.readers.output import full_disk
from nearsim_db.records import Document
from nearsim_db.similarity.arrays import Hashes, Ints, Sketches, offsets_of
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.common_shingles import SAMPLE_SIZE, CommonShingles
from nearsim_db.similarity.encoder import Content, Encoded, Encoder
from nearsim_db.similarity.k_rule import HeadSample
from nearsim_db.similarity.metrics import FEATURE
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, keep_policy
from nearsim_db.similarity.recipe.sections import Shingle
from nearsim_db.similarity.recipe_warnings import TextSample
from nearsim_db.similarity.text import Shingler
from nearsim_db.store.settings import encoding_from_environment


class WholeTexts(Encoder):
    """Encodes documents so that those are twins whose texts are equal after normalisation, and there are no pairs.

    Raises InputError for a profile that compares vectors.
    """

    has_sketches = False

    def __init__(self, profile: Profile, backend: str | None = None, plain_characters: int = 0) -> None:
        super().__init__(profile, backend, plain_characters)
        if self.takes_vectors:
            raise InputError("--exact compares texts, but the recipe compares vectors (sketch.input)")
        by_characters = msgspec.structs.replace(profile.recipe, shingle=Shingle(scheme="char"))
        self._normaliser = Shingler(by_characters, self.backend)

    def _encode_chunk(self, contents: Sequence[Content], keep_features: bool) -> Encoded:
        texts = self._normaliser.canonical(cast(Sequence[str], contents))
        data, bounds = texts.data.data, list(pairwise(texts.offsets.tolist()))
        digests = b"".join([self._digest(data[begin:end]) for begin, end in bounds])
        return Encoded(
            (np.diff(texts.offsets) > 0).astype(np.int32),
            np.frombuffer(digests, "V16"),
            np.zeros((len(bounds), 0), self.family.dtype),
            np.zeros(len(bounds), np.uint64),
            tuple(np.zeros(0, np.uint64) for _ in bounds) if keep_features else (),
        )


class _Values:
    """Values in a temporary file, written one after the other, then read by ranges.

    A large file is read by calls: were it mapped, systems would load some 64 KB around each value that is used.
    """

    def __init__(self, file: BinaryIO, dtype: np.dtype[Any]) -> None:
        self._file, self._dtype = file, dtype
        self._mapped: NDArray[Any] | None = None

    def write(self, values: NDArray[Any]) -> None:
        self._file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

    def finish(self) -> None:
        self._file.flush()
        if 0 < os.fstat(self._file.fileno()).st_size <= _MOST_MAPPED:
            self._mapped = np.frombuffer(
                mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self._dtype
            )

    def read(self, begins: Ints, ends: Ints) -> NDArray[Any]:
        """Return ranges one after the other; those that are adjacent are read at once."""
        apart, count = begins[1:] != ends[:-1], len(begins)
        firsts, lasts = begins[np.append(True, apart)[:count]], ends[np.append(apart, True)[:count]]
        if self._mapped is not None:
            parts = map(slice, firsts.tolist(), lasts.tolist())
            return np.concatenate([self._mapped[:0], *(self._mapped[part] for part in parts)])
        size, descriptor = self._dtype.itemsize, self._file.fileno()
        places = zip(((lasts - firsts) * size).tolist(), (firsts * size).tolist(), strict=True)
        return np.frombuffer(b"".join([os.pread(descriptor, *place) for place in places]), self._dtype)


_BATCH_DOCUMENTS = 500
_BATCH_CHARACTERS = 2_000_000
_SAMPLED = 20  # documents, of which one is in the sample of texts
_MOST_MAPPED = 1 << 28  # bytes of a file


class EncodedRecords:
    """Documents numbered from 0, each with its digest, sketch and features, and what the keep policy ranks it by.

    Batches are encoded in the threads of `pool` while the next ones are read. Use it in a `with` block; after `finish`
    the arrays are complete: `counts` of features, `digests` void of 16 bytes, `numbers` uint64.
    """

    def __init__(self, encoder: Encoder, threads: int) -> None:
        self.encoder = encoder
        self.pool: ThreadPoolExecutor = ThreadPoolExecutor(threads, thread_name_prefix="nearsim")
        self._most_waiting = 2 * threads
        self._temporary = ExitStack()
        self._sketches, self._features = self._create_values()
        self._waiting: deque[tuple[int, list[Content], Future[Encoded]]] = deque()
        self._begun: list[Content] = []
        self._characters = 0
        self._counts, self._digests, self._numbers = array("i"), bytearray(), array("Q")
        self._sizes = array("q")  # of features
        self._uneven_parts: list[NDArray[Any]] = []  # sketches of different sizes, which are kept in memory
        self.keep: str = encoder.profile.recipe.cluster.keep
        self.ranks: Ranks = Ranks(*keep_policy(self.keep))
        self._retained = encoder.profile.recipe.retain.seconds
        self.texts: TextSample = TextSample()
        self.heads: HeadSample = HeadSample()

    @classmethod
    def under(cls, recipe: Recipe, threads: int | None, *, exact: bool, plain_characters: int = 0) -> Self:
        """Return records to be encoded under a recipe, with `exact` by their whole texts; by default on all cores.

        `plain_characters` are encoded before compiled code is loaded, unless a back end is chosen.
        """
        backend, available = encoding_from_environment()
        kind = WholeTexts if exact else Encoder
        return cls(kind(resolve(recipe), backend, 0 if backend else plain_characters), threads or available)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown()
        with full_disk():  # closing writes what is in the buffers of the files
            self._temporary.close()

    def __len__(self) -> int:
        return len(self.ranks)

    def open_temporary(self) -> BinaryIO:
        """Return a temporary file that is closed with the records."""
        return self._temporary.enter_context(TemporaryFile(prefix="nearsim-"))

    def _create_values(self) -> tuple[_Values, _Values]:
        """Return empty ones for sketches and features."""
        dtypes = self.encoder.family.dtype, FEATURE if self.encoder.metric.weighted else np.dtype(np.uint64)
        return _Values(self.open_temporary(), dtypes[0]), _Values(self.open_temporary(), dtypes[1])

    def add(self, document: Document, value: object = None) -> None:
        """Add a document; waits while too many are in memory. Raises NearsimError if the disk is full.

        `value` is that of the column that the keep policy ranks by.
        """
        number = len(self)
        self.ranks.add(document, value)
        content: Content = None
        if not self.ranks.is_older(number, self._retained):
            content = self.encoder.content_of(document.title, document.body, document.vector)
            if number % _SAMPLED == 0:
                self.texts.add([document.body or document.title or ""])
        elif not self.encoder.takes_vectors:
            content = ""
        self._begun.append(content)
        self._characters += 0 if content is None else len(content)
        if len(self._begun) >= _BATCH_DOCUMENTS or self._characters >= _BATCH_CHARACTERS:
            self._submit()

    def _submit(self) -> None:
        contents, first = self._begun, len(self) - len(self._begun)
        encoded = self.pool.submit(self.encoder.encode, contents, keep_features=True)
        self._waiting.append((first, contents, encoded))
        self._begun, self._characters = [], 0
        if len(self._waiting) > self._most_waiting:
            self._store(*self._waiting.popleft())

    def _store(self, first: int, contents: Sequence[Content], waiting: Future[Encoded]) -> None:
        encoded = waiting.result()
        self._sizes.extend(self._write(encoded))
        self._sample(first, contents, encoded)
        self._counts.frombytes(encoded.counts.tobytes())
        self._digests += encoded.digests.tobytes()
        self._numbers.frombytes(encoded.numbers.tobytes())

    def _sample(self, first: int, contents: Sequence[Content], encoded: Encoded) -> None:
        if self.encoder.takes_vectors:
            return
        chosen = np.flatnonzero(encoded.counts)
        nothing = np.zeros(len(chosen), np.int64)
        rows = SignatureRows(
            first + chosen,
            nothing,
            encoded.counts[chosen],
            encoded.digests[chosen],
            encoded.sketches[:0],
            encoded.numbers[chosen],
        )
        self.heads.add(rows, lambda row: str(contents[chosen[row]]))

    def finish(self) -> None:
        """Complete the arrays."""
        if self._begun:
            self._submit()
        while self._waiting:
            self._store(*self._waiting.popleft())
        self.counts: NDArray[np.int32] = np.frombuffer(self._counts, np.int32)
        self.digests: NDArray[np.void] = np.frombuffer(self._digests, "V16")
        self.numbers: Hashes = np.frombuffer(self._numbers, np.uint64)
        self.common: CommonShingles | None = None
        self._complete()
        if self._count_features():
            self._encode_again()

    def _complete(self) -> None:
        """Flush what was written, and give access to it."""
        with full_disk():
            self._sketches.finish()
            self._features.finish()
        self._begins = offsets_of(np.frombuffer(self._sizes, np.int64))
        self._sizes = array("q")
        family = self.encoder.family
        self._uneven: NDArray[Any] = np.zeros((0, family.k), family.dtype)
        if family.ordered and self.encoder.has_sketches:
            self._uneven = np.concatenate([self._uneven, *self._uneven_parts])

    def _count_features(self) -> bool:
        """Count the features of a sample, if the recipe requires it; return whether all are to be encoded again."""
        encoder, count = self.encoder, len(self)
        sample = np.linspace(0, count, min(count, SAMPLE_SIZE), endpoint=False).astype(np.int64)

        def read() -> Iterator[list[Hashes]]:
            for at in range(0, len(sample), _BATCH_DOCUMENTS):
                features = self.read_features(sample[at : at + _BATCH_DOCUMENTS])
                yield [one["id"] if encoder.metric.weighted else one for one in features]

        if not encoder.has_sketches:
            return False
        self.common = encoder.count_features(read)
        return encoder.freezes or (self.common is not None and len(self.common.ids) > 0)

    def _encode_again(self) -> None:
        """Encode the features of all documents as the counts of features require."""
        sizes, before = array("q"), self._features
        self._sketches, self._features = self._create_values()
        self._uneven_parts = []
        for at in range(0, len(self), _BATCH_DOCUMENTS):
            rows = slice(at, min(at + _BATCH_DOCUMENTS, len(self)))
            begin, end = self._begins[[rows.start]], self._begins[[rows.stop]]
            items = before.read(begin, end)
            offsets = self._begins[rows.start : rows.stop + 1] - begin
            features = self.encoder.features_again(items, offsets, self.numbers[rows])
            encoded = self.encoder.encode_features(features, keep_features=True)
            self.counts[rows], self.digests[rows] = encoded.counts, encoded.digests
            sizes.extend(self._write(encoded))
        self._sizes = sizes
        self._complete()

    def _write(self, encoded: Encoded) -> list[int]:
        """Write sketches and features of a batch; return the numbers of features."""
        with full_disk():
            if self.encoder.family.ordered:
                self._uneven_parts.append(encoded.sketches)
            else:
                self._sketches.write(encoded.sketches)
            self._features.write(np.concatenate(encoded.features))
        return [len(one) for one in encoded.features]

    def discard_digests(self) -> None:
        """Give back the memory of the digests, which are not read any more."""
        self._digests, self.digests = bytearray(), self.digests[:0].copy()

    def read_sketches(self, numbers: Ints) -> Sketches:
        """Return the sketches of some documents."""
        family = self.encoder.family
        if family.ordered:
            return self._uneven[numbers]
        begins = numbers * family.k
        return self._sketches.read(begins, begins + family.k).reshape(len(numbers), family.k)

    def read_features(self, numbers: Ints) -> list[NDArray[Any]]:
        """Return the features of some documents."""
        begins, ends = self._begins[numbers], self._begins[numbers + 1]
        found = self._features.read(begins, ends)
        return [found[low:high] for low, high in pairwise(offsets_of(ends - begins).tolist())]

    def feature_total(self, numbers: Ints) -> int:
        """Return the number of features of some documents."""
        return int((self._begins[numbers + 1] - self._begins[numbers]).sum())
