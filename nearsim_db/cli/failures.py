"""Errors of the command line: options that are wrong, and records that are refused."""

from nearsim_db.errors import NearsimError

INTERRUPTED = 130


class UsageError(NearsimError):
    """Options that are invalid or conflict."""

    exit_code = 2


class RejectedError(NearsimError):
    """What could be used was written, but more records were rejected than allowed."""

    exit_code = 3
