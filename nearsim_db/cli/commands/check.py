"""The command `nearsim check`: near-duplicates of documents that are not stored."""

import sys
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import inputs, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import layouts, summaries, terminal
from nearsim_db.errors import InputError, none_usable

if TYPE_CHECKING:
    from nearsim_db.cli.output.layouts import Check
    from nearsim_db.readers import RejectWriter
    from nearsim_db.records import Document, ReadDocument, Reject

DUPLICATES_FOUND = 3


_Files = Annotated[
    list[Path] | None, options.argument("FILE", "Files as for ingest; or give --text.", parser=inputs.path)
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
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of --text.")] = None,
    scope: options.Scope,
    min_similarity: options.MinSimilarity = 0.0,
    exit_code: _ExitCode = False,
    file_options: inputs.VectorFileOptions,
    vectors: inputs.Vectors = None,
    rejects: inputs.Rejects = None,
    rows: options.MatchRows,
) -> None:
    """Check documents against a collection for near-duplicates, without storing them.

    A stored document with the same id, which would be replaced, is ignored, and the input documents are not compared
    with each other. A table lists the most similar first. Each line of jsonl has id, duplicate, duplicate_of,
    similarity, verified and matches, a list of id, title, similarity, intersection, union, estimate, shared_bands,
    verified and, for profiles of the family projection, distance; verified is false if the similarity is an estimate.
    With --limit also has_more, whether there are more matches. csv has the number of matches.
    """
    _refuse_conflicting_options(bool(files), text, title, vectors)
    from nearsim_db.readers import RejectWriter, Source, open_vectors, refuse_overwriting_inputs
    from nearsim_db.records import Document, IngestSummary

    paths, counts = files or [], Counter[str]()
    source = Source(paths, file_options.fields(), reading=file_options.reading())
    refuse_overwriting_inputs([rejects, rows.output], paths if vectors is None else [*paths, vectors])
    with open_vectors(vectors) as beside, RejectWriter(rejects) as writer, scope.queries() as index:
        beside.check(source)
        queries = (
            [Document("", title, text)] if text is not None else _documents(beside.joined(source), writer)
        )
        answers = _counted(index.check_many(queries, min_similarity, rows.limit), counts)
        layout = layouts.CHECKS if rows.limit is None else layouts.LIMITED_CHECKS
        replace(rows, limit=None).write(layout, answers)
        summary = IngestSummary(rejected=writer.count, first_rejects=writer.first)
        warnings = [
            *source.warnings,
            *beside.warnings,
            *layouts.of_unstored(index, scope.collection, min_similarity),
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
    if has_files == (text is not None):
        raise UsageError("give either FILE or --text")
    if text is not None and vectors is not None:
        raise UsageError("--vectors requires files")
    if text is None and title is not None:
        raise UsageError("--title requires --text; documents of files have their own title")


def _documents(records: "Iterator[ReadDocument | Reject]", rejects: "RejectWriter") -> "Iterator[Document]":
    """Yield the documents; rejected records go to the reject file."""
    from nearsim_db.records import ReadDocument

    for record in records:
        if isinstance(record, ReadDocument):
            yield record.document
        else:
            rejects.write(record)


def _counted(answers: "Iterator[Check]", counts: Counter[str]) -> "Generator[Check, None, None]":
    """Count answers, those with duplicates, and those with more than the limit."""
    for document, matches in answers:
        counts.update(documents=1, duplicates=bool(matches), limited=matches.has_more)
        yield document, matches
