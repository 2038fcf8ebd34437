"""Recipes from and to TOML and nested dictionaries, changes of single keys, and messages about errors.

A message has the key first, then the value or the choices, and the remedy.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe.sections import (
    Bands,
    Recipe,
    default_bands,
    default_fingerprints,
    default_review,
)
from nearsim_db.similarity.recipe.validation import FAMILY_DEFAULTS, FAMILY_OPTIONS, OPTIONS, WINNOW_KEYS

# The keys that a setting replaces.
_REPLACED = {
    "bands.recall": "bands.count bands.rows bands.rule match.amplification",
    "bands.count": "bands.recall bands.recall_at bands.rule match.amplification",
    "bands.rows": "bands.recall bands.recall_at bands.rule match.amplification",
    "bands.rule": "bands.recall bands.recall_at bands.count bands.rows match.amplification",
    "match.min_shared_bands": "match.amplification",
    "match.amplification": "bands.recall bands.recall_at bands.count bands.rows bands.rule match.min_shared_bands",
}
_MAX_CHARACTERS = 200_000
_SHOWN_CHARACTERS = 100
# A number such as .5, which is no TOML.
_POINT_FIRST = re.compile(r"^\.(?=[0-9]+$)")

# A key of n parts takes tomllib time quadratic in n.
_PART = r"(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+"
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:\.[ \t]*+{_PART}){{32}}")


def parse(text: str, *, origin: str = "the recipe") -> Recipe:
    """Parse a TOML document; missing keys have their defaults.

    Raises RecipeError for invalid TOML, an unknown key or a value out of range, naming the key and the remedy.
    """
    try:
        return from_mapping(_parse_toml(text))
    except ValueError as error:
        raise RecipeError(f"{origin} is not valid TOML: {error}") from error
    except RecipeError as error:
        raise RecipeError(f"{origin}: {error}") from error


def _parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raises ValueError for all that is not valid, too long or nested too deeply."""
    text.encode()
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters, more than {_MAX_CHARACTERS:,}")
    if (long_key := _LONG_KEY.search(text)) is not None:
        raise ValueError(f"a key has more than 32 parts: {long_key[0][:_SHOWN_CHARACTERS]}...")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def load(path: Path) -> Recipe:
    """Read a recipe from a TOML file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot read the recipe {path}: {error}") from error
    return parse(text, origin=str(path))


def from_mapping(data: dict[str, Any]) -> Recipe:
    """Convert nested dictionaries (TOML, or the JSON stored with a generation) to a recipe."""
    refuse_unknown_keys(data, Recipe, "")
    data = _with_defaults(data)
    try:
        return msgspec.convert(data, Recipe)
    except msgspec.ValidationError as error:
        raise RecipeError(readable(str(error), data, Recipe)) from error


def _with_defaults(data: dict[str, Any]) -> dict[str, Any]:
    """Add the defaults that a family has of its own."""
    family = data.get("sketch", {}).get("family")
    own = FAMILY_DEFAULTS.get(family, {}) if isinstance(family, str) else {}
    return {**data, **{section: {**keys, **data.get(section, {})} for section, keys in own.items()}}


def override(recipe: Recipe, settings: Iterable[str]) -> Recipe:
    """Apply `key.path=value` settings, as given on the command line.

    A value is parsed as TOML (`5`, `0.8` or `.8`, `true`, `["a", "b"]`), or else taken as a string. A setting replaces
    the keys that it excludes: bands.count and bands.rows, bands.recall and bands.rule replace each other,
    match.amplification replaces bands, and vice versa; another family drops the options of the previous one. A
    default that depends on others is chosen anew.
    """
    data = to_mapping(recipe)
    # Defaults that depend on other keys are left open, to be chosen anew.
    if recipe.match.review == default_review(recipe):
        del data["match"]["review"]
    if recipe.match.min_fingerprints == default_fingerprints(recipe.match):
        data["match"].pop("min_fingerprints", None)
    if recipe.sketch.family == "rare" and recipe.bands == default_bands(recipe.sketch, Bands()):
        del data["bands"]["count"], data["bands"]["rows"]

    changes = dict(_split_setting(setting) for setting in settings)
    for path in _excluded(changes, data):
        section, _, key = path.partition(".")
        data[section].pop(key, None)

    for path, value in changes.items():
        section, _, key = path.rpartition(".")
        target = data if not section else data.setdefault(section, {})
        if not isinstance(target, dict):
            raise RecipeError(f"--set {path}: {section} is not a section of a recipe")
        target[key] = value
    return from_mapping(data)


def within_fields(recipe: Recipe, names: str | Sequence[str]) -> Recipe:
    """Return a recipe of which only pairs with equal values of some fields count."""
    return override(recipe, [f"match.within={toml_value(names)}"])


def _excluded(changes: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Return the keys of a recipe that settings replace."""
    family = data["sketch"]["family"]
    excluded = [key for change in changes for key in _REPLACED.get(change, "").split()]
    chosen = changes.get("sketch.family", family)
    kept = FAMILY_OPTIONS.get(chosen, {}) if isinstance(chosen, str) else {}
    excluded += [f"sketch.{option}" for option in OPTIONS if option not in kept]
    if chosen != family:
        excluded += _family_keys(data, family, chosen)
    if changes.get("sketch.input") == "vector":
        excluded += ["sketch.weights"]
    return excluded


_NOT_OF_BOTH = (
    *("bands.recall", "bands.count", "bands.rows", "bands.rule"),
    *(f"match.{key}" for key in WINNOW_KEYS),
)


def _family_keys(data: dict[str, Any], family: str, chosen: Any) -> list[str]:
    """Return the keys that are not for another family, and those that have the default of the previous one."""
    usual, has_own_bands = to_mapping(Recipe()), {"winnow", "rare"} & {family, chosen}
    excluded = list(_NOT_OF_BOTH) if has_own_bands else []
    for keys in (FAMILY_DEFAULTS.get(name, {}) for name in (family, chosen) if isinstance(name, str)):
        for section, name in ((section, name) for section, names in keys.items() for name in names):
            before = FAMILY_DEFAULTS.get(family, {}).get(section, {}).get(name, usual[section][name])
            if data[section].get(name) == before:
                excluded.append(f"{section}.{name}")
    return excluded


def _split_setting(setting: str) -> tuple[str, Any]:
    if any("\ud800" <= character <= "\udfff" for character in setting):
        raise RecipeError(
            f"--set is {setting!r}; it has a lone surrogate or bytes that are not UTF-8, which PostgreSQL cannot store"
        )
    path, equals, text = setting.partition("=")
    if not equals or not path.strip():
        raise RecipeError(f"--set is {setting!r}; it must be key=value, as in --set match.threshold=0.8")
    text = _POINT_FIRST.sub("0.", text.strip())
    try:
        read = _parse_toml(f"value = {text}")
    except ValueError:
        read = {}
    return path.strip(), read["value"] if read.keys() == {"value"} else text


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
    match = re.fullmatch(r"(?P<what>.*?) - at `\$\.?(?P<key>[^`]*)`", message, re.DOTALL)
    if match is None:
        return message
    value: Any = data
    kind: Any = recipe
    path, _, place = match["key"].partition("[")
    for name in path.split("."):
        value = value[name]
        kind = next(field.type for field in msgspec.structs.fields(kind) if field.name == name)
    if match["what"].startswith("Invalid enum value"):
        choices = " or ".join(_choices(kind))
        value = value[int(place.removesuffix("]"))] if place else value
        return f"{path} is {value!r}, which is unknown to this version; choose {choices}"
    return f"{match['key']} is {value!r}; it must be {_in_words(match['what'])}"


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
    if kind is bool:
        return ["false", "true"]
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [choice for part in get_args(kind) for choice in _choices(part)]


def to_mapping(recipe: Recipe) -> dict[str, Any]:
    """Return the whole recipe as nested dictionaries, including defaults, with lists as they are stored."""
    mapping = msgspec.json.decode(msgspec.json.encode(recipe))
    assert isinstance(mapping, dict)
    return {
        section: {key: value for key, value in values.items() if value is not None}
        if isinstance(values, dict)
        else values
        for section, values in mapping.items()
    }


def to_toml(recipe: Recipe) -> str:
    """Return the whole recipe as a TOML document that `parse` reads."""
    mapping = to_mapping(recipe)
    lines = [f"{key} = {toml_value(value)}" for key, value in mapping.items() if not isinstance(value, dict)]
    for section, values in mapping.items():
        if isinstance(values, dict):
            lines += ["", f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in values.items())]
    return "\n".join([*lines, ""])


def toml_value(value: object) -> str:
    """Encode as JSON, whose numbers, booleans, arrays and strings are valid TOML except for DEL, which TOML
    escapes.
    """
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def differing_keys(live: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the keys that differ, as section.key, each with its (live, new) value; None where a recipe has none.

    Keys that a recipe of an earlier version lacks get the values that match the behaviour of that version.
    """
    before, after = (flatten(with_earlier_values(recipe)) for recipe in (live, new))
    names = [*before, *(name for name in after if name not in before)]
    return {
        name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    }


def flatten(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a recipe by section.key, arrays as lists, as they are stored."""
    flat: dict[str, Any] = {}
    for name, value in recipe.items():
        if isinstance(value, Mapping):
            flat |= flatten({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = list(value) if isinstance(value, tuple) else value
    return flat


# Keys that recipes of earlier versions lack, each with the value that acts as its absence did: such a recipe keeps
# its fingerprint, so existing indexes can be written to.
_EARLIER: Mapping[str, Mapping[str, Any]] = {
    "normalise": {"invisible": "keep", "mask": [], "confusables": "keep"},
    "shingle": {"order": "kept"},
    "retain": {"delete": False},
    "match": {
        "certain_shared_bands": 0,
        "review": 0.0,
        "across": "none",
        "within": "none",
        "within_days": 0,
        "length_ratio": 0.0,
    },
    "cluster": {"allow_chains": False},
}


def with_earlier_values(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored recipe of a generation with the keys that it lacks."""
    return {**stored, **{name: {**keys, **stored.get(name, {})} for name, keys in _EARLIER.items()}}


def without_later_keys(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole recipe without the keys that earlier versions lack, where they act as if absent."""
    return {
        name: {
            key: value for key, value in values.items() if _EARLIER.get(name, {}).get(key, _ABSENT) != value
        }
        if isinstance(values, Mapping)
        else values
        for name, values in mapping.items()
    }


_ABSENT = object()
