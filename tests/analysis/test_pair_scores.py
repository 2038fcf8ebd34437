"""nearsim_db.score: two texts, or two sequences of texts, under any recipe that compares texts."""

import pytest

import nearsim_db
from nearsim_db import InputError, PairScore, presets

LEFT = "the harbour lamp was lit at dusk by two people of the town"
RIGHT = "the harbour lamp was lit at dusk by three people of the town"


def test_two_texts_have_one_score() -> None:
    found = nearsim_db.score("a b c d", "a b c d e")
    assert found == PairScore(2 / 3, found.estimate, 1.0, 2 / 3, 2, 3, found.shared_bands, True, False)


def test_sequences_are_compared_pair_by_pair() -> None:
    found = nearsim_db.score(iter([LEFT, LEFT]), [LEFT, RIGHT])
    assert [one.similarity for one in found] == [1.0, 8 / 14]


def test_a_text_without_features_has_no_similarity() -> None:
    (found,) = nearsim_db.score([LEFT], [""])
    assert (found.similarity, found.estimate, found.intersection, found.pair) == (None, None, None, False)


@pytest.mark.parametrize("name", sorted(set(presets.names()) - {"embeddings"}))
def test_equal_texts_are_a_pair_under_every_preset(name: str) -> None:
    text = " ".join(f"word{number} of the harbour" for number in range(40))
    found = nearsim_db.score(text, text, recipe=presets.load(name))
    assert (found.similarity, found.left_in_right, found.right_in_left, found.pair) == (1.0, 1.0, 1.0, True)


def test_weights_by_frequency_are_those_of_the_texts_given() -> None:
    recipe = presets.load("record-linkage")
    rare, common = nearsim_db.score(["lamp one", "lamp two"], ["lamp one b", "two b c"], recipe=recipe)
    assert rare.similarity is not None and common.similarity is not None
    assert rare.similarity > common.similarity


def test_characters_that_are_not_utf8_are_replaced() -> None:
    assert nearsim_db.score("a \udcff b", "a \ufffd b").similarity == 1.0


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ("a", ["a"], "a text and a sequence"),
        (["a"], ["a", "b"], "left has 1 texts and right 2"),
        (["a"], [None], "None is not a text"),
    ],
)
def test_anything_else_is_refused(left: object, right: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        nearsim_db.score(left, right)  # type: ignore[call-overload]


def test_a_recipe_of_vectors_is_refused() -> None:
    with pytest.raises(InputError, match="compares vectors, not texts"):
        nearsim_db.score("a", "b", recipe=presets.load("embeddings"))
