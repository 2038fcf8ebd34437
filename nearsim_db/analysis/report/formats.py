"""Formats of the values on the page."""

from collections.abc import Callable
from typing import Any

# Control characters, and those that change the direction of text, are shown as code points.
_CONTROLS = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: dict[int, str | None] = {code: f"⟨U+{code:04X}⟩" for code in (*_CONTROLS, *_BIDIRECTIONAL)} | {
    0x0D: None
}
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def visible(value: Any) -> Any:
    """Return text with control characters made visible, other values unchanged, and a dash for None."""
    if value is None:
        return "–"
    return value.translate(_VISIBLE) if type(value) is str else value


def number(value: float | None, decimals: int = 0) -> str:
    """Return a number with thousands separators; a dash for None."""
    return "–" if value is None else f"{value:,.{decimals}f}"


def share(part: int, whole: int) -> str:
    """Return a percentage; a dash if the whole is 0."""
    return f"{100 * part / whole:.0f}\u00a0%" if whole else "–"


def duration(seconds: float | None) -> str:
    """Return a duration in a suitable unit, e.g. 3.5 h; a dash for None."""
    if seconds is None:
        return "–"
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:,.{0 if seconds >= 10 * size else 1}f}\u00a0{unit}"
    return f"{seconds:.0f} s"


def size(count: float | None) -> str:
    """Return bytes in a suitable unit; a dash for None."""
    if count is None:
        return "–"
    place = 0
    while count >= 1000 and place < len(_UNITS) - 1:
        count, place = count / 1000, place + 1
    return f"{count:,.{0 if place == 0 or count >= 100 else 1}f} {_UNITS[place]}"


def short(text: str | None, characters: int = 120) -> str | None:
    """Return text truncated to `characters` with …; None for blank text."""
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
