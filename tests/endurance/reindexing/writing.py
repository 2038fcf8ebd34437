"""Writers in plain SQL, at a given rate, with writes drawn so that the final state is known."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event
from typing import Literal

import numpy as np
import psycopg

from nearsim_db.records import Document
from tests.endurance.reindexing.texts import edited

Kind = Literal["insert", "update", "delete"]
Text = tuple[str | None, str | None]
# When a write began and ended, and whether it was refused because it would have waited for a lock for too long.
Written = tuple[float, float, bool]

_COMMANDS: Mapping[Kind, str] = {
    "insert": "INSERT INTO nearsim.document (title, body, collection_id, external_id) VALUES (%s, %s, %s, %s)",
    "update": "UPDATE nearsim.document SET title = %s, body = %s WHERE collection_id = %s AND external_id = %s",
    "delete": "DELETE FROM nearsim.document WHERE collection_id = %s AND external_id = %s",
}


@dataclass(frozen=True, slots=True)
class Write:
    """One statement of a writer; a deleted document has no text."""

    kind: Kind
    external_id: str
    text: Text = (None, None)


def draw_writes(documents: Sequence[Document], name: str, seed: int) -> Iterator[Write]:
    """Yield inserts, edits and deletes in equal parts, endlessly, of documents that no other writer changes.

    An insert is a near-copy of another document, sometimes under the id of a deleted one; an edit changes a few
    words or takes over another document's text.
    """
    rng = np.random.Generator(np.random.PCG64([seed, len(documents)]))
    there = list(documents)
    deleted: list[str] = []
    number = 0
    while True:
        kind, one = float(rng.random()) * 3, there[int(rng.integers(len(there)))]
        text: Text = (one.title, edited(one.body or "", rng))
        if kind < 1 or len(there) < 2:
            back = bool(deleted) and rng.random() < 0.25
            external_id = deleted.pop() if back else f"{name}-{number}"
            there.append(Document(external_id, *text))
            yield Write("insert", external_id, text)
        elif kind < 2:
            place = int(rng.integers(len(there)))
            if rng.random() < 0.1:
                text = (one.title, one.body)
            there[place] = Document(there[place].external_id, *text)
            yield Write("update", there[place].external_id, text)
        else:
            place = int(rng.integers(len(there)))
            deleted.append(there[place].external_id)
            there[place] = there[-1]
            there.pop()
            yield Write("delete", deleted[-1])
        number += 1


def final_documents(documents: Sequence[Document], name: str, seed: int, writes: int) -> dict[str, Text]:
    """Return the documents that remain after so many writes, by external id."""
    texts: dict[str, Text] = {one.external_id: (one.title, one.body) for one in documents}
    for write in islice(draw_writes(documents, name, seed), writes):
        if write.kind == "delete":
            del texts[write.external_id]
        else:
            texts[write.external_id] = write.text
    return texts


def write(
    url: str,
    collection_id: int,
    documents: Sequence[Document],
    name: str,
    seed: int,
    rate: float,
    stopping: Event,
    report: "Pipe[list[Written], None]",
) -> None:
    """Write, one transaction per statement, until stopped; then report every write.

    A statement that waits for a lock for longer than the session's lock_timeout is repeated.
    """
    results: list[Written] = []
    writes = draw_writes(documents, name, seed)
    with psycopg.connect(url, autocommit=True, application_name="writer") as connection:
        due = time.monotonic()
        for one in writes:
            if stopping.wait(max(0.0, due - time.monotonic())):
                break
            results += _write_patiently(connection, collection_id, one)
            due += 1 / rate
    report.send(results)


def _write_patiently(
    connection: "psycopg.Connection[tuple[object, ...]]", collection_id: int, one: Write
) -> Iterator[Written]:
    place = (collection_id, one.external_id)
    parameters = place if one.kind == "delete" else (*one.text, *place)
    while True:
        began = time.monotonic()
        try:
            connection.execute(_COMMANDS[one.kind], parameters)
        except psycopg.errors.LockNotAvailable:
            yield began, time.monotonic(), True
            continue
        yield began, time.monotonic(), False
        return
