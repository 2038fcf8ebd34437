"""The command `nearsim check`: near-duplicates of documents that are not stored."""

import sys
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import inputs, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import terminal
from nearsim_db.errors import InputError, none_usable

if TYPE_CHECKING:
    from nearsim_db.cli.output.layouts import Check
    from nearsim_db.readers import RejectWriter
    from nearsim_db.records import Document, ReadDocument, Reject

DUPLICATES_FOUND = 3


_Files = Annotated[
    list[Path] | None,
    options.argument("FILE", "Files as for ingest; or give --text.", parser=inputs.path),
]
_ExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code",
        help=f"Exit with {DUPLICATES_FOUND} if any document has near-duplicates, else with 0.",
    ),
]


def check(
    *,
    files: _Files = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Text to check, instead of files.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of --text.")] = None,
    collection: options.Collection = options.DEFAULT,
    profile: options.Profile = None,
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
    from nearsim_db.cli.output import layouts, summaries
    from nearsim_db.readers import RejectWriter, Source, open_vectors, refuse_overwriting_inputs
    from nearsim_db.records import Document, IngestSummary
    from nearsim_db.search.queries import Queries

    paths = files or []
    source = Source(paths, file_options.fields(), reading=file_options.reading())
    refuse_overwriting_inputs([rejects, rows.output], paths if vectors is None else [*paths, vectors])
    with (
        open_vectors(vectors) as beside,
        RejectWriter(rejects) as writer,
        Queries.connect(collection=collection, profile=profile) as index,
    ):
        beside.check(source)
        queries = _Documents(beside.joined(source), writer) if text is None else [Document("", title, text)]
        answers = _Answers(index.check_many(queries, min_similarity, rows.limit))
        layout = layouts.CHECKS if rows.limit is None else layouts.LIMITED_CHECKS
        replace(rows, limit=None).write(layout, answers.stream())
        summary = IngestSummary(rejected=writer.count, first_rejects=writer.first)
        warnings = [
            *source.warnings,
            *beside.warnings,
            *layouts.of_unstored(index, collection, min_similarity),
        ]
    summaries.print_rejects(summary, rejects, sys.stderr)
    terminal.print_warnings(warnings)
    if answers.limited and not rows.quiet:
        terminal.print_info(
            f"documents with more matches than --limit {rows.limit} lists: {answers.limited:,}"
        )
    if writer.count and not answers.count:
        raise InputError(none_usable(writer.count))
    if exit_code and answers.duplicates:
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


class _Documents:
    """The documents of a source; rejected records go to the reject file."""

    def __init__(self, records: "Iterator[ReadDocument | Reject]", rejects: "RejectWriter") -> None:
        self._records = records
        self._rejects = rejects

    def __iter__(self) -> "Iterator[Document]":
        from nearsim_db.records import ReadDocument

        for record in self._records:
            if isinstance(record, ReadDocument):
                yield record.document
            else:
                self._rejects.write(record)


class _Answers:
    """A stream of answers that counts them, those with duplicates, and those with more than the limit."""

    def __init__(self, answers: "Iterator[Check]") -> None:
        self._answers = answers
        self.count = 0
        self.duplicates = 0
        self.limited = 0

    def stream(self) -> "Generator[Check, None, None]":
        for answer in self._answers:
            self.count += 1
            self.duplicates += bool(answer[1])
            self.limited += answer[1].has_more
            yield answer
