"""The command doctor."""

import typer

from nearsim_db.cli import options


def doctor(as_json: options.AsJson = False) -> None:
    """Look for what could keep nearsim from working well here, and say what to do about it.

    Ends with exit code 1 if there is a problem; warnings do not count.
    """
    from dataclasses import asdict

    from nearsim_db.admin.doctor import examine
    from nearsim_db.cli.output import tables, terminal

    findings = examine()
    sound = all(one.verdict != "problem" for one in findings)
    if as_json:
        terminal.print_json({"ok": sound, "checks": [asdict(one) for one in findings]})
    else:
        tables.print_checks([(one.verdict, one.check, one.finding, one.advice) for one in findings])
    if not sound:
        raise typer.Exit(1)
