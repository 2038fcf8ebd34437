"""The files and folders to read, and the progress of reading."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from nearsim_db.errors import InputError, count_of
from nearsim_db.readers.compression import DECOMPRESSORS
from nearsim_db.readers.contract import Fields, Reader
from nearsim_db.readers.delimited import read_csv, read_tsv
from nearsim_db.readers.folder import LINK, LeftOut, list_files
from nearsim_db.readers.input_file import STANDARD_INPUT, InputFile, OpenRefusal, ReadProgress, file_type
from nearsim_db.readers.jsonl import read_jsonl
from nearsim_db.readers.parquet import read_parquet, refuse_without_pyarrow
from nearsim_db.readers.text_file import TEXT_SUFFIXES, is_text, read_text, text_document
from nearsim_db.records import ReadDocument, Reject

PARQUET = ".parquet"
READERS: dict[str, Reader] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_jsonl,
    ".csv": read_csv,
    ".tsv": read_tsv,
    PARQUET: read_parquet,
    **dict.fromkeys(sorted(TEXT_SUFFIXES), read_text),
}

_DEFAULT_FIELDS = Fields()
_STANDARD_INPUT_DEVICE = Path("/dev/stdin")
_TEXT_SUFFIXES = " ".join(sorted(TEXT_SUFFIXES))


class Source:
    """The documents of files and folders, in the order given; '-' or /dev/stdin is standard input as JSON lines.

    A folder gives a document per text file, whose id is the path within the folder, separated by '/', and a
    reject per file of another type, special file, and symbolic link unless `follow_links`. `total_bytes` is the
    size of everything on disk, None if unknown; `bytes_read` grows towards it and restarts with each iteration.
    Raises InputError at once if something is missing, unreadable or of an unknown type, and during iteration if
    a file cannot be read further.
    """

    def __init__(
        self, paths: Sequence[Path], fields: Fields = _DEFAULT_FIELDS, *, follow_links: bool = False
    ) -> None:
        self.paths = tuple(STANDARD_INPUT if path == _STANDARD_INPUT_DEVICE else path for path in paths)
        self._fields = fields
        self._follow_links = follow_links
        self._progress = ReadProgress()
        sizes = [_checked_size(path, follow_links=follow_links) for path in self.paths]
        self.total_bytes = None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def bytes_read(self) -> int:
        """The number of bytes of `total_bytes` read so far."""
        return self._progress.bytes_read

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        self._progress.bytes_read = 0
        for path in self.paths:
            yield from self.read(path)

    def read(self, path: Path) -> Iterator[ReadDocument | Reject]:
        """Read the documents of one of the paths; adds to `bytes_read`."""
        if path.is_dir():
            return self._read_folder(path)
        reader = read_jsonl if path == STANDARD_INPUT else READERS[file_type(path)]
        return reader(InputFile(path, self._progress), self._fields)

    def _read_folder(self, folder: Path) -> Iterator[ReadDocument | Reject]:
        refused = OpenRefusal.SPECIAL_FILES
        if not self._follow_links:
            refused |= OpenRefusal.LINKS
        for found in list_files(folder, follow_links=self._follow_links):
            if isinstance(found, LeftOut):
                yield Reject(InputFile(found.path).name, 0, found.reason)
            elif not is_text(found):
                yield Reject(InputFile(found).name, 0, f"not a text file ({_TEXT_SUFFIXES})")
            else:
                file = InputFile(found, self._progress, refused=refused)
                yield text_document(file, found.relative_to(folder).as_posix())


def _checked_size(path: Path, *, follow_links: bool) -> int | None:
    """Return the size of a file or folder, None if unknown. Raises InputError if it cannot be read."""
    if path == STANDARD_INPUT:
        return None
    try:
        path.stat()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
    if not os.access(path, os.R_OK):
        raise InputError(
            f"cannot read {path}: Permission denied; ask its owner, or change its mode with chmod"
        )
    if path.is_dir():
        return _folder_size(path, follow_links=follow_links)
    if file_type(path) not in READERS:
        suffixes = " ".join(suffix for suffix in READERS if suffix != PARQUET)
        raise InputError(
            f"unknown file type of {path}; nearsim reads {suffixes}, each also with "
            f"{' or '.join(DECOMPRESSORS)}, {PARQUET}, and folders of text files; rename or convert it, "
            "or pass JSON lines on standard input with '-'"
        )
    if file_type(path) == PARQUET:
        if path.suffix.lower() != PARQUET:
            raise InputError(
                f"{path} is compressed, but Parquet is compressed internally; decompress the file first"
            )
        refuse_without_pyarrow(path)
    return path.stat().st_size if path.is_file() else None


def _folder_size(folder: Path, *, follow_links: bool) -> int:
    size = texts = links = 0
    for found in list_files(folder, follow_links=follow_links):
        if isinstance(found, LeftOut):
            links += found.reason == LINK
        elif is_text(found):
            texts += 1
            size += _file_size(found)
    if not texts:
        found_links = f", only {count_of(links, 'symbolic link')}: --follow-links reads them" if links else ""
        raise InputError(
            f"the folder {folder} has no text files ({_TEXT_SUFFIXES}){found_links}; rename them, or pass the "
            "files by name"
        )
    return size


def _file_size(path: Path) -> int:
    """Return the size of a file, 0 if unknown: reading the file will report why."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
