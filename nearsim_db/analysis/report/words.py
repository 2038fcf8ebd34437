"""How values are written on the page."""

from collections.abc import Callable
from typing import Any

# What would steer a reader's eyes or a terminal is shown as what it is: controls, and what turns the direction of text.
_STEERING = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: dict[int, str | None] = {code: f"⟨U+{code:04X}⟩" for code in (*_STEERING, *_TURNING)} | {0x0D: None}
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def visible(value: Any) -> Any:
    """A text without characters that steer; whatever is no plain text, and markup, as it is. None is a dash."""
    if value is None:
        return "–"
    return value.translate(_VISIBLE) if type(value) is str else value


def number(value: float | None, decimals: int = 0) -> str:
    """With thousands parted; a dash for None."""
    return "–" if value is None else f"{value:,.{decimals}f}"


def share(part: int, whole: int) -> str:
    """As a percentage; a dash where the whole is nothing."""
    return f"{100 * part / whole:.0f}\u00a0%" if whole else "–"


def duration(seconds: float | None) -> str:
    """In the unit that fits, as 3.5 h; a dash for None."""
    if seconds is None:
        return "–"
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:,.{0 if seconds >= 10 * size else 1}f}\u00a0{unit}"
    return f"{seconds:.0f} s"


def size(count: float | None) -> str:
    """Bytes in the unit that fits; a dash for None."""
    if count is None:
        return "–"
    place = 0
    while count >= 1000 and place < len(_UNITS) - 1:
        count, place = count / 1000, place + 1
    return f"{count:,.{0 if place == 0 or count >= 100 else 1}f} {_UNITS[place]}"


def short(text: str | None, characters: int = 120) -> str | None:
    """A text cut to so many characters, the cut marked by …; one without any visible character is None."""
    if text is None or not text.strip():
        return None
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "share": share,
    "duration": duration,
    "size": size,
    "short": short,
}
