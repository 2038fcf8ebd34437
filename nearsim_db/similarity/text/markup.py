"""Extraction of the visible text of an HTML page, in one pass over the tokens of the page.

No tree is built, because the tree construction of the HTML standard takes a time quadratic in the length of pages with
deeply nested tags, formatting that is never closed, or thousands of attributes. Tokens are those of section 13.2.5 of
the standard; character references such as &eacute; &#233; and &#xE9; follow section 13.2.5.72.
"""

import re
from collections.abc import Iterator
from html.entities import html5
from typing import Literal

from nearsim_db.similarity.text.clean import REPLACEMENT

_LONGEST_WITHOUT_SEMICOLON = 6
_REFERENCE = re.compile(
    r"&(?:\#(?:[xX](?P<hexadecimal>[0-9A-Fa-f]++)|(?P<decimal>[0-9]++));?|(?P<name>[A-Za-z][A-Za-z0-9]*+;?))"
)
_MAX_DIGITS = 7
_CHARACTERS_AT_ONCE = 1_000_000
# A reference to the number of a C1 control means the character of Windows-1252.
_CONTROLS = {
    0x80 + place: character
    for place, character in enumerate("€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ")
}


def decode(text: str) -> str:
    """Replace character references by the characters. A reference to an unknown name stays as it is."""
    if len(text) <= _CHARACTERS_AT_ONCE:
        return _REFERENCE.sub(_character, text) if "&" in text else text
    return "".join(_REFERENCE.sub(_character, piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """Cut a text before an "&" about once in a million characters, to limit the memory for the matches in a piece."""
    begin = 0
    while begin < len(text):
        begin_of_reference = text.find("&", begin + _CHARACTERS_AT_ONCE // 2)
        end = len(text) if begin_of_reference < 0 else begin_of_reference
        yield text[begin:end]
        begin = end


def _character(match: re.Match[str]) -> str:
    name = match["name"]
    if name is not None:
        return _named(name)
    if match["decimal"] is not None:
        return _numbered(match["decimal"], 10)
    return _numbered(match["hexadecimal"], 16)


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
    code = int(significant or "0", base) if len(significant) <= _MAX_DIGITS else -1
    if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
        return REPLACEMENT
    return _CONTROLS.get(code) or chr(code)


_Kind = Literal["inline", "hidden", "plain", "references", "template", "end of template"]

# Quantifiers are possessive, so that the pattern never backtracks. A quotation mark quotes only at the beginning of a
# value, and only if there is a closing one; otherwise it is part of the value.
_ATTRIBUTE = r"""
    [ \t\n\f\r/]*+ =?+ [^ \t\n\f\r/>=]*+
    (?: [ \t\n\f\r]*+ = [ \t\n\f\r]*+ (?: "[^"]*+" | '[^']*+' | (?!["'>])[^ \t\n\f\r>]++ ) )?+
"""
_TAG = rf"(?P<tag> /?+ [A-Za-z] [^ \t\n\f\r/>]*+ ) (?: (?!>) {_ATTRIBUTE} )*+ >"
_MARKUP = re.compile(rf"< (?: {_TAG} | !(?P<comment>--) | [!?/] [^>]*+ > )", re.VERBOSE)
_COMMENT_END = re.compile(r"-->|(?<!<!)--!>")
_SCRIPT_MARK = re.compile(r"<!(?=--)|-->|<(?P<tag>/?script)(?=[ \t\n\f\r/>])", re.IGNORECASE)

_MAX_PARTS = 100_000
_INLINE_ELEMENTS = (
    "a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd mark nobr q s samp small span strike strong sub "
    "sup tt u var wbr"
)
_INLINE = frozenset(_INLINE_ELEMENTS.split())
_HIDDEN = frozenset({"script", "style", "noscript", "title", "iframe", "noembed", "noframes"})
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys([*_INLINE, *(f"/{name}" for name in _INLINE | _HIDDEN)], "inline"),
    **dict.fromkeys(_HIDDEN, "hidden"),
    "xmp": "plain",
    "textarea": "references",
    "template": "template",
    "/template": "end of template",
}
_ENDS = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE)
    for name, kind in _KINDS.items()
    if kind in ("hidden", "plain", "references")
}


def strip_html(page: str, *, in_lines: bool = False) -> str:
    """Return the visible text of a page: without tags, comments and scripts, and with decoded character references.

    Elements and comments separate words, inline markup does not; with `in_lines` they separate lines, and line ends of
    the page do not. A "<" without a following ">" is text. The time is linear in the length of the page.
    """
    return _VisibleText(page, "\n" if in_lines else " ").visible_text()


class _VisibleText:
    """Collects the visible text of one page."""

    def __init__(self, page: str, separator: str) -> None:
        self._page = page
        self._separator = separator
        self._closed = page.rfind(">") + 1  # no markup begins after this place
        self._joined: list[str] = []  # parts that were joined to save memory
        self._parts: list[str] = []
        self._templates = 0  # number of open template elements, whose content is not visible

    def visible_text(self) -> str:
        position = 0
        while (token := _MARKUP.search(self._page, position, self._closed)) is not None:
            if token.start() > position:
                self._add(decode(self._page[position : token.start()]))
            position = token.end()
            if token["tag"] is not None:
                position = self._after_tag(token["tag"].lower(), position)
                continue
            self._separate()
            if token["comment"] is not None:
                end = _COMMENT_END.search(self._page, position - 2)
                position = len(self._page) if end is None else end.end()
        self._add(decode(self._page[position:]))
        return "".join((*self._joined, *self._parts)).removesuffix(self._separator)

    def _after_tag(self, tag: str, position: int) -> int:
        """Return the place at which to continue after a tag.

        For an element whose content is not parsed as markup, such as script, the place is its end tag.
        """
        kind = _KINDS.get(tag)
        if kind is None:
            self._separate()
        elif kind == "template":
            self._templates += 1
        elif kind == "end of template":
            self._templates = max(0, self._templates - 1)
        elif kind != "inline":
            return self._after_content(tag, kind, position)
        return position

    def _after_content(self, tag: str, kind: _Kind, position: int) -> int:
        if tag == "script":
            return self._end_of_script(position)
        end_tag = _ENDS[tag].search(self._page, position)
        end = len(self._page) if end_tag is None else end_tag.start()
        if kind != "hidden":
            content = self._page[position:end]
            self._separate()
            self._add(content if kind == "plain" else decode(content))
        return end

    def _end_of_script(self, position: int) -> int:
        """Return the end of a script. The script may contain <!-- <script> ... </script> -->."""
        in_comment = in_inner_script = False
        for mark in _SCRIPT_MARK.finditer(self._page, position):
            if mark["tag"] is None:
                in_comment = mark[0] == "<!"
                in_inner_script &= in_comment
            elif mark["tag"][0] != "/":
                in_inner_script = in_comment
            elif in_inner_script:
                in_inner_script = False
            else:
                return mark.start()
        return len(self._page)

    def _add(self, text: str) -> None:
        if self._separator == "\n":
            text = text.replace("\n", " ")
        if text and not self._templates:
            if len(self._parts) > _MAX_PARTS:  # each part takes some 60 bytes besides its text
                last = self._parts.pop()
                self._joined.append("".join(self._parts))
                self._parts = [last]
            self._parts.append(text)

    def _separate(self) -> None:
        if self._parts and self._parts[-1] != self._separator:
            self._parts.append(self._separator)
