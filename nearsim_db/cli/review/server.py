"""The web server of the review desk: its routes, its protection, and the pages of errors.

It answers only the browser that opened the desk with the token, which is valid once, and it accepts decisions only from
its own pages.
"""

import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nearsim_db.cli.review import decisions, pages
from nearsim_db.cli.review.call import Call
from nearsim_db.cli.review.site import Site
from nearsim_db.errors import ConflictError, InputError, NearsimError, NotFoundError, UnreachableError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# The names of a socket that listens on all addresses.
ALL_ADDRESSES = ("0.0.0.0", "::")
_SAFE = ("GET", "HEAD")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers would send no Origin header with a form.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Page = Callable[[Site, Call], Response]
_LARGEST_FORM = 100_000
# Not a redirect: after a redirect from another origin, such as a file, browsers do not send the strict cookie.
_OPENED = '<!DOCTYPE html><title>Review desk</title><meta http-equiv="refresh" content="0; url=/">\n'
_NO_SESSION = "This browser has no session of this review desk. Open the URL that nearsim review printed.\n"
_USED = "The URL of this review desk is valid once, and it was opened before. Start nearsim review again.\n"
_READ_ONLY = (
    "this user may only read the desk; an administrator can change that: nearsim access grant USER writer"
)
_TITLES: dict[type[NearsimError], tuple[str, int]] = {
    NotFoundError: ("Not found", 404),
    ConflictError: ("Somebody was faster", 409),
    InputError: ("Not understood", 400),
    UnreachableError: ("The database cannot be reached", 503),
    NearsimError: ("That did not work", 500),
}
_PAGES: dict[str, Page] = {
    "/": pages.overview,
    "/queue/{queue}": pages.next_pair,
    "/documents/{queue}": pages.next_document,
    "/pair/{left}/{right}": pages.pair,
    "/cluster/{cluster}": pages.cluster,
    "/disagreements": pages.disagreements,
    "/counts": pages.counts,
    "/state": pages.state,
}
_DECISIONS: dict[str, Page] = {
    "/decide": decisions.decide,
    "/take-out": decisions.take_out,
    "/keep": decisions.keep,
    "/undo": decisions.undo,
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the desk is served, and the secrets of this process."""

    names: Sequence[str]  # host names of the desk's URLs
    port: int
    token: str  # in the opening URL
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))  # value of the cookie

    @property
    def cookie(self) -> str:
        """Name of the cookie. It has the port, because browsers send cookies to every port of a host."""
        return f"nearsim_review_{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Values of the header Host that the server answers."""
        return tuple(self._with_port(name) for name in (*self.names, *LOOPBACK))

    @property
    def url(self) -> str:
        """The URL that opens the desk."""
        return f"http://{self._with_port(self.names[0])}/?{urlencode({'token': self.token})}"

    def _with_port(self, name: str) -> str:
        """Return a host with its port as browsers write it."""
        host = f"[{name}]" if ":" in name else name.lower()
        return host if self.port == 80 else f"{host}:{self.port}"


def listen(host: str, port: int) -> socket.socket:
    """Listen at an address; port 0 is any free port. Raises NearsimError if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise NearsimError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another with --port"
        ) from error


def serve(site: Site, address: Address, listening: socket.socket) -> None:
    """Serve a desk until the process is interrupted or terminated."""
    config = uvicorn.Config(
        Guard(_application(site), address),
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run(sockets=[listening])


class Guard:
    """Refuses requests without the cookie, decisions from pages of other sites, and requests under other host names."""

    def __init__(self, application: ASGIApp, address: Address) -> None:
        self._application = application
        self._address = address
        self._is_token_used = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        # Ignore web sockets, which the desk does not use.
        if scope["type"] != "http":
            return

        request = Request(scope)
        response: Response
        if (refusal := self._refuse(request)) is not None:
            response = PlainTextResponse(refusal, 403)
        elif self._is_known(request):
            await self._application(scope, receive, _with_headers(send))
            return
        elif not self._has_token(request):
            response = PlainTextResponse(_NO_SESSION, 403)
        elif self._is_token_used:
            response = PlainTextResponse(_USED, 403)
        else:
            self._is_token_used = True
            response = HTMLResponse(_OPENED)
            response.set_cookie(
                self._address.cookie, self._address.session, httponly=True, samesite="strict", path="/"
            )
        await response(scope, receive, _with_headers(send))

    def _refuse(self, request: Request) -> str | None:
        host = request.headers.get("host", "").lower()
        # A host name of an attacker may resolve to this address (DNS rebinding).
        if host not in self._address.hosts:
            return f"The review desk is not served as {host!r}.\n"
        origin = request.headers.get("origin")
        # Browsers send a form with the origin of the page that has the form.
        if request.method not in _SAFE and origin != f"http://{host}":
            return "Only pages of the review desk may send decisions to it.\n"
        return None

    def _has_token(self, request: Request) -> bool:
        """Whether a request opens the desk. A HEAD request, as previews of links send it, does not."""
        token = request.query_params.get("token", "")
        return request.method == "GET" and compare_digest(token.encode(), self._address.token.encode())

    def _is_known(self, request: Request) -> bool:
        session = request.cookies.get(self._address.cookie, "")
        return compare_digest(session.encode(), self._address.session.encode())


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return sending


def _application(site: Site) -> Starlette:
    """Return the web application of a desk."""

    def not_found(request: Request, error: Exception) -> Response:
        return _message(site, "Not found", 404, NotFoundError("there is no such page"))

    return Starlette(
        routes=[
            *(Route(path, _answer(site, page)) for path, page in _PAGES.items()),
            *(Route(path, _answer(site, page), methods=["POST"]) for path, page in _DECISIONS.items()),
        ],
        exception_handlers={404: not_found},
    )


def _answer(site: Site, page: Page) -> "Callable[[Request], Any]":
    """Return a route handler that runs a page in a thread; an error of nearsim becomes a page with its message."""

    async def answer(request: Request) -> Response:
        body = await request.body() if request.method == "POST" else b""
        return await run_in_threadpool(_run, site, page, request, body)

    return answer


def _run(site: Site, page: Page, request: Request, body: bytes) -> Response:
    try:
        if len(body) > _LARGEST_FORM:
            raise InputError("the form is too large")
        call = Call.of(request, body)
        if call.is_form and not site.may_review:
            return _message(site, "Read only", 403, NearsimError(_READ_ONLY))
        return page(site, call)
    except NearsimError as error:
        # NearsimError, the base class of all errors, is the last entry.
        kinds = (kind for kind in _TITLES if isinstance(error, kind))
        return _message(site, *_TITLES[next(kinds)], error)


def _message(site: Site, title: str, status: int, error: NearsimError) -> Response:
    return site.render("message.html", status, title=title, error=str(error))
