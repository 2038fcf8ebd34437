"""Options of the commands that read files: which files, in which format, and which of their fields are used."""

from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import RejectedError, UsageError
from nearsim_db.errors import InputError
from nearsim_db.records import STANDARD_OUTPUT

if TYPE_CHECKING:
    from nearsim_db.readers import Fields, Reading


def one_character(text: str) -> str:
    """Return the delimiter of columns. Raises BadParameter unless it is one character, but no quote or line end."""
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n':
        raise typer.BadParameter(f"{text!r} is not one character other than a quote or line end")
    return character


def escape(text: str) -> str:
    """Return a character with a special meaning in CSV. Raises BadParameter unless it is one character."""
    if len(text) != 1 or text in "\t\r\n":
        raise typer.BadParameter(f"{text!r} is not one character other than a tab or line end")
    return text


def quote(text: str) -> str:
    """Return the character around cells, or "none". Raises BadParameter if `text` is neither."""
    if text != "none" and (len(text) != 1 or text in "\t\r\n"):
        raise typer.BadParameter(f"{text!r} is not one character other than a tab or line end, nor none")
    return text


def path(text: str) -> Path:
    """Return the path of a file to read. Raises UsageError for an empty path, and for a URL."""
    if not text:
        raise UsageError(
            "a FILE is '', which is empty; name a file, a folder (. is this one) or - for standard input"
        )
    if "://" in text:
        raise UsageError(
            f"{text} is a URL, and nearsim reads files: download it, or pipe it to standard input (-)"
        )
    return Path(text)


_input_option = partial(typer.Option, rich_help_panel=options.INPUT)
_limit_option = partial(typer.Option, rich_help_panel=options.LIMITS)

_FILES = (
    "JSON lines, JSON, CSV, TSV, text files, .mbox, .eml, .ris, .bib (all also .gz, .zst, .bz2, .xz), Parquet, Arrow, "
    ".xlsx, SQLite, folders of these, patterns such as 'data/**/*.jsonl', or - for standard input."
)
_FILE = typer.Argument(metavar="FILE...", parser=path, help=_FILES, show_default=False)
Files = Annotated[list[Path], _FILE]
OptionalFiles = Annotated[list[Path] | None, _FILE]
FromSqlite = Annotated[
    Path | None,
    _input_option(
        metavar="FILE",
        parser=path,
        help="Read a table of a SQLite file, with --table or --query, instead of FILE.",
    ),
]
Vectors = Annotated[
    Path | None,
    _input_option(
        "--vectors",
        metavar="PATH",
        help="File of vectors: .npy with a row for each record, in the same order, or .parquet with id and vector.",
    ),
]


def _not_standard_output(path: Path | None) -> Path | None:
    """Return the path of the reject file. Raises UsageError for standard output, to which the command prints."""
    if path == STANDARD_OUTPUT:
        raise UsageError("--rejects -: standard output has what the command prints; name a file")
    return path


def rejects_option(help: str, **settings: Any) -> Any:
    """Return the option --rejects."""
    return _limit_option("--rejects", metavar="PATH", parser=options.path, help=help, **settings)


REJECTS = "File for rejected records, each with its line and the reason"
Rejects = Annotated[Path | None, rejects_option(f"{REJECTS}.", callback=_not_standard_output)]
Strict = Annotated[
    bool,
    _limit_option(
        "--strict",
        help="Stop at the first record that is rejected, has an unreadable date or replaces one of another file.",
    ),
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Report what would be written, without writing it.")]


def max_rejected_option(default: str) -> Any:
    """Return the option --max-rejected."""
    return _limit_option(
        "--max-rejected",
        metavar="N",
        min=0,
        help=f"Exit with 1 if more records are rejected. (default: {default})",
    )


def refuse_rejected(rejected: str, max_rejected: int, done: str) -> None:
    """Raise RejectedError because more records were rejected than --max-rejected allows."""
    raise RejectedError(
        f"{rejected}, and --max-rejected is {max_rejected:,}; {done} without them: "
        "write them to a file with --rejects"
    )


def _delimiter(help: str, panel: str) -> Any:
    return typer.Option(
        "--delimiter", metavar="CHARACTER", help=help, parser=one_character, rich_help_panel=panel
    )


OutputDelimiter = Annotated[
    str | None, _delimiter("Character between the columns of CSV; tab is a tab.", options.OUTPUT)
]


InputFormat = Literal[
    "jsonl",
    "json",
    "csv",
    "tsv",
    "parquet",
    "arrow",
    "txt",
    "lines",
    "html",
    "xml",
    "xlsx",
    "sqlite",
    "mbox",
    "eml",
    "ris",
    "bib",
]


def _field(content: str) -> Any:
    return _input_option(metavar="KEY", help=f"Field with the {content}.")


_CONFIG = "config"


def _use_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the defaults of the input options from a TOML file.

    Raises UsageError if the file cannot be read, has an unknown option, or has a value of the wrong type.
    """
    if path is None:
        return None
    import tomllib

    try:
        settings = {
            name.replace("-", "_"): value for name, value in tomllib.loads(path.read_text("utf-8")).items()
        }
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the options in {path}: {error}") from error

    # The input options of this command.
    allowed = {field.name for field in fields(VectorFileOptions)} & {
        field.name for field in context.command.params
    } - {_CONFIG}

    for name, value in settings.items():
        if name not in allowed:
            raise UsageError(
                f"{path} has the unknown option {name!r}; it may have {', '.join(sorted(allowed))}"
            )
        # All options that are not listed here take a string.
        kind = {"follow_links": bool, "no_header": bool, "date_format": list}.get(name, str)
        if not isinstance(value, kind):
            expected = {bool: "true or false", list: "an array of strings", str: "a string"}[kind]
            raise UsageError(f"{path} has {name} = {value!r}; it must be {expected}")

    context.default_map = {**(context.default_map or {}), **settings}
    return path


@dataclass(eq=False, repr=False)
class FileOptions:
    """How files are read, and which of their fields are the id, the title, the text and so on."""

    config: Annotated[
        Path | None,
        _input_option(
            "--config",
            metavar="PATH",
            is_eager=True,
            callback=_use_config,
            help='TOML file with defaults for the input options, for example id_field = "meta.id".',
        ),
    ] = None
    follow_links: Annotated[
        bool,
        _input_option("--follow-links", help="Follow symbolic links in folders, even out of the folder."),
    ] = False
    input_format: Annotated[
        InputFormat | None,
        _input_option(
            metavar="FORMAT",
            help=f"Format of the files: {', '.join(get_args(InputFormat))}. "
            "(default: by the suffix; jsonl or json on standard input)",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        _input_option(
            metavar="NAME", help="Encoding of the files, such as cp1252, latin-1 or utf-16. (default: utf-8)"
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        _delimiter(
            "Character between the columns of CSV and TSV files; tab is a tab. (default: by the suffix)",
            options.INPUT,
        ),
    ] = None
    quote: Annotated[
        str | None,
        _input_option(
            metavar="CHARACTER",
            parser=quote,
            help='Character around cells of CSV and TSV files, or none if quotes belong to the text. (default: ")',
        ),
    ] = None
    escape: Annotated[
        str | None,
        _input_option(
            metavar="CHARACTER",
            parser=escape,
            help="Character before a quote or delimiter within a cell of CSV and TSV files, such as a backslash.",
        ),
    ] = None
    comment: Annotated[
        str | None,
        _input_option(
            metavar="CHARACTER",
            parser=escape,
            help="Skip lines of CSV and TSV files that begin with this character, such as #.",
        ),
    ] = None
    no_header: Annotated[
        bool,
        _input_option(
            "--no-header", help="CSV and TSV files have no header; their columns are called 1, 2 and so on."
        ),
    ] = False
    records: Annotated[
        str | None,
        _input_option(
            metavar="KEY",
            help="Key of the array of records in a JSON file that is one object; a.b is b within a.",
        ),
    ] = None
    table: Annotated[
        str | None,
        _input_option(
            metavar="NAME",
            help="Table of a SQLite file, or sheet of a spreadsheet. (default: the only one, or the first)",
        ),
    ] = None
    query: Annotated[
        str | None,
        _input_option(metavar="SELECT", help="Query on a SQLite file, instead of --table."),
    ] = None
    id_field: Annotated[
        str,
        typer.Option(
            metavar="KEY",
            help="Field or column with the id (without one: file and line); a.b is b within a, and a,b joins two.",
        ),
    ] = "id"
    title_field: Annotated[
        str, typer.Option(metavar="KEY", help="Field with the title; a,b joins two by a line end.")
    ] = "title"
    body_field: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Field with the text; a,b joins two by a line end. (default: text, otherwise body)",
        ),
    ] = None
    source_field: Annotated[str, _field("source")] = "source"
    url_field: Annotated[str, _field("URL")] = "url"
    published_field: Annotated[str, _field("publication date")] = "published_at"
    date_format: Annotated[
        list[str] | None,
        _input_option(
            metavar="FORMAT",
            help="Form of publication dates as for strptime, such as %d/%m/%Y (repeatable). (default: ISO 8601, "
            "RFC 2822, months by name, seconds since 1970)",
        ),
    ] = None

    def files(self, paths: list[Path] | None, from_sqlite: Path | None) -> list[Path]:
        """Return the files to read: the arguments FILE, or the SQLite file, for which this sets the input format.

        Raises UsageError unless exactly one of the two is given.
        """
        if bool(paths) == (from_sqlite is not None):
            raise UsageError("give either FILE or --from-sqlite")
        if from_sqlite is None:
            return paths or []
        if self.input_format not in (None, "sqlite"):
            raise UsageError("--input-format cannot be combined with --from-sqlite")
        self.input_format = "sqlite"
        return [from_sqlite]

    def reading(self) -> "Reading":
        """Return how files are read. Raises UsageError for an unknown encoding, and for --table with --query."""
        from nearsim_db.readers.contract import Reading
        from nearsim_db.readers.decoding import checked_encoding

        if self.table is not None and self.query is not None:
            raise UsageError("give either --table or --query")

        try:
            encoding = None if self.encoding is None else checked_encoding(self.encoding)
        except InputError as error:
            raise UsageError(f"--encoding: {error}") from error

        suffix = None if self.input_format is None else f".{self.input_format}"
        return Reading(
            format=suffix,
            encoding=encoding,
            delimiter=self.delimiter,
            quote=self.quote,
            escape=self.escape,
            comment=self.comment,
            has_header=not self.no_header,
            records=self.records,
            table=self.table,
            query=self.query,
            follow_links=self.follow_links,
        )

    def fields(self) -> "Fields":
        """Return the names of the fields of a document."""
        from nearsim_db.readers.contract import ID, Fields

        return Fields(
            self.id_field,
            self.title_field,
            self.body_field,
            self.source_field,
            self.url_field,
            self.published_field,
            date_formats=tuple(self.date_format or ()),
            ids="whole" if self.id_field == ID else "required",
        )


@dataclass(eq=False, repr=False)
class VectorFileOptions(FileOptions):
    """How files are read that may have vectors."""

    vector_field: Annotated[str, _field("vector, an array of numbers")] = "vector"

    def fields(self) -> "Fields":
        """Return the names of the fields of a document."""
        return replace(super().fields(), vector=self.vector_field)
