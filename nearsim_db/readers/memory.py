"""Documents from memory, checked by the same rules as those from files."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time

import numpy as np

from nearsim_db.errors import InputError
from nearsim_db.readers.document_maker import checked_id, checked_text, in_utc, parsed_instant
from nearsim_db.readers.values import kind, shown
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import Document, ReadDocument, Reject
from nearsim_db.similarity.text.clean import clean, clean_attributes

_ORIGIN = "documents"


def from_documents(documents: Iterable[Document]) -> Iterator[ReadDocument | Reject]:
    """Yield documents like a reader, numbered from 1: cleaned, or rejected with the reason."""
    for number, document in enumerate(documents, 1):
        try:
            yield _checked(document, number)
        except InputError as error:
            yield Reject(_ORIGIN, number, str(error), _known_id(document))


def checked_query(document: Document) -> Document:
    """Return a document to look up, cleaned; any string is an id. Raises InputError, which names the document."""
    try:
        external_id = _known_id(document)
        external_id = _id(document) if external_id is None else external_id
        (title, _), (body, _) = (
            checked_text(document.title, "title", "None"),
            checked_text(document.body, "body", "None"),
        )
        return Document(external_id, title, body, vector=checked_vector(document.vector, "the vector"))
    except InputError as error:
        name = _known_id(document)
        raise InputError(f"document {shown(name)}: {error}" if name else str(error)) from None


def _checked(document: Document, number: int) -> ReadDocument:
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
        _ORIGIN,
        number,
        in_title + in_body + in_source + in_url + in_attributes,
    )


def _id(document: Document) -> str:
    given: object = document.external_id
    known = given.item() if isinstance(given, np.integer) else given
    return str.__str__(checked_id({"external_id": known}, "external_id"))


def _known_id(document: object) -> str | None:
    """Return the id of a document that has one; anything may have been given."""
    external_id = getattr(document, "external_id", None)
    return clean(external_id)[0] if isinstance(external_id, str) else None


def _mapping(value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"'attributes' is {kind(value)}, {shown(value)}; it must be a mapping")
    return value


def _instant(value: object) -> datetime | None:
    """Return a time in UTC; a date begins its day, and NaT, NaN and pandas.NA are no time."""
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
        # Subclasses such as pandas.Timestamp have nanoseconds, or zones of their own.
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
    """Whether a value marks a missing one in NumPy or pandas: NaN and NaT do not equal themselves."""
    try:
        return bool(value != value)
    except Exception:  # pandas.NA has no truth value, nor has an array
        return type(value).__name__ == "NAType"
