"""The command `nearsim review`: serve the review desk, a web page on which people judge pairs."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import terminal
from nearsim_db.errors import NearsimError

_SHORTEST_TOKEN = 16


def review(
    *,
    scope: options.Scope,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Author of the decisions. (default: the database user)")
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port to listen on; 0 for any free one.")
    ] = 0,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on; one beyond this machine requires --token."
        ),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Host name or address in the URLs of browsers, if it differs from --host (repeatable).",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="NEARSIM_REVIEW_TOKEN",
            show_envvar=True,
            help="Secret in the opening URL, of at least 16 characters; required if --host is beyond this machine. "
            "(default: random)",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS.csv",
            parser=options.path,
            help="CSV file that is rewritten with all verdicts after each decision, for nearsim tune --labels.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Serve a page on which people judge doubtful pairs.

    Each decision becomes a verdict at once. Prints the URL that opens the page, valid once, on standard output, and
    serves until Ctrl-C. The pairs come from queues: pairs below the threshold, pairs near it, pairs whose numbers
    differ, and a random sample. Requires the extra review: pip install 'nearsim-db[review]'.
    """
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise UsageError(f"--token has {len(token)} characters; it needs at least {_SHORTEST_TOKEN}")

    try:
        from nearsim_db.cli.review import server
        from nearsim_db.cli.review.site import Site
    except ImportError as error:
        raise NearsimError(
            f"the review desk requires {error.name}, which is not installed; run: pip install 'nearsim-db[review]'"
        ) from error

    if host not in server.LOOPBACK:
        if token is None:
            raise UsageError(f"--host {host} is reachable from other machines, so it needs --token")
        meaning = (
            f"warning: anyone who can reach {host} and has the token can read the documents and judge them, and "
            "others on the network can read the connection, as it is not encrypted"
        )
        terminal.print_painted(terminal.paint(meaning, "bold red", sys.stderr), sys.stderr)

    import secrets
    import webbrowser

    with ExitStack() as stack:
        listening = stack.enter_context(server.listen(host, port))
        if not allow_host and listening.getsockname()[0] in server.ALL_ADDRESSES:
            raise UsageError(
                f"--host {host} is every address of this machine; name those in URLs with --allow-host"
            )

        site = stack.enter_context(
            Site.open(*options.connect_to(scope.collection), scope.profile, by, labels)
        )
        # With --port 0 the system chose a free port.
        bound_port = listening.getsockname()[1]
        address = server.Address(allow_host or [host], bound_port, token or secrets.token_urlsafe(32))
        typer.echo(address.url)
        terminal.print_info(f"judging as {site.desk.by}; Ctrl-C ends the review desk")
        if browser:
            webbrowser.open(stack.enter_context(_private_link(address.url)).as_uri())
        server.serve(site, address, listening)


@contextmanager
def _private_link(url: str) -> Iterator[Path]:
    """Write a page that leads to a URL. Other users can read the arguments of a browser, but not this page."""
    with tempfile.NamedTemporaryFile("w", prefix="nearsim-review-", suffix=".html") as page:
        page.write(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={escape(url)}">\n')
        # Write the page now: the browser reads it by its name while the file is still open here.
        page.flush()
        yield Path(page.name)
