"""The first build of few documents: all stages in one transaction, as slices and their progress would cost more.

Nothing is left of one that is interrupted. Writes meanwhile are captured, as beside any build.
"""

from itertools import chain

from nearsim_db.indexing import build_bands, build_plan, steps
from nearsim_db.indexing.build_slices import Taker
from nearsim_db.indexing.context import Context
from nearsim_db.store import (
    build_slices,
    collection_rows,
    documents,
    generation_rows,
    generations,
    signatures,
)
from nearsim_db.store.attached import attachments
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.locks import Lock, take_transaction_lock

MOST_DOCUMENTS = 8


def build(engine: Engine, context: Context) -> bool:
    """Build a generation whose build has not begun, if its collection has few documents; return whether it is built.

    Raises BuildStoppedError if it was paused or abandoned.
    """
    generation, leaves = context.generation, context.leaves
    with engine.connect() as connection:
        # A purge waits for this transaction, or this for the purge.
        take_transaction_lock(connection, Lock.STORE, leaves.generation_id, shared=True)
        counted = _count_documents(connection, context)
        if counted is None:
            return False
        taker = Taker(connection, connection, context, lambda: None)
        context.found.clear()
        _sign(connection, context)
        build_plan.finish_signing(connection, context)
        build_bands.load_few(connection, context)
        taker.find_pairs(build_slices.WHOLE)
        steps.rebuild_clusters(connection, context)
        build_slices.delete_slices(connection, leaves)
        generation_rows.add_figures(connection, generation, {**context.found.counts, "documents": counted})
        # The row is locked from here on, so the build cannot be paused between this check and its end.
        generation_rows.set_stage(connection, generation, "done")
        build_plan.check_not_stopped(connection, generation)
        generations.finish_build(connection, generation)
        connection.commit()
        context.found.clear()
    return True


def _sign(connection: Connection, context: Context) -> None:
    """Sign the documents that have no signature."""
    whole = (0, build_slices.WHOLE.high)
    unsigned = documents.stream_unsigned(
        connection, context.collection_id, context.leaves, whole, None, vectors=context.encoder.takes_vectors
    )
    # They are read before a signature is written, on the same session.
    batch = list(chain.from_iterable(unsigned))
    context.build.sample_texts(batch)
    rows = steps.labelled(connection, context, steps.sign_documents(context, batch))
    signatures.write_signatures(connection, context.leaves, rows, rows.doc_ids)


def _count_documents(connection: Connection, context: Context) -> int | None:
    """Return the number of documents; None if they are many, expire or are elsewhere, or the build has begun."""
    generation = generation_rows.reread(connection, context.generation)
    is_new = generation.is_first_build and generation.stage == "sign" and "began" not in generation.figures
    is_local = generation.leaves.are_shared and not generation.leaves.distributed
    if not is_new or not is_local or context.retained_seconds is not None:
        return None
    if attachments.find_attachment(connection, generation.collection_id) is not None:
        return None
    counted = collection_rows.count_documents(connection, generation.collection_id, MOST_DOCUMENTS + 1)
    return counted if counted <= MOST_DOCUMENTS else None
