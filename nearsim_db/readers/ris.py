"""RIS: bibliographic references, in the format that literature databases and reference managers export."""

import re
from collections.abc import Iterator

from nearsim_db.readers.contract import Row
from nearsim_db.readers.input_file import InputFile

_TAGGED = re.compile(r"(?P<tag>[A-Z][A-Z0-9])  ?-(?: (?P<value>.*))?")
_DAY = re.compile(r"(\d{4})/(\d{2})/(\d{2})(/.*)?")
_BEGIN, _END = "TY", "ER"
# All other tags become columns with the tag's name.
_NAMES = {
    **{"TY": "type", "ID": "id", "TI": "title", "T1": "title", "AB": "text", "N2": "text", "UR": "url"},
    **{"AU": "authors", "A1": "authors", "PY": "year", "Y1": "year", "DA": "published_at", "DO": "doi"},
    **{"JO": "journal", "JF": "journal", "T2": "journal", "KW": "keywords", "SN": "issn"},
}
# Some programs write these fields under two tags; only the first value counts.
_FIRST_ONLY = {"title", "text", "url", "year", "journal", "published_at"}


def read_ris(file: InputFile) -> Iterator[tuple[int, Row | str]]:
    """Yield the references, each with the line on which it begins; a reference without an end ends before the next one.

    The values of a repeated tag, such as the authors, are joined by "; ". A line without a tag continues the previous
    value. If a reference has no tag ID, its file and line become its id.
    """
    values: dict[str, list[list[str]]] | None = None
    begin = size = 0
    tag, is_outside = "", False
    for number, line in file.lines():
        text = "" if line is None else line.decode("utf-8", "surrogateescape").strip()
        size = file.limit + 1 if line is None else size + len(text)
        tagged = _TAGGED.fullmatch(text)
        if tagged and tagged["tag"] == _BEGIN:
            if values is not None:
                # `size` includes this line, which belongs to the next reference.
                yield begin, _row(values, file, begin, size - len(text))
            values, begin, size = {}, number, len(text)

        if values is None:
            if text and not is_outside:
                # Report only the first such line before the next reference.
                yield (
                    number,
                    f"outside of a reference, which begins with '{_BEGIN}  - ' and ends with '{_END}  - '",
                )
            is_outside = is_outside or bool(text)
        elif tagged and tagged["tag"] == _END:
            yield begin, _row(values, file, begin, size)
            values, is_outside = None, False
        elif tagged:
            tag = tagged["tag"]
            values.setdefault(tag, []).append([(tagged["value"] or "").strip()])
        elif text and size <= file.limit:
            values[tag][-1].append(text)
    if values is not None:
        yield begin, _row(values, file, begin, size)


def _row(values: dict[str, list[list[str]]], file: InputFile, begin: int, size: int) -> Row | str:
    if size > file.limit:
        return file.too_long
    row: dict[str, object] = {"id": f"{file.name}:{begin}"}
    for tag, tag_values in values.items():
        name = _NAMES.get(tag, tag)
        texts = [text for lines in tag_values if (text := " ".join(lines).strip())]
        if texts and not (name in _FIRST_ONLY and name in row):
            row[name] = texts[0] if name in _FIRST_ONLY else "; ".join(texts)
    if day := _DAY.fullmatch(str(row.get("published_at", ""))):
        row["published_at"] = "-".join(day.groups()[:3])
    return row
