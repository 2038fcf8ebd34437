"""Options shared by several commands, so that their names and help texts are the same everywhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearsim_db.cli import completion, formats
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import DEFAULT as DEFAULT

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Limits


def collection_option(help: str, **more: Any) -> Any:
    """Return the option --collection, by default from NEARSIM_COLLECTION."""
    return typer.Option(
        "--collection",
        "-c",
        metavar="NAME",
        autocompletion=completion.collections,
        envvar="NEARSIM_COLLECTION",
        help=help,
        **more,
    )


def profile_option(help: str, **more: Any) -> Any:
    """Return the option --profile, by default from NEARSIM_PROFILE."""
    return typer.Option(
        "--profile",
        "-p",
        metavar="NAME",
        autocompletion=completion.profiles,
        envvar="NEARSIM_PROFILE",
        help=help,
        **more,
    )


def limit_option(help: str) -> Any:
    """Return the option --limit."""
    return typer.Option("--limit", "-n", metavar="N", min=1, help=help, show_default=False)


CHOSEN_PROFILE = "Profile to use; required if there are several and none is named default."
Collection = Annotated[str, collection_option("Collection to use.")]
OneCollection = Annotated[str | None, collection_option("Only this collection. (default: all)")]
Profile = Annotated[str | None, profile_option(CHOSEN_PROFILE)]
NewProfile = Annotated[str, profile_option("Profile to create if missing.")]
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


MinSimilarity = Annotated[
    float,
    typer.Option(
        "--min-similarity",
        metavar="SIMILARITY",
        min=0.0,
        max=1.0,
        help="Lowest similarity to report; few recipes have pairs below their threshold. A distance d is 1 / (1 + d).",
    ),
]
Limit = Annotated[
    int | None, limit_option("Maximum number of rows. (default: all; 50 for a table on standard output)")
]
MatchLimit = Annotated[
    int | None,
    limit_option(
        "Maximum number of matches of each document: those with the best estimates, which need not be the most "
        "similar. (default: all)"
    ),
]
ExportLimit = Annotated[int | None, limit_option("Maximum number of documents. (default: all)")]


def _limit(what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        metavar="LIMIT", help=f"Fail if more than LIMIT {what}.", show_default=False
    )
    return option


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """How far two generations may differ, by kind of difference."""

    max_lost: Annotated[str | None, _limit("pairs are lost")] = None
    max_gained: Annotated[str | None, _limit("pairs are gained")] = None
    max_rescored: Annotated[str | None, _limit("pairs change their similarity")] = None
    max_merged: Annotated[str | None, _limit("clusters are merged")] = None
    max_split: Annotated[str | None, _limit("clusters are split")] = None

    def parsed(self) -> "Limits":
        """Return the limits. Raises RecipeError for a value that is neither share nor count."""
        from nearsim_db.admin.reindex import Limits

        return Limits.parse(
            lost=self.max_lost,
            gained=self.max_gained,
            rescored=self.max_rescored,
            merged=self.max_merged,
            split=self.max_split,
        )


_ARGUMENT = "nearsim.argument"


def _note_argument(context: typer.Context, value: str | None) -> str | None:
    context.meta[_ARGUMENT] = value
    return value


def argument_or_option(
    context: typer.Context, parameter: typer.CallbackParam, value: str | None
) -> str | None:
    """Return the argument that may be given instead of an option, otherwise the option's value."""
    argument: str | None = context.meta.get(_ARGUMENT)
    if argument is None or argument == value:
        return argument or value
    if formats.is_typed(context, parameter.name or ""):
        raise UsageError(f"{argument} and --{parameter.name} {value} differ; give one of them")
    return argument


def _argument(name: str, completed: Callable[..., object]) -> Any:
    """Return the argument that may be given instead of the option --NAME."""
    return typer.Argument(
        autocompletion=completed,
        metavar=f"[{name.upper()}]",
        is_eager=True,
        callback=_note_argument,
        help=f"The same as --{name}.",
        show_default=False,
    )


ProfileArgument = Annotated[str | None, _argument("profile", completion.profiles)]
ProfileOrArgument = Annotated[str | None, profile_option(CHOSEN_PROFILE, callback=argument_or_option)]
CollectionArgument = Annotated[str | None, _argument("collection", completion.collections)]
CollectionOrArgument = Annotated[
    str | None,
    collection_option(
        "Collection that is attached to a table.", callback=argument_or_option, show_default=False
    ),
]
