"""Parse dates and times in the forms that occur in files, and convert them to UTC."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from functools import cache
from math import isnan
from zoneinfo import ZoneInfo, available_timezones

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Numbers below this one count seconds, others milliseconds. As seconds it is in the year 5138, as milliseconds in 1973.
_MIN_MILLISECONDS = 1e11
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
# Digits that are a year or a day, not seconds since 1970.
_YEAR_OR_DAY = re.compile(r"[12][0-9]{3}|[12][0-9]{7}")
_DASH = re.compile("(?<=[0-9])-(?=[A-Za-z])|(?<=[A-Za-z])-(?=[0-9])")
# The form is checked first, because parsedate_to_datetime accepts nearly everything.
_RFC_2822 = re.compile(
    r"([A-Za-z]{3,9},?\s+)?[0-9]{1,2}[ -][A-Za-z]{3,9}[ -]([0-9]{2}|[0-9]{4})\s+[0-9]{1,2}:[0-9]{2}"
    r"(:[0-9]{2}(?P<fraction>\.[0-9]{1,9})?)?"
    r"(\s+([+-][0-9]{4}|[A-Za-z]{1,5}))?(\s*\([^()]*\))?"
)
# If the month has a name, day and month cannot be confused.
_DAY_FIRST = re.compile(r"[0-9]{1,2}(st|nd|rd|th|\.)?[ /-]?[A-Za-z]{3,9}\.?,?[ /-]?([0-9]{4}|[0-9]{2})\b")
_MONTH_FIRST = re.compile(r"[A-Za-z]{3,9}\.? [0-9]{1,2}(st|nd|rd|th)?,? [0-9]{4}\b")
_EITHER_FIRST = re.compile(r"[0-9]{1,2}([/.-])[0-9]{1,2}\1([0-9]{4}|[0-9]{2})\b")
_WITH_ZONE = re.compile(r"(?P<time>.*[0-9].*\S)\s+(?P<zone>[A-Z]{2,5})")
_NO_DATE = "not a date or time in ISO 8601 or RFC 2822, or in seconds since 1970"
_ZONE_FORMAT = " %Z"
# Matching the patterns takes quadratic time, so longer texts are not tried.
_MAX_CHARACTERS = 100


def parsed_instant(value: object, formats: Sequence[str] = ()) -> datetime | None:
    """Return a time in UTC; None for null, NaN and blanks. Raises ValueError for anything else that is not a time.

    `formats`, which are those of `datetime.strptime`, are tried first; %Z at the end matches any abbreviation of a time
    zone that has only one meaning. Otherwise a text must be in ISO 8601 or RFC 2822, or contain the English name of a
    month. A number counts seconds since 1970, or milliseconds from 100,000,000,000 on. Eight digits are a day, such as
    20240531.
    """
    if value is None or (isinstance(value, float) and isnan(value)):
        return None

    may_be_time = isinstance(value, str | int | float) and not isinstance(value, bool)
    text = str(value).strip() if may_be_time else None
    if text == "":
        return None
    if text is not None and len(text) > _MAX_CHARACTERS:
        raise ValueError(_NO_DATE)
    try:
        if isinstance(value, float):
            return _since_epoch(value)
        if text is not None:
            return _by_formats(text, formats) or _of_text(text)
    except (ValueError, OverflowError):
        pass
    if text is not None and _EITHER_FIRST.match(text):
        raise ValueError("a date whose day and month cannot be told apart")
    raise ValueError(_NO_DATE)


def _by_formats(text: str, formats: Sequence[str]) -> datetime | None:
    """Return the time of a text by the first format that fits, or None if no format fits."""
    for form in formats:
        try:
            if form.endswith(_ZONE_FORMAT) and (parts := _WITH_ZONE.fullmatch(text)):
                return _in_zone(
                    datetime.strptime(parts["time"], form.removesuffix(_ZONE_FORMAT)), parts["zone"]
                )
            return in_utc(datetime.strptime(text, form))
        except ValueError:
            continue
    return None


def _of_text(text: str) -> datetime:
    if _NUMBER.fullmatch(text) and not _YEAR_OR_DAY.fullmatch(text):
        return _since_epoch(int(text) if text.lstrip("+-").isdigit() else float(text))

    if match := _RFC_2822.fullmatch(text):
        # News agencies write 26-FEB-1987 15:01:01.79, for which parsedate_to_datetime raises an error.
        fraction = match["fraction"] or ""
        whole = parsedate_to_datetime(_DASH.sub(" ", text.replace(fraction, "")))
        return in_utc(whole) + timedelta(seconds=float(fraction or 0))

    if _DAY_FIRST.match(text) or _MONTH_FIRST.match(text):
        from dateutil.parser import parse

        return in_utc(parse(text, default=datetime(1, 1, 1), tzinfos=_zone_of))

    try:
        return in_utc(datetime.fromisoformat(text))
    except ValueError:
        if not (parts := _WITH_ZONE.fullmatch(text)):
            raise
        return _in_zone(datetime.fromisoformat(parts["time"]), parts["zone"])


def _since_epoch(number: float) -> datetime:
    if abs(number) < _MIN_MILLISECONDS:
        return _EPOCH + timedelta(seconds=number)
    return _EPOCH + timedelta(milliseconds=number)


def in_utc(moment: datetime) -> datetime:
    """Convert a time to UTC; a time without a zone counts as UTC.

    Raises OverflowError if the result is outside the years 1 to 9999.
    """
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _zone_of(name: str | None, offset: int | None) -> timezone | None:
    """Return the zone of an offset in seconds, or None if there is neither an offset nor a name.

    Raises ValueError if there is only a name. dateutil calls this function for each time; without it, dateutil would
    ignore names that it does not know.
    """
    if offset is not None:
        return timezone(timedelta(seconds=offset))
    if name is not None:
        raise ValueError(f"{name} is not a time zone that is known here")
    return None


def _in_zone(moment: datetime, zone: str) -> datetime:
    return (moment - _offset_of(zone, moment.year, moment.month)).replace(tzinfo=UTC)


@cache
def _offset_of(zone: str, year: int, month: int) -> timedelta:
    """Return the offset that an abbreviation such as CEST has in a month.

    Raises ValueError if it has none, or several.
    """
    # The clocks, and the abbreviation with them, may change within the month.
    moments = [datetime(year, month, day) for day in (1, 15, 28)]
    offsets = {
        local.utcoffset()
        for name in available_timezones()
        for moment in moments
        if (local := moment.replace(tzinfo=ZoneInfo(name))).tzname() == zone
    }
    if len(offsets) != 1:
        raise ValueError(f"{zone} is not the abbreviation of one time zone")
    return offsets.pop() or timedelta(0)


def microseconds_of(instant: datetime) -> int:
    """Return the microseconds from 1970 to an instant; negative before 1970."""
    return (instant - _EPOCH) // _MICROSECOND
