"""How commands end when they do not succeed."""

import errno
import os
import shutil
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from nearsim_db.errors import NearsimError, ServerError, UnreachableError

INTERRUPTED = 130
_OUTPUT_ERRORS = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_DISK = 50 * 1000**2
_RESUMABLE = {"ingest", "build", "profile", "attach", "sweep", "detach"}


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
            _complain(f"{error}{_full_disk(error)}")
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
    from nearsim_db.cli.output import terminal

    terminal.print_error(message)


def _full_disk(error: NearsimError) -> str:
    """What to add where the embedded server is gone and its disk is full: the server itself can no longer say so."""
    if not isinstance(error, UnreachableError | ServerError):
        return ""
    from nearsim_db.store.settings import from_environment

    settings = from_environment()
    if settings.database_url is not None:
        return ""
    home = settings.home
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    if shutil.disk_usage(place).free >= _NO_DISK:
        return ""
    return (
        f"; the disk of {home} is full: make room and run the same command again, it goes on where it stopped"
    )


def _discard_output() -> None:
    """What Python still holds for standard output goes nowhere, so that it cannot fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell_interrupted(command: str | None) -> None:
    resumes = (
        "; what was done is kept, and the same command goes on from there" if command in _RESUMABLE else ""
    )
    typer.echo(f"interrupted{resumes}", err=True)
