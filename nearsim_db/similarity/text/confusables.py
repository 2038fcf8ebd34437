"""Spellings that avoid filters: letters of other scripts that look like Latin ones, and words cut by dots or dashes.

Capitals that look like Latin ones often have small letters that do not. They are taken for Latin ones in words that
have a Latin letter too, and in words of such capitals alone; elsewhere their small letters count, so that a word of
another script remains the same word at the beginning of a sentence.
"""

import re

from nearsim_db.similarity.text.look_alikes import LOOK_ALIKES, UNICODE_VERSION

VERSION = f"1, Unicode {UNICODE_VERSION}"

_LATIN = {ord(alike): letter for letter, characters in LOOK_ALIKES.items() for alike in characters}
_SMALL = {code: letter for code, letter in _LATIN.items() if letter.islower()}
_CAPITALS = "".join(chr(code) for code, letter in _LATIN.items() if letter.isupper())

_MIXED_WORD = re.compile(rf"(?<!\w)(?:(?=[^\Wa-zA-Z]*+[a-zA-Z])\w++|[{_CAPITALS}]{{2,}}+(?!\w))")
# Three letters or more with the same mark between them; it begins neither inside a word nor after another such letter.
_DIVIDERS = r"._*·•\-\uff0e\uff3f\uff0a\uff0d"
_DIVIDED_WORD = re.compile(
    rf"(?<!\w)(?<!\w[{_DIVIDERS}])[^\W\d_](?P<mark>[{_DIVIDERS}])[^\W\d_](?:(?P=mark)[^\W\d_])++(?!\w)"
)


def join_divided(text: str) -> str:
    """Return a text with words such as f.r.e.e written as one."""
    return _DIVIDED_WORD.sub(lambda match: match[0].replace(match["mark"], ""), text)


def to_latin(text: str) -> str:
    """Replace look-alikes in words that have Latin letters, or nothing but capitals, before the case is changed."""
    return _MIXED_WORD.sub(lambda match: match[0].translate(_LATIN), text)


def small_to_latin(text: str) -> str:
    """Replace small look-alikes in all words."""
    return text.translate(_SMALL)
