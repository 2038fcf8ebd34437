"""The command `nearsim dedupe`: remove near-duplicates from files."""

from contextlib import ExitStack
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nearsim_db.cli import inputs, options, recipes, remaining
from nearsim_db.cli.commands.cut import cut
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.marks import MarkOptions
from nearsim_db.cli.output import terminal
from nearsim_db.errors import MissingCollectionError
from nearsim_db.readers.writers.file_format import file_type

if TYPE_CHECKING:
    from nearsim_db.analysis.report import Report
    from nearsim_db.deduplication.files import FoundDuplicates
    from nearsim_db.readers import Source
    from nearsim_db.similarity.recipe import Recipe


@dataclass(eq=False, repr=False)
class _ComparisonOptions:
    """Which records are compared with each other."""

    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD",
            help="File, folder or collection; also remove records with a near-duplicate in it (repeatable).",
        ),
    ] = None
    missing_ok: Annotated[
        bool,
        typer.Option(
            "--missing-ok",
            help="Continue if --against does not exist or is empty, as in a first run.",
            rich_help_panel=options.AGAINST,
        ),
    ] = False
    only_against: Annotated[
        bool,
        typer.Option(
            "--only-against",
            help="Compare records with --against only, not with each other.",
            rich_help_panel=options.AGAINST,
        ),
    ] = False
    only_from: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Remove only records from this FILE or source; all others stay.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None
    across: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Only count pairs whose values of this field differ: source, file, or any column.",
            rich_help_panel=options.MATCHING,
        ),
    ] = None
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Only count pairs whose values of this field are equal: source, file, or any column (repeatable).",
            rich_help_panel=options.MATCHING,
        ),
    ] = None
    earlier_later: Annotated[
        bool,
        typer.Option(
            "--earlier-later",
            help="In --pairs, put the record with the earlier date on the left.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False

    min_words: Annotated[
        int,
        typer.Option(
            "--min-words",
            metavar="N",
            min=0,
            help="Keep records with fewer than N words, without comparing them.",
            rich_help_panel=options.MATCHING,
        ),
    ] = 0
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Find only texts that are equal after normalisation.",
            rich_help_panel=options.MATCHING,
        ),
    ] = False
    cut: Annotated[
        bool,
        typer.Option("--cut", hidden=True, help="The same as nearsim cut."),
    ] = False
    cuts: Annotated[Path | None, remaining.lines_option("passages that --cut cuts out", hidden=True)] = None

    def check(self, files: list[Path], not_against: dict[str, Path | None], threshold: float | None) -> None:
        """Raise UsageError for options that exclude each other; `not_against` cannot be combined with --against."""
        if [*map(str, files), *(self.against or ())].count("-") > 1:
            raise UsageError("standard input can be read once: give - once among the FILEs and --against")
        if self.exact and threshold is not None:
            raise UsageError("give either --exact or --threshold, not both")
        if self.only_against and not self.against:
            raise UsageError("--only-against requires --against")
        if self.only_from is not None and self.against:
            raise UsageError("give either --only-from or --against, whose records always stay, not both")
        if self.missing_ok and not self.against:
            raise UsageError("--missing-ok requires --against")
        if self.cuts is not None and not self.cut:
            raise UsageError("--cuts requires --cut")
        for option, path in not_against.items():
            if self.against and path is not None:
                remedy = "; --pairs has the matches of each removed record" if option == "--clusters" else ""
                raise UsageError(f"{option} cannot be combined with --against{remedy}")

    def refuse_with_cut(self, **other_options: object) -> None:
        """Raise UsageError for options about pairs of records, because --cut compares no records."""
        names = (
            "against",
            "only_against",
            "only_from",
            "across",
            "within",
            "earlier_later",
            "min_words",
            "exact",
        )
        for name, value in {**other_options, **{name: getattr(self, name) for name in names}}.items():
            if value:
                raise UsageError(f"--{name.replace('_', '-')} cannot be combined with --cut")

    def within_fields(self, recipe: "Recipe") -> "Recipe":
        """Return the recipe with the fields of --within, if any are given."""
        from nearsim_db.similarity.recipe import within_fields

        return within_fields(recipe, self.within) if self.within else recipe

    def sources(self, source: "Source", folder: Path, *, with_vectors: bool) -> "list[Source]":
        """Return the sources of --against. The documents of collections are copied to files in the folder."""
        from nearsim_db.readers import Fields, Source

        sources = []
        for at, name in enumerate(self.against or ()):
            missing = f"--against {name} does not exist or is empty: nothing is compared with it"
            if self.missing_ok and _is_missing(name):
                terminal.print_warning(missing)
            elif _names_files(name):
                sources.append(Source([inputs.path(name)], source.fields, reading=source.reading))
            else:
                # A name that means no file is the name of a collection.
                try:
                    copy = _copied(name, folder / f"{at}.jsonl", with_vectors=with_vectors)
                except MissingCollectionError:
                    if not self.missing_ok:
                        raise
                    terminal.print_warning(missing)
                    continue
                sources.append(Source([copy], Fields(ids="optional"), originals={copy: Path(name)}))
        return sources


def _names_files(name: str) -> bool:
    """Whether a name means files and not a collection: it looks like a path or pattern, or such a file exists."""
    from nearsim_db.readers.source import READERS

    has_form = "/" in name or name == "-" or has_magic(name) or file_type(Path(name)) in READERS
    return has_form or Path(name).exists()


def _is_missing(name: str) -> bool:
    """Whether a name means files, but there is no such file, or only an empty file."""
    from nearsim_db.readers.folder import LeftOut, list_files

    path = Path(name)
    if path.is_dir():
        # Files such as _SUCCESS have no records.
        return not any(isinstance(file, LeftOut) or file.name[0] != "_" for file in list_files(path))
    if path.exists():
        return path.is_file() and path.stat().st_size == 0
    return name != "-" and _names_files(name) and not glob(name, recursive=True)  # noqa: PTH207


def _copied(collection: str, path: Path, *, with_vectors: bool) -> Path:
    """Write the documents of a collection to a file, and return its path.

    Raises MissingCollectionError if the collection does not exist. Starts no server if there is no database yet.
    """
    from nearsim_db.search.queries import Queries
    from nearsim_db.store import embedded
    from nearsim_db.store.settings import from_environment

    unreadable = f"--against {collection} is neither a file nor a folder"
    settings = from_environment()
    if settings.database_url is None and not embedded.status(settings.home).data_directory.exists():
        raise MissingCollectionError(
            f"{unreadable}, and there is no database with a collection of this name: NEARSIM_DATABASE_URL is not set, "
            f"and {settings.home} has no embedded server; check the name"
        )

    columns = ["id", "title", "text", "source", "url", "published_at", "vector"] if with_vectors else []
    with Queries.connect(collection=collection) as queries:
        try:
            queries.export(path, keep="all", columns=columns)
        except MissingCollectionError as error:
            raise MissingCollectionError(f"{unreadable}, and {error}") from error
    return path


_Report = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        parser=options.path,
        help="File for an HTML page with counts by file, clusters and pairs side by side, or for its figures if the "
        "name ends in .json; also with --dry-run.",
        rich_help_panel=options.OUTPUT,
    ),
]


def _check_report(path: Path) -> None:
    """Raise UsageError for a suffix of neither HTML nor JSON, and NearsimError if no page can be rendered."""
    from nearsim_db.analysis.report.page import check_requirements

    suffix = path.suffix.lower()
    if suffix not in (".html", ".htm", ".json"):
        raise UsageError(
            f"cannot write the report to {path}: end the name in .html, or in .json for its figures"
        )
    if suffix != ".json":
        check_requirements()


def _write_report(report: "Report", path: Path) -> None:
    """Write a report as JSON or as a page, by the suffix of its path."""
    from nearsim_db.analysis.report import render
    from nearsim_db.cli.output.streams import json_row
    from nearsim_db.readers.output import open_output

    with open_output(path) as stream:
        stream.write(json_row(report, stream) if path.suffix.lower() == ".json" else render(report))


def dedupe(
    *,
    files: inputs.OptionalFiles = None,
    from_sqlite: inputs.FromSqlite = None,
    remaining_options: remaining.RemainingOptions,
    pairs: Annotated[Path | None, remaining.lines_option("pairs")] = None,
    clusters: Annotated[Path | None, remaining.lines_option("clusters")] = None,
    review: Annotated[
        Path | None,
        remaining.lines_option(
            "pairs below the threshold to be reviewed (match.review)", rich_help_panel=options.OUTPUT
        ),
    ] = None,
    report: _Report = None,
    comparison: _ComparisonOptions,
    marks: MarkOptions,
    threshold: recipes.Threshold = None,
    recipe_options: recipes.RecipeOptions,
    file_options: inputs.VectorFileOptions,
    vectors: inputs.Vectors = None,
    jobs: options.Jobs = None,
    outcome: options.Outcome,
) -> None:
    """Remove near-duplicates from files, without a database.

    Writes the survivor of each cluster and all documents without near-duplicates, in input order. JSON lines and rows
    of CSV are copied byte for byte, Parquet keeps its schema, and another output format has all columns. A record is
    identified by its file and line, so ids may be missing or repeated. With --against, a record is removed if it has a
    near-duplicate there, or a better one in the input. Files are read twice; standard input and pipes are copied to
    TMPDIR first. Exits with 1 if nothing is written. Exits with 3 if records are rejected and the others are written,
    unless --rejects or --max-rejected allows that.
    """
    paths = file_options.files(files, from_sqlite)
    comparison.check(paths, {"--clusters": clusters, "--report": report, "--vectors": vectors}, threshold)
    if comparison.cut:
        comparison.refuse_with_cut(
            **{"pairs": pairs, "clusters": clusters, "review": review, "vectors": vectors},
            **{
                "threshold": threshold,
                "mark": marks.mark,
                "mark_prefix": marks.mark_prefix,
                "report": report,
            },
        )
        cut(
            files=paths,
            remaining_options=remaining_options,
            cuts=comparison.cuts,
            recipe_options=recipe_options,
            file_options=file_options,
            outcome=outcome,
        )
        return

    if report is not None:
        _check_report(report)
    lists = [path for path in (pairs, clusters, review, report) if path is not None]
    remaining_options.check(lists, recipe_options, file_options)
    # Exact duplicates have a similarity of 1.
    recipe = recipe_options.chosen(1.0 if comparison.exact else threshold)
    recipe = comparison.within_fields(recipe)
    allowed, mark_prefix = remaining_options.allowed_rejects, marks.prefix

    from nearsim_db.deduplication.files import dedupe as run
    from nearsim_db.readers import refuse_overwriting_inputs
    from nearsim_db.readers.leftovers import temporary_copies

    outputs = remaining_options.outputs(pairs=pairs, clusters=clusters, review=review)
    with ExitStack() as stack:
        ids: Literal["required", "optional"] = "optional" if vectors is None else "required"
        source = stack.enter_context(remaining.opened_source(paths, file_options, outcome, ids))
        folder = stack.enter_context(temporary_copies()) if comparison.against else Path()
        if report is not None:
            refuse_overwriting_inputs([report], source.files)
        against = comparison.sources(source, folder, with_vectors=recipe.sketch.input == "vector")
        terminal.print_warnings(chain.from_iterable(corpus.notes for corpus in against))
        # Progress by bytes is only possible for a single source.
        with outcome.progress(None if against else source) as progress:
            reports: list[Report] = []

            def inspect(duplicates: "FoundDuplicates") -> None:
                from nearsim_db.analysis.report import Options, gather_files

                reports.append(gather_files(duplicates, Options(), progress))

            summary = run(
                source,
                recipe,
                outputs,
                progress,
                vectors,
                against=against,
                only_against=comparison.only_against,
                only_from=comparison.only_from,
                across=comparison.across,
                earlier_later=comparison.earlier_later,
                exact=comparison.exact,
                min_words=comparison.min_words,
                strict=remaining_options.strict,
                max_rejected=allowed,
                threads=jobs,
                mark_prefix=mark_prefix,
                inspect=None if report is None else inspect,
            )
            if report is not None:
                _write_report(reports[0], report)
    remaining.show_summary(summary, outputs, [source, *against], outcome, allowed)
