"""The command line application: all commands, with their examples; a command's module is imported when it is called."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal

import typer

from nearsim_db.cli.common_options import expand, expand_all
from nearsim_db.cli.failures import Commands

_INDEXING, _QUERIES, _PLANNING, _MANAGEMENT = "Indexing", "Queries", "Planning", "Management"
_MARKUP: Literal["markdown"] = "markdown"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A command: its panel, its example, and the function or group `name` in a module of `cli.commands`."""

    panel: str
    module: str
    name: str
    example: str = ""

    def load(self) -> Any:
        """Import it."""
        return getattr(import_module(f"nearsim_db.cli.commands.{self.module}"), self.name)


_COMMANDS = {
    "ingest": _Entry(
        _INDEXING,
        "ingest",
        "ingest",
        "ingest stories.jsonl.gz --collection news --rejects rejects.jsonl",
    ),
    "build": _Entry(_INDEXING, "build", "build", "build --collection news"),
    "worker": _Entry(_INDEXING, "worker", "worker", "worker --collection news --http 9180"),
    "dedupe": _Entry(
        _INDEXING, "dedupe", "dedupe", "dedupe stories.jsonl --threshold 0.8 --output unique.jsonl"
    ),
    "attach": _Entry(
        _INDEXING,
        "attach",
        "attach",
        "attach news.story --id story_id --text body --title headline",
    ),
    "sweep": _Entry(_INDEXING, "attach", "sweep", "sweep story"),
    "detach": _Entry(_INDEXING, "attach", "detach", "detach story --keep"),
    "pairs": _Entry(_QUERIES, "queries", "pairs", "pairs --min-similarity 0.9 --output pairs.jsonl"),
    "clusters": _Entry(_QUERIES, "queries", "clusters", "clusters --format csv"),
    "similar": _Entry(
        _QUERIES,
        "queries",
        "similar",
        "similar story-17, or: nearsim similar --text 'Any text' --format jsonl",
    ),
    "check": _Entry(
        _QUERIES,
        "check",
        "check",
        "check new.jsonl --format jsonl --exit-code, or: nearsim check --text 'Any text'",
    ),
    "why": _Entry(_QUERIES, "why", "why", "why story-17 story-18"),
    "why-not": _Entry(_QUERIES, "why", "why_not", "why-not story-17 story-19 --collection news"),
    "get": _Entry(_QUERIES, "documents", "get", "get story-17"),
    "stats": _Entry(_QUERIES, "documents", "stats", "stats --collection news --json"),
    "export": _Entry(
        _QUERIES,
        "export",
        "export",
        "export --collection news --keep survivors --columns id,title,cluster --output unique.csv.gz",
    ),
    "report": _Entry(
        _QUERIES,
        "report",
        "report",
        "report --output report.html --collection news --rejects rejects.jsonl",
    ),
    "events": _Entry(_QUERIES, "events", "events"),
    "curve": _Entry(
        _PLANNING,
        "curve",
        "curve",
        "curve 25x2 10x5 'or(4, and(4))' --threshold 0.6 --output curves.svg, or: "
        "nearsim curve --near 0.2 --far 0.8 --near-probability 0.99 --far-probability 0.01",
    ),
    "tune": _Entry(_PLANNING, "tune", "tune", "tune stories.jsonl.gz --output recipe.toml"),
    "delete": _Entry(_MANAGEMENT, "documents", "delete", "delete story-17 story-18 --yes"),
    "doctor": _Entry(_MANAGEMENT, "doctor", "doctor", "doctor"),
    "verify-index": _Entry(_MANAGEMENT, "verify_index", "verify_index", "verify-index --all --repair"),
    "profile": _Entry(_MANAGEMENT, "profiles", "profiles"),
    "reindex": _Entry(_MANAGEMENT, "reindex", "reindex"),
    "collection": _Entry(_MANAGEMENT, "collections", "collections"),
    "verdict": _Entry(_MANAGEMENT, "verdicts", "verdicts"),
    "work": _Entry(_MANAGEMENT, "work", "work"),
    "db": _Entry(_MANAGEMENT, "server", "db"),
}


_IN_GROUPS = {
    "db": [
        _Entry(
            "",
            "access",
            "grant",
            "db grant anna reader, or: nearsim db grant tenant_a writer --collection news",
        ),
        _Entry("", "access", "revoke", "db revoke anna reader"),
        _Entry("", "access", "isolation", "db isolation status"),
    ],
    "reindex": [
        _Entry(
            "",
            "reindex",
            "start",
            "reindex start --collection news --set shingle.k=5 --set match.threshold=0.7",
        ),
        _Entry("", "reindex", "status", "reindex status --collection news"),
        _Entry(
            "", "reindex_diff", "diff", "reindex diff --collection news --max-lost 0.1% --output diff.html"
        ),
        _Entry("", "reindex", "promote", "reindex promote --collection news --max-lost 0.1%"),
        _Entry("", "reindex", "rollback", "reindex rollback --collection news"),
        _Entry("", "reindex", "drop", "reindex drop --collection news --yes"),
        _Entry("", "reindex", "pause", "reindex pause --collection news"),
        _Entry("", "reindex", "resume", "reindex resume --collection news"),
        _Entry("", "reindex", "abandon", "reindex abandon strict --collection news --yes"),
    ],
}


class _LazyCommands(Commands):
    """The commands of `_COMMANDS`, each made from its module when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None for an unknown name."""
        return _make(cmd_name) if cmd_name in _COMMANDS else None


@cache
def _make(name: str) -> Any:
    entry = _COMMANDS[name]
    found, parent = entry.load(), typer.Typer(rich_markup_mode=_MARKUP)
    if isinstance(found, typer.Typer):
        for one in _IN_GROUPS.get(name, ()):
            found.command(epilog=f"Example: nearsim {one.example}")(one.load())
        expand_all(found)
        parent.add_typer(found, name=name, rich_help_panel=entry.panel)
    else:
        parent.command(name, rich_help_panel=entry.panel, epilog=f"Example: nearsim {entry.example}")(
            expand(found)
        )
    return typer.main.get_group(parent).commands[name]


app = typer.Typer(
    cls=_LazyCommands,
    no_args_is_help=True,
    rich_markup_mode=_MARKUP,
    pretty_exceptions_enable=False,
    help="Find near-duplicate documents with PostgreSQL: ingest files, then query pairs and clusters.",
    epilog="Exit codes: 0 ok, 1 error, 2 wrong usage or recipe, 130 interrupted (Ctrl-C), 3 found: duplicates (check"
    " --exit-code), errors in the index (verify-index), more changes than --max-... allows (reindex diff, promote)."
    " Without NEARSIM_DATABASE_URL an embedded PostgreSQL is used, with its data under NEARSIM_HOME.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import nearsim_db

        typer.echo(f"nearsim {nearsim_db.__version__}")
        raise typer.Exit


@app.callback()
def _begin(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None: ...
