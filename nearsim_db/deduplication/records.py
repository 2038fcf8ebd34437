"""The records of files, encoded: sketches and features in temporary files, a few numbers of each in memory."""

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

from nearsim_db.deduplication.ranks import Ranks
from nearsim_db.errors import InputError
from nearsim_db.indexing.feature_file import FeatureFile
from nearsim_db.readers.output import full_disk
from nearsim_db.records import Document
from nearsim_db.similarity.arrays import Hashes, Ints, Sketches
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.common_shingles import SAMPLE_SIZE, CommonShingles
from nearsim_db.similarity.encoder import Content, Encoded, Encoder
from nearsim_db.similarity.k_rule import HeadSample
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


_BATCH_DOCUMENTS = 500
_BATCH_CHARACTERS = 2_000_000
_SAMPLED = 20  # documents, of which one is in the sample of texts


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
        self._file = FeatureFile(encoder)
        self._waiting: deque[tuple[int, list[Content], Future[Encoded]]] = deque()
        self._begun: list[Content] = []
        self._characters = 0
        self._counts, self._digests, self._numbers = array("i"), bytearray(), array("Q")
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
        self._file.close()
        with full_disk():  # closing writes what is in the buffers of the files
            self._temporary.close()

    def __len__(self) -> int:
        return len(self.ranks)

    def open_temporary(self) -> BinaryIO:
        """Return a temporary file that is closed with the records."""
        return self._temporary.enter_context(TemporaryFile(prefix="nearsim-"))

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
        with full_disk():
            self._file.add(encoded.sketches, encoded.features)
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
        self._file.finish()
        if self._count_features():
            self._encode_again()

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
        before = self._file
        with full_disk():
            self._file = FeatureFile(self.encoder)
        for at in range(0, len(self), _BATCH_DOCUMENTS):
            rows = slice(at, min(at + _BATCH_DOCUMENTS, len(self)))
            items, offsets = before.read_flat_features(np.arange(rows.start, rows.stop))
            features = self.encoder.features_again(items, offsets, self.numbers[rows])
            encoded = self.encoder.encode_features(features, keep_features=True)
            self.counts[rows], self.digests[rows] = encoded.counts, encoded.digests
            with full_disk():
                self._file.add(encoded.sketches, encoded.features)
        self._file.finish()
        before.close()

    def discard_digests(self) -> None:
        """Give back the memory of the digests, which are not read any more."""
        self._digests, self.digests = bytearray(), self.digests[:0].copy()

    def read_sketches(self, numbers: Ints) -> Sketches:
        """Return the sketches of some documents."""
        return self._file.read_sketches(numbers)

    def read_features(self, numbers: Ints) -> list[NDArray[Any]]:
        """Return the features of some documents."""
        return self._file.read_features(numbers)

    def feature_total(self, numbers: Ints) -> int:
        """Return the number of features of some documents."""
        return self._file.count_features(numbers)
