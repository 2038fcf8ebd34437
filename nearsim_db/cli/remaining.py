"""Options and output that `nearsim dedupe` and `nearsim cut` share; both write the remaining documents of files."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nearsim_db.cli import inputs, options, recipes
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import summaries, terminal
from nearsim_db.errors import InputError
from nearsim_db.readers.writers.file_format import COMPRESSIONS, FileFormat, chosen_encoding, file_type
from nearsim_db.records import STANDARD_OUTPUT

if TYPE_CHECKING:
    from nearsim_db.deduplication.files import DedupeSummary
    from nearsim_db.deduplication.output import Outputs
    from nearsim_db.readers import Source

# Pairs and clusters are JSON lines, so a file name may not promise one of these formats.
_OTHER_FORMATS = {".zip", ".csv", ".tsv", ".parquet"}
# The only path that several outputs may share.
_NOWHERE = Path(os.devnull)


_Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="File for the remaining documents, in the format of its suffix or of the input; or a folder, such as "
        "out/, with a file for each input file; or - for standard output.",
    ),
]
_OutputFormat = Annotated[
    FileFormat | None,
    typer.Option(
        "--output-format",
        metavar="FORMAT",
        help="Format, if the suffix of --output names none: jsonl, json, csv, csv-exact, tsv, parquet or lines. "
        "(default: that of the input)",
        rich_help_panel=options.OUTPUT,
    ),
]
_Rejects = Annotated[Path | None, inputs.rejects_option(f"{inputs.REJECTS}; - is standard output.")]
_MaxRejected = Annotated[int | None, inputs.max_rejected_option("0, or any number with --rejects")]


def lines_option(content: str, **settings: Any) -> Any:
    """Return an option for an output file of JSON lines."""
    return typer.Option(
        metavar="PATH", parser=options.path, help=f"File for the {content}, as JSON lines.", **settings
    )


@dataclass(eq=False, repr=False)
class RemainingOptions:
    """Where the remaining documents are written, and what happens to rejected records."""

    output: _Output = None
    output_format: _OutputFormat = None
    dry_run: inputs.DryRun = False
    rejects: _Rejects = None
    max_rejected: _MaxRejected = None
    strict: inputs.Strict = False

    @property
    def allowed_rejects(self) -> int | None:
        """The maximum number of rejected records; None for any number."""
        return 0 if self.max_rejected is None and self.rejects is None else self.max_rejected

    @property
    def is_sharded(self) -> bool:
        """Whether the output is a folder with one file for each input file."""
        return self.output is not None and (self.output.endswith(os.sep) or Path(self.output).is_dir())

    @property
    def path(self) -> Path | None:
        """The path of --output. If it is missing, this is None in a dry run, and raises UsageError otherwise."""
        if not self.output and not self.dry_run:
            raise UsageError("give --output PATH (- for standard output), or --dry-run")
        if self.output is None:
            return None
        return Path(self.output) if self.is_sharded else options.path(self.output)

    def check(
        self,
        lists: Sequence[Path],
        recipe_options: recipes.RecipeOptions,
        file_options: inputs.FileOptions,
    ) -> None:
        """Check all output paths before anything is read.

        Raises UsageError for a format that cannot be written, for two outputs at the same path, and for an output that
        would overwrite a file that another option reads.
        """
        _check_outputs(
            self.path,
            self.output_format,
            lists,
            self.rejects,
            is_sharded=self.is_sharded,
            are_lines=file_options.input_format == "lines",
        )
        from nearsim_db.readers import refuse_overwriting_inputs

        of_options = [recipe_options.recipe, file_options.config, *(recipe_options.ignore or ())]
        refuse_overwriting_inputs(
            [self.path, self.rejects, *lists], [path for path in of_options if path is not None]
        )

    def outputs(self, **lists: Path | None) -> "Outputs":
        """Return the files to write, including those of `lists`; no file in a dry run."""
        from nearsim_db.deduplication.output import Outputs

        if self.dry_run:
            return Outputs()
        return Outputs(
            self.path, rejects=self.rejects, format=self.output_format, sharded=self.is_sharded, **lists
        )


@contextmanager
def opened_source(
    files: list[Path],
    file_options: inputs.FileOptions,
    outcome: options.Outcome,
    ids: Literal["required", "optional"] = "optional",
) -> Iterator["Source"]:
    """Open the input files; copy streams, which can be read once only, to temporary files.

    The copies are deleted after the block, even if a signal ends the process.
    """
    from nearsim_db.readers import Source
    from nearsim_db.readers.inputs import readable_twice

    reading = file_options.reading()
    with ExitStack() as stack:
        # The default action of SIGTERM would skip the clean-up of the block; an exit runs it.
        stack.enter_context(terminal.on_signals(lambda number: sys.exit(128 + number), signal.SIGTERM))
        with outcome.progress() as progress:
            readable = stack.enter_context(readable_twice(files, reading.format, progress))
        # Messages name the paths of the command line, not the copies.
        originals = dict(zip(readable, files, strict=True))
        fields = replace(file_options.fields(), ids=ids)
        source = Source(readable, fields, reading=reading, originals=originals)
        terminal.print_warnings(source.notes)
        yield source


def show_summary(
    summary: "DedupeSummary",
    outputs: "Outputs",
    sources: Sequence["Source"],
    outcome: options.Outcome,
    max_rejected: int | None,
) -> None:
    """Print the summary and its warnings; exit with 3 if more records were rejected than --max-rejected allows."""
    # Standard output may have documents or lists, so the summary then goes to standard error.
    stream = sys.stderr if STANDARD_OUTPUT in (outputs.unique, *outputs.lists()) else sys.stdout
    document = summaries.dedupe_document(summary, outputs.unique)
    outcome.show(
        document,
        lambda: summaries.print_dedupe_summary(summary, outputs.unique, outputs.rejects, stream),
        stream,
    )

    of_files = chain.from_iterable(source.warnings for source in sources)
    terminal.print_warnings([*of_files, *summary.warnings])

    if summary.rejected is None:
        return
    if max_rejected is not None and summary.ingest.rejected + summary.against.rejected > max_rejected:
        is_dry = outputs.unique is None
        left = "the output would be written" if is_dry else f"{outputs.unique} was written"
        inputs.refuse_rejected(summary.rejected, max_rejected, left)
    terminal.print_warning(summary.rejected)


def _check_outputs(
    output: Path | None,
    format: FileFormat | None,
    lists: Sequence[Path],
    rejects: Path | None,
    *,
    is_sharded: bool,
    are_lines: bool,
) -> None:
    """Raise UsageError for an unknown format, a list that is not JSON lines, and two outputs at one path.

    With `are_lines` the inputs are lines of text, and so is an output whose suffix names no format.
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

    for path in lists:
        if file_type(path) in _OTHER_FORMATS:
            raise UsageError(
                f"cannot write {path}: pairs and clusters are written as JSON lines; end the name in .jsonl (also with "
                f"{', '.join(COMPRESSIONS)})"
            )

    paths = [path for path in (output, rejects, *lists) if path is not None and path != _NOWHERE]
    # Compare resolved paths: two names may lead to the same file.
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(
            "--output, --pairs, --clusters, --review, --cuts and --rejects must be different files"
        )
