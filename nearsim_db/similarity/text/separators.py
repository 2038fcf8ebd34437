"""Separator tables: for every code point of Unicode, whether it separates words."""

import re
import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

CODE_POINTS = 0x110000
SEPARATOR = 0
KEEP = 1

Table = NDArray[np.uint8]

# All C0 and C1 controls, DEL, all Unicode spaces, ZERO WIDTH SPACE, and the byte order mark.
_SPACES = (
    (0x00, 0x20), (0x7F, 0xA0), (0x1680, 0x1680), (0x2000, 0x200B), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
_JOINERS = (0x200C, 0x200D)
_RANGES_WITH_MARKS = ((0x300, 0x20000), (0xE0000, 0xE0200))


@cache
def spaces(fold_ascii: bool) -> Table:
    """Return the table that separates words at spaces and controls; see `_finish` for the other entries."""
    table = np.full(CODE_POINTS, KEEP, np.uint8)
    for first, last in _SPACES:
        table[first : last + 1] = SEPARATOR
    return _finish(table, fold_ascii)


@cache
def unicode_words(fold_ascii: bool) -> Table:
    r"""Return the table of words of letters, marks, numbers, connectors and joiners (\w of UTS #18, Annex C)."""
    table = np.full(CODE_POINTS, KEEP, np.uint8)
    # Matching runs of \W is faster than searching for \w, because there are many unassigned code points.
    for run in re.finditer(r"\W+", _all_code_points()):
        table[run.start() : run.end()] = SEPARATOR
    for first, last in _RANGES_WITH_MARKS:
        codes = (np.flatnonzero(table[first:last] == SEPARATOR) + first).astype("<u4")
        # isprintable excludes unassigned code points and keeps marks.
        for character in filter(str.isprintable, codes.tobytes().decode("utf-32-le", "surrogatepass")):
            if unicodedata.category(character) in ("Mn", "Mc", "Me", "Pc"):
                table[ord(character)] = KEEP
    table[list(_JOINERS)] = KEEP
    return _finish(table, fold_ascii)


def _all_code_points() -> str:
    """Return a string with every code point at its own index, and spaces in the place of surrogates."""
    # Joining the results of chr() would take a tenth of a second, an eighth of the time of a small dedupe.
    numbers = np.arange(CODE_POINTS, dtype="<u4")
    numbers[0xD800:0xE000] = ord(" ")
    return numbers.tobytes().decode("utf-32-le")


@cache
def ascii_words(fold_ascii: bool) -> Table:
    """Return the table of words of a to z and 0 to 9."""
    table = np.full(CODE_POINTS, SEPARATOR, np.uint8)
    for first, last in (("a", "z"), ("0", "9")):
        table[ord(first) : ord(last) + 1] = KEEP
    if fold_ascii:
        table[ord("A") : ord("Z") + 1] = KEEP
    return _finish(table, fold_ascii)


@cache
def nothing(fold_ascii: bool) -> Table:
    """Return the table in which no code point separates words."""
    return _finish(np.full(CODE_POINTS, KEEP, np.uint8), fold_ascii)


def _finish(table: Table, fold_ascii: bool) -> Table:
    """Replace KEEP for ASCII characters by the byte to write, which is lower case with `fold_ascii`.

    So case folding needs no further pass over ASCII texts.
    """
    for code in range(128):
        if table[code] != SEPARATOR:
            table[code] = ord(chr(code).lower()) if fold_ascii else code
    if table[0] != SEPARATOR:
        table[0] = KEEP
    table.flags.writeable = False
    return table
