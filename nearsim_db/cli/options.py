"""Options shared by several commands, so that their names and help texts are the same everywhere."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli.failures import UsageError

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Limits
    from nearsim_db.similarity.recipe import Recipe

DEFAULT_COLLECTION = "default"

Collection = Annotated[str, typer.Option("--collection", "-c", metavar="NAME", help="Collection to use.")]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        metavar="NAME",
        help="Profile to use; required if there are several and none is named default.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
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

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="JSON lines, CSV, TSV (also .gz, .zst), Parquet, text files, or folders of text files.",
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

RecipeFile = Annotated[Path | None, typer.Option("--recipe", metavar="R.toml", help="Recipe file in TOML.")]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="Recipe that ships with nearsim; list them with: nearsim profile presets.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set a recipe key, e.g. match.threshold=0.8 (repeatable)."
    ),
]


class Format(StrEnum):
    """Output format of answers."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    CSV_EXACT = "csv-exact"


class OnDuplicate(StrEnum):
    """Action for a document that has near-duplicates."""

    FLAG = "flag"
    SKIP = "skip"
    RAISE = "raise"


AnswerFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="Output format: table for people, jsonl or csv to stream all rows; csv puts an apostrophe before text "
        "that a spreadsheet would run as a formula, csv-exact does not. "
        "[default: by the suffix of --output, otherwise table]",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Output file (.jsonl, .ndjson, .csv; any suffix with --format) instead of standard output.",
    ),
]
MinSimilarity = Annotated[
    float,
    typer.Option(
        "--min-similarity",
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
        min=1,
        help="Maximum number of rows. (default: all; 50 for a table on standard output)",
        show_default=False,
    ),
]
MatchLimit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=1,
        help="Maximum number of matches of each document: the first by estimate. (default: all)",
        show_default=False,
    ),
]


def _difference_limit(name: str, what: str) -> typer.models.OptionInfo:
    """Return an option that limits how far two generations may differ."""
    option: typer.models.OptionInfo = typer.Option(
        name, metavar="LIMIT", help=f"Fail if more than LIMIT {what}.", show_default=False
    )
    return option


MaxLost = Annotated[str | None, _difference_limit("--max-lost", "pairs are lost")]
MaxGained = Annotated[str | None, _difference_limit("--max-gained", "pairs are gained")]
MaxRescored = Annotated[str | None, _difference_limit("--max-rescored", "pairs change their similarity")]
MaxMerged = Annotated[str | None, _difference_limit("--max-merged", "clusters are merged")]
MaxSplit = Annotated[str | None, _difference_limit("--max-split", "clusters are split")]


_SUFFIXES = {".jsonl": Format.JSONL, ".ndjson": Format.JSONL, ".csv": Format.CSV}


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


def chosen_recipe(file: Path | None, preset: str | None, settings: list[str] | None) -> "Recipe":
    """Return the recipe of the options, by default the preset `default`, with --set applied."""
    from nearsim_db.similarity import presets, recipe

    if file is not None and preset is not None:
        raise UsageError("give either --recipe or --preset, not both")
    chosen = presets.load(preset or presets.DEFAULT) if file is None else recipe.load(file)
    return recipe.override(chosen, settings) if settings else chosen


def limits_of(
    lost: str | None, gained: str | None, rescored: str | None, merged: str | None, split: str | None
) -> "Limits":
    """Return the limits of the --max options. Raises UsageError for a value that is neither share nor count."""
    from nearsim_db.admin.reindex import Limits
    from nearsim_db.errors import RecipeError

    try:
        return Limits.parse(lost=lost, gained=gained, rescored=rescored, merged=merged, split=split)
    except RecipeError as error:
        raise UsageError(str(error)) from error
