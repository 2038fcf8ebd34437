"""The command `nearsim tune`: propose a recipe for the user's documents."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import inputs, options, recipes
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import terminal

if TYPE_CHECKING:
    from nearsim_db.analysis.tuning.sampling import ValueOf
    from nearsim_db.readers import Fields

_KEPT = ("shingle.scheme", "shingle.k", "match.passage", "match.passage_gap", "cluster.linkage")


_Files = Annotated[
    list[Path] | None,
    options.argument("FILE...", "Files, as for ingest; or give --collection.", parser=inputs.path),
]
_Collection = Annotated[str | None, options.collection_option("Collection to sample, instead of files.")]
_Output = Annotated[
    Path | None,
    options.output_option(
        "File for the recipe, commented with the reasons; - for standard output.", metavar="R.toml"
    ),
]
_Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="PAIRS.csv",
        help="CSV of labelled pairs with the columns id_a, id_b and label (1/0, yes/no, true/false, "
        "duplicate/distinct); the threshold is then the one with the best F1.",
    ),
]
_Verdicts = Annotated[
    bool,
    typer.Option(
        "--verdicts",
        help="Take the labelled pairs from the verdicts of --collection: pinned are duplicates, vetoed are not.",
    ),
]
_Recall = Annotated[
    float,
    typer.Option(
        "--recall",
        metavar="SHARE",
        help="Share of the pairs at the threshold that the recipe must find, between 0 and 1.",
    ),
]
_Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold", "-t", metavar="SIMILARITY", help="Threshold to use instead of proposing one."
    ),
]
_Precision = Annotated[
    float | None,
    typer.Option(
        "--precision",
        metavar="SHARE",
        min=0,
        max=1,
        help="Choose the threshold by this share of duplicates among the labelled pairs above it, instead of by F1.",
    ),
]
_Across = Annotated[
    str | None,
    typer.Option(
        "--across",
        metavar="KEY",
        help="Count only pairs whose values of this field differ when recipes and the nearest records are compared by "
        "labels. (default: source, or for two files the file, if all labelled pairs are across two values)",
    ),
]
_Size = Annotated[
    int,
    typer.Option(
        "--sample", metavar="N", min=2, help="Number of documents to sample.", rich_help_panel=options.INPUT
    ),
]
_Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Seed of the sample.", rich_help_panel=options.INPUT)
]


def tune(
    *,
    context: typer.Context,
    files: _Files = None,
    collection: _Collection = None,
    output: _Output = None,
    labels: _Labels = None,
    verdicts: _Verdicts = False,
    recall: _Recall = 0.995,
    threshold: _Threshold = None,
    precision: _Precision = None,
    across: _Across = None,
    size: _Size = 10_000,
    seed: _Seed = 1,
    recipe_options: recipes.RecipeOptions,
    file_options: inputs.FileOptions,
    outcome: options.Outcome,
) -> None:
    """Propose a recipe for your documents.

    Shows the cost of each choice. Compares near and random pairs of a sample exactly, and estimates the similarity
    histogram of the whole corpus. Stores nothing. Starts from --recipe or --preset and keeps its normalisation;
    shingle.scheme and shingle.k are kept if given with --set. For the family winnow (--preset embedded-stories), it
    proposes match.passage, match.passage_gap and match.threshold; the first two are kept if given with --set.
    With labels of a corpus that is read as a whole, the clusters of the proposal, the starting recipe, and for records
    the preset record-linkage are compared; for two sources also the nearest record of the other one.
    """
    # Files override a collection from the environment.
    if files and not options.is_typed(context, "collection"):
        collection = None
    if bool(files) == (collection is not None):
        raise UsageError("give either FILE or --collection")
    if not 0 < recall < 1:
        raise UsageError(f"--recall is {recall:g}; it must be above 0 and below 1")
    for name, value in (("--across", across), ("--precision", precision)):
        if value is not None and labels is None and not verdicts:
            raise UsageError(f"{name} requires --labels or --verdicts")
    if verdicts and (labels is not None or files):
        raise UsageError(
            "--verdicts takes the labels from --collection; give neither FILE nor --labels with it"
        )

    from nearsim_db.analysis.tuning.labels import PairLabels, read_labels
    from nearsim_db.analysis.tuning.passages import tune_passages
    from nearsim_db.analysis.tuning.proposal import TuningOptions
    from nearsim_db.analysis.tuning.sampling import draw, draw_from_collection
    from nearsim_db.analysis.tuning.tuning import tune as run
    from nearsim_db.readers import Source, refuse_overwriting_inputs
    from nearsim_db.similarity.encoder import Encoder
    from nearsim_db.similarity.profile import resolve
    from nearsim_db.store.settings import from_environment

    paths = files or []
    start = recipe_options.chosen()
    if across is not None and start.sketch.family == "winnow":
        raise UsageError("--across compares recipes by labels; it does not apply to the family winnow")
    labelled = None if labels is None else read_labels(labels)
    reading = file_options.reading()
    source = Source(paths, file_options.fields(), reading=reading) if paths else None
    of_options = [path for path in (labels, recipe_options.recipe) if path is not None]
    refuse_overwriting_inputs([output], [*(source.files if source else ()), *of_options])
    terminal.print_warnings(source.notes if source else ())

    field = across or ("source" if source is None or len(source.files) != 2 else "file")
    with outcome.progress(source) as progress:
        text_of = Encoder(resolve(start)).text_of
        if source is not None:
            ids = labelled.ids if labelled else set()
            sample = draw(source, text_of, size, seed, ids, progress, _value_of(field, source.fields))
        else:
            with options.connect() as database:
                if verdicts:
                    labelled = PairLabels(database.labels(str(collection)))
                ids = labelled.ids if labelled else set()
                name = str(collection)
                sample = draw_from_collection(database, name, text_of, size, seed, ids, progress, field)

        kept = _kept(recipe_options.settings)
        tuning_options = TuningOptions(recall, threshold, seed, kept, precision, across is not None)
        tuned = (
            tune_passages(sample, start, tuning_options, labelled, progress)
            if start.sketch.family == "winnow"
            else run(sample, start, tuning_options, labelled, from_environment().threads, progress)
        )

    from nearsim_db.cli.output import tuning

    tuning.show(outcome, tuned, output, _nearest_command(paths, collection, field))
    if source is not None:
        terminal.print_warnings(source.warnings)


def _value_of(field: str, fields: "Fields") -> "ValueOf":
    """Return how the value of a field is read from a record."""
    from nearsim_db.readers.values import column_of

    return lambda record: column_of(record, field, fields)


def _nearest_command(paths: list[Path], collection: str | None, field: str) -> str:
    """Return the commands that match the records of two sources."""
    from nearsim_db.analysis.tuning.questions import MARGIN, MIN_SIMILARITY

    options = ["-k", "1", "--mutual", "--min-similarity", f"{MIN_SIMILARITY:g}", "--margin", f"{MARGIN:g}"]
    if field == "file":
        left, right = map(str, paths)
        ingest = ["nearsim", "ingest", right, "--collection", "records"]
        return (
            f"{shlex.join(ingest)}; {shlex.join(['nearsim', 'nearest', left, '--in', 'records', *options])}"
        )
    nearest = ["nearsim", "nearest", "--collection", collection or "records", *options, "--across", field]
    if collection is not None:
        return shlex.join(nearest)
    ingest = ["nearsim", "ingest", *map(str, paths), "--collection", "records"]
    return f"{shlex.join(ingest)}; {shlex.join(nearest)}"


def _kept(settings: list[str] | None) -> frozenset[str]:
    """Return the keys that --set fixes, without the names of their sections."""
    named = {setting.partition("=")[0].strip() for setting in settings or ()}
    return frozenset(key.partition(".")[2] for key in _KEPT if key in named)
