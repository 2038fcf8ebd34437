"""Serve a worker's health and metrics over HTTP: /healthz, /livez and /metrics, as a WSGI application."""

import io
import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore, Thread
from typing import IO, TYPE_CHECKING, Any, cast
from wsgiref.handlers import SimpleHandler
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import orjson

from nearsim_db.errors import NearsimError
from nearsim_db.worker.contexts import log
from nearsim_db.worker.metrics import Monitor

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

MAX_CLIENTS = 32
MAX_HEAD_BYTES = 16_384
_CLIENT_SECONDS = 5.0
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_END_OF_HEAD = re.compile(rb"\n\r?\n")


@contextmanager
def serve(monitor: Monitor, host: str, port: int, client_seconds: float = _CLIENT_SECONDS) -> Iterator[str]:
    """Serve during the block, and yield the address. Port 0 chooses a free port.

    A client has `client_seconds` to send its request, and the same time again to receive the answer. Raises
    NearsimError if the port is taken.
    """
    try:
        server = _Server((host, port), monitor, client_seconds)
    except OSError as error:
        raise NearsimError(
            f"cannot serve at {host}, port {port}: {error.strerror or error}; choose another port with --http"
        ) from error

    thread = Thread(target=server.serve_forever, name="nearsim-http", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(monitor: Monitor, environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
    """Answer a request with the health, the metrics, or status 404."""
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    states = {"/healthz": monitor.health, "/livez": monitor.liveness}
    status, kind = HTTPStatus.OK, "text/plain"
    if method not in ("GET", "HEAD"):
        status, body = HTTPStatus.NOT_IMPLEMENTED, b"only GET and HEAD are answered\n"
    elif path in states:
        is_well, reason = states[path]()
        status, kind = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE, "application/json"
        body = orjson.dumps({"ok": is_well, "reason": reason})
    elif path == "/metrics":
        kind, body = _METRICS_TYPE, monitor.exposition()
    else:
        status, body = HTTPStatus.NOT_FOUND, b"not found; see /healthz, /livez and /metrics\n"

    headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
    start_response(f"{status.value} {status.phrase}", headers)
    return [b"" if method == "HEAD" else body]


class _Server(ThreadingMixIn, WSGIServer):
    """An HTTP server with a thread for each client; it disconnects clients beyond `MAX_CLIENTS`."""

    daemon_threads = True
    request_queue_size = MAX_CLIENTS

    def __init__(self, address: tuple[str, int], monitor: Monitor, client_seconds: float) -> None:
        self.answer, self.client_seconds = partial(_answer, monitor), client_seconds
        self._free = BoundedSemaphore(MAX_CLIENTS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a client."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        # If no thread can be started, nothing else releases the client's place.
        except RuntimeError:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a client."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error as a single record."""
        error = sys.exception()
        # A client that hangs up or is too slow causes an OSError, which is not logged.
        if not isinstance(error, OSError):
            message = f"an HTTP request failed: {type(error).__name__}: {error}"
            log(logging.ERROR, "http_failed", message, {"client": str(client_address[0])})


class _ApplicationRun(SimpleHandler):
    """A run of the application for one request; its errors are passed on to the server, which logs them."""

    def handle_error(self) -> None:
        """Raise the error."""
        raise


class _Handler(WSGIRequestHandler):
    """Handles one request for one worker."""

    server: "_Server"
    default_request_version = "HTTP/1.0"

    def handle(self) -> None:
        """Receive the head of a request, which is limited in time and size, and answer it; a body is ignored."""
        head = self._receive_head()
        self.connection.settimeout(self.server.client_seconds)
        self.rfile = io.BytesIO(head)
        self.raw_requestline = self.rfile.readline()

        if len(head) > MAX_HEAD_BYTES:
            self.requestline = self.command = ""
            self.request_version = self.protocol_version
            self.send_error(431)
        elif self.parse_request():
            answered = cast(IO[bytes], self.wfile)
            _ApplicationRun(self.rfile, answered, sys.stderr, self.get_environ()).run(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing: requests are not logged."""

    def _receive_head(self) -> bytes:
        """Return the request line and the headers.

        If the input ends or exceeds `MAX_HEAD_BYTES` before that, returns what was received. Raises TimeoutError if the
        client is too slow.
        """
        deadline = time.monotonic() + self.server.client_seconds
        head = bytearray()
        while len(head) <= MAX_HEAD_BYTES and not _END_OF_HEAD.search(head):
            remaining_seconds = deadline - time.monotonic()
            if remaining_seconds <= 0:
                raise TimeoutError
            self.connection.settimeout(remaining_seconds)
            if not (received := self.connection.recv(MAX_HEAD_BYTES)):
                break
            head += received
        return bytes(head)
