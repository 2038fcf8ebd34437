"""Shingle ids against plain Python, on both back ends, and known answers."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.recipe import from_mapping
from nearsim_db.similarity.text import SCHEME_VERSION, Shingler, Shingles
from nearsim_db.similarity.text.kernels import plain_hashes
from tests.builders.plain_text import (
    MASK,
    Rules,
    all_rules,
    any_text,
    digit_runs,
    hash_of,
    jvm_char_ids,
    shingles,
)
from tests.builders.plain_text import poly64 as plain_poly64
from tests.builders.selection import every_backend, examples, some, some_combinations

BASES = ["poly64", "crc32", "djb2a", "djb2a-signed"]
every_base = pytest.mark.parametrize("base", BASES)


def cut(texts: list[str], rules: Rules, backend: Backend) -> Shingles:
    found = Shingler(rules.recipe(), backend).shingles(texts)
    dtypes = [array.dtype for array in (found.ids, found.offsets, found.numbers)]
    assert dtypes == [np.dtype(np.uint64), np.dtype(np.int64), np.dtype(np.uint64)]
    assert (len(found.offsets), len(found.numbers)) == (len(texts) + 1, len(texts))
    assert found.offsets[0] == 0
    assert found.offsets[-1] == len(found.ids)
    return found


def ids_of(text: str, rules: Rules, backend: Backend) -> list[int]:
    ids: list[int] = cut([text], rules, backend).ids.tolist()
    return ids


def expected_ids(text: str, rules: Rules) -> list[int]:
    return [hash_of(shingle, rules.base) for shingle in shingles(text, rules)]


@every_backend
@examples(200)
@given(texts=st.lists(any_text, max_size=4), k=st.integers(1, 6))
@example(texts=["", "a😀", "ĠĊ", "안녕", "é" * 5000], k=3)
def test_cast_characters_are_utf_16_units(backend: Backend, texts: list[str], k: int) -> None:
    recipe = from_mapping(
        {
            "normalise": {"unicode": "none", "case": "none", "whitespace": "none", "invisible": "keep"},
            "shingle": {"scheme": "char", "k": k},
            "hash": {"base": "djb2a-cast"},
        }
    )
    found = Shingler(recipe, backend).shingles(texts)
    for row, text in enumerate(texts):
        ids = found.ids[found.offsets[row] : found.offsets[row + 1]].tolist()
        assert ids == jvm_char_ids(text, k)


@every_backend
@examples(300)
@given(rules=all_rules, texts=st.lists(any_text, max_size=4))
@example(rules=Rules(), texts=[])
@example(rules=Rules(), texts=["", " \r\n", "\u200b\ufeff", "two words", ""])
@example(rules=Rules(scheme="char", k=5), texts=["", "\xa0", "abc", "안녕하세요 여러분", "😀😀😀😀😀😀"])
@example(rules=Rules(scheme="char", whitespace="none"), texts=[" a  b ", "\n", "\r\n\r\n"])
@example(rules=Rules(scheme="sentence", k=1), texts=["", "One. Two! 你好！你好吗？", "...", "End.\n\n\nEnd."])
def test_ids_equal_plain_python(backend: Backend, rules: Rules, texts: list[str]) -> None:
    found = cut(texts, rules, backend)
    for row, text in enumerate(texts):
        assert found.ids[found.offsets[row] : found.offsets[row + 1]].tolist() == expected_ids(text, rules)
        total = sum(plain_poly64(run.encode()) * times for run, times in digit_runs(text, rules).items())
        assert found.numbers[row] == total & MASK


@every_backend
@examples(100)
@given(rules=all_rules, left=any_text, right=any_text)
@example(rules=Rules(), left="3 dogs, 14 cats", right="14 3")
@example(rules=Rules(), left="1 1", right="1")
@example(rules=Rules(), left="11", right="1 1")
@example(rules=Rules(), left="0", right="")
@example(rules=Rules(), left="00", right="0")
@example(rules=Rules(), left="no digits", right="")
def test_number_sums_identify_the_runs_of_digits(
    backend: Backend, rules: Rules, left: str, right: str
) -> None:
    numbers = cut([left, right], rules, backend).numbers
    assert (numbers[0] == numbers[1]) == (digit_runs(left, rules) == digit_runs(right, rules))
    assert (numbers[0] == 0) == (not digit_runs(left, rules))


@every_backend
@pytest.mark.parametrize("length", [1, 2, 9, 128, 300])
def test_number_sums_find_digits_at_every_place_of_a_long_text(backend: Backend, length: int) -> None:
    run = ("1984" * length)[:length]
    texts = [f"{'a' * before}{run}{'b' * 300}" for before in range(300)]
    assert set(cut(texts, Rules(), backend).numbers.tolist()) == {plain_poly64(run.encode())}


def long_text(alphabet: str, length: int) -> str:
    return "".join(random.Random(length).choices(alphabet, k=length))


@every_backend
@some_combinations(("alphabet", ["abcdefgh xyz", "ab 가나다中😀é"]), ("scheme", ["char", "word"]))
def test_a_document_of_several_segments(backend: Backend, alphabet: str, scheme: str) -> None:
    rules = Rules(scheme, k=4, tokens="whitespace", unicode="none")
    text = long_text(alphabet, 150_000)
    assert len(text) > 2 * plain_hashes.SEGMENT_BYTES
    texts = ["before", text, "after it all"]
    found = cut(texts, rules, backend)
    assert found.ids.tolist() == [one for text in texts for one in expected_ids(text, rules)]


@every_backend
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_windows_nearly_as_long_as_a_segment(backend: Backend, extra: int) -> None:
    rules = Rules("word", k=2, tokens="whitespace")
    first = "x" * (plain_hashes.SEGMENT_BYTES - 2 + extra)
    text = f"{first} y zz {first} é {first}가 end"
    assert ids_of(text, rules, backend) == expected_ids(text, rules)


@every_backend
@pytest.mark.parametrize("base", some(BASES, "every base"))
def test_windows_longer_than_a_segment(backend: Backend, base: str) -> None:
    sizes = (70_000, 10, 5_000, 4_096, 200_000, 1, 3, 30_000, 40_000)
    text = " ".join(long_text("abcé", size) for size in sizes)
    for rules in (Rules("word", 2, "whitespace", base), Rules("bag", 1, "whitespace", base)):
        assert ids_of(text, rules, backend) == expected_ids(text, rules)


@every_backend
@every_base
@pytest.mark.parametrize("scheme", ["char", "word", "sentence"])
def test_document_shorter_than_a_shingle_is_one_shingle(backend: Backend, base: str, scheme: str) -> None:
    rules = Rules(scheme, 128, "unicode", base)
    text = "Zürich am See. Und noch ein Satz."
    assert ids_of(text, rules, backend) == expected_ids(text, rules)
    assert len(ids_of(text, rules, backend)) == 1


@every_backend
@pytest.mark.parametrize("k", [3, 4, 5, 6, 7, 8])
def test_every_short_window_of_a_long_ascii_text(backend: Backend, k: int) -> None:
    rules = Rules("char", k, unicode="none")
    texts = [long_text("abc~ Z9", size) for size in (k, 1023 + k, 1024 + k, 3_000)]
    found = cut([*texts, "abc"], rules, backend)
    assert found.ids.tolist() == [one for text in [*texts, "abc"] for one in expected_ids(text, rules)]


@every_backend
def test_stop_words_and_short_words_do_not_affect_numbers(backend: Backend) -> None:
    plain = cut(["the 7 of 42"], Rules("bag"), backend)
    filtered = cut(["the 7 of 42"], Rules("bag", stopwords=["the", "7", "42"]), backend)
    assert plain.numbers.tolist() == filtered.numbers.tolist()
    assert filtered.ids.tolist() == [plain_poly64(b"of")]


KNOWN_IDS = {
    "poly64": {
        "a": 0x685FDF50E51FA977,
        "he": 0xE2B6B0ABCC77BBF6,
        "sample": 0x644530FDBC7D3A2A,
        "Zürich": 0xEAAEC114208F0373,
        "안녕하세요": 0x50E5394199D0BB84,
        "😀": 0x58F7380811F8DF83,
    },
    "crc32": {
        "a": 0xE8B7BE43,
        "he": 0xD1256687,
        "sample": 0xF10B76C3,
        "Zürich": 0xD30BA93E,
        "안녕하세요": 0x4C8B7AF1,
        "😀": 0x054DB544,
    },
    "djb2a": {
        "a": 0x0002B5C4,
        "he": 0x00596F08,
        "sample": 0x80F54C03,
        "Zürich": 0x44344D50,
        "안녕하세요": 0x4D5550BD,
        "😀": 0x7C2ED2F2,
    },
}


def ids(text: str, backend: Backend, base: str = "crc32", **shingle: Any) -> list[int]:
    as_written = {"unicode": "none", "case": "none", "whitespace": "none"}
    recipe = from_mapping({"normalise": as_written, "shingle": shingle, "hash": {"base": base}})
    found: list[int] = Shingler(recipe, backend).shingles([text]).ids.tolist()
    return found


@every_backend
@pytest.mark.parametrize("base", list(KNOWN_IDS))
def test_known_ids(backend: Backend, base: str) -> None:
    assert SCHEME_VERSION == 1, "a changed scheme needs its own known ids"
    for text, known in KNOWN_IDS[base].items():
        assert ids(text, backend, base, scheme="char", k=128) == [known]
        assert ids(text, backend, base, scheme="bag", tokens="whitespace") == [known]
    assert ids("", backend, base, scheme="char", k=128) == []


@every_backend
def test_riskiq_djb2a(backend: Backend) -> None:
    assert ids("he", backend, "djb2a", scheme="char", k=2) == [5861128]
    assert ids("she said he", backend, "djb2a", scheme="bag")[-1] == 5861128


@every_backend
def test_the_signedness_of_djb2a_beyond_ascii(backend: Backend) -> None:
    one = {"scheme": "char", "k": 5}
    assert ids("é", backend, "djb2a", **one) == [5857935]
    assert ids("é", backend, "djb2a-signed", **one) == [5859471]
    # The byte -23 of U+00E9: 177573 ^ -23 is -177588.
    assert ids("é", backend, "djb2a-cast", **one) == [-177588 % 2**32]
    assert ids("ǩ", backend, "djb2a-cast", **one) == ids("é", backend, "djb2a-cast", **one)
    for base in ("djb2a", "djb2a-signed", "djb2a-cast"):
        assert ids("he", backend, base, **one) == [5861128]
