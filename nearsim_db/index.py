"""The index of one collection: the whole road on one screen, and what the command line and applications call."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nearsim_db.errors import (
    DEFAULT,
    ConflictError,
    DuplicateError,
    FingerprintError,
    InputError,
    NotFoundError,
    RecipeError,
)
from nearsim_db.indexing import attached_table, profiles
from nearsim_db.indexing import purge as purging
from nearsim_db.indexing.attached_table import Swept
from nearsim_db.indexing.catch_up import Upkeep
from nearsim_db.indexing.collections import open_database
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.ingest import Ingest
from nearsim_db.indexing.ingest_checked import Guard
from nearsim_db.indexing.purge import Purged
from nearsim_db.readers import RejectWriter, VectorLengthCheck, from_documents
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import (
    Cluster,
    CollectionId,
    Document,
    IngestSummary,
    Match,
    OnDuplicate,
    Pair,
    Progress,
    ReadDocument,
    Reject,
    Verdict,
    silent,
)
from nearsim_db.search.answers import Answers
from nearsim_db.search.events import Event, Follower, choose, read
from nearsim_db.search.lookup import Lookups, Serving
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve, restore
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store import catalog, documents, verdicts
from nearsim_db.store.attached import attachments
from nearsim_db.store.catalog import Collection, Generation
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import translated
from nearsim_db.store.verdicts import Decision


class Index:
    """Near-duplicates of one collection, in PostgreSQL.

    `Index.connect()` opens it; use it in a `with` block, or call `close()`. Where a collection has several profiles,
    name the one that answers, unless it is `default`. Methods raise the errors of `nearsim_db.errors`; what is worth
    knowing but no error is appended to `warnings`.
    """

    def __init__(
        self, database: Database, collection: str, profile: str | None = None, progress: Progress = silent
    ) -> None:
        self.database = database
        self.collection = collection
        self.profile = profile
        self.warnings: list[str] = []
        self._progress = progress
        self._pool = ThreadPoolExecutor(database.settings.threads, thread_name_prefix="nearsim")
        self._answers = Answers(database, collection, lambda: self.profile)
        self._lookups = Lookups(database, self.serving)
        self._upkeep = Upkeep(database, self._restored, progress, self.warnings.append)

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        *,
        collection: str = DEFAULT,
        profile: str | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Open the index of a collection at `url`, else NEARSIM_DATABASE_URL, else the embedded server.

        The collection is made when it is first written to.
        """
        return cls(open_database(url), collection, profile, progress)

    def close(self) -> None:
        """Give back threads and connections."""
        self._pool.shutdown()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, given: Iterable[Document], on_duplicate: OnDuplicate | None = None) -> IngestSummary:
        """Insert or replace documents by external_id, and bring every profile up to date.

        With `on_duplicate` they are added one after the other, each after it was looked up, and one that has
        near-duplicates is added and told ("flag"), left out ("skip"), or raises DuplicateError ("raise"). What cannot
        be stored is counted in the summary, with the first reasons.
        """
        return self.ingest(from_documents(given), on_duplicate=on_duplicate)

    def ingest(
        self,
        records: Iterable[ReadDocument | Reject],
        *,
        rejects: Path | None = None,
        strict: bool = False,
        dry_run: bool = False,
        on_duplicate: OnDuplicate | None = None,
    ) -> IngestSummary:
        """Write what readers yield, then build or catch up every profile; without one, the default recipe makes one.

        Rejects are written to `rejects`; with `strict` the first raises InputError; with `dry_run` nothing is written.
        What other applications wrote in plain SQL is taken in too. `on_duplicate` is as for `add`; a dry run looks
        nothing up.
        """
        collection = self._writable(dry_run)
        collection_id = collection.collection_id if collection else _NOWHERE
        self._refuse_attached(collection_id, "write")
        counted = VectorLengthCheck(records)
        with translated(), RejectWriter(rejects) as writer:
            run = Ingest(self.database, collection_id, writer, strict=strict, dry_run=dry_run)
            if on_duplicate is not None and not dry_run:
                self._upkeep.bring_up_to_date(collection_id)
                run = Guard(self.database, collection_id, writer, self._lookups, on_duplicate, strict=strict)
            try:
                with self._upkeep.unbuilt_kept(collection_id):
                    run.write(counted, self._progress)
            except (InputError, DuplicateError) as error:
                # What was read before a damaged or refused record is kept, so it is indexed too.
                if not dry_run:
                    self._upkeep.bring_up_to_date(collection_id)
                error.summary = run.summary
                raise
            self.warnings += counted.warnings()
            if not dry_run:
                self._upkeep.bring_up_to_date(collection_id)
            return run.summary

    def build(self) -> None:
        """Finish what was interrupted, and take in what other applications wrote."""
        self._upkeep.take_in(self._get_collection().collection_id)

    def sweep(self) -> Swept:
        """Compare all of the table that the collection follows with its documents, and bring every profile up to date.

        Raises NotFoundError where it follows none, or one that cannot be followed now.
        """
        collection_id = self._get_collection().collection_id
        with translated(), self._upkeep.unbuilt_kept(collection_id):
            swept = attached_table.sweep(self.database.engine, collection_id, self._progress)
        assert swept is not None
        self._upkeep.bring_up_to_date(collection_id)
        return swept

    def pairs(self, min_similarity: float = 0.0) -> Generator[Pair, None, None]:
        """All verified pairs, twins expanded, as a stream in no order; close it when leaving it early."""
        return self._answers.pairs(min_similarity)

    def metric(self) -> str:
        """What the profile that answers compares by: jaccard, weighted_jaccard, cosine or euclidean."""
        return self._answers.metric()

    def clusters(self) -> Generator[Cluster, None, None]:
        """All clusters, the largest first, as a stream; close it when leaving it early."""
        return self._answers.clusters()

    def events(
        self, after: int | None = None, *, follow: bool = False, new: bool = False
    ) -> Generator[Event, None, None]:
        """What happened to pairs and clusters, in the order of commits: events after one, or all that are kept.

        With `follow` it waits for more, and with `new` those there are already are left out. Raises MissedEventsError
        where some were removed before they were read.
        """
        wanted = choose(self.database, self.collection, self.profile)
        if not follow:
            return read(self.database, wanted, after)
        return Follower(self.database, wanted, after, new=new).follow()

    def similar(self, external_id: str, min_similarity: float = 0.0) -> list[Match]:
        """The documents paired with one, the most similar first.

        Raises NotFoundError, also for a document that the index does not hold, with the reason. Where it holds an
        older text of it, that is a warning.
        """
        self._live()
        doc_id = self._find(external_id, with_text=False)["doc_id"]
        found, warning = self._answers.similar(doc_id, external_id, min_similarity)
        self.warnings += [] if warning is None else [warning]
        return found

    def similar_to_text(
        self, body: str, title: str | None = None, min_similarity: float = 0.0
    ) -> list[Match]:
        """The documents that a text would be paired with, the most similar first; nothing is written."""
        return self.check(Document(_UNNAMED, title, body), min_similarity)

    def check(self, document: Document, min_similarity: float = 0.0) -> list[Match]:
        """The documents that one would be paired with if it were added, the most similar first; nothing is written.

        That of the same external_id, which it would replace, is left out. Threads may ask at the same time. Raises
        InputError for a vector that cannot be stored, and where a text is asked about and vectors are compared.
        """
        checked_vector(document.vector, "the vector")
        return [match for match in self._lookups.find(document) if match.similarity >= min_similarity]

    def check_many(
        self, given: Iterable[Document], min_similarity: float = 0.0
    ) -> Iterator[tuple[Document, list[Match]]]:
        """`check` for one document after the other; they are not compared with each other."""
        for document in given:
            yield document, self.check(document, min_similarity)

    def get(self, external_id: str) -> dict[str, Any]:
        """A document as it is stored. Raises NotFoundError."""
        return self._find(external_id, with_text=True)

    def _find(self, external_id: str, *, with_text: bool) -> dict[str, Any]:
        collection = self._get_collection()
        with self.database.transaction() as connection:
            found = documents.find_document(
                connection, collection.collection_id, external_id, with_text=with_text
            )
        if found is None:
            raise NotFoundError(f"collection {collection.name!r} has no document {external_id!r}")
        return found

    def delete(
        self, external_ids: Iterable[str], *, purge: bool = False, rejects: Sequence[Path] = ()
    ) -> list[str]:
        """Delete documents from the collection and every index of it; returns those that were there.

        With `purge` they are forgotten, as `purge` does it.
        """
        if purge:
            return self.purge(external_ids, rejects).deleted
        collection_id = self._get_collection().collection_id
        self._refuse_attached(collection_id, "delete the rows")
        with self.database.transaction() as connection:
            gone = documents.delete_documents(connection, collection_id, list(external_ids))
        self._upkeep.bring_up_to_date(collection_id)
        return gone

    def purge(self, external_ids: Iterable[str], rejects: Sequence[Path] = ()) -> Purged:
        """Forget documents: delete them at once from every generation, queue and cache, and from these reject files.

        Waits for indexes that are being built. Raises InputError, before anything is done, where a file is no reject
        file.
        """
        collection_id = self._get_collection().collection_id
        with translated():
            attached_table.refuse_kept(self.database.engine, collection_id, list(external_ids))
            purged = purging.purge(
                self.database.engine,
                collection_id,
                list(external_ids),
                rejects,
                self._reproduced,
                lambda: self._upkeep.as_far_as_possible(self._upkeep.built, collection_id),
            )
        self._upkeep.as_far_as_possible(self._upkeep.bring_up_to_date, collection_id)
        return purged

    def stats(self, profile_name: str | None = None, *, recount: bool = False) -> dict[str, Any]:
        """What the collection and a profile of it hold, in counts, bytes and probabilities.

        Buckets are those that the build counted; with `recount` all band rows are read again.
        """
        return self._answers.stats(profile_name, recount=recount)

    def profiles(self) -> list[tuple[Generation, Profile]]:
        """The live generation of every profile of the collection, else its newest, with its resolved recipe."""
        return self._answers.profiles()

    def create_profile(self, name: str, recipe: Recipe) -> Profile:
        """Make a profile; a filled collection is indexed at once. Raises ConflictError when the name is taken."""
        if not name.strip():
            raise ConflictError("a profile needs a name")
        profile = resolve(recipe)
        self.warnings += recipe_warnings.of_profile(profile)
        collection = self._writable(dry_run=False)
        assert collection is not None
        with self.database.transaction() as connection:
            profiles.create(connection, collection.collection_id, name, profile)
            filled = documents.any_document(connection, collection.collection_id)
        if filled:
            self._upkeep.bring_up_to_date(collection.collection_id)
        return profile

    def delete_profile(self, name: str) -> None:
        """Drop a profile and its index; the documents stay. Raises NotFoundError."""
        profiles.drop(self.database, self._get_collection(), name)

    def pin(self, left: str, right: str, why: str, by: str | None = None) -> None:
        """Decide that two documents belong together: they are in one cluster from now on, alike or not.

        A verdict replaces the one that stood on the pair. `by` is who decides, the database user if not given. Raises
        NotFoundError, and NearsimError for what cannot be decided, such as without a reason.
        """
        self._judge("pin", left, right, why, by)

    def veto(self, left: str, right: str, why: str, by: str | None = None) -> None:
        """Decide, as `pin` does, that two documents do not belong together: they are never in one cluster."""
        self._judge("veto", left, right, why, by)

    def undo(self, left: str, right: str, why: str, by: str | None = None) -> None:
        """Undo what was decided about two documents. Raises NotFoundError where nothing is."""
        self._judge("undo", left, right, why, by)

    def verdicts(self, by: str | None = None, *, undone: bool = False) -> Generator[Verdict, None, None]:
        """What was decided about pairs, the newest first, by one person or all; with `undone` also what was undone."""
        collection_id = self._get_collection().collection_id
        with self.database.transaction() as connection:
            yield from verdicts.stream_verdicts(connection, collection_id, by, undone=undone)

    def _judge(self, decision: Decision, left: str, right: str, why: str, by: str | None) -> None:
        collection = self._get_collection()
        with self.database.transaction() as connection:
            verdicts.judge(connection, decision, collection.name, left, right, why, by)
        self._upkeep.bring_up_to_date(collection.collection_id)

    def _refuse_attached(self, collection_id: CollectionId, doing: str) -> None:
        with self.database.transaction() as connection:
            attachments.refuse_attached(connection, collection_id, doing)

    def _writable(self, dry_run: bool) -> Collection | None:
        with self.database.transaction() as connection:
            found = catalog.find_collection(connection, self.collection)
            if found is None and not dry_run:
                return catalog.ensure_collection(connection, self.collection)
            return found

    def _get_collection(self) -> Collection:
        with self.database.transaction() as connection:
            return catalog.get_collection(connection, self.collection)

    def _context(self, generation: Generation, profile: Profile) -> Context:
        settings = self.database.settings
        encoder = Encoder(profile, settings.backend)
        return Context(generation, encoder, self._pool, settings.threads, self.warnings.append)

    def _restored(self, generation: Generation) -> Context:
        return self._context(generation, restore(generation.recipe, generation.fingerprint))

    def _reproduced(self, generation: Generation) -> Context | None:
        """The context of a generation, None where this code would make other sketches than it holds."""
        try:
            return self._restored(generation)
        except (FingerprintError, RecipeError):
            return None

    def _live(self) -> tuple[Generation, Profile]:
        """The generation that answers. Raises NotFoundError, saying why none does."""
        return self._answers.live()

    def serving(self) -> Serving:
        """The generation that answers now, at work.

        Raises NotFoundError, saying why none does, and FingerprintError where this code would make other sketches.
        """
        generation, _ = self._live()
        with self.database.transaction() as connection:
            purges = catalog.read_purges(connection)
        return Serving(self._restored(generation), purges.get(generation.collection_id))


_NOWHERE = CollectionId(0)  # no collection has this id: a dry run into one that is not there yet
_UNNAMED = ""  # no document has this external_id: a text by itself
