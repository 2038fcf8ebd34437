"""The command line application: all commands, with their examples."""

from collections.abc import Callable
from typing import Annotated

import typer

from nearsim_db.cli.commands import reindex as reindexes
from nearsim_db.cli.commands.access import grant, isolation, revoke
from nearsim_db.cli.commands.attach import attach, detach, sweep
from nearsim_db.cli.commands.check import check
from nearsim_db.cli.commands.collections import collections
from nearsim_db.cli.commands.curve import curve
from nearsim_db.cli.commands.dedupe import dedupe
from nearsim_db.cli.commands.doctor import doctor
from nearsim_db.cli.commands.documents import delete, get, stats
from nearsim_db.cli.commands.events import events
from nearsim_db.cli.commands.ingest import build, ingest
from nearsim_db.cli.commands.profiles import profiles
from nearsim_db.cli.commands.queries import clusters, pairs, similar
from nearsim_db.cli.commands.reindex_diff import diff
from nearsim_db.cli.commands.report import report
from nearsim_db.cli.commands.server import db
from nearsim_db.cli.commands.tune import tune
from nearsim_db.cli.commands.verdicts import verdicts
from nearsim_db.cli.commands.verify_index import verify_index
from nearsim_db.cli.commands.work import work
from nearsim_db.cli.commands.worker import worker
from nearsim_db.cli.failures import Commands

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Find near-duplicate documents with PostgreSQL: ingest files, then query pairs and clusters.",
    epilog="Exit codes: 0 ok, 1 error, 2 wrong usage, 130 interrupted (Ctrl-C), 3 found: duplicates (check"
    " --exit-code), errors in the index (verify-index), more changes than --max-... allows (reindex diff, promote)."
    " Without NEARSIM_DATABASE_URL an embedded PostgreSQL is used, with its data under NEARSIM_HOME.",
)

_INDEXING, _QUERIES, _PLANNING, _MANAGEMENT = "Indexing", "Queries", "Planning", "Management"
_COMMANDS: list[tuple[str, Callable[..., None], str]] = [
    (_INDEXING, ingest, "nearsim ingest stories.jsonl.gz --collection news --rejects rejects.jsonl"),
    (_INDEXING, build, "nearsim build --collection news"),
    (_INDEXING, worker, "nearsim worker --collection news --http 9180"),
    (_INDEXING, dedupe, "nearsim dedupe stories.jsonl --threshold 0.8 --output unique.jsonl"),
    (_INDEXING, attach, "nearsim attach news.story --id story_id --text body --title headline"),
    (_INDEXING, sweep, "nearsim sweep story"),
    (_INDEXING, detach, "nearsim detach story --keep"),
    (_QUERIES, pairs, "nearsim pairs --min-similarity 0.9 --output pairs.jsonl"),
    (_QUERIES, clusters, "nearsim clusters --format csv"),
    (_QUERIES, similar, "nearsim similar story-17, or: nearsim similar --text 'Any text' --format jsonl"),
    (
        _QUERIES,
        check,
        "nearsim check new.jsonl --format jsonl --exit-code, or: nearsim check --text 'Any text'",
    ),
    (_QUERIES, get, "nearsim get story-17"),
    (_QUERIES, stats, "nearsim stats --collection news --json"),
    (_QUERIES, report, "nearsim report --output report.html --collection news --rejects rejects.jsonl"),
    (_PLANNING, curve, "nearsim curve 25x2 10x5 'or(4, and(4))' --threshold 0.6 --output curves.svg"),
    (_PLANNING, tune, "nearsim tune stories.jsonl.gz --output recipe.toml"),
    (_MANAGEMENT, delete, "nearsim delete story-17 story-18 --yes"),
    (_MANAGEMENT, doctor, "nearsim doctor"),
    (_MANAGEMENT, verify_index, "nearsim verify-index --all --repair"),
]

for _panel, _command, _example in _COMMANDS:
    app.command(rich_help_panel=_panel, epilog=f"Example: {_example}")(_command)
for _command, _example in (
    (grant, "nearsim db grant anna reader, or: nearsim db grant tenant_a writer --collection news"),
    (revoke, "nearsim db revoke anna reader"),
    (isolation, "nearsim db isolation status"),
):
    db.command(epilog=f"Example: {_example}")(_command)
for _command, _example in (
    (reindexes.start, "start --collection news --set shingle.k=5 --set match.threshold=0.7"),
    (reindexes.status, "status --collection news"),
    (diff, "diff --collection news --max-lost 0.1% --output diff.html"),
    (reindexes.promote, "promote --collection news --max-lost 0.1%"),
    (reindexes.rollback, "rollback --collection news"),
    (reindexes.drop, "drop --collection news --yes"),
    (reindexes.pause, "pause --collection news"),
    (reindexes.resume, "resume --collection news"),
    (reindexes.abandon, "abandon strict --collection news --yes"),
):
    reindexes.reindex.command(epilog=f"Example: nearsim reindex {_example}")(_command)
app.add_typer(events, name="events", rich_help_panel=_QUERIES)
app.add_typer(profiles, name="profile", rich_help_panel=_MANAGEMENT)
app.add_typer(reindexes.reindex, name="reindex", rich_help_panel=_MANAGEMENT)
app.add_typer(collections, name="collection", rich_help_panel=_MANAGEMENT)
app.add_typer(verdicts, name="verdict", rich_help_panel=_MANAGEMENT)
app.add_typer(work, name="work", rich_help_panel=_MANAGEMENT)
app.add_typer(db, name="db", rich_help_panel=_MANAGEMENT)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"nearsim {version('nearsim-db')}")
        raise typer.Exit


@app.callback()
def _begin(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None: ...
