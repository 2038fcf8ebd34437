"""Attach: a collection follows a table of an application, whose texts stay where they are."""

from dataclasses import dataclass
from functools import partial

from nearsim_db.errors import ConflictError, InputError
from nearsim_db.index import Index
from nearsim_db.indexing import attached_table, collections
from nearsim_db.indexing.attached_table import SweepResult
from nearsim_db.records import Progress, silent
from nearsim_db.similarity.recipe import Recipe, to_mapping
from nearsim_db.store import catalog, documents
from nearsim_db.store.attached import attachments, source_rows, tables
from nearsim_db.store.attached.attachments import Attachment
from nearsim_db.store.attached.tables import Columns, Relation
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import translated


@dataclass(frozen=True, slots=True)
class Following:
    """A collection that follows a table from now on; what was there before is still to be taken in."""

    collection: str
    table: str
    columns: Columns
    warnings: tuple[str, ...]


def follow_table(
    database: Database, table: str, columns: Columns, collection: str | None = None
) -> Following:
    """Let a collection, that of the table's name if none is named, follow a table from now on.

    Done again, it may name other columns. Raises NotFoundError for what is not there, InputError for a table that
    cannot be followed, ConflictError for a collection that has documents of its own or another table.
    """
    with database.transaction() as connection:
        relation = tables.find_relation(connection, table)
        tables.refuse_relation(relation)
        found = tables.name_columns(connection, relation, columns)
        tables.refuse_columns(connection, relation, found)
        warnings = _warnings(connection, relation, found)
    name = relation.name if collection is None else collection
    if not name.strip():
        raise ConflictError("a collection needs a name")
    with translated(), database.engine.connect() as connection:
        attached_table.with_exclusive_lock(
            connection, relation.shown, partial(_attach, connection, relation, found, name)
        )
    return Following(name, relation.shown, found, warnings)


def _attach(connection: Connection, relation: Relation, columns: Columns, name: str) -> None:
    """One transaction: from its end on nothing is missed."""
    collection = catalog.ensure_collection(connection, name)
    before = attachments.find_attachment(connection, collection.collection_id)
    if before is None and documents.any_document(connection, collection.collection_id):
        raise ConflictError(
            f"collection {name!r} has documents of its own; give another name with --collection"
        )
    if before is not None and before.detaching:
        keep = "" if before.table is None else " --keep"
        raise ConflictError(
            f"collection {name!r} is being detached from {before.table or 'a table that is gone'}; run first: "
            f"{attachments.detach_command(name)}{keep}"
        )
    if before is not None and (before.relation, before.columns.id) != (relation.oid, columns.id):
        raise ConflictError(
            f"collection {name!r} follows {before.table or 'a table that is gone'} by {before.columns.id!r} already; "
            f"run first: {attachments.detach_command(name)}"
        )
    attachments.store_attachment(connection, collection.collection_id, relation, columns)
    attachments.create_triggers(connection, collection.collection_id, relation, columns)
    connection.commit()


def _warnings(connection: Connection, relation: Relation, columns: Columns) -> tuple[str, ...]:
    warnings = []
    there = tables.read_columns(connection, relation)
    owner = there[columns.id].our_owner
    grants = []
    if not relation.may_our_owner_use_schema:
        grants.append(f"GRANT USAGE ON SCHEMA {relation.shown_schema} TO {owner}")
    if not all(there[one].is_readable_to_owner for one in columns.named().values()):
        grants.append(f"GRANT SELECT ON {relation.shown} TO {owner}")
    if grants:
        warnings.append(
            f"functions of the schema nearsim run as {owner}, who may not read {relation.shown}: in SQL, body_of gives "
            f"none of its texts until you {'; '.join(grants)}"
        )
    if not relation.is_owner_trusted:
        warnings.append(
            f"{relation.owner} owns {relation.shown} and can run code with the rights of whoever reads it, as workers "
            "do: attach only tables of owners you trust as much, and run no worker as a superuser otherwise"
        )
    return tuple(warnings)


def refuse_vectors(recipe: Recipe) -> None:
    """Raise InputError for a recipe that compares vectors: those of a table that is followed are not taken in."""
    if recipe.sketch.input == "vector":
        raise InputError(
            "a table is followed for its texts, and this recipe compares vectors: put documents with their vectors "
            "into a collection of their own, by plain SQL into nearsim.document or with nearsim ingest"
        )


def take_in(index: Index, profile: str, recipe: Recipe | None) -> SweepResult:
    """Take in what the table holds and build the profile, made if it is not there; interrupted, it is run again.

    Raises ConflictError where the profile is there with another recipe than the one given.
    """
    made = {generation.profile: known.recipe for generation, known in index.profiles()}
    if profile not in made:
        index.create_profile(profile, recipe or Recipe())
    elif recipe is not None and to_mapping(made[profile]) != to_mapping(recipe):
        raise ConflictError(
            f"collection {index.collection!r} has a profile {profile!r} of another recipe; name another with --profile"
        )
    return index.sweep()


def detach(database: Database, name: str, *, keep: bool, progress: Progress = silent) -> int:
    """Let a collection follow its table no more; returns how many documents went, or with `keep` how many stay.

    The collection goes with its index, or becomes an ordinary one that has the texts itself. Raises NotFoundError for
    one that follows nothing; InputError where texts are to be kept that are gone.
    """
    with database.transaction() as connection:
        collection = catalog.get_collection(connection, name)
        attachment = attachments.get_attachment(connection, collection.collection_id, name)
    if not keep:
        return collections.delete_collection(database, name)
    if attachment.table is None:
        raise InputError(
            f"the table that collection {name!r} follows is gone, and with it the texts: nothing of them can be kept; "
            f"without --keep the collection goes, too"
        )
    with translated(), database.builder(collection.collection_id):
        with database.engine.connect() as connection:
            source_rows.get_source(connection, collection.collection_id)
        attached_table.catch_up(database.engine)
        attached_table.drop_triggers(database.engine, collection.collection_id)
        attached_table.copy_texts(database.engine, collection.collection_id, progress)
    return database.count_documents(collection)


def list_attachments(database: Database) -> list[Attachment]:
    """All collections that follow a table."""
    with database.transaction() as connection:
        return attachments.list_attachments(connection)
