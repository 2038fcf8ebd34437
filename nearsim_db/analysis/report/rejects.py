"""Reject files of `nearsim ingest --rejects`, counted by reason."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearsim_db.errors import InputError

# Parts of a message that differ between records rejected for the same reason.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d[\d,.]*")


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for rejection, with values replaced by …, its count, and its first record."""

    reason: str
    records: int
    example_file: str
    example_line: int
    example: str


@dataclass(frozen=True, slots=True)
class RejectSummary:
    """The records of reject files by reason, most frequent first; `reasons_left_out` counts reasons not listed."""

    files: tuple[str, ...]
    records: int
    reasons: tuple[Reason, ...]
    reasons_left_out: int


def summarise(paths: Sequence[Path], top: int) -> RejectSummary:
    """Count the records of reject files by reason. Raises InputError for an unreadable or invalid file."""
    counts: Counter[str] = Counter()
    first: dict[str, tuple[str, int, str]] = {}
    for path in paths:
        for file, line, reason in _read(path):
            kind = _PARTICULAR.sub("…", reason)
            counts[kind] += 1
            first.setdefault(kind, (file, line, reason))
    reasons = tuple(Reason(kind, records, *first[kind]) for kind, records in counts.most_common(top))
    return RejectSummary(tuple(map(str, paths)), counts.total(), reasons, len(counts) - len(reasons))


def _read(path: Path) -> Iterator[tuple[str, int, str]]:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, 1):
                yield _parse(path, number, line)
    except OSError as error:
        raise InputError(f"the reject file {path} cannot be read: {error.strerror or error}") from error


def _parse(path: Path, number: int, line: str) -> tuple[str, int, str]:
    try:
        row = json.loads(line)
        return str(row["file"]), int(row["line"]), str(row["reason"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a reject file: line {number:,} lacks the keys file, line and reason"
        ) from error
