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
    """Return the words of title and body in lower case."""
    return _WORD.findall("\n".join(filter(None, (document.title, document.body))).lower())


def vectors(
    documents: Sequence[Document], dimensions: int, *, normalised: bool = True
) -> npt.NDArray[np.float32]:
    """Return a row for each document, with a column for each of the most frequent words.

    A value is the word's count in the document times ln(n / number of documents with the word). Equally frequent words
    are in alphabetical order. With `normalised`, each row has length 1, except for rows of zeros.
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
    """Return the documents with their vectors."""
    rows = vectors(documents, dimensions, normalised=normalised)
    return [replace(document, vector=row.tolist()) for document, row in zip(documents, rows, strict=True)]
