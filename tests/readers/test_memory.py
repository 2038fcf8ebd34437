"""Documents from memory."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers.memory import checked_query, from_documents
from nearsim_db.records import Document, ReadDocument, Reject

EAST, WEST = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))


def test_times_are_in_utc_and_within_its_years() -> None:
    read = list(
        from_documents(
            [
                Document("naive", published_at=datetime(2026, 3, 1)),
                Document("east", published_at=datetime(2026, 3, 1, 14, tzinfo=EAST)),
                Document("before", published_at=datetime(1, 1, 1, tzinfo=EAST)),
                Document("after", published_at=datetime(9999, 12, 31, 23, tzinfo=WEST)),
            ]
        )
    )
    made = [one.document.published_at for one in read if isinstance(one, ReadDocument)]
    assert made == [datetime(2026, 3, 1, tzinfo=UTC)] * 2
    rejected = [one for one in read if isinstance(one, Reject)]
    assert [one.external_id for one in rejected] == ["before", "after"]
    assert all("is outside the years 1 to 9999" in one.reason for one in rejected)


class Missing(datetime):
    """As pandas.NaT: a datetime that does not equal itself, and stays the same with another zone."""

    def __ne__(self, other: object) -> bool:
        return True

    def replace(self, *given: object, **named: object) -> "Missing":
        return self


class NAType:
    """As pandas.NA: comparisons with it have no truth value."""

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    def __eq__(self, other: object) -> Any:
        return self

    __hash__ = None  # type: ignore[assignment]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no representation")


class Stamp(datetime):
    """A datetime of a library, such as pandas.Timestamp."""


class Colour(str, Enum):  # noqa: UP042 - StrEnum has another str()
    """A string whose str() is not its value."""

    RED = "red"


NOON = datetime(2024, 5, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (date(2024, 5, 31), datetime(2024, 5, 31, tzinfo=UTC)),
        (Stamp(2024, 5, 31, 12), NOON),
        (np.datetime64("2024-05-31T12:00:00.000000000"), NOON),
        (np.datetime64("2024-05-31"), datetime(2024, 5, 31, tzinfo=UTC)),
        ("2024-05-31T12:00:00Z", NOON),
        (Missing(2024, 5, 31), None),
        (np.datetime64("NaT"), None),
        (float("nan"), None),
        (Decimal("NaN"), None),
        pytest.param(NAType(), None, id="NA"),
    ],
    ids=repr,
)
def test_times_of_other_types(given: Any, expected: datetime | None) -> None:
    (read,) = from_documents([Document("one", published_at=given)])
    assert isinstance(read, ReadDocument)
    assert read.document.published_at == expected
    assert expected is None or type(read.document.published_at) is datetime


def test_values_that_cannot_be_stored_are_rejected_by_name() -> None:
    texts = [(name, value) for name in ("title", "body", "source", "url")
             for value in (float("nan"), 5, b"bytes", ["list"], NAType())]  # fmt: skip
    attributes = (
        ["list"],
        {"at": NOON},
        {"at": np.datetime64("NaT")},
        {"score": np.float32("nan")},
        {"price": Decimal("1.5")},
    )
    others = [("published_at", [1]), ("published_at", np.datetime64(10**15, "Y")), ("vector", float("nan"))]
    given: list[tuple[str, Any]] = [*texts, *others, *(("attributes", one) for one in attributes)]
    read = list(from_documents([Document("one", **{name: value}) for name, value in given]))
    rejects = [one for one in read if isinstance(one, Reject)]
    assert [(one.line, one.external_id) for one in rejects] == [
        (at, "one") for at in range(1, len(given) + 1)
    ]
    for one, (name, _) in zip(rejects, given, strict=True):
        assert name.removesuffix("s") in one.reason


def test_ids_and_anything_that_is_no_document() -> None:
    given: list[Any] = [Document(np.int64(7)), Document(np.str_("name")), Document(7.5), {"id": "a"}, None]  # type: ignore[arg-type]
    made, named, half, *rejected = from_documents(given)
    assert isinstance(made, ReadDocument) and made.document.external_id == "7"
    assert isinstance(half, ReadDocument) and half.document.external_id == "7.5"
    assert isinstance(named, ReadDocument) and type(named.document.external_id) is str
    assert [one.line for one in rejected if isinstance(one, Reject)] == [4, 5]


# The second is the number of the record that it is fit for: a vector, and no date.
@pytest.mark.parametrize(
    ("value", "fit"),
    [(NAType(), 8), (np.array([1, 2]), 5), (np.timedelta64(1, "D"), 0), (10**5000, 0), (Unprintable(), 0)],
    ids=["missing", "array", "duration", "long number", "unprintable"],
)
def test_no_value_of_a_field_raises(value: Any, fit: int) -> None:
    names = ("title", "body", "source", "url", "vector", "attributes")
    given = [Document("one", **{name: value}) for name in names]
    read = list(from_documents([*given, Document(value), Document("one", published_at=value), value]))
    assert len(read) == 9
    assert [one.line for one in read if isinstance(one, ReadDocument)] == ([fit] if fit else [])
    with pytest.raises(InputError):
        checked_query(Document("one", body=value))


def test_subclasses_become_plain_values() -> None:
    attributes = {
        "score": np.float64(0.5),
        "count": np.int64(3),
        "is_new": np.bool_(True),
        "of\ud800": [np.float32(0.5)],
    }
    (read,) = from_documents([Document("one", Colour.RED, np.str_("text\ud800"), attributes=attributes)])
    assert isinstance(read, ReadDocument)
    made = read.document
    assert (made.title, type(made.title), made.body, type(made.body)) == ("red", str, "text\ufffd", str)
    assert made.attributes == {"score": 0.5, "count": 3, "is_new": True, "of\ufffd": [0.5]}
    assert [type(one) for one in made.attributes.values()] == [float, int, bool, list]
    assert read.replaced == 2


@pytest.mark.parametrize("row", ["a text", {"text": "a text"}, {"id": "1", "story": "a text"}])
def test_a_row_without_a_field_names_no_option_of_the_command_line(row: object) -> None:
    (reject,) = from_documents([row])
    assert isinstance(reject, Reject)
    assert "a row is a nearsim_db.Document, a tuple of id and text, or a mapping" in reject.reason
    assert "--" not in reject.reason


def test_a_text_is_no_document_to_check() -> None:
    with pytest.raises(InputError, match=r"'a text' is a string; .* similar_to_text\(\)"):
        checked_query("a text")  # type: ignore[arg-type]
