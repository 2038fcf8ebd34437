"""Masks: what each replaces, that places and numbers of the original stay, and the time they take."""

import pytest

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.text.masks import Masks
from nearsim_db.similarity.text.tokens import Tokeniser
from tests.builders.cpu_time import cpu_seconds

ALL = ("numbers", "dates", "hex", "uuids", "urls", "emails", "paths")
EXAMPLES = [
    ("numbers", "12 of 1,234.50, node7 and v1.2.3 on 10.0.0.1:80", "0 of 0, node0 and v0 on 0"),
    ("numbers", "٣٤ euros", "0 euros"),
    ("dates", "2026-03-01 or 2026/3/1, 01.03.2026 and 30/Sep/21", "0date or 0date, 0date and 0date/21"),
    ("dates", "2026-03-01T10:10:20.5+01:00 done, 20260301T101020Z too", "0date done, 0date too"),
    ("dates", "Mon, 02 Mar 2026 10:10:20 GMT; March 1st, 2026 at 5:20 pm; 12:30", "0date; 0date; 0date"),
    ("dates", "host 10.1.10.25, in 2026", "host 10.1.10.25, in 2026"),
    ("hex", "at 0x7FFE of 3f2a9bc1 from 00:1a:2b:3c:4d:5e", "at 0hex of 0hex from 0hex"),
    ("hex", "a facade of 1234567", "a facade of 1234567"),
    ("uuids", "id 123E4567-e89b-12d3-a456-426614174000.", "id 0uuid."),
    ("urls", "(see https://a.example/b?c=1, www.b.example/).", "(see 0url, 0url)."),
    ("emails", "to jo.e+x@mail.example.com.", "to 0email."),
    ("paths", 'in "/usr/lib/x.py", ~/a, ./b and C:\\Users\\me\\a.txt', 'in "0path", 0path, 0path and 0path'),
    ("paths", "km/h and either/or/both", "km/h and either/or/both"),
]


@pytest.mark.parametrize(("mask", "text", "masked"), EXAMPLES)
def test_a_mask_replaces_each_part_by_one_token(mask: str, text: str, masked: str) -> None:
    assert Masks([mask])(text) == masked


def test_a_part_of_several_kinds_is_one_token() -> None:
    text = "GET https://10.0.0.1/2026-03-01/x by 1@2.example in /tmp/12/13 at 2026-03-01"
    assert Masks(ALL)(text) == "GET 0url by 0email in 0path at 0date"


@pytest.mark.parametrize("tokens", ["whitespace", "unicode", "ascii"])
def test_lines_of_one_template_have_equal_features(tokens: str) -> None:
    lines = [f"2026-03-0{day}T10:10:2{day} worker-{day} job 881{day}0 took {day}40 ms" for day in range(1, 5)]
    recipe = override(presets.load("logs"), [f"shingle.tokens={tokens}"])
    features = Encoder(resolve(recipe)).features(lines)
    assert len({tuple(features.of(row).tolist()) for row in range(4)}) == 1


def test_numbers_of_the_original_count() -> None:
    encoder = Encoder(resolve(override(Recipe(), ['normalise.mask=["numbers"]'])))
    features = encoder.features(["job 1 of 2", "job 2 of 1", "job 1 of 3"])
    assert features.of(0).tolist() == features.of(2).tolist()
    assert features.numbers[0] == features.numbers[1] != features.numbers[2]


def test_numbers_are_those_of_a_recipe_without_masks() -> None:
    texts = ["Invoice 12 of 2026-01-02. Due: 63.60", "none", "a. 1\n\n2. b"]
    for scheme in ("word", "char", "sentence"):
        plain = override(Recipe(), [f"shingle.scheme={scheme}"])
        masked = override(plain, ['normalise.mask=["numbers", "dates"]'])
        plain_numbers, masked_numbers = (
            Encoder(resolve(one)).features(texts).numbers.tolist() for one in (plain, masked)
        )
        assert plain_numbers == masked_numbers


def test_a_stop_word_is_not_masked() -> None:
    settings = ['normalise.mask=["numbers"]', 'shingle.stopwords=["12", "the"]', "shingle.scheme=bag"]
    features = Encoder(resolve(override(Recipe(), settings))).features(["the 12 apostles", "0 apostles"])
    assert features.of(0).tolist() == features.of(1).tolist()


def test_the_place_of_a_token_is_all_that_it_replaces() -> None:
    recipe = override(Recipe(), ['normalise.mask=["dates", "numbers"]'])
    text = "Über 12.5 Grad am 2026-03-01 10:10"
    tokens = Tokeniser(recipe, "numpy").tokens(text)
    shown = [text[begin:end] for begin, end in zip(tokens.begins, tokens.ends, strict=True)]
    assert shown == ["Über", "12.5", "Grad", "am", "2026-03-01 10:10"]


def test_the_order_of_masks_does_not_change_the_recipe() -> None:
    one, other = (
        override(Recipe(), [f"normalise.mask={names}"]) for names in ('["hex", "dates"]', '["dates", "hex"]')
    )
    assert one == other


def test_an_unknown_mask_is_refused_with_the_choices() -> None:
    with pytest.raises(RecipeError, match=r"normalise.mask is 'number'.*choose numbers or dates"):
        override(Recipe(), ['normalise.mask=["number"]'])


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1",
        "a.",
        "1.",
        "12:30:",
        "/a",
        "\\",
        "www.",
        "http://",
        ".",
        "a@",
        "a-",
        "0x",
        "ab",
        "mon ",
        "c:\\",
    ],
)
def test_a_text_of_100_kilobytes_is_masked_in_less_than_a_second(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert cpu_seconds(lambda: Masks(ALL)(text)) < 1
