"""Relays between a PostgreSQL server and its clients, which count the messages and bytes that the server sends."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nearsim_db.store.embedded.account import socket_path

_CHUNK = 1 << 18
# A message begins with its type (one byte) and its length (four bytes), which includes the four bytes.
_HEADER_BYTES = 5


@dataclass
class Traffic:
    """Counts of the protocol's messages that a server sent to its clients, and of their bytes."""

    messages: int = 0
    bytes: int = 0


@contextmanager
def relay(server: Path, folder: Path) -> Iterator[Traffic]:
    """Accept connections at a socket in `folder`, pass them on to the socket in `server`, and count the traffic.

    Connections must not be encrypted.
    """
    folder.mkdir(mode=0o755)
    traffic, loop = Traffic(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_unix_connection(str(socket_path(server)))
        await asyncio.gather(_pass_on(reader, requests), _pass_on(answers, writer, traffic))

    async def close(listening: asyncio.Server) -> None:
        listening.close()
        passing = asyncio.all_tasks() - {asyncio.current_task()}
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def listen() -> asyncio.Server:
        listening = await asyncio.start_unix_server(accept, socket_path(folder))
        # The coordinator may run as another user.
        socket_path(folder).chmod(0o777)
        return listening

    try:
        listening = asyncio.run_coroutine_threadsafe(listen(), loop).result()
        yield traffic
        asyncio.run_coroutine_threadsafe(close(listening), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, traffic: Traffic | None = None
) -> None:
    counter = _Counter(traffic) if traffic else None
    try:
        with suppress(ConnectionError):
            while chunk := await reader.read(_CHUNK):
                if counter:
                    counter.count(chunk)
                writer.write(chunk)
                await writer.drain()
    finally:
        writer.close()


class _Counter:
    """Counts the messages of one connection, whose bytes arrive in chunks."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._rest = b""
        # The number of bytes of the current message that have not arrived yet.
        self._missing = 0

    def count(self, chunk: bytes) -> None:
        self._traffic.bytes += len(chunk)
        data = self._rest + chunk
        # Skip the remaining bytes of a message that began in an earlier chunk.
        at = self._missing
        while at + _HEADER_BYTES <= len(data):
            self._traffic.messages += 1
            at += 1 + int.from_bytes(data[at + 1 : at + _HEADER_BYTES], "big")
        self._missing = max(0, at - len(data))
        self._rest = data[at:]
