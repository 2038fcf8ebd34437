"""The formats of output files, the suffixes that choose them, and the contract of a writer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from nearsim_db.errors import InputError
from nearsim_db.records import STANDARD_OUTPUT

Escape = Callable[[str], str]  # of text on a terminal


class RecordWriter(ABC):
    """Writes records to a binary stream, which it leaves open; memory does not grow with their number.

    `columns` are the names of the columns in order, if the format has a header or a schema; other keys of a record are
    not written. `close` completes what was written,
    `abandon` ends it incomplete.
    """

    def __init__(self, stream: BinaryIO, columns: Sequence[str]) -> None:
        self.stream = stream
        self.columns: tuple[str, ...] = tuple(columns)

    @abstractmethod
    def write(self, record: Mapping[str, object]) -> None:
        """Write a record of JSON values, datetimes and Decimals."""

    def close(self) -> None:
        """Write what is left."""
        return

    def abandon(self) -> None:
        """Release what the writer holds; nothing is written after it."""
        return


class FileFormat(StrEnum):
    """Format of a file of records; csv-exact writes text as stored that csv marks with an apostrophe.

    In a file of lines each line is a text, without any other column.
    """

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    CSV_EXACT = "csv-exact"
    TSV = "tsv"
    PARQUET = "parquet"
    LINES = "lines"


SUFFIXES = {
    ".jsonl": FileFormat.JSONL,
    ".ndjson": FileFormat.JSONL,
    ".json": FileFormat.JSON,
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.TSV,
    ".parquet": FileFormat.PARQUET,
}
COMPRESSIONS = (".gz", ".zst", ".bz2", ".xz")
DELIMITERS = {FileFormat.CSV: ",", FileFormat.CSV_EXACT: ",", FileFormat.TSV: "\t"}

_EXACT_SUFFIXES = (FileFormat.CSV, FileFormat.TSV)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file of records is written: `compression` is a suffix of COMPRESSIONS or empty.

    `delimiter` separates the columns of CSV; `exact` leaves text unmarked that a spreadsheet would run as a formula.
    `quote` encloses cells, by default the double quote; or it is `none`. `escape_character` is before one that is taken
    as it is.
    """

    format: FileFormat
    compression: str = ""
    delimiter: str = ","
    exact: bool = False
    quote: str | None = None
    escape_character: str | None = None


def file_type(path: Path) -> str:
    """Return the suffix that identifies the format, in lower case and without that of the compression."""
    name = path.name.lower()
    suffix = _suffix(name)
    return _suffix(name.removesuffix(suffix)) if suffix in COMPRESSIONS else suffix


def compression_of(path: Path) -> str:
    """Return the suffix of COMPRESSIONS that a name ends in, or nothing."""
    suffix = _suffix(path.name.lower())
    return suffix if suffix in COMPRESSIONS else ""


def _suffix(name: str) -> str:
    """Return what pathlib does, in a tenth of the time."""
    stem, _, ending = name.rpartition(".")
    return f".{ending}" if stem and ending else ""


def chosen_encoding(
    output: Path,
    format: FileFormat | None,
    default: FileFormat,
    delimiter: str | None = None,
    option: str = "--format",
) -> Encoding:
    """Return the format by the suffix of `output`, else `format`, the value of `option`, else `default`.

    Raises InputError for an unknown suffix, one that contradicts `format`, and for compressed Parquet.
    """
    suffix = "" if output == STANDARD_OUTPUT else file_type(output)
    by_suffix = SUFFIXES.get(suffix)
    compression = compression_of(output)
    if by_suffix is None and format is None and suffix and default is not FileFormat.LINES:
        raise InputError(
            f"the suffix of {output} is not an output format: end it in {', '.join(SUFFIXES)} (also with "
            f"{', '.join(COMPRESSIONS)}), or give {option}"
        )
    exact = format is FileFormat.CSV_EXACT
    agree = format in (None, by_suffix) or (exact and by_suffix in _EXACT_SUFFIXES)
    if by_suffix is not None and not agree:
        raise InputError(
            f"{option} {format} contradicts the suffix of {output}, which is that of {by_suffix}; leave one out"
        )
    chosen = by_suffix or format or default
    if chosen is FileFormat.PARQUET and compression:
        raise InputError(f"cannot write {output}: Parquet is compressed internally; end the name in .parquet")
    separator = delimiter or DELIMITERS.get(chosen, ",")

    return Encoding(chosen, compression, separator, exact)
