"""The paths to read: patterns are replaced by the files that match, and folders of records by their files."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow import OF_DATASETS, TABLES, find_tables, is_saved_dataset
from nearsim_db.readers.contract import Reading
from nearsim_db.readers.folder import LeftOut, identity_of, list_files
from nearsim_db.readers.input_file import STANDARD_INPUT
from nearsim_db.readers.rows import ROW_READERS
from nearsim_db.readers.writers.file_format import SUFFIXES, file_type

HTML_SUFFIXES = frozenset({".html", ".htm"})
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md"}) | HTML_SUFFIXES
# Folders often contain files of these suffixes that are not documents, so they are read only if the format is named.
_OTHER_TEXT_SUFFIXES = frozenset({".rst", ".log", ".adoc", ".org", ".tex", ".markdown"})
# If this format is named, files are read as text.
XML = ".xml"
# If this format is named, each line is a document.
LINES = ".lines"
_RECORDS = (*(suffix for suffix in SUFFIXES if suffix not in TABLES), *ROW_READERS, LINES)
_NOT_RECORDS = "not a file of records, as others of the folder are"
# Hadoop and Spark write files such as _SUCCESS beside the parts of a data set.
_HIDDEN = "_"


@dataclass(frozen=True, slots=True)
class InputPath:
    """A file to read, or a folder that is read as a whole."""

    path: Path
    # The folder that the user named, the folder of the file, or the part of a pattern before its first wildcard.
    root: Path
    is_folder: bool = False
    left_out: tuple[LeftOut, ...] = ()  # files that are not read, to be reported after this path


def find_paths(paths: Sequence[Path], reading: Reading) -> list[InputPath]:
    """Return the files and folders to read for some paths, in order.

    Raises InputError for a pattern that no file matches.
    """
    return [entry for path in paths for entry in _find(path, reading)]


def is_text(path: Path, reading: Reading) -> bool:
    """Whether a file is read as a text, which its suffix or the named format decides."""
    if reading.format is None:
        return file_type(path) in TEXT_SUFFIXES
    return (reading.format == XML or reading.format in TEXT_SUFFIXES) and not path.name.startswith(
        (_HIDDEN, ".")
    )


def may_be_text(path: Path) -> bool:
    """Whether a file is probably a text, although its suffix, compressed or not, is not one that is read."""
    return file_type(path) in _OTHER_TEXT_SUFFIXES


def _find(path: Path, reading: Reading) -> Iterator[InputPath]:
    if path == STANDARD_INPUT:
        yield InputPath(path, path)
    elif has_magic(str(path)) and not os.access(path, os.F_OK):
        # This is a pattern, not a file whose own name contains brackets.
        root = _root(path)
        for match in _matches(path):
            yield from _of_folder(match, root, reading) if _is_folder(match) else [InputPath(match, root)]
    elif _is_folder(path):
        yield from _of_folder(path, path, reading)
    else:
        yield InputPath(path, path.parent)


def _matches(pattern: Path) -> list[Path]:
    """Return the files that match a pattern or, if there are none, the folders, which ** matches too."""
    matches = [Path(name) for name in sorted(glob(str(pattern), recursive=True))]  # noqa: PTH207  Path.glob matches hidden names
    for folder in _searched_folders(pattern):
        if not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
            raise InputError(
                f"the folder {folder}, where {pattern} may match files, cannot be read: Permission denied; change "
                "its mode with chmod, or give a pattern that leaves it out"
            )
    if not matches:
        raise InputError(f"no file matches {pattern}; check the path")
    return [path for path in matches if not _is_folder(path)] or matches


def _searched_folders(pattern: Path) -> Iterator[Path]:
    """Yield the folders in which glob looks for matches of a pattern; it silently skips those that it cannot read."""
    ends = range(len(_root(pattern).parts), len(pattern.parts))
    searched = {Path(*pattern.parts[: end + (pattern.parts[end] == "**")]) for end in ends}
    for folders in sorted(searched):
        yield from map(Path, glob(f"{folders}{os.sep}", recursive=True))  # noqa: PTH207  the folders only


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder; False if it cannot be examined."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _root(pattern: Path) -> Path:
    fixed = pattern
    while has_magic(str(fixed)):
        fixed = fixed.parent
    return fixed


def _of_folder(folder: Path, root: Path, reading: Reading) -> list[InputPath]:
    """Return the files of a folder of records, which may be of several kinds; return other folders as a whole.

    A folder with more texts than files of records, and without tables, is returned as a whole, followed by its files of
    records. If a format of records is named, all files of the folder are records.
    """
    refuse_unreadable(folder, os.R_OK | os.X_OK)
    suffixes = (*_RECORDS, *TABLES) if reading.format is None else (reading.format,)
    whole = [InputPath(folder, root, is_folder=True)]
    if reading.format not in (None, *_RECORDS) or is_saved_dataset(folder):
        return whole

    files, texts, left_out, tables = list[Path](), 0, list[LeftOut](), 0
    for path in list_files(folder, follow_links=reading.follow_links):
        if isinstance(path, LeftOut):
            left_out.append(path)
        elif file_type(path) in suffixes or (reading.format and not path.name.startswith(_HIDDEN)):
            files.append(path)
            tables += reading.format is None and path.suffix.lower() in TABLES
        elif not path.name.startswith(_HIDDEN):
            texts += is_text(path, reading)
            left_out.append(LeftOut(path, _NOT_RECORDS, of_other_kind=True))

    if len(files) == tables:
        return whole
    if not tables and texts > len(files):
        return [*whole, *(InputPath(path, root) for path in files)]

    # There is at least one file, as not all files are tables. Files that are left out are reported after the last one.
    *first, last = files
    return [*(InputPath(path, root) for path in first), InputPath(last, root, left_out=tuple(left_out))]


def refuse_unreadable(path: Path, mode: int) -> None:
    """Raise InputError if the user lacks the permissions `mode`, as for os.access, on a file or folder."""
    if not os.access(path, mode, effective_ids=True):
        raise InputError(
            f"cannot read {path}: Permission denied; ask its owner, or change its mode with chmod"
        )


def contents_of(entry: InputPath, reading: Reading) -> tuple[list[Path], list[LeftOut]]:
    """Return the files to read at a path, or in a folder that is read as a whole, and the files to leave out.

    Left out are files that cannot be read, and files of another kind: in a folder of tables those that are not tables,
    in a folder of texts those that are neither texts nor files of records.
    """
    if not entry.is_folder:
        return [entry.path], list(entry.left_out)

    listed = list(list_files(entry.path, follow_links=reading.follow_links))
    files = [path for path in listed if isinstance(path, Path)]
    tables = [path for path in files if path.suffix.lower() in TABLES]
    if is_saved_dataset(entry.path):
        named = find_tables(entry.path, follow_links=reading.follow_links)
        return [path for path in named if isinstance(path, Path)], []
    if tables:
        read, expected = tables, {*tables, *(path for path in files if path.name in OF_DATASETS)}
    else:
        read = [path for path in files if is_text(path, reading)]
        expected = {*read, *(path for path in files if file_type(path) in _RECORDS)}

    return read, [
        *(problem for problem in listed if isinstance(problem, LeftOut)),
        *(
            LeftOut(path, _NOT_RECORDS, of_other_kind=True)
            for path in files
            if path not in expected and not path.name.startswith(_HIDDEN)
        ),
    ]


def names_within_all(entries: Sequence[InputPath]) -> list[Path]:
    """Return the path of each file or folder relative to the folder that contains all of them.

    Links and `..` in the names are resolved.
    """
    roots = [source.root.resolve() for source in entries]
    folder = os.path.commonpath(roots)
    return [
        root.relative_to(folder) / source.path.relative_to(source.root)
        for root, source in zip(roots, entries, strict=True)
    ]


def is_folder_of_all(folder: Path, entries: Sequence[InputPath]) -> bool:
    """Whether `folder` is the innermost folder of all entries, and is named by the same links as they are."""
    return all(
        form(folder) == os.path.commonpath([form(source.root) for source in entries])
        for form in (os.path.abspath, os.path.realpath)
    )


def refuse_repeated(files: Sequence[Sequence[Path]]) -> None:
    """Raise InputError if a file belongs to two inputs, even under different names.

    The second may have the same name, be a link, match an overlapping pattern, or be in a folder that is read as a
    whole. Links within one folder, to files of the same folder, are allowed.
    """
    seen: dict[tuple[int, int], tuple[int, Path]] = {}
    for number, of_input in enumerate(files):
        for path in of_input:
            identity = identity_of(path)
            if identity is None:
                continue
            earlier_number, earlier = seen.setdefault(identity, (number, path))
            if earlier_number != number:
                raise InputError(
                    f"{path} is named twice; name each file once"
                    if path == earlier
                    else f"{path} and {earlier} are the same file; name it once"
                )
