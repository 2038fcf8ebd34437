"""Log records on standard error: as text, as JSON lines, or as notes between other output."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from nearsim_db.cli.output import terminal
from nearsim_db.readers.output import json_line


class TextFormatter(logging.Formatter):
    """One line a record: the time, the level from warnings on, and the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        message = terminal.visible(" ".join(record.getMessage().split()))
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return f"{_time(record).isoformat(timespec='seconds')} {level}{message}"


class JsonFormatter(logging.Formatter):
    """One JSON object a record: time, level, event, message, and the facts of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object on one line."""
        values = record.__dict__
        shown = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": values["event"],
            "message": record.getMessage(),
            **values.get("facts", {}),
        }
        return terminal.escaped_strings(json_line(shown).decode().rstrip("\n"))


class NoteHandler(logging.Handler):
    """Prints a message as other commands print notes, and as a warning if it is an error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message."""
        show = terminal.print_warning if record.levelno >= logging.ERROR else terminal.print_info
        show(record.getMessage())


def stderr_handler(*, as_json: bool) -> logging.Handler:
    """Return a handler that writes lines of text or JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    return handler


@contextmanager
def logged_to(handler: logging.Handler, name: str, least: int = logging.INFO) -> Iterator[logging.Logger]:
    """Send the records of a logger, from a level on, to a handler during the block."""
    logger = logging.getLogger(name)
    level, propagate = logger.level, logger.propagate
    logger.setLevel(least)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield logger
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)
