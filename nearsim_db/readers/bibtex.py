"""BibTeX: references for LaTeX, read with bibtexparser, which is imported only for such files."""

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Row
from nearsim_db.readers.input_file import InputFile

_BEGIN = re.compile(r"\s*@\s*(?P<kind>\w+)\s*[{(]")
_YEAR, _DATE = re.compile(r"[12][0-9]{3}"), re.compile(r"([12][0-9]{3})(?:-([0-9]{2}))?(?:-([0-9]{2}))?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# All other fields become columns with the field's name.
_NAMES = {"abstract": "text", "author": "authors", "journaltitle": "journal"}
# In these fields, `~` and `%` are ordinary characters.
_ADDRESSES = ("doi", "eprint", "file", "url")
_URL = re.compile(r"\\url\s*\{([^{}]*)\}")
_ESCAPED, _COMMENT = re.compile(r"\\([#$%&_{}~])"), re.compile(r"(?<!\\)%")


def read_bibtex(file: InputFile) -> Iterator[tuple[int, Row | str]]:
    """Yield the entries, each with the line on which it begins; LaTeX commands become the characters that they print.

    The id is the key of an entry, or its file and line if it has no key. Authors are joined by "; ". The date is
    `date`, or else the first day of `year` and `month`. Text between entries is ignored. Raises InputError if
    bibtexparser is not installed.
    """
    try:
        from bibtexparser.entrypoint import parse_string
        from bibtexparser.library import Library
    except ImportError as error:
        raise InputError(
            f"reading {file.path} requires the package bibtexparser; pip install 'nearsim-db[references]'"
        ) from error

    # bibtexparser logs damaged entries, which are reported as rejects here.
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    strings: list[Any] = []
    has_text = has_blocks = False
    for begin, kind, text in _blocks(file):
        has_blocks = has_blocks or bool(kind)
        has_text = has_text or text is None or bool(text.strip())
        if text is None:
            yield begin, file.too_long
        elif kind == "string":
            strings = list(parse_string(text, library=Library(strings)).strings)
        elif kind and kind not in ("comment", "preamble"):
            yield from _rows_of(parse_string(text, library=Library(strings)), file, begin)
    if has_text and not has_blocks:
        yield 1, "no entry of BibTeX, which begins with '@', a type and '{'"


def _blocks(file: InputFile) -> Iterator[tuple[int, str, str | None]]:
    """Yield each block that begins with `@` at the beginning of a line, and the text before the first one.

    A block is its line, its kind (empty for the text before the first one), and its text, which is None if it is too
    long. An entry that is not closed ends where the next one begins, as it does in bibtexparser.
    """
    begin, kind, size, lines = 1, "", 0, list[str]()
    for number, line in file.lines():
        text = "" if line is None else line.decode("utf-8", "surrogateescape")
        if start := _BEGIN.match(text):
            yield begin, kind, "\n".join(lines) if size <= file.limit else None
            begin, kind, size, lines = number, start["kind"].lower(), 0, []

        size = file.limit + 1 if line is None else size + len(text)
        # Once a block is too long, its further lines are dropped.
        if size <= file.limit:
            lines.append(text)
    yield begin, kind, "\n".join(lines) if size <= file.limit else None


def _rows_of(library: Any, file: InputFile, begin: int) -> Iterator[tuple[int, Row | str]]:
    """Yield the entries of a block that begins at line `begin`, or the reasons why they cannot be read.

    A block may have several entries, if they are on the same line.
    """
    from bibtexparser.model import Entry

    if not library.failed_blocks and any("}" in comment.comment for comment in library.comments):
        yield begin, "no valid entry of BibTeX: its braces are not balanced"
        return

    # bibtexparser reports an entry with a repeated field or key as failed, but such an entry can be read.
    for block in (*library.entries, *library.failed_blocks):
        entry, place = getattr(block, "ignore_error_block", None) or block, begin + block.start_line
        if isinstance(entry, Entry):
            yield place, _row(entry, file, place)
        else:
            yield place, f"no valid entry of BibTeX: {getattr(block.error, 'abort_reason', block.error)}"


def _row(entry: Any, file: InputFile, begin: int) -> Row | str:
    values = dict[str, str]()
    for field in entry.fields:
        name = field.key.lower()
        try:
            value = _shown(name, str(field.value))
        except RecursionError:
            return f"the braces of {name} are nested too deeply"
        if value:
            values.setdefault(_NAMES.get(name, name), value)

    values["authors"] = "; ".join(re.split(r"\s+and\s+", values.get("authors", "")))
    row = {"id": entry.key or f"{file.name}:{begin}", "type": entry.entry_type, **values, **_date_of(values)}
    return {name: value for name, value in row.items() if value}


def _shown(name: str, value: str) -> str:
    """Return the text that LaTeX would print for the value of a field, on one line."""
    if name in _ADDRESSES:
        return _ESCAPED.sub(r"\1", _URL.sub(r"\1", value)).strip("{} ")
    if "\\" in value:
        from pylatexenc.latex2text import LatexNodes2Text

        # LaTeX would take a percent sign for the beginning of a comment, which is hardly ever meant in a reference.
        decoder = LatexNodes2Text(math_mode="verbatim")
        value = decoder.latex_to_text(_COMMENT.sub(r"\\%", value))
    return " ".join(value.translate({ord("{"): None, ord("}"): None}).split())


def _date_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return the date of an entry as `published_at`; return nothing if it has no year."""
    if day := _DATE.match(values.get("date", "")):
        return {"published_at": "-".join(part or "01" for part in day.groups())}

    year, month = _YEAR.search(values.get("year", "")), values.get("month", "")[:3].lower()
    if year is None:
        return {}
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month) if month.isdecimal() else 1
    return {"published_at": f"{year[0]}-{number:02}-01"}
