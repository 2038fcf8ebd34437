"""Measure the cost of a command: time on the clock, processor time of client and server, and the client's memory."""

import os
import resource
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_SAMPLE_SECONDS = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# How many characters from the end of a failed command's output the error shows.
_MAX_SHOWN_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a command."""

    wall: float  # seconds on the clock
    client: float  # processor seconds of the command and its children
    server: float  # processor seconds of all processes of the server
    # The highest resident memory of all processes of the client together. Pages of files, which processes may share,
    # are only counted for the process that has most of them.
    megabytes: float


def run_measured(
    command: Sequence[str], environment: Mapping[str, str], server: psutil.Process | None = None
) -> tuple[Cost, str]:
    """Run a command and return its cost and its standard output. Raises RuntimeError if it fails."""
    on_server = processor_seconds(server) if server else 0.0
    on_client, began = _finished_children(), time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        with _sampled_memory(process.pid) as memory:
            outputs = process.communicate()
    finally:
        process.kill()

    wall = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {''.join(outputs)[-_MAX_SHOWN_CHARACTERS:]}")
    used = processor_seconds(server) - on_server if server else 0.0
    return Cost(wall, _finished_children() - on_client, used, memory[0] / 1e6), outputs[0]


def _finished_children() -> float:
    """Return the processor seconds of all finished children of this process, including their finished children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _sampled_memory(process: int) -> Iterator[list[int]]:
    """Sample the memory of a process and its children until the block ends; the list has the highest sum in bytes.

    getrusage cannot be used, because a child inherits the maximum of this process.
    """
    highest, stopped = [0], threading.Event()

    def sample() -> None:
        while not stopped.wait(_SAMPLE_SECONDS):
            highest[0] = max(highest[0], _resident_bytes(process))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield highest
    finally:
        stopped.set()
        thread.join()


def _resident_bytes(process: int) -> int:
    """Return the resident memory of a process and its descendants in bytes."""
    pages = list(_resident_pages(process))
    private = sum(resident - shared for resident, shared in pages)
    return (private + max((shared for _, shared in pages), default=0)) * _PAGE_BYTES


def _resident_pages(process: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers of resident pages and of shared pages of a process and of each descendant."""
    folder = Path(f"/proc/{process}")
    try:
        _, resident, shared, *_ = map(int, _words(folder / "statm"))
        children = [int(word) for task in (folder / "task").iterdir() for word in _words(task / "children")]
    except (OSError, ValueError):
        # The process has ended.
        return
    yield resident, shared
    for child in children:
        yield from _resident_pages(child)


def _words(path: Path) -> list[str]:
    return path.read_text("ascii").split()


def processor_seconds(process: psutil.Process) -> float:
    """Return the user and system time of a process, of its running descendants, and of its finished children."""
    total, running = 0.0, [process]
    with suppress(psutil.NoSuchProcess):
        running += process.children(recursive=True)
    for counted in running:
        with suppress(psutil.NoSuchProcess):
            times = counted.cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system if counted == process else 0.0
    return total
