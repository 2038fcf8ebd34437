"""The records of files, encoded by a pool of threads: sketches and features in temporary files, few numbers in memory.

The thread that reads adds batches of documents; a pool of threads encodes them; one thread writes them in their order.
Texts of about `_MAX_WAITING_BYTES` wait at once.
"""

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import inf, isnan, nan
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Self, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.indexing.feature_file import FeatureFile
from nearsim_db.readers.output import full_disk
from nearsim_db.records import Document
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Sketches
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.common_shingles import SAMPLE_SIZE, CommonShingles
from nearsim_db.similarity.encoder import Content, Encoded, Encoder
from nearsim_db.similarity.field_rules import FieldRules
from nearsim_db.similarity.k_rule import HeadSample
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, keep_policy
from nearsim_db.similarity.recipe.sections import Shingle
from nearsim_db.similarity.recipe_warnings import TextSample
from nearsim_db.similarity.text import Shingler
from nearsim_db.similarity.text.markup import strip_html
from nearsim_db.similarity.text.words import has_words
from nearsim_db.store.settings import encoding_from_environment

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_WAITING_BYTES = 5_000_000
_TEXT_OVERHEAD_BYTES = 100
_DOCUMENTS_PER_REREAD = 500
_DOCUMENTS_PER_SAMPLED_TEXT = 20


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

    def refusal(self, title: str | None, body: str | None) -> str | None:
        """Return None: equal texts are found without a lexer."""
        return None

    def _encode_chunk(self, contents: Sequence[Content], keep_features: bool) -> Encoded:
        texts = self._normaliser.canonical(cast(Sequence[str], contents))
        data, bounds = texts.data.data, list(pairwise(texts.offsets.tolist()))
        digests = b"".join([self.digest_bytes(data[begin:end]) for begin, end in bounds])
        return Encoded(
            (np.diff(texts.offsets) > 0).astype(np.int32),
            np.frombuffer(digests, "V16"),
            np.zeros((len(bounds), 0), self.family.dtype),
            np.zeros(len(bounds), np.uint64),
            np.zeros(0, np.uint64),
            np.zeros(len(bounds) if keep_features else 0, np.int64),
        )


class Ranks:
    """What a keep policy ranks documents by: source, length, date, `column`. A document without a date is dated now."""

    def __init__(self, policy: str, names: Sequence[str]) -> None:
        self.policy = policy
        self.column: str | None = names[0] if policy == "highest" else None
        # Reversed, so that the first place of a name counts.
        self._places = {name: at for at, name in reversed(list(enumerate(names)))}
        self._now = _microseconds(datetime.now(UTC))
        self._dates = array("q")
        self._keys = array("d")  # by which the policy ranks first, the smallest best

    def __len__(self) -> int:
        return len(self._dates)

    @property
    def has_numbers(self) -> bool:
        """Whether any document has a number in the column."""
        return any(key != inf for key in self._keys)

    def add(self, documents: Sequence[Document], values: Sequence[object] = ()) -> None:
        """Add documents, with their values of the column if there is one."""
        now = self._now
        dates = [
            now if (date := document.published_at) is None else _microseconds(date) for document in documents
        ]
        self._dates.extend(dates)
        match self.policy:
            case "source":
                others = len(self._places)
                self._keys.extend(self._places.get(document.source or "", others) for document in documents)
            case "longest":
                self._keys.extend(
                    -len(document.title or "") - len(document.body or "") for document in documents
                )
            case "latest":
                self._keys.extend(-date for date in dates)
            case "highest":
                numbers = map(_number, values)
                self._keys.extend(inf if number is None else -number for number in numbers)

    def rank_by(self, values: Floats) -> None:
        """Rank first by values of the documents, the largest best."""
        self._keys = array("d", (-values).tobytes())

    def are_older(self, first: int, age_seconds: int) -> list[bool]:
        """Return whether each document from the number `first` on is older than an age."""
        earliest = self._now - age_seconds * 1_000_000
        return [date < earliest for date in self._dates[first:]]

    def order(self, numbers: Ints) -> Ints:
        """Return documents, best first; ties go to the earlier date, then to the first, or to the last for latest."""
        dates = np.frombuffer(self._dates, np.int64)[numbers]
        keys = np.frombuffer(self._keys, np.float64)[numbers] if self._keys else np.zeros(len(numbers))
        places = -numbers if self.policy == "latest" else numbers
        return numbers[np.lexsort((places, dates, keys))]

    def earlier_first(self, left: int, right: int) -> tuple[int, int]:
        """Return two documents, the earlier one first if both have dates that differ, otherwise in their order."""
        first, second = self._dates[left], self._dates[right]
        # A document without a date has the present time.
        if self._now not in (first, second) and first != second:
            return (left, right) if first < second else (right, left)
        return (left, right) if left < right else (right, left)


def _number(value: object) -> float | None:
    """Return a number, also one that is written as text; None for anything else."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) else nan
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else number


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


class EncodedRecords:
    """Documents numbered from 0, each with its digest, sketch and features, and what the keep policy ranks it by.

    Use it in a `with` block; after `finish` the arrays are complete: `counts` of features int32, `digests` void of 16
    bytes, `numbers` uint64, `field_labels` uint8 (n, bytes). Records of other labels are no twins. `pool` is there for
    further work. Texts of fewer than `min_words` words are compared with none; `too_short` counts them.
    """

    def __init__(self, encoder: Encoder, threads: int, min_words: int = 0) -> None:
        if min_words and encoder.takes_vectors:
            raise InputError("min_words is about texts, but the recipe compares vectors (sketch.input)")
        self.encoder = encoder
        self.keep: str = encoder.profile.recipe.cluster.keep
        self.ranks: Ranks = Ranks(*keep_policy(self.keep))
        self._retained = encoder.profile.recipe.retain.seconds
        self.min_words: int = min_words
        self.too_short: int = 0
        self.texts: TextSample = TextSample()
        self.heads: HeadSample = HeadSample()

        self.pool: ThreadPoolExecutor = ThreadPoolExecutor(threads, thread_name_prefix="nearsim")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="nearsim-writer")
        # Batches that are not written yet, with their bytes.
        self._waiting: deque[tuple[int, Future[None]]] = deque()
        self._waiting_bytes = 0

        self._temporary = ExitStack()
        self._file = FeatureFile(encoder)
        self._counts, self._digests, self._numbers = array("i"), bytearray(), array("Q")
        self._field_rules = FieldRules.of_records(encoder.profile.recipe)
        self._field_labels = bytearray()

    @classmethod
    def under(
        cls,
        recipe: Recipe,
        threads: int | None,
        *,
        exact: bool,
        plain_characters: int = 0,
        min_words: int = 0,
    ) -> Self:
        """Return records to be encoded under a recipe, with `exact` by their whole texts; by default on all cores.

        `plain_characters` are encoded before compiled code is loaded, unless a back end is chosen.
        """
        backend, available = encoding_from_environment()
        kind = WholeTexts if exact else Encoder
        encoder = kind(resolve(recipe), backend, 0 if backend else plain_characters)
        return cls(encoder, threads or available, min_words)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        self._writer.shutdown(cancel_futures=True)
        self._file.close()
        with full_disk():  # closing writes what is in the buffers of the files
            self._temporary.close()

    def __len__(self) -> int:
        return len(self.ranks)

    def refusal(self, document: Document) -> str | None:
        """Return why a document is not compared, None if it is."""
        return self.encoder.refusal(document.title, document.body)

    def open_temporary(self) -> BinaryIO:
        """Return a temporary file that is closed with the records."""
        return self._temporary.enter_context(TemporaryFile(prefix="nearsim-"))

    def add(
        self,
        documents: Sequence[Document],
        values: Sequence[object] = (),
        field_labels: Sequence[bytes] = (),
    ) -> None:
        """Add a batch of documents; waits while too many are in memory. Raises NearsimError if the disk is full.

        `values` are those of the column that the keep policy ranks by, if there is one; `field_labels` are there if the
        recipe has rules about fields.
        """
        first = len(self)
        self._field_labels += b"".join(field_labels)
        self.ranks.add(documents, values)
        contents: list[Content] = self.encoder.contents_of(documents)
        is_older = [False] * len(documents)
        if self._retained is not None:
            is_older = self.ranks.are_older(first, self._retained)
            absent = None if self.encoder.takes_vectors else ""
            # An expired document counts as empty, which makes no pairs.
            contents = [absent if old else content for content, old in zip(contents, is_older, strict=True)]
        if self.min_words:
            contents = [content if self._is_long_enough(cast(str, content)) else "" for content in contents]

        # Every so many documents of all, wherever a batch begins.
        sampled = [
            at
            for at in range(-first % _DOCUMENTS_PER_SAMPLED_TEXT, len(documents), _DOCUMENTS_PER_SAMPLED_TEXT)
            if not is_older[at]
        ]
        self.texts.add(documents[at].body or documents[at].title or "" for at in sampled)

        encoded = self.pool.submit(self.encoder.encode, contents, keep_features=True)
        written = self._writer.submit(self._write, first, contents, encoded)
        size = sum([_TEXT_OVERHEAD_BYTES + len(content) for content in contents if content is not None])
        self._waiting.append((size, written))
        self._waiting_bytes += size
        while self._waiting_bytes > _MAX_WAITING_BYTES:
            self._await_batch()

    def _is_long_enough(self, text: str) -> bool:
        shown = strip_html(text) if self.encoder.profile.recipe.normalise.html else text
        is_long_enough = has_words(shown, self.min_words)
        self.too_short += not is_long_enough
        return is_long_enough

    def _await_batch(self) -> None:
        """Wait until the first of the batches that wait is written."""
        size, written = self._waiting.popleft()
        written.result()
        self._waiting_bytes -= size

    def _write(self, first: int, contents: Sequence[Content], waiting: Future[Encoded]) -> None:
        """Write a batch; called in one thread, in the order of the batches."""
        encoded = self._labelled(first, waiting.result())
        with full_disk():
            self._file.add(encoded.sketches, encoded.items, encoded.sizes)
        self._counts.frombytes(encoded.counts.tobytes())
        self._digests += encoded.digests.tobytes()
        self._numbers.frombytes(encoded.numbers.tobytes())
        if self.encoder.takes_vectors:
            return

        chosen = np.flatnonzero(encoded.counts)
        rows = SignatureRows(
            first + chosen,
            np.zeros(len(chosen), np.int64),
            encoded.counts[chosen],
            encoded.digests[chosen],
            encoded.sketches[:0],
            encoded.numbers[chosen],
        )
        self.heads.add(rows, lambda row: str(contents[chosen[row]]))

    def _labelled(self, first: int, encoded: Encoded) -> Encoded:
        """Return encoded records, from the number `first` on, with digests and sketches under their labels."""
        if (rules := self._field_rules) is None or not len(encoded.counts):
            return encoded
        size = rules.label_bytes
        packed = bytes(self._field_labels[first * size : (first + len(encoded.counts)) * size])
        labels = np.frombuffer(packed, np.uint8).reshape(-1, size)
        sketches = encoded.sketches
        if self.encoder.has_sketches:
            sketches = rules.salted(sketches, labels, self.encoder.family)
        return replace(encoded, digests=rules.digests(encoded.digests, labels), sketches=sketches)

    def finish(self) -> None:
        """Complete the arrays."""
        while self._waiting:
            self._await_batch()
        self.counts: NDArray[np.int32] = np.frombuffer(self._counts, np.int32)
        self.digests: NDArray[np.void] = np.frombuffer(self._digests, "V16")
        self.numbers: Hashes = np.frombuffer(self._numbers, np.uint64)
        size = 0 if self._field_rules is None else self._field_rules.label_bytes
        self.field_labels = np.frombuffer(self._field_labels, np.uint8).reshape(len(self), size)
        self.common: CommonShingles | None = None
        self._file.finish()
        if self._count_features():
            self._encode_again()

    def _count_features(self) -> bool:
        """Count the features of a sample, if the recipe requires it; return whether all are to be encoded again."""
        encoder, count = self.encoder, len(self)
        sample = np.linspace(0, count, min(count, SAMPLE_SIZE), endpoint=False).astype(np.int64)

        def read() -> Iterator[list[Hashes]]:
            for at in range(0, len(sample), _DOCUMENTS_PER_REREAD):
                features = self.read_features(sample[at : at + _DOCUMENTS_PER_REREAD])
                yield [ids["id"] if encoder.metric.weighted else ids for ids in features]

        if not encoder.has_sketches:
            return False
        self.common = encoder.count_features(read)
        return encoder.freezes or (self.common is not None and len(self.common.ids) > 0)

    def _encode_again(self) -> None:
        """Encode the features of all documents as the counts of features require."""
        before = self._file
        with full_disk():
            self._file = FeatureFile(self.encoder)
        for at in range(0, len(self), _DOCUMENTS_PER_REREAD):
            rows = slice(at, min(at + _DOCUMENTS_PER_REREAD, len(self)))
            items, offsets = before.read_flat_features(np.arange(rows.start, rows.stop))
            features = self.encoder.features_again(items, offsets, self.numbers[rows])
            encoded = self._labelled(rows.start, self.encoder.encode_features(features, keep_features=True))
            self.counts[rows], self.digests[rows] = encoded.counts, encoded.digests
            with full_disk():
                self._file.add(encoded.sketches, encoded.items, encoded.sizes)
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
