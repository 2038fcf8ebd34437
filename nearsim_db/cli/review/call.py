"""A request of the review desk: its path, its query and its form, read and checked."""

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
    """A request: the parts of its path, its query and its form, whose last values are in `form`."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    given: Sequence[tuple[str, str]]
    is_form: bool
    in_documents: bool

    @classmethod
    def of(cls, request: Request, body: bytes) -> "Call":
        """Read a request. Raises InputError for a NUL, which no text in PostgreSQL has."""
        given = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        values = [*request.path_params.values(), *request.query_params.values(), *dict(given).values()]
        if any("\0" in value for value in values):
            raise InputError("the request has a NUL character")

        in_documents = request.url.path.startswith("/documents/") or ("way", "documents") in given
        return cls(request.path_params, request.query_params, given, request.method == "POST", in_documents)

    @property
    def form(self) -> dict[str, str]:
        """The last value of each field."""
        return dict(self.given)

    def queue(self) -> str:
        """Return the queue of the path. Raises NotFoundError."""
        queue = self.path["queue"]
        if queue not in QUEUES:
            raise NotFoundError(f"there is no queue {queue!r}; queues: {', '.join(QUEUES)}")
        return queue

    def path_number(self, name: str) -> int:
        """Return the number of a document or a cluster in the path. Raises InputError."""
        return _number(name, self.path[name])

    def numbers(self, name: str) -> list[int]:
        """Return the doc_ids of a field. Raises InputError."""
        return [_number(name, value) for field, value in self.given if field == name]

    def query_numbers(self, name: str) -> list[int]:
        """Return the doc_id of a parameter, none without it. Raises InputError."""
        return [_number(name, self.query[name])] if name in self.query else []

    def answers(self) -> dict[Pair, Answer]:
        """Return the answer for each listed document: the submitted one or, if it is ticked, its opposite.

        Raises InputError.
        """
        answer = cast(Answer, self.form["answer"])
        shown, others = self.numbers("document"), self.numbers("listed")
        if len(shown) != 1 or not others or shown[0] in others:
            raise InputError("the form names no document and others that it is compared with")
        ticked = set(self.numbers("ticked"))
        return {
            pair_of(shown[0], other): OPPOSITE.get(answer, answer) if other in ticked else answer
            for other in others
        }

    def filters(self) -> Filters:
        """Return the filters of the query. Raises InputError for a value that is none."""

        def given(name: str, read: Callable[[str], Any]) -> Any:
            value = self.query.get(name, "").strip()
            try:
                return read(value) if value else None
            except ValueError as error:
                raise InputError(f"{name} is {value!r}, which cannot be read") from error

        return Filters(
            given("min_similarity", float),
            given("max_similarity", float),
            given("source", str),
            given("since", datetime.fromisoformat),
            given("until", datetime.fromisoformat),
            given("text", str),
        )

    def filter_query(self) -> str:
        """Return the filters as a query, to be kept by forms and links."""
        return filter_query(self.filters())


def _number(name: str, value: str) -> int:
    # Any number of 18 digits fits into a bigint.
    if not value.isascii() or not value.isdecimal() or len(value) > 18:
        raise InputError(f"{name} is {value!r}, not the number of a document or cluster")
    return int(value)


def filter_query(filters: Filters) -> str:
    """Return filters as a query."""
    return urlencode({name: value for name, value in asdict(filters).items() if value is not None})
