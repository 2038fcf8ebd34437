"""nearsim tune and nearsim evaluate, on files, collections and labels."""

import random
from pathlib import Path

import pytest

from nearsim_db.similarity.recipe import load
from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.two_shops import make_two_shops


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Eighty random texts, of which forty have a copy with one word changed."""
    generator = random.Random(2)
    texts = [[f"word{generator.randrange(400)}" for _ in range(60)] for _ in range(80)]
    records = [{"id": f"single-{at}", "text": " ".join(text)} for at, text in enumerate(texts)]
    for at, text in enumerate(texts[:40]):
        text[30] = "changed"
        records.append({"id": f"copy-{at}", "text": " ".join(text)})
    return write_jsonl(tmp_path / "corpus.jsonl", records)


@pytest.mark.slow("tunes a recipe")
def test_a_recipe_is_proposed_written_and_used(nearsim: CommandLine, corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "recipe.toml"
    reported = nearsim.succeed("tune", corpus, "--output", output).out
    assert f"--recipe {output}" in reported
    recipe = load(output)
    nearsim.succeed("ingest", corpus, "--quiet")
    made = nearsim.succeed("profile", "create", "tuned", "--recipe", output, "--json").document()
    assert made["threshold"] == recipe.match.threshold
    assert made["pairs"] == 40
    found = nearsim.succeed("tune", "--collection", "default", "--json", "--sample", 100).document()
    assert (found["documents"], found["sampled"]) == (120, 100)


def test_labels_and_settings(nearsim: CommandLine, corpus: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    rows = [f"single-{at},copy-{at},1" for at in range(20)] + [
        f"single-{at},single-{at + 1},0" for at in range(20)
    ]
    labels.write_text("\n".join(["id_a,id_b,label", *rows, "single-1,nobody,1", "x,y,perhaps"]))
    found = nearsim.succeed(
        "tune", corpus, "--labels", labels, "--set", "shingle.scheme=char", "--recall", 0.95, "--json"
    ).document()
    assert (found["labels"]["unknown_pairs"], found["labels"]["bad_lines"]) == (1, 1)
    assert found["labels"]["best"]["f1"] == 1.0
    assert {one["scheme"] for one in found["shingles"]} == {"char"}
    assert found["recipe"]["bands"]["recall"] == 0.95
    nearsim.succeed("ingest", corpus, "--quiet")
    reported = nearsim.succeed("tune", "-c", "default", "--labels", labels, "--set", "shingle.k=3").out
    assert "best F1" in reported
    options = ("--labels", labels, "--set", "shingle.k=3", "--precision", 0.9, "--threshold", 0.99)
    scores = nearsim.succeed("tune", "-c", "default", *options, "--json").document()["labels"]
    assert (scores["auc"], scores["accept_all"]["precision"], scores["separate"]) == (1.0, 0.5, True)
    assert scores["at"]["threshold"] == 0.99 and scores["best"]["precision"] >= 0.9
    assert "--precision" in nearsim.fail("tune", corpus, "--precision", 0.9, exit_code=2)


def test_listed_hash_functions_are_kept(nearsim: CommandLine, corpus: Path) -> None:
    coefficients = [[2 * number + 1, number] for number in range(120)]
    settings = ("sketch.family=minhash", "sketch.k=120", f"sketch.coefficients={coefficients}")
    options = [word for setting in settings for word in ("--set", setting)]
    found = nearsim.succeed("tune", corpus, *options, "--json").document()
    assert found["recipe"]["sketch"]["coefficients"] == coefficients


def test_labels_of_other_words_are_refused_with_the_accepted_ones(
    nearsim: CommandLine, corpus: Path, tmp_path: Path
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id_a,id_b,label\nsingle-1,copy-1,match\nsingle-1,single-2,nomatch\n")
    message = nearsim.fail("tune", corpus, "--labels", labels)
    assert "the label 'match' is neither 1/0, yes/no, true/false nor duplicate/distinct" in message


@pytest.mark.slow("tunes a recipe")
def test_other_findings_are_shown_without_a_proposal(
    nearsim: CommandLine, corpus: Path, tmp_path: Path
) -> None:
    output = tmp_path / "recipe.toml"
    found = nearsim.run("tune", corpus, "--threshold", 0.004, "--output", output)
    assert (found.exit_code, output.exists()) == (1, False)
    assert "k rule" in found.out and "Proposal" not in found.out
    reported = nearsim.run("tune", corpus, "--threshold", 0.004, "--json").document()
    assert (reported["proposal"], reported["recipe"], len(reported["histogram"]["bins"])) == (None, None, 20)
    assert reported["refusal"]


@pytest.mark.slow("tunes a recipe")
def test_passages_are_proposed_for_winnow(nearsim: CommandLine, corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "recipe.toml"
    options = ("--preset", "embedded-stories", "--output", output)
    assert f"--recipe {output}" in nearsim.succeed("tune", corpus, *options).out
    found = nearsim.succeed("tune", corpus, *options, "--json").document()
    proposed = load(output).match
    assert {one["passage"] for one in found["lengths"]} >= {10, 20, 40}
    assert (proposed.passage, proposed.passage_gap) == (8, 0) and "8 equal words" in output.read_text()
    assert found["recipe"]["match"]["passage"] == 8 and found["gaps"][0] == {"gap": 0, "covered": 1.0}


LABELS = """id_a,id_b,label
storm,storm-again,1
storm-twin,storm-again,1
storm,storm-twin,no
harvest,bridge,yes
harvest,storm,0
harvest,absent,1
storm,harvest,perhaps
"""


def test_pairs_and_clusters_are_scored(filled: CommandLine, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(LABELS)
    found = filled.succeed("evaluate", "--labels", labels, "--json").document()
    assert (found["duplicates"], found["distinct"], found["unknown"], found["bad_lines"]) == (3, 2, 1, 1)
    for scored in (found["pairs"], found["clusters"]):
        assert (scored["precision"], scored["recall"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found["accept_all"]["precision"] == pytest.approx(3 / 5)
    assert [(one["low"], one["pairs"]) for one in found["bands"]][-1][0] == 0.9
    assert sum(one["pairs"] for one in found["bands"]) == 3
    cluster = filled.succeed("clusters", "--format", "jsonl").rows()[0]["cluster"]
    given = [
        (one["cluster"], one["left"], one["right"], one["duplicate"], one["is_pair"], one["same_cluster"])
        for one in found["disagreements"]
    ]
    assert given == [
        (cluster, "storm", "storm-twin", False, True, True),
        (None, "harvest", "bridge", True, False, False),
    ]
    printed = filled.succeed("evaluate", "--labels", labels).out
    assert "distinct" in printed and "bridge" in printed
    assert "every pair" in printed and "harvest and absent are not both in the index" in printed


def test_verdicts_are_labels(filled: CommandLine) -> None:
    filled.succeed("verdict", "veto", "storm", "storm-again", "--why", "other days", "-q")
    filled.succeed("verdict", "pin", "storm", "storm-twin", "--why", "the same", "-q")
    found = filled.succeed("evaluate", "--verdicts", "--json").document()
    (one,) = found["disagreements"]
    assert (one["left"], one["right"], one["duplicate"], one["is_pair"], one["same_cluster"]) == (
        *("storm", "storm-again"),
        *(False, True, False),
    )
    assert "either --labels or --verdicts" in filled.fail("evaluate", exit_code=2)


def test_labels_of_an_id_that_two_files_have_are_refused(nearsim: CommandLine, tmp_path: Path) -> None:
    first = write_jsonl(tmp_path / "first.jsonl", [{"id": "1", "text": "a storm is near the island"}])
    second = write_jsonl(
        tmp_path / "second.jsonl", [{"id": "1", "text": "the bridge was closed"}, {"id": "2", "text": "x"}]
    )
    labels = tmp_path / "labels.csv"
    labels.write_text("id_a,id_b,label\n1,2,1\n")

    refused = nearsim.fail("tune", first, second, "--labels", labels)

    assert "a label names '1'" in refused and "second.jsonl, line 1" in refused


def test_labels_of_other_documents_are_refused(filled: CommandLine, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id_a,id_b,label\nx,y,1\n")
    assert "none of 1 labelled pairs" in filled.fail("evaluate", "--labels", labels)


@pytest.mark.slow("tunes recipes")
def test_questions_of_two_files_and_of_their_collection_have_the_same_answers(
    nearsim: CommandLine, tmp_path: Path
) -> None:
    shops = make_two_shops(200)
    files = []
    for shop in ("left", "right"):
        rows = [
            {"id": name, "text": text, "source": shop}
            for name, text in shops.texts.items()
            if name.startswith(shop)
        ]
        files.append(write_jsonl(tmp_path / f"{shop}.jsonl", rows))
    labels = tmp_path / "labels.csv"
    lines = [f"{left},{right},{int(same)}" for left, right, same in shops.labels(60)]
    labels.write_text("\n".join(["id_a,id_b,label", *lines]))

    of_files = nearsim.succeed("tune", *files, "--labels", labels, "--json").document()["questions"]
    assert [question["name"] for question in of_files if question["is_best"]] == ["nearest"]
    command = of_files[-1]["command"]
    assert command.startswith(f"nearsim ingest {files[1]} --collection records; nearsim nearest {files[0]} ")

    nearsim.succeed("ingest", *files, "--quiet", "-c", "shops")
    reported = nearsim.succeed("tune", "-c", "shops", "--labels", labels).out
    assert "better than any recipe: nearsim nearest --collection shops -k 1 --mutual" in reported
    options = ("--labels", labels, "--across", "source", "--json")
    of_collection = nearsim.succeed("tune", "-c", "shops", *options).document()["questions"]
    assert [question["pairs"] for question in of_collection] == [question["pairs"] for question in of_files]
    winnow = ("tune", *files, "--preset", "embedded-stories", "--labels", labels, "--across", "source")
    assert "does not apply to the family winnow" in nearsim.fail(*winnow, exit_code=2)
    assert "--across requires --labels" in nearsim.fail("tune", *files, "--across", "source", exit_code=2)
