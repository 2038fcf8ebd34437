"""Text in columns: widths in character cells, line breaks, alignment."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

_INVISIBLE = ("Mn", "Me", "Cf")  # combining marks and format characters
_PART_ENDS = re.compile(r"(?<=[_ ])")


def cell_width(text: str) -> int:
    """Return the number of cells that a terminal needs for a text: two for wide characters."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


@cache
def _character_width(character: str) -> int:
    if unicodedata.category(character) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return a text, truncated with an ellipsis if it is wider."""
    return text if cell_width(text) <= width else f"{_beginning(text, width - 1)}…"


def wrap(text: str, width: int) -> list[str]:
    """Break each line of a text between words, and words that are wider."""
    lines: list[str] = []
    for line in text.split("\n"):
        current = ""
        for word in _fitting(line.split(" "), width):
            longer = f"{current} {word}" if current else word
            if cell_width(longer) > width and current:
                lines.append(current)
                longer = word
            current = longer
        lines.append(current)
    return lines


def heading_parts(heading: str) -> list[str]:
    """Split a heading after its spaces and underscores."""
    return [part for part in _PART_ENDS.split(heading) if part]


def wrap_heading(heading: str, width: int) -> list[str]:
    """Break a heading after spaces and underscores."""
    lines = [""]
    for part in heading_parts(heading):
        if lines[-1] and cell_width(f"{lines[-1]}{part}".rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def beside(
    cells: Sequence[Sequence[str]], widths: Sequence[int], gap: int, right: Sequence[bool]
) -> list[str]:
    """Return the lines of a row, whose cells are lists of lines; `right` says which columns are aligned right."""
    spaced = []
    for number in range(max(map(len, cells))):
        padded = (
            _padded(cell[number] if number < len(cell) else "", width, to_right)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        )
        spaced.append((" " * gap).join(padded).rstrip())
    return spaced


def _padded(text: str, width: int, to_right: bool) -> str:
    blanks = " " * (width - cell_width(text))
    return blanks + text if to_right else text + blanks


def _fitting(words: Sequence[str], width: int) -> Iterator[str]:
    for word in words:
        rest = word
        while cell_width(rest) > width:
            part = _beginning(rest, width) or rest[0]
            yield part
            rest = rest[len(part) :]
        yield rest


def _beginning(text: str, width: int) -> str:
    """Return as much of a text as fits."""
    used = 0
    for position, character in enumerate(text):
        used += _character_width(character)
        if used > width:
            return text[:position]
    return text
