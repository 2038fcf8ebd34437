"""Winnowing from texts to pairs, lookups and edits, against brute force over sets of words in plain Python."""

import random
from collections.abc import Mapping
from itertools import combinations, product
from typing import LiteralString, cast

import pytest
from psycopg import sql
from psycopg.errors import InvalidParameterValue

from nearsim_db import Document, Index, dedupe
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import InputError
from nearsim_db.records import Direction
from nearsim_db.search.queries import passages_in
from nearsim_db.similarity.recipe import Recipe, from_mapping, override
from tests.builders.plain_runs import longest_run

K, PASSAGE, THRESHOLD = 5, 20, 0.5
VOCABULARY = [f"word{number}" for number in range(3_000)]

DAMAGE: Mapping[str, LiteralString] = {
    "band": "DELETE FROM {} WHERE doc_id % 7 = 0",
    "signature": "UPDATE {} SET sketch = substr(sketch, 9) WHERE doc_id % 5 = 0",
    "similar_pair": "DELETE FROM {} WHERE left_id % 4 = 0",
}

Truth = dict[tuple[str, str], tuple[int, int]]


def sentence(rng: random.Random, words: int) -> list[str]:
    return rng.choices(VOCABULARY, k=words)


@pytest.fixture(scope="module", name="texts")
def stories_in_stories() -> dict[str, str]:
    return make_texts()


def make_texts() -> dict[str, str]:
    """Stories, each alone, inside a longer one, cut short, quoted by a passage of 20 words, and twice."""
    rng = random.Random(5)
    found = {}
    for number in range(12):
        story = sentence(rng, 120)
        frame = sentence(rng, 900)
        at = rng.randrange(900)
        found[f"story{number}"] = " ".join(story)
        found[f"longer{number}"] = " ".join([*frame[:at], *story, *frame[at:]])
        found[f"cut{number}"] = " ".join(story[: rng.randrange(40, 100)])
        found[f"quoting{number}"] = " ".join(
            [*sentence(rng, 200), *story[30 : 30 + PASSAGE], *sentence(rng, 200)]
        )
        found[f"again{number}"] = " ".join(story)
        found[f"alone{number}"] = " ".join(sentence(rng, 150))
    return found | {"empty": "", "short": "two words", "repeated": "again " * 2_000}


def grams(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    if not words:
        return set()
    return {tuple(words[at : at + K]) for at in range(max(1, len(words) - K + 1))}


def true_pairs(
    texts: dict[str, str], threshold: float = THRESHOLD, passage_words: int | None = None
) -> Truth:
    """Intersection and smaller size of every pair that reaches the threshold, or has a run of so many words."""
    sets = {name: grams(text) for name, text in texts.items()}
    found = {}
    for one, other in combinations(sorted(sets), 2):
        shared, smaller = len(sets[one] & sets[other]), min(len(sets[one]), len(sets[other]))
        if smaller and (
            shared >= threshold * smaller
            or (
                passage_words
                and shared
                and longest_run(texts[one].split(), texts[other].split()) >= passage_words
            )
        ):
            found[one, other] = shared, smaller
    return found


def stored_pairs(index: Index) -> Truth:
    found = {}
    for one in index.pairs():
        assert one.intersection is not None
        assert one.verified
        left, right = sorted((one.left, one.right))
        found[left, right] = one.intersection, round(one.intersection / one.similarity)
    return found


def filled(index: Index, texts: dict[str, str], **match: int) -> Index:
    index.create_profile("held", from_mapping({"sketch": {"family": "winnow"}, "match": match}))
    index.add(Document(external_id=name, body=text) for name, text in texts.items())
    return index


@pytest.mark.usefixtures("either_tables")
def test_a_build_and_the_worker_find_what_is_inside_what(index: Index, texts: dict[str, str]) -> None:
    names = sorted(texts)
    early = {name: texts[name] for name in names[::2]}
    filled(index, early)
    assert stored_pairs(index) == true_pairs(early)
    index.add(Document(external_id=name, body=texts[name]) for name in names[1::2])
    assert stored_pairs(index) == true_pairs(texts)
    assert len(true_pairs(texts)) >= 12 * 6
    for name in ("story0", "longer3", "cut7", "quoting2", "short"):
        partners = {one for pair in true_pairs(texts) if name in pair for one in pair} - {name}
        assert {one.external_id for one in index.similar(name)} == partners
        assert {one.external_id for one in index.similar_to_text(texts[name])} == partners | {name}
    changed = texts | {"longer3": texts["alone3"], "alone1": texts["story1"], "cut4": ""}
    del changed["story7"]
    index.add(Document(external_id=name, body=changed[name]) for name in ("longer3", "alone1", "cut4"))
    index.delete(["story7"])
    assert stored_pairs(index) == true_pairs(changed)


@pytest.mark.slow("a repair and a reindexing")
@pytest.mark.usefixtures("either_tables")
def test_checks_repairs_reindexing_and_files_as_for_other_families(
    index: Index, texts: dict[str, str]
) -> None:
    filled(index, texts)
    assert verify_index(index.database, sample=None).is_sound
    leaves = index.serving().context.leaves
    with index.database.engine.begin() as connection:
        for table, command in DAMAGE.items():
            connection.execute(sql.SQL(command).format(leaves.table(table)))
    repaired = verify_index(index.database, sample=None, repair=True)
    assert {one.kind for one in repaired.found.faults} >= {"missing_bands", "wrong_sketch", "missing_pair"}
    assert repaired.is_repaired
    assert stored_pairs(index) == true_pairs(texts)
    explained = index.why("longer2", "story2")
    assert (explained.metric, explained.similarity, explained.is_pair) == ("containment", 1.0, True)
    assert explained.shared_bands == len(explained.buckets) > 5
    apart = index.why("alone1", "story2")
    assert [one.kind for one in apart.reasons] == ["below_threshold", "too_few_shared_bands"]
    rows = [{"id": name, "text": text} for name, text in sorted(texts.items())]
    kept = {rows[place]["id"] for place in dedupe(rows, recipe=index.profiles()[0].recipe).kept}
    assert kept == set(texts) - held(texts)
    assert {one.survivor for one in index.clusters()} == kept & {
        one for pair in true_pairs(texts) for one in pair
    }
    again = from_mapping(
        {"sketch": {"family": "winnow", "seed": 7}, "match": {"passage": 12, "threshold": 0.9}}
    )
    reindex = Reindex(index.database, "default", "held")
    reindex.start(again)
    reindex.promote()
    assert stored_pairs(index) == true_pairs(texts, 0.9)


@pytest.mark.usefixtures("either_tables")
@pytest.mark.parametrize("words", [PASSAGE, PASSAGE + 5])
def test_a_quoted_passage_makes_a_pair_that_ties_nothing(
    index: Index, texts: dict[str, str], words: int
) -> None:
    names = sorted(texts)
    early = {name: texts[name] for name in names[::2]}
    filled(index, early, passage_words=words)
    assert stored_pairs(index) == true_pairs(early, passage_words=words)
    index.add(Document(external_id=name, body=texts[name]) for name in names[1::2])
    expected = true_pairs(texts, passage_words=words)
    assert stored_pairs(index) == expected
    assert (len(expected) > len(true_pairs(texts)) + 12 * 3) == (words == PASSAGE)
    partners = {one for pair in expected if "quoting2" in pair for one in pair} - {"quoting2"}
    assert {one.external_id for one in index.similar("quoting2")} == partners
    with index.database.engine.begin() as connection:
        listed = connection.execute(
            "SELECT left_external_id, right_external_id, are_twins, longest_passage, shared_bands FROM nearsim.pairs"
        ).fetchall()
    assert {(min(row[:2]), max(row[:2])): row[3] for row in listed} == {
        (one, other): None
        if texts[one] == texts[other]
        else longest_run(texts[one].split(), texts[other].split())
        for one, other in expected
    }
    assert (
        [row[2] for row in listed] == [row[3] is None for row in listed] == [row[4] is None for row in listed]
    )
    twins = {index.why("story1", "again1").shared_bands}
    twins |= {one.shared_bands for one in index.similar("story1") if one.external_id == "again1"}
    twins |= {one.shared_bands for one in index.pairs() if {one.left, one.right} == {"story1", "again1"}}
    with index.database.engine.begin() as connection:
        question = "SELECT shared_bands FROM nearsim.similar_to('story1') WHERE external_id = 'again1'"
        twins |= {row[0] for row in connection.execute(question).fetchall()}
    assert len(twins) == 1 and twins < set(range(5, 30))
    [(_, checked)] = index.check_many([Document("new", None, texts["quoting2"])])
    assert {one.external_id for one in checked} == partners | {"quoting2"}
    for name, whole in (("near copy", True), ("quotation", False)):
        text = texts["quoting2"] if whole else " ".join(texts["quoting2"].split()[190:230])
        more = "" if whole else " ".join(sentence(random.Random(9), 400))
        summary = index.add([Document(name, None, f"{text} {more}")], "skip")
        assert bool(summary.duplicates) == whole
    assert {one.external_id for one in index.similar("quotation")} == partners | {"quoting2"}
    index.delete(["quotation"])
    rows = [{"id": name, "text": text} for name, text in sorted(texts.items())]
    result = dedupe(rows, recipe=index.profiles()[0].recipe)
    assert result.pairs == len(expected)
    kept = {rows[place]["id"] for place in result.kept}
    assert kept == set(texts) - held(texts)
    assert {one.survivor for one in index.clusters()} == kept & {
        one for pair in true_pairs(texts) for one in pair
    }
    with index.database.engine.begin() as connection:
        command = sql.SQL("UPDATE {} SET by_passage = NOT by_passage WHERE left_id % 3 = 0")
        connection.execute(command.format(index.serving().context.leaves.table("similar_pair")))
    repaired = verify_index(index.database, sample=None, repair=True)
    assert {one.kind for one in repaired.found.faults} == {"rescored_pair", "wrong_cluster"}
    assert repaired.is_repaired
    changed = texts | {"quoting3": texts["alone3"], "alone1": texts["quoting1"]}
    index.add(Document(external_id=name, body=changed[name]) for name in ("quoting3", "alone1"))
    assert stored_pairs(index) == true_pairs(changed, passage_words=words)


def held(texts: dict[str, str]) -> set[str]:
    """The texts that a longer one holds, or an equal one before them."""
    order = sorted(sorted(texts), key=lambda name: -len(texts[name]))
    pairs = true_pairs(texts)
    kept: list[str] = []
    for name in order:
        if not any((min(name, one), max(name, one)) in pairs for one in kept):
            kept.append(name)
    return {name for name in texts if name not in kept}


def shares(texts: dict[str, str], asked: str) -> dict[str, tuple[float, float]]:
    """Of the documents paired with one: the share of the one in each, and of each in the one."""
    own = grams(texts[asked])
    found = {}
    for pair, (both, _) in true_pairs(texts).items():
        if asked in pair:
            [other] = {*pair} - {asked}
            found[other] = both / len(own), both / len(grams(texts[other]))
    return found


COMMAND: LiteralString = "SELECT external_id, left_in_right, right_in_left FROM nearsim.{}(%s, %s)"


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("either_tables")
def test_what_a_document_holds_and_what_holds_it(index: Index, texts: dict[str, str]) -> None:
    filled(index, texts)
    names = ["story0", "longer3", "cut7", "short", "repeated", "alone5", "again2"]
    for name, least in product(names, (0.0, 0.9)):
        expected = shares(texts, name)
        wanted = least or THRESHOLD
        answers = {
            None: [one for one in expected if max(expected[one]) >= least],
            "contains": [one for one in expected if expected[one][1] >= wanted],
            "contained_in": [one for one in expected if expected[one][0] >= wanted],
        }
        for direction, others in answers.items():
            stored = index.similar(name, least, direction=cast(Direction | None, direction))
            looked = index.similar_to_text(texts[name], None, least, None, cast(Direction | None, direction))
            assert {one.external_id for one in stored} == set(others)
            assert {one.external_id for one in looked} == {*others, name}
            for one in stored:
                assert (one.left_in_right, one.right_in_left) == expected[one.external_id]
            held = {one.external_id: (one.left_in_right, one.right_in_left) for one in looked}
            assert {one: held[one] for one in others} == {one: expected[one] for one in others}
            ranks = [one.decisive(cast(Direction | None, direction)) for one in stored]
            assert ranks == sorted(ranks, reverse=True)
            if direction is not None:
                with index.database.engine.begin() as connection:
                    command = sql.SQL(COMMAND).format(sql.Identifier(direction))
                    rows = connection.execute(command, (name, least or None)).fetchall()
                assert {row[0]: row[1:] for row in rows} == {one: expected[one] for one in others}
                assert [row[0] for row in rows] == [one.external_id for one in stored]
    for pair in index.pairs():
        assert (pair.left_in_right, pair.right_in_left) == shares(texts, pair.left)[pair.right]
    with index.database.engine.begin() as connection:
        rows = connection.execute(
            "SELECT left_external_id, right_external_id, left_in_right, right_in_left FROM nearsim.pairs"
        ).fetchall()
    assert {row[:2]: row[2:] for row in rows} == {
        (one.left, one.right): (one.left_in_right, one.right_in_left) for one in index.pairs()
    }


def test_a_jaccard_index_has_directions(index: Index) -> None:
    words = [f"word{letter}" for letter in "abcdefghijklmnopqrst"]
    index.create_profile("default", override(Recipe(), ["shingle.k=1", "match.threshold=0.5"]))
    lengths = {"whole": 20, "part": 16, "half": 12, "copy": 16}
    index.add([Document(name, None, " ".join(words[:length])) for name, length in lengths.items()])

    expected: dict[Direction, dict[str, tuple[float, float]]] = {
        "contained_in": {"copy": (1.0, 1.0), "whole": (1.0, 16 / 20)},
        "contains": {"copy": (1.0, 1.0), "half": (12 / 16, 1.0)},
    }
    for direction, others in expected.items():
        asked = " ".join(words[:16])
        for matches in (
            index.similar("part", 0.9, direction=direction),
            [
                one
                for one in index.similar_to_text(asked, None, 0.9, None, direction)
                if one.external_id != "part"
            ],
        ):
            found = {one.external_id: (one.left_in_right, one.right_in_left) for one in matches}
            assert found == others
        with index.database.engine.begin() as connection:
            command = sql.SQL(COMMAND).format(sql.Identifier(direction))
            assert {row[0]: row[1:] for row in connection.execute(command, ("part", 0.9))} == others

    assert {one.left_in_right for one in index.similar("part")} == {None}


@pytest.mark.parametrize("rules", [["match.verify=estimate"], ["sketch.family=hyperplane", "sketch.k=128"]])
def test_a_direction_requires_counts_of_features(index: Index, rules: list[str]) -> None:
    index.create_profile("default", override(Recipe(), rules))
    index.add([Document("a", None, "one two three four"), Document("b", None, "one two three four")])
    for ask in (index.similar, index.similar_to_text):
        with pytest.raises(
            InputError, match=r"profile 'default' has the metric .*, which count no features in common"
        ):
            ask("a", direction="contains")
    with (
        index.database.engine.begin() as connection,
        pytest.raises(InvalidParameterValue, match="count no features"),
    ):
        connection.execute("SELECT nearsim.contains('a')")


def test_where_a_checked_document_occurs(index: Index, texts: dict[str, str]) -> None:
    filled(index, texts)
    item = Document("item", "Question", " ".join(texts["longer4"].split()[300:340]))
    [(_, found)] = index.check_many([item], direction="contained_in")
    assert [one.external_id for one in found] == ["longer4"]
    [passage] = passages_in(index, item, "longer4")
    assert (passage.left.first_word, passage.right.first_word, passage.equal) == (1, 300, 40)
