"""The HTTP server of a worker: /healthz and /metrics."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import orjson

from nearsim_db.errors import NearsimError
from nearsim_db.worker.metrics import Monitor

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def serve(monitor: Monitor, host: str, port: int) -> Iterator[str]:
    """Serve during the block; yields the address. Port 0 chooses a free one. Raises NearsimError if it is taken."""
    try:
        server = ThreadingHTTPServer((host, port), _handler(monitor))
    except OSError as error:
        raise NearsimError(
            f"cannot serve at {host}, port {port}: {error.strerror or error}; choose another port with --http"
        ) from error
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, name="nearsim-http", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(monitor: Monitor) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Handles requests for one worker."""

        def do_GET(self) -> None:
            """Send health, metrics, or 404."""
            match self.path.partition("?")[0]:
                case "/healthz":
                    healthy, reason = monitor.health()
                    body = orjson.dumps({"ok": healthy, "reason": reason})
                    self._send(200 if healthy else 503, "application/json", body)
                case "/metrics":
                    self._send(200, _METRICS_TYPE, monitor.exposition())
                case _:
                    self._send(404, "text/plain", b"not found; see /healthz and /metrics\n")

        def log_message(self, format: str, *args: object) -> None:
            """Log no requests."""

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
