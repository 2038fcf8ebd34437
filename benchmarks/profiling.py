"""Where a command's time goes: the server's milliseconds by statement, and the client's processor time by function.

    python -m benchmarks profile dedupe [--documents 100000] [--recipe R.toml]
    python -m benchmarks profile ingest --corpus F.jsonl.gz --stacks ingest.folded
    python -m benchmarks profile reindex
    python -m benchmarks profile work

Generates a corpus (or takes a file), starts a server of its own with pg_stat_statements, and runs the command twice:
alone, for its cost and the statements; then under py-spy (extra `bench`; left out without it), which samples the
running threads of all its processes, for the functions. `ingest` and `dedupe` take all documents; `reindex` builds a
second generation of all of them; `work` has a worker index the last tenth, inserted in SQL.

Processor time of statements is from the server's log, and also valid on a busy machine; time on the clock includes
waiting for the client. "(imports)" has all that imports cause, the loading of compiled kernels included. --stacks
keeps py-spy's samples, a line per stack: speedscope and flamegraph.pl draw flame graphs of them. --nested also
counts the statements within functions and triggers, whose time then counts twice.
For plans: --setting shared_preload_libraries=pg_stat_statements,auto_explain --setting
auto_explain.log_min_duration=100 --setting auto_explain.log_analyze=on --keep-log FILE
"""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import psycopg
from typer import Argument, Option

from benchmarks.feed import insert_all
from benchmarks.options import RECIPE, CorpusFile, Documents, Major, RecipeFile, documents_file
from benchmarks.own_server import own_server
from benchmarks.processes import Cost, run_measured
from benchmarks.statements import SETTINGS, Statement, read_statements, statement_table
from benchmarks.truth import read_documents
from nearsim_db.index import Index
from nearsim_db.records import Document
from nearsim_db.store.embedded.cluster import Cluster

RATE = 200  # samples a second
_WAL = "SELECT wal_bytes::bigint, wal_fpi FROM pg_stat_wal"
_COLLECTION = "SELECT collection_id FROM nearsim.collection WHERE name = %s"
_NEW_SHARE = 10  # `work` inserts one document of so many


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the client: seconds in itself, and with all it calls."""

    name: str
    own: float
    total: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A command with its preparation, on documents in a file; each run has a collection of its own."""

    name: str
    file: Path
    recipe: Path
    server: Cluster
    folder: Path

    def prepare(self, collection: str) -> list[str]:
        """Do what precedes the command, and return its arguments."""
        if self.name == "dedupe":
            output = str(self.folder / "unique.jsonl")
            return ["dedupe", str(self.file), "--output", output, "--recipe", str(self.recipe), "--quiet"]
        named = ["--collection", collection, "--quiet"]
        self._run("profile", "create", "default", "--recipe", str(self.recipe), *named)
        if self.name == "ingest":
            return ["ingest", str(self.file), *named]
        if self.name == "reindex":
            self._run("ingest", str(self.file), *named)
            return ["reindex", "start", *named]
        self._insert_last(collection, read_documents(self.file))
        return ["worker", "--once", *named]

    def environment(self) -> dict[str, str]:
        """Return the variables that lead a command to the server."""
        return {"NEARSIM_DATABASE_URL": self.server.dsn()}

    def _run(self, *arguments: str) -> None:
        run_measured(nearsim(*arguments), self.environment())

    def _insert_last(self, collection: str, documents: list[Document]) -> None:
        """Index all documents but the last tenth, and insert these in plain SQL."""
        indexed = len(documents) - len(documents) // _NEW_SHARE
        with Index.connect(self.server.dsn(), collection=collection) as index:
            index.add(documents[:indexed])
        with psycopg.connect(self.server.dsn()) as connection:
            found = connection.execute(_COLLECTION, (collection,)).fetchone()
        assert found is not None
        insert_all(self.server.dsn(), int(found[0]), documents[indexed:], len(documents))


def nearsim(*arguments: str) -> list[str]:
    """Return the command line of a nearsim command in this environment."""
    return [sys.executable, "-m", "nearsim_db", *arguments]


def measure_server(trial: Trial) -> tuple[Cost, list[Statement], str]:
    """Run the command alone; return its cost, the statements by their time, and its write-ahead log in words."""
    command = trial.prepare("measured")
    postmaster = trial.server.status()
    assert postmaster is not None
    with psycopg.connect(trial.server.dsn(), autocommit=True) as connection:
        connection.execute("SELECT pg_stat_statements_reset()")
        before = connection.execute(_WAL).fetchone()
        logged = trial.server.log.stat().st_size
        cost, _ = run_measured(nearsim(*command), trial.environment(), postmaster.process)
        after = connection.execute(_WAL).fetchone()
        log = trial.server.log.read_bytes()[logged:].decode("utf-8", "replace")
        statements = read_statements(connection, log)
    assert before is not None and after is not None
    written, pages = (end - begin for begin, end in zip(before, after, strict=True))
    return cost, statements, f"{written / 1e6:,.1f} MB of WAL with {pages:,} full-page images"


def find_sampler() -> str | None:
    """Return the path of py-spy: in this environment, else on the PATH."""
    return shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")


def sample_client(trial: Trial, stacks: Path, program: str) -> list[Function]:
    """Run the command under py-spy, which writes its samples to `stacks`; return the functions."""
    command = trial.prepare("sampled")
    sampler = [program, "record", "--subprocesses", "--function", "--format", "raw"]
    sampler += ["--rate", str(RATE), "--output", str(stacks), "--", *nearsim(*command)]
    run_measured(sampler, trial.environment())
    return functions(stacks.read_text("utf-8").splitlines())


def functions(lines: Iterable[str]) -> list[Function]:
    """Return the functions in lines of `frame;frame;... samples`, outermost frame first.

    Whatever an import causes is counted as one function; recursive calls count once.
    """
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for line in lines:
        stack, _, samples = line.rpartition(" ")
        frames = [_short(frame) for frame in stack.split(";") if not frame.startswith("process ")]
        imports = next((place for place, one in enumerate(frames) if "_find_and_load" in one), None)
        frames = frames if imports is None else [*frames[:imports], "(imports)"]
        if not frames:
            continue
        own[frames[-1]] += int(samples)
        for frame in set(frames):
            total[frame] += int(samples)
    return [Function(name, own[name] / RATE, samples / RATE) for name, samples in total.most_common()]


def _short(frame: str) -> str:
    """Return a frame without the folders above its package."""
    return re.sub(r"\((?:[^)]*/)?((?:nearsim_db|site-packages|lib/python[\d.]+)/)", r"(\1", frame)


def function_table(found: Sequence[Function], top: int) -> str:
    """Return the functions of nearsim with most time in all, and any functions with most of their own."""
    whole = sum(one.own for one in found) or 1.0
    lines = ["| with callees | own | function |", "|---|---|---|"]
    own = [one for one in found if "nearsim_db" in one.name]
    lines += [f"| {one.total / whole:.1%} | {one.own / whole:.1%} | {one.name} |" for one in own[:top]]
    lines += ["", "| own | function |", "|---|---|"]
    by_own = sorted(found, key=lambda one: one.own, reverse=True)
    lines += [f"| {one.own / whole:.1%} | {one.name} |" for one in by_own[:top]]
    return "\n".join([*lines, f"| {whole:.2f} s | all samples |"])


class Command(StrEnum):
    """What is profiled."""

    DEDUPE = "dedupe"
    INGEST = "ingest"
    REINDEX = "reindex"
    WORK = "work"


def main(
    command: Annotated[Command, Argument()],
    documents: Documents = 20_000,
    corpus: CorpusFile = None,
    recipe: RecipeFile = RECIPE,
    major: Major = 18,
    top: Annotated[int, Option(help="Number of lines of a table.")] = 25,
    stacks: Annotated[Path | None, Option(metavar="FILE", help="Keep the samples of the client.")] = None,
    nested: Annotated[
        bool, Option("--nested", help="Also statements within functions and triggers.")
    ] = False,
    setting: Annotated[list[str], Option(metavar="NAME=VALUE", help="Of the server.")] = [],
    keep_log: Annotated[Path | None, Option(metavar="FILE", help="Keep the server's log.")] = None,
) -> str:
    """Run a command alone, for its statements, and under a sampler, for its functions."""
    tracked = {"pg_stat_statements.track": "all" if nested else "top"}
    settings = SETTINGS | tracked | dict(one.split("=", 1) for one in setting)
    with documents_file(corpus, documents) as (file, folder), own_server(major, settings) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        trial = Trial(command, file, recipe, server, folder)
        cost, statements, wal = measure_server(trial)
        tables = [
            f"nearsim {command} of {file.name}: {cost.wall:.2f} s on the clock, processor seconds: client "
            f"{cost.client:.2f}, server {cost.server:.2f}; client memory {cost.megabytes:.0f} MB; {wal}",
            statement_table(statements, cost.server, top),
        ]
        if sampler := find_sampler():
            tables.append(function_table(sample_client(trial, stacks or folder / "stacks", sampler), top))
        if keep_log:
            shutil.copy(server.log, keep_log)
    return "\n\n".join(tables)
