"""Arrow files, as stream or file, and folders of Arrow or Parquet files such as Hugging Face datasets saves."""

import json
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import Unreadable, slices_of
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import check_names
from nearsim_db.readers.folder import LeftOut, list_files
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.parquet import documents_of, refuse_without_pyarrow, rows_of_batches
from nearsim_db.records import ReadDocument, Reject

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema


ARROW = ".arrow"
TABLES = (ARROW, ".parquet")

_FILE_MARK = b"ARROW1\0\0"
_MOST_DECOMPRESSED = 1_000_000_000
_SPLITS, _STATE = "dataset_dict.json", "state.json"
_PART = re.compile(r"(?P<name>.+)-[0-9]{5,}-of-[0-9]{5,}\.[a-z]+")
OF_DATASETS = (_SPLITS, _STATE, "dataset_info.json")


@contextmanager
def open_arrow(path: Path) -> Iterator[tuple["Schema", Iterator["RecordBatch"]]]:
    """Open an Arrow file, memory-mapped: its schema and its rows in batches of some 64 MB.

    Raises InputError if it is none, or has a batch that would take more than a gigabyte once decompressed.
    """
    refuse_without_pyarrow(path)
    import pyarrow

    try:
        with pyarrow.memory_map(str(path)) as mapped:
            # A file is a stream between two marks, with an index that is not needed.
            begin = len(_FILE_MARK) if mapped.read(len(_FILE_MARK)) == _FILE_MARK else 0
            mapped.seek(begin)
            _check_messages(mapped, path)
            mapped.seek(begin)
            opened = pyarrow.ipc.open_stream(mapped)
            check_names(opened.schema.names, str(path))
            yield opened.schema, chain.from_iterable(map(slices_of, opened))
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"cannot read {path} as Arrow: {Unreadable(error).reason}") from error


def _check_messages(mapped: Any, path: Path) -> None:
    """Raise InputError if decompressing a batch, or the dictionaries that are kept with it, would take too much."""
    from pyarrow.ipc import MessageReader

    dictionaries: dict[int, int] = {}
    for message in MessageReader.open_stream(mapped):
        try:
            found = read_body(message.metadata, message.body)
        except (IndexError, struct.error) as error:
            raise InputError(f"cannot read {path} as Arrow: its metadata is not valid") from error
        if found is None:
            continue
        if found.dictionary is not None:
            before = dictionaries.get(found.dictionary, 0) if found.is_delta else 0
            dictionaries[found.dictionary] = before + found.decompressed_bytes
        if max(found.decompressed_bytes, sum(dictionaries.values())) > _MOST_DECOMPRESSED:
            raise InputError(
                f"{path} has a batch of {found.decompressed_bytes:,} bytes once decompressed; the maximum is "
                f"{_MOST_DECOMPRESSED:,}: write it with fewer rows in a batch, uncompressed, or as Parquet"
            )


def read_arrow(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read the documents of an Arrow file like those of a Parquet file; a row's line is its number from 1."""
    with open_arrow(file.path) as (schema, batches):
        yield from documents_of(file, fields, schema.names, rows_of_batches(batches, file.path))
    file.progress.bytes_read += file.path.stat().st_size


def is_saved_dataset(folder: Path) -> bool:
    """Whether a folder names its splits or files, as those that `datasets` saves do."""
    return (folder / _SPLITS).is_file() or ((folder / _STATE).is_file() and not any(folder.glob("*.parquet")))


def find_tables(folder: Path, *, follow_links: bool) -> Sequence[Path | LeftOut]:
    """Return the Arrow and Parquet files of a folder in order, and what cannot be read; nothing if it has none.

    A dataset that was saved to disk names its splits and files. Raises InputError if it lacks one.
    """
    if (folder / _SPLITS).is_file():
        splits = _names(folder / _SPLITS, "splits")
        return [found for name in splits for found in find_tables(folder / name, follow_links=follow_links)]
    if is_saved_dataset(folder):
        files = [folder / name for name in _names(folder / _STATE, "_data_files")]
        missing = [path for path in files if not path.is_file()]
        if missing:
            raise InputError(
                f"cannot read {missing[0]}, which {folder / _STATE} names; save the dataset again"
            )
        return files
    found = list(list_files(folder, follow_links=follow_links))
    if not any(isinstance(one, Path) and one.suffix.lower() in TABLES for one in found):
        return []
    return [one for one in found if isinstance(one, LeftOut) or one.suffix.lower() in TABLES]


def split_of(path: Path) -> Path:
    """Return the split of a data set that a file is a part of, by its name as `datasets` writes it; otherwise the file.

    That of train/data-00000-of-00002.arrow is train, that of data/train-00000-of-00002.parquet is data/train.
    """
    part = _PART.fullmatch(path.name)
    if part is None:
        return path
    return path.parent if part["name"] == "data" else path.parent / part["name"]


def _names(path: Path, key: str) -> list[str]:
    """Return the names of splits or files in a file that `datasets` writes. Raises InputError if they are invalid."""
    try:
        listed = json.loads(path.read_text("utf-8"))[key]
        names = [one if isinstance(one, str) else one["filename"] for one in listed]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {error}; save the dataset again") from error
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or name in ("", "..", "."):
            raise InputError(
                f"{path} names {name!r}, which is not a name in its folder; save the dataset again"
            )
    return names


_U16, _I32, _U32, _I64, _BUFFER = (Struct(f"<{one}") for one in ("H", "i", "I", "q", "qq"))
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_NOT_COMPRESSED = -1


@dataclass(frozen=True, slots=True)
class Body:
    """What the metadata of a message says of its body, which pyarrow decompresses without a limit.

    The bytes that a batch takes once decompressed (0 if it is not compressed), and the dictionary that it is of.
    """

    decompressed_bytes: int
    dictionary: int | None = None
    is_delta: bool = False


def read_body(metadata: Any, body: Any) -> Body | None:
    """Read the metadata of a message, None for a schema. Raises IndexError or struct.error if it is damaged.

    Metadata is a flatbuffer (https://flatbuffers.dev) of the tables Message, RecordBatch and DictionaryBatch in Arrow's
    format/Message.fbs and format/Schema.fbs.
    """
    message = _Table.root(memoryview(metadata))
    kind = message.byte(1)
    if kind == _RECORD_BATCH:
        return Body(_decompressed_bytes(message.table(2), memoryview(body)))
    if kind == _DICTIONARY_BATCH:
        header = message.table(2)
        size = _decompressed_bytes(header.table(1), memoryview(body))
        return Body(size, header.number(0), bool(header.byte(2)))
    return None


def _decompressed_bytes(batch: "_Table", body: memoryview) -> int:
    if not batch.at(3):  # the compression
        return 0
    size, buffers = 0, batch.reference(2)
    (count,) = _U32.unpack_from(batch.data, buffers)
    for number in range(count):
        offset, length = _BUFFER.unpack_from(batch.data, buffers + _U32.size + number * _BUFFER.size)
        if length:
            (decompressed,) = _I64.unpack_from(body, offset)
            size += length if decompressed == _NOT_COMPRESSED else abs(decompressed)
    return size


@dataclass(frozen=True, slots=True)
class _Table:
    data: memoryview
    place: int

    @classmethod
    def root(cls, data: memoryview) -> "_Table":
        return cls(data, _U32.unpack_from(data, 0)[0])

    def at(self, field: int) -> int:
        """Return the place of a field, 0 if it is absent."""
        table = self.place - _I32.unpack_from(self.data, self.place)[0]
        entry = _U16.size * (2 + field)
        if table < 0 or entry >= _U16.unpack_from(self.data, table)[0]:
            return 0
        offset = _U16.unpack_from(self.data, table + entry)[0]
        return self.place + offset if offset else 0

    def reference(self, field: int) -> int:
        place = self.at(field)
        return place + int(_U32.unpack_from(self.data, place)[0])

    def table(self, field: int) -> "_Table":
        return _Table(self.data, self.reference(field))

    def byte(self, field: int) -> int:
        place = self.at(field)
        return self.data[place] if place else 0

    def number(self, field: int) -> int:
        place = self.at(field)
        return int(_I64.unpack_from(self.data, place)[0]) if place else 0
