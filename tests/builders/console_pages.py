"""The blocks and commands of a page in Markdown, in their order, with the output that the page shows.

A block is run unless a comment in the line before it gives a reason: <!-- not run: needs a container engine -->.
A `text` block is the output of the block before it.
"""

import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

_FENCE = "```"
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+\d\d(:\d\d)?)?")
_PSQL = 'psql "$(nearsim server url)" --no-psqlrc --set ON_ERROR_STOP=1 --pset pager=off'
WIDTH = 120
RUN = ("console", "sql", "python")


@dataclass(frozen=True)
class Block:
    """A fenced block, or an indented block, whose language is `indented`."""

    line: int
    language: str
    lines: list[str]
    not_run: str | None = None


@dataclass
class Step:
    """A command of a page, in the language of its block, and the lines that the page shows after it."""

    line: int
    language: str
    command: str
    shown: list[str] = field(default_factory=list)

    def differs(self, printed: list[str]) -> bool:
        """Whether the page shows lines that differ from the printed lines. Dates with times are not compared."""
        shown = [line.rstrip() for line in "\n".join(self.shown).rstrip().split("\n")]
        return any(shown) and list(map(_timeless, shown)) != list(map(_timeless, printed))


def _timeless(line: str) -> str:
    return _MOMENT.sub("TIME", line)


def blocks(page: Path) -> Iterator[Block]:
    """Yield all blocks, in the order of the page."""
    opened: Block | None = None
    before, not_run = "", None

    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        fence = line.lstrip().startswith(_FENCE)
        if opened is None and fence:
            opened = Block(number + 1, line.lstrip().removeprefix(_FENCE), [], not_run)
        elif opened is None and line.startswith("    ") and not before:
            yield Block(number, "indented", [line], not_run)
        elif opened and fence:
            yield opened
            opened = None
        elif opened:
            opened.lines.append(line)

        marked = _NOT_RUN.fullmatch(line.strip())
        before, not_run = line, marked[1] if marked else None


def steps(page: Path) -> Iterator[Step]:
    """Yield the commands of all blocks that are run."""
    page_steps: list[Step] = []
    for block in blocks(page):
        if block.not_run:
            continue
        if block.language == "console":
            page_steps.extend(_console(block.line, block.lines))
        elif block.language in RUN:
            page_steps.append(Step(block.line, block.language, "\n".join(block.lines)))
        elif block.language == "text":
            page_steps[-1].shown = block.lines
    yield from page_steps


def _console(first: int, lines: list[str]) -> Iterator[Step]:
    """Divide a block at its prompts: `$ ` for the shell, `=> ` for psql. An SQL statement ends with a semicolon."""
    step, prompts = None, {"$ ": "shell", "=> ": "sql"}
    for number, line in enumerate(lines, first):
        prompt = next((text for text in prompts if line.startswith(text)), None)
        if prompt:
            if step:
                yield step
            step = Step(number, prompts[prompt], line.removeprefix(prompt))
        elif step and not step.shown and _continues(step):
            step.command += f"\n{line}"
        elif step:
            step.shown.append(line)
    if step:
        yield step


def _continues(step: Step) -> bool:
    if step.language == "sql":
        return not step.command.rstrip().endswith(";")
    try:
        shlex.split(step.command, comments=True)
    # A quotation is still open.
    except ValueError:
        return True
    return step.command.endswith("\\")


class Reader:
    """Runs the commands of a page in a folder, on a terminal. Leaving the block stops their background processes."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._started: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process_id in self._started:
            with suppress(ProcessLookupError):
                # Each command began a session, so its process id is also the id of its process group.
                os.killpg(process_id, signal.SIGTERM)

    def run(self, step: Step) -> list[str]:
        """Return the lines that a step prints on standard output.

        Raises CalledProcessError if the step fails.
        """
        commands = {
            "shell": ["bash", "-c", step.command],
            "python": [sys.executable, "-c", step.command],
            "sql": ["bash", "-c", f'{_PSQL} --file - <<< "$0"', step.command],
        }

        reading, writing = pty.openpty()
        # Set the width of the terminal, because commands fit their tables to it.
        fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
        process = subprocess.Popen(
            commands[step.language],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process.pid)
        # Otherwise the terminal would stay open in this process after the command has ended.
        os.close(writing)

        printed = _read_all(reading)
        _, errors = process.communicate()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, step.command, printed, errors)
        return [line.rstrip() for line in printed.rstrip().splitlines()]


def differences(page: Path, reader: Reader) -> list[str]:
    """Run a page from top to bottom, and return each step that fails, or prints something else than the page shows."""
    differing = []
    for step in steps(page):
        try:
            printed = reader.run(step)
        except subprocess.CalledProcessError as failed:
            differing.append(
                f"line {step.line}: {step.command}\nexit code {failed.returncode}\n{failed.stderr}"
            )
        else:
            if step.differs(printed):
                differing.append(f"line {step.line}: {step.command}\n" + "\n".join(printed))
    return differing


def _read_all(reading: int) -> str:
    """Read until the other side of the terminal is closed, which the kernel reports as an error."""
    printed = b""
    while True:
        try:
            chunk = os.read(reading, 1 << 16)
        except OSError:
            chunk = b""
        if not chunk:
            os.close(reading)
            return printed.decode()
        printed += chunk
