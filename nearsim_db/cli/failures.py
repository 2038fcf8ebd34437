"""Errors of the command line: wrong options, and too many rejected records."""

from nearsim_db.errors import NearsimError

INTERRUPTED = 130  # the exit code


class UsageError(NearsimError):
    """Options are invalid, or contradict each other."""

    exit_code = 2


class RejectedError(NearsimError):
    """All usable records were written, but more records were rejected than --max-rejected allows."""

    exit_code = 3
