"""Options that several commands share, so that they are called and explained the same everywhere."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli.failures import UsageError

if TYPE_CHECKING:
    from nearsim_db.similarity.recipe import Recipe

DEFAULT_COLLECTION = "default"

Collection = Annotated[str, typer.Option("--collection", "-c", metavar="NAME", help="The collection.")]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        metavar="NAME",
        help="The profile; needed where there are several and none is called default.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary; errors still show.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="JSON lines, CSV, TSV (also .gz, .zst), Parquet, text files, or folders of text files.",
        show_default=False,
    ),
]
IdField = Annotated[str, typer.Option("--id-field", metavar="KEY", help="Key or column of the id.")]
TitleField = Annotated[str, typer.Option("--title-field", metavar="KEY", help="That of the title.")]
BodyField = Annotated[
    str | None,
    typer.Option("--body-field", metavar="KEY", help="That of the text. (default: text, or else body)"),
]
SourceField = Annotated[str, typer.Option("--source-field", metavar="KEY", help="That of the source.")]
UrlField = Annotated[str, typer.Option("--url-field", metavar="KEY", help="That of the URL.")]
PublishedField = Annotated[
    str, typer.Option("--published-field", metavar="KEY", help="That of the date (ISO 8601).")
]
VectorField = Annotated[
    str, typer.Option("--vector-field", metavar="KEY", help="That of the vector: an array of numbers.")
]
Vectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        metavar="PATH",
        help="Vectors of the documents: .npy, a row for each record in the order of the files, or .parquet with "
        "columns id and vector.",
    ),
]
Rejects = Annotated[
    Path | None,
    typer.Option(
        "--rejects",
        metavar="PATH",
        help="Write records that cannot be used there, each with line and reason.",
    ),
]

RecipeFile = Annotated[Path | None, typer.Option("--recipe", metavar="R.toml", help="A recipe in TOML.")]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="A recipe that ships with nearsim; nearsim profile presets lists them.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the recipe: match.threshold=0.8 (repeat)."
    ),
]


class Format(StrEnum):
    """How answers are written."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


class OnDuplicate(StrEnum):
    """What to do with a document that has near-duplicates."""

    FLAG = "flag"
    SKIP = "skip"
    RAISE = "raise"


AnswerFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="table is for people; jsonl and csv stream everything. "
        "[default: by the ending of --output, else table]",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Write there (.jsonl, .ndjson, .csv; others with --format) instead of standard output.",
    ),
]
MinSimilarity = Annotated[
    float,
    typer.Option(
        "--min-similarity",
        min=0.0,
        max=1.0,
        help="Only from this similarity on; at least the profile's threshold. Of a distance d it is 1 / (1 + d).",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=1,
        help="At most so many. (default: all; a table on standard output shows 50)",
        show_default=False,
    ),
]


_ENDINGS = {".jsonl": Format.JSONL, ".ndjson": Format.JSONL, ".csv": Format.CSV}


def chosen_format(format: Format | None, output: Path | None) -> Format:
    """The format that was asked for, by name or by the ending of the output. Raises UsageError if neither tells."""
    if format is not None:
        return format
    if output is None or output == Path("-"):
        return Format.TABLE
    by_ending = _ENDINGS.get(output.suffix.lower())
    if by_ending is None:
        raise UsageError(
            f"the ending of {output} tells no format: end it in {', '.join(_ENDINGS)}, "
            f"or give --format {', '.join(Format)}"
        )
    return by_ending


def chosen_recipe(file: Path | None, preset: str | None, settings: list[str] | None) -> "Recipe":
    """The recipe that the options name, the preset `default` if none, with --set applied."""
    from nearsim_db.similarity import presets, recipe

    if file is not None and preset is not None:
        raise UsageError("give either --recipe or --preset, not both")
    chosen = presets.load(preset or presets.DEFAULT) if file is None else recipe.load(file)
    return recipe.override(chosen, settings) if settings else chosen
