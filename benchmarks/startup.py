"""The start-up time of commands: processor seconds and seconds on the clock, compared with importing psycopg.

    python -m benchmarks startup [--rounds 5]

A new embedded server has an index of the example stories. Every command runs once in each round, and the medians are
printed with their ratio to `import psycopg`. The last line is `dedupe` of the stories, which needs no server.
"""

import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.options import Rounds
from benchmarks.processes import Cost, run_measured

STORIES = Path(__file__).parents[1] / "examples" / "stories.jsonl"
NEARSIM = [sys.executable, "-m", "nearsim_db"]
BASE = "import psycopg"
COMMANDS = {
    BASE: [sys.executable, "-c", BASE],
    **{
        question: [*NEARSIM, *question.split()]
        for question in (
            *("collection list", "profile list", "pairs --format jsonl", "clusters", "similar story-036"),
            *("document get story-036", "work list", "events", "verdict list", "stats", "server status"),
        )
    },
}


def measure_questions(environment: Mapping[str, str], rounds: int) -> dict[str, list[Cost]]:
    """Run every command once in each round."""
    costs: dict[str, list[Cost]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            costs[name].append(run_measured(command, environment)[0])
    return costs


def measure_dedupe(home: Path, environment: Mapping[str, str], rounds: int) -> dict[str, list[Cost]]:
    """Run `dedupe` on the stories, which needs no server."""
    dedupe = [*NEARSIM, "dedupe", str(STORIES), "--output", str(home / "unique.jsonl"), "--quiet"]
    return {"dedupe": [run_measured(dedupe, environment)[0] for _ in range(rounds)]}


def main(rounds: Rounds = 5) -> str:
    """Run the commands in turns."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        home = Path(folder)
        # The server may run as another user, who cannot read temporary folders by default.
        home.chmod(0o755)
        # An empty URL selects the embedded server, even if the caller has set a URL.
        environment = {"NEARSIM_HOME": folder, "NEARSIM_DATABASE_URL": ""}
        run_measured([*NEARSIM, "ingest", str(STORIES), "--quiet"], environment)
        try:
            costs_by_command = measure_questions(environment, rounds) | measure_dedupe(
                home, environment, rounds
            )
        finally:
            run_measured([*NEARSIM, "server", "stop"], environment)

    base = statistics.median(cost.client for cost in costs_by_command[BASE])
    lines = ["| command | processor, s | times | clock, s |", "|---|---|---|---|"]
    for name, costs in costs_by_command.items():
        client = statistics.median(cost.client for cost in costs)
        wall = statistics.median(cost.wall for cost in costs)
        lines.append(f"| {name} | {client:.3f} | {client / base:.2f} | {wall:.3f} |")
    return "\n".join(lines)
