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
    assert generation == {
        "profile": "default",
        "generation": 1,
        "state": "live",
        "signatures": 1,
        "bands": 20,
        "pairs": 1,
        "cluster_rows": 1,
    }
    assert (purged["work"], purged["changes"]) == (0, 1)
    assert purged["rejects"] == [{"path": str(rejects), "lines": 1}]
    assert purged["caches"].startswith("emptied at 20")
    assert [json.loads(line)["id"] for line in rejects.read_text().splitlines()] == ["no-text"]
    (pair,) = filled.succeed("pairs", "--format", "jsonl").rows()
    assert {pair["left"], pair["right"]} == {"storm-again", "storm-twin"}


def test_other_files_are_refused_as_reject_files(filled: CommandLine, stories: Path, tmp_path: Path) -> None:
    before = stories.read_bytes()
    assert "is not a reject file" in filled.fail("delete", "storm", "--purge", "--rejects", stories)
    assert stories.read_bytes() == before
    assert filled.succeed("get", "storm").document()["body"] == STORM


def test_retention_window_is_shown_and_explained(nearsim: CommandLine, tmp_path: Path) -> None:
    made = nearsim.succeed("profile", "create", "recent", "--set", "retain.age=30 days")
    assert "window                       documents of the last 30 days\n" in made.out
    records = [
        {"id": "new", "text": STORM},
        {"id": "old", "text": STORM_AGAIN, "published_at": "2001-02-03"},
    ]
    nearsim.succeed("ingest", write_jsonl(tmp_path / "some.jsonl", records), "-q")
    assert nearsim.succeed("pairs", "--format", "jsonl").rows() == []
    stats = nearsim.succeed("stats", "--json").document()
    assert (stats["documents"], stats["outside_window"], stats["indexed"]) == (2, 1, 1)
    assert "outside window                    1\n" in nearsim.succeed("stats").out
    reported = nearsim.fail("similar", "old")
    assert "document 'old' is outside the retention window of profile 'recent' (30 days)" in reported
    assert nearsim.succeed("profile", "show", "recent", "--json").document()["recipe"]["retain"] == {
        "age": "30 days"
    }
    assert (
        "window                       documents of the last 30 days\n"
        in nearsim.succeed("profile", "show", "recent").out
    )


def test_purge_output_for_people(filled: CommandLine, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.jsonl"
    rejects.write_text('{"file": "a", "line": 1, "id": "nobody", "reason": "r"}\n')
    outcome = filled.run("delete", "harvest", "nobody", "never", "--purge", "--rejects", rejects, "-y")
    assert outcome.exit_code == 1
    assert outcome.err == "error: collection 'default' has no document 'never'\n"
    assert outcome.out.startswith("deleted harvest\n")
    shown = " ".join(outcome.out.split())
    assert "profile default, generation 1 (live) 1 signature, 20 bands, 0 pairs, 0 cluster rows" in shown
    assert f"rejects in {rejects} 1 line" in shown
    assert "caches emptied at 20" in shown
    assert rejects.read_text() == ""
