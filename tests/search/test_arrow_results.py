"""Results as rows and Arrow tables: the same values as the records, with types also where there are none."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime

import pyarrow
import pytest

from nearsim_db import Document, Index
from nearsim_db.records import ClusterMember, Pair, arrow_table
from tests.builders.command_line import STORIES

DATE = datetime(2024, 5, 31, 12, tzinfo=UTC)


@pytest.fixture
def index(database_url: str) -> Index:
    with Index.connect(database_url) as index:
        index.add([Document(name, None, text, published_at=DATE) for name, text in STORIES.items()])
    return Index.connect(database_url)


def test_tables_have_the_values_of_the_records(index: Index) -> None:
    with index:
        index.pin("harvest", "bridge", "a trial", by="me")
        for records, table, rows in (
            (list(index.pairs()), index.pairs().to_arrow(), index.pairs().rows()),
            (list(index.cluster("storm")), index.cluster("storm").to_arrow(), index.cluster("storm").rows()),
            (list(index.verdicts()), index.verdicts().to_arrow(), index.verdicts().rows()),
            (index.similar("storm"), index.similar("storm").to_arrow(), index.similar("storm").rows()),
        ):
            assert rows == [asdict(one) for one in records] and rows
            assert table.to_pylist() == rows
        clusters = index.clusters().to_arrow().to_pylist()
        assert [(one["survivor"], set(one["members"])) for one in clusters] == [
            ("storm", {"storm", "storm-again", "storm-twin"}),
            ("harvest", {"harvest", "bridge"}),
        ]


def test_an_empty_table_has_the_columns_and_types(database_url: str) -> None:
    with Index.connect(database_url) as index:
        table = index.pairs().to_arrow()
    assert table.num_rows == 0
    assert table.schema.field("similarity").type == pyarrow.float64()
    assert table.schema.field("left").type == pyarrow.string()
    members = arrow_table([], ClusterMember)
    assert members.schema.field("published_at").type == pyarrow.timestamp("us", "UTC")


def test_what_was_read_before_is_not_in_the_table(index: Index) -> None:
    with index:
        stream = index.pairs()
        first = next(stream)
        assert isinstance(first, Pair)
        assert first not in [Pair(**row) for row in stream.rows()]
        left = index.pairs()
        next(left)
        left.close()
        assert list(left) == []


def test_tables_need_pyarrow(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with index, pytest.raises(ImportError, match=r"nearsim-db\[parquet\]"):
        index.pairs().to_arrow()
