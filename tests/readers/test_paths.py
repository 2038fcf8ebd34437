"""Folders of records, nested folders and patterns: which files are read, in which order, and what is left out."""

import json
from pathlib import Path

import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers import Reading, Source
from nearsim_db.records import ReadDocument, Reject


def fill(folder: Path, *names: str) -> Path:
    """Write files of one record each, whose text is the name."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        record = json.dumps({"id": name, "text": name}) + "\n"
        path.write_text(f"id,text\n{name},{name}\n" if path.suffix == ".csv" else record)
    return folder


def texts(source: Source) -> list[str | None]:
    return [one.document.body for one in source if isinstance(one, ReadDocument)]


def rejected(source: Source) -> list[str]:
    return [Path(one.file).name for one in source if isinstance(one, Reject)]


def test_a_folder_of_records_is_its_files_in_order(tmp_path: Path) -> None:
    folder = fill(tmp_path, "b.jsonl", "a.csv", "sub/deep/c.ndjson", ".hidden.jsonl", "_SUCCESS")
    source = Source([folder])
    assert source.paths == tuple(folder / name for name in ("a.csv", "b.jsonl", "sub/deep/c.ndjson"))
    assert texts(source) == ["a.csv", "b.jsonl", "sub/deep/c.ndjson"]
    assert rejected(source) == []
    assert source.total_bytes == source.bytes_read


def test_other_files_of_a_folder_of_records_are_rejected(tmp_path: Path) -> None:
    folder = fill(tmp_path, "a.jsonl", "README.md", "b.bin")
    (folder / "link.jsonl").symlink_to(folder / "a.jsonl")
    source = Source([folder])
    assert texts(source) == ["a.jsonl"]
    assert rejected(source) == ["README.md", "b.bin", "link.jsonl"]
    assert texts(Source([folder], reading=Reading(follow_links=True))) == ["a.jsonl", "a.jsonl"]


def test_a_folder_is_read_as_what_most_of_its_files_are(tmp_path: Path) -> None:
    source = Source([fill(tmp_path, "a.txt", "b.txt", "index.csv")])
    assert (texts(source), rejected(source)) == (
        [json.dumps({"id": name, "text": name}) + "\n" for name in ("a.txt", "b.txt")],
        ["index.csv"],
    )


def test_all_files_of_a_folder_are_of_the_format_given(tmp_path: Path) -> None:
    folder = fill(tmp_path, "part-0", "part-1.log")
    assert texts(Source([folder], reading=Reading(format=".jsonl"))) == ["part-0", "part-1.log"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.jsonl", ["a.jsonl", "b.jsonl"]),
        ("**/*.jsonl", ["a.jsonl", "b.jsonl", "x/c.jsonl", "x/y/d.jsonl"]),
        ("**", ["a.jsonl", "b.jsonl", "x/c.jsonl", "x/y/d.jsonl"]),
        ("x*", ["x/c.jsonl", "x/y/d.jsonl"]),
        ("?[!b].jsonl", []),
        ("[a].jsonl", ["a.jsonl"]),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, names: list[str]) -> None:
    fill(tmp_path, "a.jsonl", "b.jsonl", "x/c.jsonl", "x/y/d.jsonl")
    if names:
        assert texts(Source([tmp_path / pattern])) == names
    else:
        with pytest.raises(InputError, match="no file matches"):
            Source([tmp_path / pattern])


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    fill(tmp_path, "a[1].jsonl", "a1.jsonl")
    assert texts(Source([tmp_path / "a[1].jsonl"])) == ["a[1].jsonl"]
