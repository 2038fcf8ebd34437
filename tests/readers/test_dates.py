"""Dates in the forms that files have them in, and those that are refused because they could mean two days."""

from datetime import UTC, datetime

import pytest

from nearsim_db.readers.dates import parsed_instant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30/Sep/21 17:20", datetime(2021, 9, 30, 17, 20, tzinfo=UTC)),
        ("30. September 2021", datetime(2021, 9, 30, tzinfo=UTC)),
        ("Sep 30, 2021 5:20 PM", datetime(2021, 9, 30, 17, 20, tzinfo=UTC)),
        ("3rd March 2020", datetime(2020, 3, 3, tzinfo=UTC)),
        ("2021-09-30 17:20:11.123 CEST", datetime(2021, 9, 30, 15, 20, 11, 123000, tzinfo=UTC)),
        ("2021-12-30 17:20 CET", datetime(2021, 12, 30, 16, 20, tzinfo=UTC)),
    ],
)
def test_months_by_name_and_abbreviations_of_one_time_zone_are_read(text: str, expected: datetime) -> None:
    assert parsed_instant(text) == expected


@pytest.mark.parametrize("text", ["09/30/2021", "9/10/21", "30.09.2021", "10-09-2021 12:00"])
def test_the_order_of_day_and_month_is_not_guessed(text: str) -> None:
    with pytest.raises(ValueError, match="day and month cannot be told apart"):
        parsed_instant(text)


@pytest.mark.parametrize(
    "text", ["2021-09-30 17:20 CST", "31 Sep 2021", "12 monkeys 2021", "May 5 report", "2" * 1_000_000]
)
def test_what_is_no_date_or_has_an_ambiguous_time_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a date or time"):
        parsed_instant(text)


def test_the_first_format_that_fits_is_used() -> None:
    formats = ["%d/%m/%Y", "%m/%d/%Y", "%Y.%m.%d %H:%M %Z"]
    assert parsed_instant("09/10/2021", formats) == datetime(2021, 10, 9, tzinfo=UTC)
    assert parsed_instant("09/30/2021", formats) == datetime(2021, 9, 30, tzinfo=UTC)
    assert parsed_instant("2021.07.01 12:00 EST", formats) == datetime(2021, 7, 1, 17, tzinfo=UTC)
    assert parsed_instant("2021-09-30", formats) == datetime(2021, 9, 30, tzinfo=UTC)
