"""Verdicts of people on pairs, choices of documents to keep, and import and export of verdicts as labelled pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import errors as pg
from psycopg import sql

from nearsim_db.errors import NearsimError, NotFoundError
from nearsim_db.records import CollectionId, SurvivorChoice, Verdict
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import SCHEMA, run, statement

# Two doc_ids, the smaller first.
Pair = tuple[int, int]
Decision = Literal["pin", "veto", "undo"]
_FUNCTIONS: dict[Decision, str] = {"pin": "pin_pair", "veto": "veto_pair", "undo": "undo_verdict"}


def change_verdicts(
    connection: Connection, command: str | sql.Composed, /, **parameters: object
) -> list[tuple[Any, ...]]:
    """Run a statement that changes verdicts. Raises NotFoundError or NearsimError with the server's message."""
    try:
        return run(connection, command, **parameters).rows()
    except pg.NoDataFound as error:
        raise NotFoundError(str(error.diag.message_primary)) from error
    except pg.InvalidParameterValue as error:
        raise NearsimError(str(error.diag.message_primary)) from error


def judge(
    connection: Connection, decision: Decision, collection: str, a: str, b: str, why: str, by: str | None
) -> Verdict:
    """Store a verdict on two documents, named by external_id, or undo it; return the verdict.

    `by` defaults to the database user. Raises NotFoundError if a document, or the verdict to undo, does not exist, and
    NearsimError for an invalid verdict.
    """
    command = statement("judge_pair", None, judge=sql.Identifier(SCHEMA, _FUNCTIONS[decision]))
    (row,) = change_verdicts(connection, command, collection=collection, a=a, b=b, why=why, by=by)
    return Verdict(*row)


def keep(
    connection: Connection, collection: str, document: str, why: str, by: str | None, *, undo: bool
) -> SurvivorChoice:
    """Choose a document to keep in its cluster, or undo the choice; return the choice.

    Raises the same errors as `judge`.
    """
    function = sql.Identifier(SCHEMA, "unpin_survivor" if undo else "pin_survivor")
    command = statement("judge_survivor", None, judge=function)
    (row,) = change_verdicts(connection, command, collection=collection, document=document, why=why, by=by)
    return SurvivorChoice(*row)


def ends_of(pairs: Sequence[Pair]) -> dict[str, object]:
    """Return the parameters with which statements name pairs."""
    return {"left_ids": [left_id for left_id, _ in pairs], "right_ids": [right_id for _, right_id in pairs]}


def by_pair(rows: Iterable[tuple[Any, ...]]) -> dict[Pair, int]:
    """Return numbers by pair; each row has two doc_ids and a number."""
    return {(left_id, right_id): number for left_id, right_id, number in rows}


@dataclass(slots=True)
class ImportedLabels:
    """Numbers of imported labels by outcome."""

    pinned: int = 0
    vetoed: int = 0
    unchanged: int = 0  # pairs on which the same verdict was in force already
    unknown: int = 0  # pairs whose documents do not both exist


def list_labels(connection: Connection, collection_id: CollectionId) -> list[tuple[str, str, bool]]:
    """Return the verdicts in force on existing documents as (external id, external id, whether pinned)."""
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
    """Set a verdict on each labelled pair that has another verdict or none; with `dry_run`, only count them.

    A label is (external id, external id, whether they are the same). If a pair has several labels, the last one counts.
    """
    parameters = {
        "collection_id": collection_id,
        "left_ids": [left for left, _, _ in labels],
        "right_ids": [right for _, right, _ in labels],
        "labels": [is_same for _, _, is_same in labels],
    }
    rows = run(connection, "find_labelled", **parameters).rows()

    counts = ImportedLabels()
    answers: dict[Pair, str] = {}
    for left_id, right_id, is_same, verdict, is_known in rows:
        if not is_known:
            counts.unknown += 1
        elif verdict == ("pinned" if is_same else "vetoed"):
            counts.unchanged += 1
        else:
            answers[left_id, right_id] = "same" if is_same else "different"
    counts.pinned = sum(answer == "same" for answer in answers.values())
    counts.vetoed = len(answers) - counts.pinned

    if answers and not dry_run:
        author = by or run(connection, "SELECT current_user").value()
        decided = {"answers": list(answers.values()), "why": why, "by": author}
        change_verdicts(connection, "set_verdicts", **ends_of(list(answers)), **decided)
    return counts
