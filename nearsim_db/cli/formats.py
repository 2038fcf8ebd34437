"""Output formats: --format, and the suffix of --output."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nearsim_db.cli.failures import UsageError
from nearsim_db.readers.writers.file_format import COMPRESSIONS, SUFFIXES, file_type
from nearsim_db.records import STANDARD_OUTPUT

# Parameters of --json, and of --output where a command has none of its own.
AS_JSON, PRINT_TO = "as_json", "print_to"
PARQUET_SUFFIX = ".parquet"
_STANDARD_OUTPUT_DEVICE = Path("/dev/stdout")


class Format(StrEnum):
    """Output format of answers and results."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    CSV_EXACT = "csv-exact"

    @property
    def is_machine(self) -> bool:
        """Whether it is for programs."""
        return self is not Format.TABLE


def path(given: str | Path) -> Path:
    """Return the path of an output file, that of standard output for its device.

    Raises UsageError for a folder: one there is, or a name that ends as one.
    """
    if str(given).endswith(os.sep) or Path(given).is_dir():
        raise UsageError(f"cannot write to {str(given)!r}: it is a folder; name a file in it")
    # Opened by its name, a file to which standard output is redirected would be written from its beginning again.
    return STANDARD_OUTPUT if Path(given) == _STANDARD_OUTPUT_DEVICE else Path(given)


def is_typed(context: typer.Context, parameter: str) -> bool:
    """Whether a parameter is on the command line: not by default or from the environment."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def resolved(context: typer.Context, value: Any) -> Any:
    """Return the value of --format, otherwise json if --json is given, otherwise the format of the suffix of --output.

    Raises UsageError if --json and --format differ, and for a suffix that is none of a format.
    """
    is_given = is_typed(context, "format")
    output: Path | None = context.params.get(PRINT_TO)
    if context.params.get(AS_JSON):
        if is_given and value != Format.JSON:
            raise UsageError(f"--json cannot be combined with --format {value}")
        return chosen_format(Format.JSON, output)
    if is_given and value is not None:
        refuse_contradiction(value, output)
    takes_value = is_given or output in (None, STANDARD_OUTPUT) or is_toml(context, value=False)
    return value if takes_value else chosen_format(None, output)


def is_toml(context: typer.Context, value: bool) -> bool:
    """Return --toml, true also if --output of a command that has it ends in .toml."""
    output: Path | None = context.params.get(PRINT_TO)
    has_option = any("--toml" in one.opts for one in context.command.params)
    return value or (has_option and output is not None and output.suffix.lower() == ".toml")


_KINDS = "table for people, json for one JSON document, jsonl or csv for a line per row"
AnswerFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        callback=resolved,
        help=f"Output format: {_KINDS}; csv puts an apostrophe before text that a spreadsheet would run as a formula, "
        "csv-exact does not. [default: by the suffix of --output, otherwise table]",
    ),
]
ResultFormat = Annotated[
    Format, typer.Option("--format", callback=resolved, help=f"Output format: {_KINDS}.")
]
TableFormat = Literal["jsonl", "json", "csv", "csv-exact", "tsv", "parquet"]  # of records with columns
FileFormatOption = Annotated[
    TableFormat | None,
    typer.Option(
        "--format",
        callback=resolved,
        help="Format of the file if its suffix names none; csv puts an apostrophe before text that a spreadsheet would "
        "run as a formula, csv-exact does not.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        parser=path,
        help="Output file (.jsonl, .ndjson, .csv, .json, .txt, each also with .gz, .zst, .bz2 or .xz; .parquet; any "
        "other suffix with --format) instead of standard output.",
    ),
]


def is_parquet(output: Path | None) -> bool:
    """Whether rows are written to a file as Parquet. Raises UsageError for a name that compresses it again."""
    if output is None or file_type(output) != PARQUET_SUFFIX:
        return False
    if output.suffix.lower() in COMPRESSIONS:
        raise UsageError(f"cannot write {output}: Parquet is compressed internally; end the name in .parquet")
    return True


def refuse_contradiction(format: str, output: Path | None, *, as_rows: bool = False) -> None:
    """Raise UsageError if the suffix of `output` is that of another format; `as_rows` as for `chosen_format`."""
    if as_rows and is_parquet(output):
        raise UsageError(f"--format {format} contradicts the suffix of {output}; leave one out")
    by_suffix = None if output is None else _SUFFIXES.get(_suffix(output, as_rows=as_rows))
    if by_suffix not in (None, Format.CSV if format == Format.CSV_EXACT else format):
        raise UsageError(
            f"--format {format} contradicts the suffix of {output}, which is that of {by_suffix}; leave one out"
        )


_SUFFIXES = {suffix: Format[one.name] for suffix, one in SUFFIXES.items() if one.name in Format.__members__}
_SUFFIXES[".txt"] = Format.TABLE


def _suffix(output: Path, *, as_rows: bool) -> str:
    return file_type(output) if as_rows else output.suffix.lower()


def chosen_format(format: Format | None, output: Path | None, *, as_rows: bool = False) -> Format:
    """Return the format given, otherwise that of the suffix of `output`.

    Files of rows may be compressed, and Parquet, which has the rows of csv-exact.
    Raises UsageError for an unknown suffix, and for one that contradicts the format given.
    """
    if format is not None:
        refuse_contradiction(format, output, as_rows=as_rows)
        return format
    if output is None or output == STANDARD_OUTPUT:
        return Format.TABLE
    if as_rows and is_parquet(output):
        return Format.CSV_EXACT
    by_suffix = _SUFFIXES.get(_suffix(output, as_rows=as_rows))
    if by_suffix is None:
        raise UsageError(
            f"the suffix of {output} is not an output format: end it in {', '.join(_SUFFIXES)}, "
            f"or give --format {', '.join(Format)}"
        )
    return by_suffix
