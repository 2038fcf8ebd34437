"""What applications import: names of nearsim_db with signatures and fields, its exceptions, and the mapped classes."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass

from msgspec import Struct

import nearsim_db
from nearsim_db import errors
from nearsim_db.store import models


def render() -> str:
    """Return a paragraph for each name that nearsim_db exports, then the exceptions and the mapped classes."""
    blocks = [_described(name, getattr(nearsim_db, name)) for name in sorted(nearsim_db.__all__)]
    found = (
        one for one in vars(errors).values() if inspect.isclass(one) and one.__module__ == errors.__name__
    )
    blocks += [_described(f"errors.{one.__name__}", one) for one in found]
    blocks += ["\n".join(f"store.models.{name}" for name in sorted(models.__all__))]
    return "\n\n".join(blocks) + "\n"


def _described(name: str, value: object) -> str:
    if not inspect.isclass(value):
        return name
    if issubclass(value, Exception):
        name += f"({', '.join(one.__name__ for one in value.__bases__)})"
    members = sorted({one for base in _ours(value) for one in vars(base) if not one.startswith("_")})
    lines = [line for one in members for line in _member(one, inspect.getattr_static(value, one))]
    return "\n  ".join([name, *_construction(value), *lines])


def _ours(of: type) -> list[type]:
    return [one for one in of.__mro__ if one.__module__.startswith("nearsim_db")]


def _construction(of: type) -> Iterator[str]:
    """The fields of a dataclass, named tuple or recipe in order, otherwise the signature of the constructor."""
    if is_dataclass(of):
        for one in fields(of):
            made = "" if one.default_factory is MISSING else " = ..."
            default = made if one.default is MISSING else f" = {one.default!r}"
            yield f"{one.name}: {_short(one.type)}{default}"
    elif issubclass(of, tuple):
        names: Mapping[str, object] = of.__annotations__
        yield from (f"{name}: {_short(annotation)}" for name, annotation in names.items())
    elif issubclass(of, Struct):
        yield from _keys(of())
    elif any("__init__" in vars(one) for one in _ours(of)):
        yield f"__init__{_signature(of.__init__)}"


def _keys(section: Struct, path: str = "") -> Iterator[str]:
    for name in section.__struct_fields__:
        value = getattr(section, name)
        if isinstance(value, Struct):
            yield from _keys(value, f"{path}{name}.")
        else:
            yield f"{path}{name}: {_short(type(section).__annotations__[name])} = {value!r}"


def _member(name: str, member: object) -> Iterator[str]:
    if isinstance(member, property) and member.fget is not None:
        yield f"{name} -> {_short(inspect.signature(member.fget).return_annotation)}"
    elif isinstance(member, classmethod | staticmethod):
        yield f"{type(member).__name__} {name}{_signature(member.__func__)}"
    elif inspect.isfunction(member):
        yield f"{name}{_signature(member)}"


def _signature(function: Callable[..., object]) -> str:
    text = re.sub(r"<function .*? at 0x\w+>", "...", str(inspect.signature(function)))
    return re.sub(r"^\((self|cls)(, )?", "(", _short(text))


def _short(annotation: object) -> str:
    """An annotation without modules, as where a class is defined is no promise, and alike in all versions of Python."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"[A-Za-z_]\w*\.|['~]", "", text)
    return re.sub(r"Optional\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", r"\1 | None", text)
