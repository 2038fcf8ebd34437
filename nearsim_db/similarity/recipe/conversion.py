"""Conversion of recipes from and to TOML and nested dictionaries, and changes of single keys.

An error message names the key first, then the value or the choices, and the remedy.
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

# For each key, the keys that are dropped from a recipe when the key is set.
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
# The point of a number such as .5, which TOML does not allow.
_POINT_FIRST = re.compile(r"^\.(?=[0-9]+$)")

# tomllib takes a time quadratic in n for a key of n parts.
_PART = r"(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+"
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:\.[ \t]*+{_PART}){{32}}")


def parse(text: str, *, origin: str = "the recipe") -> Recipe:
    """Parse a TOML document; missing keys get their defaults.

    Raises RecipeError for invalid TOML, an unknown key or a value out of range. The message names the key and the
    remedy, and `origin` as the place of the error.
    """
    try:
        return from_mapping(_parse_toml(text))
    except ValueError as error:
        raise RecipeError(f"{origin} is not valid TOML: {error}") from error
    except RecipeError as error:
        raise RecipeError(f"{origin}: {error}") from error


def _parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError if the text is not valid, too long or nested too deeply."""
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
    """Read a recipe from a TOML file. Raises RecipeError as `parse` does, and for an unreadable file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot read the recipe {path}: {error}") from error
    return parse(text, origin=str(path))


def from_mapping(data: dict[str, Any]) -> Recipe:
    """Convert nested dictionaries, from TOML or from the JSON stored with a generation, to a recipe."""
    refuse_unknown_keys(data, Recipe, "")
    data = _with_defaults(data)
    try:
        return msgspec.convert(data, Recipe)
    except msgspec.ValidationError as error:
        raise RecipeError(readable(str(error), data, Recipe)) from error


def _with_defaults(data: dict[str, Any]) -> dict[str, Any]:
    """Add the defaults that apply only to the family of a recipe."""
    family = data.get("sketch", {}).get("family")
    defaults = FAMILY_DEFAULTS.get(family, {}) if isinstance(family, str) else {}
    return {**data, **{section: {**keys, **data.get(section, {})} for section, keys in defaults.items()}}


def override(recipe: Recipe, settings: Iterable[str]) -> Recipe:
    """Apply settings `key.path=value`, as given on the command line.

    A value is parsed as TOML (`5`, `0.8` or `.8`, `true`, `["a", "b"]`); if that fails, it is taken as a string.

    A setting drops the keys that it excludes. bands.recall, bands.rule, and bands.count with bands.rows exclude each
    other; match.amplification excludes all of them. A change of the family drops the options of the previous family.
    Defaults that depend on other keys are chosen again.
    """
    data = to_mapping(recipe)
    # Remove defaults that depend on other keys, so that `from_mapping` chooses them again.
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
    """Return a recipe with `match.within` set: only documents with equal values of these fields are a pair."""
    return override(recipe, [f"match.within={toml_value(names)}"])


def keeping(recipe: Recipe, keep: str | Sequence[str]) -> Recipe:
    """Return a recipe with another keep policy, of a rule or several."""
    return override(recipe, [f"cluster.keep={toml_value(keep)}"])


def _excluded(changes: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Return the keys of a recipe that are dropped when settings change it."""
    family = data["sketch"]["family"]
    excluded = [key for change in changes for key in _REPLACED.get(change, "").split()]
    new_family = changes.get("sketch.family", family)
    kept_options = FAMILY_OPTIONS.get(new_family, {}) if isinstance(new_family, str) else {}
    excluded += [f"sketch.{option}" for option in OPTIONS if option not in kept_options]
    if new_family != family:
        excluded += _family_keys(data, family, new_family)
    if changes.get("sketch.input") == "vector":
        excluded += ["sketch.weights"]
    return excluded


# Keys that do not apply both to winnow or rare and to the other families.
_NOT_OF_BOTH = (
    *("bands.recall", "bands.count", "bands.rows", "bands.rule"),
    *(f"match.{key}" for key in WINNOW_KEYS),
)


def _family_keys(data: dict[str, Any], family: str, new_family: Any) -> list[str]:
    """Return the keys to drop when the family changes.

    These are the keys that do not apply to both families, and keys that still have the default of the previous family
    where the two families have different defaults.
    """
    defaults, has_own_bands = to_mapping(Recipe()), {"winnow", "rare"} & {family, new_family}
    excluded = list(_NOT_OF_BOTH) if has_own_bands else []
    for keys in (FAMILY_DEFAULTS.get(name, {}) for name in (family, new_family) if isinstance(name, str)):
        for section, name in ((section, name) for section, names in keys.items() for name in names):
            previous_default = (
                FAMILY_DEFAULTS.get(family, {}).get(section, {}).get(name, defaults[section][name])
            )
            if data[section].get(name) == previous_default:
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
    """Raise RecipeError for an unknown key. The message suggests the key with the closest name."""
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    for key, value in data.items():
        if key not in fields:
            close = difflib.get_close_matches(key, fields, n=1)
            hint = f"did you mean {prefix}{close[0]}?" if close else f"choose one of {', '.join(fields)}"
            raise RecipeError(f"unknown key {prefix}{key} in this version; {hint}")
        section = fields[key].type
        if isinstance(section, type) and issubclass(section, Struct):
            if not isinstance(value, dict):
                raise RecipeError(f"{key} is a section; write [{key}] and its keys below it")
            refuse_unknown_keys(value, section, f"{prefix}{key}.")


def readable(message: str, data: dict[str, Any], recipe: type[Struct]) -> str:
    """Rewrite a message of msgspec, so that it begins with the key and the value.

    msgspec's messages look like 'Expected `int` >= 1 - at `$.shingle.k`'.
    """
    match = re.fullmatch(r"(?P<problem>.*?) - at `\$\.?(?P<key>[^`]*)`", message, re.DOTALL)
    if match is None:
        return message
    value: Any = data
    kind: Any = recipe
    path, _, place = match["key"].partition("[")
    for name in path.split("."):
        value = value[name]
        kind = next(field.type for field in msgspec.structs.fields(kind) if field.name == name)
    if match["problem"].startswith("Invalid enum value"):
        choices = " or ".join(_choices(kind))
        value = value[int(place.removesuffix("]"))] if place else value
        return f"{path} is {value!r}, which is unknown to this version; choose {choices}"
    return f"{match['key']} is {value!r}; it must be {_in_words(match['problem'])}"


_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_KINDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
}


def _in_words(expected: str) -> str:
    """Return in words what msgspec expects in 'Expected `int` >= 1' or 'Expected `str | array`, got `int`'."""
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
    """Return the whole recipe as nested dictionaries, including defaults, with lists instead of tuples, as in JSON."""
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
    """Encode a value as TOML.

    The encoder is msgspec's for JSON: JSON numbers, booleans, arrays and strings are valid TOML, except that TOML
    requires an escape for DEL.
    """
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def differing_keys(live: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the keys that differ, as section.key, with their (live, new) values; None where a recipe lacks a key.

    Recipes of earlier versions lack some keys. These keys get the values that behave as the earlier version did.
    """
    before, after = (flatten(with_earlier_values(recipe)) for recipe in (live, new))
    names = [*before, *(name for name in after if name not in before)]
    return {
        name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    }


def flatten(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a recipe by section.key, with lists instead of tuples, as in JSON."""
    flat: dict[str, Any] = {}
    for name, value in recipe.items():
        if isinstance(value, Mapping):
            flat |= flatten({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = list(value) if isinstance(value, tuple) else value
    return flat


# Keys that recipes of earlier versions lack. Each has the value that behaves as if the key did not exist, so such a
# recipe keeps its fingerprint, and existing indexes stay writable.
_EARLIER: Mapping[str, Mapping[str, Any]] = {
    "normalise": {"invisible": "keep", "mask": [], "confusables": "keep", "drop_repeated": "none"},
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
    """Return the stored recipe of a generation, with the keys that it lacks added."""
    return {**stored, **{name: {**keys, **stored.get(name, {})} for name, keys in _EARLIER.items()}}


def without_later_keys(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole recipe without the keys of `_EARLIER` whose values behave as if the keys did not exist."""
    return {
        name: {
            key: value for key, value in values.items() if _EARLIER.get(name, {}).get(key, _ABSENT) != value
        }
        if isinstance(values, Mapping)
        else values
        for name, values in mapping.items()
    }


_ABSENT = object()
