"""Commands that add documents to an index: ingest, build."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import formats, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import DuplicateError, InputError, NearsimError

if TYPE_CHECKING:
    from nearsim_db.records import IngestSummary, OnDuplicate, ReadDocument, Reject


_Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first rejected record.")]
_OnDuplicate = Annotated[
    options.OnDuplicate | None,
    typer.Option(
        "--on-duplicate",
        help="Look up each document before adding it, one at a time: flag adds near-duplicates and counts them, "
        "skip leaves them out, raise stops at the first.",
        show_default=False,
    ),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Report what would be written, without writing it.")]


def ingest(
    files: options.Files,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    follow_links: options.FollowLinks = False,
    id_field: options.IdField = "id",
    title_field: options.TitleField = "title",
    body_field: options.BodyField = None,
    source_field: options.SourceField = "source",
    url_field: options.UrlField = "url",
    published_field: options.PublishedField = "published_at",
    vector_field: options.VectorField = "vector",
    vectors: options.Vectors = None,
    rejects: options.Rejects = None,
    strict: _Strict = False,
    on_duplicate: _OnDuplicate = None,
    dry_run: _DryRun = False,
    jobs: options.Jobs = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Read documents into a collection and update its index.

    Documents are inserted, or replaced by id. Invalid records are rejected and counted. A collection without a profile
    gets one from the default recipe. After an interruption, run the same command again to resume.
    """
    from nearsim_db.cli.output import ingest as ingest_output
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index
    from nearsim_db.readers import Fields, Source, open_vectors, refuse_overwriting_inputs

    if on_duplicate is not None and dry_run:
        raise UsageError(
            "--on-duplicate cannot be combined with --dry-run; nearsim check looks up without writing"
        )
    decision: OnDuplicate | None = None if on_duplicate is None else on_duplicate.value
    fields = Fields(id_field, title_field, body_field, source_field, url_field, published_field, vector_field)
    source = Source(files, fields, follow_links=follow_links)
    refuse_overwriting_inputs([rejects], [*files, *([] if vectors is None else [vectors])])
    with (
        open_vectors(vectors) as beside,
        progress_bars(quiet or format.is_machine, source) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        index.database.use_jobs(jobs)
        beside.check(source)
        records = _UntilDamage(beside.joined(source))
        error: NearsimError | None = None
        try:
            summary = index.ingest(
                records, rejects=rejects, strict=strict, dry_run=dry_run, on_duplicate=decision
            )
        except (InputError, DuplicateError) as refused:
            if refused.summary is None or not format.is_machine:
                raise
            summary, error = refused.summary, refused
        profiles = [] if dry_run else profiles_output.live_profile_stats(index)
    if format.is_machine:
        ingest_output.print_summary_document(
            format, summary, profiles, dry_run=dry_run, error=error or records.damage, on_duplicate=decision
        )
    elif not quiet:
        ingest_output.print_summary(
            summary, profiles, dry_run=dry_run, rejects=rejects, on_duplicate=decision
        )
    terminal.print_warnings([*beside.warnings, *index.warnings])
    if error is not None:
        raise error
    _refuse_damaged(records.damage, summary, dry_run)


def _refuse_damaged(damage: InputError | None, summary: "IngestSummary", dry_run: bool) -> None:
    """Raise InputError if a file could not be read to its end, or if every record was rejected."""
    if damage is not None:
        raise damage if dry_run else InputError(f"{damage}; the records read before are kept")
    if summary.read and summary.rejected == summary.read:
        raise InputError(f"none of the {summary.read:,} records is usable")


def build(
    collection: options.Collection = options.DEFAULT_COLLECTION,
    jobs: options.Jobs = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Finish an interrupted build, and index changes that applications made in SQL."""
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.index import Index

    with (
        progress_bars(quiet or format.is_machine) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        index.database.use_jobs(jobs)
        index.build()
        profiles = profiles_output.live_profile_stats(index)
    if format.is_machine:
        print_document(
            format, {"collection": collection, "profiles": [profiles_output.outline(one) for one in profiles]}
        )
    elif not quiet:
        profiles_output.print_profiles(profiles)
    terminal.print_warnings(index.warnings)


class _UntilDamage:
    """The records of a source up to the first read error, which is kept in `damage`."""

    def __init__(self, records: "Iterator[ReadDocument | Reject]") -> None:
        self._records = records
        self.damage: InputError | None = None

    def __iter__(self) -> "Iterator[ReadDocument | Reject]":
        try:
            yield from self._records
        except InputError as error:
            self.damage = error
