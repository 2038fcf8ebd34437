"""Tables, lists of names and values, and results of checks as text; all widths are in character cells."""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TextIO

from nearsim_db.cli.output.terminal import paint, visible, width_of

GAP, NARROW_GAP, _FACTS_GAP = 3, 2, 2
# The smallest width of a shortened column, and the width at which it counts when columns are left out.
_SHORTEST, _READABLE = 12, 20
# Combining marks and format characters.
_INVISIBLE_CATEGORIES = ("Mn", "Me", "Cf")
_SPACE_ENDS, _PART_ENDS = (
    re.compile(r"(?<= )"),
    re.compile(r"(?<=[_ ])"),
)  # of words, and of parts of headings
# Numbers that users may pass to commands are written without separators.
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
    """Print rows under a heading. Numbers are aligned right; floats have four decimals, or as many as `decimals` says.

    If the terminal is too narrow, the space between columns shrinks first. Then columns of `wrap` are broken between
    words, and columns of `shorten` are truncated, down to 12 characters. Other columns are never cut, so the table may
    still be wider than the terminal.
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
            # Align headings at the bottom.
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
    """Print a table, and leave out as many of the `optional` columns as necessary to fit the terminal; return these.

    Columns are left out in the order of `optional`. For the width, columns of `shorten` count with at most 20
    characters, columns of `wrap` with their width after breaking them between words, and `gap` is the space between
    columns.
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

    # The table may still be too wide without all optional columns.
    print_table(names, values, shorten=shorten, wrap=wrap, stream=stream)
    return left_out


def _cell(name: str, value: object, decimals: int) -> str:
    return f"{value:,.{decimals}f}" if isinstance(value, float) else _shown(name, value)


def _shown(name: str, value: object) -> str:
    """Return a value as readable text. A number that identifies something has no separators."""
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
    """Return the width of each column: the width of its content, or less for columns that may wrap or be shortened."""
    longest = [max((_cell_width(row[at]) for row in cells), default=0) for at in range(len(columns))]
    widths = _content_widths(columns, cells)

    excess = _total(widths, gap) - available
    # First reduce columns whose heading is longer than their cells.
    for at in sorted(range(len(columns)), key=lambda at: longest[at] >= _cell_width(columns[at])):
        if excess > 0 and columns[at] in shorten:
            excess -= _shorten(widths, [at for at, name in enumerate(columns) if name in shorten], excess)
        elif excess > 0 and columns[at] in wrap:
            heading = [part.rstrip() for part in _PART_ENDS.split(columns[at])]

            # A column that wraps is at least as wide as its longest word, so that no word breaks.
            words = [
                _cell_width(word) for word in (*heading, *(word for row in cells for word in row[at].split()))
            ]
            min_width = min(widths[at], max([min(_SHORTEST, longest[at]), *words]))
            reduction = min(excess, widths[at] - min_width)
            widths[at] -= reduction
            excess -= reduction

    return widths


def _shorten(widths: list[int], chosen: Sequence[int], excess: int) -> int:
    """Reduce the chosen columns, the widest first and each down to 12 characters; return the total reduction."""
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
    """Print a line for each name and value, on standard output by default, wrapped to `width` or to the terminal."""
    rows = []
    for name, value in values.items():
        parts = value.split("\n") if isinstance(value, str) else [value]
        rows.append((visible(name), "\n".join(_shown(name, part) for part in parts)))
    _print_wrapped(rows, lambda name: "bold", stream, width)


def print_named(values: Mapping[str, object]) -> None:
    """Print keys and values, with spaces instead of underscores in the keys."""
    print_facts({name.replace("_", " "): value for name, value in values.items()})


def print_checks(
    findings: Iterable[tuple[str, str, str, str]], stream: TextIO | None = None, width: int | None = None
) -> None:
    """Print a line for each (verdict, check, finding, advice), with the advice below; wrapped like `print_facts`."""
    rows = [
        # A message of the server may have line ends and tabs.
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
    """Print columns without headings; the first column has a style, and the last column is wrapped."""
    target = stream or sys.stdout
    widths = [max(map(_cell_width, column)) for column in list(zip(*rows, strict=True))[:-1]]
    last_width = max((width or width_of(target)) - sum(widths) - len(widths) * _FACTS_GAP, 1)

    for first, *middle, text in rows:
        cells = [[first], *([cell] for cell in middle), wrap_text(text, last_width)]
        # Add colours after padding: their codes have no width on a terminal.
        line, *further_lines = _beside(cells, (*widths, 0), _FACTS_GAP, (False,) * len(cells))
        _write([paint(first, style_of(first), target) + line[len(first) :], *further_lines], target)


def _write(lines: Iterable[str], stream: TextIO) -> None:
    stream.write("".join(f"{line}\n" for line in lines))


def _cell_width(text: str) -> int:
    """Return the number of cells that a text takes on a terminal; a wide character takes two."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


@cache
def _character_width(character: str) -> int:
    if unicodedata.category(character) in _INVISIBLE_CATEGORIES:
        return 0
    # W means wide, and F means full width.
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(text: str, width: int) -> str:
    """Return a text, truncated with an ellipsis if it is wider."""
    return text if _cell_width(text) <= width else f"{_beginning(text, width - 1)}…"


def wrap_text(text: str, width: int, ends: re.Pattern[str] = _SPACE_ENDS) -> list[str]:
    """Break each line of a text at the `ends` of words; words that are wider than `width` are broken, too."""
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
    """Return the lines of a row. Its cells are lists of lines; `right` says which columns are aligned right."""
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
        remaining = word
        while _cell_width(remaining.rstrip()) > width:
            # A wide character is printed even if it does not fit.
            part = _beginning(remaining, width) or remaining[0]
            yield part
            remaining = remaining[len(part) :]
        yield remaining


def _beginning(text: str, width: int) -> str:
    """Return the beginning of a text that fits into a width."""
    used = 0
    for position, character in enumerate(text):
        used += _character_width(character)
        if used > width:
            return text[:position]
    return text
