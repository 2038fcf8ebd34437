"""Create and drop profiles: a recipe for one collection, with the generations built from it.

Shingles that are too short for the documents, measured on a sample of them, produce a warning.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nearsim_db.errors import InputError, NearsimError, NotFoundError, RecipeConflictError, RecipeError
from nearsim_db.indexing.ingest.account import IngestAccount
from nearsim_db.records import CollectionId
from nearsim_db.similarity import k_rule
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve, restore
from nearsim_db.similarity.recipe import (
    MatchRules,
    Recipe,
    from_mapping,
    keep_policy,
    refuse_unusable_keep,
    to_mapping,
    with_earlier_values,
)
from nearsim_db.similarity.recipe.conversion import differing_keys
from nearsim_db.similarity.recipe.sections import NOWHERE
from nearsim_db.store import query_rows
from nearsim_db.store.access.collection_rows import Collection
from nearsim_db.store.attached.attachments import refuse_attached, refuse_lost_texts
from nearsim_db.store.database import Database
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import generation_rows, generation_states
from nearsim_db.store.generations.generation_rows import Generation


def create(connection: Connection, collection_id: CollectionId, name: str, profile: Profile) -> Generation:
    """Create a profile with its first generation, not built yet.

    Raises ConflictError when the name is taken or as `refuse_delete` does, InputError as `refuse_unusable` does.
    """
    refuse_unusable(connection, collection_id, to_mapping(profile.recipe))
    refuse_delete(connection, collection_id, profile.recipe)
    return generation_rows.create_profile(connection, collection_id, name, profile)


# For workers and applications, too, which have no options of a command.
_KEEP_REMEDIES = {
    "source": "store one in the column source of nearsim.document (nearsim ingest --source-field FIELD)",
    "highest": "name another attribute",
}


def refuse_unusable(
    connection: Connection, collection_id: CollectionId, recipe: Mapping[str, Any], *, adds: bool = False
) -> None:
    """Raise InputError if the collection has documents, and none has a field of `match` or of a keep policy.

    Raises RecipeError for a policy that an index of this linkage does not have, and ConflictError if texts are gone.
    `adds`: a dry run would add documents without a source.
    """
    refuse_lost_texts(connection, collection_id)
    _refuse_absent_fields(connection, collection_id, from_mapping(with_earlier_values(recipe)).match)
    keep = recipe["cluster"]["keep"]
    if keep == "central" and recipe["cluster"]["linkage"] == "representative":
        raise RecipeError(
            "cluster.keep is 'central', but representatives are kept, which are chosen before a document is in a "
            "cluster; set cluster.linkage to connected or average"
        )
    names = keep_policy(keep)[1]

    def has_field(policy: str) -> bool:
        if policy == "highest":
            return not documents.lacks_values(connection, collection_id, names[0], numbers=True)
        return policy != "source" or not query_rows.lacks_sources(connection, collection_id, adds=adds)

    refuse_unusable_keep(keep, has_field, _KEEP_REMEDIES)


def _refuse_absent_fields(connection: Connection, collection_id: CollectionId, match: MatchRules) -> None:
    """Raise InputError if no document has a field that decides which pairs count."""
    given = [("within", name) for name in match.fields_within]
    given += [("across", match.across)] if match.across != NOWHERE else []
    for key, name in given:
        if documents.lacks_values(connection, collection_id, name):
            missing = "there are no pairs" if key == "across" else "all documents would agree in it"
            raise InputError(
                f"match.{key} is {name!r}, but no document has a value of it, so {missing}; name source or an "
                "attribute that documents have"
            )


def refuse_unusable_recipes(
    database: Database,
    collection_id: CollectionId,
    tried: IngestAccount | None = None,
    planned: Recipe | None = None,
    existing: Sequence[Generation] | None = None,
    *,
    only_new: bool = False,
) -> None:
    """Raise InputError as `refuse_unusable` does, for documents that are stored or of a dry run.

    `existing` are the collection's generations, if they were just read.

    The profiles are the live ones and those not built yet, or only the latter, and the one of a planned recipe.
    """
    has_source = tried is not None and tried.has_source
    adds = tried is not None and tried.summary.inserted > 0 and not has_source
    with database.transaction() as connection:
        found = existing or generation_rows.list_generations(connection, collection_id)
        used = [one for one in found if one.is_first_build or (one.state == "live" and not only_new)]
        recipes = [] if has_source else [one.recipe for one in used]
        for recipe in recipes if planned is None else [*recipes, to_mapping(planned)]:
            refuse_unusable(connection, collection_id, recipe, adds=adds)


def refuse_delete(connection: Connection, collection_id: CollectionId, recipe: Recipe) -> None:
    """Raise ConflictError for a recipe that deletes documents (`retain.delete`) if the collection is attached."""
    if recipe.retain.delete:
        refuse_attached(connection, collection_id, "retain.delete cannot delete its rows; delete them")


def refuse_other_recipe(collection: str, generation: Generation, recipe: Recipe) -> None:
    """Raise RecipeConflictError if a generation has another fingerprint than the recipe would give it."""
    if generation.fingerprint != resolve(recipe).fingerprint:
        differs = differing_keys(generation.recipe, to_mapping(recipe))
        raise RecipeConflictError(collection, generation.profile, differs)


def is_refused(generation: Generation) -> bool:
    """Whether this version cannot write to a generation, as its sketches would differ; never for abandoned ones."""
    if generation.state == "abandoned":
        return False
    try:
        restore(generation.recipe, generation.fingerprint, generation.bands, generation.rows)
    except NearsimError:
        return True
    return False


def list_refused(connection: Connection) -> list[Generation]:
    """Return the generations that this version cannot write to, without restoring equal recipes again."""
    refused = [
        one.fingerprint
        for one in generation_rows.list_generations(connection, only="recipes")
        if is_refused(one)
    ]
    if not refused:
        return []
    existing = generation_rows.list_generations(connection)
    return [one for one in existing if one.fingerprint in refused and is_refused(one)]


def remedy(refused: Generation) -> str:
    """Return what to do about a generation that this version cannot write to."""
    if refused.state == "live":
        return f"{refused.advice('reindex start')} rebuilds it, or use the earlier version"
    if refused.state == "retired":
        return (
            f"{refused.advice('reindex drop', '-g', str(refused.generation_id))}, or use the earlier version"
        )
    if refused.replaces is not None:
        return f"{refused.advice('reindex abandon')}, or use the earlier version"
    return "use the earlier version"


def drop(database: Database, collection: Collection, name: str) -> None:
    """Drop a profile with all its generations; the documents stay. Builds of it stop at their next step.

    Can be run again if killed. Raises NotFoundError.
    """
    # Commands that only show profiles do not import what drops them.
    from nearsim_db.indexing.drop_generation import finish

    collection_id = collection.collection_id
    with database.transaction() as connection:
        if name not in generation_rows.profile_names(connection, collection_id):
            raise NotFoundError(f"collection {collection.name!r} has no profile {name!r}")
        generation_states.mark_abandoned(connection, _of_profile(connection, collection_id, name))
    with database.builder(collection_id):
        with database.transaction() as connection:
            existing = _of_profile(connection, collection_id, name)
        for generation in existing:
            finish(database.engine, generation)
        with database.transaction() as connection:
            generation_rows.delete_profile(connection, collection_id, name)


def _of_profile(connection: Connection, collection_id: CollectionId, name: str) -> list[Generation]:
    return [one for one in generation_rows.list_generations(connection, collection_id) if one.profile == name]


_SEED = 1


def warn_of_index(
    connection: Connection, generation: Generation, profile: Profile, backend: str | None = None
) -> str | None:
    """Return a warning for a profile and the documents that a generation has signed, None if there is none."""
    if not k_rule.applies(profile):
        return None
    heads = generation.tables(connection).signatures.sample_heads(k_rule.SAMPLE_SIZE)
    return warn_of_documents(connection, generation.collection_id, heads, profile, backend)


def warn_of_collection(connection: Connection, collection_id: CollectionId, profile: Profile) -> str | None:
    """Return a warning for a profile and the documents of a collection, None if there is none."""
    if not k_rule.applies(profile):
        return None
    sampled = documents.sample_documents(connection, collection_id, k_rule.SAMPLE_SIZE, _SEED)
    return warn_of_documents(connection, collection_id, sampled, profile, None)


def warn_of_documents(
    connection: Connection,
    collection_id: CollectionId,
    doc_ids: Sequence[int],
    profile: Profile,
    backend: str | None,
) -> str | None:
    """Return a warning for a profile and some documents, None if there is none."""
    encoder = Encoder(profile, backend)
    texts = [
        encoder.text_of(one.title, one.body)
        for batch in documents.stream_documents(connection, collection_id, doc_ids)
        for one in batch
    ]
    return k_rule.warning(profile, texts, backend)
