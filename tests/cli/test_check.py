"""nearsim check, nearsim ingest --on-duplicate, and nearsim events."""

import csv
import json
import signal
from pathlib import Path

import pytest

from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl
from tests.builders.word_sets import counts

STORED = [
    {"id": "storm", "text": STORM},
    {"id": "storm-twin", "text": STORM},
    {"id": "harvest", "text": HARVEST},
]
NEW = [
    {"id": "new", "text": BRIDGE},
    {"id": "again", "text": STORM_AGAIN},
    {"id": "harvest", "text": HARVEST + " today"},
    {"id": "bridge", "text": BRIDGE},
]


@pytest.fixture
def stored(nearsim: CommandLine, tmp_path: Path) -> CommandLine:
    nearsim.succeed("ingest", write_jsonl(tmp_path / "stored.jsonl", STORED), "-q")
    return nearsim


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "new.jsonl", NEW)


def test_documents_are_checked_in_every_format(stored: CommandLine, new: Path, tmp_path: Path) -> None:
    """Documents are not compared with each other, nor with the one that they would replace."""
    rows = stored.succeed("check", new, "--format", "jsonl").rows()
    assert [(row["id"], row["duplicate"]) for row in rows] == [
        *(("new", False), ("again", True), ("harvest", False), ("bridge", False))
    ]
    common, union = counts(STORM, STORM_AGAIN)
    assert (rows[1]["duplicate_of"], rows[1]["similarity"]) == ("storm", common / union)
    assert [(one["id"], one["intersection"], one["union"]) for one in rows[1]["matches"]] == [
        ("storm", common, union),
        ("storm-twin", common, union),
    ]
    assert (rows[0]["duplicate_of"], rows[0]["similarity"], rows[0]["matches"]) == (None, None, [])
    path = tmp_path / "checked.csv"
    stored.succeed("check", new, "-o", path)
    cells = [list(row.values()) for row in csv.DictReader(path.read_text().splitlines())]
    assert [(row[0], row[1], row[2]) for row in cells][:2] == [("new", "no", ""), ("again", "yes", "storm")]
    _, _, first, *_ = stored.succeed("check", new).out.splitlines()
    assert first.split()[:3] == ["again", "yes", "storm"]


def test_invalid_fields_and_records(stored: CommandLine, tmp_path: Path) -> None:
    file, rejects = tmp_path / "new.csv", tmp_path / "rejects.jsonl"
    file.write_text(f'key,story\na,"{STORM_AGAIN}"\n,"{STORM}"\n')
    fields = ("--id-field", "key", "--body-field", "story", "--rejects", rejects)
    reported = stored.succeed("check", file, *fields, "--format", "jsonl")
    assert [(row["id"], row["duplicate_of"]) for row in reported.rows()] == [("a", "storm")]
    assert "line 3: 'key' is empty" in reported.err and len(rejects.read_text().splitlines()) == 1
    file.with_suffix(".jsonl").write_text("{\n{\n")
    assert "none of the 2 records" in stored.fail("check", file.with_suffix(".jsonl"), "--format", "jsonl")


def test_ingest_stops_at_the_first_near_duplicate(stored: CommandLine, new: Path) -> None:
    reported = stored.fail("ingest", new, "--on-duplicate", "raise")
    similarity = counts(STORM, STORM_AGAIN)[0] / counts(STORM, STORM_AGAIN)[1]
    assert "document 'again' was not added: it is a near-duplicate of 'storm'" in reported
    assert f"(similarity {similarity:.4f}) and 1 more" in reported
    assert stored.succeed("document", "get", "new").document()["id"] == "new"
    stored.fail("document", "get", "bridge")
    outcome = stored.run("ingest", new, "--on-duplicate", "raise", "--json")
    summary = outcome.document()
    assert (outcome.exit_code, summary["unchanged"], summary["skipped"]) == (1, 1, 1)
    assert "document 'again' was not added" in summary["error"] and summary["profiles"][0]["documents"] == 4


def test_limit_of_matches(stored: CommandLine, tmp_path: Path) -> None:
    texts = write_jsonl(
        tmp_path / "limited.jsonl", [{"id": "x", "text": STORM}, {"id": "y", "text": HARVEST}]
    )
    limited = stored.succeed("check", texts, "--limit", "1", "--format", "jsonl")
    assert [(row["id"], len(row["matches"]), row["has_more"]) for row in limited.rows()] == [
        ("x", 1, True),
        ("y", 1, False),
    ]
    assert limited.err == "documents with more matches than --limit 1 lists: 1\n"
    quiet = stored.succeed("check", texts, "--limit", "1", "--format", "jsonl", "-q")
    assert (quiet.out, quiet.err) == (limited.out, "")
    enough = stored.succeed("check", texts, "--limit", "2", "--format", "jsonl")
    assert [(len(row["matches"]), row["has_more"]) for row in enough.rows()] == [(2, False), (1, False)]
    assert enough.err == ""


@pytest.mark.slow("several builds")
def test_events_are_filtered_and_written(filled: CommandLine, tmp_path: Path) -> None:
    twins = [{"id": f"brief-{number}", "text": "six words that no story has"} for number in range(2)]
    filled.succeed("ingest", write_jsonl(tmp_path / "twins.jsonl", twins), "--quiet")
    shown = filled.succeed("events", "--kind", "pair_found", "--kind", "cluster_formed", "--limit", "2")
    assert "pair_found" in shown.out and "generation_live" not in shown.out
    output = tmp_path / "events.csv"
    filled.succeed("events", "-c", "default", "-p", "default", "--output", output)
    assert len(output.read_text().splitlines()) == 4  # with the header
    filled.succeed("document", "delete", "storm", "--yes")
    (renamed,) = filled.succeed("events", "--kind", "cluster_renamed", "--format", "jsonl").rows()
    head, _, row = filled.succeed("events", "--kind", "cluster_renamed", "--quiet").out.splitlines()
    assert (head.split()[-1], row.split()[-1]) == ("other_ids", str(renamed["other_ids"][0]))


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_follow_runs_until_a_signal(
    filled: CommandLine, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with filled.started("events", "--follow", "--kind", "pair_found") as process:
        assert process.stdout is not None
        more = write_jsonl(tmp_path / "more.jsonl", [{"id": "later", "text": STORM}])
        filled.succeed("ingest", more, "--quiet")
        assert json.loads(process.stdout.readline())["right"] == "later"
        process.send_signal(number)
        assert process.wait(20) == code


def test_followed_events_are_appended_to_a_file(filled: CommandLine, tmp_path: Path) -> None:
    output = tmp_path / "events.csv"
    more = write_jsonl(tmp_path / "more.jsonl", [{"id": "later", "text": STORM}])
    filled.succeed("ingest", more, "--quiet")
    for after, limit in ((0, 2), (2, 1)):
        filled.succeed("events", "--follow", "--after", after, "--limit", limit, "--output", output)
    _, *rows = output.read_text().splitlines()
    kinds = [row.split(",")[1] for row in rows]
    assert kinds == ["generation_live", "pair_found", "cluster_changed"]


@pytest.fixture
def headlines(nearsim: CommandLine, tmp_path: Path) -> CommandLine:
    """A collection whose profile compares titles only."""
    file = write_jsonl(tmp_path / "headlines.jsonl", [{"id": "storm", "title": STORM, "text": BRIDGE}])
    nearsim.succeed("ingest", file, "--preset", "newshound", "-q")
    return nearsim


@pytest.mark.parametrize("command", ["similar", "check"])
def test_a_text_is_refused_where_only_titles_are_compared(headlines: CommandLine, command: str) -> None:
    message = headlines.fail(command, "--text", STORM)
    assert "compares the title only, and this document has only a body: give its text as title" in message


@pytest.mark.parametrize("command", ["similar", "check"])
def test_a_title_is_looked_up_alone(headlines: CommandLine, command: str) -> None:
    assert "storm" in headlines.succeed(command, "--title", STORM, "--format", "jsonl").out


def test_records_without_the_compared_field_are_rejected(headlines: CommandLine, tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "mixed.jsonl", [{"id": "a", "text": STORM}, {"id": "b", "title": STORM}])
    outcome = headlines.run("check", file, "--rejects", tmp_path / "rejects.jsonl", "--format", "jsonl")
    assert [(row["id"], row["duplicate"]) for row in outcome.rows()] == [("b", True)]
    (reject,) = (tmp_path / "rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["line"] == 1 and "has only a body" in reject
