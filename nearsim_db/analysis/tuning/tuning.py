"""Propose a recipe from a sample of documents."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nearsim_db.analysis.tuning import checks, labels, proposal, shingling
from nearsim_db.analysis.tuning.checks import Check
from nearsim_db.analysis.tuning.corpus import Corpus
from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct_sets
from nearsim_db.analysis.tuning.labels import Labels, LabelScores
from nearsim_db.analysis.tuning.pair_sample import histogram, sample_pairs, valley
from nearsim_db.analysis.tuning.proposal import Proposal, Tuning, TuningOptions, choose_threshold
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.shingling import Shingling
from nearsim_db.errors import InputError, RecipeError
from nearsim_db.records import Progress, silent
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.k_rule import count_units
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override


@dataclass(slots=True)
class _Run:
    sample: Sample
    recipe: Recipe
    options: TuningOptions
    threads: int
    progress: Progress
    unspaced: float = 0.0
    are_records: bool = False


def tune(
    sample: Sample,
    recipe: Recipe,
    options: TuningOptions | None = None,
    labelled: Labels | None = None,
    threads: int = 1,
    progress: Progress = silent,
) -> Tuning:
    """Propose shingles, threshold and bands for the corpus that a sample was drawn from.

    Starts from `recipe` and keeps its other keys. There is no proposal if no bands reach the recall. Raises RecipeError
    for a recipe whose metric is not Jaccard, InputError if there are too few documents or labels.
    """
    chosen_options = options or TuningOptions()
    _check(sample, recipe)
    run = _Run(sample, recipe, chosen_options, threads, progress)
    texts = shingling.draw_texts(sample.texts, chosen_options.seed)
    scripts = recipe_warnings.TextSample()
    scripts.add(texts)
    run.unspaced = scripts.unspaced / max(scripts.texts, 1)
    labels_found = None if labelled is None else known_labels(sample, labelled)
    schemes = shingling.candidates(recipe, chosen_options.kept)
    units = {
        one: count_units(recipe, one, texts)
        for one in {"word", *(shingling.unit_of(one) for one, _ in schemes)}
    }
    pairs = shingling.find_reference_pairs(
        recipe, sample.texts, run.unspaced >= 0.5, chosen_options.seed, threads, progress
    )
    scored = list(shingling.score(recipe, schemes, pairs, units, threads, progress))
    if labels_found is not None:
        scored = [replace(one, best_f1=_score_labels(run, labels_found, one).best.f1) for one in scored]
    chosen, why = shingling.choose(
        scored, pairs.near_pairs, run.unspaced, (recipe.shingle.scheme, recipe.shingle.k)
    )
    if labels_found is None and (
        start := shingling.records_start(recipe, units["word"], chosen_options.kept)
    ):
        run.recipe, run.are_records = start, True
        own = start.shingle.scheme, start.shingle.k
        chosen = next(one for one in scored if (one.scheme, one.k) == own)
        why = "the preset records, as the texts are short and few of their words recur, like those of records"
    return _propose(run, scored, chosen, why, pairs.near_pairs, labels_found)


def _check(sample: Sample, recipe: Recipe) -> None:
    encoder = Encoder(resolve(recipe))
    if encoder.metric.name != "jaccard":
        raise RecipeError(
            f"tune supports Jaccard similarity and winnow only; sketch.family {recipe.sketch.family} estimates "
            f"{encoder.metric.name}: use nearsim curve to choose its bands"
        )
    if recipe.match.amplification is not None:
        raise RecipeError(
            "tune chooses bands by recall, or by count and rows; omit match.amplification, and draw it with "
            "nearsim curve"
        )
    if len(sample.texts) < 2:
        raise InputError(
            f"{len(sample.texts)} of {sample.documents + sample.rejected} documents are usable; tune compares pairs: "
            "give at least two"
        )


def known_labels(sample: Sample, labelled: Labels) -> Labels:
    """Return the labels of documents that were read. Raises InputError unless there are both kinds."""
    labelled.keep_known(sample.wanted)
    positive = sum(duplicate for _, _, duplicate in labelled.pairs)
    if positive == 0 or positive == len(labelled.pairs):
        raise InputError(
            f"{positive:,} of {len(labelled.pairs):,} usable labelled pairs are duplicates; tune needs both duplicate "
            f"and distinct pairs (invalid lines: {labelled.bad:,}, pairs of unknown documents: {labelled.unknown:,})"
            + "".join(f"; {reason}" for reason in labelled.reasons[:1])
        )
    return labelled


def _score_labels(run: _Run, labelled: Labels, one: Shingling, field: str | None = None) -> LabelScores:
    """Compute precision and recall of the labelled pairs for a shingling, by the recipe's fields or one alone."""
    rows = {name: row for row, name in enumerate(run.sample.wanted)}
    recipe = one.apply(run.recipe)
    encoder = Encoder(resolve(recipe if field is None else override(recipe, [f'fields=["{field}"]'])))
    texts = [encoder.text_of(title, body) for title, body in run.sample.wanted.values()]
    sets = distinct_sets(encoder, texts, run.threads)
    left = np.array([rows[pair[0]] for pair in labelled.pairs], np.int64)
    right = np.array([rows[pair[1]] for pair in labelled.pairs], np.int64)
    duplicate = np.array([pair[2] for pair in labelled.pairs], bool)
    similarity = shingling.similarities(sets, left, right)
    return labels.score(similarity, duplicate, run.options.precision, run.options.threshold)


def _propose(
    run: _Run, scored: list[Shingling], chosen: Shingling, why: str, near_pairs: int, labelled: Labels | None
) -> Tuning:
    sample, options = run.sample, run.options
    recipe = chosen.apply(run.recipe)
    sets = distinct_sets(Encoder(resolve(recipe)), sample.texts, run.threads, run.progress)
    _check_features(sample, sets)
    run.progress("compare", 0, None)
    pairs = sample_pairs(sets, options.seed)
    corpus = Corpus(sets, pairs, sample.documents, len(sample.texts))
    spread = histogram(pairs, corpus.weight, corpus.identical_pairs)
    label_scores = None if labelled is None else _score_labels(run, labelled, chosen)
    lowest = valley(spread)
    threshold, why_threshold = choose_threshold(options, label_scores, lowest, recipe.match.threshold)
    if run.are_records and options.threshold is None:
        threshold, why_threshold = recipe.match.threshold, "that of the preset records"
    reasons = {"shingle.scheme": f"{chosen.name}: {why}", "match.threshold": why_threshold}
    found = [
        *checks.of_shingles(corpus, chosen, recipe),
        *checks.of_texts(corpus, chosen, run.unspaced),
        *(() if label_scores is None else (checks.of_labels(label_scores),)),
        *(() if labelled is None else _check_fields(run, labelled, scored, chosen)),
    ]
    proposed, refusal = None, ""
    try:
        proposed = _with_bands(corpus, recipe, threshold, options.recall, reasons)
        found += checks.of_cost(proposed.forecast, proposed.profile, proposed.kept_by_limit)
    except RecipeError as error:
        refusal = str(error)
        found.append(Check("bands", "problem", refusal))
    start = recipe if proposed is None else proposed.profile.recipe
    alternatives = proposal.alternatives(corpus, start, threshold)
    thresholds = proposal.thresholds(corpus, start, options.recall, threshold)
    return Tuning(
        sample, scored, chosen, near_pairs, sets.twins, len(sets), spread, lowest, threshold, proposed, refusal, found,
        alternatives, thresholds, labelled, label_scores,
    )  # fmt: skip


def _check_fields(run: _Run, labelled: Labels, scored: list[Shingling], chosen: Shingling) -> Iterator[Check]:
    """Yield whether one of several fields alone separates the labels better, with its best shingling."""
    fields = run.recipe.fields if len(run.recipe.fields) > 1 else ()
    tried = [
        (_score_labels(run, labelled, one, field).best.f1, field, one.name)
        for field in fields
        for one in scored
    ]
    if tried:
        yield checks.of_fields(max(tried), run.recipe.fields, chosen.best_f1 or 0.0)


def _check_features(sample: Sample, sets: DistinctSets) -> None:
    some = len(sample.texts) - sets.featureless
    if some < 2:
        raise InputError(
            f"{some} of the {len(sample.texts):,} documents sampled have features; tune compares pairs of texts: check "
            "--body-field and the texts; for vectors use nearsim curve"
        )


def _with_bands(
    corpus: Corpus, recipe: Recipe, threshold: float, recall: float, reasons: dict[str, str]
) -> Proposal:
    """Choose bands for a threshold, and add the reasons. Raises RecipeError if none reach the recall."""
    profile, why_sketch = proposal.choose_sketch(corpus, recipe, threshold, recall)
    forecast = corpus.forecast(profile)
    kept = corpus.kept_by_limit(profile)
    why_bands = (
        f"{forecast.bands} bands of {forecast.rows} rows: {forecast.recall_at:.4f} of the pairs at the threshold and "
        f"{forecast.recall * kept:.4f} of all pairs from there on are found, for about {forecast.candidates:,.2f} "
        f"candidate pairs and {forecast.bytes_per_document:,} bytes per document"
    )
    return Proposal(profile, forecast, kept, reasons | {"sketch.k": why_sketch, "bands.recall": why_bands})
