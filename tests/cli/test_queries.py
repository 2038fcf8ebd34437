"""nearsim pairs, clusters and similar: the same results as tables and for machines, also of an empty index."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.builders.command_line import HARVEST, STORM, STORM_AGAIN, STORM_LATER, CommandLine, write_jsonl
from tests.builders.word_sets import counts

NEAR, ALL = counts(STORM, STORM_AGAIN)
PAIRS = {
    ("storm", "storm-again"): (NEAR, ALL),
    ("storm-again", "storm-twin"): (NEAR, ALL),
    ("storm", "storm-twin"): counts(STORM, STORM),
}


def test_pairs_in_every_format(filled: CommandLine, tmp_path: Path) -> None:
    rows = filled.succeed("pairs", "--format", "jsonl").rows()
    assert {(row["left"], row["right"]): (row["intersection"], row["union"]) for row in rows} == PAIRS
    assert all(row["similarity"] == row["intersection"] / row["union"] for row in rows)
    path = tmp_path / "pairs.csv"
    assert filled.succeed("pairs", "--output", path).out == ""
    assert path.read_text() == filled.succeed("pairs", "--format", "csv").out
    cells = csv.DictReader(path.read_text().splitlines())
    assert {
        (row["left"], row["right"]): (int(row["intersection"]), int(row["union"])) for row in cells
    } == PAIRS
    # The most similar first, and how many are left out, unless --quiet.
    limited = filled.succeed("pairs", "--limit", "1").out
    _, _, row, _, count = limited.splitlines()
    assert row.split()[:3] == ["storm", "storm-twin", "1.0000"] and count.startswith("pairs: 3, of which 2")
    assert limited == f"{filled.succeed('pairs', '--limit', '1', '-q').out}\n{count}\n"


def test_pairs_with_the_values_of_their_signatures(filled: CommandLine) -> None:
    rows = filled.succeed("pairs", "--signatures", "--format", "jsonl").rows()
    plain = filled.succeed("pairs", "--format", "jsonl").rows()
    parts = ("signature_similarity", "signature_intersection", "signature_union")
    assert [{name: value for name, value in row.items() if name not in parts} for row in rows] == plain
    for row in rows:
        equal, distinct = row["signature_intersection"], row["signature_union"]
        assert equal + distinct == 2 * 128
        assert row["estimate"] == pytest.approx(equal / 128)
        assert row["signature_similarity"] == pytest.approx(equal / distinct, abs=1e-6)
        why = filled.succeed("why", row["left"], row["right"], "--json").document()
        assert [why[name] for name in parts] == [row[name] for name in parts]
    assert "signature_union" in filled.succeed("pairs", "--signatures", "--format", "csv").out.splitlines()[0]


def test_signatures_without_positions_are_refused(filled: CommandLine) -> None:
    filled.succeed("profile", "create", "smallest", "--set", "sketch.family=bottom_k", "--quiet")
    assert "family bottom_k" in filled.fail("pairs", "--profile", "smallest", "--signatures")
    why = filled.succeed("why", "storm", "storm-again", "--profile", "smallest", "--json").document()
    assert (why["signature_intersection"], why["signature_union"]) == (None, None)


def test_table_in_a_file_is_complete_unless_limited(nearsim: CommandLine, tmp_path: Path) -> None:
    texts = [{"id": f"n{n}", "text": STORM} for n in range(12)]
    nearsim.succeed("ingest", write_jsonl(tmp_path / "twins.jsonl", texts), "-q")
    every, path = 12 * 11 // 2, tmp_path / "pairs.txt"
    for limit, rows in ([], every), (["--limit", 5], 5):
        nearsim.succeed("pairs", "--format", "table", "-o", path, *limit)
        assert len([line for line in path.read_text().splitlines() if line.startswith("n")]) == rows
    assert nearsim.succeed("pairs", "-o", "-").out == nearsim.succeed("pairs").out
    assert len(nearsim.succeed("pairs", "-o", "-", "--format", "jsonl").rows()) == every


@pytest.mark.parametrize(
    "arguments", [("document", "get"), ("similar",), ("document", "delete", "--yes"), ("pairs", "-c")]
)
def test_names_that_are_not_utf8_are_refused(filled: CommandLine, arguments: tuple[str, ...]) -> None:
    assert "not UTF-8" in filled.fail(*arguments, os.fsdecode(b"caf\xe9"))


def test_similar_names_the_reason_for_an_unindexed_document(filled: CommandLine, database_url: str) -> None:
    new = (
        "INSERT INTO nearsim.document (collection_id, external_id, body)"
        " SELECT collection_id, %s, %s FROM nearsim.collection"
    )
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(new, ("new", STORM))
        assert "document 'new' waits to be indexed by profile 'default'" in filled.fail("similar", "new")
        other.execute("UPDATE nearsim.document SET body = body || ' anew' WHERE external_id = 'storm'")
        older = filled.succeed("similar", "storm", "--format", "jsonl")
        assert {row["id"] for row in older.rows()} == {"storm-again", "storm-twin"}
        assert older.err.startswith("warning: a newer text of document 'storm' waits to be indexed")
        other.execute(
            "INSERT INTO nearsim.work (generation_id, doc_id, stage, attempts, set_aside_at)"
            " SELECT 1, doc_id, 'sign', 5, now() FROM nearsim.document WHERE external_id = 'new'"
        )
        other.execute("TRUNCATE nearsim.change")
        assert "was set aside in stage sign" in filled.fail("similar", "new")
        assert "is not indexed" in filled.succeed("similar", "storm").err
        filled.succeed("work", "discard", "new", "--yes")
        assert "document 'new' is not in the index of profile 'default'" in filled.fail("similar", "new")
        other.execute(new, ("empty", ""))
        filled.succeed("build", "-q")
        empty = filled.succeed("similar", "empty")
        assert empty.out == "no similar documents\n" and "'empty' has no features" in empty.err


def test_similar_to_a_document_a_text_and_a_file(filled: CommandLine, tmp_path: Path) -> None:
    rows = filled.succeed("similar", "storm-again", "--format", "jsonl").rows()
    assert {row["id"]: row["intersection"] for row in rows} == {"storm": NEAR, "storm-twin": NEAR}
    expected = {
        "storm": counts(STORM_LATER, STORM),
        "storm-twin": counts(STORM_LATER, STORM),
        "storm-again": counts(STORM_LATER, STORM_AGAIN),
    }
    path = tmp_path / "later.txt"
    path.write_text(STORM_LATER)
    for question in (["--text", STORM_LATER], ["--file", path]):
        rows = filled.succeed("similar", *question, "--format", "jsonl").rows()
        assert {row["id"]: (row["intersection"], row["union"]) for row in rows} == expected
    assert (
        filled.succeed("similar", "--text", STORM_LATER, "--title", HARVEST).out == "no similar documents\n"
    )


def test_similar_says_whether_there_are_more(filled: CommandLine) -> None:
    for question in (["storm"], ["--text", STORM]):
        limited = filled.succeed("similar", *question, "--limit", "1", "--format", "jsonl")
        assert len(limited.rows()) == 1 and "raise --limit" in limited.err
        assert filled.succeed("similar", *question, "--limit", "1", "--format", "csv", "-q").err == ""
        assert "raise --limit" in filled.succeed("similar", *question, "--limit", "1").out
        for limit in ("3", "9"):
            whole = filled.succeed("similar", *question, "--limit", limit, "--format", "jsonl")
            assert whole.err == "" and len(whole.rows()) == 2 + (question[0] == "--text")


def test_failure_leaves_the_output_file_unchanged(filled: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("of an earlier run\n")
    filled.fail("pairs", "--profile", "nothing", "--output", path)
    assert path.read_text() == "of an earlier run\n"
    assert list(tmp_path.glob(".*")) == []
    assert "cannot write" in filled.fail("pairs", "--output", tmp_path / "no-folder" / "pairs.jsonl")


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("format", ["jsonl", "csv", "table"])
def test_closed_pipe_is_not_an_error(nearsim: CommandLine, tmp_path: Path, format: str) -> None:
    texts = [{"id": f"{n:0900d}", "text": STORM} for n in range(60)]
    nearsim.succeed("ingest", write_jsonl(tmp_path / "twins.jsonl", texts), "-q")
    with nearsim.started("pairs", "--format", format, "--limit", 2000) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(4)
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 0)


@pytest.mark.slow("starts a process")
def test_full_disk_is_reported(filled: CommandLine) -> None:
    program = [sys.executable, "-c", "from nearsim_db.cli import main; main()", "pairs", "--format", "jsonl"]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            program,
            env={**os.environ, **filled.environment},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == b"error: the output cannot be written: No space left on device\n"


@pytest.fixture
def titled(nearsim: CommandLine, tmp_path: Path) -> CommandLine:
    """A cluster of three with titles, of which the last is paired with the second alone, and one of two without."""
    words = [f"word{number}" for number in range(60)]
    texts = {"first": words, "second": [*words, *(f"more{n}" for n in range(12))], "third": [*words[12:]]}
    texts["third"] += [f"more{n}" for n in range(14)]
    rows = [
        {"id": name, "title": f"Title of {name}", "text": " ".join(text), "source": "wire"}
        for name, text in texts.items()
    ]
    twins = [{"id": name, "text": "no word of any other text stands in this one at all"} for name in "xy"]
    recipe = ["--set", "shingle.scheme=bag", "--set", 'fields=["body"]', "--set", "bands.recall=0.9999"]
    nearsim.succeed("profile", "create", "default", *recipe, "-q")
    nearsim.succeed("ingest", write_jsonl(tmp_path / "titled.jsonl", [*rows, *twins]), "-q")
    return nearsim


def test_titles_of_pairs_and_clusters_and_one_cluster(titled: CommandLine) -> None:
    pairs = titled.succeed("pairs", "--format", "jsonl").rows()
    titles = {(row["left"], row["right"]): (row["left_title"], row["right_title"]) for row in pairs}
    second = "Title of second"
    assert titles == {
        ("first", "second"): ("Title of first", second),
        ("second", "third"): (second, "Title of third"),
        ("x", "y"): (None, None),
    }
    largest, smallest = titled.succeed("clusters", "--format", "jsonl").rows()
    assert (largest["survivor"], largest["title"]) == ("first", "Title of first")
    assert (smallest["members"], smallest["title"]) == (["x", "y"], None)
    assert [
        row["survivor"] for row in titled.succeed("clusters", "--min-size", 3, "--format", "jsonl").rows()
    ] == ["first"]
    members = titled.succeed("clusters", "--show", "third", "--format", "jsonl").rows()
    assert [(row["id"], row["title"], row["similarity"]) for row in members] == [
        ("first", "Title of first", None),
        ("second", second, 60 / 72),
        ("third", "Title of third", None),
    ]
    assert [row["is_survivor"] for row in members] == [True, False, False]
    by_number = titled.succeed("clusters", "--show", largest["cluster"], "--format", "jsonl").rows()
    assert by_number == members and {row["cluster"] for row in members} == {largest["cluster"]}
    assert titled.succeed("clusters", "--show", "y", "--json").document()["members"][1]["similarity"] == 1


# Each with what it prints.
QUERIES = {
    "pairs --format jsonl --min-similarity 0.1": "",
    "clusters --json": "[]\n",
    "similar --text words --json": "[]\n",
    "check --text words --format csv --exit-code": None,
    "export --format jsonl": "",
    "events --format jsonl": "",
    "verdict list --format jsonl": "",
    "stats --json": None,
    "doctor": None,
    "verify-index": None,
    "worker --once": None,
}


PROFILED = [
    *("pairs", "clusters", "clusters --show x", "similar x", "similar --text words", "check --text words"),
    *(
        "export --format jsonl",
        "stats",
        "verify-index",
        "events",
        "report --json",
        "why a b",
        "reindex status",
    ),
]


@pytest.mark.slow("every query")
def test_queries_of_an_empty_index_answer_with_nothing(nearsim: CommandLine, tmp_path: Path) -> None:
    nearsim.succeed("profile", "create", "default")
    nearsim.succeed("report", "-p", "default", "--output", tmp_path / "report.html")
    for query, printed in QUERIES.items():
        outcome = nearsim.succeed(*query.split())
        assert printed is None or outcome.out == printed, query
    stats = nearsim.succeed("stats", "--json").document()
    assert (stats["documents"], stats["recipe"]["match"]["threshold"]) == (0, 0.7)
    assert "has no document 'x'" in nearsim.fail("similar", "x")
    for command in ("pairs", "clusters", "stats", "export --format jsonl", "verify-index"):
        assert "'typo' does not exist" in nearsim.fail(*command.split(), "-c", "typo")
    for command in PROFILED:
        assert "has no profile 'typo'" in nearsim.fail(*command.split(), "-p", "typo"), command
    file = write_jsonl(tmp_path / "one.jsonl", [{"id": "a", "text": HARVEST}])
    (checked,) = nearsim.succeed("check", file, "--format", "jsonl").rows()
    assert (checked["id"], checked["duplicate"], checked["matches"]) == ("a", False, [])
