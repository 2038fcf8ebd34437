"""Checks, labels and decisions on a sample, against SciPy and brute force."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from nearsim_db.analysis.evaluation import MIN_DECISIONS, estimate, wilson
from nearsim_db.analysis.tuning.checks import (
    check_functions,
    check_hash_width,
    check_k_rule,
    check_uniformity,
    chi_squared_tail,
    function_uniformity,
    uniformity,
)
from nearsim_db.analysis.tuning.labels import best, precision_recall, reaching, read_labels, score, separating
from nearsim_db.errors import InputError
from nearsim_db.similarity.k_rule import KRule, units_of
from nearsim_db.similarity.sketch.minhash import MinHash


@pytest.mark.parametrize("degrees", [12, 100, 1008])
def test_chi_squared_tail_equals_scipy(degrees: int) -> None:
    for quantile in (0.001, 0.05, 0.5, 0.9, 0.999):
        value = float(chi2.ppf(quantile, degrees))
        assert chi_squared_tail(value, degrees) == pytest.approx(1 - quantile, abs=0.002)


@pytest.mark.parametrize(("amount", "buckets"), [(100, 13), (2_000, 101), (40_000, 1009)])
def test_uniformity_is_pearsons_test(amount: int, buckets: int) -> None:
    ids = np.random.default_rng(amount).integers(0, 2**64, amount, np.uint64)
    found = uniformity(ids)
    assert found is not None
    expected = chisquare(np.bincount([one % buckets for one in ids.tolist()], minlength=buckets))
    assert (found.buckets, found.degrees_of_freedom) == (buckets, buckets - 1)
    assert found.chi_squared == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue, abs=0.003)
    assert check_uniformity(found, "poly64").verdict == "ok"


def test_uneven_hash_is_reported() -> None:
    found = uniformity(np.arange(0, 60_000, 3, dtype=np.uint64) * np.uint64(1009))
    assert found is not None
    assert found.p_value < 1e-9
    assert check_uniformity(found, "djb2a").verdict == "warning"
    assert uniformity(np.arange(20, dtype=np.uint64)) is None


def test_uniformity_of_each_function_is_pearsons_test_of_its_values() -> None:
    numbers = np.arange(1, 100_001, dtype=np.uint64)
    coefficients = [(1_103_515_245, 12_345), (2_654_435_761, 7), (40_503, 99)]
    for functions, lowest, values in (("prime32", 0, 4_294_967_311), ("java32", -(2**31), 2**32)):
        found = function_uniformity(
            MinHash(id_bits=32, functions=functions, backend="numpy", coefficients=coefficients), numbers
        )
        for one, (a, b) in zip(found, coefficients, strict=True):
            expected = chisquare(
                np.bincount([((a * x + b - lowest) % values + lowest) % 13 for x in range(1, 100_001)])
            )
            assert (one.ids, one.buckets) == (100_000, 13)
            assert one.chi_squared == pytest.approx(expected.statistic)


def test_function_that_gives_few_values_is_reported_though_the_hash_is_uniform() -> None:
    ids = np.unique(np.random.default_rng(3).integers(0, 2**64, 50_000, np.uint64))
    hashed = uniformity(ids)
    assert hashed is not None
    assert check_uniformity(hashed, "poly64").verdict == "ok"
    drawn = function_uniformity(MinHash(128), ids)
    assert (len(drawn), check_functions(drawn).verdict) == (128, "ok")
    poor = function_uniformity(
        MinHash(functions="java32", coefficients=[(2_654_435_761, 7), (2**30, 9)]), ids
    )
    found = check_functions(poor)
    assert found.verdict == "warning"
    assert "function 1" in found.finding
    assert check_functions(function_uniformity(MinHash(8), ids[:20])).verdict == "ok"


def test_the_k_rule_counts_two_to_the_entropy_units() -> None:
    ids = np.array([1, 2, 3, 4] * 5 + [9] * 20, np.uint64)
    found = units_of(ids, np.array([0, 10, 40], np.int64))
    assert found.alphabet == pytest.approx(2 ** -(4 * 0.125 * math.log2(0.125) + 0.5 * math.log2(0.5)))
    assert (found.lengths.tolist(), found.typical_length, found.short(10)) == ([10, 30], 20, 0.5)
    for k, verdict in ((2, "problem"), (3, "warning"), (4, "ok")):
        rule = KRule(20.0, k, 600)
        assert rule.ratio == pytest.approx(20**k / (600 - k + 1))
        assert rule.verdict == check_k_rule(rule, "characters").verdict == verdict


def test_32_bits_are_too_few_for_many_shingles() -> None:
    assert check_hash_width("crc32", 1e5).verdict == "ok"
    assert check_hash_width("crc32", 1e8).verdict == "warning"
    assert check_hash_width("poly64", 1e10).verdict == "ok"


@pytest.mark.parametrize("seed", range(5))
def test_best_f1_equals_brute_force(seed: int) -> None:
    generator = np.random.default_rng(seed)
    duplicate = generator.random(60) < 0.4
    similarity = generator.normal(np.where(duplicate, 0.7, 0.4), 0.2).clip(0, 1).round(2).astype(np.float64)

    def f1(threshold: float) -> float:
        called = similarity >= threshold
        return 2 * float((called & duplicate).sum()) / float(called.sum() + duplicate.sum())

    points = precision_recall(similarity, duplicate)
    chosen = best(points)
    assert chosen is not None
    assert chosen.f1 == pytest.approx(max(f1(one) for one in set(similarity.tolist()) if one > 0))
    threshold = separating(points, chosen)
    assert ((similarity >= threshold) == (similarity >= chosen.threshold)).all()
    for point in points:
        called = similarity >= point.threshold
        assert point.precision == pytest.approx(duplicate[called].mean())
        assert point.recall == pytest.approx(called[duplicate].mean())


@pytest.mark.parametrize("seed", range(5))
def test_scores_of_labels_equal_brute_force(seed: int) -> None:
    generator = np.random.default_rng(seed)
    duplicate = generator.random(80) < 0.5
    similarity = generator.normal(np.where(duplicate, 0.6, 0.5), 0.2).clip(0, 1).round(2).astype(np.float64)
    found = score(similarity, duplicate, threshold=0.55)
    own, others = similarity[duplicate].tolist(), similarity[~duplicate].tolist()
    wins = sum((one > other) + (one == other) / 2 for one in own for other in others)
    assert found.auc == pytest.approx(wins / (len(own) * len(others)))
    for band in found.bands:
        inside = (similarity >= band.low - 1e-9) & ((similarity < band.high - 1e-9) | (band.high == 1))
        assert band.pairs == inside.sum()
        assert band.precision == pytest.approx(duplicate[inside].mean())
    assert sum(band.pairs for band in found.bands) == 80
    assert found.at is not None and found.at.precision == pytest.approx(duplicate[similarity >= 0.55].mean())
    assert found.accept_all.precision == pytest.approx(duplicate.mean())
    wanted = reaching(found.points, 0.8)
    if wanted is not None:
        assert wanted.precision >= 0.8
        assert all(one.precision < 0.8 for one in found.points if one.threshold < wanted.threshold)


def test_labels_that_similarities_do_not_separate() -> None:
    generator = np.random.default_rng(1)
    duplicate = generator.random(570) < 0.817
    assert not score(generator.uniform(0.2, 1, 570), duplicate).separate
    assert score(np.where(duplicate, 0.8, 0.4), duplicate).separate
    assert not score(np.full(570, 0.5), duplicate).separate


def test_label_synonyms_are_accepted_and_bad_lines_counted(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "label,id_b,note,id_a\n1,b,,a\nNo,c,x,a\nDuplicate,c,,b\nmaybe,d,,a\ntrue,a,,a\n0,,,a\nfalse,d,,c\n"
    )
    labels = read_labels(path)
    assert labels.pairs == [("a", "b", True), ("a", "c", False), ("b", "c", True), ("c", "d", False)]
    assert labels.bad == 3
    assert [reason.partition(":")[0] for reason in labels.reasons] == ["line 5", "line 6", "line 7"]
    labels.keep_known({"a": "", "b": "", "c": ""})
    assert (len(labels.pairs), labels.unknown) == (3, 1)


def test_invalid_csv_line_does_not_affect_others(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text('id_a,id_b,label\n"a",b,1\na,"c,0\nb,c,0\r\n\n"x"y,z,1\na,"d, e",no\na,b\n"open\n')
    labels = read_labels(path)
    assert labels.pairs == [("a", "b", True), ("b", "c", False), ("a", "d, e", False)]
    assert labels.bad == 5
    assert [reason.partition(":")[0] for reason in labels.reasons] == [f"line {at}" for at in (3, 5, 6, 8, 9)]


def test_labels_without_their_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    for content in ("id_a,id_b\nx,y\n", "", 'id_a,id_b,"label\nx,y,1\n'):
        path.write_text(content)
        with pytest.raises(InputError):
            read_labels(path)
    with pytest.raises(InputError):
        read_labels(tmp_path / "none.csv")


def test_wilson_agrees_with_published_figures() -> None:
    # Newcombe (1998), table I: 81 of 263, and 0 of 20 without continuity correction.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_weights_undo_unequal_probabilities() -> None:
    rng = random.Random(7)
    population = [
        (similarity, rng.random() < (similarity - 0.5) * 2)
        for similarity in (rng.uniform(0.5, 1) for _ in range(20_000))
    ]
    above = [same for similarity, same in population if similarity >= 0.7]
    precision = sum(above) / len(above)

    def drawn(rng: random.Random) -> list[tuple[float, bool, float]]:
        rows = []
        for similarity, same in population:
            probability = 0.03 if similarity < 0.9 else 0.006
            if rng.random() < probability:
                rows.append((similarity, same, probability))
        return rows

    found = [estimate(drawn(random.Random(seed)), 0.7) for seed in range(60)]
    assert sum(one.precision or 0 for one in found) / 60 == pytest.approx(precision, abs=0.01)
    covered = sum(one.low <= precision <= one.high for one in found)
    assert covered >= 53  # 95 % of 60 are 57; fewer than 53 have a probability of 1 %
    assert all(one.judged + one.below > MIN_DECISIONS for one in found)


def test_the_threshold_that_separates_the_decisions_is_suggested() -> None:
    rows = [(0.5 + at / 100, at >= 25, 1.0) for at in range(50)]
    found = estimate(rows, 0.6)
    assert found.suggested == pytest.approx(0.75, abs=0.011)
    assert found.suggested_f1 == pytest.approx(1.0, abs=0.02)
    assert found.f1 == pytest.approx(2 * 25 / (40 + 25))
    assert (found.judged, found.below) == (40, 10)
    higher = estimate([row for row in rows if row[0] >= 0.8], 0.8)
    assert (higher.suggested, higher.missing) == (None, MIN_DECISIONS - 20)


def test_few_decisions_suggest_a_threshold_that_is_nearly_the_best() -> None:
    """Of pairs from 0.5 on, of which more are the same the more similar they are: the F1 among all of them."""
    rng = random.Random(9)
    drawn = [rng.uniform(0.5, 1) for _ in range(4_000)]
    population = [(one, rng.random() < 1 / (1 + math.exp(-14 * (one - 0.62)))) for one in drawn]

    def f1(threshold: float) -> float:
        called = [same for similarity, same in population if similarity >= threshold]
        return 2 * sum(called) / (len(called) + sum(same for _, same in population))

    best = max(f1(at / 100) for at in range(50, 100))
    found = [estimate([(*one, 1.0) for one in rng.sample(population, 25)], 0.7).suggested for _ in range(100)]
    reached = [f1(one) for one in found if one is not None]
    assert len(reached) > 95
    assert sum(reached) / len(reached) > best - 0.015


def test_without_decisions_nothing_is_suggested() -> None:
    found = estimate([], 0.7)
    assert (found.precision, found.suggested, found.missing) == (None, None, MIN_DECISIONS)
