"""Character references of HTML, such as &eacute; &#233; and &#xE9;, by the HTML standard, section 13.2.5.72."""

import re
from html.entities import html5

from nearsim_db.similarity.text.clean import REPLACEMENT

_LONGEST_WITHOUT_SEMICOLON = 6
_REFERENCE = re.compile(
    r"&(?:\#(?:[xX](?P<hexadecimal>[0-9A-Fa-f]++)|(?P<decimal>[0-9]++));?|(?P<name>[A-Za-z][A-Za-z0-9]*+;?))"
)
_MOST_DIGITS = 7
# The C1 controls are read as Windows-1252.
_CONTROLS = {
    0x80 + place: character
    for place, character in enumerate("€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ")
}


def decode(text: str) -> str:
    """Replace character references; invalid ones that name no character stay as they are."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    name = found["name"]
    if name is not None:
        return _named(name)
    if found["decimal"] is not None:
        return _numbered(found["decimal"], 10)
    return _numbered(found["hexadecimal"], 16)


def _named(name: str) -> str:
    exact = html5.get(name)
    if exact is not None:
        return exact
    for length in range(min(len(name), _LONGEST_WITHOUT_SEMICOLON), 1, -1):
        prefix = html5.get(name[:length])
        if prefix is not None:
            return prefix + name[length:]
    return f"&{name}"


def _numbered(digits: str, base: int) -> str:
    significant = digits.lstrip("0")
    code = int(significant or "0", base) if len(significant) <= _MOST_DIGITS else -1
    if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
        return REPLACEMENT
    return _CONTROLS.get(code) or chr(code)
