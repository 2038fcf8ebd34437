"""Options that several commands share, in the signature from which Typer makes a command.

A parameter that is a dataclass stands for an option per field. Every command with --format has --json and, where it has
none of its own, --output and --quiet. A command that does not handle --output itself prints its result, and with the
option to the file.
"""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from nearsim_db.cli import formats
from nearsim_db.errors import NearsimError
from nearsim_db.records import STANDARD_OUTPUT

_Json = Annotated[
    bool, typer.Option("--json", is_eager=True, help="Print one JSON document: short for --format json.")
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        parser=formats.path,
        is_eager=True,
        help="Output file (.json, .jsonl, .csv, .txt; any other suffix with --format) instead of standard output.",
    ),
]
_Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the result only; errors are still printed.")
]


def expand_all(group: typer.Typer) -> None:
    """Expand every command of a group, and of the groups in it."""
    for one in (*group.registered_commands, group.registered_callback):
        if one is not None and one.callback is not None:
            one.callback = expand(one.callback)
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            expand_all(inner.typer_instance)


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options that its parameters stand for; it is called with the parameters it declares."""
    declared = signature(command)
    groups: dict[str, Any] = {
        one.name: one.annotation for one in declared.parameters.values() if is_dataclass(one.annotation)
    }
    parameters: list[Parameter] = []
    for one in declared.parameters.values():
        shown = signature(groups[one.name]).parameters.values() if one.name in groups else [one]
        parameters += [option.replace(kind=one.kind) for option in shown]
    added = _missing_options({one.name for one in parameters})
    at = next((at for at, one in enumerate(parameters, 1) if one.name == "format"), 0)
    parameters[at:at] = [one.replace(kind=parameters[at - 1].kind) for one in added]

    @wraps(command)
    def run(**given: Any) -> None:
        is_quiet = given.get("quiet", False)
        own = {one.name: given.pop(one.name) for one in added}
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        call, path = partial(command, **given), own.get(formats.PRINT_TO)
        if path is None or path == STANDARD_OUTPUT:
            call()
        else:
            _print_to(path, call, quiet=is_quiet)

    run.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _missing_options(names: set[str]) -> list[Parameter]:
    """Return the common options that a command with parameters of these names does not have."""
    if "format" not in names:
        return []
    add = partial(Parameter, kind=Parameter.KEYWORD_ONLY)
    added = [add(formats.AS_JSON, default=False, annotation=_Json)]
    if "output" not in names:
        added.append(add(formats.PRINT_TO, default=None, annotation=_Output))
    if "quiet" not in names:
        added.append(add("quiet", default=False, annotation=_Quiet))
    return added


def _print_to(path: Path, call: Callable[[], None], *, quiet: bool) -> None:
    """Have what a command prints in a file, also if it then exits with an error."""
    from nearsim_db.cli.output import terminal
    from nearsim_db.readers.output import open_output

    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
    ended: Exception | None = None
    with open_output(path) as stream:
        try:
            with redirect_stdout(printed):
                call()
        except (typer.Exit, NearsimError) as error:
            ended = error
        content = printed.buffer.getvalue()
        if ended is not None and not content:
            raise ended
        stream.write(content)
    if not quiet:
        terminal.print_info(f"wrote the result to {path}")
    if ended is not None:
        raise ended
