"""The checks of a proposal, in words."""

from collections.abc import Sequence

from nearsim_db.analysis.tuning import checks
from nearsim_db.analysis.tuning.banding import Corpus, Forecast
from nearsim_db.analysis.tuning.checks import Check
from nearsim_db.analysis.tuning.labels import Told
from nearsim_db.analysis.tuning.shingling import Shingling, unit_of
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.candidate_forecast import MANY_CANDIDATES
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe_warnings import NOTABLE_SHARE

_LOST_BY_LIMIT = 0.005
_ENOUGH_LABELS = 50
_UNITS = {"char": "characters", "word": "words", "sentence": "sentences"}


def of_shingles(corpus: Corpus, chosen: Shingling, base: str) -> Sequence[Check]:
    """The k rule, and whether the hash spreads the shingles evenly and has room for them."""
    different, grown = checks.different_ids(corpus.sets, corpus.documents / corpus.sampled)
    return [
        checks.check_k_rule(chosen.rule, _UNITS[unit_of(chosen.scheme)]),
        checks.check_uniformity(checks.uniformity(different), base),
        checks.check_hash_width(base, grown),
    ]


def of_texts(corpus: Corpus, chosen: Shingling, unspaced: float) -> Sequence[Check]:
    """Whether the texts suit the shingles; `unspaced` is the share in scripts without spaces."""
    texts = corpus.sampled
    empty = corpus.sets.featureless / texts
    twins = corpus.sets.twins / texts
    by_words = chosen.scheme in ("word", "bag")
    return [
        checks.check_share(
            "scripts",
            unspaced if by_words else 0.0,
            f"{unspaced:.1%} of the texts are Chinese, Japanese, Korean or in another script without plain spaces",
            "word shingles hardly agree there: take --set shingle.scheme=char",
            NOTABLE_SHARE,
        ),
        checks.check_share(
            "short texts",
            chosen.short,
            f"{chosen.short:.1%} of the documents are one shingle or shorter",
            "such a document is like none but its own copies: take a smaller shingle.k, or characters",
            NOTABLE_SHARE,
        ),
        checks.check_share(
            "no features",
            empty,
            f"{empty:.1%} of the documents ({corpus.sets.featureless:,} of the sample) have no features, and match "
            "nothing",
            "see which fields hold the text (--body-field), and whether the texts are there",
            NOTABLE_SHARE,
        ),
        Check(
            "identical",
            "ok",
            f"{twins:.1%} of the documents ({corpus.sets.twins:,} of the sample) have the shingles of another; they "
            "are found whatever the bands",
        ),
    ]


def of_labels(told: Told) -> Check:
    """Whether there are labelled pairs enough of either kind for a threshold that others would choose, too."""
    finding = f"{told.duplicates:,} duplicates and {told.distinct:,} others were labelled"
    if told.best.f1 == 0:
        return Check(
            "labels",
            "problem",
            f"{finding}; no duplicates among them share a shingle, so that they do not choose the threshold",
            "see whether the ids name the documents that were meant, or take shorter shingles",
        )
    if min(told.duplicates, told.distinct) >= _ENOUGH_LABELS:
        return Check("labels", "ok", finding)
    return Check(
        "labels",
        "warning",
        f"{finding}; with fewer than {_ENOUGH_LABELS} of either kind the threshold is uncertain",
        "label more pairs, from around the threshold you have in mind",
    )


def of_cost(forecast: Forecast, profile: Profile, kept: float) -> Sequence[Check]:
    """Whether there are too many candidates, pairs lost in large buckets, or known pitfalls in the recipe."""
    limit = profile.recipe.match.bucket_limit
    finding = (
        "no bucket limit"
        if not limit
        else f"match.bucket_limit = {limit} keeps {kept:.2%} of the pairs that share a bucket"
    )
    found = [
        checks.check_share(
            "candidates",
            forecast.candidates / MANY_CANDIDATES,
            f"about {forecast.candidates:,.2f} candidate pairs per document are expected",
            "most will fail verification: take longer shingles, a larger sketch.k or a higher threshold",
            1.0,
            10.0,
        ),
        checks.check_share(
            "large buckets",
            1 - kept,
            finding,
            "clusters stay whole; for every pair of large families raise it, 0 being no limit",
            _LOST_BY_LIMIT,
            0.9,
        ),
    ]
    return found + [Check("recipe", "warning", one) for one in recipe_warnings.of_profile(profile)]
