"""The exceptions of nearsim.

NearsimError
├── RecipeError             a recipe with an unknown key or a value out of range
├── InputError              a file or record that cannot be read
├── NotFoundError           a collection, profile or document that does not exist
│   ├── EmptyIndexError     a collection without documents; queries of a whole index return nothing instead
│   └── MissingCollectionError  a collection that does not exist
├── ConflictError           a name that is taken, a lock of another process, or a call that is impossible now
│   └── RecipeConflictError a profile that exists with another recipe
├── DuplicateError          a document that was not added because it has near-duplicates
├── BuildStoppedError       a generation that was paused or abandoned during its build
├── LimitsExceededError     a generation that differs too much from the live generation to be promoted
├── MissedEventsError       events that were removed before they were read
├── FingerprintError        sketches or a generation made by another recipe or scheme version
├── DatabaseError           a statement that failed, a full disk, or a lost connection
│   ├── UnreachableError    no server answers at the address
│   └── SchemaError         the schema is missing, or newer than this code
├── PoolError               a connection pool whose clients do not keep their sessions
└── ServerError             an embedded server that cannot be started or stopped
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nearsim_db.messages import count_of

if TYPE_CHECKING:
    from nearsim_db.records import IngestSummary, Match


class NearsimError(Exception):
    """The base class of all exceptions of nearsim."""

    exit_code = 1  # of the command line


class RecipeError(NearsimError):
    """A recipe has an unknown key or a value out of range."""

    exit_code = 2


class InputError(NearsimError):
    """A file or a record cannot be read, or an argument of a call is out of range."""

    summary: "IngestSummary | None" = None  # counts of the records before the error, if it ended an ingest


class NotFoundError(NearsimError):
    """A collection, profile or document that a call names does not exist, or a profile has no live index."""


class EmptyIndexError(NotFoundError):
    """The collection has no documents, so there is no live index yet."""


class MissingCollectionError(NotFoundError):
    """The collection does not exist; the message names the server, and the collections that exist there."""


class ConflictError(NearsimError):
    """A name is taken, another process has a lock, or the call is impossible in the present state."""


_MAX_DIFFERENCES_SHOWN = 3


class RecipeConflictError(ConflictError):
    """A profile exists, but its recipe is not the requested recipe."""

    exit_code = 2
    differs: Mapping[
        str, tuple[object, object]
    ]  # the existing and the requested value of each key that differs

    def __init__(self, collection: str, profile: str, differs: Mapping[str, tuple[object, object]]) -> None:
        shown = [
            f"{key} is {_written(existing)}, not {_written(requested)}"
            for key, (existing, requested) in differs.items()
        ]
        keys, omitted = ", ".join(shown[:_MAX_DIFFERENCES_SHOWN]), len(shown) - _MAX_DIFFERENCES_SHOWN
        if omitted > 0:
            keys += f" and {count_of(omitted, 'more key')}"
        super().__init__(
            f"profile {profile!r} of collection {collection!r} has another recipe: "
            f"{keys or 'it was made by another version'}"
        )
        self.differs = differs


def _written(value: object) -> object:
    return "not set" if value is None else value


class DuplicateError(NearsimError):
    """A document was not added because it has near-duplicates."""

    external_id: str  # of the document
    matches: "tuple[Match, ...]"  # the near-duplicates, the most similar first
    summary: "IngestSummary | None" = None  # counts of the ingest that this error ended

    def __init__(self, external_id: str, matches: "Sequence[Match]") -> None:
        first, remaining = matches[0], len(matches) - 1
        further = f" and {remaining:,} more" if remaining else ""
        super().__init__(
            f"document {external_id!r} was not added: it is a near-duplicate of {first.external_id!r} "
            f"(similarity {first.similarity:.4f}){further}; earlier documents are kept"
        )
        self.external_id = external_id
        self.matches = tuple(matches)


class BuildStoppedError(NearsimError):
    """The generation that a call was building was paused, abandoned or dropped."""

    state: str | None  # the generation's present state, None if it was dropped

    def __init__(self, generation_id: int, state: str | None, to_resume: str) -> None:
        remedy = f"; to resume: {to_resume}" if state == "paused" else ""
        super().__init__(
            f"the build of generation {generation_id} was stopped: it is {state or 'dropped'}{remedy}"
        )
        self.state = state


class LimitsExceededError(NearsimError):
    """A generation was not promoted because it differs from the live generation by more than the limits allow."""

    exit_code = 3
    limits: Sequence[object]  # the limits that were checked, each with the measured difference

    def __init__(self, message: str, profile: str, limits: Sequence[object]) -> None:
        super().__init__(message)
        self.profile = profile
        self.limits = limits


class MissedEventsError(NearsimError):
    """Events were removed before they were read."""

    through: int  # number of the last removed event

    def __init__(self, after: int, through: int) -> None:
        super().__init__(
            f"events {after + 1} to {through} were removed before they were read; read the present state of the index, "
            "then continue from the newest event (nearsim events --follow --new)"
        )
        self.through = through


class FingerprintError(NearsimError):
    """Sketches of different recipes or scheme versions cannot be compared."""


class DatabaseError(NearsimError):
    """A statement failed in the database, its disk is full, or the connection was lost."""


class UnreachableError(DatabaseError):
    """No server answers at the address."""


class SchemaError(DatabaseError):
    """The schema is missing, or newer than this code."""


class PoolError(NearsimError):
    """The URL leads to a connection pool whose clients do not keep the sessions that locks and notifications need."""


class ServerError(NearsimError):
    """The embedded server cannot be started or stopped."""
