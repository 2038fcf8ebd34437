"""Output to terminals and files: messages, JSON documents, values as text, and log records.

On a terminal, output is coloured and fits the width. Elsewhere nothing is cut or coloured.
"""

import logging
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

import typer

from nearsim_db.store.settings import wants_colours

UNLIMITED_WIDTH = 100_000
_STYLES = {
    "bold": "1",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "white": "37",
    "bright_black": "90",
}
# Titles and ids are untrusted: characters that move the cursor, start escape sequences or reorder text are escaped.
_C0, _C1 = range(0x20), range(0x7F, 0xA0)
_SEPARATORS_AND_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_SURROGATES = range(0xD800, 0xE000)
_VISIBLE = {code: f"\\x{code:02x}" for code in (*_C0, *_C1)} | {
    code: f"\\u{code:04x}" for code in (*_SEPARATORS_AND_DIRECTIONS, *_SURROGATES)
}
# JSON escapes the C0 controls in strings itself.
_IN_STRINGS = {code: f"\\u{code:04x}" for code in (*_C1, *_SEPARATORS_AND_DIRECTIONS)}


def width_of(stream: TextIO) -> int:
    """Return the width of a terminal; unlimited for any other stream."""
    return shutil.get_terminal_size().columns if stream.isatty() else UNLIMITED_WIDTH


def paint(text: str, style: str, stream: TextIO) -> str:
    """Return text in a style, such as "bold red", if the stream is a terminal with colours; otherwise plain text."""
    if not text or not stream.isatty() or not wants_colours():
        return text
    return f"\x1b[{';'.join(_STYLES[name] for name in style.split())}m{text}\x1b[0m"


def visible(value: object) -> str:
    """Return a value as readable text, with control characters escaped."""
    match value:
        case None:
            return "-"
        # Before int, because a bool is an int.
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4f}".rstrip("0").rstrip(".")
        case datetime():
            return value.isoformat(sep=" ", timespec="seconds")
        case dict() | list():
            return json_text(value, default=str).translate(_VISIBLE)
        case _:
            return str(value).translate(_VISIBLE)


def id_and_title(id: str, title: str | None) -> str:
    """Return the id of a document, followed by its title if it has one."""
    return f"{id}  {title}" if title else id


def escaped_strings(document: str) -> str:
    """Escape control characters in the strings of a JSON or TOML document; outside of strings there are none."""
    return document.translate(_IN_STRINGS)


_notes_as_json = ContextVar("notes_as_json", default=False)


def write_notes(*, as_json: bool) -> None:
    """Write errors, warnings and other notes as JSON lines from now on, or as text."""
    _notes_as_json.set(as_json)


def _print_note(level: int, message: str, text: str) -> None:
    if _notes_as_json.get():
        values = {"levelno": level, "levelname": logging.getLevelName(level), "msg": message, "event": "note"}
        text = JsonFormatter().format(logging.makeLogRecord(values))
    print_painted(text, sys.stderr)


def print_error(message: str) -> None:
    """Print an error as one line on standard error."""
    line = " ".join(message.split())
    _print_note(logging.ERROR, line, paint("error: ", "bold red", sys.stderr) + visible(line))


def print_warning(message: str) -> None:
    """Print a warning on standard error."""
    _print_note(logging.WARNING, message, paint("warning: ", "yellow", sys.stderr) + visible(message))


def print_warnings(warnings: Iterable[str]) -> None:
    """Print each warning on standard error."""
    for warning in warnings:
        print_warning(warning)


def print_info(message: str) -> None:
    """Print an informational line on standard error."""
    _print_note(logging.INFO, message, visible(message))


def print_json(value: object, stream: TextIO, *, is_indented: bool = True) -> None:
    """Print one JSON document, on one line unless it is indented."""
    document = json_text(value, is_indented=is_indented)
    # Write bytes, so that JSON is UTF-8 whatever the encoding of the stream is.
    typer.echo(escaped_strings(document) if stream.isatty() else document.encode(), file=stream)


def json_text(
    value: object, *, is_indented: bool = False, default: Callable[[object], object] | None = None
) -> str:
    """Return a value as JSON, on one line unless it is indented; `default` converts values of other types."""
    import orjson

    from nearsim_db.readers.values import encodable

    option = orjson.OPT_INDENT_2 if is_indented else None
    return orjson.dumps(encodable(value), default, option).decode()


def values_of(value: object, *names: str) -> dict[str, object]:
    """Return the named attributes of a value, by name."""
    return {name: getattr(value, name) for name in names}


def print_toml(document: str) -> None:
    """Print a recipe on standard output."""
    typer.echo(escaped_strings(document) if sys.stdout.isatty() else document, nl=False)


def print_line(text: str = "", stream: TextIO | None = None) -> None:
    """Print a line of text, on standard output by default."""
    print_painted(visible(text), stream or sys.stdout)


def print_painted(line: str, stream: TextIO) -> None:
    """Print a line without changes; the caller applies `visible` and `paint`."""
    stream.write(f"{line}\n")
    # Flush, so that lines on standard output and standard error appear in order.
    stream.flush()


class TextFormatter(logging.Formatter):
    """Formats a log record as a line of text: the time, the level if it is above INFO, and the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line."""
        message = visible(" ".join(record.getMessage().split()))
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return f"{_time(record).isoformat(timespec='seconds')} {level}{message}"


class JsonFormatter(logging.Formatter):
    """Formats a log record as a JSON object: time, level, event, message, and the facts of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as an object on one line."""
        values = record.__dict__
        shown = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": values["event"],
            "message": record.getMessage(),
            **values.get("facts", {}),
        }
        return escaped_strings(json_text(shown))


class NoteHandler(logging.Handler):
    """Prints log messages as notes of a command, and errors as warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message."""
        show = print_warning if record.levelno >= logging.ERROR else print_info
        show(record.getMessage())


def stderr_handler(*, as_json: bool) -> logging.Handler:
    """Return a log handler that writes lines of text or JSON to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    return handler


@contextmanager
def logged_to(handler: logging.Handler, name: str, min_level: int = logging.INFO) -> Iterator[logging.Logger]:
    """Send the records of a logger, from a level on, to a handler during the block."""
    logger = logging.getLogger(name)
    level, propagate = logger.level, logger.propagate
    logger.setLevel(min_level)
    # Without this, handlers of the root logger would write each record again.
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield logger
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


@contextmanager
def on_signals(receive: Callable[[int], object], *numbers: int) -> Iterator[None]:
    """Call a function with the number of each signal of `numbers` that arrives during the block."""
    before = {number: signal.signal(number, lambda number, frame: receive(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)
