"""Documents from memory, checked by the same rules as documents from files."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from enum import Enum
from pathlib import PurePath
from typing import Any, cast

import numpy as np

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import Unreadable, as_json
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.dates import in_utc, parsed_instant
from nearsim_db.readers.document_maker import DocumentMaker, checked_id, checked_text
from nearsim_db.readers.frames import Rows, rows_of_frame
from nearsim_db.readers.values import kind, shown
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import Document, ReadDocument, Reject
from nearsim_db.similarity.text.clean import clean, clean_attributes

_FIELDS = Fields()
_REMEDY = "a row is a nearsim_db.Document, a tuple of id and text, or a mapping with these names"


def from_documents(
    rows: Rows, fields: Fields = _FIELDS, origin: str = "documents"
) -> Iterator[ReadDocument | Reject]:
    """Yield cleaned documents, or rejects with the reason, as if the rows had been read from a file named `origin`.

    A row is a document, a text, a mapping, a tuple of id and text or of id, title and text, a named tuple, or a row of
    a data frame or of another object with the Arrow C stream interface, whose columns are used like those of a file.
    Raises InputError for a single text, document or mapping, and for a data frame that cannot be read.
    """
    is_table = hasattr(rows, "__arrow_c_stream__")
    if isinstance(rows, str | bytes | Mapping | Document) or not (is_table or hasattr(rows, "__iter__")):
        raise InputError(f"{shown(rows)} is {kind(rows)}; give a list of rows, or a data frame")
    maker = DocumentMaker(origin, fields, remedy=_REMEDY if fields is _FIELDS else None)
    frame_rows = rows_of_frame(rows) if is_table else None
    for number, row in enumerate(cast(Iterable[object], rows) if frame_rows is None else frame_rows, 1):
        try:
            if isinstance(row, Document):
                yield _checked(row, origin, number)
            else:
                yield maker.make(_record(row, fields, maker.body_names[0]), number)
        except InputError as error:
            yield Reject(origin, number, str(error), _id_if_any(row))


def _record(row: object, fields: Fields, body: str) -> dict[str, object]:
    """Return a row as a record of plain values. Raises InputError for anything that is not a row."""
    if hasattr(row, "as_py"):
        # This is a scalar of pyarrow.
        row = row.as_py()

    match row:
        case str():
            return {body: str.__str__(row)}
        case _ if row is None or _is_missing(row):
            return {body: None}
        case Mapping():
            values: Mapping[Any, object] = row
        case tuple() if hasattr(row, "_asdict"):
            values = row._asdict()
        case (external_id, text):
            values = {fields.id: external_id, body: text}
        case (external_id, title, text):
            values = {fields.id: external_id, fields.title: title, body: text}
        case _:
            raise InputError(
                f"{shown(row)} is {kind(row)}; it must be a nearsim_db.Document, a text, a mapping, or a "
                "tuple of id and text"
            )

    # A vector stays as it is: checking it does not need a list of plain numbers.
    return {
        str(name): value if name == fields.vector else _plain(value, str(name))
        for name, value in values.items()
    }


_PLAIN = (str, int, type(None))


def _plain(value: Any, name: str) -> object:
    """Convert a value of Python, NumPy or pandas to JSON values; NaN, NaT and pandas.NA become None.

    Raises InputError for a value that cannot be converted.
    """
    if type(value) in _PLAIN or isinstance(value, bool):
        return value

    if isinstance(value, Unreadable):
        raise InputError(f"cannot read '{name}': {value.reason}")

    try:
        match value:
            case np.ndarray() | list() | tuple() | set() | frozenset():
                return [
                    _plain(item, name)
                    for item in (value.tolist() if isinstance(value, np.ndarray) else value)
                ]
            case Mapping():
                return {str(key): _plain(item, name) for key, item in value.items()}
            case _ if _is_missing(value):
                # This includes NaT, which is a datetime64.
                return None
            case np.datetime64():
                is_day = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
                return str(value.astype("datetime64[D]")) if is_day else _in_seconds(value).isoformat()
            case np.generic():
                return _plain(value.item(), name)
            case datetime() | date() | time():
                return value.isoformat()
            case Enum():
                return _plain(value.value, name)
            case str() | int():
                return str.__str__(value) if isinstance(value, str) else int(value)
            case _ if hasattr(value, "as_py"):
                return _plain(value.as_py(), name)
            case PurePath():
                return str(value)
            case _:
                return as_json(value)
    except InputError:
        raise
    except Exception as error:  # values may run code that raises any kind of error
        raise InputError(f"cannot read '{name}': {Unreadable(error).reason}") from error


def checked_query(document: Document) -> Document:
    """Return a cleaned document to look up; any string is allowed as its id.

    Raises InputError, which names the document, for a value that cannot be used.
    """
    if not isinstance(document, Document):
        raise InputError(
            f"{shown(document)} is {kind(document)}; give a nearsim_db.Document, or look a text up with "
            "similar_to_text()"
        )

    try:
        external_id = _id_if_any(document)
        external_id = _id(document) if external_id is None else external_id
        (title, _), (body, _) = (
            checked_text(document.title, "title", "None"),
            checked_text(document.body, "body", "None"),
        )
        source, attributes = (
            checked_text(document.source, "source", "None")[0],
            clean_attributes(_mapping(document.attributes))[0],
        )
        vector = checked_vector(document.vector, "the vector")
        published_at = _instant(document.published_at)
        return Document(
            external_id, title, body, source, None, published_at, attributes=attributes, vector=vector
        )
    except InputError as error:
        name = _id_if_any(document)
        raise InputError(f"document {shown(name)}: {error}" if name else str(error)) from None


def _checked(document: Document, origin: str, number: int) -> ReadDocument:
    if not isinstance(document, Document):
        raise InputError(f"{shown(document)} is {kind(document)}; it must be a nearsim_db.Document")

    external_id = _id(document)
    title, in_title = checked_text(document.title, "title", "None")
    body, in_body = checked_text(document.body, "body", "None")
    source, in_source = checked_text(document.source, "source", "None")
    url, in_url = checked_text(document.url, "url", "None")
    attributes, in_attributes = clean_attributes(_mapping(document.attributes))
    vector = checked_vector(document.vector, "the vector")

    return ReadDocument(
        Document(external_id, title, body, source, url, _instant(document.published_at), attributes, vector),
        origin,
        number,
        in_title + in_body + in_source + in_url + in_attributes,
    )


def _id(document: Document) -> str:
    external_id: object = document.external_id
    plain_id = external_id.item() if isinstance(external_id, np.integer) else external_id
    return str.__str__(checked_id({"external_id": plain_id}, "external_id"))


def _id_if_any(document: object) -> str | None:
    """Return the id of an object if it is a document with a string as its id, else None."""
    external_id = getattr(document, "external_id", None)
    return clean(external_id)[0] if isinstance(external_id, str) else None


def _mapping(value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"'attributes' is {kind(value)}, {shown(value)}; it must be a mapping")
    return value


def _instant(value: object) -> datetime | None:
    """Return a time in UTC. A date means the beginning of the day; NaT, NaN and pandas.NA mean no time."""
    if value is None or _is_missing(value):
        return None

    moment = _in_seconds(value) if isinstance(value, np.datetime64) else value
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        try:
            return parsed_instant(moment)
        except ValueError as error:
            raise InputError(f"'published_at' is {kind(moment)}, {shown(moment)}: {error}") from None
    try:
        # Subclasses such as pandas.Timestamp may have nanoseconds or special time zones.
        in_zone = in_utc(moment)
    except OverflowError:
        raise InputError(f"published_at {moment} is outside the years 1 to 9999 in UTC") from None

    return datetime.combine(datetime.date(in_zone), datetime.timetz(in_zone))


def _in_seconds(value: np.datetime64) -> datetime:
    if not isinstance(value.astype("datetime64[s]").item(), datetime):
        raise InputError(f"published_at {value} is outside the years 1 to 9999 in UTC")
    moment: datetime = value.astype("datetime64[us]").item()
    return moment


def _is_missing(value: object) -> bool:
    """Whether a value means a missing value in NumPy or pandas: NaN and NaT do not equal themselves."""
    try:
        return bool(value != value)
    except Exception:  # pandas.NA and arrays have no truth value
        return type(value).__name__ == "NAType"
