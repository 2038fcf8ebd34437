"""A request to the review desk: read and check its path, its query and its form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.store.pairs.reviews import Answer, Filters, pair_of
from nearsim_db.store.pairs.verdicts import Pair

QUEUES = {
    "review": "below the threshold",
    "threshold": "near the threshold",
    "numbers": "numbers differ",
    "ties": "weak ties",
    "torn": "torn by a verdict",
    "nearly": "nearly joined",
    "sample": "random sample",
}
OPPOSITE: dict[Answer, Answer] = {"same": "different", "different": "same"}


@dataclass(frozen=True, slots=True)
class Call:
    """A request of a browser."""

    path: Mapping[str, str]  # the variable parts of the path by name
    query: Mapping[str, str]
    fields: Sequence[tuple[str, str]]  # of the form, in their order
    is_form: bool
    in_documents: bool  # the reviewer judges a document at a time, not a pair

    @classmethod
    def of(cls, request: Request, body: bytes) -> "Call":
        """Read a request. Raises InputError for a NUL character, which PostgreSQL cannot store."""
        fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        values = [*request.path_params.values(), *request.query_params.values(), *dict(fields).values()]
        if any("\0" in value for value in values):
            raise InputError("the request has a NUL character")

        in_documents = request.url.path.startswith("/documents/") or ("way", "documents") in fields
        return cls(request.path_params, request.query_params, fields, request.method == "POST", in_documents)

    @property
    def form(self) -> dict[str, str]:
        """The last value of each field of the form."""
        return dict(self.fields)

    def queue(self) -> str:
        """Return the queue in the path. Raises NotFoundError for an unknown queue."""
        queue = self.path["queue"]
        if queue not in QUEUES:
            raise NotFoundError(f"there is no queue {queue!r}; queues: {', '.join(QUEUES)}")
        return queue

    def path_number(self, name: str) -> int:
        """Return the number of a document or cluster in the path. Raises InputError if it is no number."""
        return _number(name, self.path[name])

    def numbers(self, name: str) -> list[int]:
        """Return the values of a field, which are numbers of documents or clusters. Raises InputError for others."""
        return [_number(name, value) for field, value in self.fields if field == name]

    def query_numbers(self, name: str) -> list[int]:
        """Return the doc_id in a parameter of the query as a list, empty without the parameter. Raises InputError."""
        return [_number(name, self.query[name])] if name in self.query else []

    def answers(self) -> dict[Pair, Answer]:
        """Return an answer for the pair of the shown document with each listed document.

        Ticked documents get the opposite of the submitted answer. Raises InputError if the form is incomplete.
        """
        answer = cast(Answer, self.form["answer"])
        shown, listed = self.numbers("document"), self.numbers("listed")
        if len(shown) != 1 or not listed or shown[0] in listed:
            raise InputError("the form names no document and others that it is compared with")
        ticked = set(self.numbers("ticked"))
        return {
            pair_of(shown[0], doc_id): OPPOSITE.get(answer, answer) if doc_id in ticked else answer
            for doc_id in listed
        }

    def filters(self) -> Filters:
        """Return the filters in the query. Raises InputError for a value that cannot be read."""

        def value_of(name: str, read: Callable[[str], Any]) -> Any:
            value = self.query.get(name, "").strip()
            try:
                return read(value) if value else None
            except ValueError as error:
                raise InputError(f"{name} is {value!r}, which cannot be read") from error

        return Filters(
            value_of("min_similarity", float),
            value_of("max_similarity", float),
            value_of("source", str),
            value_of("since", datetime.fromisoformat),
            value_of("until", datetime.fromisoformat),
            value_of("text", str),
        )

    def filter_query(self) -> str:
        """Return the filters as a query string, for forms and links that keep them."""
        return filter_query(self.filters())


def _number(name: str, value: str) -> int:
    # Any number of 18 digits fits into a bigint.
    if not value.isascii() or not value.isdecimal() or len(value) > 18:
        raise InputError(f"{name} is {value!r}, not the number of a document or cluster")
    return int(value)


def filter_query(filters: Filters) -> str:
    """Return filters as a query string."""
    return urlencode({name: value for name, value in asdict(filters).items() if value is not None})
