"""tf-idf vectors of documents, for families that compare vectors."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from nearsim_db.records import Document

_WORD = re.compile(r"[^\W_]+")


def words_of(document: Document) -> list[str]:
    """The lowercased words of title and body."""
    return _WORD.findall("\n".join(filter(None, (document.title, document.body))).lower())


def vectors(
    documents: Sequence[Document], dimensions: int, *, normalised: bool = True
) -> npt.NDArray[np.float32]:
    """Return a row per document: for each of the most frequent words, the count times ln(n / documents with it).

    Equally frequent words are in alphabetical order. With `normalised` each row has length 1, except rows of
    zeros.
    """
    counts = [Counter(words_of(document)) for document in documents]
    totals: Counter[str] = Counter()
    for words in counts:
        totals.update(words)
    chosen = sorted(totals, key=lambda word: (-totals[word], word))[:dimensions]
    column = {word: place for place, word in enumerate(chosen)}
    matrix = np.zeros((len(documents), len(chosen)))
    for row, words in enumerate(counts):
        for word, count in words.items():
            if word in column:
                matrix[row, column[word]] = count

    matrix *= np.log(len(documents) / np.count_nonzero(matrix, axis=0))
    if normalised:
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        np.divide(matrix, lengths, out=matrix, where=lengths > 0)
    return matrix.astype(np.float32)


def with_vectors(
    documents: Sequence[Document], dimensions: int, *, normalised: bool = True
) -> list[Document]:
    """The documents, each with its vector."""
    rows = vectors(documents, dimensions, normalised=normalised)
    return [replace(document, vector=row.tolist()) for document, row in zip(documents, rows, strict=True)]
