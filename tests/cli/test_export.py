"""nearsim export, and rows of answers in compressed files and Parquet."""

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from nearsim_db import Index
from nearsim_db.errors import InputError
from nearsim_db.readers.writers.file_format import FileFormat
from tests.builders.command_line import BRIDGE, HARVEST, STORIES, STORM, STORM_AGAIN, CommandLine, write_jsonl
from tests.builders.selection import some_combinations

DOCUMENTS: list[dict[str, object]] = [
    {
        "id": "storm",
        "title": "=Storm",
        "text": STORM,
        "published_at": "2024-05-31T18:00:00+02:00",
        "cluster": "mine",
    },
    {"id": "storm-again", "text": STORM_AGAIN, "source": "wire", "pages": 1.5},
    {"id": "storm-twin", "text": STORM, "tags": ["a", {"b": 1}]},
    {"id": "harvest", "text": HARVEST, "vector": [0.5, 1.0], "pages": 3},
    {"id": "bridge", "text": BRIDGE, "flag": True},
]
SURVIVORS = ["storm", "harvest", "bridge"]
DUPLICATES = ["storm-again", "storm-twin"]


@pytest.fixture
def exported(nearsim: CommandLine, tmp_path: Path) -> CommandLine:
    nearsim.succeed("ingest", write_jsonl(tmp_path / "in.jsonl", DOCUMENTS), "--quiet")
    return nearsim


def test_documents_with_their_clusters_and_columns(exported: CommandLine, tmp_path: Path) -> None:
    for keep, ids in (
        ("survivors", SURVIVORS),
        ("duplicates", DUPLICATES),
        ("all", ["storm", *DUPLICATES, "harvest", "bridge"]),
    ):
        rows = exported.succeed("export", "--keep", keep).rows()
        assert [row["id"] for row in rows] == ids
        assert [row["survivor"] for row in rows] == ["storm" if "storm" in name else None for name in ids]
    assert [row["id"] for row in exported.succeed("export").rows()] == SURVIVORS
    first, again, *_ = exported.succeed("export", "--keep", "all").rows()
    assert first == {
        **{name: DOCUMENTS[0][name] for name in ("id", "title", "text")},
        "source": None,
        "url": None,
        "published_at": "2024-05-31T16:00:00+00:00",
        "attributes.cluster": "mine",
        "cluster": again["cluster"],
        "survivor": "storm",
    }
    assert (again["source"], again["pages"], "attributes.cluster" in again) == ("wire", 1.5, False)

    table = tmp_path / "all.csv.gz"
    shown = exported.succeed("export", "--keep", "all", "--output", table)
    assert shown.err.endswith(f"writing: 5 documents, done in 0.0 s\nwrote documents to {table}: 5\n")
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(table.read_bytes()).decode(), newline="")))
    assert list(rows[0]) == [
        *("id", "title", "text", "source", "url", "published_at"),
        *("attributes.cluster", "flag", "pages", "tags", "cluster", "survivor"),
    ]
    assert [row["title"] for row in rows] == ["'=Storm", "", "", "", ""]
    assert [row["tags"] for row in rows] == ["", "", '["a",{"b":1}]', "", ""]

    parquet = tmp_path / "all.parquet"
    exported.succeed("export", "--keep", "all", "-o", parquet, "--columns", "vector,pages", "--columns", "id")
    assert pyarrow.parquet.read_table(parquet).to_pylist() == [
        {"vector": document.get("vector"), "pages": document.get("pages"), "id": document["id"]}
        for document in DOCUMENTS
    ]
    named = exported.succeed("export", "--columns", "attributes,attributes.cluster,doc_id", "-n", "1").rows()
    assert named == [{"attributes": {"cluster": "mine"}, "attributes.cluster": "mine", "doc_id": 1}]


def test_a_cluster_whose_survivor_was_deleted_keeps_another(exported: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM nearsim.document WHERE external_id = 'storm'")
        connection.execute("UPDATE nearsim.document SET body = 'a new text' WHERE external_id = 'bridge'")
    done = exported.succeed("export", "--columns", "id,survivor")
    assert done.rows() == [
        {"id": "storm-again", "survivor": "storm-again"},
        {"id": "harvest", "survivor": None},
        {"id": "bridge", "survivor": None},
    ]
    assert "warning: 1 document is not indexed yet, so duplicates may be missing" in done.err
    assert [row["id"] for row in exported.succeed("export", "--keep", "duplicates").rows()] == ["storm-twin"]


def test_export_in_python(exported: CommandLine, tmp_path: Path) -> None:
    path, printed = tmp_path / "api.csv", tmp_path / "command.csv"
    exported.succeed("export", "--keep", "all", "--columns", "id,pages,survivor", "--output", printed, "-q")
    with Index.connect(exported.environment["NEARSIM_DATABASE_URL"]) as index:
        assert index.export(path, keep="all", columns=["id", "pages", "survivor"]) == 5
        assert path.read_bytes() == printed.read_bytes()
        assert index.export(tmp_path / "two.parquet", keep="duplicates", limit=1) == 1
        assert pyarrow.parquet.read_table(tmp_path / "two.parquet")["id"].to_pylist() == DUPLICATES[:1]
        exact = tmp_path / "exact.csv"
        index.export(exact, columns=["title"], format=FileFormat.CSV_EXACT)
        assert exact.read_text().splitlines()[1] == "=Storm"
        for name, more in (
            ("wrong.xml", {}),
            ("absent.csv", {"columns": ["size"]}),
            ("limited.csv", {"limit": 0}),
        ):
            with pytest.raises(InputError):
                index.export(tmp_path / name, **more)
            assert not (tmp_path / name).exists()
        assert index.warnings == []


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
    nearsim.succeed("collection", "create", "empty")
    nearsim.succeed("pairs", "-c", "empty", "-o", path)
    assert pyarrow.parquet.read_table(path).column_names[:3] == ["left", "right", "similarity"]


def test_events_are_not_followed_into_compressed_files(nearsim: CommandLine) -> None:
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
    assert nearsim.succeed("document", "get", "1", "--json").document()["body"] == "Die Fähre fährt wieder."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('colour = "red"', "unknown option 'colour'"),
        ("delimiter = 3", "delimiter = 3; it must be a string"),
        ('follow_links = "yes"', "must be true or false"),
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
