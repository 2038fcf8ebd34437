"""nearsim ingest and build: every record is accounted for."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from nearsim_db.store.embedded.processes import wait_until
from tests.builders.command_line import (
    BRIDGE,
    HARVEST,
    STORM,
    STORM_AGAIN,
    CommandLine,
    unlike_any_other,
    write_jsonl,
)

DEADLINE_SECONDS = 20.0


def test_the_json_summary_accounts_for_every_record(nearsim: CommandLine, tmp_path: Path) -> None:
    good = [json.dumps({"id": f"s{n}", "text": text}) for n, text in enumerate((STORM, STORM_AGAIN, HARVEST))]
    lines = [
        *good,
        "{broken",
        json.dumps({"text": "no id"}),
        json.dumps({"id": "s0", "text": BRIDGE + "\ud800"}),
    ]
    path = tmp_path / "mixed.jsonl"
    path.write_text("\n".join(lines))
    reported = nearsim.succeed("ingest", path, "--json").document()
    assert {name: reported[name] for name in ("read", "inserted", "updated", "unchanged", "rejected")} == {
        "read": 6,
        "inserted": 3,
        "updated": 0,
        "unchanged": 0,
        "rejected": 3,
    }
    assert (reported["replaced_characters"], reported["dry_run"], reported["error"]) == (1, False, None)
    (profile,) = reported["profiles"]
    assert (profile["profile"], profile["pairs"], profile["clusters"]) == ("default", 0, 0)
    assert profile["bands"] * profile["rows"] <= 128


def test_records_of_a_truncated_file_are_kept_and_indexed(nearsim: CommandLine, tmp_path: Path) -> None:
    total = 3_000
    lines = "".join(json.dumps({"id": n, "text": unlike_any_other(n)}) + "\n" for n in range(total))
    whole = gzip.compress(lines.encode(), mtime=0)
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    outcome = nearsim.run("ingest", path, "--json")
    assert outcome.exit_code == 1
    assert "truncated" in outcome.err
    reported = outcome.document()
    assert 0 < reported["inserted"] < total
    assert "truncated" in reported["error"] and "the records read before are kept" in outcome.err
    assert nearsim.succeed("stats", "--json").document()["indexed"] == reported["inserted"]


def test_columns_are_mapped_by_options(nearsim: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"key,head,main,paper,link,day\nk1,Storm,{STORM},Herald,http://h/1,2024-05-31\n")
    names = {
        "id": "key",
        "title": "head",
        "body": "main",
        "source": "paper",
        "url": "link",
        "published": "day",
    }
    options = [word for field, name in names.items() for word in (f"--{field}-field", name)]
    nearsim.succeed("ingest", path, *options, "-q")
    stored = nearsim.succeed("get", "k1").document()
    assert {name: stored[name] for name in ("title", "body", "source", "url")} == {
        "title": "Storm",
        "body": STORM,
        "source": "Herald",
        "url": "http://h/1",
    }
    assert stored["published_at"].startswith("2024-05-31T00:00:00")


def test_a_folder_of_text_files(nearsim: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text(STORM)
    (folder / "sub" / "b.txt").write_text(STORM_AGAIN)
    nearsim.succeed("ingest", folder, "-q")
    (pair,) = nearsim.succeed("pairs", "--format", "jsonl").rows()
    assert (pair["left"], pair["right"]) == ("a.txt", "sub/b.txt")


def test_build_indexes_documents_written_in_sql(filled: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body)"
            " SELECT collection_id, 'by-sql', %s FROM nearsim.collection",
            [HARVEST + " today"],
        )
    (profile,) = filled.succeed("build", "--json").document()["profiles"]
    assert profile["documents"] == 6
    assert [match["id"] for match in filled.succeed("similar", "by-sql", "--format", "jsonl").rows()] == [
        "harvest"
    ]


@pytest.mark.slow("stops a process")
def test_interrupted_ingest_is_completed_by_the_same_command(
    nearsim: CommandLine, database_url: str, tmp_path: Path
) -> None:
    records = [{"id": f"n{n}", "text": unlike_any_other(n)} for n in range(2_100)]
    lines = write_jsonl(tmp_path / "many.jsonl", records).read_bytes()
    # What runs in the background of a shell ignores SIGINT, and so do its children unless they say otherwise.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = [sys.executable, "-c", f"{heeding}; from nearsim_db.cli import main; main()", "ingest", "-"]
    environment = {**os.environ, **nearsim.environment}
    with subprocess.Popen(
        program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(lines)
        process.stdin.flush()
        with psycopg.connect(database_url, autocommit=True) as connection:
            stored = "SELECT count(*) > 0 FROM nearsim.document"
            assert wait_until(lambda: connection.execute(stored).fetchone() == (True,), DEADLINE_SECONDS)
        process.send_signal(signal.SIGINT)
        reported = process.stderr.read().decode()
    assert process.returncode == 130
    assert reported == "interrupted; completed work is kept, run the same command again to resume\n"
    summary = nearsim.succeed("ingest", "-", "--json", given=lines).document()
    assert summary["inserted"] + summary["unchanged"] == len(records)
    assert summary["profiles"][0]["documents"] == len(records)


def test_a_warning_if_most_records_are_rejected(nearsim: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.bin", "b.conf", "c.so"):
        (folder / name).write_text(STORM)
    (folder / "d.txt").symlink_to(folder / "a.bin")
    (folder / "e.txt").write_text(HARVEST)
    said = nearsim.succeed("ingest", folder).err
    assert "4 of 5 records were rejected (3: not a text file (" in said
    assert said.index("3: not a text file") < said.index("1: a symbolic link; --follow-links")
    for name in ("f.txt", "g.txt", "h.txt"):
        (folder / name).write_text(STORM)
    assert "were rejected" not in nearsim.succeed("ingest", folder).err


def test_links_in_a_folder_are_counted_and_named(nearsim: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(STORM)
    (tmp_path / "in" / "b.txt").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text(HARVEST)
    link = {"file": str(tmp_path / "in" / "b.txt"), "line": 0, "id": None}
    reason = "a symbolic link; --follow-links reads its target"
    summary = nearsim.succeed("ingest", tmp_path / "in", "--json").document()
    assert (summary["read"], summary["inserted"], summary["rejected"]) == (2, 1, 1)
    assert summary["first_rejects"] == [{**link, "reason": reason}]
    shown = nearsim.succeed("ingest", tmp_path / "in").out
    assert f"rejected: {tmp_path}/in/b.txt: {reason}" in shown
    summary = nearsim.succeed("ingest", tmp_path / "in", "--follow-links", "--json").document()
    assert (summary["inserted"], summary["unchanged"], summary["rejected"]) == (1, 1, 0)


def test_an_output_file_is_not_written_through_a_link_of_another_name(
    nearsim: CommandLine, stories: Path, tmp_path: Path
) -> None:
    nearsim.succeed("ingest", stories, "-q")
    (tmp_path / "precious").write_text("keep")
    for name in (f".pairs.csv.{os.getpid()}.part", ".pairs.csv.part"):
        (tmp_path / name).symlink_to(tmp_path / "precious")
    nearsim.succeed("pairs", "-o", tmp_path / "pairs.csv", "-q")
    assert (tmp_path / "precious").read_text() == "keep"
    assert (tmp_path / "pairs.csv").read_text().startswith("left,right")


def test_records_that_replace_those_of_another_file_are_counted(nearsim: CommandLine, tmp_path: Path) -> None:
    first = write_jsonl(tmp_path / "1.jsonl", [{"id": "a", "text": STORM}, {"id": "b", "text": HARVEST}])
    second = write_jsonl(tmp_path / "2.jsonl", [{"id": "a", "text": BRIDGE}, {"id": "c", "text": HARVEST}])
    third = write_jsonl(tmp_path / "3.jsonl", [{"id": "b", "text": HARVEST}])
    shown = nearsim.succeed("ingest", first, second, third, "-c", "shown").out
    assert "replaced within this call" in shown
    reported = nearsim.succeed("ingest", first, second, third, "--json").document()
    names = ("read", "inserted", "updated", "unchanged", "rejected", "replaced")
    assert [reported[name] for name in names] == [5, 3, 1, 1, 0, 1]
    assert "id 'a' replaces that of" in nearsim.fail("ingest", first, second, "--strict", "-c", "strict")
    assert nearsim.succeed("ingest", second, "--json", "--strict").document()["replaced"] == 0
