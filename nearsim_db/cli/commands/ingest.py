"""The commands `nearsim ingest` and `nearsim build`: add documents to a collection, and finish its index."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import inputs, options, recipes
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import summaries, terminal
from nearsim_db.errors import DuplicateError, InputError, NearsimError
from nearsim_db.messages import count_of, none_usable
from nearsim_db.records import DEFAULT, OnDuplicate

if TYPE_CHECKING:
    from nearsim_db.index import Index
    from nearsim_db.indexing.query_source import QuerySource
    from nearsim_db.readers import Source
    from nearsim_db.records import IngestSummary, ReadDocument, Reject
    from nearsim_db.similarity.recipe import Recipe

_SOURCE_URL = "NEARSIM_SOURCE_URL"

_Profile = Annotated[
    str | None,
    options.profile_option("Profile to create, if it is missing, with the given recipe. (default: default)"),
]


@dataclass(eq=False, repr=False)
class _QueryOptions:
    """A query whose rows become documents."""

    from_sql: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY",
            help="Read the rows of a query instead of files; its columns are used like those of CSV.",
            rich_help_panel=options.INPUT,
        ),
    ] = None
    from_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar=_SOURCE_URL,
            show_envvar=True,
            help="PostgreSQL database that --from-sql reads.",
            rich_help_panel=options.INPUT,
        ),
    ] = None


@dataclass(eq=False, repr=False)
class _SourceOptions(inputs.VectorFileOptions, _QueryOptions):
    """The documents to read, from files or from a query."""

    from_sqlite: inputs.FromSqlite = None
    vectors: inputs.Vectors = None

    def source(self, files: list[Path]) -> "Source | QuerySource":
        """Return the source of the documents. Raises UsageError unless exactly one source is given."""
        from nearsim_db.readers import Reading, Source

        if self.from_sql is None:
            if not files and self.from_sqlite is None:
                raise UsageError("give either FILE, --from-sql or --from-sqlite")
            files = self.files(files, self.from_sqlite)
        elif files or self.from_sqlite is not None:
            raise UsageError("give either FILE, --from-sql or --from-sqlite")

        reading = self.reading()
        if self.from_sql is None:
            source = Source(files, self.fields(), reading=reading)
            terminal.print_warnings(source.notes)
            return source
        if not self.from_url:
            raise UsageError(
                f"--from-sql requires --from-url or {_SOURCE_URL}, the URL of the database to read"
            )
        if reading != Reading():
            raise UsageError(
                "--input-format, --encoding, --delimiter, --table and the like are for files, not --from-sql"
            )

        from nearsim_db.indexing.query_source import QuerySource

        return QuerySource(self.from_url, self.from_sql, replace(self.fields(), ids="required"))


@dataclass(eq=False, repr=False)
class _Handling:
    """How rejected records and near-duplicates are handled."""

    rejects: inputs.Rejects = None
    max_rejected: Annotated[int | None, inputs.max_rejected_option("any number")] = None
    strict: inputs.Strict = False
    on_duplicate: Annotated[
        OnDuplicate | None,
        typer.Option(
            help="Look up each document before adding it, one at a time: flag adds near-duplicates and counts them, "
            "skip leaves them out, raise stops at the first of them."
        ),
    ] = None
    dry_run: inputs.DryRun = False

    def __post_init__(self) -> None:
        """Raise UsageError for --on-duplicate with --dry-run."""
        if self.on_duplicate is not None and self.dry_run:
            raise UsageError(
                "--on-duplicate cannot be combined with --dry-run; nearsim check looks up without writing"
            )

    def ingest(
        self,
        index: "Index",
        records: "Iterable[ReadDocument | Reject]",
        source: "Source | QuerySource",
        *,
        writes: bool,
        planned: "Recipe | None",
        outcome: options.Outcome,
    ) -> "tuple[IngestSummary, NearsimError | None]":
        """Ingest the records; return the counts and, if the output is for programs, the error that ended the ingest."""
        try:
            summary = index._ingest(
                records,
                rejects=self.rejects,
                strict=self.strict,
                dry_run=not writes,
                on_duplicate=self.on_duplicate,
                # The size of the rows of a query is unknown.
                expected_bytes=getattr(source, "content_bytes", None),
                resumable=True,
                planned=planned,
            )
        except (InputError, DuplicateError) as error:
            # Programs get the counts up to the error as JSON, people only the error.
            if error.summary is None or not outcome.format.is_machine:
                raise
            return error.summary, error

        return summary, None

    def refuse(self, damage: InputError | None, summary: "IngestSummary") -> None:
        """Raise InputError if a file was not read to its end, or if all records were rejected.

        Raises RejectedError if more records were rejected than --max-rejected allows.
        """
        if damage is not None:
            is_kept = summary.inserted + summary.updated and not self.dry_run
            raise InputError(f"{damage}; the records read before are kept") if is_kept else damage
        if summary.read and summary.rejected == summary.read:
            raise InputError(none_usable(summary.read))
        if self.max_rejected is not None and summary.rejected > self.max_rejected:
            rejected = f"{count_of(summary.rejected, 'record')} of {summary.read:,} rejected"
            done = "the others were read" if self.dry_run else "the others are kept"
            inputs.refuse_rejected(rejected, self.max_rejected, done)


def ingest(
    *,
    files: inputs.OptionalFiles = None,
    collection: options.NewCollection = options.DEFAULT,
    profile: _Profile = None,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    source_options: _SourceOptions,
    handling: _Handling,
    jobs: options.Jobs = None,
    outcome: options.Outcome,
) -> None:
    """Read documents into a collection and update its index.

    A document replaces a stored document with the same id. Invalid records are rejected and counted. --recipe,
    --preset, --set and --threshold create the profile; if it exists with another recipe, nothing is read and the exit
    code is 2. Without them, a collection without a profile gets one with the default recipe. --from-sql reads documents
    from any PostgreSQL database, in a read-only transaction. After an interruption, run the same command again to
    resume.
    """
    from nearsim_db.index import Index
    from nearsim_db.readers import Source, open_vectors, refuse_overwriting_inputs
    from nearsim_db.readers.contract import UntilDamage
    from nearsim_db.readers.rejects import RejectReasons
    from nearsim_db.similarity.recipe import Recipe

    chosen = recipe_options.chosen_if_any(threshold)
    source = source_options.source(files or [])

    of_files, vectors = source if isinstance(source, Source) else None, source_options.vectors
    files_read = of_files.files if of_files else ()
    refuse_overwriting_inputs([handling.rejects], (*files_read, *([] if vectors is None else [vectors])))

    with (
        open_vectors(vectors) as beside,
        outcome.progress(of_files) as progress,
        Index(options.connect(jobs), collection, progress=progress) as index,
    ):
        if of_files is not None:
            beside.check(of_files)
        records, reasons = UntilDamage(beside.joined(source)), RejectReasons()
        with recipe_options.advising_reindex(collection, profile or DEFAULT, threshold):
            is_named = profile is not None or chosen is not None
            # `has_profile` raises an error if the profile has another recipe.
            is_missing = is_named and not index.has_profile(profile or DEFAULT, chosen)

        # Without a document, neither the collection nor the profile is created.
        writes = not handling.dry_run and records.has_documents()
        if is_missing and writes:
            index.create_profile(profile or DEFAULT, chosen or Recipe())

        counted = reasons.counted(records)
        planned = chosen if is_missing else None
        summary, error = handling.ingest(
            index, counted, source, writes=writes, planned=planned, outcome=outcome
        )
        profiles = summaries.live_profile_stats(index) if writes else []

    written = summaries.Written(summary, profiles, handling.dry_run, handling.on_duplicate)
    outcome.show(
        written.document(error or records.damage), lambda: written.print(handling.rejects, records.damage)
    )
    terminal.print_warnings([*source.warnings, *reasons.warnings(), *beside.warnings, *index.warnings])

    # The counts are printed above, before the error is raised.
    if error is not None:
        raise error
    handling.refuse(records.damage, summary)


def build(
    *, collection: options.Collection = None, jobs: options.Jobs = None, outcome: options.Outcome
) -> None:
    """Finish an interrupted build, and index changes made in SQL."""
    with outcome.index(collection, jobs) as index:
        index.build()
        profiles = summaries.live_profile_stats(index)
        done = {"collection": index.collection, "profiles": summaries.outlines(profiles)}
        outcome.show(done, lambda: summaries.print_profiles(profiles))
