"""A soak: random SQL writers, workers and commands, kill -9 at random, and a plain-Python oracle after each round.

    python -m tests.endurance.soak MINUTES [--seed N] [--major 18]

Indexes share their tables, have their own, or outgrow shared ones, as drawn for each database.
Each round lasts a few seconds: three writers, two workers and two commands at a time work on a small database, and
every kind of process is killed at random, the server included; in half of the rounds only writers and workers, so that
commands end. Then the queue is drained, and documents, signatures,
bands, pairs, clusters, verdicts and what the events say are compared with the oracle. At a difference it prints the
seed and the difference, and exits with 1. The seed determines what is done, not when: a run cannot be repeated exactly.
"""

import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from benchmarks.options import Major
from benchmarks.own_server import own_server
from nearsim_db.store.generations import partitions
from tests.endurance.soak.processes import start_fork_server
from tests.endurance.soak.rounds import Counts, Different, Rounds
from tests.endurance.soak.system import SETTINGS, System

_ROUNDS_PER_DATABASE = 6
_INTERRUPTED = 130
# The documents up to which a collection's indexes share their tables; collections have some 24.
_TABLES = {"shared tables": 20_000, "own tables": -1, "outgrown tables": 6}


def soak(minutes: float, seed: int, major: int, counts: Counts) -> None:
    """Run rounds until the time is over. Raises Different."""
    rng, deadline, database = random.Random(seed), time.monotonic() + 60 * minutes, 0
    folder = Path(tempfile.mkdtemp(prefix="nearsim-soak-"))
    start_fork_server()
    try:
        with own_server(major, SETTINGS) as cluster:
            while time.monotonic() < deadline:
                database += 1
                tables, partitions.MAX_SHARED_DOCUMENTS = rng.choice([*_TABLES.items()])
                system = System(cluster, f"soak_{database}", rng)
                families = ", ".join(one.variant for one in system.profiles)
                print(f"database {database}: {tables}, {families}", flush=True)
                rounds = Rounds(system, folder, rng, counts)
                try:
                    for _ in range(_ROUNDS_PER_DATABASE):
                        if time.monotonic() < deadline:
                            rounds.run(rng.uniform(4, 9))
                            print(progress(counts), flush=True)
                finally:
                    rounds.close()
                system.drop()
    finally:
        shutil.rmtree(folder)


def progress(counts: Counts) -> str:
    """Return one line about what was done so far."""
    kills = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.kills.items()))
    return (
        f"round {counts.rounds}: {counts.kills.total()} kills ({kills}), {counts.statements.total()} statements, "
        f"{counts.checks['documents']} documents and {counts.checks['pairs']} pairs checked"
    )


def summary(counts: Counts, seed: int) -> str:
    """Return all counts."""
    lines = [f"seed {seed}", progress(counts)]
    for name in ("kills", "statements", "commands", "refusals", "checks", "set_aside"):
        lines.append(f"{name.replace('_', ' ')}:")
        lines += [f"  {number:8} {kind}" for kind, number in sorted(getattr(counts, name).items())]
    return "\n".join(lines)


def main(
    minutes: Annotated[float, Argument(help="Length of the run.")],
    seed: Annotated[int | None, Option(help="Default: random.")] = None,
    major: Major = 18,
) -> None:
    """Run the soak; exit with 1 at a difference."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    signal.signal(signal.SIGINT, signal.default_int_handler)
    counts, code = Counts(), 0
    print(f"seed {seed}, PostgreSQL {major}", flush=True)
    try:
        soak(minutes, seed, major, counts)
    except Different as found:
        code = 1
        print(f"DIFFERENT (seed {seed}):", *found.args, sep="\n", flush=True)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    print(summary(counts, seed), flush=True)
    sys.exit(code)


if __name__ == "__main__":
    typer.run(main)
