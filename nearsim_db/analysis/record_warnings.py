"""Warnings about a recipe for the records of files."""

from collections.abc import Iterator

import numpy as np

from nearsim_db.analysis.encoded_records import EncodedRecords
from nearsim_db.analysis.file_pairs import HeadPairs, Twins
from nearsim_db.similarity import candidate_forecast, recipe_warnings
from nearsim_db.similarity.encoder import Encoder


def of_records(encoder: Encoder, records: EncodedRecords, twins: Twins, pairs: HeadPairs) -> Iterator[str]:
    """Yield warnings about the texts, features and sketches, and about links that were left out."""
    heads, profile = twins.heads, encoder.profile
    halves = records.digests[heads].view(">u8").reshape(-1, 2)
    sample = heads[np.lexsort((halves[:, 1], halves[:, 0]))[: candidate_forecast.SAMPLE_SIZE]]
    sketches = records.sketches[sample]
    counts = records.counts
    totals = recipe_warnings.FeatureTotals(
        int((counts > 0).sum()), int((counts == 1).sum()), int((counts == 0).sum()), int(counts[heads].sum())
    )
    yield from recipe_warnings.of_texts(profile, records.texts)
    yield from recipe_warnings.of_features(profile, totals)
    yield from recipe_warnings.of_sketches(profile, sketches)
    short = None if profile.recipe.normalise.html else records.heads.warning(profile, encoder.backend)
    expected = candidate_forecast.candidates_per_document(
        encoder.band_keys(sketches), profile.amplification, len(heads)
    )
    yield from [
        one
        for one in (short, candidate_forecast.warning(expected, profile.recipe.match.verify))
        if one is not None
    ]
    full = pairs.full
    limit = profile.recipe.match.bucket_limit
    yield from recipe_warnings.of_limit(limit, full.links_left_out, len(full.rows.keys))
