"""Commands that query an index: pairs, clusters, similar, passages, why, why-not, check."""

import sys
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import inputs, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import layouts, summaries, terminal
from nearsim_db.errors import InputError
from nearsim_db.messages import none_usable

if TYPE_CHECKING:
    from nearsim_db.cli.output.layouts import Check
    from nearsim_db.readers import RejectWriter
    from nearsim_db.records import Direction, Document, ReadDocument, Reject
    from nearsim_db.search.explanation import Explanation
    from nearsim_db.search.queries import Queries


def pairs(
    *,
    scope: options.Scope,
    min_similarity: options.MinSimilarity = 0.0,
    review: Annotated[
        bool,
        typer.Option(
            "--review",
            help="List the pairs below the threshold that are to be reviewed (match.review) instead.",
        ),
    ] = False,
    max_similarity: Annotated[
        float | None,
        typer.Option(metavar="SIMILARITY", min=0, max=1, help="Highest similarity to report. (default: any)"),
    ] = None,
    numbers_differ: Annotated[
        bool, typer.Option("--numbers-differ", help="Only pairs whose numbers differ.")
    ] = False,
    unreviewed: Annotated[
        bool,
        typer.Option("--unreviewed", help="Only pairs without a verdict or a decision of nearsim review."),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Draw at most N of these pairs, the same ones each time. (default: all)"
        ),
    ] = None,
    rows: options.Rows,
) -> None:
    """List the pairs of near-duplicates.

    With --review those below the threshold are listed that a person should look at. A table lists the most similar
    first; columns that the terminal is too narrow for are left out and named. Each line of jsonl has left, right,
    similarity, intersection, union, estimate, shared_bands, left_title, right_title and verified, which is false if
    the similarity is an estimate; the lines are in no order. Profiles of the family projection add distance, those
    of winnow left_in_right and right_in_left, the share of each document that the other has; intersection and
    union, the numbers of features in both documents and in either, are null for other metrics than Jaccard and
    containment.
    """
    from nearsim_db.search.answers import most_similar_pairs

    with scope.answers() as answers:
        layout = layouts.of_metric(layouts.PAIRS, answers.metric())
        # A short table takes the most similar pairs and a total; filters need all pairs.
        if (limit := rows.table_limit) and not (numbers_differ or unreviewed or sample):
            page = most_similar_pairs(
                answers, limit, min_similarity, review=review, max_similarity=max_similarity
            )
            rows.write(layout, page.pairs, total=page.total)
        else:
            wanted = answers.pairs(
                min_similarity,
                review=review,
                max_similarity=max_similarity,
                numbers_differ=numbers_differ,
                unreviewed=unreviewed,
                sample=sample,
            )
            rows.write(layout, wanted)

        unstored = layouts.of_unreviewed if review else layouts.of_unstored
        terminal.print_warnings(unstored(answers, answers.collection, min_similarity))


def clusters(
    *,
    scope: options.Scope,
    min_size: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Only clusters of at least N documents.")
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Show the cluster that contains document ID, or the cluster with this number.",
        ),
    ] = None,
    rows: options.Rows,
) -> None:
    """List the clusters of near-duplicates, largest first.

    Each has a survivor, the document to keep, and its title. Each line of jsonl has cluster, survivor, members, a
    list, and title; csv has a row per member. With --show there is a row for each document of one cluster: id,
    title, is_survivor, similarity to the survivor (none if they are not a pair), numbers_differ, source,
    published_at and verified, which is false if the similarity is an estimate.
    """
    if show is not None and min_size is not None:
        raise UsageError("give either --show or --min-size")

    with scope.answers() as answers:
        if show is not None:
            rows.write(layouts.MEMBERS, answers.cluster(show))
        else:
            rows.write(layouts.CLUSTERS, answers.clusters(min_size or 2))


def similar(
    *,
    id: Annotated[str | None, typer.Argument(metavar="ID", help="Id of a stored document.")] = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Text to look up.")] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="PATH", help="File that holds the text; - for standard input.")
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of --text or --file, or alone.")
    ] = None,
    contains: Annotated[
        bool, typer.Option("--contains", help="Only documents that it holds, by the share of each in it.")
    ] = False,
    contained_in: Annotated[
        bool, typer.Option("--contained-in", help="Only documents that hold it, by its share in each.")
    ] = False,
    scope: options.Scope,
    min_similarity: options.MinSimilarity = 0.0,
    rows: options.Rows,
) -> None:
    """List the documents similar to a stored document or to a text.

    The text is not stored. Each line of jsonl has id, title, similarity, intersection, union, estimate,
    shared_bands, verified, which is false if the similarity is an estimate, and, for profiles of the family
    projection, distance. With --limit a stored document gets the most similar ones, a text those with the best
    estimates, which need not be the most similar; whether there are more is said on standard error, or below a
    table.

    Profiles of the family winnow add left_in_right, the share of the document or text that the listed one has, and
    right_in_left, the share of the listed one that it has. With --contains or --contained-in that share must reach
    --min-similarity, by default the threshold of the recipe.
    """
    if contains and contained_in:
        raise UsageError("give either --contains or --contained-in")
    direction: Direction | None = "contains" if contains else "contained_in" if contained_in else None
    if id is not None and title is not None:
        raise UsageError("--title cannot be given with ID; a stored document has its own title")
    if sum(query is not None for query in (id, text, file)) > 1 or (id, text, file, title) == (None,) * 4:
        raise UsageError("give one of ID, --text and --file, or --title")

    if id is not None:
        with scope.answers() as answers:
            matches = answers.similar(id, min_similarity, rows.limit, direction)
            warnings = layouts.of_unstored(answers, answers.collection, min_similarity)
    else:
        body = text if file is None else _content(file)
        with scope.queries() as answers:
            matches = answers.similar_to_text(body, title, min_similarity, rows.limit, direction)
            warnings = layouts.of_unstored(answers, answers.collection, min_similarity)

    layout = layouts.of_metric(layouts.MATCHES, matches.metric)
    if direction is not None:
        layout = replace(layout, order=None)  # they are in the order of their shares
    # `write` takes a generator, which it closes.
    rows.write(layout, (match for match in matches), has_more=matches.has_more)
    terminal.print_warnings([*answers.warnings, *warnings])


def passages(
    *,
    first: Annotated[str | None, options.argument("[ID]", "Id of a document.")] = None,
    second: Annotated[
        str | None, options.argument("[ID]", "Id of another document; not with --spread.")
    ] = None,
    spread: Annotated[
        bool, typer.Option("--spread", help="Show which documents have each passage of ID, by time.")
    ] = False,
    common: Annotated[
        bool,
        typer.Option("--common", help="Show the texts that are ignored as too many documents have them."),
    ] = False,
    scope: options.Scope,
    result: options.Result,
) -> None:
    """Show the passages that two documents share.

    Shows where they are in both texts, and the words in which they differ. A passage is a stretch of runs of equal
    words, at most match.passage_gap words apart and in the same order in both, of match.passage words or more, at
    least half of them in such runs. What was moved is a passage of its own. The longest is listed first. In JSON
    each has left and right, with start, end, first_word, end_word and text, and equal and share, the words in equal
    runs and their share; start and end count characters of the compared text. The documents need not be a pair, and
    the profile may be any that compares texts.

    With --spread the passages of one document are listed with the documents that have them, of those paired with it,
    the earliest by published_at first. In JSON spread has for each its place, first_seen, the id of the earliest
    document, and occurrences.

    With --common the fingerprints are listed that an index of the family winnow leaves out, as they were in more than
    match.ignore_common percent of its documents when it was built. Those that follow each other in a text are one row:
    their number, the most documents that have one of them, counted now in a sample of distinct texts, and the text.
    """
    # No document with --common, one with --spread, otherwise two.
    is_one = first is not None and second is None
    if not (first is None if common else is_one if spread else second is not None) or (common and spread):
        raise UsageError("give two documents, or one with --spread, or --common")
    from nearsim_db.cli.output import explanations

    with scope.queries() as index:
        if first is None:
            fingerprints = index.common_fingerprints()
            value: dict[str, object] = {"common": [asdict(fingerprint) for fingerprint in fingerprints]}
            print_text = partial(explanations.print_common, fingerprints)
        elif second is None:
            spreads = index.spread(first)
            value = {"id": first, "spread": [asdict(passage) for passage in spreads]}
            print_text = partial(explanations.print_spread, spreads)
        else:
            shared = index.passages(first, second)
            value = {"left": first, "right": second, "passages": [asdict(passage) for passage in shared]}
            print_text = partial(explanations.print_passages, first, second, shared)
    terminal.print_warnings(index.warnings)
    result.show(value, print_text)


def why(documents: options.TwoDocuments, scope: options.Scope, outcome: options.ShortOutcome) -> None:
    """Show the evidence for a pair, and the words that differ.

    The similarity is computed from the texts, also of documents that are no pair. Words of one text only are coloured
    on a terminal and elsewhere marked [-left-] {+right+}; # marks numbers that the other text lacks. With --quiet only
    the difference is printed. Under containment the passages that both share are listed, as nearsim passages does.
    """
    explanation = _explain(documents, scope)
    from nearsim_db.analysis.text_diff import compare_inline
    from nearsim_db.cli.output import explanations

    diff = compare_inline(explanation.left.text, explanation.right.text)

    def print_text() -> None:
        if not outcome.quiet:
            explanations.print_evidence(explanation)
            terminal.print_line()
        explanations.print_diff(explanation, diff)

    options.Result(outcome.format).show(explanations.as_json(explanation, diff), print_text)


def why_not(documents: options.TwoDocuments, scope: options.Scope, result: options.Result) -> None:
    """Show why two documents are not a pair, and what to change.

    Reasons are a verdict, a document that is not indexed or has no features, a similarity below the threshold, too few
    shared bands, and the bucket limit. The settings are checked on the two texts.
    """
    explanation = _explain(documents, scope)
    from nearsim_db.cli.output import explanations

    result.show(explanations.as_json(explanation), lambda: explanations.print_absence(explanation))


def _content(file: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    return content.decode("utf-8", "replace")


def _explain(documents: options.TwoDocuments, scope: options.Scope) -> "Explanation":
    with scope.queries() as index:
        return index.why(documents.one, documents.other)


DUPLICATES_FOUND = 3


_Files = Annotated[
    list[Path] | None, options.argument("FILE...", "Files as for ingest; or give --text.", parser=inputs.path)
]
_ExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code", help=f"Exit with {DUPLICATES_FOUND} if any document has near-duplicates, else with 0."
    ),
]


def check(
    *,
    files: _Files = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Text to check, instead of files.")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of --text, or alone.")] = None,
    contains: Annotated[
        bool,
        typer.Option(
            "--contains", help="Only documents of the collection that hold the checked one, and where."
        ),
    ] = False,
    scope: options.Scope,
    min_similarity: options.MinSimilarity = 0.0,
    exit_code: _ExitCode = False,
    missing_ok: Annotated[
        bool,
        typer.Option(
            "--missing-ok",
            help="Report no duplicates if the collection does not exist yet, as in a first run.",
            rich_help_panel=options.AGAINST,
        ),
    ] = False,
    file_options: inputs.VectorFileOptions,
    vectors: inputs.Vectors = None,
    rejects: inputs.Rejects = None,
    rows: options.MatchRows,
) -> None:
    """Look up near-duplicates of new documents; nothing is stored.

    A stored document with the same id, which would be replaced, is ignored, and the input documents are not compared
    with each other. A document that has only a title or only a body, which the profile does not compare, is rejected. A
    table lists the most similar first. Each line of jsonl has id, duplicate, duplicate_of,
    similarity, verified and matches, a list of id, title, similarity, intersection, union, estimate, shared_bands,
    verified and, for profiles of the family projection, distance; verified is false if the similarity is an estimate.
    With --limit also has_more, whether there are more matches. csv has the number of matches.

    With --contains a document is found where the collection holds it: matches are documents of a profile of the family
    winnow that have at least --min-similarity of it, by default the threshold. Each has left_in_right, the largest such
    share, and each match passages, as nearsim passages prints them: left is the checked document.
    """
    _refuse_conflicting_options(bool(files), text, title, vectors)
    from nearsim_db.readers import RejectWriter, Source, open_vectors, refuse_overwriting_inputs
    from nearsim_db.records import Document, IngestSummary, Matches
    from nearsim_db.search.queries import passages_in

    if missing_ok and scope.collection is None:
        # The collection that a first run of nearsim ingest creates, not another that is the only one until then.
        scope = options.Scope(options.DEFAULT, scope.profile)

    paths, counts = files or [], Counter[str]()
    source = Source(paths, file_options.fields(), reading=file_options.reading())
    terminal.print_warnings(source.notes)
    refuse_overwriting_inputs(
        [rejects, rows.output], source.files if vectors is None else [*source.files, vectors]
    )

    with open_vectors(vectors) as beside, RejectWriter(rejects) as writer, scope.queries() as index:
        beside.check(source)
        is_missing = missing_ok and not index.has_collection()
        queries = (
            _documents(beside.joined(source), writer, None if is_missing else index)
            if paths
            else [Document("", title, text)]
        )

        direction: Direction | None = "contained_in" if contains else None
        answers = _counted(
            ((document, Matches((), "jaccard")) for document in queries)
            if is_missing
            else index.check_many(queries, min_similarity, rows.limit, direction),
            counts,
        )

        layout = layouts.CHECKS if rows.limit is None else layouts.LIMITED_CHECKS
        if contains:
            layout = layouts.with_passages(layout, partial(passages_in, index))
        # --limit is the number of matches of each document, not of documents.
        replace(rows, limit=None).write(layout, answers)

        summary = IngestSummary(rejected=writer.count, first_rejects=writer.first)
        warnings = [
            *source.warnings,
            *beside.warnings,
            *(() if is_missing else layouts.of_unstored(index, index.collection, min_similarity)),
        ]

    summaries.print_rejects(summary, rejects, sys.stderr)
    terminal.print_warnings(warnings)
    if counts["limited"] and not rows.quiet:
        limited = f"documents with more matches than --limit {rows.limit} lists: {counts['limited']:,}"
        terminal.print_info(limited)

    if writer.count and not counts["documents"]:
        raise InputError(none_usable(writer.count))
    if exit_code and counts["duplicates"]:
        raise typer.Exit(DUPLICATES_FOUND)


def _refuse_conflicting_options(
    has_files: bool, text: str | None, title: str | None, vectors: Path | None
) -> None:
    if has_files and title is not None:
        raise UsageError("--title cannot be given with FILE; documents of files have their own title")
    if has_files == (text is not None or title is not None):
        raise UsageError("give either FILE or --text, --title or both")
    if not has_files and vectors is not None:
        raise UsageError("--vectors requires files")


def _documents(
    records: "Iterator[ReadDocument | Reject]", rejects: "RejectWriter", index: "Queries | None"
) -> "Iterator[Document]":
    """Yield the documents; records that are rejected, or that the index cannot compare, go to the reject file."""
    from nearsim_db.records import Reject
    from nearsim_db.search.queries import incomparable_reason

    for record in records:
        if isinstance(record, Reject):
            rejects.write(record)
            continue

        document = record.document
        reason = None if index is None else incomparable_reason(index, document)
        if reason is None:
            yield document
        else:
            rejects.write(Reject(record.file, record.line, reason, document.external_id))


def _counted(answers: "Iterator[Check]", counts: Counter[str]) -> "Generator[Check, None, None]":
    """Count answers, those with duplicates, and those with more than the limit."""
    for document, matches in answers:
        counts.update(documents=1, duplicates=bool(matches), limited=matches.has_more)
        yield document, matches
