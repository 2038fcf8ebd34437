"""Normalisation: character classes, canonical text, and characters that PostgreSQL cannot store."""

import json
import sys
import unicodedata
from functools import cache
from itertools import groupby, pairwise
from math import inf, nan

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearsim_db.errors import InputError
from nearsim_db.similarity.backend import text_kernels
from nearsim_db.similarity.recipe import Normalise
from nearsim_db.similarity.text import normalise, separators
from nearsim_db.similarity.text.clean import MAX_EXTENDED_KEYS, MAX_JSON_DEPTH, clean, clean_attributes
from nearsim_db.similarity.text.normalise import make_fold, squeeze
from tests.builders.cpu_time import cpu_seconds
from tests.builders.plain_text import any_text, is_of_word, words
from tests.builders.selection import every_backend, examples, some

TABLES = {
    "whitespace": separators.spaces,
    "unicode": separators.unicode_words,
    "ascii": separators.ascii_words,
}


@pytest.mark.parametrize("tokens", list(TABLES))
@pytest.mark.parametrize("fold_ascii", some([False, True], "both"))
def test_every_code_point_is_in_its_class(tokens: str, fold_ascii: bool) -> None:
    table = TABLES[tokens](fold_ascii)
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if 0xD800 <= code < 0xE000:
            continue
        of_word = is_of_word(character.lower() if fold_ascii and code < 128 else character, tokens)
        assert bool(table[code]) == of_word, hex(code)


def test_ascii_entries_are_their_output_bytes() -> None:
    for table in (separators.spaces, separators.nothing):
        for code in range(0x21, 0x7F):
            assert table(False)[code] == code
            assert table(True)[code] == ord(chr(code).lower())


@every_backend
@pytest.mark.parametrize("tokens", list(TABLES))
@examples(150)
@given(text=any_text)
def test_squeezed_text_has_single_spaces_between_words(backend: str, tokens: str, text: str) -> None:
    kernels = text_kernels("numba" if backend == "numba" else "numpy")
    canonical = squeeze([text, "", text], TABLES[tokens](False), kernels)
    assert [canonical.text(row) for row in range(3)] == [
        " ".join(words(text, tokens)),
        "",
        " ".join(words(text, tokens)),
    ]


@pytest.mark.parametrize(
    ("rules", "text", "folded"),
    [
        (Normalise(), "ＡＢＣ ﬁ ² e\u0301 STRASSE ß", "abc fi 2 é strasse ss"),
        (Normalise(unicode="nfc"), "ﬁ ² e\u0301 ß", "fi ² é ss"),
        (Normalise(unicode="nfc", case="lower"), "ﬁ ² E\u0301 ẞ", "ﬁ ² é ß"),
        (Normalise(unicode="none", case="lower"), "E\u0301 İ ΟΔΟΣ", "e\u0301 i̇ οδος"),
        (Normalise(unicode="none", case="none"), "E\u0301 ẞ ﬁ", "E\u0301 ẞ ﬁ"),
        (Normalise(), "ᾳ\u0301", unicodedata.normalize("NFKC", "ά\u03b9")),
    ],
)
def test_forms_and_case(rules: Normalise, text: str, folded: str) -> None:
    assert make_fold(rules)(text) == folded


@examples(200)
@given(text=any_text)
def test_folded_text_stays_normalised(text: str) -> None:
    for rules in (Normalise(case="lower"), Normalise(case="casefold")):
        assert unicodedata.is_normalized("NFKC", make_fold(rules)(text))


MARKS = (
    "\u0300\u0301\u0308\u0315\u0316\u0327\u0338\u0344\u0345\u05b0"
    "\u0f71\u0f72\u0f73\u0f75\u0f81\u3099\uff9e\uff9f\U0001d165\U0001e8d0"
)
runs = st.text(st.sampled_from(MARKS), min_size=20, max_size=80)


@examples(200)
@given(
    parts=st.lists(
        st.one_of(runs, st.sampled_from(["a", "é", "ế", "カ", "ﾊ", "가", "😀" * 40, " ", "ﱞ"])), max_size=6
    )
)
def test_long_runs_of_combining_characters_are_normalised_like_short_ones(parts: list[str]) -> None:
    text = "".join(parts)
    nfc = Normalise(unicode="nfc", case="none")
    assert make_fold(nfc)(text) == unicodedata.normalize("NFC", text)
    assert make_fold(Normalise(case="none"))(text) == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize("mark", ["\u0316", "\U0001e8d0"])
def test_the_shortest_long_run_is_sorted_wherever_it_begins(mark: str) -> None:
    for before in range(70):
        text = "é" * before + "\u0300" + mark * 31
        assert normalise.sort_long_runs(f"{text}é", "NFD") == "é" * before + mark * 31 + "\u0300é"
    assert normalise.sort_long_runs(f"\u0300{mark * 30}é", "NFD") == f"\u0300{mark * 30}é"


@pytest.mark.parametrize(
    "piece",
    some(
        ["\u0300\u0316", "\u0f73", "\uff9e\u0300", "\u0315\u0300\u0316", "a\u0316\u0300", "Σ'"], "every piece"
    ),
)
def test_a_megabyte_of_combining_characters_takes_less_than_a_second(piece: str) -> None:
    text = "a" + piece * (1_000_000 // len(piece.encode()))
    assert cpu_seconds(lambda: make_fold(Normalise())(text)) < 1


def test_only_known_starters_decompose_to_combining_characters() -> None:
    found = {
        character
        for character in map(chr, range(0x10000))
        if not unicodedata.combining(character)
        and unicodedata.combining(unicodedata.normalize("NFKD", character)[0])
    }
    assert found == set(normalise.STARTERS)


@cache
def ascii_tables() -> list[separators.Table]:
    """The tables that recipes use, and one of other bytes."""
    reversed_bytes = np.full(separators.CODE_POINTS, separators.SEPARATOR, np.uint8)
    reversed_bytes[:128] = np.arange(127, -1, -1)
    reversed_bytes.flags.writeable = False
    makers = (*TABLES.values(), separators.nothing)
    return [*(make(folded) for make in makers for folded in (True, False)), reversed_bytes]


@every_backend
@pytest.mark.parametrize("number", range(9))
def test_ascii_is_squeezed_by_any_table(backend: str, number: int) -> None:
    """Texts of every byte, with runs of separators across the ends of the blocks that a kernel works on."""
    table, rng = ascii_tables()[number], np.random.default_rng(number)
    texts = [
        *(
            bytes(rng.choice([32, 44, 65, 97, 0, 90, 126], size).tolist())
            for size in (0, 1, 2, 7, 300, 5_000)
        ),
        bytes(range(128)),
        b" " * 2_050 + b"A" * 2_047 + b" .  b",
        b"x" * 2_047 + b"  " + b"y" * 2_046 + b"\n \n",
    ]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    kernels = text_kernels("numba" if backend == "numba" else "numpy")
    squeezed, ends = kernels.squeeze(np.frombuffer(b"".join(texts), np.uint8), offsets, table)
    found = [squeezed[begin:end].tobytes() for begin, end in pairwise(ends.tolist())]
    assert found == [squeezed_plainly(text, table) for text in texts]


def squeezed_plainly(text: bytes, table: separators.Table) -> bytes:
    """What a table leaves of an ASCII text: its runs of kept bytes, joined by spaces."""
    entries = [int(table[byte]) for byte in text]
    return b" ".join(bytes(run) for kept, run in groupby(entries, bool) if kept)


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
