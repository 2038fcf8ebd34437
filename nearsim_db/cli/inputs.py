"""Options of the commands that read files: what is read, which fields hold what, and how."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import InputError

if TYPE_CHECKING:
    from nearsim_db.readers import Reading


def one_character(given: str) -> str:
    """Return a delimiter of columns. Raises BadParameter if it is not one character, or a quote or line end."""
    character = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if len(character) != 1 or character in '"\r\n':
        raise typer.BadParameter(f"{given!r} is not one character other than a quote or line end")
    return character


def path(text: str) -> Path:
    """Return a path to read. Raises UsageError for a URL, which is not downloaded."""
    if "://" in text:
        raise UsageError(
            f"{text} is a URL, and nearsim reads files: download it, or pipe it to standard input (-)"
        )
    return Path(text)


_FILES = (
    "JSON lines, JSON, CSV, TSV, text files (all also .gz, .zst), Parquet, Arrow, folders of text, Parquet or Arrow "
    "files; - is standard input."
)
_FILE = typer.Argument(metavar="FILE", parser=path, help=_FILES, show_default=False)
Files = Annotated[list[Path], _FILE]
OptionalFiles = Annotated[list[Path] | None, _FILE]
FollowLinks = Annotated[
    bool,
    typer.Option("--follow-links", help="Follow symbolic links in folders, also out of the folder."),
]
IdField = Annotated[str, typer.Option("--id-field", metavar="KEY", help="Field or column that holds the id.")]
TitleField = Annotated[str, typer.Option("--title-field", metavar="KEY", help="Field that holds the title.")]
BodyField = Annotated[
    str | None,
    typer.Option(
        "--body-field", metavar="KEY", help="Field that holds the text. (default: text, otherwise body)"
    ),
]
SourceField = Annotated[
    str, typer.Option("--source-field", metavar="KEY", help="Field that holds the source.")
]
UrlField = Annotated[str, typer.Option("--url-field", metavar="KEY", help="Field that holds the URL.")]
PublishedField = Annotated[
    str,
    typer.Option(
        "--published-field", metavar="KEY", help="Field that holds the publication date (ISO 8601)."
    ),
]
VectorField = Annotated[
    str,
    typer.Option("--vector-field", metavar="KEY", help="Field that holds the vector, an array of numbers."),
]
Vectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        metavar="PATH",
        help="File of vectors: .npy with one row per record in input order, or .parquet with the columns id and "
        "vector.",
    ),
]
Rejects = Annotated[
    Path | None,
    typer.Option(
        "--rejects", metavar="PATH", help="File for rejected records, each with its line and the reason."
    ),
]


def delimiter_option(help: str) -> Any:
    """Return the option --delimiter of tables with a character between the columns."""
    return typer.Option(
        "--delimiter", metavar="CHARACTER", help=help, parser=one_character, show_default=False
    )


Delimiter = Annotated[
    str | None,
    delimiter_option(
        "Character between the columns of CSV and TSV files; tab is a tab. (default: by the suffix)"
    ),
]
OutputDelimiter = Annotated[
    str | None, delimiter_option("Character between the columns of CSV; tab is a tab.")
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the files, such as cp1252, latin-1 or utf-16. (default: utf-8)",
        show_default=False,
    ),
]


class InputFormat(StrEnum):
    """Format of input files."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    ARROW = "arrow"
    TXT = "txt"


InputFormatOption = Annotated[
    InputFormat | None,
    typer.Option(
        "--input-format",
        help="Format of the files and of standard input. (default: by the suffix; standard input is jsonl or json)",
        show_default=False,
    ),
]


def reading_of(
    format: InputFormat | None, encoding: str | None, delimiter: str | None, *, follow_links: bool
) -> "Reading":
    """Return how files are read. Raises UsageError for an unknown encoding."""
    from nearsim_db.readers.contract import Reading
    from nearsim_db.readers.encodings import checked_encoding

    try:
        known = None if encoding is None else checked_encoding(encoding)
    except InputError as error:
        raise UsageError(f"--encoding: {error}") from error
    return Reading(None if format is None else f".{format}", known, delimiter, follow_links)
