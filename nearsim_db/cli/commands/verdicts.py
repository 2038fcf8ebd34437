"""Commands for verdicts on pairs: pin, veto, undo, list."""

from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.output import terminal

verdict = typer.Typer(
    no_args_is_help=True,
    help="Decide whether two documents belong in one cluster, overriding their similarity.",
)

Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="Reason, stored with the verdict.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="Author of the verdict. (default: the database user)", show_default=False
    ),
]


@verdict.command(
    epilog='Example: nearsim verdict pin story-17 story-18 --why "the same interview, rewritten"'
)
def pin(
    *,
    one: options.One,
    other: options.Other,
    why: Why,
    by: By = None,
    collection: options.Collection = options.DEFAULT,
    outcome: options.Outcome,
) -> None:
    """Put two documents in one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    with outcome.index(collection) as index:
        index.pin(one, other, why, by)
        _show(outcome, "pinned", one, other)


@verdict.command(epilog='Example: nearsim verdict veto story-17 story-19 --why "two storms" --by anna')
def veto(
    *,
    one: options.One,
    other: options.Other,
    why: Why,
    by: By = None,
    collection: options.Collection = options.DEFAULT,
    outcome: options.Outcome,
) -> None:
    """Keep two documents out of one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    with outcome.index(collection) as index:
        index.veto(one, other, why, by)
        _show(outcome, "vetoed", one, other)


@verdict.command(epilog='Example: nearsim verdict undo story-17 story-19 --why "it was one storm after all"')
def undo(
    *,
    one: options.One,
    other: options.Other,
    why: Why,
    by: By = None,
    collection: options.Collection = options.DEFAULT,
    outcome: options.Outcome,
) -> None:
    """Undo the verdict on two documents; it stays on record."""
    with outcome.index(collection) as index:
        index.undo(one, other, why, by)
        _show(outcome, "undone", one, other)


@verdict.command("list", epilog="Example: nearsim verdict list --collection news --by anna --undone")
def list_verdicts(
    *,
    collection: options.Collection = options.DEFAULT,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="NAME",
            help="Only verdicts made or undone by NAME. (default: all)",
            show_default=False,
        ),
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
    from nearsim_db.search.answers import Answers

    with Answers.connect(collection=collection) as answers:
        layout = layouts.UNDONE_VERDICTS if undone else layouts.VERDICTS
        rows.write(layout, answers.verdicts(by, undone=undone))


def _show(outcome: options.Outcome, done: str, one: str, other: str) -> None:
    outcome.show({done: [one, other]}, lambda: terminal.print_line(f"{done} {one} and {other}"))
