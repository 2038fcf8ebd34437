"""Sources: the files and folders to read, among them text files, each of which is one document."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from nearsim_db.errors import InputError
from nearsim_db.messages import count_of
from nearsim_db.readers.arrow import ARROW, TABLES, find_tables, read_arrow, split_of
from nearsim_db.readers.contract import Fields, Reader, Reading
from nearsim_db.readers.decoding import DECOMPRESSORS, control_share
from nearsim_db.readers.delimited import read_csv, read_tsv
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.readers.folder import LINK, LeftOut, list_files
from nearsim_db.readers.input_file import STANDARD_INPUT, InputFile, ReadProgress
from nearsim_db.readers.json_array import read_json
from nearsim_db.readers.jsonl import read_jsonl
from nearsim_db.readers.parquet import read_parquet, refuse_without_pyarrow
from nearsim_db.readers.paths import (
    HTML_SUFFIXES,
    LINES,
    TEXT_SUFFIXES,
    XML,
    InputPath,
    contents_of,
    find_paths,
    is_folder_of_all,
    is_text,
    may_be_text,
    names_within_all,
    refuse_repeated,
    refuse_unreadable,
)
from nearsim_db.readers.rows import ROW_READERS, documents_of_rows
from nearsim_db.readers.writers.file_format import file_type
from nearsim_db.records import ReadDocument, Reject
from nearsim_db.similarity.text.clean import clean


def read_text(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Yield one document, whose id is the file name and whose line is 0; a Reject if the file cannot be read."""
    yield text_document(file, file.path.name)


def read_lines(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Yield a document for each line that is not blank."""
    maker = DocumentMaker(file.name, fields)
    for number, line in file.lines():
        if line is None:
            yield Reject(file.name, number, file.too_long)
        elif not line.isspace() and line:
            text = line.removesuffix(b"\r").decode("utf-8", "surrogateescape")
            yield maker.make({maker.body_names[0]: text}, number)


def text_document(file: InputFile, external_id: str) -> ReadDocument | Reject:
    """Return the document of a text file, or a Reject if the file cannot be read or exceeds the limit."""
    try:
        content = file.content()
    except InputError as error:
        return Reject(file.name, 0, str(error))

    if content is None:
        return Reject(file.name, 0, file.too_long)
    if (share := control_share(content)) is not None:
        return Reject(
            file.name,
            0,
            f"binary, not text: {share:.0%} of its first bytes are control characters; convert it "
            "to text, or leave it out",
        )

    if file_type(file.path) not in HTML_SUFFIXES:
        file.progress.note_lines(file.name, content)
    record = {_DEFAULT_FIELDS.id: external_id, "body": content.decode("utf-8", "surrogateescape")}
    return DocumentMaker(file.name, _DEFAULT_FIELDS).make(record, 0)


PARQUET = ".parquet"
JSON_LINES = ".jsonl"
JSON = ".json"
READERS: dict[str, Reader] = {
    JSON_LINES: read_jsonl,
    ".ndjson": read_jsonl,
    JSON: read_json,
    ".csv": read_csv,
    ".tsv": read_tsv,
    PARQUET: read_parquet,
    ARROW: read_arrow,
    **{suffix: partial(documents_of_rows, read) for suffix, read in ROW_READERS.items()},
    **dict.fromkeys(sorted(TEXT_SUFFIXES), read_text),
}
# Formats that are never chosen by a suffix, only by name.
_NAMED_READERS: dict[str, Reader] = {LINES: read_lines, XML: read_text}

# gzip compresses news stories to a third or half: ratios of 2.2 to 3.0 were measured.
_COMPRESSION_RATIO = 3

_OTHERS_SHOWN = 3
_DEFAULT_FIELDS = Fields()
_DEFAULT_READING = Reading()
STANDARD_INPUT_DEVICE = Path("/dev/stdin")
_TEXT_SUFFIXES = " ".join(sorted(TEXT_SUFFIXES))
_READ_AS_TEXT = "--input-format txt reads"


class Source:
    """The documents of files and folders, in the order of their paths.

    The path '-' or /dev/stdin is standard input, which is JSON lines or one JSON array unless `reading` names a format.
    A path may be a pattern with wildcards, in which ** matches any folders.

    If a folder contains files of records, such as JSON lines, or Arrow or Parquet files, their records are read.
    Otherwise each text file of the folder is one document, whose id is its path within the folder, with '/' between the
    parts. Special files in folders become rejects, and so do symbolic links unless `reading` follows links.

    Raises InputError at once if a path is missing, unreadable or of an unknown type, and during iteration if a file
    cannot be read further. For paths that are temporary copies, `originals` has the names that messages show.
    """

    paths: tuple[Path, ...]  # the inputs; a folder of files of records is replaced by these files
    files: tuple[Path, ...]  # all files that are read, including those in folders
    other_files: tuple[Path, ...]  # files in folders that are not read because they are of another kind
    total_bytes: int | None  # size on disk of all files that are read, None if unknown

    def __init__(
        self,
        paths: Sequence[Path],
        fields: Fields = _DEFAULT_FIELDS,
        *,
        reading: Reading = _DEFAULT_READING,
        originals: Mapping[Path, Path] | None = None,
    ) -> None:
        inputs = [STANDARD_INPUT if path == STANDARD_INPUT_DEVICE else path for path in paths]
        if inputs.count(STANDARD_INPUT) > 1:
            raise InputError("standard input can be read only once: give - only once")

        # Find the files to read, and the files of folders to leave out.
        self._entries = find_paths(inputs, reading)
        contents = [contents_of(entry, reading) for entry in self._entries]
        self._files = [files for files, _ in contents]
        self.files = tuple(path for files in self._files for path in files)
        self.paths = tuple(entry.path for entry in self._entries)
        self._folders = {entry.path for entry in self._entries if entry.is_folder}
        self._left_out = {
            entry.path: [left_out for left_out in entry.left_out if not left_out.of_other_kind]
            for entry in self._entries
        }

        self.fields = fields
        self.reading = reading
        self._originals = originals or {}
        self._progress = ReadProgress()

        # Raise errors about unreadable files before anything is read.
        sizes = [
            _checked_size(entry, *listed, self.reading)
            for entry, listed in zip(self._entries, contents, strict=True)
        ]
        self.total_bytes = _sum(sizes)
        self._sizes = sizes
        left_out = [item for _, left_out_of_path in contents for item in left_out_of_path]
        self.other_files = tuple(item.path for item in left_out if item.of_other_kind)
        self._unreadable = [item for item in left_out if not item.of_other_kind]

    @property
    def content_bytes(self) -> int | None:
        """The approximate number of bytes after decompression, None if unknown."""
        return _sum(
            [_decompressed_size(path, size) for path, size in zip(self.paths, self._sizes, strict=True)]
        )

    @property
    def bytes_read(self) -> int:
        """How many bytes of `total_bytes` the present iteration has read so far."""
        return self._progress.bytes_read

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about files in folders that will not be read."""
        unreadable = [f"{_shown(item.path)} ({item.reason})" for item in self._unreadable]
        notes = [
            *_not_read("file", "of another kind in the folders given", list(map(_shown, self.other_files))),
            *_not_read("path", "of the folders given", unreadable),
        ]

        # With the format txt, files of records would be read as texts too.
        texts = [path for path in self.other_files if may_be_text(path)]
        if texts and all(is_text(path, self.reading) for path in self.files):
            notes.append(f"{_READ_AS_TEXT} {_shown(texts[0])} and all other files of the folders as texts")
        return tuple(notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the files read so far, with the options that would read them in another way."""
        return tuple(_warnings(self._progress))

    def type_of(self, path: Path) -> str:
        """Return the suffix that identifies the format of a path of the source; empty for a folder."""
        if path in self._folders:
            return ""
        return self.reading.format or (JSON if path == STANDARD_INPUT else file_type(path))

    def file(self, path: Path) -> InputFile:
        """Return a path of the source, which must be a file, to be read with the options of the source."""
        reading = self.reading
        original = self._originals.get(path)

        return InputFile(
            path,
            self._progress,
            encoding=reading.encoding,
            delimiter=reading.delimiter,
            quote=reading.quote,
            escape=reading.escape,
            comment=reading.comment,
            has_header=reading.has_header,
            records=reading.records,
            table=reading.table,
            query=reading.query,
            original=original,
        )

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        self._progress.bytes_read = 0
        for path in self.paths:
            yield from self.read(path)

    def read(self, path: Path) -> Iterator[ReadDocument | Reject]:
        """Read the documents of a path of the source; adds to `bytes_read`."""
        kind = self.type_of(path)
        read = _NAMED_READERS.get(kind) or READERS.get(kind)
        records = read(self.file(path), self.fields) if read else self._read_folder(path)
        left_out = self._left_out.get(path)
        return chain(records, map(_rejected, left_out)) if left_out else records

    def refuse_repeated(self) -> None:
        """Raise InputError if a file would be read twice, even under different names."""
        refuse_repeated(self._files)

    def has_all_in(self, folder: Path) -> bool:
        """Whether `folder` is the innermost folder of all paths, and is named in the same way as they are."""
        return is_folder_of_all(folder, self._entries)

    def names_within_all(self) -> list[Path]:
        """Return the name of each path relative to the innermost folder that contains all of them.

        Raises InputError for standard input and pipes.
        """
        if STANDARD_INPUT in self.paths or any(
            original != path for path, original in self._originals.items()
        ):
            raise InputError("standard input and pipes have no file name; name an output file, not a folder")
        return names_within_all(self._entries)

    def _read_folder(self, folder: Path) -> Iterator[ReadDocument | Reject]:
        tables = find_tables(folder, follow_links=self.reading.follow_links)
        rows: Counter[str] = Counter()
        for table in tables:
            if isinstance(table, LeftOut):
                yield _rejected(table)
                continue
            split = split_of(table)
            file = replace(self.file(table), split=(InputFile(split).name, rows[str(split)]))
            for record in READERS[table.suffix.lower()](file, self.fields):
                rows[str(split)] += 1
                yield record
        if not tables:
            yield from self._read_texts(folder)

    def _read_texts(self, folder: Path) -> Iterator[ReadDocument | Reject]:
        follow_links = self.reading.follow_links
        for path in list_files(folder, follow_links=follow_links):
            if isinstance(path, LeftOut):
                yield _rejected(path)
            elif is_text(path, self.reading):
                file = replace(self.file(path), is_regular=True, follow_links=follow_links)
                yield text_document(file, path.relative_to(folder).as_posix())


def _not_read(noun: str, where: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        ellipsis = ", ..." if len(names) > _OTHERS_SHOWN else ""
        verb = "is" if len(names) == 1 else "are"
        yield f"{count_of(len(names), noun)} {where} {verb} not read: {', '.join(names[:_OTHERS_SHOWN])}{ellipsis}"


def _shown(path: Path) -> str:
    """Return a path as messages show it, with U+FFFD in place of bytes that are not UTF-8."""
    return clean(str(path))[0]


def _rejected(left_out: LeftOut) -> Reject:
    return Reject(InputFile(left_out.path).name, 0, left_out.reason)


def _warnings(progress: ReadProgress) -> Iterator[str]:
    names = {"gzip": ".gz", "zstandard": ".zst", "bzip2": ".bz2", "xz": ".xz"}
    for name, suffix in names.items():
        files = [file for file, kind in progress.compressed.items() if kind == suffix]
        if files:
            yield f"{_listed(files)} is compressed with {name}, and was decompressed"

    for name, quoted in progress.quoted_lines.items():
        yield (
            f"{name}: {count_of(quoted.lines, 'line')} in quoted cells look like records of their own (the first in "
            f"the row of lines {quoted.begin:,} to {quoted.end:,}); if quotes are part of the text, give --quote none"
        )

    for name, lines in progress.many_lines.items():
        yield (
            f"{name} is one document of {lines:,} short lines; if each line is a document, give --input-format lines"
        )

    for name, sheets in progress.other_tables.items():
        yield f"{_listed([name])} has other sheets, which were not read ({sheets}); --table NAME reads one of them"

    if progress.not_utf8:
        yield (
            f"{_listed(list(progress.not_utf8))} is not UTF-8, and characters were replaced; if it is Latin-1 or "
            "Windows-1252, give --encoding cp1252"
        )


def _listed(names: list[str]) -> str:
    further = f" (and {count_of(len(names) - 1, 'other file')})" if len(names) > 1 else ""
    return f"{'standard input' if names[0] == '-' else names[0]}{further}"


def _sum(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _decompressed_size(path: Path, size: int | None) -> int | None:
    """Return the approximate size of a file's content after decompression."""
    is_compressed = path.suffix.lower() in (*DECOMPRESSORS, PARQUET)
    return size if size is None or not is_compressed else size * _COMPRESSION_RATIO


def _checked_size(
    entry: InputPath, files: Sequence[Path], left_out: Sequence[LeftOut], reading: Reading
) -> int | None:
    """Return the size of a file or folder, None if unknown. Raises InputError if it cannot be read."""
    path = entry.path
    if path == STANDARD_INPUT:
        return None
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error

    refuse_unreadable(path, os.R_OK)
    if entry.is_folder:
        return _folder_size(path, files, left_out)
    kind = reading.format or file_type(path)
    if kind not in READERS and kind != reading.format:
        if may_be_text(path):
            raise InputError(f"unknown file type of {path}; {_READ_AS_TEXT} it as a text")
        suffixes = " ".join(suffix for suffix in READERS if suffix not in TABLES)
        raise InputError(
            f"unknown file type of {path}; nearsim reads {suffixes}, each also with "
            f"{' or '.join(DECOMPRESSORS)}, {PARQUET}, {ARROW}, and folders of these; rename or "
            "convert it, or name its format with --input-format"
        )

    if kind in TABLES:
        if path.suffix.lower() in DECOMPRESSORS:
            raise InputError(
                f"{path} is compressed, but {kind[1:].title()} is compressed internally; decompress the file first"
            )
        refuse_without_pyarrow(path)
    return state.st_size if stat.S_ISREG(state.st_mode) else None


def _folder_size(folder: Path, files: Sequence[Path], left_out: Sequence[LeftOut]) -> int:
    """Return the size of the files that are read in a folder. Raises InputError if there are none."""
    for path in files[:1]:
        if path.suffix.lower() in TABLES:
            refuse_without_pyarrow(path)
    if not files:
        if text := next((item.path for item in left_out if may_be_text(item.path)), None):
            raise InputError(
                f"the folder {folder} has no files that are read by their suffix; {_READ_AS_TEXT} {_shown(text)} "
                "and all its other files as texts"
            )
        links = sum(item.reason == LINK for item in left_out)
        found_links = f", only {count_of(links, 'symbolic link')}: --follow-links reads them" if links else ""
        raise InputError(
            f"the folder {folder} has no files of records, text ({_TEXT_SUFFIXES}), Parquet or Arrow{found_links}; "
            "rename them, or pass the files by name"
        )
    return sum(map(_file_size, files))


def _file_size(path: Path) -> int:
    """Return the size of a file, or 0 if it is unknown; reading the file later reports the reason."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
