"""The shingles that a generation leaves out because too many documents have them, with a text of each."""

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
    """Shingles in a row that are left out: how many, the most distinct texts of a sample that one is in, a text.

    `share` is that of the texts of the sample.
    """

    shingles: int
    documents: int
    share: float
    example: str


def read_common(connection: Connection, generation: Generation) -> list[CommonFingerprints]:
    """Return what a generation leaves out, the most frequent first: each shingle once, in the first text that has it.

    The example is empty if none of the sampled texts has the fingerprint now.
    """
    common, reader = generation.common, _Reader(generation)
    if not len(common):
        return []
    doc_ids = documents.sample_documents(connection, generation.collection_id, SAMPLE_SIZE, SAMPLE_SEED)
    counter, open_ids = ShingleCounts(), np.ones(len(common), np.bool_)
    examples: list[tuple[Ints, str]] = []
    with closing(documents.stream_documents(connection, generation.collection_id, doc_ids)) as batches:
        for batch in batches:
            texts = [reader.text_of(one) for one in batch]
            sequences = [reader.ids(text) for text in texts]
            counter.add(sequences)
            for text, ids in zip(texts, sequences, strict=True):
                for first, last in _runs(are_in(common, ids)):
                    places = np.unique(common.searchsorted(ids[first:last]))
                    fresh = places[open_ids[places]]
                    if len(fresh):
                        open_ids[fresh] = False
                        examples.append((fresh, reader.part(text, first, last)))
    if open_ids.any():
        examples.append((np.flatnonzero(open_ids), ""))
    return sorted(
        (_described(common[places], counter, text) for places, text in examples),
        key=lambda one: (-one.documents, -one.shingles, one.example),
    )


class _Reader:
    """Reads texts as passages are found in them."""

    def __init__(self, generation: Generation) -> None:
        self._recipe = profile_of(generation).recipe
        plain = replace(self._recipe, normalise=replace(self._recipe.normalise, html=False))
        self._shingler = Shingler(plain, backend.resolve())
        self._tokeniser = Tokeniser(plain, backend.resolve())

    def text_of(self, document: StoredDocument) -> str:
        return compared_text({"title": document.title, "body": document.body}, self._recipe)

    def ids(self, text: str) -> Hashes:
        return self._shingler.shingles([text]).ids

    def part(self, text: str, first: int, last: int) -> str:
        """Return the text of shingles; of sentences and single words, which tokens do not count, the whole."""
        tokens = self._tokeniser.tokens(text)
        end = last + self._recipe.shingle.k - 2
        if self._recipe.shingle.scheme not in ("word", "char") or end >= len(tokens):
            return text
        return text[tokens.begins[first] : tokens.ends[end]]


def _runs(chosen: Mask) -> list[list[int]]:
    """Return the begin and end of each run of chosen places."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])).astype(np.int8)))
    return edges.reshape(-1, 2).tolist()


def _described(ids: Hashes, counter: ShingleCounts, text: str) -> CommonFingerprints:
    most = int(counter.counts_of(ids).max())
    share = round(most / counter.documents, 6) if counter.documents else 0.0
    return CommonFingerprints(len(ids), most, share, text)
