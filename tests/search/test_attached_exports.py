"""Exports of attached collections: texts are read in one statement, whatever their number."""

import json
from pathlib import Path

from nearsim_db import Index
from nearsim_db.readers.writers.file_format import Encoding, FileFormat
from nearsim_db.search.exports import ExportColumns, Target, write_export
from nearsim_db.store.database import Database
from tests.builders.followed_table import words
from tests.builders.workers import Application

# A call for each text takes milliseconds, as it looks up the table in the catalogue.
REFUSE_SINGLE_TEXTS = """
CREATE OR REPLACE FUNCTION nearsim.source_texts(attached nearsim_index.attachment, external_ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'a text is read by itself'; END$$
"""


def export(database: Database, collection: str, path: Path) -> dict[str, str | None]:
    """The exported texts by id."""
    write_export(database, collection, None, "all", ExportColumns(), Target(path, Encoding(FileFormat.JSONL)))
    records = map(json.loads, path.read_text().splitlines())
    return {record["id"]: record["text"] for record in records}


def test_export_reads_attached_texts_in_one_statement(
    story: Index, app: Application, database: Database, tmp_path: Path
) -> None:
    app.execute(REFUSE_SINGLE_TEXTS)
    texts = {str(number): words(number % 2, number) for number in range(1, 11)}
    assert export(database, story.collection, tmp_path / "all.jsonl") == texts


def test_a_deleted_row_is_exported_without_text_until_its_document_is_deleted(
    story: Index, app: Application, database: Database, tmp_path: Path
) -> None:
    app.execute("DELETE FROM story WHERE id = 3")
    texts = export(database, story.collection, tmp_path / "all.jsonl")
    assert texts["3"] is None and texts["4"] == words(0, 4)
