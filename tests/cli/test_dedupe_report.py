"""`dedupe --report`: the page of `nearsim report` on files, without a database."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.builders.command_line import HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl
from tests.builders.report_pages import ATTACK, Elements, records

# What an index has and files have not: numbers of rows, links, and the largest buckets.
INDEX_ONLY = {"left_id", "right_id", "cluster_id", "survivor_id", "url", "comparisons"}


def report_of(nearsim: CommandLine, files: list[Path], path: Path, *options: str) -> dict[str, Any]:
    nearsim.succeed("dedupe", *files, "--dry-run", "--report", path, "--quiet", *options)
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def comparable(figures: object) -> object:
    """The figures without what only an index has, and with similarities to five digits."""
    if isinstance(figures, dict):
        return {name: comparable(value) for name, value in figures.items() if name not in INDEX_ONLY}
    if isinstance(figures, list):
        return [comparable(value) for value in figures]
    return round(figures, 5) if isinstance(figures, float) else figures


def stories_of_several_sources(count: int) -> list[dict[str, object]]:
    """Chains, twins and unlike stories, some without a source or a date."""
    choose = random.Random(7)
    stories: list[dict[str, object]] = []
    for number in range(count):
        words = [f"word{number // 5}x{place}" for place in range(40)]
        for place in range(number % 5):
            words[place * 3] = f"changed{number}x{place}"
        stories.append(
            {
                "id": f"s{number}",
                "title": f"Story {number}",
                "text": " ".join(words) + (f" {number % 3} boats" if number % 4 else ""),
                "source": choose.choice(["Quay Post", "Wire", "Evening", None]),
                "published_at": None
                if number % 9 == 0
                else f"2026-0{1 + number % 6}-1{number % 7}T0{number % 10}:30:00Z",
            }
        )
    return [*stories, {**stories[3], "id": "twin"}, {"id": "empty", "text": " ! "}]


@pytest.mark.parametrize("dates", [True, False])
def test_figures_equal_those_of_an_index(nearsim: CommandLine, tmp_path: Path, dates: bool) -> None:
    rows = stories_of_several_sources(120)
    rows = rows if dates else [{**row, "published_at": None} for row in rows]
    path = write_jsonl(tmp_path / "stories.jsonl", rows)
    nearsim.succeed("ingest", path, "--quiet")
    nearsim.succeed("report", "--output", tmp_path / "index.json", "--quiet")

    of_files = report_of(nearsim, [path], tmp_path / "files.json")
    of_index = json.loads((tmp_path / "index.json").read_text())

    assert comparable(of_files["corpus"]) == comparable(of_index["corpus"])
    for part in ("similarities", "clusters", "sources", "all_sources", "copies", "all_copies", "over_time"):
        assert comparable(of_files["index"][part]) == comparable(of_index["index"][part]), part
    assert of_files["index"]["featureless"] == of_index["index"]["featureless"]
    chosen = [
        Counter(pair["why"] for pair in report["index"]["comparisons"]) for report in (of_files, of_index)
    ]
    for why in ("least similar", "numbers differ"):
        assert chosen[0][why] == chosen[1][why] > 0


def test_each_file_has_its_counts(nearsim: CommandLine, tmp_path: Path) -> None:
    first = write_jsonl(
        tmp_path / "first.jsonl", [{"id": "a", "text": STORM}, {"id": "b", "text": STORM_AGAIN}]
    )
    second = write_jsonl(
        tmp_path / "second.jsonl",
        [{"id": "c", "text": STORM}, {"id": "d", "text": HARVEST}, {"id": "e"}],
    )

    report = report_of(nearsim, [first, second], tmp_path / "report.json", "--max-rejected", "1")

    assert report["title"] == "Near-duplicates in 2 files"
    assert report["inputs"] == [
        {"file": str(first), "kept": 1, "removed": 1, "removed_for_other_file": 0, "rejected": 0},
        {"file": str(second), "kept": 1, "removed": 1, "removed_for_other_file": 1, "rejected": 1},
    ]


@pytest.mark.parametrize(("rule", "is_kept"), [("earliest", True), ("none", False)])
def test_page_says_whether_a_cluster_keeps_a_document(
    nearsim: CommandLine, tmp_path: Path, rule: str, is_kept: bool
) -> None:
    path = write_jsonl(tmp_path / "all.jsonl", [{"id": name, "text": STORM} for name in ("a", "b")])
    options = ("--dry-run", "--set", f"cluster.keep={rule}", "--quiet")

    nearsim.succeed("dedupe", path, "--report", tmp_path / "page.html", *options)

    text = Elements((tmp_path / "page.html").read_text()).text
    assert ("The survivor of each cluster is kept." in text) == is_kept
    assert ("No document of a cluster is kept" in text) != is_kept


def test_page_does_not_call_records_without_a_text_the_same(nearsim: CommandLine, tmp_path: Path) -> None:
    vectors = ([1.0, 0.0, 0.0], [0.999, 0.001, 0.0])
    path = write_jsonl(
        tmp_path / "vectors.jsonl",
        [{"id": name, "vector": vector} for name, vector in zip("ab", vectors, strict=True)],
    )

    page = tmp_path / "page.html"
    nearsim.succeed("dedupe", path, "--preset", "embeddings", "--dry-run", "--report", page, "--quiet")

    text = Elements(page.read_text()).text
    assert "there are no words to compare" in text and "the texts are the same" not in text


def test_page_shows_malicious_texts_as_text(nearsim: CommandLine, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "attacks.jsonl", records())

    nearsim.succeed(
        "dedupe",
        path,
        "-o",
        tmp_path / "kept.jsonl",
        "--report",
        tmp_path / "page.html",
        "-q",
        "--threshold",
        0.5,
    )

    page = Elements((tmp_path / "page.html").read_text())
    assert [tag for tag, _ in page.found].count("script") == 2
    assert ATTACK in page.text and "attacks.jsonl" in page.text
    assert "nearsim why" not in page.text and "snapshot of the database" not in page.text


def test_report_is_gathered_before_the_input_is_replaced(nearsim: CommandLine, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "all.jsonl", [{"id": name, "text": STORM} for name in ("a", "b")])

    nearsim.succeed("dedupe", path, "-o", path, "--report", tmp_path / "report.json", "-q")

    assert len(path.read_text().splitlines()) == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["index"]["clusters"]["largest"][0]["facts"]["members"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "report.txt"], "end the name in .html"),
        (["--report", "stories.jsonl"], "end the name in .html"),
        (["--report", "report.html", "--against", "old.jsonl"], "--report cannot be combined with --against"),
        (["--report", "report.html", "--cut"], "--report cannot be combined with --cut"),
        (["--report", "same.json", "--pairs", "same.json"], "must be different files"),
    ],
)
def test_reports_that_cannot_be_written_are_refused(
    nearsim: CommandLine, stories: Path, options: list[str], message: str
) -> None:
    kept = stories.with_name("kept.jsonl")

    assert message in nearsim.fail("dedupe", stories, "-o", kept, *options, exit_code=2)
    assert not kept.exists()


def test_a_file_is_counted_by_what_is_removed_from_it(nearsim: CommandLine, tmp_path: Path) -> None:
    curated = write_jsonl(
        tmp_path / "curated.jsonl", [{"id": "a", "text": STORM}, {"id": "b", "text": STORM}]
    )
    new = write_jsonl(
        tmp_path / "new.jsonl", [{"id": "c", "text": STORM_AGAIN}, {"id": "d", "text": HARVEST}]
    )
    counts: dict[tuple[str, ...], list[list[int]]] = {
        ("--only-from", str(new)): [[2, 0, 0], [1, 1, 1]],
        ("--set", "cluster.keep=none"): [[0, 2, 0], [1, 1, 0]],
    }
    for options, expected in counts.items():
        report = report_of(nearsim, [curated, new], tmp_path / "report.json", *options)
        names = ("kept", "removed", "removed_for_other_file")
        assert [[file[name] for name in names] for file in report["inputs"]] == expected
        assert report["stats"]["removed"] == sum(removed for _, removed, _ in expected)
