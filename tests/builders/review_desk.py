"""`nearsim review` in a process of its own, and requests to it."""

import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import platformdirs
import pytest

from tests.builders.command_line import CommandLine

_AXE = "axe-core@4.10.2"


def axe_script() -> str:
    """The script of axe-core's accessibility checks, which the npm client fetches once.

    If it cannot be fetched, the test is skipped.
    """
    cached = platformdirs.user_cache_path("nearsim") / f"{_AXE}.js"

    if not cached.exists():
        cached.parent.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=cached.parent) as scratch:
                command = ["npm", "pack", "--silent", "--pack-destination", scratch, _AXE]
                subprocess.run(command, check=True, capture_output=True, timeout=120)
                (archive,) = Path(scratch).glob("*.tgz")
                with tarfile.open(archive) as packed:
                    content = packed.extractfile("package/axe.min.js")
                    assert content is not None
                    cached.write_bytes(content.read())
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"axe-core cannot be fetched: {error}")
    return cached.read_text("utf-8")


@dataclass
class Answer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass
class Desk:
    """A running review desk, and the cookie of a browser that opened its URL."""

    process: subprocess.Popen[str]
    url: str
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc

    @property
    def root(self) -> str:
        """The URL of the overview."""
        return f"http://{self.place}/"

    @property
    def browser_cookie(self) -> dict[str, str]:
        """The cookie in the form that Playwright takes."""
        name, _, value = self.cookie.partition("=")
        return {"name": name, "value": value, "url": self.root}

    @property
    def opening_path(self) -> str:
        """Path and query of the URL that opens the desk."""
        parts = urlsplit(self.url)
        return f"{parts.path}?{parts.query}"

    def request(
        self,
        path: str,
        form: Mapping[str, object] | Sequence[tuple[str, str]] | None = None,
        headers: Mapping[str, str | None] | None = None,
        method: str | None = None,
    ) -> Answer:
        """Get a page, or send a form as a page of the desk does. A header whose value is None is not sent."""
        sent = {"Cookie": self.cookie, "Origin": f"http://{self.place}", **(headers or {})}
        body = None if form is None else urlencode(form)
        with closing(HTTPConnection(self.place, timeout=60)) as connection:
            method = method or ("GET" if form is None else "POST")
            connection.request(method, path, body, {name: value for name, value in sent.items() if value})
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read().decode())

    def stop(self) -> int:
        """End the desk as Ctrl-C does, and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@contextmanager
def desk(nearsim: CommandLine, *arguments: str) -> Iterator[Desk]:
    """Serve the desk without opening a browser, and get its cookie."""
    with unopened_desk(nearsim, "--no-browser", *arguments) as opened:
        answer = opened.request(opened.opening_path)
        opened.cookie = answer.headers["set-cookie"].split(";")[0]
        opened.headers = dict(answer.headers)
        yield opened


@contextmanager
def unopened_desk(nearsim: CommandLine, *arguments: str) -> Iterator[Desk]:
    """Serve a desk whose URL has not been opened."""
    with nearsim.started("review", *arguments) as process:
        assert process.stdout is not None
        yield Desk(process, process.stdout.readline().strip())
