"""nearsim export: which documents, which columns, which formats."""

import csv
import gzip
import io
from pathlib import Path

import psycopg
import pyarrow.parquet
import pytest

from nearsim_db import Index
from nearsim_db.errors import InputError
from nearsim_db.readers.writers.file_format import FileFormat
from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl

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
