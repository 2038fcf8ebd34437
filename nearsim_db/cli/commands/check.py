"""The command that asks before anything is added: check."""

import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import InputError

if TYPE_CHECKING:
    from nearsim_db.cli.output.layouts import Check
    from nearsim_db.readers import RejectWriter
    from nearsim_db.records import Document, ReadDocument, Reject

DUPLICATES_FOUND = 3


_Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="As for ingest; or give --text.", show_default=False),
]
_ExitCode = Annotated[
    bool,
    typer.Option("--exit-code", help=f"End with {DUPLICATES_FOUND} if any has duplicates, else with 0."),
]


def check(
    files: _Files = None,
    text: Annotated[str | None, typer.Option("--text", help="Any text, instead of files.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="The title of --text.")] = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    profile: options.Profile = None,
    min_similarity: options.MinSimilarity = 0.0,
    exit_code: _ExitCode = False,
    id_field: options.IdField = "id",
    title_field: options.TitleField = "title",
    body_field: options.BodyField = None,
    source_field: options.SourceField = "source",
    url_field: options.UrlField = "url",
    published_field: options.PublishedField = "published_at",
    vector_field: options.VectorField = "vector",
    vectors: options.Vectors = None,
    rejects: options.Rejects = None,
    format: options.AnswerFormat = None,
    output: options.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """Say of each document which ones of the collection it is a near-duplicate of; nothing is stored.

    A document of the collection with the same id, which it would replace, does not count, and documents of the files
    are not compared with each other. A table shows the most similar first. jsonl has on each line id, duplicate,
    duplicate_of, similarity and matches, a list of id, title, similarity, intersection, union, estimate,
    shared_bands and, for profiles of the family projection, distance; csv counts the matches.
    """
    _refuse_what_does_not_go_together(bool(files), text, title, vectors)
    chosen = options.chosen_format(format, output)
    from nearsim_db.cli.output import ingest as ingest_output
    from nearsim_db.cli.output import layouts, streams, terminal
    from nearsim_db.index import Index
    from nearsim_db.readers import Fields, RejectWriter, Source, open_vectors, refuse_overwriting_inputs
    from nearsim_db.records import Document, IngestSummary

    fields = Fields(id_field, title_field, body_field, source_field, url_field, published_field, vector_field)
    given = files or []
    source = Source(given, fields)
    refuse_overwriting_inputs([rejects, output], given if vectors is None else [*given, vectors])
    with (
        open_vectors(vectors) as beside,
        RejectWriter(rejects) as writer,
        Index.connect(collection=collection, profile=profile) as index,
    ):
        beside.check(source)
        asked = _Asked(beside.joined(source), writer) if text is None else [Document("", title, text)]
        answers = _Answers(index.check_many(asked, min_similarity))
        streams.write(layouts.CHECKS, answers.stream(), chosen, output, limit, quiet=quiet)
        summary = IngestSummary(rejected=writer.count, first_rejects=writer.first)
    ingest_output.print_rejects(summary, rejects, sys.stderr)
    terminal.print_warnings(beside.warnings)
    if writer.count and not answers.count:
        raise InputError(f"none of the {writer.count:,} records that were read can be used")
    if exit_code and answers.duplicates:
        raise typer.Exit(DUPLICATES_FOUND)


def _refuse_what_does_not_go_together(
    has_files: bool, text: str | None, title: str | None, vectors: Path | None
) -> None:
    if has_files == (text is not None):
        raise UsageError("give either FILE or --text")
    if text is not None and vectors is not None:
        raise UsageError("--vectors goes with files")
    if text is None and title is not None:
        raise UsageError("--title goes with --text; documents of files have their own")


class _Asked:
    """The documents of a source, those that cannot be used being set aside."""

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
    """Answers as they pass: how many there were, and how many had duplicates."""

    def __init__(self, answers: "Iterator[Check]") -> None:
        self._answers = answers
        self.count = 0
        self.duplicates = 0

    def stream(self) -> "Generator[Check, None, None]":
        for answer in self._answers:
            self.count += 1
            self.duplicates += bool(answer[1])
            yield answer
