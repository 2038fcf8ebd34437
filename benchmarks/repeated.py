"""Corpora of any size with the same number of pairs per document: a block of documents, repeated in other letters."""

import string
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.corpus import CorpusDocument, generator


def repeated(block: Sequence[CorpusDocument], documents: int, seed: int = 1) -> Iterator[CorpusDocument]:
    """Yield `documents` documents that repeat a block; each repetition has its own random permutation of the letters.

    The similarities within a repetition equal those of the block, and only by chance do two repetitions have a word in
    common. The same arguments give the same documents, and a smaller corpus is the beginning of a larger corpus.
    """
    rng = generator(np.random.SeedSequence(seed))
    for start in range(0, documents, len(block)):
        # The first repetition is the block itself.
        letters = _permuted(rng) if start else {}
        for document in block[: documents - start]:
            name = f"r{start // len(block):05}-{document.external_id}"
            title, text = document.title.translate(letters), document.text.translate(letters)
            yield replace(document, external_id=name, title=title, text=text)


def _permuted(rng: np.random.Generator) -> dict[int, int]:
    """Return a permutation of the letters, the same for upper and lower case."""
    to = "".join(rng.permutation(list(string.ascii_lowercase)))
    return str.maketrans(string.ascii_letters, to + to.upper())
