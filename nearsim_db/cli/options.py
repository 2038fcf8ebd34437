"""Options shared by several commands, so that their names and help texts are the same everywhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import completion
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import InputError, RecipeConflictError, suggested_command

if TYPE_CHECKING:
    from nearsim_db.readers import Reading
    from nearsim_db.similarity.recipe import Recipe

DEFAULT_COLLECTION = "default"
DEFAULT_PROFILE = "default"
COLLECTION_VARIABLE, PROFILE_VARIABLE = "NEARSIM_COLLECTION", "NEARSIM_PROFILE"


def one_character(given: str) -> str:
    """Return a delimiter of columns. Raises BadParameter if it is not one character, or a quote or line end."""
    character = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if len(character) != 1 or character in '"\r\n':
        raise typer.BadParameter(f"{given!r} is not one character other than a quote or line end")
    return character


Collection = Annotated[
    str,
    typer.Option(
        "--collection",
        "-c",
        metavar="NAME",
        autocompletion=completion.collections,
        envvar=COLLECTION_VARIABLE,
        help="Collection to use.",
    ),
]
OneCollection = Annotated[
    str | None,
    typer.Option(
        "--collection",
        "-c",
        autocompletion=completion.collections,
        metavar="NAME",
        envvar=COLLECTION_VARIABLE,
        help="Only this collection. (default: all)",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        autocompletion=completion.profiles,
        metavar="NAME",
        envvar=PROFILE_VARIABLE,
        help="Profile to use; required if there are several and none is named default.",
    ),
]


NewProfile = Annotated[
    str,
    typer.Option(
        "--profile",
        "-p",
        autocompletion=completion.profiles,
        metavar="NAME",
        envvar=PROFILE_VARIABLE,
        help="Profile to create if missing.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print no progress bar and no summary; errors are still printed."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Processes that build the index of a large collection; by default as many as there are cores.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")]


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
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        parser=path,
        help=_FILES,
        show_default=False,
    ),
]
OptionalFiles = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE",
        parser=path,
        help=_FILES,
        show_default=False,
    ),
]
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

Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        "-t",
        metavar="SIMILARITY",
        help="Similarity threshold, as --set match.threshold=.",
        show_default=False,
    ),
]
RecipeFile = Annotated[Path | None, typer.Option("--recipe", metavar="R.toml", help="Recipe file in TOML.")]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        autocompletion=completion.presets,
        metavar="NAME",
        help="Recipe that ships with nearsim; list them with: nearsim profile presets.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        autocompletion=completion.recipe_keys,
        metavar="KEY=VALUE",
        help="Set a recipe key, e.g. match.threshold=0.8 (repeatable).",
    ),
]


class OnDuplicate(StrEnum):
    """Action for a document that has near-duplicates."""

    FLAG = "flag"
    SKIP = "skip"
    RAISE = "raise"


MinSimilarity = Annotated[
    float,
    typer.Option(
        "--min-similarity",
        metavar="SIMILARITY",
        min=0.0,
        max=1.0,
        help="Lowest similarity to report, at or above the profile's threshold. A distance d is 1 / (1 + d).",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        metavar="N",
        min=1,
        help="Maximum number of rows. (default: all; 50 for a table on standard output)",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHARACTER",
        help="Character between the columns of CSV and TSV files; tab is a tab. (default: by the suffix)",
        parser=one_character,
        show_default=False,
    ),
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


OutputDelimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHARACTER",
        help="Character between the columns of CSV; tab is a tab.",
        parser=one_character,
        show_default=False,
    ),
]
ExportLimit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        metavar="N",
        min=1,
        help="Maximum number of documents. (default: all)",
        show_default=False,
    ),
]
MatchLimit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        metavar="N",
        min=1,
        help="Maximum number of matches of each document: the first by estimate. (default: all)",
        show_default=False,
    ),
]


def chosen_recipe(
    file: Path | None, preset: str | None, settings: list[str] | None, threshold: float | None = None
) -> "Recipe":
    """Return the recipe of the options, by default the preset `default`, with --set and --threshold applied."""
    from nearsim_db.similarity import presets, recipe

    if file is not None and preset is not None:
        raise UsageError("give either --recipe or --preset, not both")
    chosen = presets.load(preset or presets.DEFAULT) if file is None else recipe.load(file)
    overrides = with_threshold(settings, threshold)
    return recipe.override(chosen, overrides) if overrides else chosen


def with_threshold(settings: list[str] | None, threshold: float | None) -> list[str] | None:
    """Return the --set options with one for --threshold."""
    return settings if threshold is None else [*(settings or []), f"match.threshold={threshold}"]


def chosen_recipe_if_any(
    file: Path | None, preset: str | None, settings: list[str] | None, threshold: float | None
) -> "Recipe | None":
    """Return the recipe as `chosen_recipe` does, None if no option is given."""
    is_given = any(option is not None for option in (file, preset, settings, threshold))
    return chosen_recipe(file, preset, settings, threshold) if is_given else None


@contextmanager
def advising_reindex(
    collection: str,
    profile: str,
    file: Path | None,
    preset: str | None,
    settings: list[str] | None,
    threshold: float | None,
) -> Iterator[None]:
    """Add to a refusal of the recipe how to rebuild the profile with it."""
    try:
        yield
    except RecipeConflictError as error:
        base = ["--preset", preset or "default"] if file is None else ["--recipe", str(file)]
        changes = [word for one in settings or () for word in ("--set", one)]
        changes += [] if threshold is None else ["--threshold", f"{threshold:g}"]
        command = suggested_command("reindex start", collection, profile, *base, *changes)
        raise UsageError(
            f"{error}; to rebuild it: {command}; or name another profile with --profile"
        ) from error
