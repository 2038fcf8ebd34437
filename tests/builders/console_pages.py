"""The commands of a page in Markdown, in order, with the output that it shows."""

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = "```"
WIDTH = 120


@dataclass
class Step:
    """A command of a page, in the language of its block, and the lines that the page shows after it."""

    line: int
    language: str
    command: str
    shown: list[str] = field(default_factory=list)


def steps(page: Path) -> Iterator[Step]:
    """Yield the commands of all `console` and `python` blocks."""
    for line, language, content in _blocks(page.read_text("utf-8").split("\n")):
        if language == "python":
            yield Step(line, language, "\n".join(content))
        elif language == "console":
            yield from _console(line, content)


def _blocks(lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    language, content, first = None, list[str](), 0
    for number, line in enumerate(lines, 1):
        if not line.startswith(_FENCE):
            content.append(line)
        elif language is None:
            language, content, first = line.removeprefix(_FENCE), [], number + 1
        else:
            yield first, language, content
            language = None


def _console(first: int, lines: list[str]) -> Iterator[Step]:
    """Divide a block at its prompts: `$ ` for the shell, `=> ` for psql. Statements end with a semicolon."""
    step, prompts = None, {"$ ": "shell", "=> ": "psql"}
    for number, line in enumerate(lines, first):
        prompt = next((one for one in prompts if line.startswith(one)), None)
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
    if step.language == "psql":
        return not step.command.rstrip().endswith(";")
    try:
        shlex.split(step.command, comments=True)
    except ValueError:
        return True
    return step.command.endswith("\\")


def run(step: Step, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run a step in a folder, on a terminal, and return the lines that it printed on standard output.

    Raises CalledProcessError if it fails.
    """
    commands = {
        "shell": ["bash", "-c", step.command],
        "python": [sys.executable, "-c", step.command],
        "psql": [
            "bash",
            "-c",
            'psql "$(nearsim db url)" --no-psqlrc --pset pager=off --command "$0"',
            step.command,
        ],
    }
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    process = subprocess.Popen(
        commands[step.language],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    printed = _read_all(reading)
    _, errors = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, step.command, printed, errors)
    return [line.rstrip() for line in printed.rstrip().splitlines()]


def _read_all(reading: int) -> str:
    """Read until the terminal is closed, which the kernel reports as an error."""
    found = b""
    while True:
        try:
            more = os.read(reading, 1 << 16)
        except OSError:
            more = b""
        if not more:
            os.close(reading)
            return found.decode()
        found += more
