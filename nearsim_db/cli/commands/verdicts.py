"""Commands for verdicts on pairs: pin, veto, undo, list."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from nearsim_db.cli import options
from nearsim_db.cli.output import layouts, terminal

verdict = typer.Typer(
    no_args_is_help=True,
    help="Decide whether two documents belong in one cluster, overriding their similarity.",
)


@dataclass(eq=False, repr=False)
class _Decision(options.TwoDocuments):
    """A decision on two documents."""

    why: Annotated[str, typer.Option(metavar="TEXT", help="Reason, stored with the verdict.")]
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Author of the verdict. (default: the database user)")
    ] = None
    collection: options.Collection = options.DEFAULT

    def make(self, outcome: options.Outcome, judge: Literal["pin", "veto", "undo"], done: str) -> None:
        """Decide, and print what was done."""
        with outcome.index(self.collection) as index:
            getattr(index, judge)(self.one, self.other, self.why, self.by)
            text = f"{done} {self.one} and {self.other}"
            outcome.show({done: [self.one, self.other]}, lambda: terminal.print_line(text))


@verdict.command(
    epilog='Example: nearsim verdict pin story-17 story-18 --why "the same interview, rewritten"'
)
def pin(decision: _Decision, outcome: options.Outcome) -> None:
    """Put two documents in one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    decision.make(outcome, "pin", "pinned")


@verdict.command(epilog='Example: nearsim verdict veto story-17 story-19 --why "two storms" --by anna')
def veto(decision: _Decision, outcome: options.Outcome) -> None:
    """Keep two documents out of one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    decision.make(outcome, "veto", "vetoed")


@verdict.command(epilog='Example: nearsim verdict undo story-17 story-19 --why "it was one storm after all"')
def undo(decision: _Decision, outcome: options.Outcome) -> None:
    """Undo the verdict on two documents; it stays on record."""
    decision.make(outcome, "undo", "undone")


@verdict.command("list", epilog="Example: nearsim verdict list --collection news --by anna --undone")
def list_verdicts(
    *,
    collection: options.Collection = options.DEFAULT,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only verdicts made or undone by NAME. (default: all)")
    ] = None,
    undone: Annotated[
        bool, typer.Option("--undone", help="Include verdicts that were undone or replaced.")
    ] = False,
    rows: options.Rows,
) -> None:
    """List verdicts, newest first.

    Deleted documents are shown as # and their number.
    """
    with options.Scope(collection).answers() as answers:
        layout = layouts.UNDONE_VERDICTS if undone else layouts.VERDICTS
        rows.write(layout, answers.verdicts(by, undone=undone))
