"""Run the commands of commands.txt on one small database; give their exit codes and the shapes of their JSON."""

import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.builders.command_line import BRIDGE, HARVEST, STORIES, STORM, CommandLine, Outcome, write_jsonl
from tests.builders.workers import application
from tests.contract.json_keys import Keys

COMMANDS = Path(__file__).with_name("commands.txt")
# Commands that print other things than one JSON document, or fail before they could.
WITHOUT_JSON = (
    *(
        "--",
        "db url",
        "server url",
        "frobnicate",
        "worker",
        "review",
        "profile show default --toml",
        "profile presets articles",
    ),
    *("profile presets nothing", "report --output report", "report --format html"),
)
WRITTEN = ("ingest-rejects", "check-rejects", "dedupe-rejects", "dedupe-pairs", "dedupe-clusters")
GROUPS = (
    *("access", "collection", "db", "document", "profile", "reindex", "schema", "server", "table"),
    *("verdict", "work"),
)


@dataclass(frozen=True)
class Ran:
    """A command that ran: its words, and the situation that it met."""

    situation: str
    command: str
    outcome: Outcome


def write_files(folder: Path) -> None:
    """Write the files that the commands read."""
    more = {
        "source": "wire",
        "url": "https://example.org/1",
        "published_at": "2024-05-31",
        "section": {"n": 1},
    }
    records: list[dict[str, object]] = [
        {"id": name, "title": f"Title of {name}", "text": text, **more} for name, text in STORIES.items()
    ]
    records += [
        {"id": "untitled", "text": "!"},
        {"id": "storm-half", "text": " ".join([*STORM.split()[:20], *BRIDGE.split()[9:]])},
    ]
    stories = write_jsonl(folder / "stories.jsonl", records)
    write_jsonl(folder / "one.jsonl", records[:1])
    write_jsonl(folder / "again.jsonl", [{"id": "again", "text": STORM}, {"id": "own", "text": HARVEST[40:]}])
    (folder / "both.html").write_text("{}\n")
    (folder / "empty.jsonl").write_text("")
    (folder / "many-broken.jsonl").write_text(stories.read_text() + "{broken\n" * 9)
    (folder / "broken.jsonl").write_text("{broken\n[]\n")
    (folder / "broken-too.jsonl").write_text(stories.read_text() + "{broken\n")
    (folder / "labels.csv").write_text("id_a,id_b,label\nstorm,storm-again,1\nstorm,harvest,0\n")
    (folder / "storm.txt").write_text(STORM)


def run_all(url: str, user: str, home: Path) -> Iterator[Ran]:
    """Run each command in the present folder, and yield its outcome."""
    own = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(home), "NEARSIM_BACKEND": "numpy"})
    embedded = CommandLine({"NEARSIM_HOME": str(home), "NEARSIM_BACKEND": "numpy"})
    for line in COMMANDS.read_text("utf-8").splitlines():
        situation, _, command = line.partition(": ")
        if not line or line.startswith("#"):
            continue
        if situation == "sql":
            with application(url) as connection:
                connection.execute(command.encode())
            continue
        given = command.replace("$STORM", STORM).replace("$USER", user).replace("$FIFTY", "4x4 " * 50)
        words = shlex.split(given)
        if not command.startswith(WITHOUT_JSON) and not {"-o", "--format", "--help"} & set(words):
            words.append("--json")
        yield Ran(situation, command, (embedded if situation == "embedded" else own).run(*words))


def exit_codes(ran: Iterable[Ran]) -> str:
    """Return a line for each command, in their order: exit code, command, situation."""
    return "".join(f"{one.outcome.exit_code:3}  nearsim {one.command:68}  # {one.situation}\n" for one in ran)


def json_keys(ran: Iterable[Ran], folder: Path) -> str:
    """Return a paragraph for each command with JSON, and for each file of JSON lines: keys with types."""
    found: dict[str, Keys] = defaultdict(Keys)
    for one in ran:
        words = one.command.split()
        name = " ".join(words[: 2 if words[0] in GROUPS else 1])
        log = one.outcome.err if words[0] == "worker" else ""
        for line in log.splitlines() if "--json" in words else ():
            found["worker (log)"].add(json.loads(line))
        if one.outcome.out.startswith(("{", "[")):
            found[name].add(one.outcome.document())
    for file in WRITTEN:
        for line in (folder / f"{file}.jsonl").read_text("utf-8").splitlines():
            found[f"{file}.jsonl"].add(json.loads(line))
    return "\n\n".join("\n  ".join([name, *keys.lines()]) for name, keys in sorted(found.items())) + "\n"
