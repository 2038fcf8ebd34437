"""The formats of output files, the suffixes that choose them, and the contract of a writer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from nearsim_db.errors import InputError
from nearsim_db.records import STANDARD_OUTPUT

Escape = Callable[[str], str]  # makes text safe to show on a terminal


class RecordWriter(ABC):
    """Writes records to a binary stream, which it leaves open; the memory used does not grow with their number.

    `columns` are the names of the columns in order, if the format has a header or a schema; other keys of a record are
    not written. `close` completes the output, `abandon` leaves it incomplete.
    """

    def __init__(self, stream: BinaryIO, columns: Sequence[str]) -> None:
        self.stream = stream
        self.columns: tuple[str, ...] = tuple(columns)

    @abstractmethod
    def write(self, record: Mapping[str, object]) -> None:
        """Write a record of JSON values, datetimes and Decimals."""

    def close(self) -> None:
        """Write everything that is not written yet."""
        return

    def abandon(self) -> None:
        """Release the writer's resources without completing the output."""
        return


class FileFormat(StrEnum):
    """The format of a file of records.

    csv marks text that a spreadsheet would run as a formula with an apostrophe; csv-exact writes it unchanged. In a
    file of lines, each line is a text, and there are no other columns.
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
    """How a file of records is written."""

    format: FileFormat
    compression: str = ""  # one of COMPRESSIONS, or empty
    delimiter: str = ","  # the character between the columns of CSV
    exact: bool = False  # whether text that a spreadsheet would run as a formula is left unmarked
    quote: str | None = None  # the character that encloses cells, by default the double quote; or `none`
    escape_character: str | None = None  # the character that makes the next character an ordinary one


def file_type(path: Path) -> str:
    """Return the suffix that identifies the format, in lower case and without the suffix of the compression."""
    name = path.name.lower()
    suffix = _suffix(name)
    return _suffix(name.removesuffix(suffix)) if suffix in COMPRESSIONS else suffix


def compression_of(path: Path) -> str:
    """Return the suffix of COMPRESSIONS in which a name ends, or an empty string."""
    suffix = _suffix(path.name.lower())
    return suffix if suffix in COMPRESSIONS else ""


def _suffix(name: str) -> str:
    """Return the suffix of a name like pathlib, but in a tenth of the time."""
    stem, _, ending = name.rpartition(".")
    return f".{ending}" if stem and ending else ""


def chosen_encoding(
    output: Path,
    format: FileFormat | None,
    default: FileFormat,
    delimiter: str | None = None,
    option: str = "--format",
) -> Encoding:
    """Return how to write a file: in the format of its suffix, or else `format`, or else `default`.

    `format` is the value of `option`. Raises InputError for an unknown suffix, for a suffix that contradicts `format`,
    and for compressed Parquet.
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
