"""Collections and profiles that are named by an argument or by an option."""

from typing import Annotated

import typer

from nearsim_db.cli import completion
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.options import COLLECTION_VARIABLE, PROFILE_VARIABLE

_ARGUMENT = "nearsim.argument"


def _note_argument(context: typer.Context, value: str | None) -> str | None:
    context.meta[_ARGUMENT] = value
    return value


def is_typed(context: typer.Context, parameter: str) -> bool:
    """Whether a parameter is on the command line, rather than from the environment or a default."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def argument_or_option(
    context: typer.Context, parameter: typer.CallbackParam, value: str | None
) -> str | None:
    """Return the argument that may be given instead of an option, otherwise the option's value."""
    argument: str | None = context.meta.get(_ARGUMENT)
    if argument is None or argument == value:
        return argument or value
    if is_typed(context, parameter.name or ""):
        raise UsageError(f"{argument} and --{parameter.name} {value} differ; give one of them")
    return argument


ProfileArgument = Annotated[
    str | None,
    typer.Argument(
        autocompletion=completion.profiles,
        metavar="[PROFILE]",
        is_eager=True,
        callback=_note_argument,
        help="The same as --profile.",
        show_default=False,
    ),
]
ProfileOrArgument = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        autocompletion=completion.profiles,
        metavar="NAME",
        envvar=PROFILE_VARIABLE,
        callback=argument_or_option,
        help="Profile to use; required if there are several and none is named default.",
    ),
]
CollectionArgument = Annotated[
    str | None,
    typer.Argument(
        autocompletion=completion.collections,
        metavar="[COLLECTION]",
        is_eager=True,
        callback=_note_argument,
        help="The same as --collection.",
        show_default=False,
    ),
]
CollectionOrArgument = Annotated[
    str | None,
    typer.Option(
        "--collection",
        "-c",
        autocompletion=completion.collections,
        metavar="NAME",
        envvar=COLLECTION_VARIABLE,
        callback=argument_or_option,
        help="Collection that is attached to a table.",
        show_default=False,
    ),
]
