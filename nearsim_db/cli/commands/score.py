"""The command `nearsim score`: compute the similarity of the pairs of texts in a file."""

import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from nearsim_db.cli import inputs, options, recipes
from nearsim_db.cli.output import layouts, tables, terminal
from nearsim_db.errors import InputError
from nearsim_db.messages import count_of

if TYPE_CHECKING:
    from nearsim_db.analysis.pair_scores import PairFile, ScoredRow
    from nearsim_db.similarity.recipe import Recipe


def _side_option(side: str, id_name: str) -> Any:
    return typer.Option(
        metavar="KEY",
        help=f"Field with the {side} text; a,b joins two by a line end. (default: {side}, or {id_name} with --corpus)",
    )


def score(
    *,
    pairs: Annotated[
        Path,
        options.argument(
            "PAIRS", "File of pairs, such as CSV or JSON lines; - is standard input.", parser=inputs.path
        ),
    ],
    left_field: Annotated[str | None, _side_option("left", "id_a")] = None,
    right_field: Annotated[str | None, _side_option("right", "id_b")] = None,
    label_field: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Field that says whether the two are duplicates: 1/0, yes/no, true/false, duplicate/distinct. "
            "(default: label, if there is such a field)",
        ),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=inputs.path,
            help="File or folder with the documents; --left-field and --right-field then have their ids.",
        ),
    ] = None,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    file_options: inputs.FileOptions,
    rows: options.Rows,
) -> None:
    """Score given pairs of texts, without a database.

    Shows the exact similarity of each pair, and whether the sketches of a recipe would find it. Each row has
    similarity, estimate, left_in_right and right_in_left (the share of each text's features that the other text has),
    intersection and union (numbers of features), shared_bands, candidate (whether the shared bands suffice) and pair
    (whether the similarity also reaches the threshold). If the file has labels, precision, recall and F1 by threshold
    follow. Texts without features have no similarity; for these figures it counts as 0. Weights by document frequency
    are counted in the texts of the pairs.
    """
    from nearsim_db.analysis.pair_scores import PairFields, PairFile
    from nearsim_db.readers import Source
    from nearsim_db.readers.inputs import readable_twice

    recipe = recipe_options.chosen(threshold)
    of_texts = corpus is None
    fields = PairFields(
        left_field or ("left" if of_texts else "id_a"),
        right_field or ("right" if of_texts else "id_b"),
        label_field,
    )

    reading = file_options.reading()
    with readable_twice([pairs], reading.format) as readable:
        documents = None if corpus is None else Source([corpus], file_options.fields(), reading=reading)
        source = Source(readable, file_options.fields(), reading=reading, originals={readable[0]: pairs})
        pair_file = PairFile(source, fields, documents)
        # `_scores` fills the facts after the last row, when the figures of the labels are complete.
        facts: dict[str, object] = {"skipped": 0}
        rows.write(layouts.SCORES, _scores(pair_file, recipe, facts), facts=facts)

    if pair_file.skipped:
        terminal.print_warning(f"{count_of(pair_file.skipped, 'row')} skipped ({pair_file.reasons[0]})")
    if not rows.quiet and rows.chosen() is not options.Format.JSON:
        is_table = rows.chosen() is options.Format.TABLE and not rows.is_to_file
        _print_labels(pair_file, sys.stdout if is_table else sys.stderr)


def _scores(
    pair_file: "PairFile", recipe: "Recipe", facts: dict[str, object]
) -> "Generator[ScoredRow, None, None]":
    """Yield the scores, then add the figures of the labels to the facts. Raises InputError if no row has a pair."""
    is_empty = True
    for row in pair_file.scores(recipe):
        is_empty = False
        yield row
    if is_empty and pair_file.skipped:
        raise InputError(
            f"none of the {count_of(pair_file.skipped, 'row')} has a pair ({pair_file.reasons[0]})"
        )
    facts["skipped"] = pair_file.skipped
    facts["labels"] = pair_file.labels()


def _print_labels(pair_file: "PairFile", stream: TextIO) -> None:
    from nearsim_db.analysis.tuning.labels import thin_out

    scores = pair_file.labels()
    if scores is None:
        return
    terminal.print_line(
        f"Labels: {scores.duplicates:,} duplicate and {scores.distinct:,} distinct pairs; > marks the best F1, = the "
        "threshold of the recipe",
        stream,
    )
    lines = [
        [">" if point == scores.best else "", point.threshold, point.precision, point.recall, point.f1]
        for point in thin_out(scores.points, scores.best)
    ]
    if scores.at is not None:
        lines.append(["=", scores.at.threshold, scores.at.precision, scores.at.recall, scores.at.f1])
    tables.print_table(
        ("", "similarity from", "precision", "recall", "F1"),
        lines,
        decimals={"precision": 3, "recall": 3, "F1": 3},
        stream=stream,
    )
