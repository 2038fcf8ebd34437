"""Warnings about the input and the result of `dedupe`, each with its remedy."""

from collections.abc import Iterator, Sequence

import numpy as np

from nearsim_db.deduplication.clusters import Duplicates
from nearsim_db.deduplication.comparison import Labels
from nearsim_db.deduplication.folders import Shard
from nearsim_db.deduplication.lists import MAX_LISTED_COPIES
from nearsim_db.deduplication.output import Outputs
from nearsim_db.deduplication.reading import RecordReader
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.messages import count_of
from nearsim_db.readers import Source
from nearsim_db.similarity import chains, frames, recipe_warnings
from nearsim_db.similarity.arrays import FeatureSets, Floats, Ints

_SHOWN_CHARACTERS = 80


def of_outcome(
    records: EncodedRecords,
    reader: RecordReader,
    duplicates: Duplicates,
    outputs: Outputs,
    shards: Sequence[Shard],
    against: Sequence[Source],
) -> tuple[str, ...]:
    """Return the warnings about the input, the recipe, the duplicates and the outputs, in this order."""
    encoder = records.encoder
    return (
        *reader.warnings(),
        *_against_warnings(reader, against, duplicates),
        *(recipe_warnings.of_profile(encoder.profile) if encoder.has_sketches else ()),
        *_line_warnings(records),
        *_feature_warnings(records, duplicates),
        *_length_warnings(records),
        *_duplicate_warnings(records, reader.labels, duplicates),
        *_chain_warnings(records, duplicates),
        *_frame_warnings(records, duplicates),
        *_listing_warnings(outputs, reader.labels, duplicates),
        *outputs.stale_warnings(shards),
    )


def _against_warnings(
    reader: RecordReader, against: Sequence[Source], duplicates: Duplicates
) -> Iterator[str]:
    """Warn if a source of --against has no records, or if every record has a near-duplicate in --against."""
    for number in reader.empty_against:
        name = against[number].file(against[number].paths[0]).name
        yield f"--against {name} has no records: nothing was compared with it"
    if duplicates.matched and duplicates.matched == reader.summary.read - reader.summary.rejected:
        yield "every record has a near-duplicate in --against: is it a copy of the input?"


def _line_warnings(records: EncodedRecords) -> Iterator[str]:
    """Say which lines were not compared, because they recur on the pages of a source."""
    pages, by = records.pages, records.sources_by
    if pages is None or pages.repeated is None:
        return

    if not pages.has_sources:
        yield f"no record has {by!r} (normalise.drop_repeated): all records count as pages of one source"
    repeated = pages.repeated
    if repeated.lines:
        yield (
            f"normalise.drop_repeated = {by} leaves out {count_of(repeated.lines, 'line')} with "
            f"{count_of(repeated.words, 'word')} that recur on the pages of a source, such as "
            f"{repeated.example[:_SHOWN_CHARACTERS]!r}; they are written, but not compared"
        )


def _length_warnings(records: EncodedRecords) -> Iterator[str]:
    """Warn of texts that are too short to be compared."""
    if records.too_short:
        yield (
            f"{records.too_short:,} of {count_of(len(records), 'record')} have fewer than {records.min_words} words "
            "(--min-words): they are kept, but not compared"
        )


def _duplicate_warnings(records: EncodedRecords, labels: Labels, duplicates: Duplicates) -> list[str]:
    """Return a warning if most records are removed, or one cluster has many of them."""
    if not records.encoder.has_sketches:
        return []  # with --exact, no setting would change the result
    sizes = np.unique(duplicates.clusters.cluster_ids, return_counts=True)[1]
    return recipe_warnings.of_duplicates(
        records.encoder.profile.recipe,
        labels.count - labels.against,
        int(duplicates.is_removed.sum()),
        int(sizes.max(initial=0)),
        noun="record",
    )


def _chain_warnings(records: EncodedRecords, duplicates: Duplicates) -> list[str]:
    """Return a warning if a cluster has texts that are connected only by a chain of other texts."""
    encoder, clusters, count = records.encoder, duplicates.clusters, max(len(records), 1)
    if not encoder.has_sketches or not chains.may_have_chains(encoder.profile.recipe):
        return []

    # The distinct texts of each cluster; a cluster and a text are combined into one number.
    texts = np.unique(clusters.cluster_ids * count + duplicates.twins.head_of[clusters.numbers])
    cluster_ids, begins, sizes = np.unique(texts // count, return_index=True, return_counts=True)
    documents = np.bincount(clusters.cluster_ids, minlength=1)
    spreads = []
    for at in np.argsort(-sizes, kind="stable")[: chains.MAX_CHECKED_CLUSTERS].tolist():
        if sizes[at] < chains.MIN_TEXTS:
            break
        features = records.read_features(texts[begins[at] + chains.sampled_rows(int(sizes[at]))] % count)

        def similarities(left: Ints, right: Ints, features: FeatureSets = features) -> Floats:
            return encoder.compare(features, left, right).similarity

        lowest = chains.lowest_similarity(len(features), similarities)
        spreads.append(chains.ClusterSpread(int(documents[cluster_ids[at]]), lowest))
    return recipe_warnings.of_chains(encoder.profile, spreads, "record")


def _frame_warnings(records: EncodedRecords, duplicates: Duplicates) -> list[str]:
    """Return a warning if most pairs are pages of one site that share its menus and little else."""
    encoder, pairs, count = records.encoder, duplicates.pairs, len(duplicates.pairs)
    are_features = encoder.has_sketches and not encoder.takes_vectors
    if not are_features or not count >= frames.MIN_PAIRS_PER_DOCUMENT * len(duplicates.clusters.numbers) > 0:
        return []

    # Sample every `step`-th pair, in the order of the sorted pairs.
    step = -(-count // frames.MAX_SAMPLED_PAIRS)
    edges = np.concatenate([block[::step] for block in pairs.edges()])
    numbers, places = np.unique(edges, return_inverse=True)
    features = [
        np.unique(items["id"] if items.dtype.names else items) for items in records.read_features(numbers)
    ]
    sampled = [(left, right) for left, right in places.reshape(-1, 2).tolist()]
    framed = frames.count_framed(features, sampled)
    return recipe_warnings.of_frames(encoder.profile.recipe, framed, len(edges))


def _listing_warnings(outputs: Outputs, labels: Labels, duplicates: Duplicates) -> list[str]:
    """Return a warning if there are too many copies of a text to list all of their pairs."""
    sizes = duplicates.twins.sizes()
    copies = int(sizes[sizes > MAX_LISTED_COPIES].sum())
    if outputs.pairs is None or not copies:
        return []
    instead = "" if labels.comparison.against else "; --clusters lists them all"
    return [
        f"{outputs.pairs} lists each of {copies:,} records with the first of its copies only, as their texts have more "
        f"than {MAX_LISTED_COPIES} copies, too many for all pairs{instead}"
    ]


def _feature_warnings(records: EncodedRecords, duplicates: Duplicates) -> Iterator[str]:
    """Yield warnings about texts, features and sketches, and about links that full buckets left out."""
    encoder = records.encoder
    if not encoder.has_sketches:
        return

    heads, profile = duplicates.twins.heads, encoder.profile
    sketches, counts = records.read_sketches(duplicates.twins.sample), records.counts
    totals = recipe_warnings.FeatureTotals(
        int((counts > 0).sum()),
        int((counts == 1).sum()),
        int((counts == 0).sum()) - records.too_short,
        int(counts[heads].sum()),
    )
    yield from recipe_warnings.of_texts(profile, records.texts)
    yield from recipe_warnings.of_features(profile, totals)
    if records.common is not None:
        yield from recipe_warnings.of_common(profile.recipe.match.ignore_common or 0.0, records.common)

    # Warn about the sketches and the number of candidates.
    yield from recipe_warnings.of_sketches(profile, sketches)
    is_page = profile.recipe.normalise.html or records.pages
    short = None if is_page else records.heads.warning(profile, encoder.backend)
    expected = recipe_warnings.candidates_per_document(
        encoder.band_keys(sketches), profile.amplification, len(heads)
    )
    yield from filter(None, (short, recipe_warnings.of_candidates(expected, profile.recipe)))

    # Warn about pairs whose numbers differ, and about buckets over the limit.
    differ = ties = 0
    for edges, _ in duplicates.pairs.ties():
        left, right = records.numbers[edges].T
        differ, ties = differ + int((left != right).sum()), ties + len(edges)
    yield from recipe_warnings.of_numbers(profile.recipe, differ, ties)
    full, limit = duplicates.full, profile.recipe.match.bucket_limit
    yield from recipe_warnings.of_limit(limit, full.links_left_out, len(full.rows.keys))
