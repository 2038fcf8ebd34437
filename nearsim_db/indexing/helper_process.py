"""Helper processes as their parent sees them: requests and answers, which are pickled, and their life."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from weakref import finalize

from nearsim_db.errors import NearsimError
from nearsim_db.indexing.feature_spool import SpoolPlace
from nearsim_db.records import DocId, GenerationId
from nearsim_db.similarity.arrays import Ints
from nearsim_db.similarity.recipe_warnings import TextSample
from nearsim_db.store.documents.documents import StoredDocument


@dataclass(frozen=True, slots=True)
class Start:
    """The first request: connect, for one generation; no answer."""

    url: str
    generation_id: GenerationId


@dataclass(frozen=True, slots=True)
class BeginSigning:
    """Prepare to sign the documents that follow, and to spool their features, if a spool is given.

    The answer is `Signed`.
    """

    spool: SpoolPlace | None


@dataclass(frozen=True, slots=True)
class SignDocuments:
    """Sign a batch of new, committed documents. The answer is `Signed`.

    doc_ids and revisions are int64 of n, ascending, titles and bodies n texts.
    """

    doc_ids: Ints
    revisions: Ints
    titles: Sequence[str | None]
    bodies: Sequence[str | None]

    def documents(self) -> list[StoredDocument]:
        """Return the documents as the index would read them back."""
        doc_ids = map(DocId, self.doc_ids.tolist())
        return list(map(StoredDocument, doc_ids, self.revisions.tolist(), self.titles, self.bodies))


@dataclass(frozen=True, slots=True)
class Signed:
    """All requests so far are done; `is_spooling` says whether features of more documents are kept."""

    is_spooling: bool


@dataclass(frozen=True, slots=True)
class FinishSigning:
    """No documents follow. The answer is `Finished`."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What the parent has to know of the documents that a helper signed."""

    signed: int
    texts: TextSample


@dataclass(frozen=True, slots=True)
class HelpBuild:
    """Take slices of the build until it is done, then end; `spool` is where to write features, if there is one."""

    spool: SpoolPlace | None


Request = Start | BeginSigning | SignDocuments | FinishSigning | HelpBuild


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
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-m", "nearsim_db.indexing.helper"],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            env=os.environ | {"NEARSIM_THREADS": str(threads), "PYTHONSAFEPATH": "1"},
            pass_fds=() if descriptor is None else (descriptor,),
            process_group=0,  # Ctrl-C is for the parent, which ends this process
        )
        theirs.close()
        self.close: finalize[..., object] = finalize(self, _end, self.process)
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
