"""The upper tail of the binomial distribution, with all its digits."""

import math

_NEGLIGIBLE = 1e-18


def at_least(least: int, trials: int, chance: float) -> float:
    """The probability that at least `least` of `trials` independent trials succeed, each with probability `chance`.

    The sum over i of C(n, i) p^i (1 - p)^(n - i), from the side of the tail: nothing overflows, and what is left of 0
    or of 1 is not lost in rounding.
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
    """The tail from its first and largest term on."""
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


def _log_choose(all_of: int, some: int) -> float:
    return math.lgamma(all_of + 1) - math.lgamma(some + 1) - math.lgamma(all_of - some + 1)
