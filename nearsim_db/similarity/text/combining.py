"""Long runs of combining characters, for which unicodedata takes quadratic time.

It sorts each run by combining class with an insertion sort, which is fast only on runs that are short or sorted.
Sorting a run beforehand gives an equivalent text, so the normal form is the same.
"""

import re
import unicodedata
from functools import cache
from itertools import groupby
from typing import Literal

_LONG = 32
# Starters whose decomposition begins with a combining character.
STARTERS = "\u0f73\u0f75\u0f81\uff9e\uff9f"


def sort_long_runs(text: str, form: Literal["NFD", "NFKD"]) -> str:
    """Return a text with the same normal form (`form` or its composed counterpart) and sorted long runs."""
    if not _mark().search(text[_LONG - 1 :: _LONG]):
        return text  # a long run has a mark at one of these places
    return _long_runs().sub(lambda found: _sorted(found[0], form), text)


def _sorted(run: str, form: Literal["NFD", "NFKD"]) -> str:
    decomposed = "".join(unicodedata.normalize(form, character) for character in run)
    parts: list[str] = []
    for combines, group in groupby(decomposed, lambda character: unicodedata.combining(character) > 0):
        characters = list(group)
        parts += sorted(characters, key=unicodedata.combining) if combines else characters
    return "".join(parts)


@cache
def _marks() -> str:
    """Return the class of characters that may combine; beyond U+FFFF any, which is faster than a long list."""
    marks = "".join(character for character in map(chr, range(0x10000)) if unicodedata.combining(character))
    return f"[{marks}{STARTERS}\U00010000-\U0010ffff]"


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(_marks())


@cache
def _long_runs() -> re.Pattern[str]:
    return re.compile(f"{_marks()}{{{_LONG},}}")
