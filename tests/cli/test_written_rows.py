"""Rows of pairs, clusters, checks and events in compressed files and Parquet: the same as on standard output."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from tests.builders.command_line import STORIES, CommandLine
from tests.builders.selection import some_combinations

OPENED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".zst": lambda content: zstandard.ZstdDecompressor().decompressobj().decompress(content),
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}


@some_combinations(("kind", ["jsonl", "csv", "json", "txt"]), ("compression", list(OPENED)))
def test_files_are_compressed_as_they_are_named(
    filled: CommandLine, stories: Path, tmp_path: Path, kind: str, compression: str
) -> None:
    path = tmp_path / f"out.{kind}{compression}"
    for command in (["pairs"], ["clusters"], ["check", stories], ["events"]):
        filled.succeed(*command, "-o", path)
        plain = filled.succeed(*command, "--format", "table" if kind == "txt" else kind).out
        assert OPENED[compression](path.read_bytes()).decode() == plain


def test_parquet_has_the_rows_of_csv_with_types(filled: CommandLine, stories: Path, tmp_path: Path) -> None:
    path, nearsim = tmp_path / "out.parquet", filled
    nearsim.succeed("pairs", "-o", path)
    pairs = pyarrow.parquet.read_table(path)
    rows = nearsim.succeed("pairs", "--format", "jsonl").rows()
    assert sorted(map(json.dumps, pairs.to_pylist())) == sorted(map(json.dumps, rows))
    assert pairs.schema.field("similarity").type == pyarrow.float64()
    assert pairs.schema.field("shared_bands").type == pyarrow.int64()
    assert pairs.schema.field("verified").type == pyarrow.bool_()
    nearsim.succeed("clusters", "-o", path)
    (cluster,) = nearsim.succeed("clusters", "--format", "jsonl").rows()
    members = pyarrow.parquet.read_table(path).to_pylist()
    assert [one["member"] for one in members] == cluster["members"]
    assert {one["cluster"] for one in members} == {cluster["cluster"]}
    nearsim.succeed("check", stories, "-o", path)
    assert pyarrow.parquet.read_table(path)["id"].to_pylist() == list(STORIES)
    nearsim.succeed("events", "-o", path)
    events = pyarrow.parquet.read_table(path)
    assert len(events) == len(nearsim.succeed("events", "--format", "jsonl").rows())
    assert events.schema.field("at").type == pyarrow.timestamp("us", "UTC")


def test_parquet_of_nothing_has_the_columns(nearsim: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    nearsim.succeed("pairs", "-o", path)
    assert pyarrow.parquet.read_table(path).column_names[:3] == ["left", "right", "similarity"]


def test_formats_that_contradict_the_name_are_refused(nearsim: CommandLine) -> None:
    assert "contradicts" in nearsim.fail("pairs", "-o", "a.parquet", "--format", "csv", exit_code=2)
    assert "contradicts" in nearsim.fail("pairs", "-o", "a.csv.gz", "--format", "jsonl", exit_code=2)
    assert "compressed internally" in nearsim.fail("pairs", "-o", "a.parquet.gz", exit_code=2)
    assert "not an output format" in nearsim.fail("events", "--follow", "-o", "a.jsonl.gz", exit_code=2)


def test_options_of_a_file_are_defaults(nearsim: CommandLine, tmp_path: Path) -> None:
    path, config, out = tmp_path / "in.csv", tmp_path / "options.toml", tmp_path / "out.csv"
    path.write_bytes("Nr;Meldung\n1;Die Fähre fährt wieder.\n".encode("cp1252"))
    config.write_text('id-field = "Nr"\nbody_field = "Meldung"\nencoding = "cp1252"\ndelimiter = ";"\n')
    counts = nearsim.succeed("dedupe", path, "--config", config, "-o", out, "--json").document()
    assert (counts["read"], counts["rejected"]) == (1, 0)
    assert "Fähre" in out.read_text("utf-8")
    assert "'Id'" in nearsim.fail("dedupe", path, "--config", config, "--id-field", "Id", "-o", out)
    nearsim.succeed("ingest", path, "--config", config, "--quiet")
    assert nearsim.succeed("get", "1", "--json").document()["body"] == "Die Fähre fährt wieder."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('colour = "red"', "unknown option 'colour'"),
        ("id_field", "cannot read the options"),
        (None, "cannot read"),
    ],
)
def test_unusable_options_are_refused(
    nearsim: CommandLine, tmp_path: Path, content: str | None, message: str
) -> None:
    config = tmp_path / "options.toml"
    if content is not None:
        config.write_text(content)
    command = ("dedupe", tmp_path / "in.jsonl", "--config", config, "--dry-run")
    assert message in nearsim.fail(*command, exit_code=2)
