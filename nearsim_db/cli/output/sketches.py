"""Output of `nearsim sketch`: tables of the steps from one or two texts to their buckets."""

import sys
from collections.abc import Sequence
from dataclasses import astuple
from itertools import zip_longest

from nearsim_db.analysis.sketch_steps import SketchedPair, SketchSteps
from nearsim_db.cli.output import tables, terminal
from nearsim_db.messages import count_of

_MAX_ROWS = 50


def print_steps(steps: SketchSteps) -> None:
    """Print the texts, shingles, signatures and bands, and what two texts have in common."""
    for number, document in enumerate(steps.documents, 1):
        name = "text" if len(steps.documents) == 1 else f"text {number}"
        normalised = "a vector" if document.normalised is None else document.normalised
        terminal.print_line(
            f"{name}: {normalised} ({count_of(len(document.shingles), 'feature')})", sys.stdout
        )
    _print_shingles(steps)
    _print_signatures(steps)
    _print_bands(steps)
    if steps.pair is not None:
        _print_pair(steps, steps.pair)


def _print_shingles(steps: SketchSteps) -> None:
    """Print each shingle once, with its count or weight in each text."""
    # Reversed: for a shared shingle, the entry of the first text is stored last and stays.
    shingles = {each.hash: each for document in reversed(steps.documents) for each in document.shingles}
    ordered = {each.hash: shingles[each.hash] for document in steps.documents for each in document.shingles}

    values = [
        {each.hash: each.count if each.weight is None else each.weight for each in document.shingles}
        for document in steps.documents
    ]

    rows = [
        [each.shingle, each.hash, *(of_text.get(number) for of_text in values)]
        for number, each in ordered.items()
    ]

    heading = "times" if all(each.weight is None for each in ordered.values()) else "weight"
    _print("shingle", ("shingle", steps.base, *_sides(steps, heading)), rows)


def _print_signatures(steps: SketchSteps) -> None:
    signatures = zip_longest(*(document.signature for document in steps.documents))
    equal = set(steps.pair.equal_places) if steps.pair else set()
    has_functions = bool(steps.functions)

    rows = [
        [
            place,
            *((steps.functions[place].a, steps.functions[place].b) if has_functions else ()),
            *values,
            *(["=" if place in equal else ""] if steps.pair else []),
        ]
        for place, values in enumerate(signatures)
    ]

    columns = (
        "place",
        *(("a", "b") if has_functions else ()),
        *_sides(steps, "value"),
        *([""] if steps.pair else []),
    )
    _print_heading(f"Signature of the family {steps.family}:")
    _print("place", columns, rows)


def _print_bands(steps: SketchSteps) -> None:
    unused = steps.k - steps.band_count * steps.rows
    places = f"; {count_of(unused, 'place')} unused" if unused else ""
    bands = f", {count_of(steps.band_count, 'band')} of {count_of(steps.rows, 'row')}{places}"
    _print_heading(f"Buckets by {steps.band_hash}{bands if steps.positional else ''}:")

    buckets = {key.bucket_hash: key for document in steps.documents for key in document.bands}
    if steps.pair is None:
        _print("bucket", ("band", "hash", "bucket hash"), [astuple(key) for key in buckets.values()])
    elif steps.positional:
        both = zip(*(document.bands for document in steps.documents), strict=False)
        rows = [[left.band, left.hash, right.hash, "=" if left == right else ""] for left, right in both]
        _print("band", ("band", "hash 1", "hash 2", ""), rows)
    else:
        hashes = [{key.bucket_hash for key in document.bands} for document in steps.documents]
        in_texts = [
            [key.hash, *("yes" if key.bucket_hash in of_text else "" for of_text in hashes)]
            for key in buckets.values()
        ]
        _print("bucket", ("hash", "text 1", "text 2"), in_texts)


def _print_pair(steps: SketchSteps, pair: SketchedPair) -> None:
    score = pair.score
    terminal.print_line(stream=sys.stdout)

    tables.print_facts(
        {
            "in common": ", ".join(pair.common[:_MAX_ROWS]),
            "similarity": score.similarity,
            "intersection": score.intersection,
            "union": score.union,
            "estimate": score.estimate,
            "equal places": f"{len(pair.equal_places)} of {steps.k}" if pair.equal_places else None,
            "shared bands": score.shared_bands,
            "candidate": score.candidate,
            "pair": score.pair,
        }
    )


def _sides(steps: SketchSteps, name: str) -> tuple[str, ...]:
    return (name,) if len(steps.documents) == 1 else (f"{name} 1", f"{name} 2")


def _print_heading(text: str) -> None:
    terminal.print_line(stream=sys.stdout)
    terminal.print_line(text, sys.stdout)


def _print(noun: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print the first rows, with numbers without separators, and the number of all rows if there are more."""
    shown, headings = [list(map(_written, row)) for row in rows[:_MAX_ROWS]], list(columns)
    # The cells are strings, which a table aligns left, so pad the numbers here.
    for at, name in enumerate(columns):
        if all(isinstance(row[at], int | None) for row in rows):
            width = max(map(len, (name, *(row[at] for row in shown))))
            headings[at] = name.rjust(width)
            for row in shown:
                row[at] = row[at].rjust(width)

    tables.print_table(headings, shown, shorten=headings[:1])
    if len(rows) > _MAX_ROWS:
        terminal.print_line(
            f"the first {_MAX_ROWS} of {count_of(len(rows), noun)}; --json has all", sys.stdout
        )


def _written(value: object) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
