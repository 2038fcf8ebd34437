"""Cleaning: replace characters that PostgreSQL cannot store (NUL, lone surrogates) with U+FFFD."""

import re
from collections.abc import Mapping
from math import isfinite

import numpy as np

from nearsim_db.errors import InputError

REPLACEMENT = "\ufffd"
MAX_JSON_DEPTH = 100
MAX_EXTENDED_KEYS = 100

_SMALLEST_INTEGER = -(2**63)
_LARGEST_INTEGER = 2**64 - 1
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def clean(text: str) -> tuple[str, int]:
    """Return the text with each NUL and lone surrogate replaced by U+FFFD, and the number of replacements."""
    if "\0" not in text and (text.isascii() or _is_encodable(text)):
        return text, 0
    return _UNSTORABLE.subn(REPLACEMENT, text)


def clean_attributes(attributes: Mapping[str, object]) -> tuple[dict[str, object], int]:
    """Return the attributes of a document with all keys and strings cleaned, and the number of replacements.

    No key is lost if cleaning makes keys equal: a key that needed no cleaning keeps its name, and U+FFFD is appended to
    each of the other keys until it is unique. Raises InputError for more than MAX_EXTENDED_KEYS extended keys, and for
    values that jsonb or its writer cannot represent: NaN, infinities, integers beyond 64 bits, more than MAX_JSON_DEPTH
    levels, keys that are not strings, and Python values without a JSON equivalent.
    """
    return _clean_object(attributes, MAX_JSON_DEPTH)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _clean_value(value: object, levels: int) -> tuple[object, int]:
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool):
        return value, 0

    if isinstance(value, int):
        if not _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
            raise InputError("an attribute is an integer beyond 64 bits; write it as a string")
        return value, 0
    if isinstance(value, float):
        if not isfinite(value):
            raise InputError(f"an attribute is {value}, which is not valid JSON; write null or a string")
        return float(value), 0  # the JSON writer rejects subclasses of float, such as NumPy's

    # The check for Mapping comes later, because it takes as long as all other checks together.
    if isinstance(value, list | tuple):
        return _clean_array(value, levels)
    if isinstance(value, Mapping):
        return _clean_object(value, levels)
    if isinstance(value, np.generic) and value.dtype.kind in "biuf" and value.dtype != np.longdouble:
        return _clean_value(value.item(), levels)
    raise InputError(f"an attribute is a {type(value).__name__}, which JSON cannot represent")


def _clean_array(values: list[object] | tuple[object, ...], levels: int) -> tuple[list[object], int]:
    _check_levels(levels)
    if not values:
        return [], 0
    cleaned = [_clean_value(value, levels - 1) for value in values]
    return [value for value, _ in cleaned], sum(count for _, count in cleaned)


def _clean_object(values: Mapping[str, object], levels: int) -> tuple[dict[str, object], int]:
    _check_levels(levels)
    if not values:
        return {}, 0
    names, replaced = _clean_keys(values)
    cleaned: dict[str, object] = {}
    for name, value in zip(names, values.values(), strict=True):
        cleaned[name], count = _clean_value(value, levels - 1)
        replaced += count
    return cleaned, replaced


def _clean_keys(values: Mapping[str, object]) -> tuple[list[str], int]:
    names: list[str] = []
    total = 0
    extended = 0
    taken: set[str] = set()

    for key in values:
        if not isinstance(key, str):
            raise InputError(f"an attribute has the key {key!r}; keys must be strings")

        name, replaced = clean(key)
        if replaced:
            # Replacements may make keys equal, so this key is extended until it is unique.
            extended += name in taken or name in values
            if extended > MAX_EXTENDED_KEYS:
                raise InputError(
                    f"more than {MAX_EXTENDED_KEYS} attributes have keys that differ only in NUL, lone surrogates or "
                    "bytes that are not UTF-8"
                )
            while name in taken or name in values:
                name += REPLACEMENT
            taken.add(name)
        names.append(name)
        total += replaced
    return names, total


def _check_levels(levels: int) -> None:
    if levels <= 0:
        raise InputError(f"an attribute is nested deeper than {MAX_JSON_DEPTH} levels")
