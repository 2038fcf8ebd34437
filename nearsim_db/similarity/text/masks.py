"""Masks: the parts in which texts made from one template differ, such as numbers, are each replaced by one token.

Masking takes linear time: a pattern matches only from the beginning of a run of its characters, or has a bounded
length.
"""

import re
from collections.abc import Sequence

import numpy as np

from nearsim_db.similarity.arrays import Ints

SCHEME_VERSION = 1

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = "(?:mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun)(?:day)?"
_TIME = (
    r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?![\d:])(?:[ ]?[ap]\.?m\b)?"
    r"(?:[ ]?(?:z|utc|gmt)\b|[ ]?[+-]\d\d:?\d\d\b)?"
)
_DAY = (
    r"\d{4}(?:-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.)\d{1,2}(?!\.?\d)"
    r"|\d{1,2}(?:-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.)(?:\d{4}|\d\d)(?!\.?\d)"
    rf"|(?:{_WEEKDAY},?[ ])?\d{{1,2}}(?:st|nd|rd|th)?[ /.-]{{1,2}}{_MONTH}\b(?:[.]?,?[ /.-]\d{{4}}\b)?"
    rf"|(?:{_WEEKDAY},?[ ])?{_MONTH}\.?[ ]{{1,2}}\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[ ]\d{{4}}\b)?"
)

# The token and the pattern of each mask. No text contains these tokens, except the token of numbers. If several
# patterns match at the same place, the first of them is used.
_MASKS = {
    "urls": ("0url", r"(?<![^\W_])(?:[a-z][a-z0-9+]{0,15}://|www\.)[^\s<>\"]*[^\s<>\".,:;!?'(){}\[\]]"),
    "emails": ("0email", r"(?<![\w.%+-])[\w.%+-]++@[\w-]++(?:\.[\w-]++)++"),
    "uuids": ("0uuid", r"(?<![^\W_])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![^\W_])"),
    "paths": (
        "0path",
        r"(?<![\w/.~:\\-])(?:(?:~|\.{1,2})(?:/[\w.@+%~-]++)++|(?:/[\w.@+%~-]++){2,}+)/?"
        r"|(?<![^\W_])(?:[a-z]:|(?<!\\)\\(?=\\))(?:[\\/][^\s\\/:*?\"<>|]++)++",
    ),
    "dates": (
        "0date",
        # Look for a digit or the first letter of a weekday or month first: this takes a third less time.
        rf"(?=[\dadfjmnostw])(?<![^\W_])(?<!\d\.)"
        rf"(?:(?:{_DAY})(?:(?:t|,?[ ]|:|[ ]at[ ]){_TIME})?|\d{{8}}t\d{{4,6}}z?\b|{_TIME})",
    ),
    "hex": (
        "0hex",
        r"(?<![^\W_])(?:0x[0-9a-f]++|(?=[a-f]*+\d)(?=\d*+[a-f])[0-9a-f]{7,}+|(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2})"
        r"(?![^\W_])",
    ),
    "numbers": ("0", r"\d++(?:[.,:]\d++)*+"),
}


class Masks:
    """Replaces the parts of texts that are named in `normalise.mask`. Threads may share it."""

    def __init__(self, names: Sequence[str]) -> None:
        patterns = [f"(?P<{name}>{pattern})" for name, (_, pattern) in _MASKS.items() if name in names]
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE)

    def __call__(self, text: str) -> str:
        """Return a text in which each part is replaced by a token."""
        return self._pattern.sub(_token, text)

    def located(self, text: str, begins: Ints, ends: Ints) -> tuple[str, Ints, Ints]:
        """Return a masked text, and the begin and end of the part that each of its characters comes from.

        `begins` and `ends` are the places of the characters of `text`. All characters of a token have the place of the
        part that the token replaces.
        """
        parts: list[str] = []
        places: list[tuple[Ints, Ints]] = []
        at = 0
        # None stands for the end of the text, so that the text after the last match is kept.
        for match in [*self._pattern.finditer(text), None]:
            start, end = match.span() if match else (len(text), len(text))
            parts.append(text[at:start])
            places.append((begins[at:start], ends[at:start]))
            if match:
                token = _token(match)
                parts.append(token)
                places.append((np.full(len(token), begins[start]), np.full(len(token), ends[end - 1])))
            at = end

        return (
            "".join(parts),
            np.concatenate([part_begins for part_begins, _ in places]),
            np.concatenate([part_ends for _, part_ends in places]),
        )


def _token(match: re.Match[str]) -> str:
    return _MASKS[str(match.lastgroup)][0]
