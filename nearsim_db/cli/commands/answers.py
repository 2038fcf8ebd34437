"""Commands that answer: pairs, clusters, similar."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import InputError


def pairs(
    collection: options.Collection = options.DEFAULT_COLLECTION,
    profile: options.Profile = None,
    min_similarity: options.MinSimilarity = 0.0,
    format: options.AnswerFormat = None,
    output: options.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """Show the verified pairs of near-duplicates.

    A table shows the most similar first. jsonl has on each line left, right, similarity, intersection, union, estimate
    and shared_bands, in no order, and holds all pairs unless --limit is given. Profiles of the family projection have
    a distance, too; only those that compare by Jaccard count features in common (intersection) and in all (union).
    """
    chosen = options.chosen_format(format, output)
    from nearsim_db.cli.output import layouts, streams
    from nearsim_db.index import Index

    with Index.connect(collection=collection, profile=profile) as index:
        layout = layouts.with_distance(layouts.PAIRS) if index.metric() == "euclidean" else layouts.PAIRS
        streams.write(layout, index.pairs(min_similarity), chosen, output, limit, quiet=quiet)


def clusters(
    collection: options.Collection = options.DEFAULT_COLLECTION,
    profile: options.Profile = None,
    format: options.AnswerFormat = None,
    output: options.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """Show the clusters of near-duplicates, the largest first, each with its survivor.

    jsonl has on each line cluster, survivor and members (a list); csv has a row for each member.
    """
    chosen = options.chosen_format(format, output)
    from nearsim_db.cli.output import layouts, streams
    from nearsim_db.index import Index

    with Index.connect(collection=collection, profile=profile) as index:
        streams.write(layouts.CLUSTERS, index.clusters(), chosen, output, limit, quiet=quiet)


def similar(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="A document of the collection.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="Any text.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="PATH", help="A file with any text; - is standard input.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="The title of --text or --file.")] = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    profile: options.Profile = None,
    min_similarity: options.MinSimilarity = 0.0,
    format: options.AnswerFormat = None,
    output: options.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """Show what is similar to a document of the collection, or to any text; nothing is stored.

    jsonl has on each line id, title, similarity, intersection, union, estimate and shared_bands, and for profiles of
    the family projection distance.
    """
    if sum(given is not None for given in (id, text, file)) != 1:
        raise UsageError("give one of ID, --text and --file")
    if id is not None and title is not None:
        raise UsageError("--title goes with --text or --file; a document has its own")
    chosen = options.chosen_format(format, output)
    from nearsim_db.cli.output import layouts, streams, terminal
    from nearsim_db.index import Index

    body = text if file is None else _content(file)
    with Index.connect(collection=collection, profile=profile) as index:
        if id is not None:
            found = index.similar(id, min_similarity)
        else:
            found = index.similar_to_text(body or "", title, min_similarity)
        layout = layouts.with_distance(layouts.MATCHES) if index.metric() == "euclidean" else layouts.MATCHES
        streams.write(layout, (match for match in found), chosen, output, limit, quiet=quiet)
    terminal.print_warnings(index.warnings)


def _content(file: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    return content.decode("utf-8", "replace")
