"""The commands pairs, clusters and similar, which query an index."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import formats, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import InputError

if TYPE_CHECKING:
    from nearsim_db.records import Matches


def pairs(
    collection: options.Collection = options.DEFAULT,
    profile: options.Profile = None,
    min_similarity: options.MinSimilarity = 0.0,
    format: formats.AnswerFormat = None,
    output: formats.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """List the pairs of near-duplicates.

    A table lists the most similar first; columns that the terminal is too narrow for are left out and named. Each line
    of jsonl has left, right, similarity, intersection, union, estimate, shared_bands, left_title, right_title and
    verified, which is false if the similarity is an estimate; the lines are in no order. Profiles of the family
    projection add distance; intersection and union, the numbers of features in both documents and in either, are null
    unless the metric is Jaccard.
    """
    chosen = formats.chosen_format(format, output)
    from nearsim_db.cli.output import layouts, streams, terminal
    from nearsim_db.search.answers import Answers

    with Answers.connect(collection=collection, profile=profile) as answers:
        layout = layouts.with_distance(layouts.PAIRS) if answers.metric() == "euclidean" else layouts.PAIRS
        streams.write(layout, answers.pairs(min_similarity), chosen, output, limit, quiet=quiet)
        terminal.print_warnings(layouts.of_unstored(answers, collection, min_similarity))


def clusters(
    collection: options.Collection = options.DEFAULT,
    profile: options.Profile = None,
    min_size: Annotated[
        int | None,
        typer.Option(
            "--min-size",
            metavar="N",
            min=2,
            help="Only clusters of at least N documents.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(
            "--show",
            metavar="ID",
            help="Show one cluster: that of the document ID or, if no clustered document has that id, of that number.",
        ),
    ] = None,
    format: formats.AnswerFormat = None,
    output: formats.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """List the clusters of near-duplicates, largest first, each with its survivor and the survivor's title.

    Each line of jsonl has cluster, survivor, members, a list, and title; csv has a row per member. With --show there is
    a row for each document of one cluster: id, title, is_survivor, similarity to the survivor (none if they are not a
    pair), numbers_differ, source, published_at and verified, which is false if the similarity is an estimate.
    """
    if show is not None and min_size is not None:
        raise UsageError("give either --show or --min-size")
    chosen = formats.chosen_format(format, output)
    from nearsim_db.cli.output import layouts, streams
    from nearsim_db.search.answers import Answers

    with Answers.connect(collection=collection, profile=profile) as answers:
        if show is not None:
            streams.write(layouts.MEMBERS, answers.cluster(show), chosen, output, limit, quiet=quiet)
        else:
            found = answers.clusters(min_size or 2)
            streams.write(layouts.CLUSTERS, found, chosen, output, limit, quiet=quiet)


def similar(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="Id of a stored document.")] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="Text to look up.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="PATH", help="File that holds the text; - for standard input."),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of --text or --file.")
    ] = None,
    collection: options.Collection = options.DEFAULT,
    profile: options.Profile = None,
    min_similarity: options.MinSimilarity = 0.0,
    format: formats.AnswerFormat = None,
    output: formats.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """List the documents similar to a stored document or to a text, without storing the text.

    Each line of jsonl has id, title, similarity, intersection, union, estimate, shared_bands, verified, which is false
    if the similarity is an estimate, and, for profiles of the family projection, distance. With --limit a stored
    document gets the most similar ones, a text those with the best estimates, which need not be the most similar;
    whether there are more is said on standard error, or below a table.
    """
    if sum(query is not None for query in (id, text, file)) != 1:
        raise UsageError("give one of ID, --text and --file")
    if id is not None and title is not None:
        raise UsageError("--title requires --text or --file; a stored document has its own title")
    chosen = formats.chosen_format(format, output)
    from nearsim_db.cli.output import layouts, streams, terminal

    if id is not None:
        found, warnings = _similar_to_stored(id, collection, profile, min_similarity, limit)
    else:
        body = text if file is None else _content(file)
        found, warnings = _similar_to_text(body or "", title, collection, profile, min_similarity, limit)
    layout = layouts.with_distance(layouts.MATCHES) if found.metric == "euclidean" else layouts.MATCHES
    answers = (match for match in found)
    streams.write(layout, answers, chosen, output, limit, quiet=quiet, has_more=found.has_more)
    terminal.print_warnings(warnings)


def _similar_to_stored(
    id: str, collection: str, profile: str | None, min_similarity: float, limit: int | None
) -> "tuple[Matches, list[str]]":
    from nearsim_db.cli.output import layouts
    from nearsim_db.search.answers import Answers

    with Answers.connect(collection=collection, profile=profile) as answers:
        found = answers.similar(id, min_similarity, limit)
        return found, [*answers.warnings, *layouts.of_unstored(answers, collection, min_similarity)]


def _similar_to_text(
    body: str,
    title: str | None,
    collection: str,
    profile: str | None,
    min_similarity: float,
    limit: int | None,
) -> "tuple[Matches, list[str]]":
    from nearsim_db.cli.output import layouts
    from nearsim_db.search.queries import Queries

    with Queries.connect(collection=collection, profile=profile) as index:
        found = index.similar_to_text(body, title, min_similarity, limit)
        return found, [*index.warnings, *layouts.of_unstored(index, collection, min_similarity)]


def _content(file: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    return content.decode("utf-8", "replace")
