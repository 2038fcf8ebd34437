"""Draw curves with characters and print their figures. Each curve has its own mark, so no colours are needed."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

from nearsim_db.cli.output import tables, terminal
from nearsim_db.cli.output.terminal import values_of

if TYPE_CHECKING:
    from nearsim_db.analysis.curves import Curve, Measures
    from nearsim_db.similarity.amplification import Sensitivity

MARKS = "ox+*#@%&abcdefghijklmnpqrstuvwyzABCDEFGHIJKLMNPQRST"
_COLOURS = ("cyan", "yellow", "green", "magenta", "red", "blue", "white", "bright_black")
# The number of rows of a plot, and the number of characters to the left of it.
_ROWS, _GUTTER = 20, 6
# The minimum and maximum width of a plot, and its width if there is no terminal.
_NARROW, _WIDE, _IN_A_PIPE = 40, 160, 80
_JSON_POINTS = 100
_FINE, _PLAIN = "│└─┊┴", "|+-:+"

Probability = Callable[[float], float]


def draw(
    curves: Sequence[Probability],
    low: float,
    high: float,
    threshold: float | None,
    stream: TextIO,
    distances: Sequence[tuple[str, str, float]] = (),
) -> None:
    """Draw curves over low..high with values in 0..1, as wide as the terminal, or 80 columns without one.

    The threshold and each of the `distances` is a vertical line. A distance has a name, the name of the probability
    there, and a place on the axis; a single curve is labelled with the probability's name where it crosses the line.
    """
    width = (
        min(max(terminal.width_of(stream) if stream.isatty() else _IN_A_PIPE, _NARROW), _WIDE) - _GUTTER - 1
    )
    lines = _FINE if "utf" in (stream.encoding or "").lower() else _PLAIN
    grid = [[list[int]() for _ in range(width)] for _ in range(_ROWS + 1)]

    for number, curve in enumerate(curves):
        before = None
        for column in range(width):
            row = round((1 - curve(low + (high - low) * column / (width - 1))) * _ROWS)
            # Fill the rows between two columns if the curve is steep.
            for passed in _between(before, row):
                grid[passed][column].append(number)
            before = row

    def column_of(place: float) -> int:
        return round((place - low) / (high - low) * (width - 1))

    verticals = {column_of(place) for _, _, place in distances}
    if threshold is not None:
        verticals.add(column_of(threshold))

    # A single curve is labelled to the right of where it crosses a distance, in the nearest row that has room.
    names: dict[tuple[int, int], str] = {}
    if len(curves) == 1:
        for _, probability_name, place in distances:
            start = min(column_of(place) + 1, width - len(probability_name))
            columns = range(start, start + len(probability_name))
            crossing = round((1 - curves[0](place)) * _ROWS)
            free = [row for row in range(_ROWS + 1) if not any(grid[row][column] for column in columns)]
            row = min(free, key=lambda row: abs(row - crossing))
            names.update(
                ((row, column), letter) for column, letter in zip(columns, probability_name, strict=True)
            )

    for row, cells in enumerate(grid):
        letters = {column: letter for (at, column), letter in names.items() if at == row}
        terminal.print_painted(_row(row, cells, verticals, letters, lines, stream), stream)

    axis = "".join(lines[4] if column in verticals else lines[2] for column in range(width))
    terminal.print_painted(f"{'':{_GUTTER - 1}}{lines[1]}{axis}", stream)
    if distances:
        places = [(column_of(place), name) for name, _, place in distances]
        terminal.print_painted(_below_axis(places, width), stream)
    terminal.print_painted(_ticks(low, high, width), stream)


def print_curves(
    drawn: "list[Curve]",
    measures: "list[Measures]",
    threshold: float | None,
    sensitivities: "list[Sensitivity] | None",
) -> None:
    """Print curves in one plot, with their figures below the plot."""
    from nearsim_db.analysis.curves import AXES

    low, high = min(curve.low for curve in drawn), max(curve.high for curve in drawn)
    distances = []
    if sensitivities is not None:
        shown = sensitivities[0]
        distances = [
            ("d1", "p1", drawn[0].place_of(shown.near_distance)),
            ("d2", "p2", drawn[0].place_of(shown.far_distance)),
        ]
    draw([curve.probability for curve in drawn], low, high, threshold, sys.stdout, distances)
    terminal.print_line()
    if drawn[0].metric != "jaccard":
        terminal.print_line(f"The axis is the {AXES[drawn[0].metric]}.")
    for number, curve in enumerate(drawn):
        functions = "" if curve.windows else f", {curve.amplification.functions:,} functions"
        terminal.print_line(f"{mark(number)} {curve.label}{functions}")
    terminal.print_line()

    points = [
        (measured.steepest_point, measured.approximate_steepest_point, measured.fixed_point)
        for measured in measures
    ]
    _print_marked(("steepest at", "(1/b)^(1/r)", "fixed point"), points)

    if threshold is not None:
        terminal.print_line()
        terminal.print_line(f"At the threshold {threshold:g}, with the error areas in units of the axis:")
        areas = [
            (measured.probability_at_threshold, measured.false_negative_area, measured.false_positive_area)
            for measured in measures
        ]
        _print_marked(("probability", "false negatives", "false positives"), areas)

    if sensitivities is not None:
        near, far = sensitivities[0].near_distance, sensitivities[0].far_distance
        terminal.print_line()
        terminal.print_line(f"At distances of at most d1 = {near:g} and of at least d2 = {far:g}:")
        bounds = [
            (_below_one(bound.near_probability), f"{bound.far_probability:.7g}") for bound in sensitivities
        ]
        _print_marked(("p1: at least", "p2: at most"), bounds)


def _print_marked(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a row for each curve, after its mark."""
    tables.print_table(("", *columns), [(mark(number), *row) for number, row in enumerate(rows)])


def _below_one(probability: float) -> str:
    """Format a lower bound; a bound below 1 is never rounded to 1."""
    shown = f"{probability:.7g}"
    return "0.9999999" if shown == "1" and probability < 1 else shown


def figures(
    drawn: "list[Curve]",
    measures: "list[Measures]",
    threshold: float | None,
    sensitivities: "list[Sensitivity] | None",
) -> dict[str, object]:
    """Return the figures of curves for programs."""
    bounds: Sequence[Sensitivity | None] = sensitivities or [None] * len(drawn)
    return {
        "metric": drawn[0].metric,
        "threshold": threshold,
        "curves": list(map(_described, drawn, measures, bounds)),
    }


def _described(curve: "Curve", measured: "Measures", sensitivity: "Sensitivity | None") -> dict[str, object]:
    construction = curve.amplification
    steps = (curve.low + (curve.high - curve.low) * step / _JSON_POINTS for step in range(_JSON_POINTS + 1))
    return {
        "name": curve.name,
        "amplification": str(construction),
        **values_of(construction, "functions", "bands", "rows"),
        **asdict(measured),
        "sensitivity": sensitivity,
        "points": [[round(at, 10), curve.probability(at)] for at in steps],
    }


def mark(number: int) -> str:
    """Return the mark of a curve, by its index."""
    return MARKS[number % len(MARKS)]


def _between(before: int | None, row: int) -> range:
    """Return the rows that a curve crosses between one column and the next."""
    if before is None or abs(row - before) < 2:
        return range(row, row + 1)
    return range(row, before) if row < before else range(before + 1, row + 1)


def _row(
    row: int, cells: list[list[int]], verticals: set[int], letters: dict[int, str], lines: str, stream: TextIO
) -> str:
    label = f"{1 - row / _ROWS:{_GUTTER - 2}.1f} " if row % 4 == 0 else " " * (_GUTTER - 1)
    parts = [label, lines[0]]
    for column, numbers in enumerate(cells):
        # Where curves overlap, their marks alternate.
        number = numbers[column // 2 % len(numbers)] if numbers else None
        if number is not None:
            parts.append(terminal.paint(mark(number), _COLOURS[number % len(_COLOURS)], stream))
        else:
            parts.append(letters.get(column) or (lines[3] if column in verticals else " "))
    return "".join(parts).rstrip()


def _ticks(low: float, high: float, width: int) -> str:
    """Return the axis labels, from end to end."""
    parts = 4 if low < 0 else 5
    places = [
        (round((width - 1) * part / parts), f"{low + (high - low) * part / parts:.4g}")
        for part in range(parts + 1)
    ]
    return _below_axis(places, width)


def _below_axis(places: Sequence[tuple[int, str]], width: int) -> str:
    """Return a line with texts that are centred below columns of the plot."""
    below = [" "] * (_GUTTER + width + 8)
    for column, number in places:
        start = min(_GUTTER + column - len(number) // 2, _GUTTER + width - len(number))
        below[start : start + len(number)] = number
    return "".join(below).rstrip()
