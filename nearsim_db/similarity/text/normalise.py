"""Normalisation: from text as it was written to canonical UTF-8, one document after the other.

HTML, Unicode form and the case of non-ASCII text are Python's; runs of separators and ASCII case are the kernels'.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.recipe import Normalise
from nearsim_db.similarity.text import classes
from nearsim_db.similarity.text.kernels import TextKernels

_UNSEEN = ["script", "style", "noscript", "template"]
_WITHIN_A_LINE = (
    "a,abbr,acronym,b,bdi,bdo,big,cite,code,del,dfn,em,font,i,ins,kbd,mark,q,s,samp,small,span,strike,strong,sub,"
    "sup,tt,u,var,wbr"
)


@dataclass(frozen=True, slots=True)
class Canonical:
    """Normalised texts as bytes: document i is `data[offsets[i]:offsets[i + 1]]`, UTF-8.

    `data` is uint8, `offsets` int64 of n + 1. `ascii` tells that no byte is above 127.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    ascii: bool

    def text(self, index: int) -> str:
        """Document `index` as a str."""
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes().decode("utf-8")


def from_texts(texts: Sequence[str]) -> Canonical:
    """Texts as they are, encoded and laid end to end. They must hold no lone surrogate."""
    is_ascii = all(map(str.isascii, texts))
    # ASCII is joined before it is encoded: half the objects.
    parts = ["".join(texts).encode("ascii")] if is_ascii else [text.encode("utf-8") for text in texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(list(map(len, texts if is_ascii else parts)), out=offsets[1:])
    return Canonical(np.frombuffer(b"".join(parts), np.uint8), offsets, is_ascii)


def squeeze(texts: Sequence[str], table: classes.Table, kernels: TextKernels) -> Canonical:
    """Each run of separators becomes one space, those at the ends go, and ASCII is folded by the table."""
    raw = from_texts(texts)
    data, offsets = kernels.squeeze(raw.data, raw.offsets, table)
    return Canonical(data, offsets, raw.ascii)


def folder(rules: Normalise) -> Callable[[str], str]:
    """What must happen to one text before the kernels see it: HTML, Unicode form, case beyond ASCII."""

    def fold(text: str) -> str:
        if rules.html and ("<" in text or "&" in text):
            text = strip_html(text)
        return text if text.isascii() else _fold_unicode(text, rules)

    return fold


def strip_html(text: str) -> str:
    """The text a reader of the page would see: no tags, scripts, styles or comments; entities decoded.

    Elements part words, but for those that only mark up text within a line. A "<" that no ">" follows is text.
    """
    from selectolax.lexbor import LexborHTMLParser

    closed = text.rfind(">") + 1
    tree = LexborHTMLParser(text[:closed] + text[closed:].replace("<", "&lt;"))
    tree.strip_tags(_UNSEEN)
    root = tree.body
    if root is None:
        return ""
    # The inner ones first: the parser goes through all that an element holds when it moves it.
    for element in reversed(tree.css(_WITHIN_A_LINE)):
        element.unwrap()
    root.merge_text_nodes()
    return root.text(separator=" ")


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
    # Folding can take a text out of its normal form (U+0345 is the known case).
    return _to_form(folded, rules)


def _to_form(text: str, rules: Normalise) -> str:
    match rules.unicode:
        case "none":
            return text
        case "nfc":
            return unicodedata.normalize("NFC", text)
        case "nfkc":
            return unicodedata.normalize("NFKC", text)
        case _:
            assert_never(rules.unicode)
