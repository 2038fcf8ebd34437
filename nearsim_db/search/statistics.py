"""Statistics of an index, the expected behaviour of a profile, and hints at recipes that may suit its documents."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import numpy as np

from nearsim_db.messages import count_of
from nearsim_db.records import DEFAULT
from nearsim_db.similarity import chains, frames, recipe_warnings
from nearsim_db.similarity.arrays import Floats, Ints, Sketches
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, make_family, resolve
from nearsim_db.similarity.recipe import Recipe, to_mapping
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import obstacles
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.generations.tables import GenerationTables
from nearsim_db.store.query_rows import IndexSample
from nearsim_db.store.signatures import bands
from nearsim_db.store.work import backlog, leases, queue

# Counts that are divided by the number of heads: pairs that buckets link, and pairs that are candidates.
_PER_HEAD = {"linked_pairs_per_document": "linked", "candidates_per_document": "candidates"}

Kind = Literal[
    "numbers-apart",
    "numbers-differ",
    "many-duplicates",
    "chained-cluster",
    "repeated-lines",
    "within-source",
    "few-pairs",
]

# From these numbers on, a lack of pairs is significant.
_MIN_HINT_DOCUMENTS = 100
_MIN_HINT_PAIRS = 20
# If there are more documents than this for each pair or twin, the recipe may be too strict.
_MAX_DOCUMENTS_PER_PAIR = 1_000
# Titles and records have fewer features than this on average, stories have more.
_MAX_SHORT_FEATURES = 60


class Hint(TypedDict):
    """A hint that another recipe may suit the documents better."""

    kind: Kind
    preset: str | None  # the preset to try instead, None if no preset would help
    message: str  # a sentence for people


def stats(
    connection: Connection, generation: Generation, profile: Profile, *, recount: bool
) -> dict[str, Any]:
    """Return counts, sizes in bytes, and probabilities of a generation and its collection.

    The figures of buckets were counted by the build, at `buckets_counted_at`; workers do not keep them current. With
    `recount` all band rows are read to count the buckets now.
    """
    collection_id, tables = generation.collection_id, generation.tables(connection)
    documents = collection_rows.count_documents(connection, collection_id)
    outside = tables.shown.count_past_retention(collection_id)
    queued, set_aside = tables.work.count()
    figures: dict[str, Any] = {
        "collection": generation.collection,
        "profile": generation.profile,
        "generation": generation.generation_id,
        "state": generation.state,
        "stage": generation.stage,
        "documents": documents,
        "outside_window": outside,
        "trouble": obstacles.list_problems(connection, collection_id).get(generation.collection),
        "changes_waiting": backlog.count_changes(connection, collection_id),
        "queued": queued,
        "set_aside": set_aside,
        "workers": leases.count_responsive(connection),
        "review_pairs": 0,
        "hints": [],
    }
    if generation.state != "live":
        return figures | describe(profile)

    # Sizes, and hints that follow from the pairs.
    recipe = profile.recipe
    figures |= _sizes(connection, generation)
    sample = tables.shown.sample_pairs(collection_id)
    signed, paired = figures["indexed"] - figures["no_features"], figures["pairs"] + figures["twins"]
    figures["hints"] = [
        *_numbers_hints(recipe, sample),
        *_cluster_hints(recipe, figures),
        *_chain_hints(tables, profile),
        *_frame_hints(tables, profile, figures),
        *_pair_hints(recipe, signed, paired, sample),
    ]

    # Figures that the build counted.
    for name in (*bands.BUCKET_FIGURES, "buckets_counted_at"):
        figures[name] = generation.figures.get(name)
    if recipe.match.ignore_common is not None:
        figures["common_shingles"] = len(generation.common_shingles or b"") // 8
    if recipe.sketch.weights == "idf":
        figures["frequencies_counted_in"] = generation.figures.get("frequencies_counted_in")

    if recount:
        figures |= tables.bands.count_buckets(recipe.match.bucket_limit)
        figures["buckets_counted_at"] = queue.server_time(connection).isoformat(timespec="seconds")
    return figures | describe(profile)


def of_nothing(connection: Connection, collection: str) -> dict[str, Any]:
    """Return the statistics of a collection without documents and profiles, under the default recipe."""
    counts = ("documents", "outside_window", "changes_waiting", "queued", "set_aside")
    return {
        "collection": collection,
        "profile": DEFAULT,
        "generation": None,
        "state": "empty",
        "stage": None,
        "trouble": None,
        **dict.fromkeys(counts, 0),
        "workers": leases.count_responsive(connection),
        "review_pairs": 0,
        "hints": [],
        **describe(resolve(Recipe())),
    }


def _sizes(connection: Connection, generation: Generation) -> dict[str, Any]:
    sizes = generation.tables(connection).count()
    heads = sizes["indexed"] - sizes["no_features"] - sizes["twins"]
    index_bytes = sizes["signature_bytes"] + sizes["band_bytes"]
    return {
        **sizes,
        "heads": heads,
        "expected_candidates_per_document": generation.figures.get("expected_candidates_per_document"),
        **{name: _per_head(generation.figures.get(counted), heads) for name, counted in _PER_HEAD.items()},
        "bytes_per_document": round(index_bytes / sizes["indexed"]) if sizes["indexed"] else None,
    }


def _per_head(counted: int | None, heads: int) -> float | None:
    return round(counted / heads, 2) if counted is not None and heads else None


def describe(profile: Profile) -> dict[str, Any]:
    """Return the resolved parameters of a profile, and its expected behaviour.

    `curve` is the probability that two documents become candidates, by their similarity. Under winnow it is the
    probability that they share a fingerprint, by the number of equal words in a row; `never_missed` is the number of
    such words that always make a candidate.
    """
    return {
        "threshold": profile.recipe.match.threshold,
        "bands": profile.bands,
        "rows": profile.rows,
        "unused_rows": profile.unused_rows,
        "amplification": str(profile.amplification),
        "expected_recall": round(profile.expected_recall, 6),
        "never_missed": profile.recipe.never_missed,
        "curve": [[similarity, round(probability, 6)] for similarity, probability in profile.curve()],
        "expected_bytes_per_document": profile.bytes_per_document(),
        "fingerprint": profile.fingerprint,
        "warnings": recipe_warnings.of_profile(profile),
        "recipe": to_mapping(profile.recipe),
    }


def _numbers_hints(recipe: Recipe, sample: IndexSample) -> list[Hint]:
    """Return a hint if in most pairs the two texts contain different numbers."""
    kind: Kind = "numbers-differ" if recipe.cluster.numbers_differ == "link" else "numbers-apart"
    warnings = recipe_warnings.of_numbers(recipe, sample.numbers_differ, sample.pairs)
    return [Hint(kind=kind, preset=None, message=warning) for warning in warnings]


def _cluster_hints(recipe: Recipe, sizes: Mapping[str, int]) -> list[Hint]:
    """Return a hint if most documents are duplicates, or if one cluster has many documents."""
    duplicates = sizes["clustered_documents"] - sizes["clusters"]
    warnings = recipe_warnings.of_duplicates(recipe, sizes["indexed"], duplicates, sizes["largest_cluster"])
    return [Hint(kind="many-duplicates", preset=None, message=warning) for warning in warnings]


def _chain_hints(tables: GenerationTables, profile: Profile) -> list[Hint]:
    """Return a hint if, by their sketches, texts of a cluster are connected only through a chain of other texts."""
    # Sketches of the family rare do not estimate similarities.
    if not chains.may_have_chains(profile.recipe) or profile.recipe.sketch.family == "rare":
        return []

    sampled = tables.clusters.sample_largest(
        max_clusters=chains.MAX_CHECKED_CLUSTERS,
        max_texts=chains.MAX_SAMPLED_TEXTS,
        min_texts=chains.MIN_TEXTS,
    )
    if not sampled:
        return []

    encoder, spreads = Encoder(profile, "numpy"), []
    signed = tables.signatures.read_sketches(np.concatenate([heads for _, heads in sampled]), encoder.family)
    for documents, heads in sampled:
        # A worker may have removed some of the heads meanwhile.
        sketches = signed.sketches[np.isin(signed.doc_ids, heads)]
        if len(sketches) < chains.MIN_TEXTS:
            continue

        def estimates(left: Ints, right: Ints, sketches: Sketches = sketches) -> Floats:
            return encoder.sketch_scores(sketches[left], sketches[right]).similarity

        spreads.append(chains.ClusterSpread(documents, chains.lowest_similarity(len(sketches), estimates)))
    warnings = recipe_warnings.of_chains(profile, spreads, estimated=True)
    return [Hint(kind="chained-cluster", preset=None, message=warning) for warning in warnings]


def _frame_hints(tables: GenerationTables, profile: Profile, sizes: Mapping[str, int]) -> list[Hint]:
    """Return a hint if most pairs are pages of one site that share its menus and little else, by their sketches."""
    recipe = profile.recipe
    is_dense = sizes["pairs"] >= frames.MIN_PAIRS_PER_DOCUMENT * sizes["clustered_documents"] > 0
    if not is_dense or recipe.sketch.family not in frames.SKETCH_FAMILIES:
        return []

    pairs = tables.shown.list_sampled_pairs(frames.MAX_SAMPLED_PAIRS)
    signatures = tables.signatures.read_sketches(
        list({doc_id for pair in pairs for doc_id in pair}), make_family(recipe, "numpy")
    )
    place = {doc_id: at for at, doc_id in enumerate(signatures.doc_ids.tolist())}
    sampled = [(place[left], place[right]) for left, right in pairs if left in place and right in place]
    framed = frames.count_framed_sketches(signatures.sketches, sampled)
    warnings = recipe_warnings.of_frames(recipe, framed, len(sampled), in_index=True)
    return [Hint(kind="repeated-lines", preset=None, message=warning) for warning in warnings]


def _pair_hints(recipe: Recipe, documents: int, paired: int, sample: IndexSample) -> list[Hint]:
    """Return a hint if there are few pairs and twins for the number of documents, or no pairs across sources."""
    if recipe.sketch.input == "vector":
        return []

    preset = "records" if sample.features < _MAX_SHORT_FEATURES else "reworded"
    advice = f"compare with nearsim tune --preset {preset}"
    if documents >= _MIN_HINT_DOCUMENTS and paired * _MAX_DOCUMENTS_PER_PAIR < documents:
        among = f"only {count_of(paired, 'near-duplicate')} among {documents:,} documents"
        message = f"{among}; if you expect more, {advice}"
        return [Hint(kind="few-pairs", preset=preset, message=message)]
    if sample.sources > 1 and _MIN_HINT_PAIRS <= sample.pairs == sample.within_source:
        message = (
            f"all {sample.pairs:,} pairs looked at lie within one source, though there are {sample.sources:,}; "
            f"if sources publish the same content in other words, {advice}"
        )
        return [Hint(kind="within-source", preset=preset, message=message)]
    return []
