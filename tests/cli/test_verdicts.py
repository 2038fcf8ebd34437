"""Verdicts from the command line."""

import csv

from tests.builders.command_line import CommandLine


def clusters(nearsim: CommandLine) -> list[set[str]]:
    """The members of the clusters, the largest first."""
    return [set(row["members"]) for row in nearsim.succeed("clusters", "--format", "jsonl").rows()]


def test_pin_veto_and_undo(filled: CommandLine) -> None:
    assert clusters(filled) == [{"storm", "storm-again", "storm-twin"}]
    filled.succeed("verdict", "veto", "storm", "storm-twin", "--why", "two storms", "--by", "anna")
    assert clusters(filled) == [{"storm", "storm-again"}]
    reported = filled.succeed("verdict", "pin", "harvest", "storm-twin", "--why", "one feature", "--json")
    assert reported.document() == {"pinned": ["harvest", "storm-twin"]}
    assert clusters(filled) == [{"storm", "storm-again"}, {"harvest", "storm-twin"}]
    filled.succeed("verdict", "undo", "storm-twin", "storm", "--why", "one storm", "--by", "bert", "-q")
    assert clusters(filled) == [{"storm", "storm-again", "storm-twin", "harvest"}]


def test_list_shows_current_verdicts_and_on_request_all(filled: CommandLine) -> None:
    filled.succeed("verdict", "veto", "storm", "storm-twin", "--why", "two storms", "--by", "anna")
    filled.succeed("verdict", "pin", "storm", "bridge", "--why", "a joke", "--by", "anna")
    filled.succeed("verdict", "undo", "storm", "bridge", "--why", "not funny", "--by", "bert")
    (standing,) = filled.succeed("verdict", "list", "--json").document()["verdicts"]
    assert (standing["left"], standing["right"], standing["verdict"]) == ("storm", "storm-twin", "vetoed")
    assert (standing["by"], standing["why"], standing["undone_at"]) == ("anna", "two storms", None)
    undone, _ = filled.succeed("verdict", "list", "--undone", "--format", "jsonl").rows()
    assert (undone["verdict"], undone["undone_by"], undone["undone_why"]) == ("pinned", "bert", "not funny")
    assert filled.succeed("verdict", "list", "--by", "bert", "--json").document() == {"verdicts": []}
    rows = csv.DictReader(filled.succeed("verdict", "list", "--format", "csv").out.splitlines())
    assert [(row["left"], row["by"], row["undone_by"]) for row in rows] == [("storm", "anna", "")]
    filled.succeed("delete", "storm-twin", "--yes")
    (left,) = filled.succeed("verdict", "list", "--format", "jsonl").rows()
    assert (left["left"], left["right"][0]) == ("storm", "#")
