"""The command `nearsim cut`: cut repeated passages out of files."""

from pathlib import Path
from typing import Annotated

from nearsim_db.cli import inputs, options, recipes, remaining


def cut(
    *,
    files: inputs.OptionalFiles = None,
    from_sqlite: inputs.FromSqlite = None,
    remaining_options: remaining.RemainingOptions,
    cuts: Annotated[Path | None, remaining.lines_option("passages that are cut out")] = None,
    recipe_options: recipes.RecipeOptions,
    file_options: inputs.FileOptions,
    outcome: options.Outcome,
) -> None:
    """Cut repeated passages out of files, without a database.

    If a passage of match.passage words (20 by default) occurs several times, in different records or in one, the first
    copy is kept and all later copies are cut out, as whole sentences. Records without any remaining text are not
    written; all other records are written as nearsim dedupe does, which removes whole records.
    If the recipe reads web pages (normalise.html), their texts are written instead of the pages. Files are read twice;
    standard input and pipes are copied to TMPDIR first. Exits with 1 if nothing is written. Exits with 3 if records are
    rejected and the others are written, unless --rejects or --max-rejected allows that.
    """
    paths = file_options.files(files, from_sqlite)
    remaining_options.check([] if cuts is None else [cuts], recipe_options, file_options)
    recipe = recipe_options.chosen()
    allowed = remaining_options.allowed_rejects

    from nearsim_db.deduplication.cut import cut_passages

    outputs = remaining_options.outputs(cuts=cuts)
    with (
        remaining.opened_source(paths, file_options, outcome) as source,
        outcome.progress(source) as progress,
    ):
        summary = cut_passages(
            source, recipe, outputs, progress, strict=remaining_options.strict, max_rejected=allowed
        )
    remaining.show_summary(summary, outputs, [source], outcome, allowed)
