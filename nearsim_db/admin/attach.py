"""Attach a collection to an application's table, which keeps the texts; detach it, or undo a failed attachment.

If a field of the table names the collection of each row, each value of the field gets a collection too.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from nearsim_db.errors import BuildStoppedError, ConflictError, DatabaseError, InputError, NearsimError
from nearsim_db.index import Index
from nearsim_db.indexing import attached_marks, attached_table, drop_generation, profiles
from nearsim_db.indexing.attached_sweep import SweepResult
from nearsim_db.records import CollectionId, Progress, silent
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store import query_rows
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import attachments, obstacles, source_rows, tables
from nearsim_db.store.attached.attachments import Attachment
from nearsim_db.store.attached.tables import Column, Columns, Relation
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import is_transient, translate_errors
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.generations import generation_rows


@dataclass(frozen=True, slots=True)
class Attached:
    """A collection that was attached to a table; the rows of the table are not ingested yet."""

    collection: str
    table: str
    columns: Columns
    warnings: tuple[str, ...]
    had_collection: bool  # whether the collection existed before
    was_attached: bool  # whether the collection was attached before
    profiles_before: frozenset[str]  # names of the profiles that the collection had before


def attach_table(database: Database, table: str, columns: Columns, collection: str | None = None) -> Attached:
    """Attach a collection to a table, so that later changes of its rows are captured.

    By default the collection has the name of the table. Attaching again may change the columns. Raises NotFoundError
    for a missing table or column, InputError for a table that cannot be attached, and ConflictError if the collection
    already has documents or another table.
    """
    with database.transaction() as connection:
        relation = tables.find_relation(connection, table)
        obstacles.check_table(connection, relation)
        resolved = tables.resolve_columns(connection, relation, columns)
        obstacles.check_columns(connection, relation, resolved)
        if resolved.collection_field is not None:
            resolved = tables.of_value(
                resolved, tables.read_columns(connection, relation)[resolved.collection_field], None
            )
        warnings = _warnings(connection, relation, resolved)

    name = relation.name if collection is None else collection
    if not name.strip():
        raise ConflictError("the collection name must not be empty")

    # Triggers are created while no transaction writes to the table.
    with translate_errors(), database.engine.connect() as connection:
        before = attached_table.with_exclusive_lock(
            connection, relation.shown, partial(_attach, connection, relation, resolved, name)
        )
    return Attached(name, relation.shown, resolved, warnings, *before)


def write_marks(database: Database, collection: str) -> None:
    """Write the mark column of a collection's attached table. Raises ConflictError if it cannot be written."""
    with database.transaction() as connection:
        collection_id = collection_rows.get_collection(connection, collection).collection_id
    trouble = attached_marks.write_marks(database.engine, collection_id)
    if trouble is not None:
        raise ConflictError(trouble)


def _attach(
    connection: Connection, relation: Relation, columns: Columns, name: str
) -> tuple[bool, bool, frozenset[str]]:
    """Store the attachment and create its triggers in one transaction; changes are captured from the commit on.

    Returns whether the collection existed before, whether it was attached, and which profiles it had.
    """
    existed = collection_rows.find_collection(connection, name) is not None
    collection = collection_rows.ensure_collection(connection, name)
    before = attachments.find_attachment(connection, collection.collection_id)
    profiles = frozenset(generation_rows.profile_names(connection, collection.collection_id))

    if before is None and query_rows.has_documents(connection, collection.collection_id):
        raise ConflictError(
            f"collection {name!r} has documents of its own; give another name with --collection"
        )
    if before is not None:
        _refuse_attached(before, name, relation, columns, tables.read_columns(connection, relation))

    attachments.store_attachment(connection, collection.collection_id, relation, columns)
    attachments.create_triggers(connection, collection.collection_id, relation, columns)
    _store_of_values(connection, collection.collection_id, relation, columns)
    connection.commit()
    return existed, before is not None, profiles


def _store_of_values(
    connection: Connection, parent: CollectionId, relation: Relation, columns: Columns
) -> None:
    """Store the new columns for the existing collections of values, too."""
    if columns.collection_field is not None:
        field = tables.read_columns(connection, relation)[columns.collection_field]
        for of_value in attachments.list_of_values(connection, parent):
            value_columns = tables.of_value(columns, field, of_value.value)
            attachments.store_attachment(
                connection, of_value.collection_id, relation, value_columns, parent, of_value.value
            )


def _refuse_attached(
    attachment: Attachment, name: str, relation: Relation, columns: Columns, available: Mapping[str, Column]
) -> None:
    """Raise ConflictError if a collection is being detached, or is attached to another table or by another key column.

    Another key column is allowed if the present one was renamed or dropped.
    """
    table, detach = attachment.table or "a table that was dropped", attachments.detach_command(name)

    if attachment.detaching:
        keep = "" if attachment.table is None else " --keep"
        raise ConflictError(f"collection {name!r} is being detached from {table}; run first: {detach}{keep}")
    if attachment.parent is not None:
        raise ConflictError(
            f"collection {name!r} has the rows of one value of {attachment.columns.collection_field} and belongs to "
            f"{attachment.attached_as!r}: attach that again"
        )
    if attachment.columns.collection_field != columns.collection_field:
        raise ConflictError(
            f"collection {name!r} is attached with another --collection-field, {attachment.columns.collection_field}; "
            f"run first: {detach}"
        )

    is_same_key = attachment.columns.id == columns.id or attachment.columns.id not in available
    if attachment.relation != relation.oid or not is_same_key:
        raise ConflictError(
            f"collection {name!r} is attached to {table} by {attachment.columns.id!r}; run first: {detach}"
        )


def _warnings(connection: Connection, relation: Relation, columns: Columns) -> tuple[str, ...]:
    """Return a warning with the missing grants if the schema's owner lacks the rights to read the texts in SQL."""
    existing = tables.read_columns(connection, relation)
    owner = existing[columns.id].our_owner
    grants = []
    if not relation.may_our_owner_use_schema:
        grants.append(f"GRANT USAGE ON SCHEMA {relation.shown_schema} TO {owner}")
    if not all(existing[name].is_readable_to_owner for name in columns.read()):
        grants.append(f"GRANT SELECT ON {relation.shown} TO {owner}")
    if not grants:
        return ()
    return (
        f"in SQL, body_of reads attached tables as {owner}, who may not read {relation.shown}: it returns none of "
        f"its texts until you {'; '.join(grants)}",
    )


def refuse_vectors(recipe: Recipe) -> None:
    """Raise InputError for a recipe that compares vectors, because attached tables provide only texts."""
    if recipe.sketch.input == "vector":
        raise InputError(
            "an attached table provides texts, and this recipe compares vectors: put documents with vectors into a "
            "collection of their own, with SQL into nearsim.document or with nearsim ingest"
        )


def ingest_table(index: Index, profile: str, recipe: Recipe | None) -> SweepResult:
    """Ingest the attached table and build the profile, which is created if it is missing.

    Safe to rerun if interrupted. Raises RecipeConflictError if `recipe` is passed and the profile has another recipe.
    """
    if not index.has_profile(profile, recipe):
        index.create_profile(profile, recipe or Recipe())
    return index.sweep()


@dataclass(frozen=True, slots=True)
class Detached:
    """Collections that were detached."""

    collections: tuple[str, ...]  # the collection of the table first, then the collections of its values
    documents: int  # the number of documents in all of them


def detach(database: Database, name: str, *, keep: bool, progress: Progress = silent) -> Detached:
    """Detach a collection, and the collections of the table's values, from the table.

    The collections are deleted with their indexes or, with `keep`, get copies of the texts. Raises NotFoundError if the
    collection is not attached, ConflictError if it is the collection of a value, and InputError if the texts to keep
    were dropped with their table.
    """
    with database.transaction() as connection:
        collection = collection_rows.get_collection(connection, name)
        attachment = attachments.get_attachment(connection, collection.collection_id, name)
        of_values = attachments.list_of_values(connection, collection.collection_id)
    if attachment.parent is not None:
        whole = attachments.detach_command(attachment.attached_as)
        raise ConflictError(
            f"collection {name!r} has the rows of one value of {attachment.columns.collection_field}; to detach the "
            f"table: {whole}"
        )

    if not keep:
        names = (name, *(of_value.collection for of_value in of_values))
        return Detached(names, drop_generation.delete_collection(database, name))
    if attachment.table is None:
        raise InputError(
            f"the table of collection {name!r} was dropped with its texts, which cannot be kept; without --keep, the "
            "collection is deleted too"
        )

    with translate_errors(), database.builder(collection.collection_id):
        with database.engine.connect() as connection:
            source_rows.get_source(connection, collection.collection_id)
        # Apply the changes captured so far before the triggers are dropped.
        attached_table.catch_up(database.engine)
        of_values = attached_table.drop_triggers(database.engine, collection.collection_id)
        for of_value in of_values:
            with database.builder(of_value.collection_id):
                attached_table.copy_texts(database.engine, of_value.collection_id, progress)
        attached_table.copy_texts(database.engine, collection.collection_id, progress)

    names_by_id = {collection.collection_id: name}
    names_by_id |= {of_value.collection_id: of_value.collection for of_value in of_values}
    with database.transaction() as connection:
        documents = sum(collection_rows.count_documents(connection, id) for id in names_by_id)
    return Detached(tuple(names_by_id.values()), documents)


def list_attachments(database: Database) -> list[Attachment]:
    """Return the attachments of all collections, each with the reason if changes of its table are not followed now."""
    with database.transaction() as connection:
        problems = obstacles.list_problems(connection)
        return [
            replace(attachment, trouble=problems.get(attachment.collection))
            for attachment in attachments.list_attachments(connection)
        ]


@contextmanager
def undo_if_failed(database: Database, attached: Attached) -> Iterator[None]:
    """Undo a new attachment if the block fails.

    After an interruption, a lost connection, a full disk or a paused build, the attachment stays, so that attaching
    again continues.
    """
    try:
        yield
    except Exception as error:
        cause = error.__cause__
        is_lost = isinstance(cause, Exception) and is_transient(cause)
        if attached.was_attached or is_lost or isinstance(error, BuildStoppedError):
            raise

        try:
            _undo(database, attached)
        except NearsimError as failure:
            command = attachments.detach_command(attached.collection)
            message = f"{error}; the attachment could not be undone ({failure}); run: {command}"
            raise DatabaseError(message) from error
        raise


def _undo(database: Database, attached: Attached) -> None:
    """Drop the triggers, and delete the documents, the profiles and the collection that the attachment created."""
    if not attached.had_collection:
        drop_generation.delete_collection(database, attached.collection)
        return

    with database.transaction() as connection:
        collection = collection_rows.get_collection(connection, attached.collection)
        created = (
            generation_rows.profile_names(connection, collection.collection_id) - attached.profiles_before
        )
    for name in created:
        profiles.drop(database, collection, name)

    with translate_errors():
        attached_table.drop_triggers(database.engine, collection.collection_id)
    with database.transaction() as connection:
        take_transaction_lock(connection, Lock.ATTACHED_UPDATE, collection.collection_id)
        attachments.delete_attached_documents(connection, collection.collection_id)
        attachments.delete_attachment(connection, collection.collection_id)
