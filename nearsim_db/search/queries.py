"""The read-only half of the Python API: stored results, lookups of texts, and events of one collection."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from nearsim_db.indexing.context import ContextFactory
from nearsim_db.readers.memory import checked_query
from nearsim_db.readers.writers.file_format import FileFormat, chosen_encoding
from nearsim_db.records import Cluster, ClusterMember, Document, Keep, Matches, Pair
from nearsim_db.search.answers import Answers
from nearsim_db.search.events import Event, EventFilter, Follower, choose, read
from nearsim_db.search.explain import explain
from nearsim_db.search.explanation import Explanation
from nearsim_db.search.export_columns import parse_columns
from nearsim_db.search.exports import Target, write_export
from nearsim_db.search.live_generation import LiveIndex, open_live, unless_empty
from nearsim_db.search.lookup import Lookups
from nearsim_db.search.matching import checked_limit
from nearsim_db.similarity.backend import FEW_CHARACTERS
from nearsim_db.similarity.profile import Profile
from nearsim_db.store import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation

_UNNAMED = ""  # no document has this external_id: for a text without a document


class Queries:
    """The queries of an `Index`; it owns the database and a thread pool until it is closed."""

    def __init__(self, database: Database, collection: str, profile: str | None = None) -> None:
        self.database = database
        self.collection = collection
        self.profile = profile
        self.warnings: list[str] = []
        self._resources = ExitStack()
        self._resources.callback(database.close)
        self._contexts = self._resources.enter_context(
            ContextFactory.open(database.settings, self.warnings.append)
        )
        self._answers = Answers(database, collection, lambda: self.profile)
        self._lookups = Lookups(database, self.serving)

    def close(self) -> None:
        """Release threads and connections."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def pairs(self, min_similarity: float = 0.0) -> Generator[Pair, None, None]:
        """Stream all pairs, twins expanded, unordered; close the generator when leaving it early."""
        return self._answers.pairs(min_similarity)

    def metric(self) -> str:
        """The metric of the profile: jaccard, weighted_jaccard, cosine or euclidean."""
        return self._answers.metric()

    def least_similarity(self) -> tuple[str, float, float]:
        """The profile, its threshold, and the least similarity that it stores; another value if that is a distance."""
        return self._answers.least_similarity()

    def clusters(self, min_size: int = 2) -> Generator[Cluster, None, None]:
        """Stream all clusters of at least so many documents, the largest first.

        Close the generator when leaving it early.
        """
        return self._answers.clusters(min_size)

    def cluster(self, name: str) -> Generator[ClusterMember, None, None]:
        """Stream the documents of a cluster, the survivor first, then the most similar to it.

        `name` is the id of one of its documents or, if no document in a cluster has that id, the cluster's number.
        Raises NotFoundError. Close the generator when leaving it early.
        """
        return self._answers.cluster(name)

    def events(
        self, after: int | None = None, *, follow: bool = False, new: bool = False
    ) -> Generator[Event, None, None]:
        """Stream the events of pairs and clusters in commit order: those after event `after`, or all that are kept.

        With `follow` the stream waits for more; with `new` it starts with the next event. Raises MissedEventsError if
        events were removed before they were read.
        """
        wanted = unless_empty(lambda: choose(self.database, self.collection, self.profile), EventFilter)
        if not follow:
            return read(self.database, wanted, after)
        return Follower(self.database, wanted, after, new=new).follow()

    def similar(self, external_id: str, min_similarity: float = 0.0, limit: int | None = None) -> Matches:
        """Return the documents paired with one, the most similar first, then by doc_id.

        With a limit at most so many; `has_more` of the answer says whether there are others. Raises NotFoundError, with
        the reason, for a document that is not in the index. An answer for an older text of the document is a warning.
        """
        found, warning = self._answers.similar(external_id, min_similarity, checked_limit(limit))
        self.warnings += [] if warning is None else [warning]
        return found

    def similar_to_text(
        self, body: str, title: str | None = None, min_similarity: float = 0.0, limit: int | None = None
    ) -> Matches:
        """Return the documents that a text would be paired with, the most similar first; nothing is written.

        `limit` is that of `check`: the matches with the best estimates.
        """
        return self.check(Document(_UNNAMED, title, body), min_similarity, limit)

    def check(self, document: Document, min_similarity: float = 0.0, limit: int | None = None) -> Matches:
        """Return the documents that one would be paired with if it were added, the most similar first.

        The document of the same external_id, which it would replace, is left out. With a limit candidates are verified
        in the order of their estimates until so many match: the answer has the matches with the best estimates, which
        need not be the most similar, and `has_more` says whether there are others. Nothing is written. Threads may
        share an index for this. Raises InputError for a value that cannot be stored, and for a text if vectors are
        compared.
        """
        query, most = checked_query(document), checked_limit(limit)
        return unless_empty(
            lambda: self._lookups.find(query, min_similarity, most), lambda: Matches((), self.metric())
        )

    def check_many(
        self, given: Iterable[Document], min_similarity: float = 0.0, limit: int | None = None
    ) -> Iterator[tuple[Document, Matches]]:
        """Run `check` for each document; they are not compared with each other."""
        for document in given:
            yield document, self.check(document, min_similarity, limit)

    def export(
        self,
        output: Path | str,
        keep: Keep = "survivors",
        columns: Sequence[str] = (),
        limit: int | None = None,
        format: FileFormat | None = None,
    ) -> int:
        """Write the documents to keep, the duplicates or all to a file, each with its cluster; return their number.

        The suffix of `output` is the format, otherwise `format`. Columns are those of nearsim export, by default id to
        published_at, the attributes, cluster and survivor. The file is complete or absent, and a CSV file marks text
        that a spreadsheet would run as a formula, except as `FileFormat.CSV_EXACT`. Raises InputError for an unknown
        suffix or column.
        """
        target = Target(Path(output), chosen_encoding(Path(output), format, FileFormat.JSONL))
        chosen = parse_columns(columns)
        written, warnings = write_export(
            self.database, self.collection, self.profile, keep, chosen, target, checked_limit(limit)
        )
        self.warnings += warnings
        return written

    def explain(self, one: str, other: str) -> Explanation:
        """Explain why two documents are a pair or are not, with their exact similarity from the present texts.

        Raises NotFoundError for a missing document, and InputError if both are the same.
        """

        def read(connection: Connection, generation: Generation) -> Explanation:
            context = self._contexts.make_if_reproducible(generation, plain_characters=FEW_CHARACTERS)
            encoder = None if context is None else context.encoder
            return explain(connection, generation, encoder, one, other)

        return self._answers.read_live(read)

    def get(self, external_id: str) -> dict[str, Any]:
        """Return a document as it is stored. Raises NotFoundError."""
        return self._answers.document(external_id)

    def stats(self, profile_name: str | None = None, *, recount: bool = False) -> dict[str, Any]:
        """Return counts, bytes and probabilities of the collection and of one profile.

        Counts of buckets are those of the build, at `buckets_counted_at`; with `recount` all band rows are read, and
        buckets counted now.
        """
        return self._answers.stats(profile_name, recount=recount)

    def profiles(self) -> list[tuple[Generation, Profile]]:
        """Return the live generation of every profile, else its newest, with its resolved recipe."""
        return self._answers.profiles()

    def serving(self) -> LiveIndex:
        """Return the live generation, ready to be searched.

        Raises NotFoundError, with the reason, if none is live, and FingerprintError if this version would make
        different sketches.
        """
        with self.database.transaction() as connection:
            collection = collection_rows.get_collection(connection, self.collection)
            return open_live(
                connection, self._contexts, collection.collection_id, self.collection, self.profile
            )
