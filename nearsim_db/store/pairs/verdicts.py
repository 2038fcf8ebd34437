"""Manual verdicts about pairs, choices of documents to keep, and verdicts as labelled pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import errors as pg
from psycopg import sql

from nearsim_db.errors import NearsimError, NotFoundError
from nearsim_db.records import CollectionId, SurvivorChoice, Verdict
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import SCHEMA, run, statement

Pair = tuple[int, int]  # two doc_ids, the smaller first
Decision = Literal["pin", "veto", "undo"]
_JUDGES: dict[Decision, str] = {"pin": "pin_pair", "veto": "veto_pair", "undo": "undo_verdict"}


def change_verdicts(
    connection: Connection, command: str | sql.Composed, /, **parameters: object
) -> list[tuple[Any, ...]]:
    """Run a statement that changes verdicts. Raises NotFoundError and NearsimError, with the reason."""
    try:
        return run(connection, command, **parameters).rows()
    except pg.NoDataFound as error:
        raise NotFoundError(str(error.diag.message_primary)) from error
    except pg.InvalidParameterValue as error:
        raise NearsimError(str(error.diag.message_primary)) from error


def judge(
    connection: Connection, decision: Decision, collection: str, a: str, b: str, why: str, by: str | None
) -> Verdict:
    """Store a verdict about two documents, by external_id, or undo it; return the verdict.

    `by` defaults to the database user. Raises NotFoundError for a missing document, or a missing verdict to undo, and
    NearsimError for an invalid verdict.
    """
    command = statement("judge_pair", None, judge=sql.Identifier(SCHEMA, _JUDGES[decision]))
    (row,) = change_verdicts(connection, command, collection=collection, a=a, b=b, why=why, by=by)
    return Verdict(*row)


def keep(
    connection: Connection, collection: str, document: str, why: str, by: str | None, *, undo: bool
) -> SurvivorChoice:
    """Choose a document to keep in its cluster, or with `undo` undo that; return the choice. Raises as `judge` does."""
    judge = sql.Identifier(SCHEMA, "unpin_survivor" if undo else "pin_survivor")
    command = statement("judge_survivor", None, judge=judge)
    (row,) = change_verdicts(connection, command, collection=collection, document=document, why=why, by=by)
    return SurvivorChoice(*row)


def ends_of(pairs: Sequence[Pair]) -> dict[str, object]:
    """Return the parameters that name pairs in statements."""
    return {"left_ids": [one for one, _ in pairs], "right_ids": [other for _, other in pairs]}


def by_pair(rows: Iterable[tuple[Any, ...]]) -> dict[Pair, int]:
    """Return numbers by pair, from rows of two doc_ids and a number."""
    return {(left_id, right_id): number for left_id, right_id, number in rows}


@dataclass(slots=True)
class ImportedLabels:
    """What labels did: verdicts set, those in force already, and pairs of unknown documents."""

    pinned: int = 0
    vetoed: int = 0
    unchanged: int = 0
    unknown: int = 0


def list_labels(connection: Connection, collection_id: CollectionId) -> list[tuple[str, str, bool]]:
    """Return the verdicts in force on existing documents, as pairs of external ids with whether they are the same."""
    return run(connection, "list_labels", collection_id=collection_id).rows()


def import_labels(
    connection: Connection,
    collection_id: CollectionId,
    labels: Sequence[tuple[str, str, bool]],
    why: str,
    by: str | None,
    *,
    dry_run: bool,
) -> ImportedLabels:
    """Set a verdict for each labelled pair that has another one or none; with `dry_run` count only."""
    ones, others, same = ([one[at] for one in labels] for at in range(3))
    parameters = {"collection_id": collection_id, "ones": ones, "others": others, "labels": same}
    counts, wanted = ImportedLabels(), dict[Pair, str]()
    for left_id, right_id, is_same, verdict, is_known in run(
        connection, "find_labelled", **parameters
    ).rows():
        if not is_known:
            counts.unknown += 1
        elif verdict == ("pinned" if is_same else "vetoed"):
            counts.unchanged += 1
        else:
            wanted[left_id, right_id] = "same" if is_same else "different"
    counts.pinned = sum(answer == "same" for answer in wanted.values())
    counts.vetoed = len(wanted) - counts.pinned
    if wanted and not dry_run:
        author = by or run(connection, "SELECT current_user").value()
        answers = {"answers": list(wanted.values()), "why": why, "by": author}
        change_verdicts(connection, "set_verdicts", **ends_of(list(wanted)), **answers)
    return counts
