"""The nearest records of short records: nearsim's join by rare features, and an exact join by sparse matrices.

    python -m benchmarks nearest [--documents 100000] [-k 5] [--share 20]

Records are titles of three to nine words of the synthetic language; 30 % of them are copies of other titles without one
of the words. Their features are runs of 3 characters with the weights ln(1 + n / df). The exact join multiplies the
sparse matrix of all records with its transpose in blocks, as the brute-force neighbours of scikit-learn do, for every
N-th record (`--share N`). If sparse_dot_topn is installed, it does the same with one thread. All joins run in one
process, one after the other. The figure "found" is the share of the exact join's similarities that nearsim reaches.
"""

import resource
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from typer import Option

from benchmarks.corpus import generator
from benchmarks.language import Language
from benchmarks.options import Seed
from nearsim_db.similarity import presets
from nearsim_db.similarity.arrays import Ragged
from nearsim_db.similarity.encoder import Encoder, Features
from nearsim_db.similarity.nearest import NearestJoin, NearestPairs
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import from_mapping

_BLOCK = 250
_EDITED = 0.3
_TOLERANCE = 1e-9
_SIMILAR = 0.5


def make_titles(count: int, seed: int) -> list[str]:
    """Return titles; 30 % of them are copies of other titles without one of the words."""
    rng = generator(np.random.SeedSequence(seed))
    language = Language(rng)
    originals = round(count * (1 - _EDITED))
    bodies = language.sample(rng, rng.integers(3, 10, originals), language.draw_topics(rng, originals))
    titles = [language.render(body) for body in bodies]
    for place in rng.integers(0, originals, count - originals).tolist():
        words = titles[place].split()
        del words[int(rng.integers(len(words)))]
        titles.append(" ".join(words))
    return titles


def ragged(features: Features) -> Ragged:
    """Return the ids of the features of all records."""
    return Ragged(features.ids, features.offsets)


def weighted(features: Features) -> sparse.csr_matrix:
    """Return the weighted vectors of records, scaled to length 1, as the rows of a matrix."""
    _, columns, frequency = np.unique(features.ids, return_inverse=True, return_counts=True)
    count = len(features.offsets) - 1
    weights = np.log1p(count / frequency)[columns]
    matrix = sparse.csr_matrix((weights, columns, features.offsets), shape=(count, len(frequency)))
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return (sparse.diags(1 / np.maximum(lengths, 1e-300)) @ matrix).tocsr()


def exact_join(features: Features, queries: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return the similarities of the `count` nearest records of some records, the highest first: (queries, count)."""
    matrix = weighted(features)
    transposed, blocks = matrix.T.tocsr(), []
    for at in range(0, len(queries), _BLOCK):
        rows = queries[at : at + _BLOCK]
        near = (matrix[rows] @ transposed).toarray()
        # A record is not its own match.
        near[np.arange(len(rows)), rows] = 0
        blocks.append(-np.sort(-np.partition(near, near.shape[1] - count, axis=1)[:, -count:], axis=1))
    return np.concatenate(blocks)


def top_n_join(features: Features, queries: NDArray[np.int64], count: int) -> float | None:
    """Return the processor seconds of sparse_dot_topn for the nearest of some records; None if it is not installed."""
    try:
        sp_matmul_topn = import_module("sparse_dot_topn").sp_matmul_topn
    except ImportError:
        return None
    used = time.process_time()
    matrix = weighted(features)
    # Ask for one more, because here each record is its own best match.
    sp_matmul_topn(matrix[queries], matrix.T.tocsr(), top_n=count + 1, sort=True, n_threads=1)
    return time.process_time() - used


def main(
    documents: Annotated[int, Option(help="Number of records.")] = 100_000,
    k: Annotated[int, Option("-k", help="Number of nearest records of each record.")] = 5,
    share: Annotated[int, Option(help="Use every N-th record for the exact join.")] = 20,
    seed: Seed = 1,
) -> Mapping[str, object]:
    """Compare the time of both joins per record, and count how many matches nearsim's join finds."""
    titles = make_titles(documents, seed)

    started, used = time.perf_counter(), time.process_time()
    features = Encoder(resolve(presets.load("records"))).features(titles)
    words = Encoder(resolve(from_mapping({"shingle": {"scheme": "bag"}}))).features(titles)
    join = NearestJoin(ragged(features), None, keys=(ragged(features).united(ragged(words)), None))
    pairs = NearestPairs.joined(list(join.search(k, 0.0)))
    spent = time.perf_counter() - started, time.process_time() - used
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    queries = np.arange(0, documents, share)
    started, used = time.perf_counter(), time.process_time()
    exact = exact_join(features, queries, k)
    spent_by_exact = time.perf_counter() - started, time.process_time() - used
    top_n = top_n_join(features, queries, k)

    # The matches of a query are adjacent, and the best comes first.
    rank = np.arange(len(pairs.query)) - np.searchsorted(pairs.query, pairs.query)
    similarity = np.zeros((documents, k))
    similarity[pairs.query, rank] = pairs.similarity
    reached = similarity[queries] >= exact - _TOLERANCE
    return {
        "records": documents,
        "nearsim": {"seconds": round(spent[0], 1), "cpu_seconds": round(spent[1], 1), "peak_megabytes": megabytes},
        "exact join": {
            "records": len(queries), "seconds": round(spent_by_exact[0], 1), "cpu_seconds": round(spent_by_exact[1], 1),
        },
        "times faster for each record, by cpu": round(spent_by_exact[1] / len(queries) / (spent[1] / documents), 1),
        "times faster than sparse_dot_topn": None
        if top_n is None
        else round(top_n / len(queries) / (spent[1] / documents), 1),
        "found of the nearest one": round(float(reached[:, 0].mean()), 4),
        "found of the nearest one from 0.5": round(float(reached[exact[:, 0] >= _SIMILAR, 0].mean()), 4),
        f"found of the nearest {k}": round(float(reached.mean()), 4),
    }  # fmt: skip
