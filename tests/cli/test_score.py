"""nearsim score: given pairs of texts, or of ids in a corpus, with and without labels."""

import csv
from pathlib import Path

import pytest

from tests.builders.command_line import CommandLine, write_jsonl

QUESTIONS = [
    ("how can you make physics easy to learn", "what can make physics easy to learn", 1),
    ("the step by step guide to invest in shares", "the step by step guide to invest in gold", 0),
    ("which fish survive in salt water", "how do I find my old comments", 0),
]
FIELDS = ("--left-field", "one", "--right-field", "other")


@pytest.fixture
def plain(tmp_path: Path) -> CommandLine:
    """`nearsim` where there is no database."""
    return CommandLine(
        {"NEARSIM_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing", "NEARSIM_HOME": str(tmp_path)}
    )


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A CSV of pairs of questions, with their labels in the column same."""
    path = tmp_path / "questions.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("one", "other", "same"), *QUESTIONS])
    return path


def test_each_pair_has_its_figures(plain: CommandLine, questions: Path) -> None:
    rows = plain.succeed("score", questions, *FIELDS, "--format", "jsonl").rows()
    assert [(row["row"], row["left"], row["right"]) for row in rows] == [
        (number, one, other) for number, (one, other, _) in enumerate(QUESTIONS, 1)
    ]
    keys = ("similarity", "intersection", "union", "left_in_right", "right_in_left", "candidate", "pair")
    assert [rows[1][key] for key in keys] == [6 / 8, 6, 8, 6 / 7, 6 / 7, True, True]


def test_a_preset_decides_what_is_compared(plain: CommandLine, questions: Path) -> None:
    rows = plain.succeed("score", questions, *FIELDS, "--preset", "newshound", "--format", "jsonl").rows()
    assert rows[0]["similarity"] == 1.0


def test_labels_give_precision_and_recall_by_threshold(plain: CommandLine, questions: Path) -> None:
    document = plain.succeed("score", questions, *FIELDS, "--label-field", "same", "--json").document()
    assert [row["label"] for row in document["pairs"]] == [True, False, False]
    labels = document["labels"]
    assert (labels["duplicates"], labels["distinct"], document["skipped"]) == (1, 2, 0)
    assert labels["best"] == {"threshold": 3 / 8, "precision": 0.5, "recall": 1.0, "f1": 2 / 3}
    assert labels["at"]["threshold"] == 0.7


def test_a_table_ends_with_the_labels(plain: CommandLine, questions: Path) -> None:
    shown = plain.succeed("score", questions, *FIELDS, "--label-field", "same").out
    assert "Labels: 1 duplicate and 2 distinct pairs" in shown
    assert ">            0.3750       0.500    1.000   0.667\n" in shown


def test_pairs_of_ids_take_their_texts_from_a_corpus(plain: CommandLine, tmp_path: Path) -> None:
    corpus = write_jsonl(
        tmp_path / "corpus.jsonl",
        [{"id": "a", "title": "one two", "text": "three four"}, {"id": "b", "text": "x"}],
    )
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("id_a,id_b\na,a\na,c\n")
    outcome = plain.succeed("score", pairs, "--corpus", corpus, "--format", "jsonl")
    assert [(row["left"], row["right"], row["similarity"]) for row in outcome.rows()] == [("a", "a", 1.0)]
    assert "1 row skipped (row 2: the corpus has no document 'c')" in outcome.err


def test_pairs_are_read_from_standard_input_too(plain: CommandLine) -> None:
    given = b'{"left": "one two three four", "right": "one two three five"}\n'
    (row,) = plain.succeed("score", "-", "--format", "jsonl", stdin=given).rows()
    assert (row["intersection"], row["union"]) == (1, 3)


def test_a_file_without_the_fields_is_refused_with_its_columns(plain: CommandLine, questions: Path) -> None:
    refused = plain.fail("score", questions)
    assert "none of the 3 rows has a pair (row 1: no 'left' (columns: one, other, same))" in refused
