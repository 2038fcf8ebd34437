"""nearsim dedupe with a folder as output: a file for each input file, with its name, format and order."""

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nearsim_db.deduplication.folders import COMPLETE
from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine

TEXTS = {"one": [STORM, HARVEST], "two": [STORM_AGAIN, BRIDGE], "three": [HARVEST]}
KEPT = {"one": [STORM, HARVEST], "two": [BRIDGE], "three": []}


def lines(texts: list[str]) -> bytes:
    return b"".join(json.dumps({"text": text, "n": [1.50]}).encode() + b"\n" for text in texts)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus of three shards in nested folders, each compressed in another way."""
    folder = tmp_path / "corpus"
    (folder / "a/b").mkdir(parents=True)
    (folder / "1.jsonl.gz").write_bytes(gzip.compress(lines(TEXTS["one"])))
    (folder / "a/2.jsonl.bz2").write_bytes(bz2.compress(lines(TEXTS["two"])))
    (folder / "a/b/3.jsonl.xz").write_bytes(lzma.compress(lines(TEXTS["three"])))
    return folder


def read(folder: Path) -> dict[str, bytes]:
    opened = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
    return {
        path.relative_to(folder).as_posix(): opened[path.suffix](path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != COMPLETE
    }


WRITTEN = {
    "1.jsonl.gz": lines(KEPT["one"]),
    "a/2.jsonl.bz2": lines(KEPT["two"]),
    "a/b/3.jsonl.xz": lines(KEPT["three"]),
}


@pytest.mark.parametrize("given", ["", "**/*.jsonl.*"])
def test_a_shard_in_is_a_shard_out(nearsim: CommandLine, corpus: Path, tmp_path: Path, given: str) -> None:
    counts = nearsim.succeed("dedupe", corpus / given, "-o", f"{tmp_path}/out/", "--json").document()
    assert (counts["read"], counts["unique"], counts["duplicates"]) == (5, 3, 2)
    assert read(tmp_path / "out") == WRITTEN


def test_shards_may_replace_their_inputs(nearsim: CommandLine, corpus: Path) -> None:
    nearsim.succeed("dedupe", corpus, "-o", corpus)
    assert read(corpus) == WRITTEN


def test_an_input_with_rejects_is_not_replaced(nearsim: CommandLine, corpus: Path) -> None:
    (corpus / "4.jsonl.gz").write_bytes(gzip.compress(b"{broken\n"))
    before = read(corpus)
    assert "nothing was written" in nearsim.fail("dedupe", corpus, "-o", corpus)
    assert read(corpus) == before


def test_files_of_two_folders_keep_their_folders(nearsim: CommandLine, tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.csv").write_text(f"text,n\n{name} {STORM},1\n")
    nearsim.succeed("dedupe", tmp_path / "x/part.csv", tmp_path / "y", "-o", f"{tmp_path}/out/")
    found = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.csv")}
    assert found == {"x/part.csv", "y/part.csv"}
    assert (tmp_path / "out/y/part.csv").read_text() == "text,n\n"


def test_tables_of_a_folder_are_shards(nearsim: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "train").mkdir(parents=True)
    for name, texts in (("train/0", TEXTS["one"]), ("train/1", TEXTS["two"]), ("2", TEXTS["three"])):
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), folder / f"{name}.parquet")
    nearsim.succeed("dedupe", folder, "-o", f"{tmp_path}/out/")
    found = {
        name: pyarrow.parquet.read_table(tmp_path / f"out/{name}.parquet")["text"].to_pylist()
        for name in ("2", "train/0", "train/1")
    }
    assert found == {"2": [HARVEST], "train/0": [STORM], "train/1": [BRIDGE]}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.jsonl", "a.jsonl"], "name each file once"),
        (["a.txt"], "name an output file, not a folder"),
        (["-"], "standard input and pipes have no file name"),
    ],
)
def test_inputs_without_shards_are_refused(
    nearsim: CommandLine, tmp_path: Path, names: list[str], message: str
) -> None:
    for name in ("a.jsonl", "a.txt"):
        (tmp_path / name).write_text('{"text": "x"}\n')
    paths = [name if name == "-" else tmp_path / name for name in names]
    given = b'{"text": "x"}\n'
    assert message in nearsim.fail("dedupe", *paths, "-o", f"{tmp_path}/out/", stdin=given)
    assert not (tmp_path / "out").exists()


def test_a_format_is_refused_for_a_folder(nearsim: CommandLine, corpus: Path, tmp_path: Path) -> None:
    command = ("dedupe", corpus, "-o", f"{tmp_path}/out/", "--output-format", "csv")
    assert "--output-format is for one file" in nearsim.fail(*command, exit_code=2)
