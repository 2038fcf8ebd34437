"""The commands `nearsim verdict`: pin, veto, undo, keep, import and list."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from nearsim_db.cli import options
from nearsim_db.cli.output import layouts, tables, terminal
from nearsim_db.records import row_of

verdict: typer.Typer = typer.Typer(
    no_args_is_help=True,
    help="Decide whether two documents belong in one cluster.\n\nA verdict overrides their similarity.",
)


@dataclass(eq=False, repr=False)
class _Decision(options.TwoDocuments):
    """A decision on two documents."""

    why: Annotated[str, typer.Option(metavar="TEXT", help="Reason, stored with the verdict.")]
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Author of the verdict. (default: the database user)")
    ] = None
    collection: options.Collection = None

    def make(self, outcome: options.ShortOutcome, judge: Literal["pin", "veto", "undo"], done: str) -> None:
        """Store the decision, and print it."""
        with outcome.index(self.collection) as index:
            verdict = getattr(index, judge)(self.left, self.right, self.why, self.by)

        def print_text() -> None:
            terminal.print_line(f"{done} {self.left} and {self.right}")
            tables.print_facts(
                {
                    "collection": verdict.collection,
                    "left": terminal.id_and_title(verdict.left, verdict.left_title),
                    "right": terminal.id_and_title(verdict.right, verdict.right_title),
                }
            )

        outcome.show({done: [self.left, self.right], **row_of(verdict)}, print_text)


@verdict.command(
    epilog='Example: nearsim verdict pin story-17 story-18 --why "the same interview, rewritten"'
)
def pin(decision: _Decision, outcome: options.ShortOutcome) -> None:
    """Put two documents in one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    decision.make(outcome, "pin", "pinned")


@verdict.command(epilog='Example: nearsim verdict veto story-17 story-19 --why "two storms" --by anna')
def veto(decision: _Decision, outcome: options.ShortOutcome) -> None:
    """Keep two documents in different clusters, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    decision.make(outcome, "veto", "vetoed")


@verdict.command(epilog='Example: nearsim verdict undo story-17 story-19 --why "it was one storm after all"')
def undo(decision: _Decision, outcome: options.ShortOutcome) -> None:
    """Undo the verdict on two documents; it stays on record."""
    decision.make(outcome, "undo", "undone")


@verdict.command(epilog='Example: nearsim verdict keep story-17 --why "the first to report it"')
def keep(
    *,
    document: Annotated[str, options.argument("ID", "Id of the document to keep.")],
    why: Annotated[str, typer.Option(metavar="TEXT", help="Reason, stored with the choice.")],
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Author of the choice. (default: the database user)")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the newest choice of this document.")] = False,
    collection: options.Collection = None,
    outcome: options.ShortOutcome,
) -> None:
    """Choose the document to keep of its cluster, whatever cluster.keep says.

    The newest choice in a cluster counts. Choices are kept when an index is rebuilt.
    """
    done = "undone" if undo else "kept"
    with outcome.index(collection) as index:
        choice = index.keep(document, why, by, undo=undo)

    def print_text() -> None:
        terminal.print_line(f"{done} {document}")
        tables.print_facts(
            {"collection": choice.collection, "document": terminal.id_and_title(choice.id, choice.title)}
        )

    outcome.show({done: document, **row_of(choice)}, print_text)


@verdict.command("import", epilog="Example: nearsim verdict import judged.csv --collection news --dry-run")
def import_verdicts(
    file: Annotated[
        Path,
        options.argument(
            "FILE",
            "CSV with the columns id_a, id_b and label: 1/0, yes/no, true/false, duplicate/distinct.",
            parser=options.path,
        ),
    ],
    *,
    collection: options.Collection = None,
    why: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Reason, stored with each verdict. (default: imported from FILE)"),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Author of the verdicts. (default: the database user)")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would change, without changing it.")
    ] = False,
    outcome: options.ShortOutcome,
) -> None:
    """Set verdicts from labelled pairs: pin duplicates, and veto distinct pairs.

    All verdicts are stored in one transaction. Pairs that already have the verdict, pairs of unknown documents and
    invalid lines are counted and left out. If several lines are about the same pair, the last line counts.
    """
    from nearsim_db.analysis.tuning.labels import read_labels

    labels = read_labels(file)
    # The key is a set, because lines may name the two documents in either order.
    last = {frozenset(pair[:2]): pair for pair in labels.pairs}
    with outcome.index(collection) as index:
        reason = why or f"imported from {file.name}"
        imported = index.import_labels(list(last.values()), reason, by, dry_run=dry_run)

    counts = {
        **{"pinned": imported.pinned, "vetoed": imported.vetoed, "unchanged": imported.unchanged},
        **{
            "unknown": imported.unknown,
            "invalid": labels.bad,
            "dry_run": dry_run,
            "collection": index.collection,
        },
    }

    would = "would be " if dry_run else ""
    outcome.show(
        counts,
        lambda: terminal.print_line(
            f"{would}pinned {imported.pinned:,}, vetoed {imported.vetoed:,}; unchanged {imported.unchanged:,}, "
            f"of unknown documents {imported.unknown:,}, invalid lines {labels.bad:,}; collection {index.collection}"
        ),
    )
    terminal.print_warnings(labels.reasons)


@verdict.command("list", epilog="Example: nearsim verdict list --collection news --by anna --undone")
def list_verdicts(
    *,
    collection: options.Collection = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only verdicts made or undone by NAME. (default: all)")
    ] = None,
    undone: Annotated[
        bool, typer.Option("--undone", help="Include verdicts that were undone or replaced.")
    ] = False,
    rows: options.Rows,
) -> None:
    """List verdicts, newest first.

    A deleted document is shown as # and its doc_id.
    """
    with options.Scope(collection).answers() as answers:
        layout = layouts.UNDONE_VERDICTS if undone else layouts.VERDICTS
        rows.write(layout, answers.verdicts(by, undone=undone))
