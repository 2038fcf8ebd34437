"""The command tune: a recipe proposed from the user's own documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars

if TYPE_CHECKING:
    from nearsim_db.analysis.tuning import Sample, Tuning
    from nearsim_db.readers import Source
    from nearsim_db.records import Progress
    from nearsim_db.similarity.recipe import Recipe

_SHINGLE_KEYS = ("scheme", "k")


_Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="As for ingest; or give --collection.", show_default=False),
]
_Collection = Annotated[
    str | None, typer.Option("--collection", "-c", metavar="NAME", help="A collection, instead of files.")
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="R.toml",
        help="Write the recipe there, with its reasons; - is standard output.",
    ),
]
_Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="PAIRS.csv",
        help="Pairs that you have judged, with the columns id_a, id_b and label (1/0, yes/no, true/false, "
        "duplicate/distinct): their best F1 then chooses.",
    ),
]
_Recall = Annotated[
    float,
    typer.Option("--recall", help="The share of pairs at the threshold to be found, above 0 and below 1."),
]
_Threshold = Annotated[
    float | None, typer.Option("--threshold", "-t", help="Keep to this threshold.", show_default=False)
]
_Size = Annotated[int, typer.Option("--sample", metavar="N", min=2, help="Look at so many documents.")]
_Seed = Annotated[int, typer.Option("--seed", min=0, help="Another seed, another sample.")]


def tune(
    files: _Files = None,
    collection: _Collection = None,
    output: _Output = None,
    labels: _Labels = None,
    recall: _Recall = 0.99,
    threshold: _Threshold = None,
    size: _Size = 10_000,
    seed: _Seed = 1,
    recipe: options.RecipeFile = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    id_field: options.IdField = "id",
    title_field: options.TitleField = "title",
    body_field: options.BodyField = None,
    source_field: options.SourceField = "source",
    url_field: options.UrlField = "url",
    published_field: options.PublishedField = "published_at",
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Propose a recipe for your documents: shingles, threshold and bands, with what each choice costs.

    A sample is compared exactly, near pairs and random ones, and the histogram of the whole estimated from it. Nothing
    is stored. Starts from --recipe or --preset, whose normalisation is kept; shingle.scheme and shingle.k stay as they
    are where --set gives them.
    """
    _check(files, collection, recall)
    from nearsim_db.analysis.tuning import Wishes, read_labels
    from nearsim_db.analysis.tuning import tune as run
    from nearsim_db.readers import Fields, Source, refuse_overwriting_inputs
    from nearsim_db.store.settings import from_environment

    given = files or []
    refuse_overwriting_inputs([output], [*given, *(one for one in (labels, recipe) if one is not None)])
    start = options.chosen_recipe(recipe, preset, settings)
    judged = None if labels is None else read_labels(labels)
    fields = Fields(id_field, title_field, body_field, source_field, url_field, published_field)
    source = Source(given, fields) if given else None
    with progress_bars(quiet or as_json, source) as progress:
        ids = set() if judged is None else judged.ids
        sample = _draw(source, collection, start, _Extent(size, seed, ids), progress)
        wishes = Wishes(recall, threshold, seed, _kept(settings))
        found = run(sample, start, wishes, judged, from_environment().threads, progress)
    _tell(found, output, as_json, quiet)


def _check(files: list[Path] | None, collection: str | None, recall: float) -> None:
    if bool(files) == (collection is not None):
        raise UsageError("give either FILE or --collection")
    if not 0 < recall < 1:
        raise UsageError(f"--recall is {recall:g}; it must be above 0 and below 1")


def _tell(found: "Tuning", output: Path | None, as_json: bool, quiet: bool) -> None:
    """Write and print what was found. Raises RecipeError where nothing is proposed, all else being told."""
    from nearsim_db.cli.output import tuning, tuning_json

    tuning.write_recipe(found, output)
    if as_json:
        tuning_json.print_document(found, output)
    elif not quiet:
        tuning.print_tuning(found, output)
    found.required()


class _Extent(NamedTuple):
    """How much to draw, under which seed, and which documents must be at hand."""

    size: int
    seed: int
    wanted: set[str]


def _draw(
    source: "Source | None", collection: str | None, start: "Recipe", extent: _Extent, progress: "Progress"
) -> "Sample":
    from nearsim_db.analysis.tuning import draw
    from nearsim_db.similarity.encoder import Encoder
    from nearsim_db.similarity.profile import resolve

    text_of = Encoder(resolve(start)).text_of
    if source is not None:
        return draw(source, text_of, *extent, progress)
    from nearsim_db.analysis.tuning.collection import draw_from_collection
    from nearsim_db.indexing.collections import open_database

    assert collection is not None
    with open_database() as database:
        return draw_from_collection(database, collection, text_of, *extent, progress)


def _kept(settings: list[str] | None) -> frozenset[str]:
    """The shingle keys that settings give: they are not up for choice."""
    named = {setting.partition("=")[0].strip() for setting in settings or ()}
    return frozenset(key for key in _SHINGLE_KEYS if f"shingle.{key}" in named)
