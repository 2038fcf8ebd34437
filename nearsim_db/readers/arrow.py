"""Arrow files, in the stream or the file format, and folders of Arrow or Parquet files, as Hugging Face saves them."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import Unreadable, column_names, slices_of
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.folder import LeftOut, list_files
from nearsim_db.readers.input_file import MAX_POINTER_BYTES, InputFile, refuse_pointer
from nearsim_db.readers.parquet import documents_of, refuse_without_pyarrow, rows_of_batches
from nearsim_db.records import ReadDocument, Reject

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema


ARROW = ".arrow"
TABLES = (ARROW, ".parquet")

_FILE_MARK = b"ARROW1\0\0"
_SPLITS, _STATE = "dataset_dict.json", "state.json"
_PART = re.compile(r"(?P<name>.+)-[0-9]{5,}-of-[0-9]{5,}\.[a-z]+")
OF_DATASETS = (_SPLITS, _STATE, "dataset_info.json")


@contextmanager
def open_arrow(path: Path) -> Iterator[tuple["Schema", Iterator["RecordBatch"]]]:
    """Open an Arrow file, memory-mapped; yield its schema, and its rows in batches of some 64 MB.

    A compressed batch of the file is decompressed as a whole. Raises InputError for anything that is not an Arrow file.
    """
    refuse_without_pyarrow(path)
    import pyarrow

    try:
        with pyarrow.memory_map(str(path)) as mapped:
            refuse_pointer(str(path), mapped.read(MAX_POINTER_BYTES))
            mapped.seek(0)
            # The file format is a stream between two marks, with an index that is not needed.
            if mapped.read(len(_FILE_MARK)) != _FILE_MARK:
                mapped.seek(0)
            opened = pyarrow.ipc.open_stream(mapped)
            column_names(opened.schema, str(path))
            yield opened.schema, chain.from_iterable(map(slices_of, opened))
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"cannot read {path} as Arrow: {Unreadable(error).reason}") from error


def read_arrow(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read the documents of an Arrow file like those of a Parquet file; the line of a document is its row, from 1."""
    with open_arrow(file.path) as (schema, batches):
        yield from documents_of(file, fields, schema.names, rows_of_batches(batches, file.path))
    file.progress.bytes_read += file.path.stat().st_size


def is_saved_dataset(folder: Path) -> bool:
    """Whether a folder contains the metadata that `datasets` saves, which lists splits or files."""
    return (folder / _SPLITS).is_file() or ((folder / _STATE).is_file() and not any(folder.glob("*.parquet")))


def find_tables(folder: Path, *, follow_links: bool) -> Sequence[Path | LeftOut]:
    """Return the Arrow and Parquet files of a folder in order, with files that are left out; nothing if it has none.

    The metadata of a saved dataset list its splits and files. Raises InputError if one of these is missing.
    """
    if (folder / _SPLITS).is_file():
        splits = _names(folder / _SPLITS, "splits")
        return [path for name in splits for path in find_tables(folder / name, follow_links=follow_links)]

    if is_saved_dataset(folder):
        files = [folder / name for name in _names(folder / _STATE, "_data_files")]
        missing = [path for path in files if not path.is_file()]
        if missing:
            raise InputError(
                f"cannot read {missing[0]}, which {folder / _STATE} names; save the dataset again"
            )
        return files

    listed = list(list_files(folder, follow_links=follow_links))
    if not any(isinstance(path, Path) and path.suffix.lower() in TABLES for path in listed):
        return []
    return [path for path in listed if isinstance(path, LeftOut) or path.suffix.lower() in TABLES]


def split_of(path: Path) -> Path:
    """Return the split of a data set that a file is a part of, or the file itself if it is not a part.

    The name decides, in the form that `datasets` writes: train/data-00000-of-00002.arrow is part of the split train,
    and data/train-00000-of-00002.parquet of the split data/train.
    """
    part = _PART.fullmatch(path.name)
    if part is None:
        return path
    return path.parent if part["name"] == "data" else path.parent / part["name"]


def _names(path: Path, key: str) -> list[str]:
    """Return the names of splits or files in a metadata file of `datasets`. Raises InputError if they are invalid."""
    try:
        listed = json.loads(path.read_text("utf-8"))[key]
        names = [entry if isinstance(entry, str) else entry["filename"] for entry in listed]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {error}; save the dataset again") from error

    # Accept only names, because a path could lead out of the folder.
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or name in ("", "..", "."):
            raise InputError(
                f"{path} names {name!r}, which is not a name in its folder; save the dataset again"
            )
    return names
