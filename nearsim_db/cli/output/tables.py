"""Tables for a terminal: columns, name-value lists and check results."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from nearsim_db.cli.output import columns as layout
from nearsim_db.cli.output.terminal import paint, visible, width_of

_GAP, _NARROW_GAP, _FACTS_GAP = 3, 2, 2
_SHORTEST, _READABLE = 12, 20
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
        [_cell(value, places.get(name, 4)) for name, value in zip(columns, row, strict=True)]
        for row in values
    ]
    target = stream or sys.stdout
    available = width_of(target)
    gap = _GAP if _total(_content_widths(columns, cells), _GAP) <= available else _NARROW_GAP
    widths = _widths(columns, cells, shorten, wrap, available, gap)
    numeric = [all(isinstance(row[at], int | float | None) for row in values) for at in range(len(columns))]

    def lines(texts: Sequence[str], *, is_heading: bool = False) -> list[str]:
        broken = [
            (layout.wrap_heading if is_heading else layout.wrap)(text, width)
            if name in wrap
            else [layout.cut(text, width)]
            for name, text, width in zip(columns, texts, widths, strict=True)
        ]
        if is_heading:
            height = max(map(len, broken))
            broken = [[""] * (height - len(one)) + one for one in broken]
        return layout.beside(broken, widths, gap, numeric)

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
    shorten: Sequence[str],
    wrap: Sequence[str],
    stream: TextIO,
) -> Sequence[str]:
    """Print a table without the first of the `optional` columns that the terminal is too narrow for; return them.

    Columns of `shorten` count with up to 20 characters.
    """
    readable = [
        [
            layout.cut(visible(value), _READABLE) if name in shorten else value
            for name, value in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    for amount in range(len(optional) + 1):
        left_out = optional[:amount]
        kept = [at for at, name in enumerate(columns) if name not in left_out]
        names = [columns[at] for at in kept]
        fitting = ([row[at] for at in kept] for row in readable)
        if amount == len(optional) or fits(names, fitting, wrap=wrap, gap=_NARROW_GAP, stream=stream):
            break
    print_table(names, ([row[at] for at in kept] for row in rows), shorten=shorten, wrap=wrap, stream=stream)
    return left_out


def fits(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    wrap: Sequence[str] = (),
    gap: int = _GAP,
    stream: TextIO | None = None,
) -> bool:
    """Whether a table fits the terminal once its columns of `wrap` are broken between words."""
    cells = [[_cell(value, 4) for value in row] for row in rows]
    width = width_of(stream or sys.stdout)
    return _total(_widths(columns, cells, (), wrap, width, gap), gap) <= width


def _cell(value: object, decimals: int) -> str:
    return f"{value:,.{decimals}f}" if isinstance(value, float) else visible(value)


def _widths(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    shorten: Sequence[str],
    wrap: Sequence[str],
    available: int,
    gap: int,
) -> list[int]:
    """Return the width of each column: that of its content, reduced in columns that may wrap or be shortened."""
    longest = [max((layout.cell_width(row[at]) for row in cells), default=0) for at in range(len(columns))]
    widths = _content_widths(columns, cells)
    excess = _total(widths, gap) - available
    # Headings longer than their cells wrap first.
    for at in sorted(range(len(columns)), key=lambda at: longest[at] >= layout.cell_width(columns[at])):
        if excess > 0 and columns[at] in shorten:
            excess -= _shorten(widths, [at for at, name in enumerate(columns) if name in shorten], excess)
        elif excess > 0 and columns[at] in wrap:
            heading = [part.rstrip() for part in layout.heading_parts(columns[at])]
            texts = [heading, *(row[at].split() for row in cells)]
            words = [layout.cell_width(word) for text in texts for word in text]
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
        max(layout.cell_width(name), *(layout.cell_width(row[at]) for row in cells), 0)
        for at, name in enumerate(columns)
    ]


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def print_facts(values: Mapping[str, object], stream: TextIO | None = None, width: int | None = None) -> None:
    """Print names and values, one per line, on standard output by default; wrapped to `width` if given."""
    target = stream or sys.stdout
    names = [visible(name) for name in values]
    first = max(map(layout.cell_width, names), default=0)
    second = max((width or width_of(target)) - first - _FACTS_GAP, 1)
    for name, value in zip(names, values.values(), strict=True):
        parts = value.split("\n") if isinstance(value, str) else [value]
        cells = [[name], layout.wrap("\n".join(map(visible, parts)), second)]
        line, *more = layout.beside(cells, (first, 0), _FACTS_GAP, (False, False))
        _write([paint(line[: len(name)], "bold", target) + line[len(name) :], *more], target)


def print_checks(
    findings: Iterable[tuple[str, str, str, str]], stream: TextIO | None = None, width: int | None = None
) -> None:
    """Print (verdict, check, finding, advice), one per line, the advice below; wrapped to `width` if given."""
    target = stream or sys.stdout
    given = [
        (verdict, visible(check), visible(finding), visible(advice))
        for verdict, check, finding, advice in findings
    ]
    widths = [max((layout.cell_width(one[at]) for one in given), default=0) for at in range(2)]
    rest = max((width or width_of(target)) - sum(widths) - 2 * _FACTS_GAP, 1)
    for verdict, check, finding, advice in given:
        text = finding + (f"\n{advice}" if advice else "")
        cells = [[verdict], [check], layout.wrap(text, rest)]
        line, *more = layout.beside(cells, (*widths, 0), _FACTS_GAP, (False, False, False))
        _write([paint(verdict, _COLOURS[verdict], target) + line[len(verdict) :], *more], target)


def _write(lines: Iterable[str], stream: TextIO) -> None:
    stream.write("".join(f"{line}\n" for line in lines))
