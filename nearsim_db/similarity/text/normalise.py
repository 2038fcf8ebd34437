"""Normalisation: convert raw texts to canonical UTF-8, with all documents of a batch in one buffer.

Python code handles HTML, invisible characters, the Unicode form, and the case of non-ASCII text. The kernels handle
runs of separators and ASCII case. Invisible characters are those that Unicode calls default-ignorable (UAX #44): soft
hyphen, joiners, variation selectors, marks of direction.

unicodedata sorts each run of combining characters by combining class with an insertion sort, which takes quadratic time
unless the run is short or sorted. Long runs are therefore sorted before, which does not change the normal form.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Ints
from nearsim_db.similarity.recipe import Normalise
from nearsim_db.similarity.recipe.validation import refuse_repeated_lines
from nearsim_db.similarity.text import confusables, separators
from nearsim_db.similarity.text.kernels import TextKernels
from nearsim_db.similarity.text.pages import page_reader

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt: the same 4,174 code points in Unicode 14.0 to 16.0.
RANGES = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Scripts without spaces between words, which have the line breaking class SA (UAX #14): Thai and Lao, Myanmar with its
# extensions, Khmer, Tai Le and New Tai Lue with the Khmer symbols, Tai Tham, Tai Viet, Ahom.
UNSPACED = (
    (0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19FF), (0x1A20, 0x1AAF), (0xA9E0, 0xA9FF),
    (0xAA60, 0xAADF), (0x116D0, 0x116FF), (0x11700, 0x1174F),
)  # fmt: skip

_ZERO_WIDTH_SPACE = "\u200b"


def _class(*ranges: tuple[int, int]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_RUN = re.compile(f"[{_class(*RANGES)}]+")
# Matches every invisible character, and also every other character beyond U+FFFF, which halves the time.
_POSSIBLE = re.compile(f"[{_class(*(pair for pair in RANGES if pair[1] < 0x10000), (0x10000, 0x10FFFF))}]")
_UNSPACED = re.compile(f"[{_class(*UNSPACED)}]")


def drop(text: str) -> str:
    """Remove invisible characters from a text, except ZERO WIDTH SPACE in scripts without spaces between words."""
    if not _POSSIBLE.search(text):
        return text
    return _RUN.sub(_remainder, text)


def _remainder(run: re.Match[str]) -> str:
    """Return the replacement of a run of invisible characters.

    A run with a ZERO WIDTH SPACE next to a character of a script without spaces is replaced by a ZERO WIDTH SPACE,
    every other run by nothing.
    """
    if _ZERO_WIDTH_SPACE not in run[0]:
        return ""
    begin, end = run.span()
    around = run.string[max(0, begin - 1) : begin] + run.string[end : end + 1]
    return _ZERO_WIDTH_SPACE if _UNSPACED.search(around) else ""


_LONG = 32
# Characters that do not combine, but whose decomposition begins with a combining character.
STARTERS = "\u0f73\u0f75\u0f81\uff9e\uff9f"


def sort_long_runs(text: str, form: Literal["NFD", "NFKD"]) -> str:
    """Sort the long runs of combining characters of a text.

    The result has the same normal form, both in `form` and in its composed counterpart.
    """
    # Every run of _LONG characters or more contains one of these places.
    if not _mark().search(text[_LONG - 1 :: _LONG]):
        return text
    return _long_runs().sub(lambda match: _sorted(match[0], form), text)


def _sorted(run: str, form: Literal["NFD", "NFKD"]) -> str:
    decomposed = "".join(unicodedata.normalize(form, character) for character in run)
    parts: list[str] = []
    for combines, group in groupby(decomposed, lambda character: unicodedata.combining(character) > 0):
        characters = list(group)
        parts += sorted(characters, key=unicodedata.combining) if combines else characters
    return "".join(parts)


@cache
def _marks() -> str:
    """Return the regular expression for characters that may combine.

    It includes all characters beyond U+FFFF, which is faster than a long list.
    """
    marks = "".join(character for character in map(chr, range(0x10000)) if unicodedata.combining(character))
    return f"[{marks}{STARTERS}\U00010000-\U0010ffff]"


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(_marks())


@cache
def _long_runs() -> re.Pattern[str]:
    return re.compile(f"{_marks()}{{{_LONG},}}")


@dataclass(frozen=True, slots=True)
class Canonical:
    """Normalised texts as UTF-8 bytes: document i is `data[offsets[i]:offsets[i + 1]]`."""

    data: NDArray[np.uint8]
    offsets: Ints  # n + 1
    ascii: bool  # whether all bytes are below 128

    def text(self, index: int) -> str:
        """Return the text of document `index`."""
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes().decode("utf-8")


def from_texts(texts: Sequence[str]) -> Canonical:
    """Encode and concatenate texts without normalising them. They must not contain lone surrogates."""
    if all(map(str.isascii, texts)):
        # Joining the texts before encoding halves the number of objects.
        joined = "".join(texts).encode("ascii")
        return Canonical(np.frombuffer(joined, np.uint8), _offsets(texts), True)
    parts = [text.encode("utf-8") for text in texts]
    return Canonical(np.frombuffer(b"".join(parts), np.uint8), _offsets(parts), False)


def _offsets(parts: Sequence[str] | Sequence[bytes]) -> Ints:
    return np.fromiter(accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)


def squeeze(texts: Sequence[str], table: separators.Table, kernels: TextKernels) -> Canonical:
    """Collapse each run of separators to one space, strip separators at both ends, and fold ASCII case by the table."""
    raw = from_texts(texts)
    data, offsets = kernels.squeeze(raw.data, raw.offsets, table)
    # Read-only as the arrays of `from_texts`, so that numba compiles the kernels for one type only.
    data.flags.writeable = False
    return Canonical(data, offsets, raw.ascii)


def low_bytes(texts: Canonical) -> tuple[NDArray[np.uint8], Ints]:
    """Return the low byte of each UTF-16 unit, and the offsets of the documents in these bytes, int64 of n + 1."""
    if texts.ascii:
        return texts.data, texts.offsets
    units = ((texts.data & 0xC0) != 0x80).astype(np.int64) + (texts.data >= 0xF0)
    before = np.concatenate(([0], np.cumsum(units)))
    utf16 = texts.data.tobytes().decode("utf-8").encode("utf-16-le")
    return np.frombuffer(utf16, np.uint8)[::2].copy(), before[texts.offsets]


def make_fold(rules: Normalise) -> Callable[[str], str]:
    """Return the function that performs the steps before masks and kernels.

    These are the removal of HTML and everything else in `normalise`, except whitespace and the case of ASCII text.
    """
    refuse_repeated_lines(rules)
    drops_invisible = rules.invisible == "drop"
    folds_confusables = rules.confusables == "fold"
    read_page = page_reader(rules.html) if rules.html else None

    def fold(text: str) -> str:
        if read_page is not None and ("<" in text or "&" in text):
            text = read_page(text)
        if not text.isascii() and drops_invisible:
            text = drop(text)
        if folds_confusables:
            text = confusables.join_divided(text)
        return text if text.isascii() else _fold_unicode(text, rules)

    return fold


def _fold_unicode(text: str, rules: Normalise) -> str:
    text = _to_form(text, rules)
    if rules.confusables == "fold":
        text = confusables.to_latin(text)

    match rules.case:
        case "none":
            folded = text
        case "lower":
            folded = text.lower()
        case "casefold":
            folded = text.casefold()
        case _:
            assert_never(rules.case)
    if rules.confusables == "fold":
        folded = confusables.small_to_latin(folded)
    # The text may no longer be in normal form: folding the case changes U+0345, and a mark may combine with a Latin
    # letter that has replaced a look-alike.
    return folded if folded is text else _to_form(folded, rules)


def _to_form(text: str, rules: Normalise) -> str:
    match rules.unicode:
        case "none":
            return text
        case "nfc":
            return unicodedata.normalize("NFC", sort_long_runs(text, "NFD"))
        case "nfkc":
            return unicodedata.normalize("NFKC", sort_long_runs(text, "NFKD"))
        case _:
            assert_never(rules.unicode)
