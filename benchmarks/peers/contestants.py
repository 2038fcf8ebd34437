"""The compared tools: the command that starts each, its maximum number of documents, and why it may be left out."""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import psycopg

from benchmarks.own_server import own_server
from benchmarks.peers.job import BANDS, RECIPE, THRESHOLD, K

NEARSIM = "nearsim"
_START_SECONDS = 30.0
_DATABASE = "peers"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A tool. `script` is a module of this package, and `address` is the address of the tool's server, if it has one.

    A slow tool only gets the first `at_most` documents. `missing` is the reason why a tool cannot run here.
    """

    name: str
    does: str
    script: str
    at_most: int | None = None
    server: psutil.Process | None = None
    address: str | None = None
    packages: tuple[str, ...] = ()
    missing: str | None = None

    def command(self, input_file: Path, output: Path, *options: str) -> list[str]:
        """Return the command that reads the input file and writes the output file."""
        command = [
            sys.executable,
            "-m",
            f"benchmarks.peers.{self.script}",
            str(input_file),
            str(output),
            *options,
        ]
        return command + (["--server", self.address] if self.address else [])


@dataclass(frozen=True, slots=True)
class NearsimCommand(Contestant):
    """The command `nearsim dedupe`; a script measures look-ups."""

    def command(self, input_file: Path, output: Path, *options: str) -> list[str]:
        """Return the command, which writes its pairs as JSON lines."""
        if "--lookups" in options:
            return Contestant.command(self, input_file, output, *options)
        command = [sys.executable, "-m", "nearsim_db", "dedupe", str(input_file), "--output", str(output)]
        return [*command, "--recipe", str(RECIPE), "--threshold", str(THRESHOLD), "--quiet", *options]


@dataclass(frozen=True, slots=True)
class TextDedup(Contestant):
    """The command line of text-dedup, which has a separate environment with the interpreter `python`."""

    python: Path = field(default=Path("python"), kw_only=True)

    def command(self, input_file: Path, output: Path, *options: str) -> list[str]:
        """Return the command; if pairs are wanted, it also stores its clusters beside the output."""
        command = [str(self.python), "-m", "text_dedup.minhash", "--path", "json", "--split", "train"]
        command += ["--data_files", str(input_file), "--column", "text", "--output", str(output)]
        command += ["--cache_dir", str(output.with_name("text-dedup-cache")), "--hash_func", "xxh3"]
        command += ["--hash_bits", "32", "--num_perm", str(K), "--threshold", str(THRESHOLD)]
        return [*command, "--ngram", "3", "--min_length", "1", *(["--debug"] if "--pairs" in options else [])]


@contextmanager
def contestants(
    major: int, at_most: Mapping[str, int], text_dedup: Path | None, names: Sequence[str]
) -> Iterator[list[Contestant]]:
    """Start the servers; yield the tools of these names, by default all, including tools that cannot run."""
    with own_server(major) as cluster, _redis() as (redis, socket):
        postmaster = cluster.status()
        assert postmaster is not None
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE peers")

        postgres, address = postmaster.process, cluster.dsn(_DATABASE)
        lacking = None if text_dedup else "not asked for: --text-dedup PYTHON"
        tools = [
            NearsimCommand(
                NEARSIM, "exact; look-ups in PostgreSQL", "with_nearsim", None, postgres, cluster.dsn()
            ),
            Contestant("rensa", f"in memory, {BANDS} bands", "with_rensa", packages=("rensa",)),
            Contestant("datasketch", "in memory", "with_datasketch", packages=("datasketch", "xxhash")),
            Contestant(
                "datasketch-redis", "Redis", "with_datasketch", 10_000, redis, socket,
                ("datasketch", "xxhash", "redis"), None if redis else "no redis-server",
            ),
            TextDedup(
                "text-dedup", "command, in memory", "", missing=lacking, python=text_dedup or Path("python")
            ),
            Contestant(
                "dedup-pg", "PostgreSQL, clusters", "with_dedup_pg", 10_000, postgres, address,
                ("dedup_pg", "psycopg2"),
            ),
            Contestant(
                "pg_trgm", "PostgreSQL, its own similarity", "with_trigrams", 1_000, postgres, address
            ),
        ]  # fmt: skip
        chosen = [tool for tool in tools if tool.name in names] if names else tools
        yield [_limited(tool, at_most) for tool in chosen]


def _limited(tool: Contestant, at_most: Mapping[str, int]) -> Contestant:
    """Return a tool with the given limit; it is marked as missing if one of its packages is not installed."""
    absent = [name for name in tool.packages if importlib.util.find_spec(name) is None]
    missing = tool.missing or (f"no package {', '.join(absent)}" if absent else None)
    return replace(tool, at_most=at_most.get(tool.name, tool.at_most), missing=missing)


@contextmanager
def _redis() -> Iterator[tuple[psutil.Process | None, str | None]]:
    """Start a Redis server without persistence that listens on a socket, if Redis is installed."""
    program = shutil.which("redis-server")
    if program is None:
        yield None, None
        return

    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "redis.sock"
        command = [program, "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no"]
        process = subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not socket.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield psutil.Process(process.pid), str(socket)
        finally:
            process.terminate()
            process.wait()
