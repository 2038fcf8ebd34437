"""Separator tables: which code points separate words, over all of Unicode."""

import re
import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

CODE_POINTS = 0x110000
SEPARATOR = 0
KEEP = 1

Table = NDArray[np.uint8]

# Every C0 and C1 control, DEL, every Unicode space, ZERO WIDTH SPACE and the byte order mark.
_SPACES = (
    (0x00, 0x20), (0x7F, 0xA0), (0x1680, 0x1680), (0x2000, 0x200B), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
_JOINERS = (0x200C, 0x200D)
_RANGES_WITH_MARKS = ((0x300, 0x20000), (0xE0000, 0xE0200))


@cache
def spaces(fold_ascii: bool) -> Table:
    """Separate at spaces and controls; `_finish` describes the other entries."""
    table = np.full(CODE_POINTS, KEEP, np.uint8)
    for first, last in _SPACES:
        table[first : last + 1] = SEPARATOR
    return _finish(table, fold_ascii)


@cache
def unicode_words(fold_ascii: bool) -> Table:
    r"""Separate at everything but letters, marks, numbers, connectors and joiners (\w of UTS #18, Annex C)."""
    table = np.full(CODE_POINTS, KEEP, np.uint8)
    # Python matches runs of \W in less time than it searches for \w among the many unassigned code points.
    for run in re.finditer(r"\W+", _all_code_points()):
        table[run.start() : run.end()] = SEPARATOR
    for first, last in _RANGES_WITH_MARKS:
        codes = (np.flatnonzero(table[first:last] == SEPARATOR) + first).astype("<u4")
        # Unassigned code points are not printable, marks are.
        for character in filter(str.isprintable, codes.tobytes().decode("utf-32-le", "surrogatepass")):
            if unicodedata.category(character) in ("Mn", "Mc", "Me", "Pc"):
                table[ord(character)] = KEEP
    table[list(_JOINERS)] = KEEP
    return _finish(table, fold_ascii)


def _all_code_points() -> str:
    """Return every code point at its own place, with spaces for surrogates, which are no characters."""
    # A tenth of a second of joined chr() would be an eighth of what a small dedupe takes.
    numbers = np.arange(CODE_POINTS, dtype="<u4")
    numbers[0xD800:0xE000] = ord(" ")
    return numbers.tobytes().decode("utf-32-le")


@cache
def ascii_words(fold_ascii: bool) -> Table:
    """Separate at everything but a to z and 0 to 9."""
    table = np.full(CODE_POINTS, SEPARATOR, np.uint8)
    for first, last in (("a", "z"), ("0", "9")):
        table[ord(first) : ord(last) + 1] = KEEP
    if fold_ascii:
        table[ord("A") : ord("Z") + 1] = KEEP
    return _finish(table, fold_ascii)


@cache
def nothing(fold_ascii: bool) -> Table:
    """Separate nowhere."""
    return _finish(np.full(CODE_POINTS, KEEP, np.uint8), fold_ascii)


def _finish(table: Table, fold_ascii: bool) -> Table:
    """Below 128 a kept entry is the byte to write instead, which makes ASCII case folding free."""
    for code in range(128):
        if table[code] != SEPARATOR:
            table[code] = ord(chr(code).lower()) if fold_ascii else code
    if table[0] != SEPARATOR:
        table[0] = KEEP
    table.flags.writeable = False
    return table
