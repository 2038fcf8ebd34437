"""Describe, with example texts, the shingles that a generation leaves out because too many documents have them.

The public API calls these shingles common fingerprints. The generation stores only their ids; their texts are looked
for in a sample of the documents. A run is a sequence of such shingles at successive positions of a text.
"""

from contextlib import closing
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from nearsim_db.search.answers import profile_of
from nearsim_db.search.passages import compared_text
from nearsim_db.similarity import backend
from nearsim_db.similarity.arrays import Hashes, Ints, Mask
from nearsim_db.similarity.common_shingles import SAMPLE_SEED, SAMPLE_SIZE, ShingleCounts, are_in
from nearsim_db.similarity.text import Shingler
from nearsim_db.similarity.text.tokens import Tokeniser
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation


@dataclass(frozen=True, slots=True)
class CommonFingerprints:
    """A run of shingles that are left out."""

    shingles: int  # number of shingles in the run
    documents: int  # distinct texts in the sample that contain the most frequent shingle of the run
    share: float  # the same as a fraction of the texts in the sample
    example: str  # a text of the run


def read_common(connection: Connection, generation: Generation) -> list[CommonFingerprints]:
    """Return the shingles that a generation leaves out, grouped into runs, the most frequent run first.

    Each shingle is in one run, which the first sampled text that contains the shingle determines. Shingles that no
    sampled text contains form a run with an empty example.
    """
    common, reader = generation.common, _ExampleShingler(generation)
    if not len(common):
        return []

    # Look for the shingles, which are rows of `common`, in the texts of a sample.
    doc_ids = documents.sample_documents(connection, generation.collection_id, SAMPLE_SIZE, SAMPLE_SEED)
    counter, is_missing = ShingleCounts(), np.ones(len(common), np.bool_)
    examples: list[tuple[Ints, str]] = []
    with closing(documents.stream_documents(connection, generation.collection_id, doc_ids)) as batches:
        for batch in batches:
            texts = [reader.text_of(document) for document in batch]
            sequences = [reader.ids(text) for text in texts]
            counter.add(sequences)
            for text, ids in zip(texts, sequences, strict=True):
                for begin, end in _runs(are_in(common, ids)):
                    rows = np.unique(common.searchsorted(ids[begin:end]))
                    rows = rows[is_missing[rows]]
                    if len(rows):
                        is_missing[rows] = False
                        examples.append((rows, reader.part(text, begin, end)))
    if is_missing.any():
        examples.append((np.flatnonzero(is_missing), ""))

    described = [_described(common[rows], counter, text) for rows, text in examples]
    return sorted(described, key=lambda row: (-row.documents, -row.shingles, row.example))


class _ExampleShingler:
    """Splits the texts of a generation's documents, in the form in which passages show them, into shingles."""

    def __init__(self, generation: Generation) -> None:
        self._recipe = profile_of(generation).recipe
        # The texts that `text_of` returns have no tags.
        plain = replace(self._recipe, normalise=replace(self._recipe.normalise, html=False))
        self._shingler = Shingler(plain, backend.resolve())
        self._tokeniser = Tokeniser(plain, backend.resolve())

    def text_of(self, document: StoredDocument) -> str:
        return compared_text({"title": document.title, "body": document.body}, self._recipe)

    def ids(self, text: str) -> Hashes:
        return self._shingler.shingles([text]).ids

    def part(self, text: str, begin: int, end: int) -> str:
        """Return the part of a text that consists of the shingles from `begin` up to, but not including, `end`.

        Returns the whole text if shingles do not consist of k tokens.
        """
        tokens = self._tokeniser.tokens(text)
        # Shingle i has the tokens i to i + k - 1.
        last_token = end + self._recipe.shingle.k - 2
        if self._recipe.shingle.scheme not in ("word", "char") or last_token >= len(tokens):
            return text
        return text[tokens.begins[begin] : tokens.ends[last_token]]


def _runs(chosen: Mask) -> list[list[int]]:
    """Return where each run of True begins and ends."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])).astype(np.int8)))
    return edges.reshape(-1, 2).tolist()


def _described(ids: Hashes, counter: ShingleCounts, text: str) -> CommonFingerprints:
    max_documents = int(counter.counts_of(ids).max())
    share = round(max_documents / counter.documents, 6) if counter.documents else 0.0
    return CommonFingerprints(len(ids), max_documents, share, text)
