"""Spellings that evade filters: letters of other scripts that look like Latin letters, and words cut by dots or dashes.

Many capitals look like a Latin letter although their small letters do not. Such a capital is replaced by the Latin
letter only in a word that also has a Latin letter, or that consists of such capitals. In all other words it becomes its
own small letter, so that a word of another script stays the same word at the beginning of a sentence.
"""

import re

from nearsim_db.similarity.text.look_alikes import LOOK_ALIKES, UNICODE_VERSION

VERSION = f"1, Unicode {UNICODE_VERSION}"

_LATIN = {ord(alike): letter for letter, characters in LOOK_ALIKES.items() for alike in characters}
_SMALL = {code: letter for code, letter in _LATIN.items() if letter.islower()}
_CAPITALS = "".join(chr(code) for code, letter in _LATIN.items() if letter.isupper())

_MIXED_WORD = re.compile(rf"(?<!\w)(?:(?=[^\Wa-zA-Z]*+[a-zA-Z])\w++|[{_CAPITALS}]{{2,}}+(?!\w))")
# Three or more letters, with the same mark between all of them. The first letter must not follow a letter or digit, nor
# a letter or digit and a mark.
_DIVIDERS = r"._*·•\-\uff0e\uff3f\uff0a\uff0d"
_DIVIDED_WORD = re.compile(
    rf"(?<!\w)(?<!\w[{_DIVIDERS}])[^\W\d_](?P<mark>[{_DIVIDERS}])[^\W\d_](?:(?P=mark)[^\W\d_])++(?!\w)"
)


def join_divided(text: str) -> str:
    """Remove the marks between the letters of divided words, such as f.r.e.e."""
    return _DIVIDED_WORD.sub(lambda match: match[0].replace(match["mark"], ""), text)


def to_latin(text: str) -> str:
    """Replace look-alikes in words that have a Latin letter, or consist of capital look-alikes.

    This must precede the conversion of case, which replaces the capitals.
    """
    return _MIXED_WORD.sub(lambda match: match[0].translate(_LATIN), text)


def small_to_latin(text: str) -> str:
    """Replace the look-alikes of small letters in all words."""
    return text.translate(_SMALL)
