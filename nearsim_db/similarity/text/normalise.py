"""Normalisation: from raw text to canonical UTF-8, all documents of a batch in one buffer.

HTML, invisible characters, Unicode form and the case of non-ASCII text are handled in Python; runs of separators and
ASCII case by the kernels.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.recipe import Normalise
from nearsim_db.similarity.text import combining, invisible, separators
from nearsim_db.similarity.text.kernels import TextKernels
from nearsim_db.similarity.text.markup import strip_html


@dataclass(frozen=True, slots=True)
class Canonical:
    """Normalised texts as UTF-8 bytes: document i is `data[offsets[i]:offsets[i + 1]]`.

    `data` is uint8, `offsets` int64 of n + 1. `ascii` is whether no byte is above 127.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    ascii: bool

    def text(self, index: int) -> str:
        """Return document `index` as a str."""
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes().decode("utf-8")


def from_texts(texts: Sequence[str]) -> Canonical:
    """Encode and concatenate texts as they are. They must not contain lone surrogates."""
    if all(map(str.isascii, texts)):
        # Joined before it is encoded, which halves the number of objects.
        joined = "".join(texts).encode("ascii")
        return Canonical(np.frombuffer(joined, np.uint8), _offsets(texts), True)
    parts = [text.encode("utf-8") for text in texts]
    return Canonical(np.frombuffer(b"".join(parts), np.uint8), _offsets(parts), False)


def _offsets(parts: Sequence[str] | Sequence[bytes]) -> NDArray[np.int64]:
    return np.fromiter(accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)


def squeeze(texts: Sequence[str], table: separators.Table, kernels: TextKernels) -> Canonical:
    """Collapse each run of separators to one space, strip them at the ends, and fold ASCII case by the table."""
    raw = from_texts(texts)
    data, offsets = kernels.squeeze(raw.data, raw.offsets, table)
    return Canonical(data, offsets, raw.ascii)


def low_bytes(texts: Canonical) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the low byte of each UTF-16 unit, uint8, and the offsets of the documents in them, int64 of n + 1."""
    if texts.ascii:
        return texts.data, texts.offsets
    units = ((texts.data & 0xC0) != 0x80).astype(np.int64) + (texts.data >= 0xF0)
    before = np.concatenate(([0], np.cumsum(units)))
    utf16 = texts.data.tobytes().decode("utf-8").encode("utf-16-le")
    return np.frombuffer(utf16, np.uint8)[::2].copy(), before[texts.offsets]


def make_fold(rules: Normalise) -> Callable[[str], str]:
    """Return a function for the steps that precede the kernels: HTML, and all but spaces and case of ASCII."""
    drops_invisible = rules.invisible == "drop"

    def fold(text: str) -> str:
        if rules.html and ("<" in text or "&" in text):
            text = strip_html(text)
        if text.isascii():
            return text
        return _fold_unicode(invisible.drop(text) if drops_invisible else text, rules)

    return fold


def _fold_unicode(text: str, rules: Normalise) -> str:
    text = _to_form(text, rules)
    match rules.case:
        case "none":
            return text
        case "lower":
            folded = text.lower()
        case "casefold":
            folded = text.casefold()
        case _:
            assert_never(rules.case)
    # Folding can undo the normal form (U+0345 is the known case).
    return _to_form(folded, rules)


def _to_form(text: str, rules: Normalise) -> str:
    match rules.unicode:
        case "none":
            return text
        case "nfc":
            return unicodedata.normalize("NFC", combining.sort_long_runs(text, "NFD"))
        case "nfkc":
            return unicodedata.normalize("NFKC", combining.sort_long_runs(text, "NFKD"))
        case _:
            assert_never(rules.unicode)
