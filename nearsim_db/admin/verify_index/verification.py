"""An index compared with its documents, and repaired if that is asked for: in place, or by another beside it."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from nearsim_db.admin.reindex import Reindex, select
from nearsim_db.admin.verify_index.bands import check_all_bands
from nearsim_db.admin.verify_index.clusters import check_clusters
from nearsim_db.admin.verify_index.documents import check_documents
from nearsim_db.admin.verify_index.findings import KEPT, Audit, Findings
from nearsim_db.admin.verify_index.pairs import check_pairs
from nearsim_db.admin.verify_index.repair import repair_in_place
from nearsim_db.admin.verify_index.tables import check_catalog, check_content, check_shapes
from nearsim_db.errors import DEFAULT, ConflictError, FingerprintError, RecipeError
from nearsim_db.indexing import drop_generation
from nearsim_db.indexing.catch_up import CatchUp
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.records import GenerationId, Progress, silent
from nearsim_db.search import live_generation
from nearsim_db.store import catalog
from nearsim_db.store import verify_index as store
from nearsim_db.store.catalog import Generation
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import damage_in, translated
from nearsim_db.store.generations import WORKABLE

SAMPLE = 1_000

_DOCUMENTS_AT_ONCE = 1_000
_ATTEMPTS = 3
_FEW = 100  # differences that are repaired one by one, however small the index is
_SHARE = 10  # and where more than every tenth differs, not


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found, and what came of the repair: `after` is what was found then, `rebuilt` the generation that was
    built for it; both are None where there was nothing to repair or it was not asked for."""

    collection: str
    profile: str
    found: Audit
    after: Audit | None = None
    rebuilt: GenerationId | None = None

    @property
    def is_repaired(self) -> bool:
        """Whether something differed and nothing does now."""
        return bool(self.found.faults) and self.after is not None and not self.after.faults

    @property
    def is_sound(self) -> bool:
        """Whether nothing differs, or nothing does now."""
        return not self.found.faults or self.is_repaired


def verify_index(
    database: Database,
    collection: str = DEFAULT,
    profile: str | None = None,
    *,
    generation: int | None = None,
    sample: int | None = SAMPLE,
    repair: bool = False,
    progress: Progress = silent,
    warn: Callable[[str], None] = lambda message: None,
    seed: int | None = None,
) -> Outcome:
    """Compare the live index of a profile, or a built generation, with the documents, in batches and beside writers.

    Looked at are `sample` documents, drawn by `seed`, and what belongs to them; with None all, and that nothing else
    is there. With `repair` what differs is taken out and made again, or all of it is built anew, and looked at again.
    Raises NotFoundError and ConflictError where there is nothing built, or it cannot be repaired.
    """
    with ContextFactory.open(database.settings, warn) as contexts:
        verifying = _Verifying(
            database,
            collection,
            sample,
            random.randrange(1 << 31) if seed is None else seed,
            progress,
            contexts,
        )
        return verifying.run(verifying.choose(profile, generation), repair=repair)


@dataclass(frozen=True, slots=True)
class _Verifying:
    database: Database
    collection: str
    sample: int | None
    seed: int
    progress: Progress
    contexts: ContextFactory

    def choose(self, profile: str | None, number: int | None) -> Generation:
        """The live generation of the profile, or a built one by its number."""
        with self.database.transaction() as connection:
            there = select.of_profile(connection, self.collection, profile)
            if number is None:
                return live_generation.choose_live(connection, self.collection, there, profile)
        chosen = select.by_id(there, number)
        if chosen.stage != "done" or chosen.state == "abandoned":
            raise ConflictError(
                f"generation {number} is {chosen.state} (stage {chosen.stage}); only one that is built can be verified"
            )
        return chosen

    def run(self, generation: Generation, *, repair: bool) -> Outcome:
        """Look at a generation, and repair it until nothing differs or nothing helps."""
        found, findings = self.examine(generation)
        outcome = Outcome(self.collection, generation.profile, found)
        if not repair or not found.faults:
            return outcome
        after = found
        for _ in range(_ATTEMPTS):
            if _is_beyond_repair(findings):
                return self._rebuild(generation, found)
            self._repair(generation, findings)
            after, findings = self.examine(generation)
            if not after.faults:
                break
        return Outcome(self.collection, generation.profile, found, after)

    def examine(self, generation: Generation) -> tuple[Audit, Findings]:
        """Look at a generation once, in snapshots that hold nobody up."""
        findings = Findings(generation)
        snapshots = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with translated(), self.database.engine.connect().execution_options(**snapshots) as connection:
            try:
                self._check(connection, findings)
            except Exception as error:
                connection.rollback()
                catalog.reread(connection, generation)
                connection.rollback()
                findings = self._find_damage(connection, generation, error)
            connection.rollback()
            return findings.audit(connection), findings

    def _check(self, connection: Connection, findings: Findings) -> None:
        check_catalog(connection, findings)
        try:
            context = self.contexts.make(findings.generation)
        except (FingerprintError, RecipeError) as error:
            findings.add_table("other_scheme", None, str(error))
            return
        if findings.is_damaged:
            return
        connection.rollback()
        if self.sample is None:
            self._check_all(connection, context, findings)
        else:
            self._check_sample(connection, context, findings, self.sample)

    def _check_all(self, connection: Connection, context: Context, findings: Findings) -> None:
        check_content(connection, findings, self.progress)
        if findings.is_damaged or check_shapes(connection, context, findings):
            return
        total = catalog.count_documents(connection, context.generation.collection_id)
        for doc_ids in _batches(connection, context):
            check_documents(connection, context, findings, doc_ids)
            check_pairs(connection, context, findings, doc_ids, both=False)
            self.progress("check", findings.checked["documents"], total)
        check_all_bands(connection, context, findings, self.progress)
        connection.rollback()
        self.progress("check_clusters", 0, None)
        check_clusters(connection, context, findings)

    def _check_sample(
        self, connection: Connection, context: Context, findings: Findings, amount: int
    ) -> None:
        collection_id = context.generation.collection_id
        chosen = store.sample_ids(connection, context.leaves, collection_id, amount, self.seed)
        looked_at = set(chosen)
        for at in range(0, len(chosen), _DOCUMENTS_AT_ONCE):
            connection.rollback()
            doc_ids = chosen[at : at + _DOCUMENTS_AT_ONCE]
            check_documents(connection, context, findings, doc_ids)
            stale = check_pairs(connection, context, findings, doc_ids, both=True)
            # What they were compared with may itself be wrong.
            check_documents(connection, context, findings, [one for one in stale if one not in looked_at])
            looked_at.update(stale)
            self.progress("check", at + len(doc_ids), len(chosen))
        connection.rollback()
        self.progress("check_clusters", 0, None)
        check_clusters(connection, context, findings, np.array(chosen, np.int64))

    def _find_damage(self, connection: Connection, generation: Generation, error: Exception) -> Findings:
        """Tell what stopped the rest: tables that cannot be read, or sketches that are none. Raises any other error."""
        findings = Findings(generation)
        if isinstance(error, ValueError):
            check_shapes(connection, self.contexts.make(generation), findings)
        elif damage_in(error) is not None:
            check_content(connection, findings, self.progress)
        if not findings.is_damaged and not findings.documents:
            raise error
        return findings

    def _repair(self, generation: Generation, findings: Findings) -> None:
        if generation.state not in WORKABLE:
            raise ConflictError(
                f"generation {generation.generation_id} is {generation.state}, so that no work is done for it: "
                f"first run: {generation.advice('reindex resume')}"
            )
        context = self.contexts.make(generation)
        catch_up = CatchUp(self.database, self.contexts, self.progress)
        repair_in_place(self.database, context, findings, catch_up.catch_up)

    def _rebuild(self, generation: Generation, found: Audit) -> Outcome:
        """Build another of the same recipe beside it, and let that answer once it was looked at as well."""
        if generation.state != "live":
            raise ConflictError(
                f"generation {generation.generation_id} is {generation.state} and cannot be repaired as it is: drop it "
                f"({generation.advice('reindex drop', '--generation', str(generation.generation_id))}), and build "
                f"another: {generation.advice('reindex start')}"
            )
        reindex = Reindex(
            self.database, self.collection, generation.profile, self.progress, self.contexts.warn
        )
        begun = reindex.start()
        after, _ = self.examine(begun)
        if after.faults:
            self.contexts.warn(
                f"generation {begun.generation_id} was built anew and differs too; it was not promoted"
            )
        else:
            reindex.promote()
            if not drop_generation.drop(self.database.engine, generation).finished:
                self.contexts.warn(
                    f"generation {generation.generation_id} is still read; a worker drops it after"
                )
        return Outcome(self.collection, generation.profile, found, after, begun.generation_id)


def _batches(connection: Connection, context: Context) -> Iterator[list[int]]:
    """All documents and all signatures by doc_id, each batch in a snapshot of its own."""
    after, collection_id = 0, context.generation.collection_id
    connection.rollback()
    while doc_ids := store.ids_after(connection, context.leaves, collection_id, after, _DOCUMENTS_AT_ONCE):
        yield doc_ids
        after = doc_ids[-1]
        connection.rollback()
    connection.rollback()


def _is_beyond_repair(findings: Findings) -> bool:
    """Whether tables are damaged, or so much differs that all of it is faster done again."""
    differing = findings.differing
    return findings.is_damaged or any(
        amount >= KEPT or (amount > _FEW and amount * _SHARE > findings.checked[what])
        for what, amount in differing.items()
    )
