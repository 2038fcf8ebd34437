"""The message about a decision, which the address of the next page carries and the next page shows."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from nearsim_db.cli.review.call import Call
from nearsim_db.store.driver import Connection
from nearsim_db.store.pairs.review_documents import ShownDocument, read_documents
from nearsim_db.store.pairs.reviews import Desk
from nearsim_db.store.pairs.verdicts import Pair

_SENTENCES = {
    "same": "Marked as the same.",
    "different": "Marked as different.",
    "unsure": "Marked as unsure.",
    "skipped": "Skipped.",
    "kept": "It is kept from now on.",
    "undone": "Undone; it is open again.",
    "nothing": "There is nothing to undo.",
}
_ANSWERS = {"same": "the same", "different": "different", "unsure": "unsure"}
_PAIR = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([a-z]+)")
_MAX_NAMED = 3
_MAX_TITLE = 80


def address(path: str, query: str, done: str, answers: Mapping[Pair, str]) -> str:
    """Return the address of a page that shows what was done; `query` are further parameters.

    `answers` are the answers of one decision, by pair. For a document that is kept, both documents of the pair are this
    document.
    """
    values = [(key, value) for key, value in parse_qsl(query) if key not in ("done", "about", "decided")]
    values.append(("done", done))
    if answers:
        first = list(answers.items())[:_MAX_NAMED]
        about = ",".join(f"{left}-{right}-{answer}" for (left, right), answer in first)
        values += [("about", about), ("decided", str(len(answers)))]
    return f"{path}?{urlencode(values, safe=',')}"


def message(connection: Connection, desk: Desk, call: Call) -> str | None:
    """Return the message about the decision that led to this page, with its documents; None if there is none."""
    done = call.query.get("done", "")
    sentence = _SENTENCES.get(done)
    decided = [
        (int(left), int(right), answer) for left, right, answer in _PAIR.findall(call.query.get("about", ""))
    ][:_MAX_NAMED]
    if sentence is None or not decided:
        return sentence

    doc_ids = {doc_id for left, right, _ in decided for doc_id in (left, right)}
    shown = read_documents(connection, desk.collection_id, sorted(doc_ids), 0)
    parts = []
    for left, right, answer in decided:
        names = " and ".join(_name(doc_id, shown.get(doc_id)) for doc_id in dict.fromkeys((left, right)))
        # Ticked documents got the opposite answer.
        is_other = done in _ANSWERS and answer != done and answer in _ANSWERS
        parts.append(f"{names} (marked as {_ANSWERS[answer]})" if is_other else names)

    count = call.query.get("decided", "")
    # A user may edit the address, so limit the length of the number.
    unnamed = int(count) - len(decided) if count.isdecimal() and len(count) < 9 else 0
    unnamed_text = f"; {unnamed:,} more" if unnamed > 0 else ""
    return f"{sentence} Collection {desk.collection}: {'; '.join(parts)}{unnamed_text}."


def _name(doc_id: int, document: ShownDocument | None) -> str:
    """Return the id of a document with its title, if it has one."""
    if document is None:
        return f"#{doc_id}"
    if not document.title:
        return document.external_id
    title = document.title if len(document.title) <= _MAX_TITLE else f"{document.title[: _MAX_TITLE - 1]}…"
    return f"{document.external_id} “{title}”"
