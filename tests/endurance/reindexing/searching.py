"""Searchers: they continuously query documents that nobody edits, and record answers and times."""

import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event, Semaphore
from typing import Literal, NamedTuple

import psycopg

from nearsim_db.index import Index
from tests.endurance.reindexing.texts import Family

_SIMILAR = "SELECT external_id FROM nearsim.similar_to_by_doc_id(CAST(%s AS bigint))"
_GENERATIONS = """
SELECT array_agg(generation_id) FROM (
    SELECT generation_id FROM nearsim.pairs WHERE left_id = ANY(%(ids)s)
    UNION SELECT generation_id FROM nearsim.documents WHERE doc_id = ANY(%(ids)s)
) AS answering
"""
_TOGETHER = 20  # documents asked about at once

Kind = Literal["check", "similar_to", "views"]


class Search(NamedTuple):
    """A search: its start and end, and the generation that explains all of its answer, or the answer itself."""

    kind: Kind
    began: float
    ended: float
    answer: str


def search(
    url: str,
    collection: str,
    families: Sequence[Family],
    doc_ids: Mapping[str, int],
    generation_before: int,
    per_second: float,
    ready: Event,
    searched: Semaphore,
    stopping: Event,
    report: "Pipe[list[Search], None]",
) -> None:
    """Query in three ways in turn, one family after the other, until stopped; then report every search."""
    results: list[Search] = []
    with (
        Index.connect(url, collection=collection) as index,
        psycopg.connect(url, autocommit=True, application_name="searcher") as connection,
    ):
        asked = [doc_ids[one.asked.external_id] for one in families]

        def check(turn: int) -> str:
            one = families[turn % len(families)]
            return one.explaining_recipe(
                [found.external_id for found in index.similar_to_text(one.asked.body or "")]
            )

        def similar_to(turn: int) -> str:
            place = turn % len(families)
            rows = connection.execute(_SIMILAR, (asked[place],)).fetchall()
            return families[place].explaining_recipe([str(row[0]) for row in rows])

        def views(turn: int) -> str:
            start = turn % max(1, len(asked) - _TOGETHER)
            row = connection.execute(_GENERATIONS, {"ids": asked[start : start + _TOGETHER]}).fetchone()
            generations = row[0] if row is not None else None
            if not isinstance(generations, list) or len(generations) != 1:
                return f"the views mixed generations {generations}"
            return "before" if generations == [generation_before] else "after"

        ways: Sequence[tuple[Kind, Callable[[int], str]]] = (
            ("check", check), ("similar_to", similar_to), ("views", views),
        )  # fmt: skip
        for turn in range(len(ways) * len(families)):
            ways[turn % len(ways)][1](turn)
        ready.set()
        turn, due = 0, time.monotonic()
        while not stopping.wait(max(0.0, due - time.monotonic())):
            kind, ask = ways[turn % len(ways)]
            began = time.monotonic()
            try:
                answer = ask(turn)
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
            results.append(Search(kind, began, time.monotonic(), answer))
            searched.release()
            turn, due = turn + 1, max(due + 1 / per_second, began)
    report.send(results)
