"""The command verify-index."""

from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars

if TYPE_CHECKING:
    from nearsim_db.admin.verify_index import Audit, Outcome

_DIFFERENT = 3

Generation = Annotated[
    int | None,
    typer.Option(
        "--generation",
        "-g",
        metavar="N",
        help="A built generation instead of the live one.",
        show_default=False,
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample", metavar="N", min=1, help="How many documents. (default: 1,000)", show_default=False
    ),
]
All = Annotated[bool, typer.Option("--all", help="Look at all of the index, and that nothing else is there.")]
Repair = Annotated[bool, typer.Option("--repair", help="Put right what differs, and look again.")]


def verify_index(
    collection: options.Collection = options.DEFAULT_COLLECTION,
    profile: options.Profile = None,
    generation: Generation = None,
    sample: Sample = None,
    everything: All = False,
    repair: Repair = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare an index with the documents, a sample of them or all: sketches, bands, pairs and clusters.

    Ends with exit code 3 if anything differs and is not repaired. What is damaged beyond that is built anew beside
    the index, which goes on answering as far as it can.
    """
    from nearsim_db.admin.verify_index.verification import SAMPLE
    from nearsim_db.admin.verify_index.verification import verify_index as compare
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database

    if everything and sample is not None:
        raise UsageError("give either --sample or --all, not both")
    warnings: list[str] = []
    with progress_bars(quiet or as_json) as progress, open_database() as database:
        outcome = compare(
            database,
            collection,
            profile,
            generation=generation,
            sample=None if everything else sample or SAMPLE,
            repair=repair,
            progress=progress,
            warn=warnings.append,
        )
    terminal.print_warnings(warnings)
    given = _given(generation, sample, everything=everything)
    _print(outcome, given, as_json=as_json, quiet=quiet)
    if not outcome.is_sound:
        raise typer.Exit(_DIFFERENT)


def _given(generation: int | None, sample: int | None, *, everything: bool) -> list[str]:
    """The options that say what is looked at, to be given again."""
    numbers = {"--generation": generation, "--sample": sample}
    words = [word for name, value in numbers.items() if value is not None for word in (name, str(value))]
    return [*words, "--all"] if everything else words


def _print(outcome: "Outcome", given: list[str], *, as_json: bool, quiet: bool) -> None:
    from nearsim_db.cli.output import terminal

    if as_json:
        terminal.print_json(_outline(outcome))
        return
    if not quiet:
        _print_faults(outcome.found)
    if not quiet or not outcome.is_sound:
        terminal.print_info(_verdict(outcome, given))


def _print_faults(audit: "Audit") -> None:
    from nearsim_db.cli.output import tables

    if audit.faults:
        rows = [
            (one.kind, one.table, one.count, "; ".join(", ".join(ids) for ids in one.examples))
            for one in audit.faults
        ]
        tables.print_table(["fault", "table", "count", "examples"], rows, wrap=["examples"])


def _verdict(outcome: "Outcome", given: list[str]) -> str:
    from nearsim_db.errors import suggested_command

    anew = suggested_command("reindex start", outcome.collection, outcome.profile)
    found, after = outcome.found, outcome.after
    seen = ", ".join(
        f"{found.checked[what]:,} {told}" for what, told in _TOLD.items() if what in found.checked
    )
    among = f" ({seen})" if seen else ""
    where = f"generation {found.generation} of profile {outcome.profile}"
    waits = f"; {found.changing:,} differences wait to be taken in" if found.changing else ""
    if not found.faults:
        return f"{where} agrees with the documents{among}{waits}"
    if outcome.is_repaired:
        how = "repaired" if outcome.rebuilt is None else f"replaced by generation {outcome.rebuilt}"
        return f"{where} differed and is {how}{waits}"
    if after is not None:
        left = sum(one.count for one in after.faults)
        return f"{where} still differs after the repair: {left:,} faults are left; try again, or: {anew}"
    repair = suggested_command("verify-index", outcome.collection, outcome.profile, *given, "--repair")
    if any(one.kind == "other_scheme" for one in found.faults):
        return f"{where} was made by another scheme; to build it anew: {anew}; or: {repair}"
    return f"{where} differs{among}{waits}; to put it right: {repair}"


_TOLD = {"documents": "documents", "heads": "heads", "pairs": "stored pairs", "clusters": "clusters"}


def _outline(outcome: "Outcome") -> dict[str, object]:
    found, after = outcome.found, outcome.after
    return {
        "collection": outcome.collection,
        "profile": outcome.profile,
        "generation": found.generation,
        "checked": found.checked,
        "changing": found.changing,
        "faults": _faults(found),
        "repaired": outcome.is_repaired,
        "rebuilt": outcome.rebuilt,
        "left": None if after is None else _faults(after),
    }


def _faults(audit: "Audit") -> list[dict[str, object]]:
    return [
        {"kind": one.kind, "table": one.table, "count": one.count, "examples": one.examples}
        for one in audit.faults
    ]
