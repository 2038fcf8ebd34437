"""Output formats: --format on every command, --json as its short form, and the suffix of --output."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperOption

from nearsim_db.cli.failures import UsageError
from nearsim_db.readers.writers.file_format import FileFormat

_JSON_IS_GIVEN = "nearsim.json"


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


def _resolved(context: typer.Context, value: Any) -> Any:
    """Return the value of --format, json if --json is given instead; refuse both if they differ."""
    if not context.meta.get(_JSON_IS_GIVEN):
        return value
    source = context.get_parameter_source("format")
    if source is not None and source.name == "COMMANDLINE" and value != Format.JSON:
        raise UsageError(f"--json cannot be combined with --format {value}")
    return Format.JSON


_KINDS = "table for people, json for one JSON document, jsonl or csv for a line per row"
AnswerFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        callback=_resolved,
        help=f"Output format: {_KINDS}; csv puts an apostrophe before text that a spreadsheet would run as a formula, "
        "csv-exact does not. [default: by the suffix of --output, otherwise table]",
        show_default=False,
    ),
]
ResultFormat = Annotated[
    Format, typer.Option("--format", callback=_resolved, help=f"Output format: {_KINDS}.")
]
FileFormatOption = Annotated[
    FileFormat | None,
    typer.Option(
        "--format",
        callback=_resolved,
        help="Format of the file if its suffix names none; csv puts an apostrophe before text that a spreadsheet would "
        "run as a formula, csv-exact does not.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Output file (.jsonl, .ndjson, .csv, .json; any suffix with --format) instead of standard output.",
    ),
]


def add_json_option(command: Any) -> None:
    """Add --json, short for --format json, to a command that has --format, or to the commands of a group."""
    for one in _commands_of(command):
        names = [parameter.name for parameter in one.params]
        if "format" in names:
            one.params.insert(names.index("format") + 1, _json_option())


def _commands_of(command: Any) -> Iterator[Any]:
    yield command
    for one in getattr(command, "commands", {}).values():
        yield from _commands_of(one)


def _json_option() -> TyperOption:
    def note(context: Any, parameter: Any, value: bool) -> None:
        context.meta[_JSON_IS_GIVEN] = value

    return TyperOption(
        param_decls=["--json"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=note,
        help="Print one JSON document: short for --format json.",
    )


_SUFFIXES = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".json": Format.JSON,
}


def chosen_format(format: Format | None, output: Path | None) -> Format:
    """Return the format given, otherwise that of the suffix of `output`. Raises UsageError for an unknown suffix."""
    if format is not None:
        return format
    if output is None or output == Path("-"):
        return Format.TABLE
    by_suffix = _SUFFIXES.get(output.suffix.lower())
    if by_suffix is None:
        raise UsageError(
            f"the suffix of {output} is not an output format: end it in {', '.join(_SUFFIXES)}, "
            f"or give --format {', '.join(Format)}"
        )
    return by_suffix
