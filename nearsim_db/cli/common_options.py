"""Options of every command with --format: --json, and where a command has none of its own, --output and --quiet.

A command that does not handle --output itself prints its result; with the option, what it prints goes to the file.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperOption

from nearsim_db.cli import formats
from nearsim_db.errors import NearsimError
from nearsim_db.records import STANDARD_OUTPUT


def add_common_options(command: Any) -> None:
    """Add the options to a command that has --format, or to the commands of a group."""
    for one in _commands_of(command):
        names = [parameter.name for parameter in one.params]
        if "format" not in names:
            continue
        added = [_flag("--json", formats.JSON_GIVEN, "Print one JSON document: short for --format json.")]
        if "output" not in names:
            added.append(_output_option())
            one.invoke = _writing_to_output(one.invoke)
        if "quiet" not in names:
            added.append(
                _flag("--quiet", formats.QUIET, "Print the result only; errors are still printed.", "-q")
            )
        at = names.index("format") + 1
        one.params[at:at] = added


def _commands_of(command: Any) -> Iterator[Any]:
    yield command
    for one in getattr(command, "commands", {}).values():
        yield from _commands_of(one)


def _flag(name: str, key: str, help: str, *names: str) -> TyperOption:
    def note(context: Any, parameter: Any, value: bool) -> None:
        context.meta[key] = value

    return TyperOption(
        param_decls=[name, *names],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=note,
        help=help,
    )


def _output_option() -> TyperOption:
    def note(context: Any, parameter: Any, value: str | None) -> None:
        context.meta[formats.OUTPUT] = None if value is None else formats.path(value)

    return TyperOption(
        param_decls=["--output", "-o"],
        metavar="PATH",
        is_eager=True,
        expose_value=False,
        callback=note,
        help="Output file (.json, .jsonl, .csv, .txt; any other suffix with --format) instead of standard output.",
    )


def _writing_to_output(invoke: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return how a command is invoked so that what it prints goes to --output, also if it then exits with an error."""

    def run(context: Any) -> Any:
        path: Path | None = context.meta.get(formats.OUTPUT)
        if path is None or path == STANDARD_OUTPUT:
            return invoke(context)
        from nearsim_db.cli.output import terminal
        from nearsim_db.readers.output import open_output

        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
        ended: Exception | None = None
        with open_output(path) as stream:
            try:
                with redirect_stdout(printed):
                    invoke(context)
            except (typer.Exit, NearsimError) as error:
                ended = error
            content = printed.buffer.getvalue()
            if ended is not None and not content:
                raise ended
            stream.write(content)
        if not (context.meta.get(formats.QUIET) or context.params.get("quiet")):
            terminal.print_info(f"wrote the result to {path}")
        if ended is not None:
            raise ended
        return None

    return run
