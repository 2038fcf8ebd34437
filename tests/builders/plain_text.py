"""Normalisation, shingles and hashes in plain Python, as the design defines them: slow and simple.

Written apart from `nearsim_db.similarity.text`: strings and lists of whole shingles, no tables, no prefix sums.
"""

import re
import unicodedata
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, pairwise
from typing import Literal

from hypothesis import strategies as st

from nearsim_db.similarity import recipe

MASK = 2**64 - 1
_FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}
_STOPS, _CJK_STOPS, _CLOSERS = ".!?…", "。！？｡", "\"'”’»)]」』）"

# Letters in several scripts and normal forms, marks, digits, every kind of space and control, what only folds or
# decomposes in a special way, code points of one to four bytes, and sentence ends.
_TRICKY = (
    "aAbBzZ019 \t\n\r\x01\x1f\x7f\x85\xa0\u1680\u2003\u200b\u200c\u200d\u2028\u2029\u202f\u205f\u3000\ufeff"
    "éÉe\u0301ßẞİıſﬁÅÅΣσςǅͅ\u0345½²Ⅳ١٣９＂！？。｡.!?…'’\"”)」_‿-–@#가각\u1100\u1161한국中文字々ー日本𠀀😀👩🏽𝒜é\u0488\U000e0101\u20dd"
    "ไทยລາວမြန်ខ្មែរབོད\xad\u034f\u061c\u1160\u180e\u200b\u200b\u2060\u3164\ufe0f\uffa0\U000e0041"
)
characters = st.one_of(
    st.sampled_from(_TRICKY),
    st.sampled_from("abcAB 1."),
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
)
texts = st.text(characters, max_size=60)
few_words = st.lists(
    st.sampled_from(
        ["one", "two", "Two", "drei", "안녕", "中文", "1.5", "don't", "é", "\xa0", "\r\n", "End. "]
    ),
    max_size=20,
).map(" ".join)
any_text = st.one_of(texts, few_words)


@dataclass(frozen=True)
class Rules:
    """The rules of a recipe that the oracle needs, and the recipe itself."""

    scheme: str = "word"
    k: int = 3
    tokens: str = "unicode"
    base: str = "poly64"
    unicode: str = "nfkc"
    case: str = "casefold"
    whitespace: str = "collapse"
    invisible: str = "drop"
    stopwords: list[str] = field(default_factory=list)

    def recipe(self) -> recipe.Recipe:
        shingle: dict[str, object] = {"scheme": self.scheme, "k": self.k, "tokens": self.tokens}
        if self.stopwords:
            shingle["stopwords"] = self.stopwords

        return recipe.from_mapping(
            {
                "normalise": {
                    "unicode": self.unicode,
                    "case": self.case,
                    "whitespace": self.whitespace,
                    "invisible": self.invisible,
                },
                "shingle": shingle,
                "hash": {"base": self.base},
            }
        )


all_rules = st.builds(
    Rules,
    st.sampled_from(["char", "word", "bag", "sentence"]),
    st.integers(1, 5),
    st.sampled_from(["whitespace", "unicode", "ascii"]),
    st.sampled_from(["poly64", "crc32", "djb2a", "djb2a-signed"]),
    st.sampled_from(["none", "nfc", "nfkc"]),
    st.sampled_from(["none", "lower", "casefold"]),
    st.sampled_from(["none", "collapse"]),
    st.sampled_from(["drop", "keep"]),
)


def shingles(text: str, rules: Rules) -> list[str]:
    """The shingles in order, with repetitions."""
    folded = fold(text, rules)
    k = 1 if rules.scheme == "bag" else rules.k
    if rules.scheme == "char":
        units = list(folded if rules.whitespace == "none" else " ".join(words(folded, "whitespace")))
        return windows(units, k, "")
    if rules.scheme == "sentence":
        lines = [" ".join(kept_words(sentence, rules)) for sentence in sentences(folded)]
        return windows([line for line in lines if line], k, "\n")
    return windows(kept_words(folded, rules), k, " ")


def windows(units: list[str], k: int, joiner: str) -> list[str]:
    """All runs of k units. If there are fewer than k units, but at least one, all of them are one shingle."""
    if 0 < len(units) < k:
        return [joiner.join(units)]
    return [joiner.join(units[at : at + k]) for at in range(len(units) - k + 1)]


def fold(text: str, rules: Rules) -> str:
    if rules.invisible == "drop":
        text = without_invisible(text)
    if rules.case == "none":
        return compose(text, rules)
    composed = compose(text, rules)
    return compose(composed.lower() if rules.case == "lower" else composed.casefold(), rules)


def without_invisible(text: str) -> str:
    """The text without default-ignorable characters.

    A ZERO WIDTH SPACE stays, once, beside a letter of Thai or a similar script.
    """
    seen: list[str] = []
    for ignorable, run in groupby(text, key=is_default_ignorable):
        characters = "".join(run)
        seen.append(characters if not ignorable else "\u200b" * ("\u200b" in characters))
    parts = ["", *seen, ""]
    return "".join(
        part
        for before, part, after in zip(parts, seen, parts[2:], strict=False)
        if part != "\u200b" or any(map(is_unspaced, before[-1:] + after[:1]))
    )


@cache
def is_default_ignorable(character: str) -> bool:
    """Whether a character is default-ignorable, as UAX #44 derives it.

    The general category and the names give most characters; the others are listed in PropList.txt.
    """
    code, name = ord(character), unicodedata.name(character, "")
    shown = code in range(0xFFF9, 0xFFFC) or code in range(0x13430, 0x13441)
    prepended = name.startswith(("ARABIC", "KAITHI", "SYRIAC")) and name != "ARABIC LETTER MARK"
    if unicodedata.category(character) == "Cf" and not shown and not prepended:
        return True
    other = (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0)
    return (
        "VARIATION SELECTOR" in name
        or code in other
        or code in range(0xFFF0, 0xFFF9)
        or code in range(0xE0000, 0xE1000)
    )


UNSPACED_SCRIPTS = (
    "THAI ", "LAO ", "MYANMAR ", "KHMER ", "TAI LE ", "NEW TAI LUE ", "TAI THAM ", "TAI VIET ", "AHOM "
)  # fmt: skip


def is_unspaced(character: str) -> bool:
    return unicodedata.name(character, "").startswith(UNSPACED_SCRIPTS)


def compose(text: str, rules: Rules) -> str:
    return text if rules.unicode == "none" else unicodedata.normalize(_FORMS[rules.unicode], text)


def kept_words(text: str, rules: Rules) -> list[str]:
    return [word for word in words(text, rules.tokens) if word not in rules.stopwords]


def words(text: str, tokens: str) -> list[str]:
    runs = groupby(text, key=lambda character: is_of_word(character, tokens))
    return ["".join(run) for of_word, run in runs if of_word]


def is_of_word(character: str, tokens: str) -> bool:
    category = unicodedata.category(character)
    if tokens == "whitespace":
        return category not in ("Cc", "Zs", "Zl", "Zp") and character not in "\u200b\ufeff"
    if tokens == "ascii":
        return character in "abcdefghijklmnopqrstuvwxyz0123456789"
    return character.isalnum() or category in ("Mn", "Mc", "Me", "Pc") or character in "\u200c\u200d"


def sentences(text: str) -> list[str]:
    """The sentences of a text, found by walking from mark to mark and line to line, without regular expressions."""
    ends, at = _quotation_ends(text), 0
    while at < len(text):
        end = _end_of_sentence(text, at)
        if end > at:
            ends.add(end)
            at = end
        else:
            at = max(at + 1, _skip(text, at, _STOPS + _CJK_STOPS))
    bounds = [0, *sorted(ends), len(text)]
    parts = [text[begin:end] for begin, end in pairwise(bounds)]
    return [part for part in parts if part.strip()]


def _quotation_ends(text: str) -> set[int]:
    """The places where a line begins whose level of quotation differs from the line above."""
    ends, begin, before = set(), 0, None
    for line in text.split("\n"):
        level = _quote_marks(line).count(">")
        if before not in (None, level):
            ends.add(begin)
        begin, before = begin + len(line) + 1, level
    return ends


def _quote_marks(line: str) -> str:
    """The spaces and quote marks at the beginning of a line, up to the last quote mark."""
    text = line.lstrip()
    while text.startswith(">"):
        text = text[1:].lstrip()
    return line.removesuffix(text).rstrip()


def _end_of_sentence(text: str, at: int) -> int:
    """The end of the sentence whose end marks begin at `at`; `at` itself if no sentence ends there."""
    marks_end = _skip(text, at, _STOPS + _CJK_STOPS)

    # Colons and line ends end a sentence in some cases.
    if text[at] in ":：":
        closed = _skip(text, at + 1, _CLOSERS)
        spaced = _skip_spaces(text, closed)
        return spaced if "\n" in text[closed:spaced] else at
    if text[at] == "\n":
        line = text[at + 1 :].partition("\n")[0]
        is_last = at + 1 + len(line) == len(text)
        if line.strip().startswith(">") and not line.replace(">", "").strip() and not is_last:
            return at + 1 + len(line)
    if marks_end == at:
        spaces = text[at : _skip_spaces(text, at)]
        return at + spaces.rfind("\n") + 1 if text[at] == "\n" and spaces.count("\n") > 1 else at

    closed = _skip(text, marks_end, _CLOSERS)
    spaced = _skip_spaces(text, closed)
    if spaced > closed or any(mark in _CJK_STOPS for mark in text[at:marks_end]):
        return spaced
    before_cjk = text[marks_end - 1] in "!?" and closed < len(text) and is_cjk(text[closed])
    return closed if before_cjk else at


def is_cjk(character: str) -> bool:
    ranges = ((0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
    return any(first <= ord(character) <= last for first, last in ranges)


def _skip(text: str, at: int, characters: str) -> int:
    while at < len(text) and text[at] in characters:
        at += 1
    return at


def _skip_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def digit_runs(text: str, rules: Rules) -> Counter[str]:
    """The runs of ASCII digits of the normalised text, before words are dropped."""
    folded = fold(text, rules)
    if rules.scheme == "char" and rules.whitespace == "none":
        return Counter(re.findall("[0-9]+", folded))
    tokens = "whitespace" if rules.scheme == "char" else rules.tokens
    return Counter(re.findall("[0-9]+", " ".join(words(folded, tokens))))


def hash_of(shingle: str, base: str) -> int:
    data = shingle.encode()
    if base == "crc32":
        return zlib.crc32(data)
    return poly64(data) if base == "poly64" else djb2a(data, signed=base == "djb2a-signed")


def jvm_char_ids(text: str, k: int) -> list[int]:
    """djb2a of runs of k UTF-16 units. Each unit is cast to a byte in -128..127, as `shingle.map(_.toByte)` does."""
    units = list(memoryview(text.encode("utf-16-le")).cast("H"))
    runs = [units[at : at + k] for at in range(max(1, len(units) - k + 1))] if units else []
    return [djb2a(bytes(unit & 0xFF for unit in run), signed=True) for run in runs]


def poly64(data: bytes) -> int:
    """fmix64 of the sum of byte j times BASE^j, modulo 2^64, by Horner's rule."""
    value = 0
    for byte in reversed(data):
        value = (value * 0x9E3779B97F4A7C15 + byte) & MASK
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ (value >> 33)) * factor & MASK
    return value ^ (value >> 33)


def djb2a(data: bytes, *, signed: bool = False) -> int:
    """h = (h * 33) ^ byte in 32 bits, starting with 5381. Bytes are in 0..255 or, if signed, in -128..127."""
    value = 5381
    for byte in data:
        value = ((value * 33) ^ (byte - 256 if signed and byte > 127 else byte)) & 0xFFFFFFFF
    return value
