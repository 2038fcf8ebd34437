"""Helper processes as their parent sees them."""

import os
import subprocess
import sys
from contextlib import suppress
from typing import TypeVar
from weakref import finalize

from nearsim_db.errors import NearsimError
from nearsim_db.indexing.helper_requests import Request, Start
from nearsim_db.records import GenerationId

Answer = TypeVar("Answer")


class HelperKilledError(NearsimError):
    """A helper process was killed by a signal."""


class HelperProcess:
    """A child process that signs documents of a generation and takes slices of its build.

    It ends with this process, however it ends. `descriptor` is a file that it inherits.
    """

    def __init__(
        self, url: str, generation_id: GenerationId, threads: int, descriptor: int | None = None
    ) -> None:
        from multiprocessing import Pipe  # takes as long to import as a small command

        self._connection, theirs = Pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nearsim_db.indexing.helper"],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            env=os.environ | {"NEARSIM_THREADS": str(threads), "PYTHONSAFEPATH": "1"},
            pass_fds=() if descriptor is None else (descriptor,),
            process_group=0,  # Ctrl-C is for the parent, which ends this process
        )
        theirs.close()
        self.close = finalize(self, _end, self.process)
        # Not an argument, which other users could read: the URL may have a password.
        self.send(Start(url, generation_id))

    def send(self, request: Request) -> None:
        """Send a request. That a process has ended shows when its answer is received."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send(request)

    def receive(self, kind: type[Answer]) -> Answer:
        """Wait for an answer; raises the NearsimError that ended the process, HelperKilledError if a signal did."""
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._died() from None
        if isinstance(answer, NearsimError):
            raise answer
        assert isinstance(answer, kind)
        return answer

    def is_done(self) -> bool:
        """Whether the process has ended without an error; raises as `receive` if it has ended otherwise."""
        code = self.process.poll()
        if code:
            self.receive(object)
        return code == 0

    def _died(self) -> NearsimError:
        code = self.process.wait()
        if code < 0:
            return HelperKilledError(f"was killed by signal {-code}")
        return NearsimError(f"a helper process ended with exit code {code}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
