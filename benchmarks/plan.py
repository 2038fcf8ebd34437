"""The plan of a synthetic corpus: which documents are copies of which, and which have a shared block."""

from dataclasses import dataclass

import numpy as np

from benchmarks.language import Floats, Ints, draw_ranks

SINGLE, ORIGINAL, NEAR, EXACT, TINY = range(5)
EXACT_GROUP = 2_000
LARGEST_CLUSTER = 1_000


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of all documents."""

    near: float = 0.25
    exact: float = 0.02
    block: float = 0.01
    tiny: float = 0.005


@dataclass(frozen=True, slots=True)
class Plan:
    """One entry per document, in the order of the file; each cluster has one original."""

    role: Ints  # one of the constants above
    cluster: Ints  # from 0, or -1
    block: Ints  # the block that the document shares with others, from 0, or -1
    name: Ints  # a permutation, so that ids reveal neither role nor order
    clusters: int
    blocks: int


def cluster_law(largest: int) -> Floats:
    """Return cumulative probabilities of the cluster sizes 2, 3 ... `largest`, falling as size ** -2."""
    weights = np.arange(2, largest + 1, dtype=np.float64) ** -2.0
    return np.asarray(np.cumsum(weights) / weights.sum(), dtype=np.float64)


def near_sizes(documents: int, copies: int, rng: np.random.Generator) -> list[int]:
    """Return sizes, originals included, of clusters with `copies` copies in all."""
    largest = min(LARGEST_CLUSTER, max(2, documents // 20))
    drawn = 2 + draw_ranks(rng, cluster_law(largest), copies)
    ends = np.cumsum(drawn - 1)
    sizes: list[int] = drawn[: int(np.searchsorted(ends, copies)) + 1].tolist()
    if sizes:
        # The last cluster has the copies that are left.
        sizes[-1] -= int(ends[len(sizes) - 1]) - copies
    return sizes


def exact_sizes(documents: int, share: float) -> list[int]:
    """Return sizes of the groups of identical documents: full groups of 2,000, then one with the rest."""
    full, rest = divmod(int(documents * share), EXACT_GROUP)
    return [EXACT_GROUP] * full + ([rest] if rest > 1 else [])


def make_plan(documents: int, shares: Shares, rng: np.random.Generator) -> Plan:
    """Return a random plan; raises ValueError if the shares require more documents than there are."""
    groups = exact_sizes(documents, shares.exact)
    sizes = groups + near_sizes(documents, int(documents * shares.near), rng)
    members, tiny, carriers = sum(sizes), int(documents * shares.tiny), int(documents * shares.block)
    if members + tiny + carriers > documents:
        raise ValueError(f"the shares {shares} need more than {documents} documents; make them smaller")

    # Roles are dealt to a random order of places: copies, then tiny documents, then those with a block.
    place = rng.permutation(documents)
    role, cluster, block = np.full(documents, SINGLE), np.full(documents, -1), np.full(documents, -1)
    cluster[place[:members]] = np.repeat(np.arange(len(sizes)), sizes)
    role[place[:members]] = np.where(cluster[place[:members]] < len(groups), EXACT, NEAR)
    firsts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, dtype=np.int64)
    role[place[firsts]] = ORIGINAL
    role[place[members : members + tiny]] = TINY

    blocks = max(1, documents // 100_000)
    block[place[members + tiny : members + tiny + carriers]] = np.arange(carriers) % blocks
    return Plan(role, cluster, block, rng.permutation(documents), len(sizes), blocks)
