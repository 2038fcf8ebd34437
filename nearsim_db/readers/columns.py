"""The value of any field of a record that was read, by its name in the file."""

from collections.abc import Mapping

from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import value_at
from nearsim_db.records import ReadDocument

FILE = "file"


def column_of(record: ReadDocument, name: str, fields: Fields) -> object:
    """Return the value of a field or column, or at a path such as 'meta.lang'; the file for 'file'; None for none."""
    if name == FILE:
        return record.file
    document = record.document
    value: object = None
    if name in (fields.source, "source"):
        value = document.source
    elif name == fields.id:
        value = document.external_id
    elif name == fields.title:
        value = document.title
    elif name == fields.url:
        value = document.url
    elif name == fields.published_at:
        value = None if document.published_at is None else document.published_at.isoformat()
    if value is None and name in document.attributes:
        value = document.attributes[name]
    return value_at(document.attributes, name) if value is None and "." in name else value


def field_of(name: str, source: str | None, attributes: Mapping[str, object] | None) -> object:
    """Return the source of a document, or an attribute, or what is at a path in them; None for none."""
    if name == "source":
        return source
    value = (attributes or {}).get(name)
    return value_at(attributes or {}, name) if value is None and "." in name else value
