"""Look-alikes of other scripts, and words cut by dots or dashes."""

import unicodedata

import pytest

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Normalise, Recipe, override
from nearsim_db.similarity.text import Shingler
from nearsim_db.similarity.text.look_alikes import LOOK_ALIKES
from nearsim_db.similarity.text.normalise import make_fold
from nearsim_db.similarity.text.tokens import Tokeniser
from tests.builders.cpu_time import cpu_seconds

FOLDING = override(Recipe(), ["normalise.confusables=fold"])


def folded(text: str) -> str:
    return Shingler(FOLDING, "numpy").canonical([text]).text(0)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("w\u0456n \u0430 fr\u0435\u0435 ph\u043en\u0435", "win a free phone"),  # Cyrillic
        ("\u03bffficial \u03a1rize", "official prize"),  # Greek
        ("\uff57\uff49\uff4e \U0001d430\U0001d422\U0001d427", "win win"),  # fullwidth, mathematical
        ("\u0412UY \u041d\u041e\u041c\u0415", "buy home"),  # capitals
        ("f.r.e.e f-r-e-e F*R*E*E f_r_e_e", "free free free free"),
        ("F.R.\u0415.\u0415 now", "free now"),
        ("fr\u200b\u0435e f\xad.r.e.e", "free free"),
    ],
)
def test_altered_spellings_are_folded(text: str, plain: str) -> None:
    assert folded(text) == plain


@pytest.mark.parametrize(
    "text", ["e.g. this", "a.b-c", "foo.a.b.c", "1.2.3.4", "mother-in-law", "a..b..c", "x.y.zebra"]
)
def test_other_words_with_dots_and_dashes_stay(text: str) -> None:
    assert make_fold(FOLDING.normalise)(text) == text


def test_a_word_of_another_script_is_the_same_word_at_the_begin_of_a_sentence() -> None:
    assert folded("На дом") == folded("на ДОМ")


def test_texts_are_unchanged_by_default() -> None:
    text = "фр\u0435\u0435 f.r.e.e"
    assert make_fold(Normalise())(text) == text


def test_look_alikes_are_letters_that_nfkc_keeps() -> None:
    characters = "".join(LOOK_ALIKES.values())
    assert len(set(characters)) == len(characters) > 200
    assert all(unicodedata.normalize("NFKC", one) == one and not one.isascii() for one in characters)


def test_folding_requires_nfkc() -> None:
    with pytest.raises(RecipeError, match=r"normalise.unicode is nfc.*set it to nfkc"):
        override(FOLDING, ["normalise.unicode=nfc"])


def test_the_place_of_a_folded_word_is_all_of_its_characters() -> None:
    text = "a f.r.e.e w\u0456n, \u0412UY"
    tokens = Tokeniser(FOLDING, "numpy").tokens(text)
    shown = [text[begin:end] for begin, end in zip(tokens.begins, tokens.ends, strict=True)]
    assert shown == ["a", "f.r.e.e", "w\u0456n", "\u0412UY"]


@pytest.mark.parametrize("piece", ["\u0430", "\u0410", "a.", "\u0410.", "a", "._", "\u0430a", "a.b.c "])
def test_a_text_of_100_kilobytes_is_folded_in_less_than_a_second(piece: str) -> None:
    text = piece * (100_000 // len(piece)) + "zz\u0430"
    assert cpu_seconds(lambda: make_fold(FOLDING.normalise)(text)) < 1
