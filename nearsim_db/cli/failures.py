"""Error handling of commands: messages and exit codes."""

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
    """Options that are invalid or conflict."""

    exit_code = 2


class Commands(TyperGroup):
    """Command group that reports expected errors as one line and an exit code; others keep their traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the invoked command."""
        try:
            return super().invoke(ctx)
        except NearsimError as error:
            _print_error(f"{error}{_full_disk(error)}")
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            _report_interruption(ctx.invoked_subcommand)
            raise typer.Exit(INTERRUPTED) from interrupt
        except OSError as error:
            if error.errno not in _OUTPUT_ERRORS:
                raise
            _discard_output()
            if error.errno == errno.EPIPE:
                # The reader of the output closed the pipe.
                raise typer.Exit(0) from error
            _print_error(f"the output cannot be written: {error.strerror}")
            raise typer.Exit(1) from error


def _print_error(message: str) -> None:
    from nearsim_db.cli.output import terminal

    terminal.print_error(message)


def _full_disk(error: NearsimError) -> str:
    """Return a hint if the embedded server failed because its disk is full, otherwise an empty string."""
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
    return f"; the disk of {home} is full: free space and run the same command again to resume"


def _discard_output() -> None:
    """Redirect buffered standard output to the null device, so that flushing it at exit cannot fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_interruption(command: str | None) -> None:
    resumes = (
        "; completed work is kept, run the same command again to resume" if command in _RESUMABLE else ""
    )
    typer.echo(f"interrupted{resumes}", err=True)
