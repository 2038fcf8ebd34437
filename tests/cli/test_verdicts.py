"""Verdicts, and nearsim why and why-not."""

import io
import sys
from pathlib import Path

import pytest

from nearsim_db.analysis.text_diff import InlineRun
from nearsim_db.cli.output import explanations
from tests.builders.command_line import CommandLine, Terminal, write_jsonl


def clusters(nearsim: CommandLine) -> list[set[str]]:
    """The members of the clusters, the largest first."""
    return [set(row["members"]) for row in nearsim.succeed("clusters", "--format", "jsonl").rows()]


def test_list_shows_current_verdicts_and_on_request_all(filled: CommandLine) -> None:
    filled.succeed("verdict", "veto", "storm", "storm-twin", "--why", "two storms", "--by", "anna")
    filled.succeed("verdict", "pin", "storm", "bridge", "--why", "a joke", "--by", "anna")
    filled.succeed("verdict", "undo", "storm", "bridge", "--why", "not funny", "--by", "bert")
    (standing,) = filled.succeed("verdict", "list", "--json").document()["verdicts"]
    assert (standing["left"], standing["right"], standing["verdict"]) == ("storm", "storm-twin", "vetoed")
    undone, _ = filled.succeed("verdict", "list", "--undone", "--format", "jsonl").rows()
    assert (undone["verdict"], undone["undone_by"], undone["undone_why"]) == ("pinned", "bert", "not funny")
    assert filled.succeed("verdict", "list", "--by", "bert", "--json").document() == {"verdicts": []}
    filled.succeed("document", "delete", "storm-twin", "--yes")
    (left,) = filled.succeed("verdict", "list", "--format", "jsonl").rows()
    assert (left["left"], left["right"][0]) == ("storm", "#")


def test_the_reply_names_the_collection_and_both_documents(nearsim: CommandLine, tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "rows.jsonl",
        [
            {"id": "a", "title": "First", "text": "some text"},
            {"id": "b", "text": "other words"},
        ],
    )
    nearsim.succeed("ingest", path, "--collection", "news", "-q")
    printed = nearsim.succeed("verdict", "pin", "b", "a", "--why", "x", "-c", "news").out
    assert printed.splitlines() == [
        "pinned b and a",
        "collection  news",
        "left        a  First",
        "right       b",
    ]
    reply = nearsim.succeed("verdict", "undo", "b", "a", "--why", "x", "-c", "news", "--json").document()
    assert reply["undone"] == ["b", "a"]
    assert [reply[name] for name in ("collection", "left", "right", "left_title", "right_title")] == [
        *("news", "a", "b", "First", None),
    ]
    printed = nearsim.succeed("verdict", "keep", "a", "--why", "x", "-c", "news").out
    assert printed.splitlines() == ["kept a", "collection  news", "document    a  First"]


RUNS = [
    InlineRun("both", "paid "),
    InlineRun("left", "12", is_number=True),
    InlineRun("right", "13\x1b[2J"),
    InlineRun("both", "\nnow"),
]


def test_marks_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = "paid [-#12-]{+13\\x1b[2J+}\nnow\n"
    coloured = "paid \x1b[1;7;31m12\x1b[0m\x1b[32m13\\x1b[2J\x1b[0m\nnow\n"
    for stream, no_color, expected in (
        *((io.StringIO(), "", plain), (Terminal(), "1", plain), (Terminal(), "", coloured)),
    ):
        for name, value in (("NO_COLOR", no_color), ("TERM", "xterm"), ("COLUMNS", "80")):
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stdout", stream)
        explanations.print_runs([RUNS])
        assert stream.getvalue() == expected


def test_labels_are_imported_as_verdicts(filled: CommandLine, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    lines = [
        "storm,storm-again,0",
        "storm,harvest,yes",
        "storm,bridge,1",
        "storm,bridge,0",
        "storm,gone,1",
        "x,x,1",
    ]
    labels.write_text("\n".join(["id_a,id_b,label", *lines, ""]))
    filled.succeed("verdict", "pin", "harvest", "storm", "--why", "known")
    counts = {"pinned": 0, "vetoed": 2, "unchanged": 1, "unknown": 1, "invalid": 1, "collection": "default"}
    tried = filled.succeed("verdict", "import", labels, "--dry-run", "--json").document()
    assert tried == counts | {"dry_run": True}
    assert len(filled.succeed("verdict", "list", "--json").document()["verdicts"]) == 1
    done = filled.succeed("verdict", "import", labels, "--by", "anna", "--json").document()
    assert done == counts | {"dry_run": False}
    listed = filled.succeed("verdict", "list", "--by", "anna", "--json").document()["verdicts"]
    assert {(one["left"], one["right"], one["verdict"], one["why"]) for one in listed} == {
        ("storm", "storm-again", "vetoed", "imported from labels.csv"),
        ("storm", "bridge", "vetoed", "imported from labels.csv"),
    }
    again = filled.succeed("verdict", "import", labels, "--json").document()
    assert (again["unchanged"], again["vetoed"]) == (3, 0)


def test_unreviewed_pairs_have_no_verdict(filled: CommandLine) -> None:
    def listed(*options: str) -> set[frozenset[str]]:
        rows = filled.succeed("pairs", "--format", "jsonl", *options).rows()
        return {frozenset((row["left"], row["right"])) for row in rows}

    everything = listed()
    filled.succeed("verdict", "veto", "storm", "storm-twin", "--why", "two storms")
    assert listed("--unreviewed") == everything - {frozenset(("storm", "storm-twin"))}
    assert listed("--max-similarity", "0.999") == everything - {frozenset(("storm", "storm-twin"))}
    assert listed("--numbers-differ") == set()
    (drawn,) = listed("--sample", "1")
    assert drawn in everything and listed("--sample", "1") == {drawn}
    assert listed("--sample", "99") == everything


def survivors(nearsim: CommandLine) -> list[str]:
    return [row["survivor"] for row in nearsim.succeed("clusters", "--format", "jsonl").rows()]


@pytest.mark.slow("reindexes")
def test_the_newest_choice_of_a_survivor_wins_and_outlives_reindexing(filled: CommandLine) -> None:
    assert survivors(filled) == ["storm"]
    done = filled.succeed("verdict", "keep", "storm-again", "--why", "the first", "--by", "anna", "--json")
    reply = done.document()
    assert (reply["kept"], reply["collection"], reply["by"]) == ("storm-again", "default", "anna")
    assert survivors(filled) == ["storm-again"]
    filled.succeed("verdict", "keep", "storm-twin", "--why", "better", "-q")
    assert survivors(filled) == ["storm-twin"]
    filled.succeed("reindex", "start", "--set", "shingle.k=2", "-q")
    filled.succeed("reindex", "promote", "-q")
    assert survivors(filled) == ["storm-twin"]
    filled.succeed("document", "delete", "storm-twin", "--yes", "-q")
    assert survivors(filled) == ["storm-again"]
    assert "no document" in filled.fail("verdict", "keep", "absent", "--why", "x")
