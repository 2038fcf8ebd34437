"""Tables for a terminal: columns, name-value lists and check results; widths are in character cells."""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TextIO

from nearsim_db.cli.output.terminal import paint, visible, width_of

GAP, NARROW_GAP, _FACTS_GAP = 3, 2, 2
# Cells that a shortened column keeps, and cells that count for it when columns are left out.
_SHORTEST, _READABLE = 12, 20
# Combining marks and format characters.
_INVISIBLE_CATEGORIES = ("Mn", "Me", "Cf")
_SPACE_ENDS, _PART_ENDS = (
    re.compile(r"(?<= )"),
    re.compile(r"(?<=[_ ])"),
)  # of words, and of parts of headings
# Numbers that commands take are written without separators.
_IDENTIFIER = re.compile(r"generation|cluster|replaces|(.+[ _])?id")
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    shorten: Sequence[str] = (),
    wrap: Sequence[str] = (),
    decimals: Mapping[str, int] | None = None,
    stream: TextIO | None = None,
) -> None:
    """Print rows under a heading, numbers right-aligned, floats with four decimals or those of `decimals`.

    If the terminal is too narrow, the space between columns shrinks first; then columns of `wrap` break between words
    and columns of `shorten` are truncated, down to 12 characters. No other column is cut: the table may then be wider
    than the terminal.
    """
    places = decimals or {}
    values = [list(row) for row in rows]
    cells = [
        [_cell(name, value, places.get(name, 4)) for name, value in zip(columns, row, strict=True)]
        for row in values
    ]

    target = stream or sys.stdout
    available = width_of(target)
    gap = GAP if _total(_content_widths(columns, cells), GAP) <= available else NARROW_GAP
    widths = _widths(columns, cells, shorten, wrap, available, gap)
    numeric = [all(isinstance(row[at], int | float | None) for row in values) for at in range(len(columns))]

    def lines(texts: Sequence[str], *, is_heading: bool = False) -> list[str]:
        broken = [
            wrap_text(text, width, _PART_ENDS if is_heading else _SPACE_ENDS)
            if name in wrap
            else [_cut(text, width)]
            for name, text, width in zip(columns, texts, widths, strict=True)
        ]
        if is_heading:
            height = max(map(len, broken))
            # Shorter headings end on the last line.
            broken = [[""] * (height - len(cell)) + cell for cell in broken]
        return _beside(broken, widths, gap, numeric)

    heading = [
        paint(line, "bold", target) for line in lines([visible(name) for name in columns], is_heading=True)
    ]
    body = [line for row_cells in cells for line in lines(row_cells)]
    _write([*heading, "─" * _total(widths, gap), *body], target)


def print_fitting(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    optional: Sequence[str],
    shorten: Sequence[str] = (),
    wrap: Sequence[str] = (),
    gap: int = NARROW_GAP,
    stream: TextIO | None = None,
) -> Sequence[str]:
    """Print a table without the first of the `optional` columns that the terminal is too narrow for; return them.

    Columns of `shorten` count with up to 20 characters, columns of `wrap` as they are once broken between words, and
    `gap` as the space between columns.
    """
    width = width_of(stream or sys.stdout)
    for amount in range(len(optional) + 1):
        left_out = optional[:amount]
        kept = [at for at, name in enumerate(columns) if name not in left_out]
        names, values = [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]

        cells = [
            [
                _cut(visible(value), _READABLE) if name in shorten else _cell(name, value, 4)
                for name, value in zip(names, row, strict=True)
            ]
            for row in values
        ]
        if _total(_widths(names, cells, (), wrap, width, gap), gap) <= width:
            break

    # Without all optional columns the table may still be too wide.
    print_table(names, values, shorten=shorten, wrap=wrap, stream=stream)
    return left_out


def _cell(name: str, value: object, decimals: int) -> str:
    return f"{value:,.{decimals}f}" if isinstance(value, float) else _shown(name, value)


def _shown(name: str, value: object) -> str:
    """Return a value as readable text, a number that identifies something without separators."""
    is_identifier = isinstance(value, int) and not isinstance(value, bool) and _IDENTIFIER.fullmatch(name)
    return str(value) if is_identifier else visible(value)


def _widths(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    shorten: Sequence[str],
    wrap: Sequence[str],
    available: int,
    gap: int,
) -> list[int]:
    """Return the width of each column: the width of its content, less in columns that may wrap or be shortened."""
    longest = [max((_cell_width(row[at]) for row in cells), default=0) for at in range(len(columns))]
    widths = _content_widths(columns, cells)

    excess = _total(widths, gap) - available
    # Headings longer than their cells wrap first.
    for at in sorted(range(len(columns)), key=lambda at: longest[at] >= _cell_width(columns[at])):
        if excess > 0 and columns[at] in shorten:
            excess -= _shorten(widths, [at for at, name in enumerate(columns) if name in shorten], excess)
        elif excess > 0 and columns[at] in wrap:
            heading = [part.rstrip() for part in _PART_ENDS.split(columns[at])]

            # A column that wraps is no narrower than its longest word, so that no word breaks.
            words = [
                _cell_width(word) for word in (*heading, *(word for row in cells for word in row[at].split()))
            ]
            least = min(widths[at], max([min(_SHORTEST, longest[at]), *words]))
            reduction = min(excess, widths[at] - least)
            widths[at] -= reduction
            excess -= reduction

    return widths


def _shorten(widths: list[int], chosen: Sequence[int], excess: int) -> int:
    """Reduce the widest of some columns first, each down to 12 characters; return by how much in all."""
    reduced = 0
    while reduced < excess:
        at = max(chosen, key=lambda at: widths[at])
        if widths[at] <= _SHORTEST:
            break
        widths[at] -= 1
        reduced += 1
    return reduced


def _content_widths(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(_cell_width(name), *(_cell_width(row[at]) for row in cells), 0) for at, name in enumerate(columns)
    ]


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def print_facts(values: Mapping[str, object], stream: TextIO | None = None, width: int | None = None) -> None:
    """Print names and values, one per line, on standard output by default; wrapped to `width` if given."""
    rows = []
    for name, value in values.items():
        parts = value.split("\n") if isinstance(value, str) else [value]
        rows.append((visible(name), "\n".join(_shown(name, part) for part in parts)))
    _print_wrapped(rows, lambda name: "bold", stream, width)


def print_named(values: Mapping[str, object]) -> None:
    """Print keys and values, the keys in words."""
    print_facts({name.replace("_", " "): value for name, value in values.items()})


def print_checks(
    findings: Iterable[tuple[str, str, str, str]], stream: TextIO | None = None, width: int | None = None
) -> None:
    """Print (verdict, check, finding, advice), one per line, the advice below; wrapped to `width` if given."""
    rows = [
        # A message of the server may have lines and tabs.
        (
            verdict,
            visible(check),
            "\n".join(visible(" ".join(text.split())) for text in (finding, advice) if text),
        )
        for verdict, check, finding, advice in findings
    ]
    _print_wrapped(rows, _COLOURS.__getitem__, stream, width)


def _print_wrapped(
    rows: Sequence[Sequence[str]], style_of: Callable[[str], str], stream: TextIO | None, width: int | None
) -> None:
    """Print columns without headings: the first in a style, the last wrapped."""
    target = stream or sys.stdout
    widths = [max(map(_cell_width, column)) for column in list(zip(*rows, strict=True))[:-1]]
    rest = max((width or width_of(target)) - sum(widths) - len(widths) * _FACTS_GAP, 1)

    for first, *middle, text in rows:
        cells = [[first], *([cell] for cell in middle), wrap_text(text, rest)]
        # Colours are added to padded cells, as their codes have no width on a terminal.
        line, *more = _beside(cells, (*widths, 0), _FACTS_GAP, (False,) * len(cells))
        _write([paint(first, style_of(first), target) + line[len(first) :], *more], target)


def _write(lines: Iterable[str], stream: TextIO) -> None:
    stream.write("".join(f"{line}\n" for line in lines))


def _cell_width(text: str) -> int:
    """Return the number of cells that a terminal needs for a text: two for wide characters."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


@cache
def _character_width(character: str) -> int:
    if unicodedata.category(character) in _INVISIBLE_CATEGORIES:
        return 0
    # W is wide, F is full width.
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(text: str, width: int) -> str:
    """Return a text, truncated with an ellipsis if it is wider."""
    return text if _cell_width(text) <= width else f"{_beginning(text, width - 1)}…"


def wrap_text(text: str, width: int, ends: re.Pattern[str] = _SPACE_ENDS) -> list[str]:
    """Break each line of a text at the `ends` of words, and words that are wider."""
    lines: list[str] = []
    for line in text.split("\n"):
        current = ""
        for word in _fitting(ends.split(line), width):
            if current and _cell_width(f"{current}{word}".rstrip()) > width:
                lines.append(current.rstrip())
                current = ""
            current += word if current else word.lstrip(" ")
        lines.append(current)
    return lines


def _beside(
    cells: Sequence[Sequence[str]], widths: Sequence[int], gap: int, right: Sequence[bool]
) -> list[str]:
    """Return the lines of a row, whose cells are lists of lines; `right` says which columns are aligned right."""
    spaced = []
    for number in range(max(map(len, cells))):
        padded = []
        for cell, width, to_right in zip(cells, widths, right, strict=True):
            text = cell[number] if number < len(cell) else ""
            blanks = " " * (width - _cell_width(text))
            padded.append(blanks + text if to_right else text + blanks)
        spaced.append((" " * gap).join(padded).rstrip())
    return spaced


def _fitting(words: Sequence[str], width: int) -> Iterator[str]:
    for word in words:
        rest = word
        while _cell_width(rest.rstrip()) > width:
            # A wide character may not fit at all; it is printed nevertheless.
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
