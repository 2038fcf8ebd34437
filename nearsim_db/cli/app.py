"""The command line application: the list of all commands, how they are loaded, and how their errors are reported.

The module of a command is imported only when the command is called. If a parameter of a command is a dataclass, each
field of the dataclass becomes an option; these dataclasses are declared without comparison and representation, because
creating them then takes a fifth of the time. Every command with --format also gets --json, and it gets --output and
--quiet unless it declares them itself. For a command that does not declare --output, everything that it prints goes to
the file that the option names.
"""

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache, partial, wraps
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from nearsim_db.cli import options
from nearsim_db.cli.failures import INTERRUPTED
from nearsim_db.cli.output import terminal
from nearsim_db.errors import NearsimError, ServerError, UnreachableError
from nearsim_db.records import STANDARD_OUTPUT

# Errors of writing the output: its reader closed the pipe, a disk or a quota is full, or the file is too large.
_OUTPUT_ERRORS = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# If fewer bytes are free, the message about a failed server names the full disk as the cause.
_NO_DISK = 50 * 1000**2
# Commands and groups that keep completed work when they are interrupted.
_RESUMABLE = {"ingest", "build", "profile", "table"}
_MARKUP: Literal["markdown"] = "markdown"
# The commands by panel of the help, each with its module in `cli.commands` and its example. The commands of a group
# declare their own examples.
_PANELS = {
    "Everyday commands": {
        "dedupe": (
            "dedupe",
            "stories.jsonl --threshold 0.8 --output unique.jsonl, or: nearsim dedupe old.jsonl new.jsonl --only-from "
            "new.jsonl --output new/",
        ),
        "ingest": ("ingest", "stories.jsonl.gz --collection news --rejects rejects.jsonl"),
        "pairs": ("queries", "--min-similarity 0.9 --output pairs.jsonl"),
        "clusters": ("queries", "--format csv"),
        "similar": ("queries", "story-17, or: nearsim similar --text 'Any text' --format jsonl"),
    },
    "Compare documents": {
        "check": ("queries", "new.jsonl --format jsonl --exit-code, or: nearsim check --text 'Any text'"),
        "nearest": (
            "nearest",
            "--collection products -k 1 --mutual --across source, or: nearsim nearest new.csv --in products",
        ),
        "passages": ("queries", "story-17 story-18 --json, or: nearsim passages story-17 --spread"),
        "score": (
            "score",
            "pairs.csv --left-field question1 --right-field question2 --preset records --output scores.csv",
        ),
        "cut": ("cut", "stories.jsonl --output cut.jsonl --cuts cuts.jsonl"),
        "why": ("queries", "story-17 story-18"),
        "why-not": ("queries", "story-17 story-19 --collection news"),
    },
    "Results and review": {
        "export": (
            "export",
            "--collection news --keep survivors --columns id,title,cluster --output unique.csv.gz",
        ),
        "report": ("export", "--output report.html --collection news --rejects rejects.jsonl"),
        "stats": ("documents", "--collection news --json"),
        "events": ("events", ""),
        "review": ("review", "--collection news --by anna"),
        "verdict": ("verdicts", ""),
    },
    "Documents": {
        "collection": ("collections", ""),
        "document": ("documents", ""),
        "table": ("attach", ""),
        "build": ("ingest", "--collection news"),
        "worker": ("worker", "--collection news --http 9180"),
    },
    "Recipes": {
        "tune": ("tune", "stories.jsonl.gz --output recipe.toml"),
        "curve": (
            "curve",
            "25x2 10x5 'or(4, and(4))' --threshold 0.6 --output curves.svg, or: "
            "nearsim curve --near 0.2 --far 0.8 --near-probability 0.99 --far-probability 0.01",
        ),
        "sketch": (
            "sketch",
            "--preset riskiq --text 'sample document', or: nearsim sketch story-17 story-18",
        ),
        "evaluate": ("evaluate", "--labels pairs.csv --collection news"),
        "profile": ("profiles", ""),
        "reindex": ("reindex", ""),
    },
    "Administration": {
        "doctor": ("doctor", ""),
        "verify-index": ("doctor", "--all --repair"),
        "work": ("work", ""),
        "schema": ("schema", ""),
        "access": ("access", ""),
        "server": ("server", ""),
    },
}
# Panel, module and example of each command.
_COMMANDS = {name: (panel, *declared) for panel, named in _PANELS.items() for name, declared in named.items()}
# Old names of commands, each with the present name. They work until version 1.0, and no help lists them.
OLD_NAMES = {
    "get": "document get",
    "delete": "document delete",
    "attach": "table attach",
    "sweep": "table sweep",
    "detach": "table detach",
    "fingerprints": "passages",
    "db init": "schema init",
    "db upgrade": "schema upgrade",
    "db start": "server start",
    "db stop": "server stop",
    "db status": "server status",
    "db url": "server url",
    "db grant": "access grant",
    "db revoke": "access revoke",
    "db isolation": "access isolation",
}


class Commands(TyperGroup):
    """Command group that reports an expected error as one line, with an exit code.

    Expected are the errors of nearsim and of the operating system. Any other error is a fault of the program, and keeps
    its traceback.
    """

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Parse the options before the command, such as --install-completion, which writes to the home folder."""
        try:
            return super().make_context(*arguments, **named)
        except (typer.Exit, typer.Abort, BrokenPipeError):  # the handler below would catch these too
            raise
        except (OSError, RuntimeError) as error:
            terminal.print_error(f"the completion cannot be installed: {error}")
            raise typer.Exit(1) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the invoked command."""
        # An earlier command in this process may have chosen JSON.
        terminal.write_notes(as_json=False)

        try:
            return super().invoke(ctx)
        except NearsimError as error:
            terminal.print_error(f"{error}{_full_disk(error)}")
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as interrupt:
            resumes = "; completed work is kept, run the same command again to resume"
            command = str(ctx.invoked_subcommand)
            is_resumable = OLD_NAMES.get(command, command).partition(" ")[0] in _RESUMABLE
            typer.echo(f"interrupted{resumes if is_resumable else ''}", err=True)
            raise typer.Exit(INTERRUPTED) from interrupt
        except OSError as error:
            if error.errno not in _OUTPUT_ERRORS:
                named = f": {error.filename}" if error.filename else ""
                remedy = "; set TMPDIR to one that can be written to"
                # tempfile raises this message if it finds no folder to write to.
                is_temporary = "temporary directory" in str(error.strerror)
                terminal.print_error(f"{error.strerror or error}{named}{remedy if is_temporary else ''}")
                raise typer.Exit(1) from error

            # Send buffered output to the null device: flushing it at exit would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE:
                # The reader of the output closed the pipe.
                raise typer.Exit(0) from error

            terminal.print_error(f"the output cannot be written: {error.strerror}")
            raise typer.Exit(1) from error


def _full_disk(error: NearsimError) -> str:
    """Return a hint if the embedded server failed because its disk is full, otherwise an empty string."""
    if not isinstance(error, UnreachableError | ServerError):
        return ""
    from nearsim_db.store.embedded import free_bytes
    from nearsim_db.store.settings import from_environment

    settings = from_environment()
    # Only the disk of the embedded server can be measured.
    try:
        if settings.database_url is not None or free_bytes(settings.home) >= _NO_DISK:
            return ""
    except ServerError:  # no folder for the server, as the error itself says
        return ""
    return f"; the disk of {settings.home} is full: free space and run the same command again to resume"


class _LazyCommands(Commands):
    """The commands of `_COMMANDS`, each created when it is called; the list of all commands needs no options."""

    _is_listed: bool = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return _make_old(cmd_name)
        return _make_listed(cmd_name) if self._is_listed else _make(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # Click itself reports an unknown option.
        if args[0][:1] != "-" and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}.{_suggestion(args[0])}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_listed = True
        super().format_help(ctx, formatter)
        self._is_listed = False


def _suggestion(name: str) -> str:
    """Return a question that suggests commands for an unknown name, or an empty string."""
    groups = [group for group in _COMMANDS if isinstance(_make(group), TyperGroup)]
    # The user may have left out the group, such as `collection` in `collection list`.
    meant = [f"{group} {name}" for group in groups if name in _make(group).commands]
    meant = meant or get_close_matches(name, _COMMANDS)
    return f" Did you mean {', '.join(map(repr, meant))}?" if meant else ""


def _find(name: str) -> Any:
    return getattr(import_module(f"nearsim_db.cli.commands.{_COMMANDS[name][1]}"), name.replace("-", "_"))


def _make_listed(name: str) -> Any:
    command = _find(name)
    info = typer.models.TyperInfo
    text = typer.main.solve_typer_info_help(
        info(command) if isinstance(command, typer.Typer) else info(callback=command)
    )
    return typer.core.TyperCommand(name, help=text, rich_help_panel=_COMMANDS[name][0])


@cache
def _make(name: str) -> Any:
    panel, _, example = _COMMANDS[name]
    command = _find(name)

    # Typer's get_group converts whole applications only, so put the command into one of its own.
    parent = typer.Typer(rich_markup_mode=_MARKUP)
    if isinstance(command, typer.Typer):
        _expand_all(command)
        parent.add_typer(command, name=name, rich_help_panel=panel)
    else:
        epilog = f"Example: nearsim {name} {example}".rstrip()
        parent.command(name, cls=Command, rich_help_panel=panel, epilog=epilog)(_expand(command))
    return typer.main.get_group(parent).commands[name]


@cache
def _make_old(name: str) -> Any:
    """Return the command for an old name, or the group of all old names that begin with this word; None for neither."""
    if name in OLD_NAMES:
        command, _, verb = OLD_NAMES[name].partition(" ")
        return _make(command).commands[verb] if verb else _make(command)

    old_verbs = [old.removeprefix(f"{name} ") for old in OLD_NAMES if old.startswith(f"{name} ")]
    if not old_verbs:
        return None
    commands = {verb: _make_old(f"{name} {verb}") for verb in old_verbs}
    groups = sorted({OLD_NAMES[f"{name} {verb}"].partition(" ")[0] for verb in old_verbs})
    return TyperGroup(
        name=name,
        commands=commands,
        help=f"Old names of the commands of {', '.join(groups)}; they work until version 1.0.",
        no_args_is_help=True,
        rich_markup_mode=_MARKUP,
    )


app: typer.Typer = typer.Typer(
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


# --json and --output are eager: they are parsed before --format, whose callback reads both.
_Json = Annotated[
    bool,
    typer.Option(
        "--json",
        is_eager=True,
        help="Print the result as one JSON document.",
        rich_help_panel=options.OUTPUT,
    ),
]


def _print_to_option(*, hidden: bool) -> Any:
    return typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        parser=options.path,
        is_eager=True,
        help="Output file instead of standard output; its suffix is the format: .json, .jsonl, .csv or .txt.",
        rich_help_panel=options.OUTPUT,
        hidden=hidden,
    )


_Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", hidden=True, help="Print the result only; errors are still printed."),
]


class Command(typer.core.TyperCommand):
    """A command whose usage line has no braces around arguments, such as `nearsim why [OPTIONS] ID ID`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the name of the command."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def _expand_all(group: typer.Typer) -> None:
    for registered in (*group.registered_commands, group.registered_callback):
        if registered is not None and registered.callback is not None:
            registered.callback = _expand(registered.callback)
    for registered_command in group.registered_commands:
        registered_command.cls = Command
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            _expand_all(inner.typer_instance)


def _expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer in which every dataclass parameter is replaced by the options of its fields.

    The common options are added, and all options are ordered by panel. When Typer calls the result, it builds the
    dataclasses again and calls the original command with the parameters that this declares.
    """
    declared = signature(command)
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation
        for parameter in declared.parameters.values()
        if is_dataclass(parameter.annotation)
    }
    parameters: list[Parameter] = []
    for parameter in declared.parameters.values():
        if parameter.name in groups:
            parameters += signature(groups[parameter.name]).parameters.values()
        else:
            parameters.append(parameter)

    # Insert the common options that the command does not declare after its --format.
    added = _missing_options({parameter.name: parameter for parameter in parameters})
    at = next((at for at, parameter in enumerate(parameters, 1) if parameter.name == "format"), 0)
    parameters[at:at] = added

    # Options without a panel come first; within a panel they keep their order.
    order = (None, *options.PANELS)
    parameters.sort(key=lambda parameter: order.index(_option_info(parameter).rich_help_panel))
    # Positional parameters without a default would have to come before those with a default.
    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]

    @wraps(command)
    def run(**values: Any) -> None:
        is_quiet = values.get("quiet", False)
        added_values = {parameter.name: values.pop(parameter.name) for parameter in added}
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})

        call, path = partial(command, **values), added_values.get(options.PRINT_TO)
        if path is None or path == STANDARD_OUTPUT:
            call()
        else:
            _print_to(path, call, quiet=is_quiet)

    # Typer reads the options from here.
    run.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _option_info(parameter: Parameter) -> Any:
    """Return Typer's description of a parameter, an empty description for a parameter such as the context."""
    return next(iter(getattr(parameter.annotation, "__metadata__", ())), typer.models.OptionInfo())


def _missing_options(parameters: dict[str, Parameter]) -> list[Parameter]:
    """Return the common options that a command with these parameters lacks; none for a command without --format."""
    if "format" not in parameters:
        return []
    add = partial(Parameter, kind=Parameter.KEYWORD_ONLY)
    added = [add(options.AS_JSON, default=False, annotation=_Json)]
    if "output" not in parameters:
        option = _print_to_option(hidden=_option_info(parameters["format"]).hidden)
        added.append(add(options.PRINT_TO, default=None, annotation=Annotated[Path | None, option]))
    if "quiet" not in parameters:
        added.append(add("quiet", default=False, annotation=_Quiet))
    return added


def _print_to(path: Path, call: Callable[[], None], *, quiet: bool) -> None:
    """Write what a command prints to a file, even if the command then exits with an error."""
    from nearsim_db.readers.output import open_output

    # Some commands write bytes directly to the buffer; write_through keeps text and bytes in order.
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
    ended: Exception | None = None
    with open_output(path) as stream:
        try:
            with redirect_stdout(printed):
                call()
        except (typer.Exit, NearsimError) as error:
            ended = error
        content = printed.buffer.getvalue()
        # If nothing was printed, raise inside the block: then an existing file stays unchanged.
        if ended is not None and not content:
            raise ended
        stream.write(content)

    if not quiet:
        terminal.print_info(f"wrote the result to {path}")
    if ended is not None:
        raise ended
