"""Commands for verdicts on pairs: pin, veto, undo, list."""

from dataclasses import dataclass
from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.output import terminal

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

    def given(self) -> tuple[str, str, str, str | None]:
        """Return the documents, the reason and the author."""
        return self.one, self.other, self.why, self.by


@verdict.command(
    epilog='Example: nearsim verdict pin story-17 story-18 --why "the same interview, rewritten"'
)
def pin(decision: _Decision, outcome: options.Outcome) -> None:
    """Put two documents in one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    with outcome.index(decision.collection) as index:
        index.pin(*decision.given())
        _show(outcome, "pinned", decision)


@verdict.command(epilog='Example: nearsim verdict veto story-17 story-19 --why "two storms" --by anna')
def veto(decision: _Decision, outcome: options.Outcome) -> None:
    """Keep two documents out of one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    with outcome.index(decision.collection) as index:
        index.veto(*decision.given())
        _show(outcome, "vetoed", decision)


@verdict.command(epilog='Example: nearsim verdict undo story-17 story-19 --why "it was one storm after all"')
def undo(decision: _Decision, outcome: options.Outcome) -> None:
    """Undo the verdict on two documents; it stays on record."""
    with outcome.index(decision.collection) as index:
        index.undo(*decision.given())
        _show(outcome, "undone", decision)


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
    from nearsim_db.cli.output import layouts

    with options.Scope(collection).answers() as answers:
        layout = layouts.UNDONE_VERDICTS if undone else layouts.VERDICTS
        rows.write(layout, answers.verdicts(by, undone=undone))


def _show(outcome: options.Outcome, done: str, decision: _Decision) -> None:
    one, other = decision.one, decision.other
    outcome.show({done: [one, other]}, lambda: terminal.print_line(f"{done} {one} and {other}"))
