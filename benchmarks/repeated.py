"""Corpora with as many pairs a document at any size: the documents of one, again and again in other letters."""

import string
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.corpus import CorpusDocument, generator


def repeated(block: Sequence[CorpusDocument], documents: int, seed: int = 1) -> Iterator[CorpusDocument]:
    """Yield so many documents, which repeat a block; each repetition has a random permutation of its letters.

    Similarities within a repetition are those of the block; its words are not in any other repetition but by chance.
    The same arguments give the same documents, and a smaller corpus is the beginning of a larger one.
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
    """A permutation of the letters, for upper case the same as for lower case."""
    to = "".join(rng.permutation(list(string.ascii_lowercase)))
    return str.maketrans(string.ascii_letters, to + to.upper())
