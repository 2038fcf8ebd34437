"""Vectors in a .parquet file, joined to the documents by id."""

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import Unreadable
from nearsim_db.readers.document_maker import checked_id
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.parquet import open_parquet, rows_of
from nearsim_db.readers.source import Source
from nearsim_db.readers.vector_file import VectorFile
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import ReadDocument, Reject

_SHOWN_IDS = 3


class VectorTable(VectorFile):
    """Columns id and vector; the vectors are moved to a temporary file, so that memory has only ids and offsets."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._numbers = tempfile.TemporaryFile()  # noqa: SIM115  closed on exit
        self._ends = array("q", [0])  # of each row's numbers
        self._rows: dict[str, int] = {}
        self._reasons: dict[int, str] = {}
        try:
            self._load()
        except BaseException:
            self._numbers.close()
            raise

    def __exit__(self, *error: object) -> None:
        self._numbers.close()

    def check(self, source: Source) -> None:
        """Do nothing: ids can be matched only while records are read."""

    def joined(self, records: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument | Reject]:
        matched = bytearray(len(self._rows))
        without_vector: list[str] = []
        for record in records:
            row = self._rows.get(_id_of(record) or "")
            if row is not None:
                matched[row] = True
            if isinstance(record, Reject):
                yield record
            elif row is None:
                without_vector.append(record.document.external_id)
                yield record
            else:
                yield self._with_row(record, row)
        unmatched = [name for name, row in self._rows.items() if not matched[row]]
        self.warnings = (
            *_warning(without_vector, "documents have no vector in", self.path),
            *_warning(unmatched, "ids without a document are in", self.path),
        )

    def _with_row(self, record: ReadDocument, row: int) -> ReadDocument | Reject:
        if row in self._reasons:
            return Reject(record.file, record.line, self._reasons[row], record.document.external_id)
        begin, end = self._ends[row : row + 2]
        content = os.pread(self._numbers.fileno(), end - begin, begin)
        vector = array("f", content) if content else None
        return replace(record, document=replace(record.document, vector=vector))

    def _load(self) -> None:
        with closing(open_parquet(self.path)) as opened:
            missing = {"id", "vector"}.difference(opened.schema_arrow.names)
            if missing:
                raise InputError(f"{self.path} has no column {' and no column '.join(sorted(missing))}")
            for number, values in enumerate(rows_of(opened, self.path, ["id", "vector"]), 1):
                if values is None:
                    raise InputError(f"{self.path}, row {number:,}: {InputFile(self.path).too_long}")
                external_id = self._checked_id(values, number)
                if self._rows.setdefault(external_id, number - 1) != number - 1:
                    earlier = self._rows[external_id] + 1
                    raise InputError(
                        f"duplicate id {external_id!r} in {self.path}, rows {earlier:,} and {number:,}"
                    )
                self._ends.append(
                    self._ends[-1] + self._numbers.write(self._content(values["vector"], number))
                )
        self._numbers.flush()

    def _checked_id(self, values: dict[str, Any], number: int) -> str:
        try:
            return checked_id(values, "id")
        except InputError as error:
            raise InputError(f"{self.path}, row {number:,}: {error}") from None

    def _content(self, value: object, number: int) -> bytes:
        try:
            if isinstance(value, Unreadable):
                raise InputError(f"cannot read row {number:,} of {self.path}: {value.reason}")
            vector = checked_vector(value, f"row {number:,} of {self.path}")
        except InputError as error:
            self._reasons[number - 1] = str(error)
            return b""
        return b"" if vector is None else vector.tobytes()


def _id_of(record: ReadDocument | Reject) -> str | None:
    return record.external_id if isinstance(record, Reject) else record.document.external_id


def _warning(ids: list[str], what: str, path: Path) -> tuple[str, ...]:
    if not ids:
        return ()
    shown = ", ".join(map(repr, ids[:_SHOWN_IDS])) + (" ..." if len(ids) > _SHOWN_IDS else "")
    return (f"{len(ids):,} {what} {path}: {shown}",)
