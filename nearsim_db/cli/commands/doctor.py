"""The command doctor: checks with advice."""

import typer

from nearsim_db.cli import formats, options
from nearsim_db.cli.formats import Format


def doctor(format: formats.ResultFormat = Format.TABLE, quiet: options.Quiet = False) -> None:
    """Check the installation, the server and the indexes, with advice on what to change.

    The exit code is 1 if there is a problem; warnings do not count. With --quiet only problems and warnings are shown.
    """
    from dataclasses import asdict

    from nearsim_db.admin.doctor import examine
    from nearsim_db.cli.output import tables
    from nearsim_db.cli.output.documents import print_document

    findings = examine()
    is_sound = all(one.verdict != "problem" for one in findings)
    if quiet:
        findings = [one for one in findings if one.verdict != "ok"]
    if format.is_machine:
        print_document(format, {"ok": is_sound, "checks": [asdict(one) for one in findings]})
    else:
        tables.print_checks([(one.verdict, one.check, one.finding, one.advice) for one in findings])
    if not is_sound:
        raise typer.Exit(1)
