"""nearsim ingest and build: every record is accounted for."""

import gzip
import json
import os
from pathlib import Path

from tests.builders.command_line import (
    BRIDGE,
    HARVEST,
    STORM,
    CommandLine,
    unlike_any_other,
    write_jsonl,
)


def test_records_of_a_truncated_file_are_kept_and_indexed(nearsim: CommandLine, tmp_path: Path) -> None:
    lines = "".join(json.dumps({"id": n, "text": unlike_any_other(n)}) + "\n" for n in range(3_000))
    whole = gzip.compress(lines.encode(), mtime=0)
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    outcome = nearsim.run("ingest", path, "--json")
    reported = outcome.document()
    assert outcome.exit_code == 1 and "truncated" in reported["error"] and 0 < reported["inserted"] < 3_000
    assert nearsim.succeed("stats", "--json").document()["indexed"] == reported["inserted"]


def test_columns_are_mapped_by_options(nearsim: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"key,head,main,paper,link,day\nk1,Storm,{STORM},Herald,http://h/1,2024-05-31\n")
    fields = ("id", "title", "body", "source", "url", "published")
    names = zip(fields, ("key", "head", "main", "paper", "link", "day"), strict=True)
    nearsim.succeed("ingest", path, *(word for one, name in names for word in (f"--{one}-field", name)), "-q")
    stored = nearsim.succeed("get", "k1").document()
    expected = ["k1", "Storm", STORM, "Herald", "http://h/1"]
    assert [stored[name] for name in ("id", "title", "body", "source", "url")] == expected
    assert stored["published_at"].startswith("2024-05-31T00:00:00")


def test_rejects_of_a_folder_are_counted_and_named(nearsim: CommandLine, tmp_path: Path) -> None:
    (folder := tmp_path / "in").mkdir()
    for name in ("a.bin", "b.conf", "c.so"):
        (folder / name).write_text(STORM)
    (folder / "d.txt").symlink_to(folder / "a.bin")
    (folder / "e.txt").write_text(HARVEST)
    said = nearsim.succeed("ingest", folder).err
    assert "4 of 5 records were rejected (3: not a text file (" in said and "1: a symbolic link" in said
    for name in ("f.txt", "g.txt", "h.txt"):
        (folder / name).write_text(STORM)
    assert "were rejected" not in nearsim.succeed("ingest", folder).err
    summary = nearsim.succeed("ingest", folder, "--follow-links", "--json").document()
    assert (summary["inserted"], summary["unchanged"], summary["rejected"]) == (1, 4, 3)
    (pair, *_) = nearsim.succeed("pairs", "--format", "jsonl").rows()
    assert (pair["left"], pair["right"]) == ("f.txt", "g.txt")


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


def test_records_are_numbered_where_their_file_has_no_ids(nearsim: CommandLine, tmp_path: Path) -> None:
    without = write_jsonl(tmp_path / "1.jsonl", [{"text": STORM}, {"text": HARVEST}])
    partly = write_jsonl(tmp_path / "2.jsonl", [{"id": 5, "text": BRIDGE}, {"text": HARVEST}])
    (table := tmp_path / "3.csv").write_text(f"text\n{STORM}\n{STORM}\n")
    ran = nearsim.succeed("ingest", without, partly, table, "--json")
    assert [ran.document()[name] for name in ("read", "inserted", "rejected")] == [6, 5, 1]
    assert "warning: 4 records without an id: their ids are file and line" in ran.err
    assert [row["id"] for row in nearsim.succeed("export", "--keep", "all").rows()] == [
        *(f"{without}:{line}" for line in (1, 2)), "5", *(f"{table}:{line}" for line in (2, 3)),
    ]  # fmt: skip
    assert nearsim.succeed("ingest", without, "--json").document()["unchanged"] == 2
    assert "none of the 2 records is usable" in nearsim.fail(
        "ingest", without, "--id-field", "key", "-c", "other"
    )


def test_records_that_replace_those_of_another_file_are_counted(nearsim: CommandLine, tmp_path: Path) -> None:
    first = write_jsonl(tmp_path / "1.jsonl", [{"id": "a", "text": STORM}, {"id": "b", "text": HARVEST}])
    second = write_jsonl(tmp_path / "2.jsonl", [{"id": "a", "text": BRIDGE}, {"id": "b", "text": HARVEST}])
    reported = nearsim.succeed("ingest", first, second, "--json").document()
    names = ("read", "inserted", "updated", "unchanged", "rejected", "replaced")
    assert [reported[name] for name in names] == [4, 2, 1, 1, 0, 1]
    assert "id 'a' replaces that of" in nearsim.fail("ingest", first, second, "--strict", "-c", "strict")
    assert nearsim.succeed("ingest", second, "--json", "--strict").document()["replaced"] == 0
