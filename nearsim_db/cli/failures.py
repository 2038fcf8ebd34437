"""Error handling of commands: messages and exit codes."""

import errno
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from nearsim_db.cli.output import terminal
from nearsim_db.errors import NearsimError, ServerError, UnreachableError

INTERRUPTED = 130
_OUTPUT_ERRORS = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_DISK = 50 * 1000**2
_RESUMABLE = {"ingest", "build", "profile", "attach", "sweep", "detach"}


class UsageError(NearsimError):
    """Options that are invalid or conflict."""

    exit_code = 2


class RejectedError(NearsimError):
    """What could be used was written, but more records were rejected than allowed."""

    exit_code = 3


class Commands(TyperGroup):
    """Command group that reports errors of input, database and system as one line and an exit code.

    Others keep their traceback.
    """

    def make_context(self, *given: Any, **named: Any) -> Any:
        """Parse the options before the command, of which --install-completion writes to the home folder."""
        try:
            return super().make_context(*given, **named)
        except (typer.Exit, typer.Abort, BrokenPipeError):  # RuntimeErrors, and a closed pipe
            raise
        except (OSError, RuntimeError) as error:
            terminal.print_error(f"the completion cannot be installed: {error}")
            raise typer.Exit(1) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the invoked command."""
        terminal.write_notes(as_json=False)
        try:
            return super().invoke(ctx)
        except NearsimError as error:
            terminal.print_error(f"{error}{_full_disk(error)}")
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            resumes = "; completed work is kept, run the same command again to resume"
            typer.echo(f"interrupted{resumes if ctx.invoked_subcommand in _RESUMABLE else ''}", err=True)
            raise typer.Exit(INTERRUPTED) from interrupt
        except OSError as error:
            if error.errno not in _OUTPUT_ERRORS:
                named = f": {error.filename}" if error.filename else ""
                remedy = "; set TMPDIR to one that can be written to"
                is_temporary = "temporary directory" in str(error.strerror)
                terminal.print_error(f"{error.strerror or error}{named}{remedy if is_temporary else ''}")
                raise typer.Exit(1) from error
            # Buffered output goes to the null device, so that flushing it at exit cannot fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE:
                # The reader of the output closed the pipe.
                raise typer.Exit(0) from error
            terminal.print_error(f"the output cannot be written: {error.strerror}")
            raise typer.Exit(1) from error


def _full_disk(error: NearsimError) -> str:
    """Return a hint if the embedded server failed because its disk is full, otherwise an empty string."""
    if not isinstance(error, UnreachableError | ServerError):
        return ""
    from nearsim_db.store.embedded import free_bytes
    from nearsim_db.store.settings import from_environment

    settings = from_environment()
    try:
        if settings.database_url is not None or free_bytes(settings.home) >= _NO_DISK:
            return ""
    except ServerError:  # no folder for the server, as the error itself says
        return ""
    return f"; the disk of {settings.home} is full: free space and run the same command again to resume"
