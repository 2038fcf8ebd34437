"""Options that choose a recipe: a recipe file, a preset, and options that change single keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.options import beginning
from nearsim_db.errors import RecipeConflictError
from nearsim_db.messages import suggested_command

if TYPE_CHECKING:
    from nearsim_db.similarity.recipe import Recipe


def complete_preset(incomplete: str) -> list[tuple[str, str]]:
    """Return the presets whose names start with `incomplete`, each with its purpose."""
    from nearsim_db.similarity import presets

    return [(name, presets.purpose(name)) for name in beginning(presets.names(), incomplete)]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--ignore: cannot read {path} as UTF-8: {error}") from error


def _complete_key(incomplete: str) -> list[tuple[str, str]]:
    """Return the recipe keys that begin with `incomplete`, as KEY=, each with its default."""
    from nearsim_db.similarity.recipe import Recipe, to_mapping
    from nearsim_db.similarity.recipe.conversion import flatten

    defaults = {f"{key}=": str(value) for key, value in flatten(to_mapping(Recipe())).items()}
    return [(key, f"default {defaults[key]}") for key in beginning(list(defaults), incomplete)]


Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        "-t",
        metavar="SIMILARITY",
        help="Similarity from which two documents are near-duplicates; the same as --set match.threshold=.",
    ),
]


@dataclass(eq=False, repr=False)
class RecipeOptions:
    """The options for a recipe: a file or a preset, by default the preset `default`, and changes of single keys."""

    recipe: Annotated[
        Path | None,
        typer.Option(
            metavar="R.toml",
            help="Recipe file in TOML, instead of --preset.",
            rich_help_panel=options.MATCHING,
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_preset,
            metavar="NAME",
            help="Name of a recipe that ships with nearsim; nearsim profile presets lists them.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            autocompletion=_complete_key,
            metavar="KEY=VALUE",
            help="Set a recipe key, e.g. match.threshold=0.8 (repeatable).",
            rich_help_panel=options.MATCHING,
        ),
    ] = None
    ignore: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Ignore the passages of this text, such as a licence header; for the family winnow (repeatable).",
            rich_help_panel=options.MATCHING,
        ),
    ] = None

    def changes(self, threshold: float | None) -> list[str] | None:
        """Return the values of --set, --threshold and --ignore as KEY=VALUE; None if there are none."""
        settings = [*(self.settings or [])]
        if threshold is not None:
            settings.append(f"match.threshold={threshold}")
        if self.ignore:
            from nearsim_db.similarity.recipe.conversion import toml_value

            settings.append(f"match.ignore={toml_value(list(map(_read_text, self.ignore)))}")
        return settings or None

    def chosen(self, threshold: float | None = None, preset: str | None = None) -> "Recipe":
        """Return the recipe of --recipe or --preset, by default the preset `preset`, with its keys changed."""
        from nearsim_db.similarity import presets, recipe

        if self.recipe is not None and self.preset is not None:
            raise UsageError("give either --recipe or --preset, not both")
        file = self.recipe
        chosen = presets.load(self.preset or preset or presets.DEFAULT) if file is None else recipe.load(file)
        changes = self.changes(threshold)
        return recipe.override(chosen, changes) if changes else chosen

    def chosen_if_any(self, threshold: float | None = None) -> "Recipe | None":
        """Return the recipe as `chosen` does, or None if no option is given."""
        values = (self.recipe, self.preset, self.settings, self.ignore, threshold)
        is_given = any(value is not None for value in values)
        return self.chosen(threshold) if is_given else None

    @contextmanager
    def advising_reindex(self, collection: str, profile: str, threshold: float | None) -> Iterator[None]:
        """If the profile in the block has another recipe, raise UsageError with the command that rebuilds it."""
        try:
            yield
        except RecipeConflictError as error:
            base = (
                ("--preset", self.preset or "default")
                if self.recipe is None
                else ("--recipe", str(self.recipe))
            )
            # Pass the refused recipe to the suggested command.
            changes = [word for setting in self.settings or () for word in ("--set", setting)]
            changes += [word for path in self.ignore or () for word in ("--ignore", str(path))]
            changes += [] if threshold is None else ["--threshold", f"{threshold:g}"]

            command = suggested_command("reindex start", collection, profile, *base, *changes)
            raise UsageError(
                f"{error}; to rebuild it: {command}; or name another profile with --profile"
            ) from error
