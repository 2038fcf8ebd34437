"""Costs of reading a file: what a document costs in each part of it."""

from pathlib import Path

import psutil

from benchmarks import reading
from benchmarks.corpus import Corpus, write_corpus


def test_costs_are_those_of_a_document_since_the_reading_before() -> None:
    before, after = reading.Reading(100, 1.0, 2.0, 5_000), reading.Reading(300, 1.004, 2.5, 405_000)
    assert after.since(before) == "| 300 | 20.0 | 2500.0 | 2,000 |"


def test_a_file_is_ingested_with_a_reading_for_each_part(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl.gz"
    write_corpus(Corpus(300, seed=1).documents(), file, None)
    readings = reading.ingest_parts(database_url, psutil.Process(), file, [150])
    assert (readings[0].documents, readings[-1].documents) == (0, 300)
    assert readings[-1].log_bytes > readings[0].log_bytes
