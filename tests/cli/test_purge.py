"""Retention and purges on the command line."""

import json
from pathlib import Path

from tests.builders.command_line import STORM, STORM_AGAIN, CommandLine, write_jsonl


def test_purge_lists_every_place(filled: CommandLine, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.jsonl"
    again = write_jsonl(
        tmp_path / "again.jsonl",
        [{"id": "storm", "text": "first"}, {"id": "storm", "text": STORM}, {"id": "no-text"}],
    )
    filled.succeed("ingest", again, "--rejects", rejects, "-q")
    assert [json.loads(line)["id"] for line in rejects.read_text().splitlines()] == ["storm", "no-text"]
    reported = filled.succeed("delete", "storm", "--purge", "--rejects", rejects, "--json").document()
    purged = reported["purged"]
    assert (reported["deleted"], reported["not_found"], purged["document"]) == (["storm"], [], 1)
    (generation,) = purged["generations"]
    assert [generation[name] for name in ("signatures", "bands", "pairs", "cluster_rows")] == [1, 20, 1, 1]
    assert (purged["work"], purged["changes"]) == (0, 1)
    assert purged["rejects"] == [{"path": str(rejects), "lines": 1}]
    assert purged["caches"].startswith("emptied at 20")
    assert [json.loads(line)["id"] for line in rejects.read_text().splitlines()] == ["no-text"]
    (pair,) = filled.succeed("pairs", "--format", "jsonl").rows()
    assert {pair["left"], pair["right"]} == {"storm-again", "storm-twin"}


def test_retention_window_is_shown_and_explained(nearsim: CommandLine, tmp_path: Path) -> None:
    made = nearsim.succeed("profile", "create", "recent", "--set", "retain.age=30 days", "--json").document()
    assert made["recipe"]["retain"] == {"age": "30 days", "delete": False}
    records = [
        {"id": "new", "text": STORM},
        {"id": "old", "text": STORM_AGAIN, "published_at": "2001-02-03"},
    ]
    nearsim.succeed("ingest", write_jsonl(tmp_path / "some.jsonl", records), "-q")
    assert nearsim.succeed("pairs", "--format", "jsonl").rows() == []
    stats = nearsim.succeed("stats", "--json").document()
    assert (stats["documents"], stats["outside_window"], stats["indexed"]) == (2, 1, 1)
    assert "outside the retention window of profile 'recent'" in nearsim.fail("similar", "old")
