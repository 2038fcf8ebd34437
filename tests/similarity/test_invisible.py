"""Invisible characters: which are dropped, what they leave, and the corner cases of NFKC around them."""

import re
import sys
import unicodedata
from functools import cache, partial

import pytest
from hypothesis import given

from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Normalise, Recipe, override
from nearsim_db.similarity.text import normalise
from nearsim_db.similarity.text.normalise import make_fold
from tests.builders.cpu_time import cpu_seconds
from tests.builders.plain_text import any_text, is_default_ignorable, is_unspaced, without_invisible
from tests.builders.selection import every_backend, examples

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
before_kernels = make_fold(Normalise())

STREET = "Die Straßenbahnhaltestelle am Hauptbahnhof wird wegen Bauarbeiten bis Donnerstag verlegt"
HYPHENATED = (
    STREET.replace("bahn", "\xadbahn\xad").replace("halte", "hal\xadte").replace("arbeit", "\xadarbei\xadt")
)


@cache
def ignorable() -> list[str]:
    """All characters that are default-ignorable."""
    return [character for character in CHARACTERS if is_default_ignorable(character)]


@cache
def visible() -> list[str]:
    """All other characters that are assigned."""
    assigned = (one for one in CHARACTERS if unicodedata.category(one) not in ("Cn", "Co"))
    return sorted(set(assigned) - set(ignorable()))


def features(
    texts: list[str], *settings: str, preset: str = "default", backend: str | None = None
) -> list[list[int]]:
    encoder = Encoder(resolve(override(presets.load(preset), settings)), backend)
    found = encoder.features(texts)
    return [found.of(row).tolist() for row in range(len(texts))]


def fold(text: str) -> str:
    """The text after all steps but the one for spaces; the kernels fold ASCII."""
    return re.sub("[A-Z]+", lambda found: found[0].lower(), before_kernels(text))


@pytest.mark.slow("each code point")
def test_the_table_is_unicodes_default_ignorable_code_point() -> None:
    listed = {chr(code) for first, last in normalise.RANGES for code in range(first, last + 1)}
    assert listed == set(ignorable())
    assert len(listed) == 4_174


def test_the_scripts_without_spaces_are_those_of_line_breaking_class_sa() -> None:
    listed = {chr(code) for first, last in normalise.UNSPACED for code in range(first, last + 1)}
    named = {character for character in CHARACTERS if is_unspaced(character)}
    assert named - listed == set()
    assert {character for character in listed - named if unicodedata.name(character, "")} == set()


@pytest.mark.slow("every character")
@every_backend
def test_invisible_characters_do_not_split_words(backend: str) -> None:
    """Each alone between letters, and around a word, a space and a mark; in several scripts."""
    plain = ["one two three", "نص عربي قصير", "가나다 라마바 사", "ｅ\u0301té là"]
    inserted = [
        text[:1] + one + text[1:3] + one + text[3:] + one
        for one in ignorable()[:78] + ignorable()[78::100]
        for text in plain
    ]
    expected = [one for _ in range(len(inserted) // len(plain)) for one in features(plain, backend=backend)]
    assert features(inserted, backend=backend) == expected


def test_entities_of_web_pages_are_dropped_like_the_characters() -> None:
    entities = {
        "\xad": "&shy;",
        "\u200b": "&ZeroWidthSpace;",
        "\u2060": "&NoBreak;",
        "\u200d": "&#x200d;",
        "\ufeff": "&#65279;",
    }
    plain = features([STREET], preset="web-pages")
    for entity in entities.values():
        page = f"<p>{HYPHENATED.replace(chr(0xAD), entity)}</p>"
        assert features([page], preset="web-pages") == plain
    assert features([HYPHENATED.replace("\xad", "&shy;")]) != features([STREET]), (
        "entities are text without html"
    )


def test_zero_width_space_separates_words_of_scripts_without_spaces() -> None:
    for words in (
        ["ภาษา", "ไทย", "ง่าย"],
        ["ພາສາ", "ລາວ", "ດີ"],
        ["ភាសា", "ខ្មែរ", "ល្អ"],
        ["မြန်မာ", "ဘာသာ", "စကား"],
    ):
        assert features(["\u200b".join(words)]) == features([" ".join(words)])
        assert features(["\u2060\u200b\xad".join(words)]) == features([" ".join(words)])
        assert features(["".join(words)]) != features([" ".join(words)])
        assert features([f"{words[0]}\u200bweb"]) == features([f"{words[0]} web"])
    assert features(["東京\u200b都庁"]) == features(["東京都庁"])
    assert features(["one\u200btwo"]) == features(["onetwo"])


def test_kept_invisible_characters_split_words() -> None:
    kept = "normalise.invisible=keep"
    assert features(["one\u200btwo three\xadfour"], kept) == features(["one two three four"], kept)
    assert features(["one\u200dtwo"], kept) != features(["onetwo"], kept)
    assert features([HYPHENATED], kept) == features([HYPHENATED.replace("\xad", " ")], kept)


@examples(300)
@given(text=any_text)
def test_dropping_equals_a_plain_python_walk(text: str) -> None:
    dropped = normalise.drop(text)
    assert dropped == without_invisible(text)
    assert normalise.drop(dropped) == dropped


def test_a_megabyte_of_invisible_characters_takes_less_than_a_second() -> None:
    for piece in ("\u200b\u2060", "a\u200b", "ก\u200b", "\U000e0100"):
        text = piece * (1_000_000 // len(piece.encode()))
        assert cpu_seconds(partial(normalise.drop, text)) < 1


def test_no_visible_character_folds_to_an_invisible_one() -> None:
    """So one pass before the normal form is enough; Hangul fillers of every width go with it."""
    for character in visible():
        folded = fold(character)
        assert folded and not any(map(is_default_ignorable, folded)), hex(ord(character))
    assert [fold(filler) for filler in "\u115f\u1160\u3164\uffa0"] == [""] * 4


def test_every_character_folds_like_its_normal_forms() -> None:
    """Of all of Unicode: presentation forms of Arabic, half-width jamo and kana, ligatures, marks, singletons."""
    for character in visible():
        text = f"x{character}y"
        folded = fold(text)
        assert fold(folded) == folded, hex(ord(character))
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            if (normal := unicodedata.normalize(form, text)) != text:
                assert fold(normal) == folded, (form, hex(ord(character)))


def test_combining_marks_stay_in_their_word_in_any_order() -> None:
    marks = [one for one in visible() if unicodedata.combining(one)]
    texts = [f"one tw{mark}o three" for mark in marks]
    encoder = Encoder(resolve(override(Recipe(), ["shingle.scheme=bag"])))
    counts = encoder.encode(texts).counts
    assert [texts[row] for row in range(len(texts)) if counts[row] != 3] == []
    swapped = features(["o\u0323\u0302ne", "o\u0302\u0323ne", "ộne", "o\u034f\u0302\u0323ne"])
    assert swapped[0] == swapped[1] == swapped[2] == swapped[3]
