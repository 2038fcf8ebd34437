"""The upper tail of the binomial distribution, to full precision."""

import math

_NEGLIGIBLE = 1e-18


def at_least(least: int, trials: int, chance: float) -> float:
    """Return the probability of at least `least` successes in `trials` trials of probability `chance`.

    The sum over i of C(n, i) p^i (1 - p)^(n - i), computed from the end of the smaller tail: nothing overflows,
    and results close to 0 or 1 keep their digits.
    """
    if least <= 0 or chance >= 1:
        return float(least <= trials)
    if least > trials or chance <= 0:
        return 0.0
    if least == 1:
        return -math.expm1(trials * math.log1p(-chance))
    if least == trials:
        return math.pow(chance, trials)
    if least > trials * chance:
        return _sum_up(least, trials, chance)
    return 1 - _sum_up(trials - least + 1, trials, 1 - chance)


def _sum_up(least: int, trials: int, chance: float) -> float:
    """Sum the tail, starting with its largest term."""
    odds = chance / (1 - chance)
    term = math.exp(
        _log_choose(trials, least) + least * math.log(chance) + (trials - least) * math.log1p(-chance)
    )
    total = term
    for count in range(least, trials):
        term *= (trials - count) / (count + 1) * odds
        total += term
        if term < total * _NEGLIGIBLE:
            break
    return min(total, 1.0)


def _log_choose(n: int, i: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
