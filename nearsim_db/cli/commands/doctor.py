"""The commands that examine an installation and its indexes: `nearsim doctor` and `nearsim verify-index`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import tables, terminal
from nearsim_db.messages import count_of

if TYPE_CHECKING:
    from nearsim_db.admin.doctor import Finding
    from nearsim_db.admin.verify_index import VerifyResult

_FAULTS = 3

Generation = Annotated[
    int | None,
    typer.Option(
        "--generation", "-g", metavar="N", help="Check this built generation instead of the live one."
    ),
]
Sample = Annotated[
    int | None,
    typer.Option("--sample", metavar="N", min=1, help="Number of documents to check. (default: 1,000)"),
]
All = Annotated[
    bool, typer.Option("--all", help="Check all documents, and also find rows that should not exist.")
]
Repair = Annotated[bool, typer.Option("--repair", help="Repair all differences, and check again.")]


def doctor(outcome: options.ShortOutcome) -> None:
    """Check the installation, the server and the indexes.

    Prints the remedy for each problem. The exit code is 1 if there is a problem; warnings do not count. With --quiet,
    only problems and warnings are shown.
    """
    from nearsim_db.admin.doctor import examine

    show_findings(examine(), outcome)


def show_findings(findings: "Sequence[Finding]", outcome: options.Outcome) -> None:
    """Print findings, with --quiet only problems and warnings; exit with 1 if there is a problem."""
    is_sound = all(finding.verdict != "problem" for finding in findings)
    shown = [finding for finding in findings if not outcome.quiet or finding.verdict != "ok"]
    options.Result(outcome.format).show(
        {"ok": is_sound, "checks": shown},
        lambda: tables.print_checks(
            (finding.verdict, finding.check, finding.finding, finding.advice) for finding in shown
        ),
    )
    if not is_sound:
        raise typer.Exit(1)


def verify_index(
    *,
    scope: options.Scope,
    generation: Generation = None,
    sample: Sample = None,
    everything: All = False,
    repair: Repair = False,
    outcome: options.Outcome,
) -> None:
    """Compare an index with its documents, and repair it.

    Checks the sketches, bands, pairs and clusters of a sample of the documents, or of all documents. The exit code is 3
    if anything differs and is not repaired. An index that cannot be repaired in place is rebuilt beside the old index,
    which answers queries until then as far as it can.
    """
    from nearsim_db.admin.verify_index import DEFAULT_SAMPLE
    from nearsim_db.admin.verify_index import verify_index as verify

    if everything and sample is not None:
        raise UsageError("give either --sample or --all, not both")

    warnings: list[str] = []
    database, collection = options.connect_to(scope.collection)
    with outcome.progress() as progress, database:
        result = verify(
            database,
            collection,
            scope.profile,
            generation=generation,
            sample=None if everything else sample or DEFAULT_SAMPLE,
            repair=repair,
            progress=progress,
            warn=warnings.append,
        )

    terminal.print_warnings(warnings)
    selection = _selection(generation, sample, everything=everything)
    options.Result(outcome.format).show(
        _outline(result), lambda: _print(result, selection, quiet=outcome.quiet)
    )
    if not result.is_sound:
        raise typer.Exit(_FAULTS)


def _selection(generation: int | None, sample: int | None, *, everything: bool) -> list[str]:
    """Return the options that chose what to check, for the suggested command that repairs it."""
    numbers = {"--generation": generation, "--sample": sample}
    words = [word for name, value in numbers.items() if value is not None for word in (name, str(value))]
    return [*words, "--all"] if everything else words


def _print(result: "VerifyResult", selection: list[str], *, quiet: bool) -> None:
    if not quiet and result.found.faults:
        rows = [
            (fault.kind, fault.table, fault.count, "; ".join(", ".join(ids) for ids in fault.examples))
            for fault in result.found.faults
        ]
        tables.print_table(["fault", "table", "count", "examples"], rows, wrap=["examples"])
    if not quiet or not result.is_sound:
        show = terminal.print_info if quiet else terminal.print_line
        show(_verdict(result, selection))


_CHECKED = {"documents": "documents", "heads": "heads", "pairs": "stored pairs", "clusters": "clusters"}


def _verdict(result: "VerifyResult", selection: list[str]) -> str:
    from nearsim_db.messages import suggested_command

    findings, after = result.found, result.after
    if findings.generation is None:
        return f"collection {result.collection!r} has no documents, and so no index to verify yet"
    index = f"generation {findings.generation} of profile {result.profile}"

    counts = [
        f"{findings.checked[key]:,} {name}" for key, name in _CHECKED.items() if key in findings.checked
    ]
    checked = f" ({', '.join(counts)})" if counts else ""
    changing = (
        f"; queued work will resolve {count_of(findings.changing, 'more difference')}"
        if findings.changing
        else ""
    )

    rebuild = suggested_command("reindex start", result.collection, result.profile)
    repair = suggested_command("verify-index", result.collection, result.profile, *selection, "--repair")

    if not findings.faults:
        return f"{index} agrees with the documents{checked}{changing}"
    if result.is_repaired:
        how = "repaired" if result.rebuilt is None else f"replaced by generation {result.rebuilt}"
        return f"{index} differed and was {how}{changing}"
    if after is not None:
        left = sum(fault.count for fault in after.faults)
        faults = count_of(left, "fault")
        return f"{index} still differs after the repair: {faults} left; try again, or rebuild: {rebuild}"
    if any(fault.kind == "lost_texts" for fault in findings.faults):
        return f"{index} cannot be compared with its documents: {findings.faults[0].examples[0][0]}"
    if any(fault.kind == "other_scheme" for fault in findings.faults):
        return f"{index} was built by another scheme; to rebuild it: {rebuild}; or: {repair}"
    return f"{index} differs{checked}{changing}; to repair it: {repair}"


def _outline(result: "VerifyResult") -> dict[str, object]:
    findings, after = result.found, result.after
    return {
        **terminal.values_of(result, "collection", "profile"),
        **terminal.values_of(findings, "generation", "checked", "changing", "faults"),
        "repaired": result.is_repaired,
        "rebuilt": result.rebuilt,
        "left": None if after is None else after.faults,
    }
