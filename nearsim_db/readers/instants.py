"""Dates and times in the forms that files have them: ISO 8601, RFC 2822, and seconds or milliseconds since 1970."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import isnan

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MILLISECONDS = 1e11  # as seconds it is in the year 5138, as milliseconds in 1973
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
_YEAR_OR_DAY = re.compile(r"[12][0-9]{3}|[12][0-9]{7}")  # not seconds since 1970
# parsedate_to_datetime makes a date of nearly everything.
_RFC_2822 = re.compile(
    r"([A-Za-z]{3,9},?\s+)?[0-9]{1,2}[ -][A-Za-z]{3,9}[ -]([0-9]{2}|[0-9]{4})\s+[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?"
    r"(\s+([+-][0-9]{4}|[A-Za-z]{1,5}))?(\s*\([^()]*\))?"
)


def parsed_instant(value: object) -> datetime | None:
    """Return a time in UTC; None for null, NaN and blanks. Raises ValueError for anything else that is not a time.

    A number counts seconds since 1970, or from 100,000,000,000 on milliseconds; eight digits are a day, as 20240531.
    """
    try:
        match value:
            case None:
                return None
            case float():
                return None if isnan(value) else _since_epoch(value)
            case str() | int() if not isinstance(value, bool):
                text = str(value).strip()
                return _of_text(text) if text else None
            case _:
                raise ValueError
    except (ValueError, OverflowError):
        raise ValueError("not a date or time in ISO 8601 or RFC 2822, or in seconds since 1970") from None


def _of_text(text: str) -> datetime:
    if _NUMBER.fullmatch(text) and not _YEAR_OR_DAY.fullmatch(text):
        return _since_epoch(int(text) if text.lstrip("+-").isdigit() else float(text))
    if _RFC_2822.fullmatch(text):
        return in_utc(parsedate_to_datetime(text))
    return in_utc(datetime.fromisoformat(text))


def _since_epoch(number: float) -> datetime:
    if abs(number) < _FIRST_MILLISECONDS:
        return _EPOCH + timedelta(seconds=number)
    return _EPOCH + timedelta(milliseconds=number)


def in_utc(moment: datetime) -> datetime:
    """Return a time in UTC, which one without a zone is taken to be in. OverflowError outside the years 1 to 9999."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
