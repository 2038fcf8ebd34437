"""`nearsim evaluate`: pairs and clusters of an index against labels."""

from pathlib import Path

import pytest

from tests.builders.command_line import CommandLine

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


def test_labels_of_other_documents_are_refused(filled: CommandLine, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id_a,id_b,label\nx,y,1\n")
    assert "none of 1 labelled pairs" in filled.fail("evaluate", "--labels", labels)
