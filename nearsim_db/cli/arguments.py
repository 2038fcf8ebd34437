"""Collections and profiles that are named by an argument or by an option."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from nearsim_db.cli import completion, formats, options
from nearsim_db.cli.failures import UsageError

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
ProfileOrArgument = Annotated[
    str | None, options.profile_option(options.CHOSEN_PROFILE, callback=argument_or_option)
]
CollectionArgument = Annotated[str | None, _argument("collection", completion.collections)]
CollectionOrArgument = Annotated[
    str | None,
    options.collection_option(
        "Collection that is attached to a table.", callback=argument_or_option, show_default=False
    ),
]
