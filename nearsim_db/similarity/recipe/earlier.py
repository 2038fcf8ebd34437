"""Keys that recipes of earlier versions lack, each with the value that acts as its absence did.

A recipe with these values has the fingerprint that it had without the keys, so existing indexes can be written to.
"""

from collections.abc import Mapping
from typing import Any

_EARLIER: Mapping[str, Mapping[str, Any]] = {
    "normalise": {"invisible": "keep"},
    "match": {"certain_shared_bands": 0},
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
