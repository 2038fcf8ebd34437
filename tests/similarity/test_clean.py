"""Characters that PostgreSQL cannot store are replaced and counted; nothing else changes."""

import json
from math import inf, nan

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearsim_db.errors import InputError
from nearsim_db.similarity.text.clean import (
    MAX_EXTENDED_KEYS,
    MAX_JSON_DEPTH,
    clean,
    clean_attributes,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


def is_storable(character: str) -> bool:
    return character != "\0" and not 0xD800 <= ord(character) <= 0xDFFF


@settings(deadline=None)
@given(ANY_TEXT)
@example("a\0\ud83d\ude00 \ufffd")
def test_clean_replaces_each_character_that_cannot_be_stored(text: str) -> None:
    expected = "".join(character if is_storable(character) else "\ufffd" for character in text)
    assert clean(text) == (expected, sum(not is_storable(character) for character in text))


def test_clean_returns_clean_text_unchanged() -> None:
    text = "déjà vu " * 100
    assert clean(text)[0] is text


def strings_of(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [found for inner in value for found in strings_of(inner)]
    if isinstance(value, dict):
        return [found for pair in value.items() for inner in pair for found in strings_of(inner)]
    return []


def count_leaves(value: object) -> int:
    if isinstance(value, list):
        return sum(map(count_leaves, value))
    if isinstance(value, dict):
        return sum(map(count_leaves, value.values()))
    return 1


@settings(deadline=None)
@given(ANY_JSON)
@example({"k\0": ["\0", {"x": "\ud800y"}], "n": [-(2**63), 2**64 - 1, -0.0]})
def test_cleaned_json_is_accepted_by_jsonb_and_keeps_all_values(value: object) -> None:
    found, replaced = clean_attributes({"a": value})
    cleaned = found["a"]
    assert all(is_storable(character) for text in strings_of(cleaned) for character in text)
    assert replaced == sum(not is_storable(character) for text in strings_of(value) for character in text)
    assert count_leaves(cleaned) == count_leaves(value)
    if replaced == 0:
        assert json.dumps(cleaned) == json.dumps(value)


def test_keys_that_become_equal_are_all_kept() -> None:
    attributes = dict(zip(("a\0", "a\ud800", "a\ufffd", "b"), (1, 2, 3, 4), strict=True))
    cleaned = {"a\ufffd\ufffd": 1, "a\ufffd\ufffd\ufffd": 2, "a\ufffd": 3, "b": 4}
    assert clean_attributes(attributes) == (cleaned, 2)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([nan], "nan"),
        ({"x": inf}, "inf"),
        (-inf, "-inf"),
        (2**64, "64 bits"),
        (-(2**63) - 1, "64 bits"),
        ({1: "x"}, "keys must be strings"),
        ([b"bytes"], "bytes"),
        ({"x": {1, 2}}, "set"),
    ],
)
def test_values_that_json_lacks_are_refused(value: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        clean_attributes({"a": value})


def nested(levels: int) -> object:
    value: object = "deep"
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_is_accepted_up_to_the_limit() -> None:
    accepted = {"a": nested(MAX_JSON_DEPTH - 1)}
    assert clean_attributes(accepted) == (accepted, 0)
    with pytest.raises(InputError, match="deeper than 100 levels"):
        clean_attributes({"a": nested(MAX_JSON_DEPTH)})


def test_many_keys_that_become_equal_are_refused() -> None:
    # Extending the n-th of them by n characters took cubic time: 12 s for 4,000.
    keys = [chr(0xD800 + number // 256) + chr(0xD900 + number % 256) for number in range(10_000)]
    assert len(clean_attributes(dict.fromkeys(keys[: MAX_EXTENDED_KEYS + 1]))[0]) == MAX_EXTENDED_KEYS + 1
    with pytest.raises(InputError, match="differ only in NUL, lone surrogates or bytes"):
        clean_attributes(dict.fromkeys(keys))
