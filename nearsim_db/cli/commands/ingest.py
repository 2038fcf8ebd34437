"""The command `nearsim ingest`: add documents to a collection and its index."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import formats, inputs, options, recipes
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import DEFAULT, DuplicateError, InputError, NearsimError, count_of, none_usable
from nearsim_db.records import OnDuplicate

if TYPE_CHECKING:
    from nearsim_db.index import Index
    from nearsim_db.indexing.query_source import QuerySource
    from nearsim_db.readers import Source
    from nearsim_db.records import IngestSummary
    from nearsim_db.similarity.recipe import Recipe

_SOURCE_URL = "NEARSIM_SOURCE_URL"


_MaxRejected = Annotated[int | None, inputs.max_rejected_option("any number")]
_OnDuplicate = Annotated[
    OnDuplicate | None,
    typer.Option(
        "--on-duplicate",
        help="Look up each document before adding it, one at a time: flag adds near-duplicates and counts them, "
        "skip leaves them out, raise stops at the first.",
        show_default=False,
    ),
]
_Profile = Annotated[
    str | None,
    options.profile_option(
        "Profile to create if missing, with the recipe given. (default: default)", show_default=False
    ),
]
_FromSql = Annotated[
    str | None,
    typer.Option(
        "--from-sql",
        metavar="QUERY",
        help="Read the rows of a query instead of files; its columns are mapped like those of CSV.",
        show_default=False,
    ),
]
_FromUrl = Annotated[
    str | None,
    typer.Option(
        "--from-url",
        metavar="URL",
        envvar=_SOURCE_URL,
        show_envvar=True,
        help="PostgreSQL database that --from-sql reads.",
        show_default=False,
    ),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Report what would be written, without writing it.")]


def ingest(
    *,
    files: inputs.OptionalFiles = None,
    collection: options.Collection = options.DEFAULT,
    profile: _Profile = None,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    from_sql: _FromSql = None,
    from_url: _FromUrl = None,
    file_options: inputs.VectorFileOptions,
    vectors: inputs.Vectors = None,
    rejects: inputs.Rejects = None,
    max_rejected: _MaxRejected = None,
    strict: inputs.Strict = False,
    on_duplicate: _OnDuplicate = None,
    dry_run: _DryRun = False,
    jobs: options.Jobs = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Read documents into a collection and update its index.

    Documents are inserted, or replaced by id. Invalid records are rejected and counted. --recipe, --preset, --set and
    --threshold create the profile; one with another recipe is refused. A collection without a profile gets one from the
    default recipe. --from-sql reads documents from any PostgreSQL database, in a read-only transaction. After an
    interruption, run the same command again to resume.
    """
    from nearsim_db.cli.output import ingest as ingest_output
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index
    from nearsim_db.readers import Source, open_vectors, refuse_overwriting_inputs
    from nearsim_db.readers.rejects import RejectReasons
    from nearsim_db.readers.until_damage import UntilDamage
    from nearsim_db.similarity.recipe import Recipe

    if on_duplicate is not None and dry_run:
        raise UsageError(
            "--on-duplicate cannot be combined with --dry-run; nearsim check looks up without writing"
        )
    chosen = recipe_options.chosen_if_any(threshold)
    source = _source(files or [], from_sql, from_url, file_options)
    of_files = source if isinstance(source, Source) else None
    refuse_overwriting_inputs([rejects], [*(files or []), *([] if vectors is None else [vectors])])
    with (
        open_vectors(vectors) as beside,
        progress_bars(quiet or format.is_machine, of_files) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        index.database.use_jobs(jobs)
        if of_files is not None:
            beside.check(of_files)
        records, reasons = UntilDamage(beside.joined(source)), RejectReasons()
        with recipe_options.advising_reindex(collection, profile or DEFAULT, threshold):
            is_missing = _is_missing(index, profile, chosen)
        # Without a document, neither the collection nor the profile is created.
        writes = not dry_run and records.has_documents()
        if is_missing and writes:
            index.create_profile(profile or DEFAULT, chosen or Recipe())
        error: NearsimError | None = None
        try:
            summary = index.ingest(
                reasons.counted(records),
                rejects=rejects,
                strict=strict,
                dry_run=not writes,
                on_duplicate=on_duplicate,
                expected_bytes=None if of_files is None else of_files.content_bytes,
                resumable=True,
            )
        except (InputError, DuplicateError) as refused:
            if refused.summary is None or not format.is_machine:
                raise
            summary, error = refused.summary, refused
        profiles = profiles_output.live_profile_stats(index) if writes else []
    if format.is_machine:
        ingest_output.print_summary_document(
            format,
            summary,
            profiles,
            dry_run=dry_run,
            error=error or records.damage,
            on_duplicate=on_duplicate,
        )
    elif not quiet and (summary.read or records.damage is None):
        ingest_output.print_summary(
            summary, profiles, dry_run=dry_run, rejects=rejects, on_duplicate=on_duplicate
        )
    terminal.print_warnings([*source.warnings, *reasons.warnings(), *beside.warnings, *index.warnings])
    if error is not None:
        raise error
    _refuse_damaged(records.damage, summary, dry_run)
    if max_rejected is not None and summary.rejected > max_rejected:
        rejected = f"{count_of(summary.rejected, 'record')} of {summary.read:,} rejected"
        inputs.refuse_rejected(
            rejected, max_rejected, "the others were read" if dry_run else "the others are kept"
        )


def _source(
    files: list[Path], query: str | None, url: str | None, file_options: inputs.FileOptions
) -> "Source | QuerySource":
    """Return the documents of the files or of the query. Raises UsageError unless one of them is given."""
    from nearsim_db.readers import Reading, Source

    reading = file_options.reading()
    if (query is None) == (not files):
        raise UsageError("give either FILE or --from-sql")
    if query is None:
        return Source(files, file_options.fields(), reading=reading)
    if not url:
        raise UsageError(f"--from-sql requires --from-url or {_SOURCE_URL}, the URL of the database to read")
    if reading != Reading():
        raise UsageError(
            "--input-format, --encoding, --delimiter and --follow-links are for files, not --from-sql"
        )
    from nearsim_db.indexing.query_source import QuerySource

    return QuerySource(url, query, file_options.fields())


def _is_missing(index: "Index", profile: str | None, recipe: "Recipe | None") -> bool:
    """Whether the options name a profile that is to be created. Raises RecipeConflictError."""
    is_named = profile is not None or recipe is not None
    return is_named and not index.has_profile(profile or DEFAULT, recipe)


def _refuse_damaged(damage: InputError | None, summary: "IngestSummary", dry_run: bool) -> None:
    """Raise InputError if a file could not be read to its end, or if every record was rejected."""
    if damage is not None:
        is_kept = summary.inserted + summary.updated and not dry_run
        raise InputError(f"{damage}; the records read before are kept") if is_kept else damage
    if summary.read and summary.rejected == summary.read:
        raise InputError(none_usable(summary.read))
