"""The index of one collection, as the command line and applications use it.

The road from text to cluster is `Index.ingest`: it writes documents, in a first index signs them meanwhile (text to
sketch), and calls `_index`, which does the rest: load their band rows, find candidates in shared buckets, verify them
by their features, and cluster the pairs. `Index.pairs`, `similar` and `clusters` read the result; `check` looks a
document up without adding it.
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
    """Near-duplicates of one collection, in PostgreSQL.

    `Index.connect()` opens it; use it in a `with` block, or call `close()`. If a collection has several profiles and
    none is named default, name the profile to query. Methods raise the errors of `nearsim_db.errors` and append
    warnings to `warnings`.
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

        The collection is created when it is first written to.

        Instead of a URL, `connection` may be a connection of the application: of psycopg, SQLAlchemy or Django, or a
        session of SQLAlchemy. Calls then take part in its transaction and never end it; a worker indexes documents once
        they are committed. Methods that need transactions of their own, such as `build`, raise ConflictError. With an
        engine of SQLAlchemy the index opens connections of its own, as the engine does.
        """
        if connection is None:
            return cls(Database.connect(url), collection, profile, progress)
        if url is not None:
            raise InputError("give a URL or a connection, not both")
        return cls(Database.borrow(connection), collection, profile, progress)

    def add(self, documents: Rows, on_duplicate: OnDuplicate | None = None) -> IngestSummary:
        """Insert or replace documents by external_id, and bring every profile up to date.

        `documents` are `Document` objects, or rows with an id: mappings, tuples of id and text or of id, title and
        text, or a data frame (pandas, polars, pyarrow), whose columns are named as in files: id, title, text, source
        and so on. With `on_duplicate` each document is looked up and then added, one after the other; a document that
        has near-duplicates is added and listed ("flag"), left out ("skip"), or raises DuplicateError ("raise").
        Documents that cannot be stored, for example because a body is bytes or NaN, are counted in the summary, with
        the first reasons.
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

        A collection without a profile gets one with the default recipe. Rejects are written to the file `rejects`; with
        `strict` the first reject raises InputError; with `dry_run` nothing is written or looked up. `on_duplicate` is
        as for `add`. If an error or an interruption ends this, the documents before are indexed, too. So are changes
        that other applications made in plain SQL. Raises InputError, when this is done, if documents are kept by source
        (`cluster.keep`) and none has a source.
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
        """Write and index documents for `ingest`, and for commands, which know more of them.

        expected_bytes: about the size of the texts; compiled code does not pay for its start if they are few.
        resumable: leave indexing to the next call after an interruption. planned: the recipe of a profile that would be
        created, for a dry run.
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
        """Count what `_add_in_bulk` would write."""
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
        """Look each document up and add it, then index all; in an application's transaction, only write them."""
        may_index = self.database.may_index
        if on_duplicate is not None and (self.database.engine.is_borrowed or not may_index):
            self._require_lookups()
        collection_id = self._open_for_writing("write", create=True)
        if may_index:
            self._index(collection_id)  # for the lookups
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
                    # What was added before the error stays, so it is indexed too.
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
        """Write documents in batches, sign them meanwhile for first indexes, and build or update every index."""
        collection_id = self._open_for_writing("write", create=True)
        existing = self._catch_up.generations(collection_id)
        recipes = [generation.recipe for generation in existing]

        # A few documents that are all at hand are built in one transaction.
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
                    # Records before a damaged or refused one are kept, so they are indexed too.
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
        """Warn of vectors of several lengths, and of HTML in live indexes; a build warns of HTML by itself."""
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
        """Index what was written, here and by others; return all generations of the collection, None if left undone.

        signed: contexts of first indexes in which documents were signed as they were written. may_leave: a user who may
        not index leaves it to a worker. is_attached: the collection may have an attached table.

        Documents that are not committed yet are left to a worker, and a reindex to the process that began it.
        """
        if self.database.engine.is_borrowed:
            return None
        if may_leave and self._leaves_to_worker():
            return None

        engine, indexes = self.database.engine, self._catch_up
        with translate_errors():
            # Add what an attached table has and the documents lack.
            if is_attached and (
                trouble := attached_table.catch_up_collection(engine, collection_id, self._progress)
            ):
                self._contexts.warn(trouble)

            # Build a first index whole: sign, load bands, find pairs, cluster. It has the changes until then.
            existing = indexes.ensure_built(collection_id, signed)

            # Update an index in use by the queue of changes: sign and load bands, find pairs, cluster.
            dispatch_changes(engine)
            self._work_off(existing)
            return existing

    def _leaves_to_worker(self) -> bool:
        """Whether the user may not index what was written; a warning says so."""
        if not self.database.may_index:
            self._contexts.warn("what was written waits for a worker: this user may not index it")
        return not self.database.may_index

    def _work_off(self, generations: Sequence[Generation]) -> None:
        """Do the work that is queued for generations."""
        for generation in generations:
            if generation.state == "live":
                self._catch_up.catch_up(generation)
            elif generation.state in MAINTAINED:
                with self._catch_up.skip_irreproducible():
                    self._catch_up.catch_up(generation)
        with self.database.engine.connect(autocommit=True) as connection:
            partitions.analyze_refilled(connection)

    def _index_after_error(self, collection_id: CollectionId, signed: Sequence[Context] = ()) -> None:
        """Index what was written before an error; an error of this becomes a warning."""
        try:
            self._index(collection_id, signed)
        except Exception as error:
            command = suggested_command("build", self.collection)
            self._contexts.warn(f"what was written is not indexed yet ({error}); to index it: {command}")

    def create_collection(self) -> None:
        """Create the collection if it does not exist, and build its index, so that it answers while it is empty.

        It gets a profile with the default recipe, unless `create_profile` made one before. `on_duplicate` in an
        application's transaction needs this before there are documents.
        """
        self.database.refuse_borrowed("create_collection")
        with self.database.transaction() as connection:
            collection = collection_rows.ensure_collection(connection, self.collection)
        self._index(collection.collection_id, may_leave=False)

    def build(self) -> None:
        """Finish interrupted builds, and index what other applications wrote.

        Raises InputError if a new profile keeps documents by source (`cluster.keep`) and none has a source.
        """
        self.database.refuse_borrowed("a build")
        collection_id = self._collection_id()
        profiles.refuse_unusable_recipes(self.database, collection_id, only_new=True)
        self._index(collection_id, may_leave=False)

    def sweep(self) -> SweepResult:
        """Compare the whole attached table with its documents, and bring every profile up to date.

        The collections of values of its collection field are swept as well. Raises NotFoundError if the collection is
        not attached, or its table cannot be read now, InputError as `build`.
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
            # Before the builds, each of which finds its changes by an index once they are work.
            dispatch_changes(self.database.engine)
            self._work_off(self._catch_up.ensure_all_built(collection_ids))
        return swept

    def delete(
        self, external_ids: Iterable[str], *, purge: bool = False, rejects: Sequence[Path] = ()
    ) -> list[str]:
        """Delete documents from the collection and every index of it; return the ids that existed.

        With `purge` they are deleted as by the method `purge`, also from the files `rejects`.
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

        Waits for indexes that are being built. Raises InputError, before anything is done, for a file that is not a
        reject file.
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
        """Create a profile, and index the collection's documents. Raises ConflictError when the name is taken."""
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
            # A build in this process warns by itself, except of HTML.
            if has_documents and (recipe.normalise.html or not self.database.may_index):
                warning = profiles.warn_of_collection(connection, collection_id, profile)
                self.warnings.extend([warning] if warning is not None else [])
        if has_documents:
            self._index(collection_id)
        return profile

    def has_profile(self, name: str, recipe: Recipe | None) -> bool:
        """Whether the profile exists. Raises RecipeConflictError if it exists with another recipe than `recipe`."""
        newest = list_newest(self.database, self.collection) if self.has_collection() else []
        generations = {generation.profile: generation for generation in newest}
        if name in generations and recipe is not None:
            profiles.refuse_other_recipe(self.collection, generations[name], recipe)
        return name in generations

    def delete_profile(self, name: str) -> None:
        """Drop a profile and its index; the documents stay. Raises NotFoundError."""
        self.database.refuse_borrowed("delete_profile")
        profiles.drop(self.database, self._get_collection(), name)

    def pin(self, left: str, right: str, why: str, by: str | None = None) -> Verdict:
        """Decide that two documents belong together: they share a cluster from now on, however similar they are.

        Replaces an earlier verdict on the pair. `by` names who decides, by default the database user. Returns the
        verdict. Raises NotFoundError, and NearsimError for a verdict that is not possible, such as one without a
        reason.
        """
        return self._judge("pin", left, right, why, by)

    def veto(self, left: str, right: str, why: str, by: str | None = None) -> Verdict:
        """Decide, as `pin` does, that two documents do not belong together: they never share a cluster."""
        return self._judge("veto", left, right, why, by)

    def undo(self, left: str, right: str, why: str, by: str | None = None) -> Verdict:
        """Undo the verdict on two documents, and return it. Raises NotFoundError if there is none."""
        return self._judge("undo", left, right, why, by)

    def keep(
        self, external_id: str, why: str, by: str | None = None, *, undo: bool = False
    ) -> SurvivorChoice:
        """Choose a document as the survivor of its cluster, before the keep policy; the newest choice counts.

        With `undo` the document's newest choice is undone. It has no effect while the document is in no cluster.
        Returns the choice. Raises as `pin` does, and NotFoundError if there is nothing to undo.
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
        """Pin each labelled pair that is the same (True), and veto the others; return what changed.

        Pairs of unknown documents are counted and left out. With `dry_run` nothing is written.
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
        """Raise ConflictError if there is no index yet, or the application's transaction cannot see new documents."""
        self.database.refuse_snapshot("on_duplicate")
        try:
            self._lookups.live()
        except NotFoundError as error:
            who = "this transaction" if self.database.may_index else "a writer"
            by = "" if self.database.may_index else " as a nearsim_admin"
            raise ConflictError(
                f"{error}; {who} cannot build the index that on_duplicate needs: before, call{by} "
                f"create_collection() of an index with connections of its own, Index.connect(URL, "
                f"collection={self.collection!r})"
            ) from error

    def _open_for_writing(self, doing: str, *, create: bool) -> CollectionId:
        """Return the collection's id, `_NO_COLLECTION` if it does not exist. Raises ConflictError if it is attached."""
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
