"""How commands end when they do not succeed."""

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from nearsim_db.errors import NearsimError

INTERRUPTED = 130
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
            from nearsim_db.cli.render import complain

            complain(str(error))
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            _tell_interrupted(ctx.invoked_subcommand)
            raise typer.Exit(INTERRUPTED) from interrupt
        except BrokenPipeError as error:
            # Whoever read the answers has enough; what Python still holds for them goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from error


def _tell_interrupted(command: str | None) -> None:
    resumes = (
        "; what was done is kept, and the same command goes on from there" if command in _RESUMABLE else ""
    )
    typer.echo(f"interrupted{resumes}", err=True)
