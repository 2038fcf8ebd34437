"""Options that several commands share, so that an option has the same name and help text everywhere."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import terminal
from nearsim_db.cli.output.progress import LogFormat, progress_bars
from nearsim_db.errors import NearsimError
from nearsim_db.readers.writers.file_format import COMPRESSIONS, SUFFIXES, file_type
from nearsim_db.records import DEFAULT as DEFAULT
from nearsim_db.records import STANDARD_OUTPUT

if TYPE_CHECKING:
    from nearsim_db.cli.output.layouts import Answer, Layout
    from nearsim_db.index import Index
    from nearsim_db.readers import Source
    from nearsim_db.records import Progress
    from nearsim_db.search.answers import Answers
    from nearsim_db.search.queries import Queries
    from nearsim_db.store.database import Database

# Panels of the help, in this order. Before them come the options that most users need, which are in no panel.
PANELS = ("Input", "Matching", "Against", "Output", "Marks", "Limits")
INPUT, MATCHING, AGAINST, OUTPUT, MARKS, LIMITS = PANELS

_MAX_TABLE_ROWS = 50
# The shortest timeout that the database driver accepts.
_COMPLETION_TIMEOUT_SECONDS = 2


def connect(threads: int | None = None) -> "Database":
    """Open the database. Its libraries are imported here, so that other commands start without them."""
    from nearsim_db.store.database import Database

    return Database.connect(threads=threads)


def connect_to(collection: str | None, threads: int | None = None) -> "tuple[Database, str]":
    """Open the database, and return it with the name of the collection to use.

    Without a name it is the collection default, otherwise the only collection, as in the SQL functions.
    """
    database = connect(threads)
    return database, collection or database.default_collection()


def beginning(names: list[str], incomplete: str) -> list[str]:
    """Return the names that begin with `incomplete`."""
    return [name for name in names if name.startswith(incomplete)]


def complete_collection(incomplete: str) -> list[str]:
    """Return the collections whose names start with `incomplete`."""
    return beginning(_names(None), incomplete)


def complete_profile(context: typer.Context, incomplete: str) -> list[str]:
    """Return the profiles of the collection on the command line whose names start with `incomplete`."""
    return beginning(_names(context.params.get("collection") or DEFAULT), incomplete)


def _names(collection: str | None) -> list[str]:
    """Return the names of the collections, or of the profiles of a collection.

    Returns no name if they cannot be read at once. Starts no server.
    """
    from nearsim_db.store import embedded
    from nearsim_db.store.access import collection_rows
    from nearsim_db.store.driver.driver_errors import translate_errors
    from nearsim_db.store.driver.engine import open_engine
    from nearsim_db.store.generations import generation_rows
    from nearsim_db.store.settings import from_environment

    try:
        settings = from_environment()
        url = settings.database_url
        if url is None:
            # A completion must not wait for a server to start.
            server = embedded.status(settings.home)
            if not server.running:
                return []
            url = server.dsn
        with (
            translate_errors(),
            open_engine(url, timeout_seconds=_COMPLETION_TIMEOUT_SECONDS).connect() as connection,
        ):
            if collection is None:
                return [collection.name for collection in collection_rows.list_collections(connection)]
            stored = collection_rows.get_collection(connection, collection)
            return sorted(generation_rows.profile_names(connection, stored.collection_id))
    except NearsimError:
        # A completion has no place for messages; the command that is then run reports the error.
        return []


# The parameters that `app` adds to commands: --json, and --output for commands that do not declare it.
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
        """Whether programs read this format."""
        return self is not Format.TABLE


def path(name: str | Path) -> Path:
    """Return the path of an output file; /dev/stdout becomes -.

    Raises UsageError for a folder, and for a name that ends in a slash.
    """
    if str(name).endswith(os.sep) or Path(name).is_dir():
        raise UsageError(f"cannot write to {str(name)!r}: it is a folder; name a file in it")
    # If standard output is redirected to a file, opening /dev/stdout would overwrite that file from its beginning.
    return STANDARD_OUTPUT if Path(name) == _STANDARD_OUTPUT_DEVICE else Path(name)


def is_typed(context: typer.Context, parameter: str) -> bool:
    """Whether the value of a parameter comes from the command line, not from a default or the environment."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def resolved(context: typer.Context, value: Any) -> Any:
    """Return the value of --format, otherwise json if --json is given, otherwise the format of the suffix of --output.

    Raises UsageError if --json and --format differ, or if the suffix is that of no format.
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
    """Return the value of --toml, or true if the command has that option and its --output ends in .toml."""
    output: Path | None = context.params.get(PRINT_TO)
    has_option = any("--toml" in parameter.opts for parameter in context.command.params)
    return value or (has_option and output is not None and output.suffix.lower() == ".toml")


def format_option(help: str, **settings: Any) -> Any:
    """Return the option --format."""
    return typer.Option(
        "--format", metavar="FORMAT", callback=resolved, help=help, rich_help_panel=OUTPUT, **settings
    )


_BY_SUFFIX = "Format, if the suffix of --output names none:"
_FORMULAS = "csv-exact, which has no apostrophe before formulas"
AnswerFormat = Annotated[
    Format | None,
    format_option(f"{_BY_SUFFIX} table (the default), json, jsonl, csv or {_FORMULAS}."),
]
ResultFormat = Annotated[Format, format_option(f"{_BY_SUFFIX} table, json, jsonl, csv or csv-exact.")]
# For a command that only prints a message about what it did. The option is hidden: programs need only --json.
MessageFormat = Annotated[Format, format_option("Format of the message.", hidden=True)]
TableFormat = Literal["jsonl", "json", "csv", "csv-exact", "tsv", "parquet"]  # of records with columns
FileFormatOption = Annotated[
    TableFormat | None,
    format_option(f"{_BY_SUFFIX} jsonl (the default), json, csv, tsv, parquet or {_FORMULAS}."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        parser=path,
        help="Output file instead of standard output; its suffix is the format: .jsonl, .json, .csv, .txt (each also "
        "with .gz, .zst, .bz2, .xz) or .parquet.",
        rich_help_panel=OUTPUT,
    ),
]


def is_parquet(output: Path | None) -> bool:
    """Whether rows are written to a Parquet file. Raises UsageError for a name such as x.parquet.gz."""
    if output is None or file_type(output) != PARQUET_SUFFIX:
        return False
    if output.suffix.lower() in COMPRESSIONS:
        raise UsageError(f"cannot write {output}: Parquet is compressed internally; end the name in .parquet")
    return True


def refuse_contradiction(format: str, output: Path | None, *, as_rows: bool = False) -> None:
    """Raise UsageError if the suffix of `output` belongs to another format; `as_rows` is as in `chosen_format`."""
    if as_rows and is_parquet(output):
        raise UsageError(f"--format {format} contradicts the suffix of {output}; leave one out")

    by_suffix = None if output is None else _SUFFIXES.get(_suffix(output, as_rows=as_rows))
    if by_suffix not in (None, Format.CSV if format == Format.CSV_EXACT else format):
        raise UsageError(
            f"--format {format} contradicts the suffix of {output}, which is that of {by_suffix}; leave one out"
        )


_SUFFIXES = {
    suffix: Format[named.name] for suffix, named in SUFFIXES.items() if named.name in Format.__members__
}
_SUFFIXES[".txt"] = Format.TABLE


def _suffix(output: Path, *, as_rows: bool) -> str:
    return file_type(output) if as_rows else output.suffix.lower()


def chosen_format(format: Format | None, output: Path | None, *, as_rows: bool = False) -> Format:
    """Return `format`, or the format of the suffix of `output` if `format` is None.

    `as_rows`: the output is a list of rows, which may be compressed or be Parquet. The rows of Parquet are those of
    csv-exact. Raises UsageError for an unknown suffix, and for a suffix that contradicts `format`.
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


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """Return an argument whose help shows no default."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **settings)


def output_option(help: str, metavar: str = "PATH", **settings: Any) -> Any:
    """Return the option --output for a command that writes the file itself."""
    return typer.Option("--output", "-o", metavar=metavar, parser=path, help=help, **settings)


def _named_option(name: str, completed: Callable[..., object], help: str, **settings: Any) -> Any:
    """Return the option --collection or --profile, by default from NEARSIM_COLLECTION or NEARSIM_PROFILE."""
    defaults: dict[str, Any] = {
        "autocompletion": completed,
        "envvar": f"NEARSIM_{name.upper()}",
        "show_envvar": False,
    }
    return typer.Option(f"--{name}", f"-{name[0]}", metavar="NAME", help=help, **(defaults | settings))


collection_option = partial(_named_option, "collection", complete_collection)
profile_option = partial(_named_option, "profile", complete_profile)


def limit_option(help: str) -> Any:
    """Return the option --limit."""
    return typer.Option("--limit", "-n", metavar="N", min=1, help=help, rich_help_panel=OUTPUT)


CHOSEN_PROFILE = "Profile to use. (default: default, otherwise the only one)"
Collection = Annotated[
    str | None, collection_option("Collection to use. (default: default, otherwise the only one)")
]
NewCollection = Annotated[str, collection_option("Collection to use, created if missing.")]
OneCollection = Annotated[str | None, collection_option("Only this collection. (default: all)")]
Profile = Annotated[str | None, profile_option(CHOSEN_PROFILE)]
NewProfile = Annotated[str, profile_option("Profile to create if missing.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print no progress bar and no summary; errors are still printed.",
        rich_help_panel=OUTPUT,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Threads that encode and compare. (default: one for each core)",
        rich_help_panel=LIMITS,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")]


MinSimilarity = Annotated[
    float,
    typer.Option(
        "--min-similarity",
        metavar="SIMILARITY",
        min=0,
        max=1,
        help="Lowest similarity to report; a distance d is the similarity 1 / (1 + d).",
    ),
]
Limit = Annotated[
    int | None, limit_option("Maximum number of rows. (default: all, or 50 in a table on standard output)")
]
MatchLimit = Annotated[
    int | None,
    limit_option("List at most N matches of each document: those with the best estimates. (default: all)"),
]
ExportLimit = Annotated[int | None, limit_option("Maximum number of documents. (default: all)")]


@dataclass(eq=False, repr=False)
class Scope:
    """The collection and the profile that a command uses."""

    collection: Collection = None
    profile: Profile = None

    def answers(self) -> "Answers":
        """Open the collection for queries of stored pairs and clusters."""
        from nearsim_db.search.answers import Answers

        return Answers(*connect_to(self.collection), self.profile)

    def queries(self) -> "Queries":
        """Open the collection for all queries, including lookups of texts."""
        from nearsim_db.search.queries import Queries

        return Queries(*connect_to(self.collection), self.profile)


@dataclass(eq=False, repr=False)
class TwoDocuments:
    """Two documents, by their ids."""

    left: Annotated[str, argument("ID", "Id of a document.")]
    right: Annotated[str, argument("ID", "Id of another document.")]


@dataclass(eq=False, repr=False)
class Result:
    """How a command prints one result: as text for people, or in a format for programs."""

    format: ResultFormat = Format.TABLE

    @property
    def is_silent(self) -> bool:
        """Whether the command prints neither text nor progress."""
        # Subclasses declare --quiet; a plain Result does not.
        return getattr(self, "quiet", False) or self.format.is_machine

    def show(self, value: object, text: str | Callable[[], object], stream: TextIO | None = None) -> None:
        """Print a value in the format for programs; or print its text, unless the command is silent.

        `text` is a message, or a function that prints the text. `stream` is where a value goes, by default standard
        output.
        """
        if self.format.is_machine:
            from nearsim_db.cli.output.streams import print_document

            print_document(self.format, value, stream)
        elif not self.is_silent:
            terminal.print_info(text) if isinstance(text, str) else text()


def _log_format_option(**settings: Any) -> Any:
    return typer.Option(
        "--log-format",
        help="Progress, warnings and errors as lines of text or JSON. (default: bars on a terminal, otherwise text)",
        rich_help_panel=OUTPUT,
        **settings,
    )


@dataclass(eq=False, repr=False)
class Reporting:
    """Whether a command shows its progress, and how it writes to standard error."""

    quiet: Quiet = False
    log_format: Annotated[LogFormat | None, _log_format_option()] = None

    def __post_init__(self) -> None:
        """Set the format of all messages on standard error."""
        terminal.write_notes(as_json=self.log_format == "json")

    def progress(
        self, source: "Source | None" = None, *, for_programs: bool = False
    ) -> AbstractContextManager["Progress"]:
        """Return a context in which progress is shown.

        `for_programs`: the output is for programs, so progress is shown only if --log-format is given.
        """
        is_quiet = self.quiet or (for_programs and self.log_format is None)
        return progress_bars(is_quiet, source, self.log_format)


@dataclass(eq=False, repr=False)
class Outcome(Reporting, Result):
    """How a command reports what it did, and whether it shows its progress."""

    format: MessageFormat = Format.TABLE

    def progress(
        self, source: "Source | None" = None, *, for_programs: bool = False
    ) -> AbstractContextManager["Progress"]:
        """Return a context in which progress is shown; with a format for programs, only if --log-format is given."""
        return super().progress(source, for_programs=for_programs or self.format.is_machine)

    @contextmanager
    def index(self, collection: str | None, threads: int | None = None) -> Iterator["Index"]:
        """Open the index of a collection, and show progress in the block; print the index's warnings at its end."""
        from nearsim_db.index import Index

        database, name = connect_to(collection, threads)
        with self.progress() as progress, Index(database, name, progress=progress) as index:
            yield index
        terminal.print_warnings(index.warnings)


@dataclass(eq=False, repr=False)
class ShortOutcome(Outcome):
    """How a command that takes only a moment reports what it did; without progress, --log-format is hidden."""

    log_format: Annotated[LogFormat | None, _log_format_option(hidden=True)] = None


@dataclass(eq=False, repr=False)
class Rows:
    """How a command prints rows, and how many of them."""

    format: AnswerFormat = None
    output: Output = None
    limit: Limit = None
    quiet: Quiet = False

    def __post_init__(self) -> None:
        """Raise UsageError if the suffix of --output is unknown, or contradicts --format."""
        self.chosen()

    def chosen(self) -> Format:
        """Return the value of --format, otherwise the format of the suffix of --output."""
        return chosen_format(self.format, self.output, as_rows=True)

    @property
    def is_to_file(self) -> bool:
        """Whether the rows are written to a file."""
        return self.output is not None and self.output != STANDARD_OUTPUT

    @property
    def table_limit(self) -> int | None:
        """The maximum number of rows of a table, by default 50 on standard output.

        None if all rows are printed, or if the format is not table.
        """
        if self.chosen() is not Format.TABLE:
            return None
        return self.limit if self.limit or self.is_to_file else _MAX_TABLE_ROWS

    def write(
        self, layout: "Layout[Answer]", answers: "Generator[Answer, None, None]", **details: Any
    ) -> None:
        """Write answers as they arrive; see `streams.write`."""
        from nearsim_db.cli.output import streams

        streams.write(layout, answers, self, **details)


@dataclass(eq=False, repr=False)
class MatchRows(Rows):
    """How a command prints the documents that it looks up, and how many matches it lists for each."""

    limit: MatchLimit = None


_ARGUMENT = "nearsim.argument"


def _note_argument(context: typer.Context, value: str | None) -> str | None:
    context.meta[_ARGUMENT] = value
    return value


def argument_or_option(
    context: typer.Context, parameter: typer.CallbackParam, value: str | None
) -> str | None:
    """Return the value of the argument that users may give instead of an option, otherwise the option's value."""
    argument: str | None = context.meta.get(_ARGUMENT)
    if argument is None or argument == value:
        return argument or value
    # The argument overrides a value from the environment, but not another value on the command line.
    if is_typed(context, parameter.name or ""):
        raise UsageError(f"{argument} and --{parameter.name} {value} differ; give one of them")
    return argument


def _argument(name: str, completed: Callable[..., object]) -> Any:
    """Return the argument that users may give instead of the option --NAME."""
    # Eager, so that its value is noted before the callback of the option looks for it.
    settings: dict[str, Any] = {"autocompletion": completed, "is_eager": True, "callback": _note_argument}
    return argument(f"[{name.upper()}]", f"The same as --{name}.", **settings)


ProfileArgument = Annotated[str | None, _argument("profile", complete_profile)]
ProfileOrArgument = Annotated[str | None, profile_option(CHOSEN_PROFILE, callback=argument_or_option)]
CollectionArgument = Annotated[str | None, _argument("collection", complete_collection)]
CollectionOrArgument = Annotated[
    str | None, collection_option("Collection that is attached to a table.", callback=argument_or_option)
]
