"""The command `nearsim dedupe`: remove near-duplicates from files."""

import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearsim_db.cli import formats, inputs, options, recipes
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import summaries, terminal
from nearsim_db.errors import InputError, MissingCollectionError
from nearsim_db.readers.writers.file_format import COMPRESSIONS, FileFormat, chosen_encoding, file_type
from nearsim_db.records import STANDARD_OUTPUT

if TYPE_CHECKING:
    from nearsim_db.readers import Fields, Reading, Source

_OTHER_FORMATS = {".zip", ".csv", ".tsv", ".parquet"}
_NOWHERE = Path(os.devnull)


_Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="File for the remaining documents; its suffix is the format: .jsonl, .json, .csv, .tsv (also .gz, .zst, "
        ".bz2, .xz), .parquet, otherwise that of the input. A folder, as in out/, gets a file for each input file, "
        "with its name. - is standard output; required without --dry-run.",
    ),
]
_OutputFormat = Annotated[
    FileFormat | None,
    typer.Option(
        "--output-format", help="Format of --output if its suffix names none. (default: that of the input)"
    ),
]
_Rejects = Annotated[Path | None, inputs.rejects_option(f"{inputs.REJECTS}; - is standard output.")]
_MaxRejected = Annotated[int | None, inputs.max_rejected_option("0, or any number with --rejects")]


def _lines_option(what: str) -> Any:
    return typer.Option(metavar="PATH", parser=formats.path, help=f"File for the {what}, as JSON lines.")


@dataclass(eq=False, repr=False)
class _Comparison:
    """What is compared with what."""

    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD",
            help="File, folder or collection: also remove what has a near-duplicate there (repeatable).",
        ),
    ] = None
    missing_ok: Annotated[
        bool,
        typer.Option(
            "--missing-ok", help="Go on if --against does not exist or is empty, as on the first day."
        ),
    ] = False
    only_against: Annotated[
        bool,
        typer.Option("--only-against", help="Compare with --against only, not the records with each other."),
    ] = False
    across: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Only pairs whose values of this field differ count: source, file, or any column.",
        ),
    ] = None
    earlier_later: Annotated[
        bool, typer.Option("--earlier-later", help="In --pairs, put the record of the earlier date left.")
    ] = False

    exact: Annotated[
        bool, typer.Option("--exact", help="Compare whole texts after normalisation, without sketches.")
    ] = False
    cut: Annotated[
        bool,
        typer.Option(
            "--cut",
            help="Cut passages that earlier texts have out of the texts, as whole sentences, instead.",
        ),
    ] = False
    cuts: Annotated[Path | None, _lines_option("places of what --cut has cut")] = None

    def check(
        self, files: list[Path], clusters: Path | None, vectors: Path | None, threshold: float | None
    ) -> None:
        """Raise UsageError for options that exclude each other."""
        if [*map(str, files), *(self.against or ())].count("-") > 1:
            raise UsageError("standard input can be read once: give - once among the FILEs and --against")
        if self.exact and threshold is not None:
            raise UsageError("give either --exact or --threshold, not both")
        if self.only_against and not self.against:
            raise UsageError("--only-against requires --against")
        if self.missing_ok and not self.against:
            raise UsageError("--missing-ok requires --against")
        if self.cuts is not None and not self.cut:
            raise UsageError("--cuts requires --cut")
        for option, path in (("--clusters", clusters), ("--vectors", vectors)):
            if self.against and path is not None:
                more = "; --pairs has the matches of each removed record" if option == "--clusters" else ""
                raise UsageError(f"{option} cannot be combined with --against{more}")

    def refuse_with_cut(self, **others: object) -> None:
        """Raise UsageError for options of pairs of records, which --cut does not compare."""
        own = ("against", "only_against", "across", "earlier_later", "exact")
        for name, value in {**others, **{name: getattr(self, name) for name in own}}.items():
            if value:
                raise UsageError(f"--{name.replace('_', '-')} cannot be combined with --cut")

    def sources(
        self, fields: "Fields", reading: "Reading", folder: Path, *, with_vectors: bool
    ) -> "list[Source]":
        """Return what is compared with; collections are written to the folder."""
        from nearsim_db.readers import Fields, Source

        found = []
        for at, name in enumerate(self.against or ()):
            missing = f"--against {name} does not exist or is empty: nothing is compared with it"
            if self.missing_ok and _is_missing(name):
                terminal.print_warning(missing)
            elif _names_files(name):
                found.append(Source([inputs.path(name)], fields, reading=reading))
            else:
                try:
                    copy = _copied(name, folder / f"{at}.jsonl", with_vectors=with_vectors)
                except MissingCollectionError:
                    if not self.missing_ok:
                        raise
                    terminal.print_warning(missing)
                    continue
                found.append(Source([copy], Fields(ids="optional"), originals={copy: Path(name)}))
        return found


def _names_files(name: str) -> bool:
    """Whether a name is of files, not of a collection, by its form or since there is such a file."""
    from nearsim_db.readers.source import READERS

    has_form = "/" in name or name == "-" or has_magic(name) or file_type(Path(name)) in READERS
    return has_form or Path(name).exists()


def _is_missing(name: str) -> bool:
    """Whether a name is of files, but there are none, or an empty one."""
    from nearsim_db.readers.folder import LeftOut, list_files

    path = Path(name)
    if path.is_dir():
        # Names such as _SUCCESS are of no records.
        return not any(isinstance(file, LeftOut) or file.name[0] != "_" for file in list_files(path))
    if path.exists():
        return path.is_file() and path.stat().st_size == 0
    return name != "-" and _names_files(name) and not glob(name, recursive=True)  # noqa: PTH207


def _copied(collection: str, path: Path, *, with_vectors: bool) -> Path:
    """Write the documents of a collection to a file.

    Raises MissingCollectionError, and starts no server if no database exists that could have it.
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


def dedupe(
    *,
    files: inputs.Files,
    output: _Output = None,
    output_format: _OutputFormat = None,
    pairs: Annotated[Path | None, _lines_option("pairs")] = None,
    clusters: Annotated[Path | None, _lines_option("clusters")] = None,
    review: Annotated[
        Path | None, _lines_option("pairs below the threshold that are to be reviewed (match.review)")
    ] = None,
    comparison: _Comparison,
    threshold: recipes.Threshold = None,
    recipe_options: recipes.RecipeOptions,
    file_options: inputs.VectorFileOptions,
    vectors: inputs.Vectors = None,
    rejects: _Rejects = None,
    max_rejected: _MaxRejected = None,
    strict: inputs.Strict = False,
    dry_run: inputs.DryRun = False,
    jobs: options.Jobs = None,
    outcome: options.Outcome,
) -> None:
    """Remove near-duplicates from files, without a database.

    Writes the survivor of each cluster and all documents without near-duplicates, in input order: JSON lines and rows
    of CSV byte for byte, Parquet with its schema, and all columns if --output names another format. A record is known
    by its file and line, so that ids may recur or be absent. With --against, a record is removed that has a
    near-duplicate there or among the records before it. Files are read twice; standard input and pipes are copied
    to TMPDIR first. With --cut, passages of match.passage words (20 by default) that a record before has are cut
    out instead. Exits with 1 if nothing is written, and with 3 if something is but records are rejected, unless
    --rejects or --max-rejected allows it.
    """
    comparison.check(files, clusters, vectors, threshold)
    if comparison.cut:
        comparison.refuse_with_cut(
            pairs=pairs, clusters=clusters, review=review, vectors=vectors, threshold=threshold
        )
    if not output and not dry_run:
        raise UsageError("give --output PATH (- for standard output), or --dry-run")
    is_sharded = output is not None and (output.endswith(os.sep) or Path(output).is_dir())
    to = None if output is None else Path(output) if is_sharded else formats.path(output)
    others = [one for one in (pairs, clusters, review, comparison.cuts) if one is not None]
    are_lines = file_options.input_format == "lines"
    _check_outputs(to, output_format, others, rejects, is_sharded=is_sharded, are_lines=are_lines)
    from nearsim_db.deduplication.cut import cut_passages
    from nearsim_db.deduplication.files import dedupe as run
    from nearsim_db.deduplication.output import Outputs
    from nearsim_db.readers import Source, refuse_overwriting_inputs
    from nearsim_db.readers.inputs import readable_twice
    from nearsim_db.readers.leftovers import temporary_copies

    of_options = [recipe_options.recipe, file_options.config, *(recipe_options.ignore or ())]
    refuse_overwriting_inputs([to, rejects, *others], [path for path in of_options if path is not None])
    chosen = recipe_options.chosen(1.0 if comparison.exact else threshold)
    most_rejected = 0 if max_rejected is None and rejects is None else max_rejected
    reading = file_options.reading()
    outputs = (
        Outputs()
        if dry_run
        else Outputs(to, pairs, clusters, rejects, review, output_format, is_sharded, comparison.cuts)
    )
    with ExitStack() as stack:
        # Temporary files are deleted on the way out.
        stack.enter_context(terminal.on_signals(lambda number: sys.exit(128 + number), signal.SIGTERM))
        with outcome.progress() as progress:
            readable = stack.enter_context(readable_twice(files, reading.format, progress))
        originals = dict(zip(readable, files, strict=True))
        fields = replace(file_options.fields(), ids="optional" if vectors is None else "required")
        source = Source(readable, fields, reading=reading, originals=originals)
        terminal.print_warnings(source.notes)
        folder = stack.enter_context(temporary_copies()) if comparison.against else Path()
        against = comparison.sources(fields, reading, folder, with_vectors=chosen.sketch.input == "vector")
        terminal.print_warnings(chain.from_iterable(corpus.notes for corpus in against))
        with outcome.progress(None if against else source) as progress:
            summary = (
                cut_passages(source, chosen, outputs, progress, strict=strict, most_rejected=most_rejected)
                if comparison.cut
                else run(
                    source,
                    chosen,
                    outputs,
                    progress,
                    vectors,
                    against=against,
                    only_against=comparison.only_against,
                    across=comparison.across,
                    earlier_later=comparison.earlier_later,
                    exact=comparison.exact,
                    strict=strict,
                    most_rejected=most_rejected,
                    threads=jobs,
                )
            )
    stream = sys.stderr if STANDARD_OUTPUT in (outputs.unique, *outputs.lists()) else sys.stdout
    done = summaries.dedupe_document(summary, outputs.unique)
    outcome.show(
        done, lambda: summaries.print_dedupe_summary(summary, outputs.unique, outputs.rejects, stream), stream
    )
    terminal.print_warnings(
        [*source.warnings, *chain.from_iterable(one.warnings for one in against), *summary.warnings]
    )
    if summary.rejected is not None:
        if most_rejected is not None and summary.ingest.rejected + summary.against.rejected > most_rejected:
            left = "the output would be written" if dry_run else f"{output} was written"
            inputs.refuse_rejected(summary.rejected, most_rejected, left)
        terminal.print_warning(summary.rejected)


def _check_outputs(
    output: Path | None,
    format: FileFormat | None,
    others: list[Path],
    rejects: Path | None,
    *,
    is_sharded: bool,
    are_lines: bool,
) -> None:
    """Refuse suffixes of unknown formats, of others than JSON lines for `others`, and two outputs at one path.

    With `are_lines` the inputs are lines of text, and so is an output of any other suffix.
    """
    if format is FileFormat.LINES and not are_lines:
        raise UsageError("--output-format lines is for lines of text, which --input-format lines reads")
    if is_sharded and format is not None:
        raise UsageError(
            f"--output-format is for one file; the files in {output} have the format of the input"
        )
    try:
        if output is not None and not is_sharded:
            default = FileFormat.LINES if are_lines else FileFormat.JSONL
            chosen_encoding(output, format, default, option="--output-format")
    except InputError as error:
        raise UsageError(str(error)) from error
    for path in others:
        if file_type(path) in _OTHER_FORMATS:
            raise UsageError(
                f"cannot write {path}: pairs and clusters are written as JSON lines; end the name in .jsonl (also with "
                f"{', '.join(COMPRESSIONS)})"
            )
    paths = [one for one in (output, rejects, *others) if one is not None and one != _NOWHERE]
    if len({one.resolve() for one in paths}) < len(paths):
        raise UsageError(
            "--output, --pairs, --clusters, --review, --cuts and --rejects must be different files"
        )
