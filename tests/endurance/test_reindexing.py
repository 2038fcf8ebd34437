"""Reindexing under load: the load, and the verdicts on what was measured."""

from collections.abc import Set
from itertools import islice

import pytest

from tests.endurance.reindexing.evaluation import wrong_answers
from tests.endurance.reindexing.scenario import Step
from tests.endurance.reindexing.searching import Search
from tests.endurance.reindexing.texts import make_crowd, make_families
from tests.endurance.reindexing.writing import draw_writes, final_documents

pytestmark = pytest.mark.slow("a benchmark")

STEPS = [
    Step("build", 0, 10),
    Step("promote", 10, 11),
    Step("rollback", 20, 21),
    Step("promote again", 30, 31),
]


def share(left: Set[object], right: Set[object]) -> float:
    return len(left & right) / len(left | right)


def test_recipes_find_different_halves_of_a_family() -> None:
    for family in make_families(3, seed=1):
        asked, reordered, shortened = (
            str(one.body).split() for one in (family.asked, family.reordered, family.shortened)
        )
        assert share({*asked}, {*reordered}) == 30 / 32
        assert share({*asked}, {*shortened}) == 24 / 36
        runs = [{*zip(words, words[1:], words[2:], strict=False)} for words in (asked, reordered, shortened)]
        assert share(runs[0], runs[1]) < 0.1
        assert share(runs[0], runs[2]) == 22 / 34


def test_results_are_explained_by_one_recipe() -> None:
    (family,) = make_families(1, seed=1)
    asked, reordered, shortened = (
        one.external_id for one in (family.asked, family.reordered, family.shortened)
    )
    assert family.explaining_recipe([asked, reordered]) == family.explaining_recipe([reordered]) == "before"
    assert family.explaining_recipe([shortened, asked]) == "after"
    for mixture in ([reordered, shortened], [asked], []):
        assert family.explaining_recipe(mixture) not in ("before", "after")


@pytest.mark.parametrize(
    ("began", "ended", "answer", "is_wrong"),
    [
        (1, 2, "before", False),
        (1, 2, "after", True),
        (9, 12, "before", False),
        (10.5, 10.6, "after", False),
        (12, 13, "before", True),
        (12, 13, "after", False),
        (19, 20.5, "before", False),
        (22, 23, "after", True),
        (40, 41, "after", False),
        (40, 41, "before", True),
        (1, 41, "asked-1 found nothing", True),
    ],
)
def test_results_are_of_a_generation_that_was_live(
    began: float, ended: float, answer: str, is_wrong: bool
) -> None:
    assert bool(wrong_answers(STEPS, [Search("check", began, ended, answer)])) is is_wrong


def test_writers_end_in_the_expected_state() -> None:
    crowd = make_crowd(40, seed=2)
    texts = {one.external_id: (one.title, one.body) for one in crowd}
    kinds = []
    for write in islice(draw_writes(crowd, "new", seed=3), 300):
        kinds.append(write.kind)
        assert (write.external_id in texts) == (write.kind != "insert")
        if write.kind == "delete":
            del texts[write.external_id]
        else:
            texts[write.external_id] = write.text
    assert {*kinds} == {"insert", "update", "delete"}
    assert final_documents(crowd, "new", 3, 300) == texts
