"""Everything nearsim raises on purpose.

NearsimError
├── RecipeError             a recipe with an unknown key or an impossible value
├── InputError              a file or record that cannot be read
├── NotFoundError           a collection, profile or document that is not there
├── ConflictError           something of that name exists already, or someone else holds it
├── DuplicateError          a document that has near-duplicates, where that is refused
├── BuildStoppedError       somebody paused or abandoned the generation that was being built
├── LimitsExceededError     a generation that differs from the live one by more than is allowed
├── MissedEventsError       events that were removed before they were read
├── FingerprintError        sketches or a generation made by another recipe or scheme version
├── DatabaseError           the server refused, is full, or went away
│   ├── UnreachableError    no server answers at the address
│   └── SchemaError         the schema is missing, or newer than this code
└── ServerError             the embedded server cannot be started or stopped
"""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearsim_db.records import IngestSummary, Match


class NearsimError(Exception):
    """The root of the tree; `exit_code` is what the command line ends with."""

    exit_code = 1


class RecipeError(NearsimError):
    """A recipe has an unknown key or a value that cannot be."""


class InputError(NearsimError):
    """A file or a record cannot be read. Where an ingest ended by it, `summary` is what came before."""

    summary: "IngestSummary | None" = None


class NotFoundError(NearsimError):
    """A collection, profile or document is not there."""


class ConflictError(NearsimError):
    """Something of that name exists already, or someone else holds it."""


class DuplicateError(NearsimError):
    """A document was not added because it has near-duplicates: `matches`, the most similar first.

    `summary` is what the ingest that ended by it came to.
    """

    summary: "IngestSummary | None" = None

    def __init__(self, external_id: str, matches: "Sequence[Match]") -> None:
        first, more = matches[0], len(matches) - 1
        others = f" and {more:,} more" if more else ""
        super().__init__(
            f"document {external_id!r} was not added: it is a near-duplicate of {first.external_id!r} "
            f"(similarity {first.similarity:.4f}){others}; what came before it is kept"
        )
        self.external_id = external_id
        self.matches = tuple(matches)


class BuildStoppedError(NearsimError):
    """Somebody paused, abandoned or dropped the generation that was being built; `state` is what it is in now.

    `to_resume` is the command that goes on with it.
    """

    def __init__(self, generation_id: int, state: str | None, to_resume: str) -> None:
        advice = f"; to go on: {to_resume}" if state == "paused" else ""
        super().__init__(
            f"the build of generation {generation_id} was stopped: it is {state or 'gone'}{advice}"
        )
        self.state = state


class LimitsExceededError(NearsimError):
    """A generation was not promoted because it differs from the live one by more than is allowed.

    `limits` are those that were held against what differs, as a comparison has them.
    """

    exit_code = 3

    def __init__(self, message: str, profile: str, limits: Sequence[object]) -> None:
        super().__init__(message)
        self.profile = profile
        self.limits = limits


class MissedEventsError(NearsimError):
    """Events were removed before they were read; `through` is the number of the last of them."""

    def __init__(self, after: int, through: int) -> None:
        super().__init__(
            f"events after {after} were removed before they were read, the last of them was {through}: take what the "
            "index holds now, and go on from the newest event (nearsim events --follow --new)"
        )
        self.through = through


class FingerprintError(NearsimError):
    """Sketches of different recipes or scheme versions would be mixed."""


class DatabaseError(NearsimError):
    """The database refused, is full, or went away."""


class UnreachableError(DatabaseError):
    """No server answers at the address."""


class SchemaError(DatabaseError):
    """The schema is missing, or newer than this code."""


class ServerError(NearsimError):
    """The embedded server cannot be started or stopped."""


DEFAULT = "default"  # what a collection or a profile is called that need not be named


def suggested_command(command: str, collection: str, profile: str = DEFAULT, *more: str) -> str:
    """A command for a collection, and a profile of it, as "nearsim reindex diff body -c news".

    What is called default is left out. The commands of `nearsim reindex` and `nearsim profile` take the profile as an
    argument, and the latter always.
    """
    words = ["nearsim", *command.split()]
    if command.startswith("profile ") or profile != DEFAULT:
        words += [profile] if command.startswith(("reindex ", "profile ")) else ["-p", profile]
    if collection != DEFAULT:
        words += ["-c", collection]
    return shlex.join([*words, *more])


def count_of(number: int, noun: str) -> str:
    """A number of things, as "1 document" or "2,000 documents"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
