"""Statistics of an index, what to expect of a profile, and what suggests another recipe."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from nearsim_db.errors import DEFAULT, count_of
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, to_mapping
from nearsim_db.store.access import collection_rows
from nearsim_db.store.attached import obstacles
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.query_rows import PairSample
from nearsim_db.store.signatures import bands
from nearsim_db.store.work import backlog, leases, queue

# Pairs of heads that a bucket links, and those of them whose shared bands satisfy the recipe, for each head.
_PER_HEAD = {"linked_pairs_per_document": "linked", "candidates_per_document": "candidates"}

Kind = Literal["numbers-apart", "numbers-differ", "many-duplicates", "within-source", "few-pairs"]

_LEAST_DOCUMENTS = 100  # from which the absence of pairs says something
_LEAST_PAIRS = 20
_FEW = 1_000  # documents for each pair or twin
_SHORT_FEATURES = 60  # of a title or a record on average


class Hint(TypedDict):
    """A hint, the preset to try instead, if it is one, and the sentence that says so."""

    kind: Kind
    preset: str | None
    message: str


def stats(
    connection: Connection, generation: Generation, profile: Profile, *, recount: bool
) -> dict[str, Any]:
    """Return counts, bytes and probabilities of a generation and its collection.

    Counts of buckets are those of the build, at `buckets_counted_at`: workers do not keep them current. With
    `recount` all band rows are read, and buckets counted now.
    """
    collection_id = generation.collection_id
    documents = collection_rows.count_documents(connection, collection_id)
    tables = generation.tables(connection)
    outside = tables.shown.count_past_retention(collection_id)
    queued, set_aside = tables.work.count()
    found: dict[str, Any] = {
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
    if generation.state == "live":
        limit = profile.recipe.match.bucket_limit
        found |= _sizes(connection, generation)
        sample = tables.shown.sample_pairs(collection_id)
        found["hints"] = [*_numbers_hints(profile.recipe, sample), *_cluster_hints(profile.recipe, found)]
        signed = found["indexed"] - found["no_features"]
        found["hints"] += _pair_hints(profile.recipe, signed, found["pairs"] + found["twins"], sample)
        found |= {
            name: generation.figures.get(name) for name in (*bands.BUCKET_FIGURES, "buckets_counted_at")
        }
        if profile.recipe.match.ignore_common is not None:
            found["common_shingles"] = len(generation.common_shingles or b"") // 8
        if profile.recipe.sketch.weights == "idf":
            found["frequencies_counted_in"] = generation.figures.get("frequencies_counted_in")
        if recount:
            found |= tables.bands.count_buckets(limit)
            found["buckets_counted_at"] = queue.server_time(connection).isoformat(timespec="seconds")
    return found | describe(profile)


def of_nothing(connection: Connection, collection: str) -> dict[str, Any]:
    """Return what `stats` does of an index, for a collection without documents and profiles: the default recipe."""
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
    """Return the resolved parameters of a profile, and what to expect of them.

    `curve` has the probability of becoming a candidate by similarity, under winnow that of a shared fingerprint by the
    equal words in a row, of which `never_missed` always make a candidate.
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


def _numbers_hints(recipe: Recipe, sample: PairSample) -> list[Hint]:
    """Return a hint if most pairs have other numbers."""
    kind: Kind = "numbers-differ" if recipe.cluster.numbers_differ == "link" else "numbers-apart"
    warnings = recipe_warnings.of_numbers(recipe, sample.numbers_differ, sample.pairs)
    return [Hint(kind=kind, preset=None, message=warning) for warning in warnings]


def _cluster_hints(recipe: Recipe, sizes: Mapping[str, int]) -> list[Hint]:
    """Return a hint if most documents are duplicates, or one cluster has many of them."""
    duplicates = sizes["clustered_documents"] - sizes["clusters"]
    warnings = recipe_warnings.of_duplicates(recipe, sizes["indexed"], duplicates, sizes["largest_cluster"])
    return [Hint(kind="many-duplicates", preset=None, message=warning) for warning in warnings]


def _pair_hints(recipe: Recipe, documents: int, found: int, sample: PairSample) -> list[Hint]:
    """Return a hint if few of so many documents with features are pairs or twins, or all pairs are of one source."""
    hints: list[Hint] = []
    if recipe.sketch.input == "vector":
        return hints
    preset = "records" if sample.features < _SHORT_FEATURES else "reworded"
    advice = f"compare with nearsim tune --preset {preset}"
    if documents >= _LEAST_DOCUMENTS and found * _FEW < documents:
        hints.append(
            Hint(
                kind="few-pairs",
                preset=preset,
                message=f"only {count_of(found, 'near-duplicate')} among {documents:,} documents; if you expect more, "
                f"{advice}",
            )
        )
    elif sample.sources > 1 and _LEAST_PAIRS <= sample.pairs == sample.within_source:
        hints.append(
            Hint(
                kind="within-source",
                preset=preset,
                message=f"all {sample.pairs:,} pairs looked at lie within one source, though there are "
                f"{sample.sources:,}; if sources publish the same content in other words, {advice}",
            )
        )
    return hints
