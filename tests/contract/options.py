"""The arguments and options of every command, as Click has them."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from nearsim_db.cli.app import OLD_NAMES, app


def every_command(command: Any, name: str = "nearsim") -> Iterator[tuple[str, Any]]:
    """Yield a command and all commands below it, each with its name; a group that is no command of its own too."""
    yield name, command
    for one in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from every_command(command.get_command(None, one), f"{name} {one}")


def whole() -> Any:
    """Return the group of all commands."""
    return get_command(app)


def old_command(name: str) -> Any:
    """Return the command that an earlier name means."""
    command = whole()
    for word in name.split():
        command = command.get_command(None, word)
    return command


def render() -> str:
    """Return a paragraph for each command: a line for each argument and option, with its type and default.

    Earlier names come last, marked as hidden.
    """
    commands = [
        *every_command(whole()),
        *((f"nearsim {name} (hidden)", old_command(name)) for name in OLD_NAMES),
    ]
    paragraphs = []
    for name, command in commands:
        if command.params:
            paragraphs.append("\n".join([name, *(f"  {_described(one)}" for one in command.params)]))
    return "\n\n".join(paragraphs) + "\n"


def _described(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    words = [", ".join(names) if parameter.param_type_name == "option" else f"<{parameter.name}>"]
    if getattr(parameter, "is_flag", False):
        words.append("flag")
    else:
        words.append("|".join(getattr(parameter.type, "choices", ())) or parameter.type.name)
    words += [
        word
        for word, holds in (("repeatable", _is_repeatable(parameter)), ("required", parameter.required))
        if holds
    ]
    if parameter.default is not None and parameter.default is not False:
        words.append(f"= {getattr(parameter.default, 'value', parameter.default)}")
    if parameter.envvar:
        words.append(f"${parameter.envvar}")
    if getattr(parameter, "hidden", False):
        words.append("(hidden)")
    return " ".join(words)


def _is_repeatable(parameter: Any) -> bool:
    return bool(parameter.multiple if parameter.param_type_name == "option" else parameter.nargs != 1)
