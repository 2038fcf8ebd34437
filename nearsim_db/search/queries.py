"""The read-only half of the Python API: stored answers, lookups of texts, explanations, exports and events.

`Queries` has the methods that `Index` inherits. Only commands use the functions after it.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearsim_db.errors import EmptyIndexError
from nearsim_db.indexing.context import ContextFactory
from nearsim_db.readers.frames import Rows
from nearsim_db.readers.writers.file_format import FileFormat, chosen_encoding
from nearsim_db.records import Direction, Document, Keep, Matches, Nearest, ReadDocument, Reject, Results
from nearsim_db.search import live_generation
from nearsim_db.search.answers import Answers, checked_limit, find_document, iterate_documents, profile_of
from nearsim_db.search.common_fingerprints import CommonFingerprints, read_common
from nearsim_db.search.events import Following, choose, read
from nearsim_db.search.explanation import Explanation, explain, find_two
from nearsim_db.search.live_generation import LiveIndex, open_live
from nearsim_db.search.lookup import Lookups, MatchFilter
from nearsim_db.search.passages import SpreadPassage, compared_text, passages_of, spread_of
from nearsim_db.similarity import backend
from nearsim_db.similarity.backend import FIRST_PLAIN_CHARACTERS
from nearsim_db.similarity.nearest import Weights
from nearsim_db.similarity.passages import Passage, PassageFinder
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.clusters.events import Event
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.generations.generation_rows import Generation

if TYPE_CHECKING:
    from nearsim_db.readers.contract import Fields
    from nearsim_db.search.nearest import NearestQuery, Record

# The external_id of a text that is looked up without an id; no document has it.
_UNNAMED = ""


class Queries(Answers):
    """The queries of an `Index`, which owns the database and a thread pool until it is closed."""

    def __init__(self, database: Database, collection: str, profile: str | None = None) -> None:
        super().__init__(database, collection, profile)
        self._contexts = self._resources.enter_context(
            ContextFactory.open(database.settings, self.warnings.append)
        )
        self._lookups = Lookups(database, self.serving)

    def events(
        self, after: int | None = None, *, follow: bool = False, new: bool = False
    ) -> Generator[Event, None, None]:
        """Stream the events of pairs and clusters in commit order: all stored events, or the events after `after`.

        With `follow` the stream waits for further events until the index is closed. With `follow` and `new` it starts
        with the next event. Raises MissedEventsError if events were removed before they were read.
        """
        chosen = choose(self.database, self.collection, self.profile)
        if not follow:
            return read(self.database, chosen, after)

        self.database.refuse_borrowed("following events")
        following = Following(self.database, chosen, after, new=new)
        self._resources.callback(following.stop)
        return following

    def similar_to_text(
        self,
        body: str | None = None,
        title: str | None = None,
        min_similarity: float = 0.0,
        limit: int | None = None,
        direction: Direction | None = None,
    ) -> Matches:
        """Return the documents that a text would be paired with, the most similar first; nothing is written.

        `limit` and `direction` have the same meaning as for `check`. Raises InputError if the profile compares vectors,
        or only a field that is missing here, such as the title.
        """
        return self.check(Document(_UNNAMED, title, body), min_similarity, limit, direction)

    def check(
        self,
        document: Document,
        min_similarity: float = 0.0,
        limit: int | None = None,
        direction: Direction | None = None,
    ) -> Matches:
        """Return the documents that a document would be paired with if it were added, the most similar first.

        The stored document with the same external_id, which this document would replace, is left out. Nothing is
        written, and threads may share an index for this method.

        With a `limit`, candidates are verified in the order of their estimates until so many match. The answer then has
        the matches with the best estimates, which need not be the most similar ones, and its `has_more` says whether
        there are others. `direction` has the same meaning as for `similar`: "contained_in" returns the documents that
        contain this one.

        Raises InputError for a value that cannot be stored, for a document that has only what the profile does not
        compare (a text instead of a vector, or only a title instead of a body), and for a direction if
        `similar` refuses it.
        """
        from nearsim_db.readers.memory import checked_query

        query = checked_query(document)
        match_filter = MatchFilter(min_similarity, checked_limit(limit), query.external_id, direction)
        try:
            return self._lookups.find(query, match_filter)
        except EmptyIndexError:
            return Matches((), self.metric())

    def check_many(
        self,
        documents: Iterable[Document],
        min_similarity: float = 0.0,
        limit: int | None = None,
        direction: Direction | None = None,
    ) -> Generator[tuple[Document, Matches], None, None]:
        """Run `check` for each document; the documents are not compared with each other."""
        for document in documents:
            yield document, self.check(document, min_similarity, limit, direction)

    def nearest(
        self,
        k: int = 5,
        *,
        documents: Rows | None = None,
        within: str | None = None,
        min_similarity: float = 0.2,
        mutual: bool = False,
        across: str | None = None,
        weights: Weights = "idf",
        recipe: Recipe | None = None,
        margin: float = 0.0,
        within_fields: Sequence[str] = (),
    ) -> Results[Nearest]:
        """Stream the k most similar documents of every document, whatever the threshold, in the order of the documents.

        The matches are documents of the collection `within`, by default of the same collection. `documents`, in the
        forms that `Index.add` takes, are looked up instead of the collection's documents. With `mutual`, each of the
        two documents must be among the k nearest of the other. `across` is a field, such as source, whose values must
        differ; `within_fields` are fields whose values must be equal. `margin` is the minimum lead of a match over the
        best document after the k nearest, as a fraction of the match's similarity; matches with less are dropped.

        Texts are split into features by `recipe`, by default the preset records. With the weights idf they are compared
        by the cosine of inverse document frequencies, otherwise by their Jaccard similarity. Only documents that share
        a rare feature are compared. All features are in memory. Rejected documents become warnings. Close the stream
        when leaving it early. Raises InputError for values out of range.
        """
        from nearsim_db.readers import Fields
        from nearsim_db.readers.memory import from_documents
        from nearsim_db.search.nearest import NearestQuery

        query = NearestQuery(k, min_similarity, mutual, across, weights, recipe, margin, tuple(within_fields))
        usable = None if documents is None else self._usable(from_documents(documents))
        return Results(search_nearest(self, query, usable, Fields(), within), Nearest)

    def _usable(self, documents: Iterable[ReadDocument | Reject]) -> Iterator[ReadDocument]:
        """Yield the documents that were not rejected; add a warning for each rejected one."""
        for record in documents:
            if isinstance(record, Reject):
                self.warnings.append(f"{record.file}:{record.line} was rejected: {record.reason}")
            else:
                yield record

    def export(
        self,
        output: Path | str,
        keep: Keep = "survivors",
        columns: Sequence[str] = (),
        limit: int | None = None,
        format: FileFormat | None = None,
        mark_prefix: str | None = None,
    ) -> int:
        """Write the survivors, the duplicates or all documents to a file, with their clusters; return their number.

        The suffix of `output` decides the format; if there is none, `format` does. `columns` have the names that
        nearsim export uses; the default is id to published_at, the attributes, cluster and survivor. An export that
        fails leaves no file. In a CSV file, text that a spreadsheet would run as a formula is marked, except with
        `FileFormat.CSV_EXACT`. With a `mark_prefix`, which may be "", the columns duplicate_of, cluster, cluster_size
        and similarity follow; their names begin with it. Raises InputError for an unknown suffix or column.
        """
        from nearsim_db.search.exports import Target, parse_columns, write_export

        target = Target(Path(output), chosen_encoding(Path(output), format, FileFormat.JSONL))
        chosen = parse_columns(columns, mark_prefix)
        written, warnings = write_export(
            self.database, self.collection, self.profile, keep, chosen, target, checked_limit(limit)
        )
        self.warnings.extend(warnings)
        return written

    def why(self, left: str, right: str) -> Explanation:
        """Explain why two documents are a pair or are not, with the exact similarity of their present texts.

        Raises NotFoundError for a missing document, and InputError if both are the same.
        """

        def read(connection: Connection) -> Explanation:
            live = self._live(connection)
            context = self._contexts.make_if_reproducible(live, plain_characters=FIRST_PLAIN_CHARACTERS)
            return explain(connection, live, None if context is None else context.encoder, left, right)

        return self._ask(read)

    explain = why  # the name until version 1.0

    def passages(self, left: str, right: str) -> list[Passage]:
        """Return the passages that the present texts of two documents share; the documents need not be a pair.

        Under containment, passages that fewer indexed texts contain come first; under other metrics, the longest
        passages. Places are counted in characters of the texts that `why` returns: the fields that the profile
        compares, with an empty line between them, and without tags if the profile strips HTML. Raises NotFoundError for
        a missing document, and InputError if both are the same or if the profile compares vectors.
        """
        return self._passages(lambda connection, live: find_two(connection, live, left, right))

    def spread(self, external_id: str) -> list[SpreadPassage]:
        """Return the passages of a document that other documents contain too, each with the documents that contain it.

        Only documents that form a pair with this one are compared. Passages are in the order of the text, and the
        documents of a passage in the order of `published_at`. If the index has only an older text of the document, a
        warning says so. Raises NotFoundError, with the reason, for a document that is not in the index, and InputError
        if the profile compares vectors.
        """

        def read(connection: Connection) -> tuple[list[SpreadPassage], str | None]:
            live = self._live(connection, external_id)
            recipe, asked = profile_of(live).recipe, find_document(connection, live, external_id)
            finder = PassageFinder(recipe, backend.resolve(), live.common)
            warning = live_generation.refuse_unindexed(connection, live, asked["doc_id"], external_id)

            matches = live.tables(connection).shown.read_similar(asked["doc_id"], 0.0, None)
            similar = iterate_documents(connection, live, [match.external_id for match in matches])
            return spread_of(asked, similar, recipe, finder), warning

        passages, warning = self._ask(read)
        self.warnings.extend([] if warning is None else [warning])
        return passages

    def common_fingerprints(self) -> list[CommonFingerprints]:
        """Return the shingles that the live index leaves out as too common (match.ignore_common), with examples.

        The counts are from a sample of the present documents.
        """
        return self._ask(lambda connection: read_common(connection, self._live(connection)))

    def _passages(
        self, find: Callable[[Connection, Generation], tuple[Mapping[str, Any], ...]]
    ) -> list[Passage]:
        """Return the passages that the two documents returned by `find` share."""

        def read(connection: Connection) -> list[Passage]:
            live = self._live(connection)
            recipe = profile_of(live).recipe
            left, right = [compared_text(document, recipe) for document in find(connection, live)]
            return passages_of(connection, live, left, right)

        return self._ask(read)

    def serving(self) -> LiveIndex:
        """Return the live generation, ready to be searched.

        Raises NotFoundError, with the reason, if none is live, and FingerprintError if this version would make
        different sketches.
        """
        with self.database.transaction() as connection:
            return open_live(connection, self._contexts, self.collection, self.profile)


def search_nearest(
    queries: Queries,
    query: "NearestQuery",
    documents: Iterable[ReadDocument] | None,
    fields: "Fields",
    within: str | None,
) -> Generator[Nearest, None, None]:
    """Stream the matches of `Queries.nearest`; `fields` is the mapping with which `documents` were read."""
    from nearsim_db.search.nearest import NearestSearch, of_collection, of_records

    search = NearestSearch(query, queries._contexts.settings.backend)
    target = within or queries.collection

    def stored(collection: str) -> "Iterator[Record]":
        with translate_errors(), queries.database.engine.snapshot() as connection:
            try:
                live = live_generation.find_live(connection, collection, None)
            except EmptyIndexError:
                return
            yield from of_collection(connection, live, query.fields)

    if documents is None:
        records = stored(queries.collection)
        targets = None if target == queries.collection else stored(target)
    else:
        records, targets = of_records(documents, query.fields, fields), stored(target)
    yield from search.find(records, targets)
    queries.warnings.extend(search.warnings)


def passages_in(queries: Queries, document: Document, external_id: str) -> list[Passage]:
    """Return the passages that a document, which need not be stored, shares with a stored document.

    The first document is on the left of each passage.
    """
    from nearsim_db.readers.memory import checked_query

    query = checked_query(document)
    left = {"title": query.title, "body": query.body}
    return queries._passages(lambda connection, live: (left, find_document(connection, live, external_id)))


def incomparable_reason(queries: Queries, document: Document) -> str | None:
    """Return the reason if a document lacks what the profile compares, so that `Queries.check` would raise InputError.

    Returns None if the document can be looked up.
    """
    try:
        return queries._lookups.live().incomparable_reason(document)
    except EmptyIndexError:
        return None
