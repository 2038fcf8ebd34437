"""What all measurements use: facts about the machine, runs that take turns, and the spread of figures."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "numba", "psycopg", "datasketch", "xxhash")


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of repeated measurements, in the unit of the measurements."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.4g} ({self.low:.4g} to {self.high:.4g})"


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the extremes of measurements. Raises StatisticsError if there are none."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(slower: Sequence[float], faster: Sequence[float]) -> Spread:
    """Return how many times longer the first runs took than the second, compared round by round."""
    return spread([slow / fast for slow, fast in zip(slower, faster, strict=True)])


def take_turns(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each run, with a value for each round.

    Runs take turns in the order A B C, A B C, so that noise affects all of them equally.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def machine() -> dict[str, str]:
    """Return the processor, the usable cores, memory, and the versions that affect the figures."""
    # A container may use fewer cores than the machine has.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts = {
        "processor": _processor(),
        "cores": str(cores),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return facts | {name: _version(name) for name in PACKAGES}


def describe_machine(facts: Mapping[str, str]) -> str:
    """Return the facts in one line."""
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _processor() -> str:
    return _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or "unknown"


def _memory() -> str:
    total = _field(Path("/proc/meminfo"), "MemTotal")
    return f"{int(total.split()[0]) / 2**20:.0f} GB" if total else "unknown"


def _field(file: Path, name: str) -> str | None:
    """Return the first value of a name in a file such as /proc/cpuinfo."""
    if not file.exists():
        return None
    for line in file.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
