"""The checks that apply to a corpus and a proposal, from `checks` and from the corpus itself."""

from collections.abc import Sequence

from nearsim_db.analysis.tuning import checks
from nearsim_db.analysis.tuning.checks import Check
from nearsim_db.analysis.tuning.corpus import Corpus, Forecast
from nearsim_db.analysis.tuning.labels import LabelScores
from nearsim_db.analysis.tuning.shingling import Shingling, unit_of
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.candidate_forecast import MANY_CANDIDATES
from nearsim_db.similarity.profile import Profile, make_family
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe_warnings import NOTABLE_SHARE

_LOST_BY_LIMIT = 0.005
_ENOUGH_LABELS = 50
_UNITS = {"char": "characters", "word": "words", "sentence": "sentences"}


def of_shingles(corpus: Corpus, chosen: Shingling, recipe: Recipe) -> Sequence[Check]:
    """Check the k rule, the uniformity of the hash and of a minhash family's functions, and the width of the hash."""
    different, grown = checks.different_ids(corpus.sets, corpus.documents / corpus.sampled)
    base, family = recipe.hash.base, make_family(recipe)
    functions = (
        [checks.check_functions(checks.function_uniformity(family, different))]
        if family.name == "minhash"
        else []
    )
    return [
        checks.check_k_rule(chosen.rule, _UNITS[unit_of(chosen.scheme)]),
        checks.check_uniformity(checks.uniformity(different), base),
        *functions,
        checks.check_hash_width(base, grown),
    ]


def of_texts(corpus: Corpus, chosen: Shingling, unspaced: float) -> Sequence[Check]:
    """Check whether the texts suit the shingling; `unspaced` is the share in scripts without spaces."""
    texts = corpus.sampled
    empty = corpus.sets.featureless / texts
    twins = corpus.sets.twins / texts
    by_words = chosen.scheme in ("word", "bag")
    return [
        checks.check_share(
            "scripts",
            unspaced if by_words else 0.0,
            f"{unspaced:.1%} of the texts are in Chinese, Japanese, Korean or another script without spaces",
            "word shingles rarely match there: use --set shingle.scheme=char",
            NOTABLE_SHARE,
        ),
        checks.check_share(
            "short texts",
            chosen.short,
            f"{chosen.short:.1%} of the documents are one shingle or shorter",
            "such a document matches only exact copies: use a smaller shingle.k, or characters",
            NOTABLE_SHARE,
        ),
        checks.check_share(
            "no features",
            empty,
            f"{empty:.1%} of the documents ({corpus.sets.featureless:,} of the sample) have no features and match "
            "nothing",
            "check --body-field and the texts",
            NOTABLE_SHARE,
        ),
        Check(
            "identical",
            "ok",
            f"{twins:.1%} of the documents ({corpus.sets.twins:,} of the sample) have the same shingles as another; "
            "they are found with any bands",
        ),
    ]


def of_labels(scores: LabelScores) -> Check:
    """Check whether there are enough labelled pairs of either kind for a reproducible threshold."""
    finding = f"{scores.duplicates:,} duplicate and {scores.distinct:,} distinct pairs were labelled"
    if scores.best.f1 == 0:
        return Check(
            "labels",
            "problem",
            f"{finding}; no duplicates share a shingle, so the labels do not determine the threshold",
            "check the ids of the labels, or use shorter shingles",
        )
    if min(scores.duplicates, scores.distinct) >= _ENOUGH_LABELS:
        return Check("labels", "ok", finding)
    return Check(
        "labels",
        "warning",
        f"{finding}; with fewer than {_ENOUGH_LABELS} of either kind the threshold is uncertain",
        "label more pairs near the intended threshold",
    )


def of_cost(forecast: Forecast, profile: Profile, kept: float) -> Sequence[Check]:
    """Check for too many candidates, pairs lost in large buckets, and recipe warnings."""
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
            "most will fail verification: use longer shingles, a larger sketch.k or a higher threshold",
            1.0,
            10.0,
        ),
        checks.check_share(
            "large buckets",
            1 - kept,
            finding,
            "clusters stay whole; to find every pair in large groups raise the limit, or set 0 for none",
            _LOST_BY_LIMIT,
            0.9,
        ),
    ]
    return found + [Check("recipe", "warning", one) for one in recipe_warnings.of_profile(profile)]
