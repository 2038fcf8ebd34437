"""Create, check and drop profiles. A profile is a recipe for one collection, with the generations built from it.

A recipe cannot be used if no document has a field that it relies on, if its keep policy does not fit the linkage, or if
the texts of the collection are lost. Shingles that are too short for a sample of the documents produce a warning. This
version does not write to a generation for which it would compute different sketches, and suggests a remedy.
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
    KeepRule,
    MatchRules,
    Recipe,
    from_mapping,
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

_SAMPLE_SEED = 1


def create(connection: Connection, collection_id: CollectionId, name: str, profile: Profile) -> Generation:
    """Create a profile with its first generation, which is not built yet.

    Raises ConflictError if the name is taken, and the errors of `refuse_unusable` and `refuse_delete`.
    """
    refuse_unusable(connection, collection_id, to_mapping(profile.recipe))
    refuse_delete(connection, collection_id, profile.recipe)
    return generation_rows.create_profile(connection, collection_id, name, profile)


# Workers and applications show these remedies too, so they do not name options of a particular command.
_KEEP_REMEDIES = {
    "source": "store one in the column source of nearsim.document (nearsim ingest --source-field FIELD)",
    "highest": "name another attribute",
    "has": "name title, text, source, url, published_at or an attribute that documents have",
}


def refuse_unusable(
    connection: Connection, collection_id: CollectionId, recipe: Mapping[str, Any], *, adds: bool = False
) -> None:
    """Check that a recipe can be used for the documents of a collection.

    Raises InputError if there are documents, but none has a field of `match` or of the keep policy. Raises RecipeError
    if the keep policy does not work with the linkage, and ConflictError if the texts are lost. `adds` says that a dry
    run would add documents without a source.
    """
    refuse_lost_texts(connection, collection_id)
    _refuse_absent_fields(connection, collection_id, from_mapping(with_earlier_values(recipe)).match)

    rules = from_mapping(with_earlier_values(recipe)).cluster
    if rules.policy.is_central and rules.linkage == "representative":
        raise RecipeError(
            "cluster.keep is 'central', but representatives are kept, which are chosen before a document is in a "
            "cluster; set cluster.linkage to connected or average"
        )

    def has_value(rule: KeepRule) -> bool:
        match rule.kind:
            case "highest":
                return not documents.lacks_values(connection, collection_id, rule.names[0], numbers=True)
            case "has":
                return not documents.lacks_rank(connection, collection_id, rule)
            case "source":
                return not query_rows.lacks_sources(connection, collection_id, adds=adds)
            case _:
                # Every document has at least the date on which it was added.
                return True

    refuse_unusable_keep(rules.policy, has_value, _KEEP_REMEDIES)


def _refuse_absent_fields(connection: Connection, collection_id: CollectionId, match: MatchRules) -> None:
    """Raise InputError if no document has a field of the rules that decide which pairs count."""
    fields = [("within", name) for name in match.fields_within]
    fields += [("across", match.across)] if match.across != NOWHERE else []
    for key, name in fields:
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
    """Check the recipes of a collection's live profiles, and of profiles not built yet, with `refuse_unusable`.

    tried: the account of a dry run, whose documents count as stored. planned: the recipe of a profile to be created.
    existing: the collection's generations, if they have just been read. only_new: leave out live profiles.
    """
    has_source = tried is not None and tried.has_source
    adds = tried is not None and tried.summary.inserted > 0 and not has_source
    with database.transaction() as connection:
        generations = existing or generation_rows.list_generations(connection, collection_id)
        recipes = [
            generation.recipe
            for generation in generations
            if generation.is_first_build or (generation.state == "live" and not only_new)
        ]
        # If documents of the dry run have a source, all these recipes can be used.
        if has_source:
            recipes = []
        if planned is not None:
            recipes.append(to_mapping(planned))

        for recipe in recipes:
            refuse_unusable(connection, collection_id, recipe, adds=adds)


def refuse_delete(connection: Connection, collection_id: CollectionId, recipe: Recipe) -> None:
    """Raise ConflictError if a recipe deletes documents (`retain.delete`) but the collection is attached to a table."""
    if recipe.retain.delete:
        refuse_attached(connection, collection_id, "retain.delete cannot delete its rows; delete them")


def refuse_other_recipe(collection: str, generation: Generation, recipe: Recipe) -> None:
    """Raise RecipeConflictError if a generation was made with another recipe."""
    if generation.fingerprint != resolve(recipe).fingerprint:
        differs = differing_keys(generation.recipe, to_mapping(recipe))
        raise RecipeConflictError(collection, generation.profile, differs)


def is_refused(generation: Generation) -> bool:
    """Whether this version cannot write to a generation, because it would make different sketches.

    False for an abandoned generation.
    """
    if generation.state == "abandoned":
        return False
    try:
        restore(generation.recipe, generation.fingerprint, generation.bands, generation.rows)
    except NearsimError:
        return True
    return False


def list_refused(connection: Connection) -> list[Generation]:
    """Return the generations that this version cannot write to."""
    # To find the refused recipes, one generation of each is enough: thousands of generations may share a few recipes.
    fingerprints = {
        generation.fingerprint
        for generation in generation_rows.list_generations(connection, only="recipes")
        if is_refused(generation)
    }
    if not fingerprints:
        return []
    return [
        generation
        for generation in generation_rows.list_generations(connection)
        if generation.fingerprint in fingerprints and is_refused(generation)
    ]


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
    """Drop a profile with all its generations; the documents stay. Its builds stop at their next step.

    Safe to rerun if interrupted. Raises NotFoundError if there is no such profile.
    """
    # Imported here, so that commands that only show profiles do not load tenacity.
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
    existing = generation_rows.list_generations(connection, collection_id)
    return [generation for generation in existing if generation.profile == name]


def warn_of_index(
    connection: Connection, generation: Generation, profile: Profile, backend: str | None = None
) -> str | None:
    """Return a warning if shingles are too short for the documents of a generation, else None."""
    if not k_rule.applies(profile):
        return None
    heads = generation.tables(connection).signatures.sample_heads(k_rule.SAMPLE_SIZE)
    return warn_of_documents(connection, generation.collection_id, heads, profile, backend)


def warn_of_collection(connection: Connection, collection_id: CollectionId, profile: Profile) -> str | None:
    """Return a warning if shingles are too short for the documents of a collection, else None."""
    if not k_rule.applies(profile):
        return None
    sampled = documents.sample_documents(connection, collection_id, k_rule.SAMPLE_SIZE, _SAMPLE_SEED)
    return warn_of_documents(connection, collection_id, sampled, profile, None)


def warn_of_documents(
    connection: Connection,
    collection_id: CollectionId,
    doc_ids: Sequence[int],
    profile: Profile,
    backend: str | None,
) -> str | None:
    """Return a warning if shingles are too short for these documents, else None."""
    encoder = Encoder(profile, backend)
    texts = [
        encoder.text_of(document.title, document.body)
        for batch in documents.stream_documents(connection, collection_id, doc_ids)
        for document in batch
    ]
    return k_rule.warning(profile, texts, backend)
