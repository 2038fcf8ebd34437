"""Render the tables of docs/reference/recipes.md: the keys of a recipe, from the docstrings of its sections."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from docs.page_parts import table
from nearsim_db.similarity.recipe import Recipe, sections


def tables() -> dict[str, str]:
    """Return the table of each section, by its name."""
    described = _docstrings()
    return {
        name: table(("key", "values", "meaning"), _rows(section, described))
        for name, section in get_type_hints(Recipe).items()
        if isinstance(section, type) and issubclass(section, Struct)
    }


def _docstrings() -> dict[tuple[str, str], str]:
    """Return the docstring after each field, by class and field."""
    module = ast.parse(Path(sections.__file__).read_text("utf-8"))
    described = {}
    for section in (node for node in module.body if isinstance(node, ast.ClassDef)):
        for field, following in zip(section.body, section.body[1:], strict=False):
            is_described = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_described:
                text = str(following.value.value)  # type: ignore[attr-defined]
                described[section.name, field.target.id] = " ".join(text.split())
    return described


def _rows(section: type[Struct], described: dict[tuple[str, str], str]) -> Iterator[tuple[str, ...]]:
    hints = get_type_hints(section)
    for field in fields(section):
        if (section.__name__, field.name) not in described:
            raise ValueError(
                f"{section.__name__}.{field.name} needs a docstring after it, for the reference of recipes"
            )
        meaning = described[section.__name__, field.name]
        yield field.name, _values(hints[field.name], field.default), meaning


def _values(hint: Any, default: object) -> str:
    """Return the values of a key that has choices, with the default in bold; for other keys, only the default."""
    choices = [choice for choice in _choices(hint) if choice is not None]
    if not choices:
        return "" if default is None else f"**{_shown(default)}**"
    shown = [f"**{_shown(choice)}**" if choice == default else _shown(choice) for choice in choices]
    if isinstance(default, tuple):
        shown.insert(0, f"**{_shown(default)}**")
    return ", ".join(shown)


def _choices(hint: Any) -> Iterator[object]:
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    elif hint is bool:
        yield from (False, True)
    else:
        for inner in get_args(hint):
            yield from _choices(inner)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
