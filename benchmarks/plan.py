"""The plan of a synthetic corpus: which documents are copies of which, and which have a shared block."""

from dataclasses import dataclass

import numpy as np

from benchmarks.language import Floats, Ints, draw_ranks

SINGLE, ORIGINAL, NEAR, EXACT, TINY = range(5)
EXACT_GROUP = 2_000
LARGEST_CLUSTER = 1_000


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of documents of each kind."""

    near: float = 0.25
    exact: float = 0.02
    block: float = 0.01
    tiny: float = 0.005


@dataclass(frozen=True, slots=True)
class Plan:
    """What is planned for each document, as arrays in the order of the file. Each cluster has one original."""

    role: Ints  # SINGLE, ORIGINAL, NEAR, EXACT or TINY
    cluster: Ints  # from 0, or -1 for no cluster
    block: Ints  # number of the block of boilerplate in the document, from 0, or -1 for no block
    name: Ints  # the number in the id: a permutation, so that ids reveal neither role nor order
    clusters: int
    blocks: int


def cluster_law(largest: int) -> Floats:
    """Return the cumulative probabilities of the cluster sizes 2 to `largest`, which fall as size ** -2."""
    weights = np.arange(2, largest + 1, dtype=np.float64) ** -2.0
    return np.asarray(np.cumsum(weights) / weights.sum(), dtype=np.float64)


def near_sizes(documents: int, copies: int, rng: np.random.Generator) -> list[int]:
    """Return the sizes of clusters that together have `copies` copies; sizes include the originals."""
    largest = min(LARGEST_CLUSTER, max(2, documents // 20))
    drawn = 2 + draw_ranks(rng, cluster_law(largest), copies)
    ends = np.cumsum(drawn - 1)
    sizes: list[int] = drawn[: int(np.searchsorted(ends, copies)) + 1].tolist()
    if sizes:
        # The last cluster gets only the remaining copies.
        sizes[-1] -= int(ends[len(sizes) - 1]) - copies
    return sizes


def exact_sizes(documents: int, share: float) -> list[int]:
    """Return the sizes of the groups of identical documents: groups of 2,000, and a smaller group at the end."""
    full_groups, remaining = divmod(int(documents * share), EXACT_GROUP)
    return [EXACT_GROUP] * full_groups + ([remaining] if remaining > 1 else [])


def make_plan(documents: int, shares: Shares, rng: np.random.Generator) -> Plan:
    """Return a random plan. Raises ValueError if the shares require more documents than there are."""
    groups = exact_sizes(documents, shares.exact)
    sizes = groups + near_sizes(documents, int(documents * shares.near), rng)
    members, tiny, carriers = sum(sizes), int(documents * shares.tiny), int(documents * shares.block)
    if members + tiny + carriers > documents:
        raise ValueError(f"the shares {shares} need more than {documents} documents; make them smaller")

    # Assign roles to places in random order: first copies, then tiny documents, then documents with a block.
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
