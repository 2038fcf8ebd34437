"""The options that mark near-duplicates instead of removing them."""

from dataclasses import dataclass
from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError


@dataclass(eq=False, repr=False)
class MarkOptions:
    """Whether near-duplicates are marked instead of removed."""

    mark: Annotated[
        bool,
        typer.Option(
            "--mark",
            help="Write all records, and add duplicate_of, cluster, cluster_size and similarity to each.",
            rich_help_panel=options.MARKS,
        ),
    ] = False
    mark_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="Begin the names of these four columns with PREFIX.",
            rich_help_panel=options.MARKS,
        ),
    ] = None

    @property
    def prefix(self) -> str | None:
        """The prefix, None if records are not marked. Raises UsageError for a prefix without --mark."""
        if self.mark_prefix is not None and not self.mark:
            raise UsageError("--mark-prefix requires --mark")
        return self.mark_prefix or "" if self.mark else None
