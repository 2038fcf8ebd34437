"""The command `nearsim cut`: cut repeated passages out of files."""

from pathlib import Path
from typing import Annotated

from nearsim_db.cli import inputs, options, recipes, remaining


def cut(
    *,
    files: inputs.OptionalFiles = None,
    from_sqlite: inputs.FromSqlite = None,
    output: remaining.Output = None,
    output_format: remaining.OutputFormat = None,
    cuts: Annotated[Path | None, remaining.lines_option("places of what is cut")] = None,
    recipe_options: recipes.RecipeOptions,
    file_options: inputs.FileOptions,
    rejects: remaining.Rejects = None,
    max_rejected: remaining.MaxRejected = None,
    strict: inputs.Strict = False,
    dry_run: inputs.DryRun = False,
    outcome: options.Outcome,
) -> None:
    """Cut repeated passages out of files, without a database.

    Of each passage of match.passage words (20 by default) that occurs again, the copy that is read first is kept; all
    others are cut out, as whole sentences, within a record too. Records of which nothing is left are not written; all
    others are written as by nearsim dedupe, which removes whole records. Files are read twice; standard input and pipes
    are copied to TMPDIR first. Exits with 1 if nothing is written, and with 3 if something is but records are rejected,
    unless --rejects or --max-rejected allows it.
    """
    paths = file_options.files(files, from_sqlite)
    to = remaining.Remaining.of_options(output, output_format, dry_run=dry_run)
    to.check([] if cuts is None else [cuts], rejects, recipe_options, file_options)
    recipe = recipe_options.chosen()
    allowed = 0 if max_rejected is None and rejects is None else max_rejected

    from nearsim_db.deduplication.cut import cut_passages
    from nearsim_db.deduplication.output import Outputs

    outputs = Outputs()
    if not dry_run:
        outputs = Outputs(to.path, rejects=rejects, format=to.format, sharded=to.sharded, cuts=cuts)
    with (
        remaining.opened_source(paths, file_options, outcome) as source,
        outcome.progress(source) as progress,
    ):
        summary = cut_passages(source, recipe, outputs, progress, strict=strict, max_rejected=allowed)
    remaining.show_summary(summary, outputs, [source], outcome, allowed)
