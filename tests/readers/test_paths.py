"""What is read: folders of records, patterns, other encodings and delimiters, compression that no suffix names."""

import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from nearsim_db.errors import InputError
from nearsim_db.readers import Reading, Source
from nearsim_db.readers.decoding import checked_encoding, in_utf8, is_utf8
from nearsim_db.records import ReadDocument, Reject
from tests.builders.read_files import as_nobody


def fill(folder: Path, *names: str) -> Path:
    """Write files of one record each, whose text is the name."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        record = json.dumps({"id": name, "text": name}) + "\n"
        path.write_text(f"id,text\n{name},{name}\n" if path.suffix == ".csv" else record)
    return folder


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """A folder that the account nobody may read, which it may not in pytest's."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


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
    assert rejected(source) == ["link.jsonl"]
    assert [path.name for path in source.other_files] == ["README.md", "b.bin"]
    others, links = source.notes
    assert "2 files of another kind" in others and "README.md" in others
    assert "is not read: " in links and "link.jsonl (a symbolic link; --follow-links" in links
    assert texts(Source([folder], reading=Reading(follow_links=True))) == ["a.jsonl", "a.jsonl"]


def test_a_folder_is_read_as_what_most_of_its_files_are(tmp_path: Path) -> None:
    source = Source([fill(tmp_path, "a.txt", "b.txt", "logo.png")])
    assert texts(source) == [json.dumps({"id": name, "text": name}) + "\n" for name in ("a.txt", "b.txt")]
    assert [path.name for path in source.other_files] == ["logo.png"]


def test_a_text_of_another_suffix_is_named_with_the_option_that_reads_it(tmp_path: Path) -> None:
    folder = fill(tmp_path, "a.txt", "b.rst", "logo.png")
    others, remedy = Source([folder]).notes
    assert "b.rst" in others
    assert remedy == f"--input-format txt reads {folder}/b.rst and all other files of the folders as texts"
    assert len(texts(Source([folder], reading=Reading(format=".txt")))) == 3


def test_no_option_for_texts_is_named_beside_records(tmp_path: Path) -> None:
    (note,) = Source([fill(tmp_path, "a.jsonl", "b.rst")]).notes
    assert "b.rst" in note and "--input-format" not in note


def test_a_folder_of_logs_is_refused_with_the_option_that_reads_them(tmp_path: Path) -> None:
    folder = fill(tmp_path, "sub/a.log")
    with pytest.raises(
        InputError, match=r"--input-format txt reads .*a\.log and all its other files as texts"
    ):
        Source([folder])
    with pytest.raises(InputError, match="--input-format txt reads it as a text"):
        Source([folder / "sub/a.log"])
    assert len(texts(Source([folder], reading=Reading(format=".txt")))) == 1


def test_records_are_read_among_more_texts(tmp_path: Path) -> None:
    source = Source([fill(tmp_path, "README.md", "NOTES.md", "index.csv")])
    assert texts(source)[-1] == "index.csv" and len(texts(source)) == 3
    assert (source.other_files, rejected(source)) == ((), [])


def test_a_folder_of_several_kinds_of_records_is_read_whole(tmp_path: Path) -> None:
    fill(tmp_path, "a.jsonl", "README.md")
    pyarrow.parquet.write_table(pyarrow.table({"id": ["b"], "text": ["of a table"]}), tmp_path / "b.parquet")
    source = Source([tmp_path])
    assert [read.document.body for read in source if isinstance(read, ReadDocument)] == [
        "a.jsonl",
        "of a table",
    ]
    assert [path.name for path in source.other_files] == ["README.md"]


@pytest.mark.parametrize("pattern", ["**/*.jsonl", "*/*.jsonl", "*/a.jsonl", "**", "sub/**/a.jsonl"])
@pytest.mark.parametrize("mode", [0o000, 0o404, 0o101])
def test_a_pattern_names_a_folder_that_cannot_be_read(nobodys: Path, pattern: str, mode: int) -> None:
    for place in (nobodys, nobodys / "sub"):
        fill(place, "open/a.jsonl")
        (place / "closed").mkdir()
        (place / "closed").chmod(mode)
    with as_nobody(), pytest.raises(InputError, match=r"closed, where .* may match files, cannot be read"):
        Source([nobodys / pattern])


@pytest.mark.parametrize("name", ["folder", "file.jsonl"])
def test_what_is_named_and_cannot_be_read_is_an_error(nobodys: Path, name: str) -> None:
    (nobodys / "folder").mkdir()
    fill(nobodys, "file.jsonl")
    (nobodys / name).chmod(0o000)
    with as_nobody(), pytest.raises(InputError, match=rf"cannot read .*{name}: Permission denied; "):
        Source([nobodys / name])


@pytest.mark.parametrize("pattern", ["o*/*.jsonl", "*.jsonl"])
def test_a_folder_where_a_pattern_matches_nothing_may_be_closed(nobodys: Path, pattern: str) -> None:
    fill(nobodys, "open/a.jsonl", "a.jsonl")
    (nobodys / "closed").mkdir(mode=0)
    with as_nobody():
        assert len(Source([nobodys / pattern]).paths) == 1


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


TABLE = "id;text\n1;Café déjà\n"


def bodies(source: Source) -> list[str | None]:
    return [read.document.body for read in source if isinstance(read, ReadDocument)]


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(1, 5),
    st.sampled_from(["utf-16", "utf-8", "gb18030"]),
)
def test_text_is_converted_in_pieces_of_any_size(text: str, size: int, encoding: str) -> None:
    content = text.encode(encoding)
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert b"".join(in_utf8(pieces, encoding)).decode() == text


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 20))
def test_cut_text_is_recognised(text: str, length: int) -> None:
    assert is_utf8(text.encode()[:length])


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_files_of_other_encodings_and_delimiters(tmp_path: Path, encoding: str, suffix: str) -> None:
    path = tmp_path / f"a.csv{suffix}"
    content = TABLE.encode(encoding)
    path.write_bytes(gzip.compress(content) if suffix else content)
    source = Source([path], reading=Reading(encoding=checked_encoding(encoding), delimiter=";"))
    assert (bodies(source), source.warnings) == (["Café déjà"], ())


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path in paths:
        path.write_bytes(TABLE.replace(";", ",").encode("cp1252"))
    source = Source(paths)
    assert bodies(source) == ["Caf\ufffd d\ufffdj\ufffd"] * 2
    assert source.warnings == (
        f"{paths[0]} (and 1 other file) is not UTF-8, and characters were replaced; if it is Latin-1 or Windows-1252, "
        "give --encoding cp1252",
    )


def test_bytes_that_an_encoding_lacks_are_replaced_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,text\n1,a\x81b\n")
    (read,) = Source([path], reading=Reading(encoding="cp1252"))
    assert isinstance(read, ReadDocument)
    assert (read.document.body, read.replaced) == ("a\ufffdb", 1)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_content_is_recognised_without_a_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(compress(b'{"id": 1, "text": "t"}\n'))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    for place, name in ((path, str(path)), (Path("-"), "standard input")):
        source = Source([place])
        assert bodies(source) == ["t"]
        (warning,) = source.warnings
        assert warning.startswith(f"{name} is compressed with ") and warning.endswith(
            ", and was decompressed"
        )


def test_the_format_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "export.dat"
    path.write_text("id\ttext\n1\tt\n")
    assert bodies(Source([path], reading=Reading(format=".tsv"))) == ["t"]
    with pytest.raises(InputError, match=r"unknown file type of .* name its format with --input-format"):
        Source([path])


@pytest.mark.parametrize("name", ["latin-99", "rot13", "zlib"])
def test_only_text_encodings_are_known(name: str) -> None:
    with pytest.raises(InputError, match="is not a text encoding; use a name such as"):
        checked_encoding(name)
