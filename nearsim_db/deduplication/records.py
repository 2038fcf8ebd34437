"""The encoded records of files: sketches and features are in temporary files, and a few numbers of each in memory.

The reading thread adds batches of documents, a pool of threads encodes them, and one thread writes them in their
order. The texts that wait to be encoded take about `_MAX_WAITING_BYTES`.
"""

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from math import inf, isnan, nan
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Self, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearsim_db.deduplication.waiting_pages import WaitingPages, rules_of_lines
from nearsim_db.errors import InputError
from nearsim_db.indexing.feature_file import FeatureFile
from nearsim_db.readers.dates import microseconds_of
from nearsim_db.readers.output import full_disk
from nearsim_db.records import Document
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask, Sketches
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.common_shingles import SAMPLE_SIZE, CommonShingles
from nearsim_db.similarity.encoder import Content, Encoded, Encoder
from nearsim_db.similarity.field_rules import FieldRules
from nearsim_db.similarity.k_rule import HeadSample
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import KeepPolicy, KeepRule, Recipe
from nearsim_db.similarity.recipe.sections import NOWHERE, Shingle
from nearsim_db.similarity.recipe_warnings import TextSample
from nearsim_db.similarity.text import Shingler
from nearsim_db.similarity.text.markup import strip_html
from nearsim_db.similarity.text.words import has_words
from nearsim_db.store.settings import encoding_from_environment

_MAX_WAITING_BYTES = 5_000_000
_TEXT_OVERHEAD_BYTES = 100
_DOCUMENTS_PER_REREAD = 500
_DOCUMENTS_PER_SAMPLED_TEXT = 20


class WholeTexts(Encoder):
    """Encodes documents for --exact: documents with equal texts after normalisation are twins, and no others are pairs.

    Raises InputError for a profile that compares vectors.
    """

    has_sketches = False

    def __init__(
        self,
        profile: Profile,
        backend: str | None = None,
        plain_characters: int = 0,
        text_recipe: Recipe | None = None,
    ) -> None:
        super().__init__(profile, backend, plain_characters, text_recipe)
        if self.takes_vectors:
            raise InputError("--exact compares texts, but the recipe compares vectors (sketch.input)")
        by_characters = msgspec.structs.replace(text_recipe or profile.recipe, shingle=Shingle(scheme="char"))
        self._normaliser = Shingler(by_characters, self.backend)

    def refusal(self, title: str | None, body: str | None) -> str | None:
        """Return None, because any text can be compared for equality; a recipe's lexer is not used."""
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
    """The values by which the rules of a keep policy rank documents, and the dates, which decide between equal ones.

    A missing date counts as the present time. `fields` are the names of the fields whose values `add` needs.
    """

    def __init__(self, policy: KeepPolicy) -> None:
        self.policy = policy
        self.fields: tuple[str, ...] = policy.fields
        self._now = microseconds_of(datetime.now(UTC))
        self._dates = array("q")
        self._keys = [array("d") for _ in policy.deciding]  # for each rule; the smallest key is the best
        self._is_second: Mask | None = None

    def __len__(self) -> int:
        return len(self._dates)

    def has_values(self, rule: KeepRule) -> bool:
        """Whether any document has a value of the field that a rule names."""
        at = self.policy.deciding.index(rule)
        return any(key != inf for key in self._keys[at])

    def add(self, documents: Sequence[Document], values: Sequence[Sequence[object]] = ()) -> None:
        """Add documents; `values` are the values of `fields` of each document, if there are fields."""
        now = self._now
        dates = [
            now if (date := document.published_at) is None else microseconds_of(date)
            for document in documents
        ]
        self._dates.extend(dates)
        for rule, keys in zip(self.policy.deciding, self._keys, strict=True):
            match rule.kind:
                case "source":
                    # Reversed: if a name occurs twice, its first place is stored last and wins.
                    places = {name: at for at, name in reversed(list(enumerate(rule.names)))}
                    keys.extend(places.get(document.source or "", len(places)) for document in documents)
                case "longest":
                    keys.extend(
                        -len(document.title or "") - len(document.body or "") for document in documents
                    )
                case "earliest" | "latest":
                    sign = 1 if rule.kind == "earliest" else -1
                    keys.extend(sign * date for date in dates)
                case "highest" | "has":
                    at = self.fields.index(rule.names[0])
                    rank = _by_number if rule.kind == "highest" else _by_presence
                    keys.extend(rank(of_document[at]) for of_document in values)

    def rank_by(self, totals: Floats) -> None:
        """Rank documents by these totals for the rule central; the largest total is the best."""
        at = [rule.kind for rule in self.policy.deciding].index("central")
        self._keys[at] = array("d", (-totals).tobytes())

    def put_first(self, is_first: Mask) -> None:
        """Rank some documents before all others, whatever the rules."""
        self._is_second = ~is_first

    def are_older(self, first: int, age_seconds: int) -> list[bool]:
        """Return for each document from number `first` on whether it is older than an age."""
        earliest = self._now - age_seconds * 1_000_000
        return [date < earliest for date in self._dates[first:]]

    def order(self, numbers: Ints) -> Ints:
        """Return the documents from the best to the worst.

        Among equal documents the earlier date is better, then the smaller number; for the policy latest, the larger.
        """
        dates = np.frombuffer(self._dates, np.int64)[numbers]
        # The rule central has keys once the pairs are known.
        keys = [np.frombuffer(key, np.float64)[numbers] for key in self._keys if key]
        places = -numbers if self.policy.prefers_last else numbers
        if self._is_second is not None:
            keys.insert(0, self._is_second[numbers].astype(np.float64))
        return numbers[np.lexsort((places, dates, *reversed(keys)))]

    def earlier_first(self, left: int, right: int) -> tuple[int, int]:
        """Return two documents, the earlier date first; if a date is missing or both are equal, the smaller number."""
        first, second = self._dates[left], self._dates[right]
        # A document without a date has the present time, so this excludes missing dates.
        if self._now not in (first, second) and first != second:
            return (left, right) if first < second else (right, left)
        return (left, right) if left < right else (right, left)


def _by_number(value: object) -> float:
    """Return the key of a number, or of the number that a text represents: the highest first, other values last."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) else nan
    except (ValueError, OverflowError):
        return inf
    return inf if isnan(number) else -number


def _by_presence(value: object) -> float:
    """Return the key of a field: infinity if it has no value, or an empty text, list or object, or only spaces."""
    if isinstance(value, str):
        return 0.0 if value.strip() else inf
    is_nan = isinstance(value, float) and isnan(value)
    return inf if is_nan or value in (None, [], {}) else 0.0


class EncodedRecords:
    """Documents, numbered from 0, with their digests, sketches and features, and the values of the keep policy.

    Use it in a `with` block. The arrays exist after `finish`, and have an element for each document.
    """

    counts: NDArray[np.int32]  # distinct features
    digests: NDArray[np.void]  # of the features, 16 bytes; equal for twins
    numbers: Hashes  # digest of the numbers in the text
    field_labels: NDArray[
        np.uint8
    ]  # (n, bytes): values of the fields that rules are about; twins have the same label
    common: CommonShingles | None  # the shingles that are left out as too common
    ranks: Ranks  # for the keep policy
    min_words: int  # texts with fewer words are not compared
    too_short: int  # number of such texts
    pool: ThreadPoolExecutor  # also for the stages after encoding

    def __init__(self, encoder: Encoder, threads: int, min_words: int = 0) -> None:
        if min_words and encoder.takes_vectors:
            raise InputError("min_words is about texts, but the recipe compares vectors (sketch.input)")
        self.encoder = encoder
        self.ranks = Ranks(encoder.profile.recipe.cluster.policy)
        self._retained = encoder.profile.recipe.retain.seconds
        self.min_words = min_words
        self.too_short = 0
        self.texts: TextSample = TextSample()
        self.heads: HeadSample = HeadSample()

        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="nearsim")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="nearsim-writer")
        # Batches that are not written yet, each with the size of its texts in bytes.
        self._waiting: deque[tuple[int, Future[None]]] = deque()
        self._waiting_bytes = 0

        self._temporary = ExitStack()
        self._file = FeatureFile(encoder)
        self._counts, self._digests, self._numbers = array("i"), bytearray(), array("Q")
        self._field_rules = FieldRules.of_records(encoder.profile.recipe)
        self._field_labels = bytearray()

        # Lines that recur are known when all documents have been added, and their texts wait in a file until then.
        rules = encoder.profile.recipe.normalise
        self.sources_by: str | None = None
        if rules.drop_repeated != NOWHERE and not encoder.takes_vectors:
            self.sources_by = rules.drop_repeated
        self.pages = None if self.sources_by is None else WaitingPages(rules.html, self.open_temporary())

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
        """Return an empty `EncodedRecords` for a recipe.

        threads: by default one for each core. exact: only equal texts are duplicates. plain_characters: encode so many
        characters before compiled code is loaded, unless the environment chooses a back end.
        """
        backend, available = encoding_from_environment()
        kind = WholeTexts if exact else Encoder
        text_recipe = msgspec.structs.replace(recipe, normalise=rules_of_lines(recipe.normalise))
        encoder = kind(resolve(recipe), backend, 0 if backend else plain_characters, text_recipe)
        return cls(encoder, threads or available, min_words)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        self._writer.shutdown(cancel_futures=True)
        self._file.close()
        with full_disk():  # closing a file writes its buffer
            self._temporary.close()

    def __len__(self) -> int:
        return len(self.ranks)

    def refusal(self, document: Document) -> str | None:
        """Return why a document cannot be compared, or None if it can."""
        return self.encoder.refusal(document.title, document.body)

    def open_temporary(self) -> BinaryIO:
        """Return a temporary file that is closed at the end of the `with` block."""
        return self._temporary.enter_context(TemporaryFile(prefix="nearsim-"))

    def add(
        self,
        documents: Sequence[Document],
        values: Sequence[Sequence[object]] = (),
        field_labels: Sequence[bytes] = (),
        sources: Sequence[object] = (),
    ) -> None:
        """Add a batch of documents; wait while too many texts are in memory. Raises NearsimError if the disk is full.

        values: the documents' values of the fields that the keep policy ranks by, if it ranks by fields.
        field_labels: the documents' labels if the recipe has rules about fields.
        sources: the documents' values of the field `sources_by` if lines that recur are left out.
        """
        first = len(self)
        self._field_labels += b"".join(field_labels)
        self.ranks.add(documents, values)
        contents: list[Content] = self.encoder.contents_of(documents)
        is_older = [False] * len(documents)
        if self._retained is not None:
            is_older = self.ranks.are_older(first, self._retained)
            absent = None if self.encoder.takes_vectors else ""
            # Encode an expired document as empty: an empty document has no pairs.
            contents = [absent if old else content for content, old in zip(contents, is_older, strict=True)]

        # Sample every 20th document, counted from the first document of all batches.
        sampled = [
            at
            for at in range(-first % _DOCUMENTS_PER_SAMPLED_TEXT, len(documents), _DOCUMENTS_PER_SAMPLED_TEXT)
            if not is_older[at]
        ]
        self.texts.add(documents[at].body or documents[at].title or "" for at in sampled)

        if self.pages is None:
            self._encode(first, contents)
        else:
            pages = self.pool.submit(self.pages.extract, cast(Sequence[str], contents), sources)
            self._wait_for(self._writer.submit(self.pages.write, pages), contents)

    def _encode(self, first: int, contents: list[Content]) -> None:
        """Encode the texts or vectors of the documents from number `first` on, and write the results."""
        if self.min_words:
            contents = [content if self._is_long_enough(cast(str, content)) else "" for content in contents]
        encoded = self.pool.submit(self.encoder.encode, contents, keep_features=True)
        self._wait_for(self._writer.submit(self._write, first, contents, encoded), contents)

    def _wait_for(self, written: Future[None], contents: Sequence[Content]) -> None:
        """Wait while too many texts are in memory. The texts of a batch are in memory until the batch is written."""
        size = sum([_TEXT_OVERHEAD_BYTES + len(content) for content in contents if content is not None])
        self._waiting.append((size, written))
        self._waiting_bytes += size
        while self._waiting_bytes > _MAX_WAITING_BYTES:
            self._await_batch()

    def _is_long_enough(self, text: str) -> bool:
        is_page = self.pages is None and self.encoder.profile.recipe.normalise.html
        shown = strip_html(text) if is_page else text
        is_long_enough = has_words(shown, self.min_words)
        self.too_short += not is_long_enough
        return is_long_enough

    def _await_batch(self) -> None:
        """Wait until the oldest waiting batch is written."""
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
        """Return the encoded records from number `first` on, with their labels mixed into the digests and sketches."""
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
        if self.pages is not None:
            for first, contents in self.pages.without_repeated_lines():
                self._encode(first, list(contents))
            while self._waiting:
                self._await_batch()
        self.counts = np.frombuffer(self._counts, np.int32)
        self.digests = np.frombuffer(self._digests, "V16")
        self.numbers = np.frombuffer(self._numbers, np.uint64)
        size = 0 if self._field_rules is None else self._field_rules.label_bytes
        self.field_labels = np.frombuffer(self._field_labels, np.uint8).reshape(len(self), size)
        self.common = None
        self._file.finish()
        if self._count_features():
            self._encode_again()

    def _count_features(self) -> bool:
        """Count the features of a sample if the recipe requires it; return whether to encode all records again."""
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
        """Encode the features of all documents again, now that the features of the sample are counted."""
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
        """Free the memory of the digests, which are not used any more."""
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
