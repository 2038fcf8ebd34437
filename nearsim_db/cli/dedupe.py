"""The command dedupe: files in, the same without near-duplicates out."""

from pathlib import Path
from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.progress import progress_bars


def dedupe(
    files: options.Files,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="PATH", help="Write what stays there.", show_default=False),
    ],
    pairs: Annotated[
        Path | None, typer.Option("--pairs", metavar="PATH", help="Write the pairs there, as JSON lines.")
    ] = None,
    clusters: Annotated[
        Path | None,
        typer.Option("--clusters", metavar="PATH", help="Write the clusters there, as JSON lines."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", "-t", help="The same as --set match.threshold=", show_default=False),
    ] = None,
    recipe: options.RecipeFile = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    id_field: options.IdField = "id",
    title_field: options.TitleField = "title",
    body_field: options.BodyField = None,
    source_field: options.SourceField = "source",
    url_field: options.UrlField = "url",
    published_field: options.PublishedField = "published_at",
    rejects: options.Rejects = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Remove near-duplicates from files in one go; nothing stays in the database.

    The survivor of each cluster and all documents without near-duplicates are written in the order of the input: the
    lines of JSON lines as they are, other files as JSON lines with id, title and text.
    """
    from nearsim_db.cli import summaries
    from nearsim_db.database import Database
    from nearsim_db.dedupe import Outputs
    from nearsim_db.dedupe import dedupe as run
    from nearsim_db.readers import Fields, Source

    given = [*(settings or []), *([] if threshold is None else [f"match.threshold={threshold}"])]
    chosen = options.chosen_recipe(recipe, preset, given)
    source = Source(
        files, Fields(id_field, title_field, body_field, source_field, url_field, published_field)
    )
    with progress_bars(quiet or as_json, source) as progress, Database.connect() as database:
        summary = run(database, source, chosen, Outputs(output, pairs, clusters, rejects), progress)
    if as_json:
        summaries.print_dedupe_document(summary, output)
    elif not quiet:
        summaries.print_dedupe(summary, output, rejects)
    summaries.print_warnings(summary.warnings)
