"""Make documents, or rejects, of records, which are mappings of names to values."""

from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from math import isinf, isnan

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.dates import parsed_instant
from nearsim_db.readers.values import first_key, is_path, kind, shown, value_at
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import Document, ReadDocument, Reject
from nearsim_db.similarity.text.clean import clean, clean_attributes

MAX_ID_BYTES = 1024
# An id of so many characters fits, whichever characters they are.
ACCEPTED_ID_CHARACTERS = MAX_ID_BYTES // 4
_KEYS_CHARACTERS, _COLUMNS_CHARACTERS = 200, 500
# Beyond this number, different integers are equal as floats.
_MAX_EXACT_INTEGER = 2**53
# These characters are escaped in the parts of an id that is joined of several parts.
_ESCAPED = str.maketrans({":": r"\:", "\\": r"\\"})


class DocumentMaker:
    """Makes the documents of a file, or of rows in memory.

    A record without an id is named after its file and line. If the file is a part of a split of a data set, the record
    is named after the split and its row in the split; `split` is the name of the split, and the number of rows in the
    files before this one. For rows in memory, `remedy` tells users how to provide a missing field.
    """

    def __init__(
        self, file: str, fields: Fields, split: tuple[str, int] | None = None, remedy: str | None = None
    ) -> None:
        self._file = file
        names = fields.arguments
        self._id_remedy = remedy or f"name the id with {names.id}"
        self._text_remedy = remedy or f"name one with {names.title} or {names.body}"
        self._fields = fields
        self._split, self._rows_before = split or (file, 0)
        self._has_ids: bool | None = None if fields.ids == "whole" else fields.ids == "required"
        self._id_parts = tuple(fields.id.split(","))

        named = {fields.id, fields.title, fields.source, fields.url, fields.published_at, fields.vector}
        if fields.body is None:
            self.body_names: tuple[str, ...] = tuple(name for name in ("text", "body") if name not in named)
        else:
            self.body_names = (fields.body,)
        # The keys whose values are joined to a title or body, by the name of the title or body.
        self.joined: dict[str, tuple[str, ...]] = {
            name: tuple(name.split(",")) for name in (fields.title, fields.body) if name and "," in name
        }
        in_id = {name for name in self._id_parts if is_path(name)}
        self.named: frozenset[str] = frozenset(named.union(self.body_names, in_id, *self.joined.values()))
        self._paths = tuple(name for name in self.named if is_path(name))

        texts = (fields.id, fields.title, *self.body_names[:1])
        self._texts = texts if len(set(texts)) == 3 else None
        bodies = " or ".join(f"'{name}'" for name in self.body_names)
        self._missing_text = f"no '{fields.title}' and no {bodies}"

    def check_columns(self, names: list[str]) -> None:
        """Raise InputError if the columns of a file lack the id, or lack all titles, texts and vectors."""
        has_id = self._fields.id in names or all(_is_among(name, names) for name in self._id_parts)
        if self._has_ids is None:
            self._has_ids = has_id
        if self._has_ids and not has_id:
            raise InputError(
                f"no column '{self._fields.id}' in {self._file}; name it with {self._fields.arguments.id} "
                f"(columns: {_listed(names)})"
            )
        texts = (self._fields.title, self._fields.vector, *self.body_names, *chain(*self.joined.values()))
        if not any(_is_among(name, names) for name in texts):
            raise InputError(
                f"{self._missing_text} in {self._file}; {self._text_remedy} (columns: {_listed(names)})"
            )

    def make(
        self, record: Mapping[str, object], line: int, is_encodable: bool = False
    ) -> ReadDocument | Reject:
        """Make a document of a record; `is_encodable` says that certainly no string contains a lone surrogate.

        Keys that no field names become attributes. A source or url that is not a string, and a date that cannot be
        read, become attributes too, and so does 'body' if 'text' is the body.
        """
        # Handle the common case first: a record with only an id, a title and a body, and nothing to clean.
        if is_encodable and self._texts is not None and len(record) == 3:
            id_name, title_name, body_name = self._texts
            get = record.get
            plain_id, title, body = get(id_name), get(title_name), get(body_name)
            if (
                isinstance(plain_id, str)
                and 0 < len(plain_id) <= ACCEPTED_ID_CHARACTERS
                and isinstance(title, str)
                and isinstance(body, str)
                and "\0" not in body
                and "\0" not in title
                and "\0" not in plain_id
            ):
                self._has_ids = self._has_ids is not False
                return ReadDocument(Document(plain_id, title, body), self._file, line)

        if self._has_ids and len(self._id_parts) == 1 and not self._paths and self._fields.id not in record:
            return Reject(self._file, line, _no_id(record, self._fields.id, self._id_remedy))

        if self._paths:
            # A key whose name equals the path takes precedence.
            record = {
                **{path: value for path in self._paths if (value := value_at(record, path)) is not None},
                **record,
            }

        external_id = None
        try:
            external_id, is_numbered = self._id(record, line)
            made = self._document(self._with_joined(record) if self.joined else record, external_id, line)
        except InputError as error:
            return Reject(self._file, line, str(error), external_id)
        made.is_numbered = is_numbered
        if self._fields.body in self.joined and self._fields.body not in record:
            made.absent = tuple(key for key in self.joined[self._fields.body] if key not in record)
        return made

    def _id(self, record: Mapping[str, object], line: int) -> tuple[str, bool]:
        """Return the id of a record, and whether the id is the place of the record."""
        parts = (self._fields.id,) if self._fields.id in record else self._id_parts
        if self._has_ids and len(parts) == 1:
            return checked_id(record, parts[0], self._id_remedy), False

        # The first record of a file decides whether its records have ids.
        if self._has_ids is None:
            self._has_ids = all(part in record for part in parts)
        if not self._has_ids:
            place = f"{self._split}:{self._rows_before + line}"
            if self._fields.ids == "optional":
                try:
                    return _joined_id(record, parts, self._id_remedy), False
                except InputError:
                    return place, True
            return checked_id({"id": place}, "id"), True
        return _joined_id(record, parts, self._id_remedy), False

    def _with_joined(self, record: Mapping[str, object]) -> Mapping[str, object]:
        """Return a record in which a title or body that several keys make up is under its own name."""
        joined = dict(record)
        for name, keys in self.joined.items():
            if name not in record and not record.keys().isdisjoint(keys):
                values = [(key, number_as_text(record.get(key))) for key in keys]
                joined[name] = (
                    "\n".join(str(text) for key, text in values if checked_text(text, key)[0]) or None
                )
        return joined

    def _document(self, record: Mapping[str, object], external_id: str, line: int) -> ReadDocument:
        if self._fields.body is not None and self._fields.body not in record:
            raise InputError(f"no '{self._fields.body}', which {self._fields.arguments.body} names")
        title, in_title = checked_text(record.get(self._fields.title), self._fields.title)
        body_name = self._body_name(record)
        body, in_body = checked_text(record.get(body_name), body_name)
        vector = checked_vector(record.get(self._fields.vector), f"'{self._fields.vector}'")
        if title is None and body is None and vector is None:
            self._check_for_text(record)

        raw_attributes = self._attributes(record, body_name)
        source, in_source = _string_or_attribute(record, self._fields.source, raw_attributes)
        url, in_url = _string_or_attribute(record, self._fields.url, raw_attributes)
        published_at, unreadable = instant_or_attribute(
            record.get(self._fields.published_at), self._fields, raw_attributes
        )
        attributes, in_attributes = clean_attributes(raw_attributes)
        return ReadDocument(
            Document(external_id, title, body, source, url, published_at, attributes, vector),
            self._file,
            line,
            in_title + in_body + in_source + in_url + in_attributes,
            unreadable,
        )

    def _attributes(self, record: Mapping[str, object], body_name: str) -> dict[str, object]:
        attributes = (
            {}
            if record.keys() <= self.named
            else {name: value for name, value in record.items() if name not in self.named}
        )
        for name in self.body_names:
            if name != body_name and record.get(name) is not None:
                attributes[name] = record[name]
        return attributes

    def _body_name(self, record: Mapping[str, object]) -> str:
        for name in self.body_names:
            if record.get(name) is not None:
                return name
        return self.body_names[-1]

    def _check_for_text(self, record: Mapping[str, object]) -> None:
        if not record.keys().isdisjoint((self._fields.title, *self.body_names)):
            return
        arrays = [name for name, value in record.items() if isinstance(value, list) and _has_objects(value)]
        names, inside = self._fields.arguments, ""
        if arrays and names.records:
            inside = (
                f"; if {shown(arrays[0])} has the texts: {names.body} {arrays[0]}.KEY, if it has the records of a JSON "
                f"file: {names.records} {arrays[0]}"
            )
        raise InputError(f"{self._missing_text}; {self._text_remedy}{inside} (keys: {_keys(record)})")


def _has_objects(array: list[object]) -> bool:
    return bool(array) and isinstance(array[0], Mapping)


def check_names(names: list[str], file: str) -> None:
    """Raise InputError for duplicate column names."""
    if len(set(names)) < len(names):
        raise InputError(f"duplicate column names in {file}; rename them (columns: {_listed(names)})")


def _listed(names: list[str]) -> str:
    return clean(", ".join(names))[0][:_COLUMNS_CHARACTERS]


def _is_among(name: str, columns: list[str]) -> bool:
    """Whether a field, or the object that contains it, is a column."""
    return name in columns or first_key(name) in columns


def _joined_id(record: Mapping[str, object], names: tuple[str, ...], remedy: str) -> str:
    if len(names) == 1:
        return checked_id(record, names[0], remedy)
    joined = ":".join(checked_id(record, name, remedy).translate(_ESCAPED) for name in names)
    return checked_id({",".join(names): joined}, ",".join(names))


def checked_id(record: Mapping[str, object], name: str, remedy: str = "") -> str:
    value = record.get(name)
    if type(value) is float:
        if isinf(value):
            raise InputError(f"'{name}' is a number beyond the range of floats; write it as a string")
        if value.is_integer() and abs(value) >= _MAX_EXACT_INTEGER:
            raise InputError(
                f"'{name}' is {value!r}, a float that may stand for several integers; write it as a string"
            )
        # A whole number is the same id whether it is an int or a float: 5.0 is '5'.
        value = None if isnan(value) else str(int(value)) if value.is_integer() else str(value)
    if (
        type(value) is int and value.bit_length() <= 8 * MAX_ID_BYTES
    ):  # Python refuses to print longer integers
        value = str(value)

    if value is None or (
        isinstance(value, str) and not value
    ):  # comparing pandas.NA or arrays to "" would fail
        if name in record:
            raise InputError(f"'{name}' is empty")
        raise InputError(_no_id(record, name, remedy))
    if not isinstance(value, str):
        raise InputError(f"'{name}' is {kind(value)}, {shown(value)}; it must be a string or a number")
    if clean(value)[1]:
        raise InputError(
            f"'{name}' {shown(value)} contains NUL, a lone surrogate or bytes that are not UTF-8"
        )

    size = len(value.encode())
    if size > MAX_ID_BYTES:
        raise InputError(f"'{name}' {shown(value)} has {size:,} bytes; the maximum is {MAX_ID_BYTES:,}")
    return value


def _no_id(record: Mapping[str, object], name: str, remedy: str) -> str:
    return f"no '{name}'; {remedy} (keys: {_keys(record)})"


def _keys(record: Mapping[str, object]) -> str:
    names = clean(", ".join(record))[0]
    return names if len(names) <= _KEYS_CHARACTERS else f"{names[:_KEYS_CHARACTERS]}..."


def checked_text(value: object, name: str, absent: str = "null") -> tuple[str | None, int]:
    """Return a cleaned text, and the number of characters that were replaced.

    None stays None; `absent` is the word for None in messages.
    """
    if value is None:
        return None, 0
    if not isinstance(value, str):
        raise InputError(f"'{name}' is {kind(value)}, {shown(value)}; it must be a string or {absent}")
    # A subclass, such as numpy.str_, becomes a plain string.
    return clean(str.__str__(value))


def number_as_text(value: object) -> object:
    """Return a number as text, None for NaN, and any other value unchanged."""
    if type(value) is float:
        return None if isnan(value) else str(value)
    return str(value) if type(value) is int else value


def _string_or_attribute(
    record: Mapping[str, object], name: str, attributes: dict[str, object]
) -> tuple[str | None, int]:
    value = record.get(name)
    if isinstance(value, str):
        return clean(value)
    if value is not None:
        attributes[name] = value
    return None, 0


def instant_or_attribute(
    value: object, fields: Fields, attributes: dict[str, object]
) -> tuple[datetime | None, str | None]:
    """Return the date of a record, None if it is blank or invalid, and the reason if it is invalid.

    An invalid date is added to `attributes`.
    """
    try:
        return parsed_instant(value, fields.date_formats), None
    except ValueError as error:
        name, option = fields.published_at, fields.arguments.dates
        attributes[name] = value if isinstance(value, str) else shown(value)
        advice = f"; give its form with {option}, as in %d.%m.%Y %H:%M" if option else ""
        return None, f"'{name}' {shown(value)} is {error}{advice}"
