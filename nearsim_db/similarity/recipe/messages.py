"""Error messages of recipes: the key first, then the value or the choices, and the remedy."""

import difflib
import re
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from nearsim_db.errors import RecipeError


def refuse_unknown_keys(data: dict[str, Any], struct: type[Struct], prefix: str) -> None:
    """Raise RecipeError for an unknown key, suggesting the closest known one."""
    known = {field.name: field for field in msgspec.structs.fields(struct)}
    for key, value in data.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"choose one of {', '.join(known)}"
            raise RecipeError(f"unknown key {prefix}{key} in this version; {hint}")
        section = known[key].type
        if isinstance(section, type) and issubclass(section, Struct):
            if not isinstance(value, dict):
                raise RecipeError(f"{key} is a section; write [{key}] and its keys below it")
            refuse_unknown_keys(value, section, f"{prefix}{key}.")


def readable(message: str, data: dict[str, Any], recipe: type[Struct]) -> str:
    """Convert msgspec's 'Expected `int` >= 1 - at `$.shingle.k`' to a message with the key and the value first."""
    found = re.fullmatch(r"(?P<what>.*?) - at `\$\.?(?P<key>[^`]*)`", message, re.DOTALL)
    if found is None:
        return message
    value: Any = data
    kind: Any = recipe
    for name in found["key"].partition("[")[0].split("."):
        value = value[name]
        kind = next(field.type for field in msgspec.structs.fields(kind) if field.name == name)
    if found["what"].startswith("Invalid enum value"):
        choices = " or ".join(_choices(kind))
        return f"{found['key']} is {value!r}, which is unknown to this version; choose {choices}"
    return f"{found['key']} is {value!r}; it must be {_in_words(found['what'])}"


_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_KINDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
}


def _in_words(expected: str) -> str:
    """Describe what msgspec expects, as in 'Expected `int` >= 1' or 'Expected `str | array`, got `int`'."""
    bound = re.fullmatch(r"Expected `[^`]*` (?P<relation>[<>]=?) (?P<number>\S+)", expected)
    if bound is not None:
        return f"{_BOUNDS[bound['relation']]} {bound['number'].removesuffix('.0')}"
    kinds = re.match(r"Expected `(?P<kinds>[^`]*)`", expected)
    if kinds is None:
        return expected
    named = (kind for kind in kinds["kinds"].split(" | ") if kind != "null")
    return " or ".join(_KINDS.get(kind, kind) for kind in named)


def _choices(kind: Any) -> list[str]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [choice for part in get_args(kind) for choice in _choices(part)]
