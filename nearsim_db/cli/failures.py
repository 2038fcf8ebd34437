"""How commands end when they do not succeed."""

import errno
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from nearsim_db.errors import NearsimError

INTERRUPTED = 130
_OUTPUT_ERRORS = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_RESUMABLE = {"ingest", "build", "profile"}


class UsageError(NearsimError):
    """Options that do not go together."""

    exit_code = 2


class Commands(TyperGroup):
    """Turns expected errors into one line and an exit code; unexpected ones keep their traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except NearsimError as error:
            _complain(str(error))
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            _tell_interrupted(ctx.invoked_subcommand)
            raise typer.Exit(INTERRUPTED) from interrupt
        except OSError as error:
            if error.errno not in _OUTPUT_ERRORS:
                raise
            _discard_output()
            if error.errno == errno.EPIPE:
                # Whoever reads the answers has enough.
                raise typer.Exit(0) from error
            _complain(f"the output cannot be written: {error.strerror}")
            raise typer.Exit(1) from error


def _complain(message: str) -> None:
    from nearsim_db.cli.render import complain

    complain(message)


def _discard_output() -> None:
    """What Python still holds for standard output goes nowhere, so that it cannot fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell_interrupted(command: str | None) -> None:
    resumes = (
        "; what was done is kept, and the same command goes on from there" if command in _RESUMABLE else ""
    )
    typer.echo(f"interrupted{resumes}", err=True)
