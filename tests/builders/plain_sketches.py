"""The sketch schemes in plain Python integers, written from their definitions: an oracle."""

import hashlib
import math
import statistics
import struct
from fractions import Fraction
from functools import cache
from itertools import accumulate

from tests.builders.plain_text import djb2a

MASK64, MASK32 = 2**64 - 1, 2**32 - 1
PRIME = 2**32 + 15
GOLDEN = 0x9E3779B97F4A7C15


def words(seed: int, purpose: str, count: int) -> list[int]:
    """SplitMix64 from the first 8 bytes of SHA-256 of "purpose:seed"."""
    return split_mix(
        int.from_bytes(hashlib.sha256(f"{purpose}:{seed}".encode()).digest()[:8], "little"), count
    )


def split_mix(state: int, count: int) -> list[int]:
    """The SplitMix64 generator."""
    drawn = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK64
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK64
        drawn.append(word ^ (word >> 31))
    return drawn


def fmix64(word: int) -> int:
    word = ((word ^ (word >> 33)) * 0xFF51AFD7ED558CCD) & MASK64
    word = ((word ^ (word >> 33)) * 0xC4CEB9FE1A85EC53) & MASK64
    return word ^ (word >> 33)


def fast_similarity(ids: list[int], k: int, seed: int, id_bits: int) -> list[int]:
    """Make every throw of every round. The earliest round wins a position, and within a round the lowest value."""
    points = [fmix64(id) for id in ids] if id_bits == 32 else ids
    masks = words(seed, "fast_similarity masks", 16)
    multipliers = words(seed, "fast_similarity multipliers", 16)
    best: dict[int, tuple[int, int]] = {}
    for round_no in range(16):
        for point in points:
            # An odd multiplier maps 64-bit words one to one.
            hashed = ((point ^ masks[round_no]) * (multipliers[round_no] | 1)) & MASK64
            high, low = hashed >> 32, hashed & MASK32
            position = high * k // 2**32
            thrown = (round_no, low ^ high)
            best[position] = min(best.get(position, thrown), thrown)

    factors = words(seed, "fast_similarity forced multipliers", k)
    addends = words(seed, "fast_similarity forced addends", k)
    for position in set(range(k)) - set(best):
        factor, addend = factors[position] >> 32 | 1, addends[position] >> 32
        best[position] = (16, min((factor * point + addend) & MASK32 for point in points))
    return [best[j][1] ^ (best[j][0] * 0x9E3779B1 & MASK32) for j in range(k)]


def fmix32(word: int) -> int:
    word = ((word ^ (word >> 16)) * 0x85EBCA6B) & MASK32
    word = ((word ^ (word >> 13)) * 0xC2B2AE35) & MASK32
    return word ^ (word >> 16)


def bottom_k(ids: list[int], k: int, seed: int, id_bits: int) -> list[int]:
    """The k lowest mixed ids in ascending order. A shorter row is filled with its last id. Seed 0 does not mix ids."""
    mask = words(seed, "bottom_k mask", 1)[0]
    mixed = {fmix64(id ^ mask) if id_bits == 64 else fmix32(id ^ (mask & MASK32)) for id in ids}
    smallest = sorted(mixed if seed else {*ids})[:k]
    return smallest + smallest[-1:] * (k - len(smallest))


def bottom_k_keys(row: list[int], bands: int, seed: int) -> list[int]:
    """The keys of the lowest ids. Each id has a key of its own, and all keys are in band 0.

    A place that only fills the row has the hash of the whole row and the place.
    """
    whole = mix64(row, seed)
    return [
        mix64([row[place]] if place == 0 or row[place] != row[place - 1] else [whole, place], seed) % 2**56
        for place in range(bands)
    ]


def minhash_prime32(ids: list[int], k: int, seed: int, id_bits: int) -> list[int]:
    points = [id >> (id_bits - 32) for id in ids]
    factors = [1 + (word >> 32) * MASK32 // 2**32 for word in words(seed, "minhash multipliers", k)]
    addends = [word >> 32 for word in words(seed, "minhash addends", k)]
    return [min((a * x + b) % PRIME for x in points) for a, b in zip(factors, addends, strict=True)]


def signed32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def java_ints(seed: int, count: int) -> list[int]:
    """java.util.Random(seed).nextInt(), as the Java documentation defines it."""
    state, drawn = (seed ^ 0x5DEECE66D) % 2**48, []
    for _ in range(count):
        state = (state * 0x5DEECE66D + 0xB) % 2**48
        drawn.append(signed32(state >> 16))
    return drawn


def minhash_java32(ids: list[int], k: int, seed: int, id_bits: int) -> list[int]:
    points = [signed32(id >> (id_bits - 32)) for id in ids]
    drawn = java_ints(seed, 2 * k)
    return [
        min(signed32(signed32(a * x) + b) for x in points)
        for a, b in zip(drawn[::2], drawn[1::2], strict=True)
    ]


def random_word(id: int, word: int, purpose: str, seed: int) -> int:
    """One of the 64-bit words of random bits that belong to an id. `word` is its number."""
    (mask,) = words(seed, f"{purpose} mask", 1)
    return fmix64((fmix64(id ^ mask) + (word + 1) * 0x9E3779B97F4A7C15) & MASK64)


def sign(id: int, position: int, purpose: str, seed: int) -> int:
    """A component of a random vector that is +1 or -1, from one random bit."""
    return 1 if random_word(id, position // 64, purpose, seed) >> position % 64 & 1 else -1


def normal(id: int, position: int, purpose: str, seed: int) -> int:
    """A normally distributed component of a random vector, in multiples of 2^-13.

    It is the middle of one of 4,096 equally probable parts, which 12 random bits choose.
    """
    lane = random_word(id, position // 4, purpose, seed) >> 16 * (position % 4) & 0xFFFF
    return NORMAL_PARTS[lane >> 4]


def normal_parts() -> list[int]:
    quantiles = [statistics.NormalDist().inv_cdf((part + 0.5) / 4096) for part in range(4096)]
    deviation = math.sqrt(math.fsum(quantile**2 for quantile in quantiles) / 4096)
    return [round(quantile / deviation * 2**13) for quantile in quantiles]


NORMAL_PARTS = normal_parts()


def hyperplane(weights: dict[int, float], k: int, seed: int, vectors: str) -> list[int]:
    """On which side of each hyperplane a vector is.

    Weights are rounded to whole multiples of 2^-24 of the power of 2 above the largest weight. If the vector is on a
    hyperplane, other random signs decide, with each weight multiplied by its own factor from 2^16 to 2^17.
    """
    exponent = math.frexp(max(abs(weight) for weight in weights.values()))[1]
    whole = {id: round(math.ldexp(weight, 24 - exponent)) for id, weight in weights.items()}
    draw = sign if vectors == "sign" else normal
    (mask,) = words(seed, "hyperplane uneven", 1)
    uneven = {id: weight * (2**16 + (fmix64(id ^ mask) >> 48)) for id, weight in whole.items()}
    sides = []
    for position in range(k):
        product = sum(weight * draw(id, position, "hyperplane", seed) for id, weight in whole.items())
        if product == 0:
            product = sum(
                weight * sign(id, position, "hyperplane ties", seed) for id, weight in uneven.items()
            )
        sides.append(int(product > 0))
    return sides


def projection(weights: dict[int, float], k: int, seed: int, width: float) -> list[int]:
    """The buckets floor((r . x + u) / width), numbered modulo 2^32.

    Weights are rounded to whole multiples of 2^-19 of the width. A weight of 2^31 widths or more is replaced by a hash.
    """
    whole = {}
    for id, weight in weights.items():
        # 2^31 widths are 2^50 units.
        scaled = math.ldexp(weight / width, 19)
        (bits,) = struct.unpack("<Q", struct.pack("<d", weight))
        whole[id] = round(scaled) if abs(scaled) < 2**50 else fmix64(bits)

    starts = words(seed, "projection offsets", k)
    return [
        signed32(
            (
                sum(weight * normal(id, position, "projection", seed) for id, weight in whole.items())
                + (starts[position] >> 32)
            )
            >> 32
        )
        for position in range(k)
    ]


def dart_minhash(weights: dict[int, float], k: int, seed: int) -> list[int]:
    """The value of the dart with the lowest rank in each position.

    Darts are thrown below a limit, which is raised until each position has a dart.
    """
    # About one dart is below this limit, because the density of darts is 1.
    limit = 1 / sum(weights.values())
    while True:
        best: dict[int, tuple[float, int]] = {}
        for id, weight in weights.items():
            for position, rank, value in darts_below(id, weight, limit, k, seed):
                best[position] = min(best.get(position, (math.inf, 0)), (rank, value))
        if len(best) == k:
            return [best[position][1] for position in range(k)]
        limit *= 3


def darts_below(id: int, weight: float, limit: float, k: int, seed: int) -> list[tuple[int, float, int]]:
    """Position, rank and value of the darts of an id, in cells of area 1, from the definition of the dart field."""
    (mask,) = words(seed, "dart_minhash mask", 1)
    point = fmix64(id ^ mask)
    darts = []

    for a in range(200):
        for b in range(200):
            begin, width, first, depth = 2.0**a - 1, 2.0 ** (a - b), 2.0**b - 1, 2.0 ** (b - a)
            if begin >= weight or first >= limit:
                break
            for part in range(min(2**b, math.ceil((weight - begin) / width))):
                for layer in range(min(2**a, math.ceil((limit - first) / depth))):
                    cell = fmix64(point ^ (a << 56 | b << 48 | part << 24 | layer))
                    for dart in range(poisson(cell)):
                        within = fmix64((cell + (2 * dart + 1) * GOLDEN) & MASK64)
                        chosen = fmix64((cell + (2 * dart + 2) * GOLDEN) & MASK64)
                        at = begin + (part + (within >> 32) / 2**32) * width
                        rank = first + (layer + (within & MASK32) / 2**32) * depth
                        if at < weight and rank < limit:
                            darts.append(((chosen >> 32) * k >> 32, rank, chosen & MASK32))
    return darts


def poisson(word: int) -> int:
    """The number of darts in a cell: Poisson distributed with mean 1, by inversion."""
    return sum(word >= threshold for threshold in cumulated_probabilities())


@cache
def cumulated_probabilities() -> list[int]:
    """The probabilities of at most 0, 1, 2 ... darts, in units of 2^-64, in exact arithmetic."""
    # 1 / e by its power series.
    none = sum((Fraction((-1) ** n, math.factorial(n)) for n in range(40)), Fraction(0))
    return [
        int(2**64 * probability)
        for probability in accumulate(none / math.factorial(count) for count in range(25))
    ]


def band_key(rows: list[int], band: int, scheme: str, seed: int) -> int:
    if scheme == "djb2a-joined":
        hashed = djb2a(".".join(map(str, rows)).encode())
    elif scheme == "xor":
        first, second = words(seed, "band keys xor", 2)
        hashed = 0
        for row in rows:
            point = row % 2**32 if row < 0 else row
            hashed ^= ((1 + first % MASK32) * point + second % PRIME) % PRIME
    else:
        hashed = mix64([row % 2**32 if row < 0 else row for row in rows], seed) % 2**56
    # The upper 8 of the 64 bits are the number of the band.
    return band << 56 | hashed


def mix64(rows: list[int], seed: int) -> int:
    hashed = words(seed, "band keys mix64", 1)[0]
    for row in rows:
        hashed = ((hashed ^ row) * 0xFF51AFD7ED558CCD) & MASK64
        hashed ^= hashed >> 32
    return fmix64(hashed)
