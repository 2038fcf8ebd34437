"""Commands that query an index: pairs, clusters, similar, passages, why, why-not and check."""

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
            help="Instead, list the pairs below the threshold that are to be reviewed (match.review).",
        ),
    ] = False,
    max_similarity: Annotated[
        float | None,
        typer.Option(metavar="SIMILARITY", min=0, max=1, help="Highest similarity to report. (default: any)"),
    ] = None,
    numbers_differ: Annotated[
        bool, typer.Option("--numbers-differ", help="Only pairs whose texts have different numbers.")
    ] = False,
    unreviewed: Annotated[
        bool,
        typer.Option("--unreviewed", help="Only pairs without a verdict or a decision of nearsim review."),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Draw at most N of these pairs, the same pairs each time. (default: all)"
        ),
    ] = None,
    signatures: Annotated[
        bool,
        typer.Option(
            "--signatures",
            help="Add how many values of the two signatures are equal and distinct, and the ratio of both.",
        ),
    ] = False,
    rows: options.Rows,
) -> None:
    """List the pairs of near-duplicates.

    With --review, lists pairs below the threshold that a person should look at. A table lists the most similar pairs
    first; if the terminal is too narrow, columns are left out and named. Each line of jsonl has left, right,
    similarity, intersection, union, estimate, shared_bands, left_title, right_title and verified, which is false if the
    similarity is an estimate. The lines are in no particular order. intersection and union count the features in both
    documents and in at least one of them; they are null unless the metric is Jaccard or containment. Profiles of the
    family projection add distance. Profiles of the family winnow add left_in_right and right_in_left, the share of each
    document that the other document has. --signatures adds signature_similarity, signature_intersection and
    signature_union, for the families fast_similarity and minhash.
    """
    from nearsim_db.search.answers import most_similar_pairs, signature_positions

    with scope.answers() as answers:
        layout = layouts.of_metric(layouts.PAIRS, answers.metric())
        if signatures:
            layout = layouts.with_signatures(layout, signature_positions(answers))
        # A short table needs only the most similar pairs and the total; these filters need all pairs.
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
            help="Show the cluster that contains document ID, or the cluster with number ID.",
        ),
    ] = None,
    rows: options.Rows,
) -> None:
    """List the clusters of near-duplicates, largest first.

    The survivor of a cluster is the document to keep. Each line of jsonl has cluster, survivor, members (a list of ids)
    and title, the survivor's title; csv has a row for each member. With --show, each document of one cluster is a row
    with id, title, is_survivor, similarity to the survivor (null if the two are not a pair), numbers_differ, source,
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
        Path | None, typer.Option(metavar="PATH", help="File with the text; - for standard input.")
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title to look up, with --text or --file or alone.")
    ] = None,
    contains: Annotated[
        bool,
        typer.Option(
            "--contains", help="List documents contained in the query, by the contained share of each."
        ),
    ] = False,
    contained_in: Annotated[
        bool,
        typer.Option(
            "--contained-in", help="List documents that contain the query, by the share of it that each has."
        ),
    ] = False,
    scope: options.Scope,
    min_similarity: options.MinSimilarity = 0.0,
    rows: options.Rows,
) -> None:
    """List the documents similar to a stored document or to a text.

    The text is not stored. Each line of jsonl has id, title, similarity, intersection, union, estimate, shared_bands
    and verified, which is false if the similarity is an estimate; profiles of the family projection add distance. With
    --limit, the matches of a stored document are the most similar documents. The matches of a text are the documents
    with the best estimates, which need not be the most similar. A line on standard error, or below a table, says
    whether there are more matches.

    Profiles of the family winnow add left_in_right, the share of the query that the listed document has, and
    right_in_left, the share of the listed document that the query has. With --contains or --contained-in, the share of
    the contained text must reach --min-similarity, by default the threshold of the recipe. Other profiles with Jaccard
    similarities answer this about documents that are similar as a whole.
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

    # A direction asks for shares; the rows are in their order.
    layout = layouts.of_metric(layouts.MATCHES, "containment" if direction else matches.metric)
    if direction is not None:
        layout = replace(layout, order=None)
    # `write` closes its generator, so it needs one.
    rows.write(layout, (match for match in matches), has_more=matches.has_more)
    terminal.print_warnings([*answers.warnings, *warnings])


def passages(
    *,
    first: Annotated[str | None, options.argument("[ID]", "Id of a document.")] = None,
    second: Annotated[
        str | None, options.argument("[ID]", "Id of another document; not with --spread.")
    ] = None,
    spread: Annotated[
        bool,
        typer.Option("--spread", help="Show each passage of ID with the documents that have it, by time."),
    ] = False,
    common: Annotated[
        bool,
        typer.Option(
            "--common", help="Show the texts that are ignored because too many documents have them."
        ),
    ] = False,
    scope: options.Scope,
    result: options.Result,
) -> None:
    """Show the passages that two documents share.

    Shows where the passages are in both texts, and the words in which they differ. A passage consists of runs of equal
    words, which are in the same order in both texts and at most match.passage_gap words apart. It has match.passage
    words or more, and at least half of them are in such runs. Text that was moved is a separate passage. The longest
    passage is listed first. In JSON each passage has left and right, with start, end, first_word, end_word and text.
    It also has equal, the number of words in equal runs, and share, their share. start and end count characters of the
    compared text. The documents need not be a pair; the profile must compare texts.

    With --spread, lists the passages of one document, each with the documents that have it. Only documents paired with
    it are searched, and the earliest by published_at comes first. In JSON each passage has its place, first_seen (the
    id of the earliest document) and occurrences.

    With --common, lists the fingerprints that an index of the family winnow ignores, because more than
    match.ignore_common percent of the documents had them when the index was built. Consecutive fingerprints of a text
    are one row. It has their number, the largest number of documents that have one of them, counted now in a sample of
    distinct texts, and the text.
    """
    # --common takes no document, --spread takes one, and otherwise two are needed.
    is_single = first is not None and second is None
    if not (first is None if common else is_single if spread else second is not None) or (common and spread):
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

    The similarity is computed from the present texts, even if the documents are no pair. Words that only one text has
    are coloured on a terminal, and marked [-left-] {+right+} elsewhere; # marks numbers that the other text lacks. With
    --quiet, prints only the difference. If the metric is containment, also lists the shared passages, as nearsim
    passages does.
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

    Possible reasons are a verdict, a document that is not indexed or has no features, a similarity below the threshold,
    too few shared bands, and the bucket limit. Suggested settings are tried on the two texts first.
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
        return index.why(documents.left, documents.right)


DUPLICATES_FOUND = 3


_Files = Annotated[
    list[Path] | None,
    options.argument("FILE...", "Files, as for ingest; or give --text.", parser=inputs.path),
]
_ExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code", help=f"Exit with {DUPLICATES_FOUND} if a document has near-duplicates, else with 0."
    ),
]


def check(
    *,
    files: _Files = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Text to check, instead of files.")] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title to check, with --text or alone.")
    ] = None,
    contains: Annotated[
        bool,
        typer.Option(
            "--contains",
            help="List documents of the collection that contain the checked document, and where.",
        ),
    ] = False,
    scope: options.Scope,
    min_similarity: options.MinSimilarity = 0.0,
    exit_code: _ExitCode = False,
    missing_ok: Annotated[
        bool,
        typer.Option(
            "--missing-ok",
            help="Report no duplicates if the collection does not exist, as in a first run.",
            rich_help_panel=options.AGAINST,
        ),
    ] = False,
    file_options: inputs.VectorFileOptions,
    vectors: inputs.Vectors = None,
    rejects: inputs.Rejects = None,
    rows: options.MatchRows,
) -> None:
    """Look up near-duplicates of new documents; nothing is stored.

    The input documents are not compared with each other, nor with a stored document of the same id, which they would
    replace. If the profile compares only titles or only bodies, a document that has only the other field is rejected.
    A table lists the most similar documents first. Each line of jsonl has id, duplicate, duplicate_of, similarity,
    verified and matches. Each match has id, title, similarity, intersection, union, estimate, shared_bands, verified
    and, for profiles of the family projection, distance; verified is false if the similarity is an estimate. With
    --limit, has_more says whether there are more matches. csv has the number of matches.

    With --contains, finds the stored documents that contain a checked document. It needs a profile of the family
    winnow. A match has at least the share --min-similarity of the checked document, by default the threshold. Each line
    has left_in_right, the largest such share, and each match has passages, as nearsim passages prints them, with the
    checked document on the left.
    """
    _refuse_conflicting_options(bool(files), text, title, vectors)
    from nearsim_db.readers import RejectWriter, Source, open_vectors, refuse_overwriting_inputs
    from nearsim_db.records import Document, IngestSummary, Matches
    from nearsim_db.search.queries import passages_in

    if missing_ok and scope.collection is None:
        # A first run of nearsim ingest creates the collection default, so do not use another collection instead.
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
    """Yield the documents; write rejected records, and documents that the index cannot compare, to the reject file."""
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
    """Yield the answers, and count the documents, those with duplicates, and those with more matches than the limit."""
    for document, matches in answers:
        counts.update(documents=1, duplicates=bool(matches), limited=matches.has_more)
        yield document, matches
