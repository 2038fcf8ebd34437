"""The Python API: the index of one collection, for applications and for the command line.

`Index.ingest` is the whole way from a text to a cluster. It writes the documents, and for a first index it computes
their sketches at the same time. Then it calls `_index`, which stores band rows, finds candidates in shared buckets,
verifies the candidates by their features, and clusters the pairs. `Index.pairs`, `similar` and `clusters` read the
result; `check` looks up a document without adding it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, get_args

from nearsim_db.errors import ConflictError, InputError, NotFoundError
from nearsim_db.indexing import attached_sweep, attached_table, profiles, purge
from nearsim_db.indexing.attached_sweep import SweepResult
from nearsim_db.indexing.build import MAX_SMALL_BUILD_DOCUMENTS
from nearsim_db.indexing.catch_up import CatchUp
from nearsim_db.indexing.code_check import refuse_slow_code
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.ingest.account import IngestAccount
from nearsim_db.indexing.ingest.bulk import BulkIngest, DryRun, measure
from nearsim_db.indexing.ingest.checked import CheckedIngest
from nearsim_db.indexing.purge import Purged
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.messages import suggested_command
from nearsim_db.readers import RejectWriter, VectorLengthCheck, from_documents
from nearsim_db.readers.frames import Rows
from nearsim_db.records import (
    DEFAULT,
    CollectionId,
    IngestSummary,
    OnDuplicate,
    Progress,
    ReadDocument,
    Reject,
    SurvivorChoice,
    Verdict,
    silent,
)
from nearsim_db.search.answers import checked_ids, list_newest
from nearsim_db.search.locked_lookup import LockedLookups
from nearsim_db.search.queries import Queries
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store import query_rows
from nearsim_db.store.access import collection_rows
from nearsim_db.store.access.collection_rows import Collection
from nearsim_db.store.attached import attachments
from nearsim_db.store.database import Database
from nearsim_db.store.documents import document_writes
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.generations import partitions
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.generations.generation_states import MAINTAINED
from nearsim_db.store.pairs import verdicts
from nearsim_db.store.pairs.verdicts import Decision, ImportedLabels

if TYPE_CHECKING:
    from nearsim_db.store.driver.borrowed import OwnConnection

# No collection has this id; a dry run into a collection that does not exist uses it.
_NO_COLLECTION = CollectionId(0)


class Index(Queries):
    """The near-duplicates of one collection, in PostgreSQL.

    Open an index with `Index.connect()`, and use it in a `with` block or call `close()` at the end. If the collection
    has several profiles and none of them is named default, give the name of the profile to query. Methods raise the
    exceptions of `nearsim_db.errors`, and append their warnings to the list `warnings`.
    """

    _lookups: LockedLookups

    def __init__(
        self, database: Database, collection: str, profile: str | None = None, progress: Progress = silent
    ) -> None:
        super().__init__(database, collection, profile)
        self._lookups = LockedLookups(database, self.serving)
        self._progress = progress
        self._catch_up = CatchUp(database, self._contexts, progress)

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        *,
        connection: "OwnConnection | None" = None,
        collection: str = DEFAULT,
        profile: str | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Open the index of a collection at `url`, else at NEARSIM_DATABASE_URL, else on the embedded server.

        The first write creates the collection.

        Instead of a URL, you can pass the application's own `connection`: a connection of psycopg, SQLAlchemy or
        Django, or a session of SQLAlchemy. Calls then run in the application's transaction and never end it, and a
        worker indexes the documents after the commit. Methods that need their own transactions, such as `build`, raise
        ConflictError. If `connection` is an engine of SQLAlchemy, the index opens its own connections through it.
        """
        if connection is None:
            return cls(Database.connect(url), collection, profile, progress)
        if url is not None:
            raise InputError("give a URL or a connection, not both")
        return cls(Database.borrow(connection), collection, profile, progress)

    def add(self, documents: Rows, on_duplicate: OnDuplicate | None = None) -> IngestSummary:
        """Insert or replace documents by external_id, and bring every profile up to date.

        `documents` are `Document` objects, or rows with an id: mappings, tuples of id and text or of id, title and
        text, or a data frame (pandas, polars, pyarrow). Keys and columns have the names that files use: id, title,
        text, source and so on.

        With `on_duplicate`, documents are added one after the other, and each is looked up first. If it has
        near-duplicates, it is added and listed in the summary ("flag"), it is left out ("skip"), or the call raises
        DuplicateError ("raise"). The summary counts the documents that cannot be stored, for example because a body is
        bytes or NaN, and has the reasons for the first of them.
        """
        return self.ingest(from_documents(documents), on_duplicate=on_duplicate)

    def ingest(
        self,
        documents: Iterable[ReadDocument | Reject],
        *,
        rejects: Path | None = None,
        strict: bool = False,
        dry_run: bool = False,
        on_duplicate: OnDuplicate | None = None,
    ) -> IngestSummary:
        """Write documents as readers yield them, then build or update the index of every profile.

        A collection without a profile gets one with the default recipe. `rejects` is a file for the rejected records;
        with `strict`, the first reject raises InputError. With `dry_run` nothing is written or looked up.
        `on_duplicate` works as in `add`.

        The call also indexes the changes that other applications made in plain SQL. If an error or an interruption ends
        the call, the documents that were written before it are still indexed. Raises InputError after everything is
        written and indexed if the recipe keeps documents by source (`cluster.keep`) but no document has a source.
        """
        return self._ingest(
            documents, rejects=rejects, strict=strict, dry_run=dry_run, on_duplicate=on_duplicate
        )

    def _ingest(
        self,
        documents: Iterable[ReadDocument | Reject],
        *,
        rejects: Path | None = None,
        strict: bool = False,
        dry_run: bool = False,
        on_duplicate: OnDuplicate | None = None,
        expected_bytes: int | None = None,
        resumable: bool = False,
        planned: Recipe | None = None,
    ) -> IngestSummary:
        """Write and index documents, for `ingest` and for commands, which pass more details.

        expected_bytes: the approximate size of the texts; for little text, starting compiled code takes longer than it
        saves. resumable: after an interruption, leave the indexing to the next call. planned: the recipe of the profile
        that a dry run would create.
        """
        if on_duplicate not in (None, *get_args(OnDuplicate)):
            raise InputError(f"on_duplicate is {on_duplicate!r}; choose {', '.join(get_args(OnDuplicate))}")
        with translate_errors():
            if dry_run:
                return self._count_only(documents, rejects, planned, strict=strict)
            if on_duplicate is not None or self.database.engine.is_borrowed:
                return self._add_one_by_one(
                    documents, rejects, on_duplicate, strict=strict, resumable=resumable
                )
            return self._add_in_bulk(documents, rejects, expected_bytes, strict=strict, resumable=resumable)

    def _count_only(
        self,
        documents: Iterable[ReadDocument | Reject],
        rejects: Path | None,
        planned: Recipe | None,
        *,
        strict: bool,
    ) -> IngestSummary:
        """Count what `_add_in_bulk` would write, without writing it."""
        self.database.refuse_borrowed("a dry run")
        collection_id = self._open_for_writing("write", create=False)
        existing = self._catch_up.generations(collection_id)
        recipes = [generation.recipe for generation in existing]

        with RejectWriter(rejects) as writer:
            checked = VectorLengthCheck(refuse_slow_code(documents, recipes, planned))
            run = DryRun(self.database, collection_id, writer, strict=strict)
            with run.adding_summary():
                run.write(checked, self._progress)
                self._warn_of_records(run, checked, existing)
                profiles.refuse_unusable_recipes(self.database, collection_id, run, planned)
        return run.summary

    def _add_one_by_one(
        self,
        documents: Iterable[ReadDocument | Reject],
        rejects: Path | None,
        on_duplicate: OnDuplicate | None,
        *,
        strict: bool,
        resumable: bool,
    ) -> IngestSummary:
        """Look up and add the documents one by one, then index them; in an application's transaction, only add them."""
        may_index = self.database.may_index
        if on_duplicate is not None and (self.database.engine.is_borrowed or not may_index):
            self._require_lookups()
        collection_id = self._open_for_writing("write", create=True)
        if may_index:
            self._index(collection_id)  # the lookups need an up-to-date index
        existing = self._catch_up.generations(collection_id)
        recipes = [generation.recipe for generation in existing]

        with RejectWriter(rejects) as writer:
            checked = VectorLengthCheck(refuse_slow_code(documents, recipes))
            find = self._lookups.find_locked
            run = CheckedIngest(self.database, collection_id, writer, find, on_duplicate, strict=strict)
            with run.adding_summary():
                try:
                    run.write(checked, self._progress)
                except BaseException as error:
                    # The documents added before the error stay in the collection, so they are indexed too.
                    if isinstance(error, Exception) or not resumable:
                        self._index_after_error(collection_id)
                    raise
                self._warn_of_records(run, checked, existing)
                indexed = self._index(collection_id, is_attached=False)
                profiles.refuse_unusable_recipes(self.database, collection_id, existing=indexed)
        return run.summary

    def _add_in_bulk(
        self,
        documents: Iterable[ReadDocument | Reject],
        rejects: Path | None,
        expected_bytes: int | None,
        *,
        strict: bool,
        resumable: bool,
    ) -> IngestSummary:
        """Write documents in batches, sign them at the same time for first indexes; then build or update each index."""
        collection_id = self._open_for_writing("write", create=True)
        existing = self._catch_up.generations(collection_id)
        recipes = [generation.recipe for generation in existing]

        # The index of a few documents, all of them in memory, is built in one transaction.
        if expected_bytes is None:
            documents, expected_bytes = measure(documents)
        is_few = isinstance(documents, list) and len(documents) <= MAX_SMALL_BUILD_DOCUMENTS

        with RejectWriter(rejects) as writer:
            checked = VectorLengthCheck(refuse_slow_code(documents, recipes))
            signed = list[Context]()
            run = BulkIngest(self.database, collection_id, writer, strict=strict)
            with run.adding_summary():
                try:
                    with self._catch_up.prepare_first_builds(
                        collection_id, existing, expected_bytes, is_few=is_few
                    ) as signed:
                        run.write(checked, self._progress, signed)
                except BaseException as error:
                    # Records before a damaged or refused record are kept, so they are indexed too.
                    if isinstance(error, Exception) or not resumable:
                        self._index_after_error(collection_id, signed)
                    raise
                self._warn_of_records(run, checked, existing)
                indexed = self._index(collection_id, signed, is_attached=False)
                profiles.refuse_unusable_recipes(self.database, collection_id, existing=indexed)
        return run.summary

    def _warn_of_records(
        self, run: IngestAccount, checked: VectorLengthCheck, existing: Sequence[Generation]
    ) -> None:
        """Warn of vectors of different lengths, and of HTML in live indexes; a build warns of HTML itself."""
        self.warnings.extend(checked.warnings())
        live = [generation for generation in existing if generation.state == "live"]
        self.warnings.extend(run.markup_warnings(live))

    def _index(
        self,
        collection_id: CollectionId,
        signed: Sequence[Context] = (),
        *,
        may_leave: bool = True,
        is_attached: bool = True,
    ) -> list[Generation] | None:
        """Index what this call and other applications wrote; return all generations of the collection.

        Returns None if the documents are left to a worker: in an application's transaction, which is not committed yet,
        and with `may_leave` if the user may not index. A reindex is left to the process that began it.

        signed: contexts of the first indexes in which documents were signed while they were written. is_attached: the
        collection may have an attached table.
        """
        if self.database.engine.is_borrowed:
            return None
        if may_leave and self._leaves_to_worker():
            return None

        engine, indexes = self.database.engine, self._catch_up
        with translate_errors():
            # Bring the documents in step with the rows of an attached table.
            if is_attached and (
                obstacle := attached_table.catch_up_collection(engine, collection_id, self._progress)
            ):
                self._contexts.warn(obstacle)

            # Build first indexes from all documents: sign, store bands, find pairs, cluster.
            existing = indexes.ensure_built(collection_id, signed)

            # Update indexes in use from the queue of changes, in the same stages.
            dispatch_changes(engine)
            self._work_off(existing)
            return existing

    def _leaves_to_worker(self) -> bool:
        """Whether the user may not index, so that a worker has to; then add a warning."""
        if not self.database.may_index:
            self._contexts.warn("what was written waits for a worker: this user may not index it")
        return not self.database.may_index

    def _work_off(self, generations: Sequence[Generation]) -> None:
        """Do the queued work of those generations that are in use or about to be."""
        for generation in generations:
            if generation.state == "live":
                self._catch_up.catch_up(generation)
            elif generation.state in MAINTAINED:
                with self._catch_up.skip_irreproducible():
                    self._catch_up.catch_up(generation)
        with self.database.engine.connect(autocommit=True) as connection:
            partitions.analyze_refilled(connection)

    def _index_after_error(self, collection_id: CollectionId, signed: Sequence[Context] = ()) -> None:
        """Index what was written before an error; if indexing fails as well, add a warning."""
        try:
            self._index(collection_id, signed)
        except Exception as error:
            command = suggested_command("build", self.collection)
            self._contexts.warn(f"what was written is not indexed yet ({error}); to index it: {command}")

    def create_collection(self) -> None:
        """Create the collection if it does not exist, and build its index, which can be queried while it is empty.

        The collection gets a profile with the default recipe, unless `create_profile` created one before. Call this
        before the first document is added with `on_duplicate` in an application's transaction.
        """
        self.database.refuse_borrowed("create_collection")
        with self.database.transaction() as connection:
            collection = collection_rows.ensure_collection(connection, self.collection)
        self._index(collection.collection_id, may_leave=False)

    def build(self) -> None:
        """Finish interrupted builds, and index what other applications wrote.

        Raises InputError if a new profile keeps documents by source (`cluster.keep`) but no document has a source.
        """
        self.database.refuse_borrowed("a build")
        collection_id = self._collection_id()
        profiles.refuse_unusable_recipes(self.database, collection_id, only_new=True)
        self._index(collection_id, may_leave=False)

    def sweep(self) -> SweepResult:
        """Compare the whole attached table with its documents, and bring every profile up to date.

        If the table has one collection for each value of a field, these collections are swept as well. Raises
        NotFoundError if the collection is not attached, or if its table cannot be read now; raises InputError in the
        cases in which `build` does.
        """
        self.database.refuse_borrowed("a sweep")
        collection_id = self._collection_id()
        with translate_errors(), self._catch_up.delay_first_build(collection_id):
            swept = attached_sweep.sweep(self.database.engine, collection_id, self._progress)
        assert swept is not None

        with self.database.transaction() as connection:
            of_values = attachments.list_of_values(connection, collection_id)
        if self._leaves_to_worker():
            return swept

        collection_ids = [collection_id, *(value.collection_id for value in of_values)]
        with translate_errors():
            # Dispatch before the builds: each build finds its changes by an index only after they are queued as work.
            dispatch_changes(self.database.engine)
            self._work_off(self._catch_up.ensure_all_built(collection_ids))
        return swept

    def delete(
        self, external_ids: Iterable[str], *, purge: bool = False, rejects: Sequence[Path] = ()
    ) -> list[str]:
        """Delete documents from the collection and from all of its indexes; return the ids that existed.

        `purge` deletes them as the method `purge` does, also from the reject files `rejects`.
        """
        if purge:
            return self.purge(external_ids, rejects).deleted

        ids = checked_ids(external_ids)
        with self.database.transaction() as connection:
            collection_id = collection_rows.get_collection(connection, self.collection).collection_id
            attachments.refuse_attached(connection, collection_id, "delete the rows")
            deleted = list(document_writes.delete_documents(connection, collection_id, ids))
        self._index(collection_id)
        return deleted

    def purge(self, external_ids: Iterable[str], rejects: Sequence[Path] = ()) -> Purged:
        """Delete documents at once from every generation, queue and cache, and from the reject files `rejects`.

        If a first index is being built, the call waits until it is finished and purges it too. A reindex in another
        process drops the documents before it goes live. If one of the files is not a reject file, raises InputError
        before anything is deleted.
        """
        self.database.refuse_borrowed("a purge")
        ids, collection_id = checked_ids(external_ids), self._collection_id()

        def finish_builds() -> None:
            with self._catch_up.skip_irreproducible():
                self._catch_up.ensure_built(collection_id)

        with translate_errors():
            attached_table.refuse_attached_rows(self.database.engine, collection_id, ids)
            purged = purge.purge(
                self.database.engine, collection_id, ids, rejects, self._contexts, finish_builds
            )
        with self._catch_up.skip_irreproducible():
            self._index(collection_id)
        return purged

    def create_profile(self, name: str, recipe: Recipe) -> Profile:
        """Create a profile, and index the collection's documents. Raises ConflictError if the name is taken."""
        self.database.refuse_borrowed("create_profile")
        if not name.strip():
            raise ConflictError("a profile needs a name")

        profile = resolve(recipe)
        self.warnings.extend(recipe_warnings.of_profile(profile))
        with self.database.transaction() as connection:
            collection_id = collection_rows.ensure_collection(connection, self.collection).collection_id

        with self.database.transaction() as connection:
            profiles.create(connection, collection_id, name, profile)
            has_documents = query_rows.has_documents(connection, collection_id)
            # A build in this process adds its own warnings, except of HTML.
            if has_documents and (recipe.normalise.html or not self.database.may_index):
                warning = profiles.warn_of_collection(connection, collection_id, profile)
                self.warnings.extend([warning] if warning is not None else [])
        if has_documents:
            self._index(collection_id)
        return profile

    def has_profile(self, name: str, recipe: Recipe | None) -> bool:
        """Whether the profile exists. Raises RecipeConflictError if its recipe differs from `recipe`."""
        newest = list_newest(self.database, self.collection) if self.has_collection() else []
        generations = {generation.profile: generation for generation in newest}
        if name in generations and recipe is not None:
            profiles.refuse_other_recipe(self.collection, generations[name], recipe)
        return name in generations

    def delete_profile(self, name: str) -> None:
        """Drop a profile and its index, but not the documents. Raises NotFoundError if the profile does not exist."""
        self.database.refuse_borrowed("delete_profile")
        profiles.drop(self.database, self._get_collection(), name)

    def pin(self, left: str, right: str, why: str, by: str | None = None) -> Verdict:
        """Decide that two documents belong together: from now on they share a cluster, however similar they are.

        Returns the verdict, which replaces an earlier verdict on the pair. `why` is the reason. `by` is the person who
        decides, by default the database user. Raises NotFoundError for a document that does not exist, and NearsimError
        for an impossible verdict, such as a verdict without a reason.
        """
        return self._judge("pin", left, right, why, by)

    def veto(self, left: str, right: str, why: str, by: str | None = None) -> Verdict:
        """Decide that two documents never share a cluster. Parameters, result and exceptions are as in `pin`."""
        return self._judge("veto", left, right, why, by)

    def undo(self, left: str, right: str, why: str, by: str | None = None) -> Verdict:
        """Undo the verdict on two documents, and return it. Raises NotFoundError if there is no verdict on them."""
        return self._judge("undo", left, right, why, by)

    def keep(
        self, external_id: str, why: str, by: str | None = None, *, undo: bool = False
    ) -> SurvivorChoice:
        """Choose a document as the survivor of its cluster; the choice overrides the keep policy.

        If several documents of a cluster were chosen, the newest choice counts. A choice has no effect while the
        document is in no cluster. `undo` takes back the newest choice of the document. Returns the choice. Raises the
        exceptions of `pin`, and NotFoundError if there is nothing to undo.
        """
        collection = self._get_collection()
        with self.database.transaction() as connection:
            choice = verdicts.keep(connection, collection.name, external_id, why, by, undo=undo)
        self._index(collection.collection_id)
        return choice

    def import_labels(
        self,
        labels: Sequence[tuple[str, str, bool]],
        why: str,
        by: str | None = None,
        *,
        dry_run: bool = False,
    ) -> ImportedLabels:
        """Pin each pair that is labelled True, veto each pair that is labelled False, and return the counts.

        Pairs with a document that does not exist are counted and left out. With `dry_run` nothing is written.
        """
        collection_id = self._collection_id()
        with self.database.transaction() as connection:
            imported = verdicts.import_labels(connection, collection_id, labels, why, by, dry_run=dry_run)
        if not dry_run:
            self._index(collection_id)
        return imported

    def _judge(self, decision: Decision, left: str, right: str, why: str, by: str | None) -> Verdict:
        collection = self._get_collection()
        with self.database.transaction() as connection:
            verdict = verdicts.judge(connection, decision, collection.name, left, right, why, by)
        self._index(collection.collection_id)
        return verdict

    def _require_lookups(self) -> None:
        """Raise ConflictError if no index exists yet, or if the application's transaction cannot see new documents."""
        self.database.refuse_snapshot("on_duplicate")
        try:
            self._lookups.live()
        except NotFoundError as error:
            who = "this transaction" if self.database.may_index else "a writer"
            by = "" if self.database.may_index else " as a nearsim_admin"
            raise ConflictError(
                f"{error}; {who} cannot build the index that on_duplicate needs: first call{by} "
                f"create_collection() on an index that opens its own connections, Index.connect(URL, "
                f"collection={self.collection!r})"
            ) from error

    def _open_for_writing(self, doing: str, *, create: bool) -> CollectionId:
        """Return the collection's id, or `_NO_COLLECTION`. Raises ConflictError if a table is attached to it."""
        with self.database.transaction() as connection:
            find = collection_rows.ensure_collection if create else collection_rows.find_collection
            collection = find(connection, self.collection)
            if collection is None:
                return _NO_COLLECTION
            attachments.refuse_attached(connection, collection.collection_id, doing)
            return collection.collection_id

    def _get_collection(self) -> Collection:
        with self.database.transaction() as connection:
            return collection_rows.get_collection(connection, self.collection)

    def _collection_id(self) -> CollectionId:
        return self._get_collection().collection_id
