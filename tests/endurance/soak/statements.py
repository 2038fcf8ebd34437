"""Random statements of an application, each with its effect on the documents."""

import random
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nearsim_db.store.driver.statements import parse_blocks
from tests.endurance.soak.contents import draw_fields, draw_story
from tests.endurance.soak.journal import FIELDS, Connection, Effect

_NAMES, _STORIES, _COPIED = 24, 20, 6


class Statements:
    """Runs random statements on a connection."""

    def __init__(self, connection: Connection, collections: list[int], rng: random.Random) -> None:
        self._connection, self._collections, self._rng = connection, collections, rng

    def draw(self) -> str:
        """Return a kind of statement."""
        kinds = list(_KINDS)
        return self._rng.choices(kinds, [_KINDS[one][0] for one in kinds])[0]

    def run(self, kind: str) -> list[Effect]:
        """Run a statement of this kind; return its effects."""
        return _KINDS[kind][1](self)

    def _run(self, name: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(_statements()[name].encode(), values)
        return cursor.fetchall() if cursor.description else []

    def _draw_row(self) -> dict[str, Any]:
        return {
            "collection_id": self._rng.choice(self._collections),
            "external_id": f"d{self._rng.randrange(_NAMES)}",
            **draw_fields(self._rng),
        }

    def _insert(self) -> list[Effect]:
        row = self._draw_row()
        return [["put", doc_id, row] for (doc_id,) in self._run("insert", row)]

    def _upsert(self) -> list[Effect]:
        row = self._draw_row()
        return [["put", doc_id, row] for (doc_id,) in self._run("upsert", row)]

    def _update(self) -> list[Effect]:
        column = self._rng.choice(["body", "body", "source", "published_at"])
        return self._set(column, draw_fields(self._rng)[column])

    def _rename(self) -> list[Effect]:
        return self._set("external_id", f"d{self._rng.randrange(_NAMES)}")

    def _move(self) -> list[Effect]:
        return self._set("collection_id", self._rng.choice(self._collections))

    def _set(self, column: str, value: object) -> list[Effect]:
        found = self._run(f"update_{column}", {**self._draw_row(), "value": value})
        return [["set", doc_id, {column: value}] for (doc_id,) in found]

    def _delete(self) -> list[Effect]:
        return [["remove", doc_id] for (doc_id,) in self._run("delete", self._draw_row())]

    def _delete_many(self) -> list[Effect]:
        return [["remove", doc_id] for (doc_id,) in self._run("delete_many", self._draw_row())]

    def _merge(self) -> list[Effect]:
        """Replace, insert or delete. MERGE returns no rows before PostgreSQL 17: they are read under its lock."""
        row = self._draw_row()
        before = self._run("lock", row)
        self._run("merge_delete" if before and self._rng.random() < 0.3 else "merge", row)
        after = self._run("lock", row)
        removed = [["remove", doc_id] for (doc_id,) in before if not after]
        return removed + [["put", doc_id, row] for (doc_id,) in after]

    def _copy(self) -> list[Effect]:
        names = [f"c{number}" for number in range(self._rng.randrange(1, _COPIED))]
        values = {"collection_id": self._rng.choice(self._collections), "names": names}
        effects = [["remove", doc_id] for (doc_id,) in self._run("delete_named", values)]
        rows = {name: draw_fields(self._rng) for name in names}
        with self._connection.cursor().copy(_statements()["copy"].encode()) as copy:
            for name, row in rows.items():
                copy.write_row([values["collection_id"], name, *(row[field] for field in FIELDS[2:])])
        for name, doc_id in self._run("find_named", values):
            where = {"collection_id": values["collection_id"], "external_id": name}
            effects.append(["put", doc_id, {**where, **rows[name]}])
        return effects

    def _truncate(self) -> list[Effect]:
        self._connection.execute("TRUNCATE nearsim.document")
        return [["truncate"]]

    def _judge(self) -> list[Effect]:
        effects: list[Effect] = []
        for left, right in self._run("choose_two", self._draw_row()):
            name, verdict = self._rng.choice(
                [("pin", "pinned"), ("veto", "vetoed"), ("veto", "vetoed"), ("undo", None)]
            )
            judged = self._run(name, {"left": left, "right": right})
            effects += [["judge", collection_id, left, right, verdict] for (collection_id,) in judged]
        return effects

    def _upsert_story(self) -> list[Effect]:
        row = {"id": self._rng.randrange(_STORIES), **draw_story(self._rng)}
        return [["put story", number, row] for (number,) in self._run("upsert_story", row)]

    def _delete_story(self) -> list[Effect]:
        row = {"id": self._rng.randrange(_STORIES)}
        return [["remove story", number] for (number,) in self._run("delete_story", row)]

    def _truncate_story(self) -> list[Effect]:
        self._connection.execute("TRUNCATE public.story")
        return [["truncate story"]]

    def _compare_all(self) -> list[Effect]:
        self._connection.execute("INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL)")
        return []


@cache
def _statements() -> dict[str, str]:
    return dict(parse_blocks((Path(__file__).parent / "statements.sql").read_text("utf-8")))


# Weight and method of each kind of statement.
_KINDS: Mapping[str, tuple[float, Callable[[Statements], list[Effect]]]] = {
    "INSERT": (10, Statements._insert),
    "INSERT ON CONFLICT DO UPDATE": (8, Statements._upsert),
    "UPDATE": (10, Statements._update),
    "UPDATE, renaming": (3, Statements._rename),
    "UPDATE, moving to a collection": (3, Statements._move),
    "DELETE": (4, Statements._delete),
    "DELETE of many": (0.4, Statements._delete_many),
    "MERGE": (5, Statements._merge),
    "COPY": (3, Statements._copy),
    "TRUNCATE": (0.2, Statements._truncate),
    "verdict": (3, Statements._judge),
    "attached table: upsert": (5, Statements._upsert_story),
    "attached table: DELETE": (2, Statements._delete_story),
    "attached table: TRUNCATE": (0.15, Statements._truncate_story),
    "comparison of every index": (0.1, Statements._compare_all),
}
