"""Options that choose a recipe: a file, a preset, and changes of single keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import completion
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import RecipeConflictError, suggested_command

if TYPE_CHECKING:
    from nearsim_db.similarity.recipe import Recipe

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
