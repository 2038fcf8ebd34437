"""Masks: parts in which texts of one template differ, each replaced by one token.

A pattern begins only where a run of its characters does, or has a bounded length, so that masking takes linear time.
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

# The token of each mask, a word that nobody writes but for the number, and its pattern. Where several begin at one
# place the first counts.
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
        # The first letters of weekdays and months, which takes a third less time.
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
    """Replaces the parts of texts that a recipe names in `normalise.mask`; threads may share it."""

    def __init__(self, names: Sequence[str]) -> None:
        patterns = [f"(?P<{name}>{pattern})" for name, (_, pattern) in _MASKS.items() if name in names]
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE)

    def __call__(self, text: str) -> str:
        """Return a text with one token for each part."""
        return self._pattern.sub(_token, text)

    def located(self, text: str, begins: Ints, ends: Ints) -> tuple[str, Ints, Ints]:
        """Return what a call does, with the begin and the end of what each character is made of.

        `begins` and `ends` are those of the characters of `text`, int64; a token is made of all that it replaces.
        """
        parts: list[str] = []
        chosen: list[tuple[Ints, Ints]] = []
        at = 0
        # The text after the last match is a part, too.
        for match in [*self._pattern.finditer(text), None]:
            start, end = match.span() if match else (len(text), len(text))
            parts.append(text[at:start])
            chosen.append((begins[at:start], ends[at:start]))
            if match:
                token = _token(match)
                parts.append(token)
                chosen.append((np.full(len(token), begins[start]), np.full(len(token), ends[end - 1])))
            at = end

        return (
            "".join(parts),
            np.concatenate([part for part, _ in chosen]),
            np.concatenate([other for _, other in chosen]),
        )


def _token(match: re.Match[str]) -> str:
    return _MASKS[str(match.lastgroup)][0]
