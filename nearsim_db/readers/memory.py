"""Documents from memory, checked by the same rules as those from files."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from nearsim_db.errors import InputError
from nearsim_db.readers.document_maker import checked_id, in_utc
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
            yield Reject(_ORIGIN, number, str(error), document.external_id)


def _checked(document: Document, number: int) -> ReadDocument:
    external_id = checked_id({"external_id": document.external_id}, "external_id")
    title, in_title = _cleaned(document.title)
    body, in_body = _cleaned(document.body)
    source, in_source = _cleaned(document.source)
    url, in_url = _cleaned(document.url)
    attributes, in_attributes = clean_attributes(document.attributes)
    vector = checked_vector(document.vector, "the vector")
    return ReadDocument(
        Document(external_id, title, body, source, url, _instant(document.published_at), attributes, vector),
        _ORIGIN,
        number,
        in_title + in_body + in_source + in_url + in_attributes,
    )


def _cleaned(text: str | None) -> tuple[str | None, int]:
    return (None, 0) if text is None else clean(text)


def _instant(moment: datetime | None) -> datetime | None:
    try:
        return None if moment is None else in_utc(moment)
    except OverflowError:
        raise InputError(f"published_at {moment} is outside the years 1 to 9999 in UTC") from None
