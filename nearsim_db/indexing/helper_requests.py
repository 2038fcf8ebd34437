"""What a process asks of a helper, and what it answers; both are pickled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.feature_spool import SpoolHandle, SpoolPlace
from nearsim_db.records import DocId, GenerationId
from nearsim_db.similarity.recipe_warnings import TextSample
from nearsim_db.store.documents import StoredDocument


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

    doc_ids: NDArray[np.int64]
    revisions: NDArray[np.int64]
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
    """What the parent has to know of the documents that a helper signed.

    `spool` is None if there is none, or no disk space for its directory.
    """

    signed: int
    spool: SpoolHandle | None
    texts: TextSample


@dataclass(frozen=True, slots=True)
class HelpBuild:
    """Take slices of the build until it is done, then end; `spool` has the features that all processes spooled."""

    spool: SpoolHandle | None


Request = Start | BeginSigning | SignDocuments | FinishSigning | HelpBuild
