"""Options that several commands share, declared once as the fields of a dataclass."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import signature
from typing import Any


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of its parameters that are dataclasses.

    Typer reads the returned signature; the command itself is called with the dataclasses.
    """
    declared = signature(command)
    annotations = {one.name: one.annotation for one in declared.parameters.values()}
    groups: dict[str, Any] = {name: one for name, one in annotations.items() if is_dataclass(one)}

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    parameters = []
    for parameter in declared.parameters.values():
        if parameter.name in groups:
            options = signature(groups[parameter.name]).parameters.values()
            parameters += [option.replace(kind=parameter.kind) for option in options]
        else:
            parameters.append(parameter)
    run.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run
