"""The paths to read: patterns become the files that match, folders of records their files."""

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

TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".html", ".htm"})
# Texts that are read only if the format is named, as files of these suffixes are often something else in a folder.
_OTHER_TEXT_SUFFIXES = frozenset({".rst", ".log", ".adoc", ".org", ".tex", ".markdown"})
# Read as text if it is named as the format.
XML = ".xml"
# A document a line, if it is named as the format.
LINES = ".lines"
_RECORDS = (*(suffix for suffix in SUFFIXES if suffix not in TABLES), *ROW_READERS, LINES)
_NOT_RECORDS = "not a file of records, as others of the folder are"
# Begins names that Hadoop and Spark write beside the parts, such as _SUCCESS.
_HIDDEN = "_"


@dataclass(frozen=True, slots=True)
class Found:
    """A file to read, or a folder that is read as a whole, and what is left out after it.

    `root` is the folder that was given, that of the file, or the part of a pattern before its first wildcard.
    """

    path: Path
    root: Path
    is_folder: bool = False
    left_out: tuple[LeftOut, ...] = ()


def find_paths(paths: Sequence[Path], reading: Reading) -> list[Found]:
    """Return what is read for some paths, in order. Raises InputError for a pattern that no file matches."""
    return [entry for path in paths for entry in _find(path, reading)]


def is_text(path: Path, reading: Reading) -> bool:
    """Whether a file is read as a text: by its suffix, compressed or not, or by the format that is named."""
    if reading.format is None:
        return file_type(path) in TEXT_SUFFIXES
    return (reading.format == XML or reading.format in TEXT_SUFFIXES) and not path.name.startswith(
        (_HIDDEN, ".")
    )


def may_be_text(path: Path) -> bool:
    """Whether a file that is not read by its suffix, compressed or not, is probably a text."""
    return file_type(path) in _OTHER_TEXT_SUFFIXES


def _find(path: Path, reading: Reading) -> Iterator[Found]:
    if path == STANDARD_INPUT:
        yield Found(path, path)
    elif has_magic(str(path)) and not os.access(path, os.F_OK):
        # Not a file whose own name has brackets.
        root = _root(path)
        for match in _matches(path):
            yield from _of_folder(match, root, reading) if _is_folder(match) else [Found(match, root)]
    elif _is_folder(path):
        yield from _of_folder(path, path, reading)
    else:
        yield Found(path, path.parent)


def _matches(pattern: Path) -> list[Path]:
    """Return the files that match; the folders if there are none, which ** matches too."""
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
    """Yield the folders in which glob looks for what a pattern matches; it says nothing of those it cannot read."""
    ends = range(len(_root(pattern).parts), len(pattern.parts))
    searched = {Path(*pattern.parts[: end + (pattern.parts[end] == "**")]) for end in ends}
    for folders in sorted(searched):
        yield from map(Path, glob(f"{folders}{os.sep}", recursive=True))  # noqa: PTH207  the folders only


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder; not if that cannot be found out."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _root(pattern: Path) -> Path:
    fixed = pattern
    while has_magic(str(fixed)):
        fixed = fixed.parent
    return fixed


def _of_folder(folder: Path, root: Path, reading: Reading) -> list[Found]:
    """Return the files of a folder of records, also of several kinds; a folder of tables or texts as a whole.

    Its texts are read, too, if it has no tables and more texts than files of records. With a format of records all of
    its files are records.
    """
    refuse_unreadable(folder, os.R_OK | os.X_OK)
    suffixes = (*_RECORDS, *TABLES) if reading.format is None else (reading.format,)
    whole = [Found(folder, root, is_folder=True)]
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
        return [*whole, *(Found(path, root) for path in files)]

    # There is a last file, as not all are tables; what is left out is reported after it.
    *first, last = files
    return [*(Found(path, root) for path in first), Found(last, root, left_out=tuple(left_out))]


def refuse_unreadable(path: Path, mode: int) -> None:
    """Raise InputError for a file or folder without some permissions, as of os.access."""
    if not os.access(path, mode, effective_ids=True):
        raise InputError(
            f"cannot read {path}: Permission denied; ask its owner, or change its mode with chmod"
        )


def contents_of(entry: Found, reading: Reading) -> tuple[list[Path], list[LeftOut]]:
    """Return the files that are read, also those of a folder that is read as a whole, and what is left out of it.

    That is what cannot be read, and files that are no records or, if texts are read, neither.
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
        read, known = tables, {*tables, *(path for path in files if path.name in OF_DATASETS)}
    else:
        read = [path for path in files if is_text(path, reading)]
        known = {*read, *(path for path in files if file_type(path) in _RECORDS)}

    return read, [
        *(problem for problem in listed if isinstance(problem, LeftOut)),
        *(
            LeftOut(path, _NOT_RECORDS, of_other_kind=True)
            for path in files
            if path not in known and not path.name.startswith(_HIDDEN)
        ),
    ]


def names_within_all(entries: Sequence[Found]) -> list[Path]:
    """Return the path of each file or folder below the folder that has all of them, without links and `..`."""
    roots = [source.root.resolve() for source in entries]
    folder = os.path.commonpath(roots)
    return [
        root.relative_to(folder) / source.path.relative_to(source.root)
        for root, source in zip(roots, entries, strict=True)
    ]


def is_folder_of_all(folder: Path, entries: Sequence[Found]) -> bool:
    """Whether a folder is the one that has all files and folders, and is named as they are, not by another link."""
    return all(
        form(folder) == os.path.commonpath([form(source.root) for source in entries])
        for form in (os.path.abspath, os.path.realpath)
    )


def refuse_repeated(files: Sequence[Sequence[Path]]) -> None:
    """Raise InputError if a file is among those of two inputs, under any name.

    It may be the same name, a link, a match of overlapping patterns, or in a folder that is read as a whole. Such a
    folder may have links to files of its own.
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
                    else f"{path} and {earlier} are one file; name it once"
                )
