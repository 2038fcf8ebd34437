"""Spreadsheets of Excel (.xlsx), read row by row with openpyxl, which is imported only for such files."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import Unreadable, as_json
from nearsim_db.readers.contract import Row
from nearsim_db.readers.document_maker import check_names
from nearsim_db.readers.input_file import InputFile

# The maximum size after decompression. openpyxl keeps a row as a tree, which takes up to 80 times the bytes of its XML.
_MAX_BYTES = 500_000_000
# Spreadsheets are compressed to between a fifth and a twentieth of their size, zip bombs to a thousandth.
_SMALL_BYTES, _MAX_RATIO = 10_000_000, 60


def read_spreadsheet(file: InputFile) -> Iterator[tuple[int, Row | str]]:
    """Yield the rows of the named sheet, by default of the first one, each with its number.

    The first row that is not blank names the columns; a column without a name is called by its letter. The value of a
    formula is its last stored result. Raises InputError for a file that is not a spreadsheet, and for one that is too
    large after decompression.
    """
    path = file.on_disk("a spreadsheet")
    _refuse_bomb(path, file.name)

    done = 0
    try:
        with closing(_opened(path)) as workbook:
            sheet = _sheet(workbook, file)
            sheet.reset_dimensions()  # some programs write wrong dimensions
            names: list[str | None] | None = None
            for done, cells in enumerate(sheet.iter_rows(values_only=True), 1):
                if all(cell is None for cell in cells):
                    continue
                if names is None:
                    names = _names(cells, file)
                    if file.has_header:
                        continue
                yield done, _row(names, [as_json(cell) for cell in cells], file)
    except InputError:
        raise
    except Exception as error:  # a damaged file makes openpyxl raise any kind of error
        after = f" after {done:,} rows" if done else ""
        raise InputError(f"cannot read {file.name} as .xlsx{after}: {Unreadable(error).reason}") from error
    file.progress.bytes_read += path.stat().st_size


def _refuse_bomb(path: Path, name: str) -> None:
    """Raise InputError for a file that is not a zip file, or whose parts would be too large after decompression.

    The sizes that the file states can be relied on: zipfile never reads more from a part than its stated size.
    """
    try:
        with ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except Exception as error:  # a damaged file makes zipfile raise any kind of error too
        raise InputError(f"cannot read {name} as .xlsx: {Unreadable(error).reason}") from error
    if size > _MAX_BYTES or size > max(_SMALL_BYTES, _MAX_RATIO * path.stat().st_size):
        raise InputError(
            f"{name} decompresses to {size:,} bytes, more than nearsim reads from a spreadsheet of "
            f"{path.stat().st_size:,} bytes; save its sheet as CSV"
        )


def _opened(path: Path) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise InputError(
            f"reading {path} requires the package openpyxl; pip install 'nearsim-db[excel]'"
        ) from error

    # openpyxl warns of styles and extensions, which are not read anyway.
    warnings.filterwarnings("ignore", module="openpyxl")
    return load_workbook(path, read_only=True, data_only=True, keep_links=False)


def _sheet(workbook: Any, file: InputFile) -> Any:
    """Return the named sheet, by default the first one."""
    sheets = {sheet.title: sheet for sheet in workbook.worksheets}
    name = next(iter(sheets), "") if file.table is None else file.table
    if name not in sheets:
        raise InputError(
            f"{file.name} has no sheet {name!r}; name another one with --table ({', '.join(sheets)})"
        )
    if file.table is None and len(sheets) > 1:
        file.progress.other_tables[file.name] = ", ".join(list(sheets)[1:])
    return sheets[name]


def _names(cells: Sequence[object], file: InputFile) -> list[str | None]:
    """Return the names of the columns; None for a column without a name."""
    if not file.has_header:
        return []
    names = [None if cell is None else str(as_json(cell)).strip() for cell in cells]
    check_names([name for name in names if name is not None], file.name)
    return names


def _row(names: Sequence[str | None], values: Sequence[object], file: InputFile) -> Row:
    """Return the values by column name.

    A column without a name is called by its letter, or by its number if the sheet has no header.
    """
    from openpyxl.utils import get_column_letter

    row: dict[str, object] = {name: None for name in names if name is not None}
    for at, value in enumerate(values):
        name = names[at] if at < len(names) else None
        if value is not None:
            row[name or (get_column_letter(at + 1) if file.has_header else str(at + 1))] = value
    return row
