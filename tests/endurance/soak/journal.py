"""What writers committed: each transaction adds a row with its effects, and replaying the rows gives the documents.

The number of a row is drawn as the last step of its transaction, when it has all its locks. So of two transactions that
wrote the same row, or of which one truncated the table, the one that committed first has the smaller number.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

Connection = psycopg.Connection[tuple[Any, ...]]
Effect = list[Any]

SCHEMA = """
CREATE SCHEMA soak;
CREATE SEQUENCE soak.turn;
CREATE TABLE soak.journal (number bigint PRIMARY KEY, kinds text[], effects jsonb);
CREATE TABLE public.story (id bigint PRIMARY KEY, headline text, body text, source text, day timestamptz)
"""
_WRITE = "INSERT INTO soak.journal SELECT nextval('soak.turn'), %s, %s"
# The wide fields of a document; an effect has them by these names.
FIELDS = ("collection_id", "external_id", "title", "body", "vector", "source", "published_at")


def write_journal(connection: Connection, kinds: list[str], effects: list[Effect]) -> None:
    """Record the effects of a transaction, as its last step."""
    connection.execute(_WRITE, (kinds, Jsonb(effects)))


@dataclass
class Model:
    """Documents by doc_id, rows of the attached table by id, and current verdicts, as the journal says."""

    documents: dict[int, dict[str, Any]] = field(default_factory=dict)
    story: dict[int, dict[str, Any]] = field(default_factory=dict)
    verdicts: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)
    truncated: bool = False
    cleared: dict[int, str] = field(default_factory=dict)  # external ids of documents that a TRUNCATE removed

    def replay(self, connection: Connection) -> Counter[str]:
        """Apply all new rows of the journal, and remove them; return the statements by kind."""
        rows = connection.execute("SELECT kinds, effects FROM soak.journal ORDER BY number").fetchall()
        kinds: Counter[str] = Counter()
        for committed, effects in rows:
            kinds.update(committed)
            for effect in effects:
                self.apply(effect)
        connection.execute("TRUNCATE soak.journal")
        return kinds

    def apply(self, effect: Effect) -> None:
        """Apply one effect."""
        kind, *values = effect
        _EFFECTS[kind](self, *values)

    def _put(self, doc_id: int, row: dict[str, Any]) -> None:
        self.documents[doc_id] = _as_stored(row)

    def _set(self, doc_id: int, fields: dict[str, Any]) -> None:
        self.documents[doc_id].update(_as_stored(fields))

    def _remove(self, doc_id: int) -> None:
        del self.documents[doc_id]

    def _truncate(self) -> None:
        self.cleared |= {doc_id: row["external_id"] for doc_id, row in self.documents.items()}
        self.documents.clear()
        self.truncated = True

    def _put_story(self, number: int, row: dict[str, Any]) -> None:
        self.story[number] = _as_stored(row)

    def _remove_story(self, number: int) -> None:
        del self.story[number]

    def _truncate_story(self) -> None:
        self.story.clear()

    def _judge(self, collection_id: int, left: int, right: int, verdict: str | None) -> None:
        if verdict is None:
            del self.verdicts[left, right]
        else:
            self.verdicts[left, right] = collection_id, verdict


_EFFECTS: Mapping[str, Callable[..., None]] = {
    "put": Model._put,
    "set": Model._set,
    "remove": Model._remove,
    "truncate": Model._truncate,
    "put story": Model._put_story,
    "remove story": Model._remove_story,
    "truncate story": Model._truncate_story,
    "judge": Model._judge,
}


def _as_stored(row: dict[str, Any]) -> dict[str, Any]:
    """Return the values as psycopg reads them from the table."""
    return {
        name: datetime.fromisoformat(value) if name in ("published_at", "day") and value else value
        for name, value in row.items()
    }
