"""The writes of a stress run: inserts, edits and deletes, drawn in advance so that the final state is known."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from typing import Literal

import numpy as np
import psycopg

from benchmarks.living_system import read_backlog
from nearsim_db.records import Document

Kind = Literal["insert", "update", "delete"]
Text = tuple[str | None, str | None]

_EDIT_SHARE, _DELETE_SHARE = 0.1, 0.05
_MOST_A_COMMIT = 20
_RETRY_SECONDS = 0.05
# Nobody else writes these documents; a conflict only means that the answer to a commit was lost and it is repeated.
_COMMANDS: dict[Kind, str] = {
    "insert": "INSERT INTO nearsim.document (title, body, collection_id, external_id) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT DO NOTHING",
    "update": "UPDATE nearsim.document SET title = %s, body = %s WHERE collection_id = %s AND external_id = %s",
    "delete": "DELETE FROM nearsim.document WHERE collection_id = %s AND external_id = %s",
}


@dataclass(frozen=True, slots=True)
class Write:
    """One statement of a writer; a deleted document has no text."""

    kind: Kind
    external_id: str
    text: Text = (None, None)


def draw_script(documents: Sequence[Document], rng: np.random.Generator) -> list[Write]:
    """Insert the documents in order; sometimes edit or delete existing ones, and re-insert a few.

    An edit appends a few words, takes over another document's text, or takes the text of a later document.
    """
    script: list[Write] = []
    there: list[Document] = []
    for place, document in enumerate(documents):
        script.append(Write("insert", document.external_id, (document.title, document.body)))
        there.append(document)
        chance = float(rng.random())
        chosen = int(rng.integers(len(there)))
        one = there[chosen]
        if chance < _EDIT_SHARE:
            other = documents[int(rng.integers(len(documents)))] if chance < _EDIT_SHARE / 2 else one
            extra = "" if chance < _EDIT_SHARE / 4 else f" edited {place}"
            script.append(Write("update", one.external_id, (other.title, f"{other.body or ''}{extra}")))
        elif chance < _EDIT_SHARE + _DELETE_SHARE:
            script.append(Write("delete", one.external_id))
            if chance < _EDIT_SHARE + _DELETE_SHARE / 4:
                script.append(Write("insert", one.external_id, (one.title, one.body)))
            else:
                there[chosen] = there[-1]
                there.pop()
    return script


def final_texts(scripts: Iterable[Sequence[Write]]) -> dict[str, Text]:
    """Return the documents that remain after all scripts, by external id; no document is in two scripts."""
    texts: dict[str, Text] = {}
    for script in scripts:
        for write in script:
            if write.kind == "delete":
                del texts[write.external_id]
            else:
                texts[write.external_id] = write.text
    return texts


def transactions(script: Sequence[Write], rng: np.random.Generator) -> Iterator[Sequence[Write]]:
    """Split the script into transactions of one to about twenty statements."""
    start = 0
    while start < len(script):
        end = start + int(rng.integers(1, _MOST_A_COMMIT + 1))
        yield script[start:end]
        start = end


def play(
    url: str,
    collection_id: int,
    script: Sequence[Write],
    seed: int,
    most_waiting: int,
    done: "Synchronized[int]",
) -> None:
    """Run a script, repeating a transaction whose server was killed; `done` counts its statements for other
    processes.

    Pauses while more than `most_waiting` documents wait to be searched.
    """
    rest = list(transactions(script, np.random.Generator(np.random.PCG64(seed))))[::-1]
    while rest:
        with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as connection:
            while rest:
                if read_backlog(connection).searching > most_waiting:
                    time.sleep(_RETRY_SECONDS)
                    continue
                _commit(connection, collection_id, rest[-1])
                done.value += len(rest.pop())
        time.sleep(_RETRY_SECONDS)


def _commit(
    connection: "psycopg.Connection[tuple[object, ...]]", collection_id: int, writes: Sequence[Write]
) -> None:
    with connection.transaction():
        for write in writes:
            place = (collection_id, write.external_id)
            parameters = place if write.kind == "delete" else (*write.text, *place)
            connection.execute(_COMMANDS[write.kind], parameters)
