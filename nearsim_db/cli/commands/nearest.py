"""The command `nearsim nearest`: the most similar documents, whatever the threshold."""

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nearsim_db.cli import inputs, options, recipes
from nearsim_db.cli.output import layouts, summaries, terminal

if TYPE_CHECKING:
    from nearsim_db.readers import RejectWriter
    from nearsim_db.records import ReadDocument, Reject

_Files = Annotated[
    list[Path] | None,
    options.argument(
        "FILE...",
        "Files, as for ingest, whose records are looked up instead of the documents of --collection.",
        parser=inputs.path,
    ),
]


def nearest(
    *,
    files: _Files = None,
    collection: options.Collection = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="NAME",
            autocompletion=options.complete_collection,
            help="Collection to search in. (default: the same as --collection)",
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", metavar="N", min=1, help="Maximum number of documents to list for each.")
    ] = 5,
    min_similarity: Annotated[
        float,
        typer.Option(
            "--min-similarity", metavar="SIMILARITY", min=0, max=1, help="Lowest similarity to report."
        ),
    ] = 0.2,
    mutual: Annotated[
        bool, typer.Option("--mutual", help="Only documents that are among the k nearest of each other.")
    ] = False,
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            metavar="SHARE",
            min=0.0,
            max=0.99,
            help="Leave out matches if the best document after the k is within this share of their similarity, such "
            "as 0.03.",
        ),
    ] = 0.0,
    across: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Only documents whose values of this field differ: source, or any column.",
            rich_help_panel=options.MATCHING,
        ),
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Only documents whose values of this field are equal: source, or any column (repeatable).",
            rich_help_panel=options.MATCHING,
        ),
    ] = None,
    weights: Annotated[
        Literal["idf", "none"],
        typer.Option(
            help="Measure of similarity: the cosine with inverse document frequencies (idf), or Jaccard (none).",
            rich_help_panel=options.MATCHING,
        ),
    ] = "idf",
    recipe_options: recipes.RecipeOptions,
    file_options: inputs.FileOptions,
    rejects: inputs.Rejects = None,
    rows: options.Rows,
) -> None:
    """List the documents most similar to each, however similar.

    By default the matches of every document are listed; with files, the matches of each record. Each line of jsonl has
    id, rank, nearest, similarity, title and nearest_title. Texts are split into features by the preset records, or by
    --preset, --recipe and --set; the profile and its threshold are not used. Each document is compared with at most 400
    documents that share one of its rarest words or features, and the similarity is exact. With -k 1 --mutual --across
    source, each record of one source is matched with at most one record of another source.
    """
    from nearsim_db.errors import MissingCollectionError
    from nearsim_db.readers import RejectWriter, Source, refuse_overwriting_inputs
    from nearsim_db.records import IngestSummary
    from nearsim_db.search.nearest import DEFAULT_PRESET, NearestQuery
    from nearsim_db.search.queries import search_nearest

    recipe = recipe_options.chosen(preset=DEFAULT_PRESET)
    query = NearestQuery(k, min_similarity, mutual, across, weights, recipe, margin, tuple(within or ()))
    fields = file_options.fields()

    source = Source(files, fields, reading=file_options.reading()) if files else None
    refuse_overwriting_inputs([rejects, rows.output], source.files if source else ())
    terminal.print_warnings(source.notes if source else ())
    with RejectWriter(rejects) as writer, options.Scope(collection).queries() as queries:
        documents = None if source is None else _usable(source, writer)
        try:
            rows.write(layouts.NEAREST, search_nearest(queries, query, documents, fields, target))
        except MissingCollectionError as error:
            # With files, the user may have meant to compare their records with each other.
            if not files:
                raise
            pairs = ["nearsim", "dedupe", *map(str, files), "-o", "kept.jsonl", "--pairs", "pairs.jsonl"]
            raise MissingCollectionError(
                f"{error}; to compare the records of the file with each other, without a collection: "
                f"{shlex.join(pairs)}"
            ) from error

        summary = IngestSummary(rejected=writer.count, first_rejects=writer.first)
        warnings = [*(source.warnings if source else ()), *queries.warnings]

    summaries.print_rejects(summary, rejects, sys.stderr)
    terminal.print_warnings(warnings)


def _usable(records: "Iterable[ReadDocument | Reject]", rejects: "RejectWriter") -> "Iterator[ReadDocument]":
    """Yield the usable records, and write the rejected records to the reject file."""
    from nearsim_db.records import ReadDocument

    for record in records:
        if isinstance(record, ReadDocument):
            yield record
        else:
            rejects.write(record)
