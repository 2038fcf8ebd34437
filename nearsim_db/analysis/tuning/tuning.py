"""Tuning of a recipe: choose shingles on a sample of documents, then the threshold, then sketch size and bands."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nearsim_db.analysis.tuning import checks, labels, proposal, questions, shingling
from nearsim_db.analysis.tuning.checks import Check
from nearsim_db.analysis.tuning.corpus import Forecast, SampledCorpus
from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct_sets, encoder_of
from nearsim_db.analysis.tuning.labels import LabelScores, PairLabels
from nearsim_db.analysis.tuning.pair_sample import Histogram, histogram, sample_pairs, valley
from nearsim_db.analysis.tuning.proposal import Proposal, TuningOptions
from nearsim_db.analysis.tuning.questions import Question
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.shingling import Shingling
from nearsim_db.analysis.tuning.threshold_choice import ClustersAt, ThresholdJudge, choose_threshold
from nearsim_db.analysis.tuning.weighted_labels import WeightedLabels
from nearsim_db.errors import InputError, NearsimError, RecipeError
from nearsim_db.records import Progress, silent
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.arrays import Floats, Mask
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.k_rule import Verdict, count_units
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override

# The sample by which the labels are weighted under each shingling: texts, and pairs of each kind (near, and random).
_TEXTS_OF_SHINGLING, _PAIRS_OF_SHINGLING = 10_000, 200_000


@dataclass(slots=True)
class Tuning:
    """Measurements of a corpus, and the proposal that follows from them.

    If there is no proposal, `refusal` is the reason.
    """

    sample: Sample
    shinglings: list[Shingling]
    shingling: Shingling
    near_pairs: int
    twins: int
    sets: int
    histogram: Histogram
    valley: float | None
    threshold: float
    proposed: Proposal | None
    refusal: str
    checks: list[Check]
    alternatives: list[Forecast]
    thresholds: list[Forecast]
    clusters: list[ClustersAt]
    are_records: bool
    labels: PairLabels | None = None
    label_scores: LabelScores | None = None
    questions: list[Question] = field(default_factory=list)  # compared by labels, the proposal first

    @property
    def clusters_at_threshold(self) -> ClustersAt | None:
        """Clusters at the proposed threshold, None if there are no bands for it."""
        return next((row for row in self.clusters if row.threshold == self.threshold), None)

    def required(self) -> Proposal:
        """Return the proposal. Raises NearsimError if there is none."""
        if self.proposed is None:
            raise NearsimError(f"no recipe is proposed: {self.refusal}")
        return self.proposed


@dataclass(slots=True)
class _TuningRun:
    """Inputs and intermediate results that the steps of one tuning share."""

    sample: Sample
    recipe: Recipe
    options: TuningOptions
    labelled: PairLabels | None
    threads: int
    progress: Progress
    small_sample: list[str] = field(default_factory=list)  # texts of a small part of the sample
    unspaced: float = 0.0  # fraction of the texts in scripts without spaces
    are_records: bool = False  # whether the texts are short, and few words recur within a text
    # Whether the recipe has shingles of a preset for records, and a threshold for them
    has_preset: bool = False
    max_duplicates: float = math.inf  # upper bound of the number of duplicate pairs of the corpus
    reasons: dict[str, str] = field(default_factory=dict)  # by recipe key


def tune(
    sample: Sample,
    recipe: Recipe,
    options: TuningOptions | None = None,
    labelled: PairLabels | None = None,
    threads: int = 1,
    progress: Progress = silent,
) -> Tuning:
    """Propose shingles, threshold and bands for the corpus that a sample was drawn from, and a linkage for records.

    The proposal starts from `recipe` and keeps its other keys. If labels show that the starting recipe or, for records,
    the preset record-linkage is better, that recipe is proposed instead. There is no proposal if no bands reach the
    recall. Raises RecipeError if the recipe compares vectors or distances, InputError if there are too few documents
    or labels.
    """
    _check(sample, recipe)
    options = options or TuningOptions()
    usable_labels = None if labelled is None else known_labels(sample, labelled)
    tuning = _propose(_TuningRun(sample, recipe, options, usable_labels, threads, progress))
    if usable_labels is None or tuning.proposed is None:
        return tuning

    refusal = questions.refusal(sample, recipe)
    if refusal is not None:
        verdict: Verdict = "warning" if options.is_across else "ok"
        tuning.checks.append(Check("questions", verdict, f"other questions are not compared: {refusal}"))
        return tuning
    return _choose_question(tuning, usable_labels, recipe, options, threads, progress)


def _choose_question(
    tuning: Tuning,
    labelled: PairLabels,
    start: Recipe,
    options: TuningOptions,
    threads: int,
    progress: Progress,
) -> Tuning:
    """Compare the proposal with the other questions by the labels, and return the tuning whose recipe is best."""
    sample = tuning.sample
    tunings = {"proposal": tuning}
    # If the user sets any of these keys, the proposal is compared only with the nearest record.
    if options.threshold is None and options.precision is None and not options.kept:
        fixed = replace(options, kept=frozenset({"scheme", "k"}))
        if tuning.are_records and shingling.are_default(start, options):
            recipe = shingling.with_record_linkage(start)
            tunings["preset record-linkage"] = _propose(
                _TuningRun(sample, recipe, fixed, labelled, threads, progress)
            )
        unchanged = replace(options, threshold=start.match.threshold, kept=fixed.kept | {"linkage"})
        tunings["starting recipe"] = _propose(
            _TuningRun(sample, start, unchanged, labelled, threads, progress)
        )

    recipes = {
        name: candidate.proposed.profile.recipe
        for name, candidate in tunings.items()
        if candidate.proposed is not None
    }
    progress("ask", 0, None)
    is_across = options.is_across or questions.are_across(sample, labelled)
    asked = questions.LabelledCorpus(sample, labelled, is_across, threads).ask(recipes)

    by_recipe = [question for question in asked if question.name in recipes]
    best = questions.best_of(by_recipe)
    chosen = tuning if best is None else tunings[best.name]
    if best is not None and best.name != "proposal":
        reasons = chosen.required().reasons
        # The reason of these keys is the comparison, not an option of the user.
        reasons["shingle.scheme"] = f"{chosen.shingling.name}: of the {best.name}"
        if best.name == "starting recipe":
            reasons["match.threshold"] = "of the starting recipe"
        reasons["sketch.family"] = (
            f"the {best.name}, whose clusters have an F1 of {best.f1:.3f} by the labels; those of "
            f"{tuning.shingling.name} from {tuning.threshold:g} have {by_recipe[0].f1:.3f}"
        )
    chosen.questions = asked
    return chosen


def _propose(run: _TuningRun) -> Tuning:
    """Propose a recipe that starts from the recipe of the run."""
    sample, recipe, threads, progress = run.sample, run.recipe, run.threads, run.progress
    run.small_sample = shingling.draw_texts(sample.texts, run.options.seed)
    scripts = recipe_warnings.TextSample()
    scripts.add(run.small_sample)
    run.unspaced = scripts.unspaced / max(scripts.texts, 1)

    scored, chosen, near_pairs = _choose_shingles(run)
    recipe = chosen.apply(run.recipe)
    sets = distinct_sets(encoder_of(recipe, sample.texts), sample.texts, threads, progress)
    _check_features(sample, sets)
    progress("compare", 0, None)
    pairs = sample_pairs(sets, run.options.seed)
    corpus = SampledCorpus(sets, pairs, sample.documents, len(sample.texts))
    spread = histogram(pairs, corpus.weight, corpus.identical_pairs)
    lowest = valley(spread)

    scores, weighted = _score(run, corpus, recipe)
    threshold, clusters = _choose_threshold(run, corpus, recipe, lowest, scores, weighted)
    if scores is not None:
        scores.at = scores.point_at(threshold)
    all_checks = [
        *checks.of_shingles(corpus, chosen, recipe),
        *checks.of_texts(corpus, chosen, run.unspaced),
        *(checks.of_sources(sample) if run.are_records and run.labelled is None else ()),
        *(() if scores is None else (checks.of_labels(scores),)),
        *_check_fields(run, scored, chosen),
        *checks.of_clusters(clusters, threshold, recipe, sample.documents),
    ]

    proposed, refusal = None, ""
    try:
        proposed = proposal.propose(corpus, recipe, threshold, run.options.recall, run.reasons)
        all_checks += checks.of_cost(proposed.forecast, proposed.profile, proposed.kept_by_limit)
    except RecipeError as error:
        refusal = str(error)
        all_checks.append(Check("bands", "problem", refusal))
    # Alternatives are forecast even if there is no proposal.
    basis = recipe if proposed is None else proposed.profile.recipe

    return Tuning(
        sample=sample,
        shinglings=scored,
        shingling=chosen,
        near_pairs=near_pairs,
        twins=sets.twins,
        sets=len(sets),
        histogram=spread,
        valley=lowest,
        threshold=threshold,
        proposed=proposed,
        refusal=refusal,
        checks=all_checks,
        alternatives=proposal.alternatives(corpus, basis, threshold),
        thresholds=proposal.thresholds(corpus, basis, run.options.recall, threshold),
        clusters=clusters,
        are_records=run.are_records,
        labels=run.labelled,
        label_scores=scores,
    )


def _check(sample: Sample, recipe: Recipe) -> None:
    """Raise RecipeError if tune does not support the recipe, InputError if fewer than two documents are usable."""
    encoder = Encoder(resolve(recipe))
    if encoder.metric.name == "euclidean" or encoder.takes_vectors:
        raise RecipeError(
            "tune compares texts by a similarity, not vectors, and not by a distance as sketch.family projection does: "
            "use nearsim curve to choose the bands"
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


def known_labels(sample: Sample, labelled: PairLabels) -> PairLabels:
    """Return the labelled pairs of which both documents were read.

    Raises InputError unless both duplicate and distinct labels remain.
    """
    labelled.keep_known(sample.wanted)
    positive = sum(duplicate for _, _, duplicate in labelled.pairs)
    if positive == 0 or positive == len(labelled.pairs):
        raise InputError(
            f"{positive:,} of {len(labelled.pairs):,} usable labelled pairs are duplicates; tune needs both duplicate "
            f"and distinct pairs (invalid lines: {labelled.bad:,}, pairs of unknown documents: {labelled.unknown:,})"
            + "".join(f"; {reason}" for reason in labelled.reasons[:1])
        )
    return labelled


def _choose_shingles(run: _TuningRun) -> tuple[list[Shingling], Shingling, int]:
    """Score shinglings and choose the best. For records without labels, choose the shingles of a preset instead.

    Returns the scored shinglings, the chosen shingling, and the number of near pairs on which they were scored.
    """
    recipe, options = run.recipe, run.options
    is_weighted = Encoder(resolve(recipe)).metric.weighted
    # The rules to choose shingles without labels were measured for the Jaccard similarity only.
    is_fixed = is_weighted and run.labelled is None
    recipe_shingles = recipe.shingle.scheme, recipe.shingle.k
    schemes = [recipe_shingles] if is_fixed else shingling.candidates(recipe, options)
    unit_names = {"word", *(shingling.unit_of(scheme) for scheme, _ in schemes)}
    units = {name: count_units(recipe, name, run.small_sample) for name in unit_names}
    pairs = shingling.find_reference_pairs(
        recipe, run.sample.texts, run.unspaced >= 0.5, options.seed, run.threads, run.progress
    )
    scored = list(shingling.score(recipe, schemes, pairs, units, run.sample.texts, run.threads, run.progress))
    if run.labelled is not None:
        scored = _score_labels(run, run.labelled, scored)
    chosen, reason = shingling.choose(scored, pairs.near_pairs, run.unspaced, recipe_shingles)
    if is_fixed and not options.fixes_shingles:
        reason = "the recipe's own, as there are no labels"

    # Pairs of records are rarely similar enough to score shingles by near pairs.
    run.are_records = shingling.are_records(units["word"])
    if run.are_records and run.labelled is None and shingling.are_default(recipe, options):
        by_words = shingling.suit_record_linkage(units["word"], run.unspaced)
        preset_name = "record-linkage" if by_words else "records"
        run.recipe = (
            shingling.with_record_linkage(recipe) if by_words else shingling.with_records_preset(recipe)
        )
        run.has_preset = True
        preset = run.recipe.shingle.scheme, run.recipe.shingle.k
        chosen = next(shingles for shingles in scored if (shingles.scheme, shingles.k) == preset)
        reason = f"the preset {preset_name}, as the texts are short and few of their words recur, like those of records"
    if run.are_records and "linkage" not in options.kept and recipe.cluster.linkage == "connected":
        run.recipe = override(run.recipe, ["cluster.linkage=average"])
        run.reasons["cluster.linkage"] = (
            "the texts look like records, of which chains of pairs connect different ones"
        )
    run.reasons["shingle.scheme"] = f"{chosen.name}: {reason}"
    return scored, chosen, pairs.near_pairs


def _label_similarities(run: _TuningRun, labelled: PairLabels, recipe: Recipe) -> tuple[Floats, Mask]:
    """Return the similarity of each labelled pair under a recipe, and whether it is a duplicate."""
    encoder = encoder_of(recipe, run.sample.texts)
    rows = {name: row for row, name in enumerate(run.sample.wanted)}
    texts = [encoder.text_of(title, body) for title, body in run.sample.wanted.values()]
    sets = distinct_sets(encoder, texts, run.threads)
    left = np.array([rows[pair[0]] for pair in labelled.pairs], np.int64)
    right = np.array([rows[pair[1]] for pair in labelled.pairs], np.int64)
    duplicate = np.array([pair[2] for pair in labelled.pairs], bool)
    return shingling.similarities(sets, left, right), duplicate


def _score_labels(run: _TuningRun, labelled: PairLabels, scored: Sequence[Shingling]) -> list[Shingling]:
    """Return the shinglings with the best F1 that each reaches on the labels.

    This F1 is computed unweighted, and with the labels weighted by the pairs of the sample.
    """
    texts = shingling.draw_texts(run.sample.texts, run.options.seed, _TEXTS_OF_SHINGLING)
    scores, weighted = [], []
    for shingles in scored:
        recipe = shingles.apply(run.recipe)
        similarity, duplicate = _label_similarities(run, labelled, recipe)
        scores.append(labels.score(similarity, duplicate, run.options.precision))

        sets = distinct_sets(encoder_of(recipe, run.sample.texts), texts, run.threads)
        pairs = sample_pairs(sets, run.options.seed, _PAIRS_OF_SHINGLING, _PAIRS_OF_SHINGLING)
        part = SampledCorpus(sets, pairs, run.sample.documents, len(texts))
        weighted.append(WeightedLabels(similarity, duplicate, part))

    # The lowest bound of the number of duplicates comes from shingles under which duplicates are very similar.
    run.max_duplicates = min(weights.max_duplicates for weights in weighted)
    return [
        replace(
            shingles,
            best_f1=score.best.f1,
            weighted_f1=weights.bounded_by(run.max_duplicates).best(score.points).f1,
        )
        for shingles, score, weights in zip(scored, scores, weighted, strict=True)
    ]


def _score(
    run: _TuningRun, corpus: SampledCorpus, recipe: Recipe
) -> tuple[LabelScores | None, WeightedLabels | None]:
    """Score the labels, if there are any, with the shingles of a recipe."""
    if run.labelled is None:
        return None, None
    similarity, duplicate = _label_similarities(run, run.labelled, recipe)
    scores = labels.score(similarity, duplicate, run.options.precision, run.options.threshold)
    return scores, WeightedLabels(similarity, duplicate, corpus).bounded_by(run.max_duplicates)


def _choose_threshold(
    run: _TuningRun,
    corpus: SampledCorpus,
    recipe: Recipe,
    lowest: float | None,
    scores: LabelScores | None,
    weighted: WeightedLabels | None,
) -> tuple[float, list[ClustersAt]]:
    """Choose the threshold and note the reason. A higher threshold is taken if its clusters are better.

    Also returns the clusters of the sample at this threshold and at other thresholds.
    """
    options = run.options
    threshold, reason = choose_threshold(options, scores, weighted, lowest, recipe.match.threshold)
    if run.has_preset and options.threshold is None:
        threshold, reason = recipe.match.threshold, "one that suits most records, as there are no labels"
    elif corpus.sets.weights is not None and scores is None and options.threshold is None:
        # The rule to take the valley as the threshold was measured for the Jaccard similarity only.
        threshold, reason = recipe.match.threshold, "the recipe's own, as there are no labels"

    texts = run.sample.texts_to_cluster
    sets = corpus.sets
    if len(texts) > len(run.sample.texts):
        sets = distinct_sets(encoder_of(recipe, run.sample.texts), texts, run.threads, run.progress)
    run.progress("cluster", 0, None)
    judge = ThresholdJudge(corpus, recipe, sets, options, weighted, threshold)

    is_free = options.threshold is None and options.precision is None
    if is_free and (better := judge.better()) is not None:
        reason = (
            f"the best F1 of the pairs within clusters, {judge.f1(better):.3f} by the labels; it is "
            f"{judge.f1(threshold):.3f} at {threshold:g}, {reason}"
        )
        threshold = better
    elif is_free and judge.is_excessive(threshold):
        higher = judge.without_excess(recipe.match.threshold)
        if higher is not None:
            reason = (
                f"the lowest at which de-duplication would not remove most of the sample, or put more than 5 % into "
                f"one cluster, as it would at {threshold:g}, {reason}"
            )
            threshold = higher
    run.reasons["match.threshold"] = reason
    return threshold, [*judge.table(threshold)]


def _check_fields(run: _TuningRun, scored: Sequence[Shingling], chosen: Shingling) -> Iterator[Check]:
    """Check whether a single field with its best shingling separates the labels better than all fields together."""
    if run.labelled is None or len(run.recipe.fields) < 2:
        return
    best: list[tuple[float, str, str]] = []
    for name in run.recipe.fields:
        for shingles in scored:
            recipe = override(shingles.apply(run.recipe), [f'fields=["{name}"]'])
            scores = labels.score(*_label_similarities(run, run.labelled, recipe), run.options.precision)
            best.append((scores.best.f1, name, shingles.name))
    yield checks.of_fields(max(best), run.recipe.fields, chosen.best_f1 or 0.0)


def _check_features(sample: Sample, sets: DistinctSets) -> None:
    with_features = len(sample.texts) - sets.featureless
    if with_features < 2:
        raise InputError(
            f"{with_features} of the {len(sample.texts):,} documents sampled have features; tune compares pairs of "
            "texts: check --body-field and the texts; for vectors use nearsim curve"
        )
