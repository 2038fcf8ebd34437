"""A runner for `nearsim`, and texts with their similarity in plain Python."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from nearsim_db.cli.app import app

STORM = (
    "A storm crossed the northern coast on Monday night and left three villages without power until the "
    "morning while crews cleared fallen trees from the only road and the school stayed closed for a day"
)
STORM_AGAIN = STORM.replace("Monday", "Tuesday")
STORM_LATER = STORM + " said the mayor"
HARVEST = (
    "Growers in the valley expect the largest harvest of pears in twenty years because the spring was mild and "
    "the bees were many although there are hardly any pickers left who would work for what the buyers pay"
)
BRIDGE = (
    "The council has voted to replace the old iron bridge with a wider one of timber which shall carry trams "
    "from next autumn on and cost less than half of what was asked for by the first engineers"
)
STORIES = {
    "storm": STORM,
    "storm-again": STORM_AGAIN,
    "storm-twin": STORM,
    "harvest": HARVEST,
    "bridge": BRIDGE,
}


@dataclass(frozen=True)
class Outcome:
    """The exit code and the output of a command."""

    exit_code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        """The printed JSON lines."""
        return [json.loads(line) for line in self.out.split("\n") if line]

    def document(self) -> Any:
        """The printed JSON document."""
        return json.loads(self.out)


class CommandLine:
    """Runs `nearsim` in this process on a database of its own."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)

    def run(self, *arguments: object, stdin: bytes = b"") -> Outcome:
        """Run a command and return its outcome. Raises any exception that is not an exit."""
        result = CliRunner().invoke(
            app, [str(argument) for argument in arguments], input=stdin, env=self.environment
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    @contextmanager
    def started(self, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
        """Run a command in a process of its own, and kill the process at the end of the block."""
        process = subprocess.Popen(
            [sys.executable, "-m", "nearsim_db", *map(str, arguments)],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def succeed(self, *arguments: object, stdin: bytes = b"") -> Outcome:
        """Run a command and assert that it succeeds."""
        outcome = self.run(*arguments, stdin=stdin)
        assert outcome.exit_code == 0, outcome
        return outcome

    def fail(self, *arguments: object, stdin: bytes = b"", exit_code: int = 1) -> str:
        """Run a command, assert that it fails with one line on standard error, and return that line."""
        outcome = self.run(*arguments, stdin=stdin)
        assert outcome.exit_code == exit_code, outcome
        *_, line = outcome.err.splitlines()
        assert line.startswith("error: ")
        return line


class Terminal(io.StringIO):
    """A terminal that records what is written."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def unlike_any_other(number: int) -> str:
    """A text that shares no word with the text of any other number."""
    return " ".join(f"word{number}x{position}" for position in range(12))


def write_jsonl(path: Path, records: Iterable[Mapping[str, object]]) -> Path:
    """Write a file of JSON lines and return its path."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path
