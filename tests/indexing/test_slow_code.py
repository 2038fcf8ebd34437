"""Source code that takes too long to lex: rejected by an ingest, without features if SQL stores it."""

import json
from pathlib import Path

import pytest

from nearsim_db import Index
from nearsim_db.readers import Source
from nearsim_db.similarity import presets
from nearsim_db.store.driver import Engine
from tests.builders.command_line import write_jsonl

pytestmark = pytest.mark.slow("spends budgets of time")

HOSTILE = "int a " * 5_000
PROGRAM = "class A { int sum(int[] xs) { int s = 0; for (int x : xs) s += x; return s; } }"


def test_ingest_rejects_it_by_name(index: Index, tmp_path: Path) -> None:
    index.create_profile("default", presets.load("code-copies"))
    texts = {"hostile": HOSTILE, "a": PROGRAM, "b": PROGRAM}
    path = write_jsonl(tmp_path / "in.jsonl", ({"id": name, "text": text} for name, text in texts.items()))
    summary = index.ingest(Source([path]), rejects=tmp_path / "rejects.jsonl")
    (reject,) = map(json.loads, (tmp_path / "rejects.jsonl").read_text().splitlines())
    assert (summary.read, summary.rejected, summary.inserted) == (3, 1, 2)
    assert (reject["id"], "as source code in java" in reject["reason"]) == ("hostile", True)
    assert [(pair.left, pair.right) for pair in index.pairs()] == [("a", "b")]


def test_stored_by_sql_it_is_a_document_without_features(index: Index, engine: Engine) -> None:
    index.create_profile("default", presets.load("code-copies"))
    index.add([("a", PROGRAM), ("b", PROGRAM)])
    with engine.begin() as connection:
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body)"
            " SELECT collection_id, 'hostile', %s FROM nearsim.collection",
            (HOSTILE,),
        )
    index.build()
    stats = index.stats()
    assert (stats["indexed"], stats["no_features"], stats["pairs"]) == (3, 1, 1)
