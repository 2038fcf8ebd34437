"""Arrow files, as stream or file, and folders of Arrow or Parquet files such as Hugging Face datasets saves."""

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_messages import read_body
from nearsim_db.readers.arrow_values import Unreadable
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.decoded_size import slices_of
from nearsim_db.readers.folder import LeftOut, list_files
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.parquet import (
    check_names,
    documents_of,
    refuse_without_pyarrow,
    rows_of_batches,
)
from nearsim_db.records import ReadDocument, Reject

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

ARROW = ".arrow"
TABLES = (ARROW, ".parquet")

_FILE_MARK = b"ARROW1\0\0"
_MOST_DECOMPRESSED = 1_000_000_000
_SPLITS, _STATE = "dataset_dict.json", "state.json"
_OF_DATASETS = (_SPLITS, _STATE, "dataset_info.json")


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
            check_names(opened.schema.names, path)
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


def find_tables(folder: Path, *, follow_links: bool) -> Sequence[Path | LeftOut]:
    """Return the Arrow and Parquet files of a folder in order, and what is left out; nothing if it has none.

    A dataset that was saved to disk names its splits and files. Raises InputError if it lacks one.
    """
    if (folder / _SPLITS).is_file():
        splits = _names(folder / _SPLITS, "splits")
        return [found for name in splits for found in find_tables(folder / name, follow_links=follow_links)]
    if (folder / _STATE).is_file() and not any(folder.glob("*.parquet")):
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
    return [
        LeftOut(one, "not an Arrow or Parquet file, as others of the folder are")
        if isinstance(one, Path) and one.suffix.lower() not in TABLES
        else one
        for one in found
        if isinstance(one, LeftOut) or one.name not in _OF_DATASETS
    ]


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
