"""Arrow files, as stream or file, and folders of Arrow or Parquet files such as Hugging Face datasets saves."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.folder import LeftOut, list_files
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.parquet import (
    Unreadable,
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

_FILE_MARK = b"ARROW1"
_SPLITS, _STATE = "dataset_dict.json", "state.json"
_OF_DATASETS = (_SPLITS, _STATE, "dataset_info.json")


@contextmanager
def open_arrow(path: Path) -> Iterator[tuple["Schema", Iterator["RecordBatch"]]]:
    """Open an Arrow file, memory-mapped: its schema and its batches. Raises InputError if it is none."""
    refuse_without_pyarrow(path)
    import pyarrow

    try:
        with pyarrow.memory_map(str(path)) as mapped:
            is_file = mapped.read(len(_FILE_MARK)) == _FILE_MARK
            mapped.seek(0)
            opened: Any = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(mapped)
            batches = map(opened.get_batch, range(opened.num_record_batches)) if is_file else iter(opened)
            check_names(opened.schema.names, path)
            yield opened.schema, batches
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"cannot read {path} as Arrow: {Unreadable(error).reason}") from error


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
