"""Text in, band keys out, on one thread: nearsim with numba, nearsim with NumPy, datasketch in bulk.

    python -m benchmarks signing [--documents F.jsonl.gz] [--count 1000] [--rounds 7] [--stages]

Character 5-shingles, k = 128, 32 bands of 4 rows. Without --documents the texts are 400-word stories of the
synthetic language: plain ASCII, and the same with curly quotes and a few accents. All take turns in one run; a
ratio is of two runs of the same round. datasketch is given sets of encoded shingles, made in Python;
MinHash.bulk hashes them by its default, SHA-1, or by xxhash, and the keys are those that MinHashLSH would
store. No threads are started.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import xxhash
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray
from typer import Option

from benchmarks.corpus import generator
from benchmarks.language import Language
from benchmarks.measure import Spread, ratio, spread, take_turns
from benchmarks.options import CorpusFile, Rounds
from benchmarks.peers.shingles import character_shingles
from benchmarks.truth import read_documents
from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import load, override
from nearsim_db.similarity.text import Shingler, separators
from nearsim_db.similarity.text.kernels import text_kernels
from nearsim_db.similarity.text.normalise import from_texts, make_fold

RECIPE = Path(__file__).parent / "recipes" / "c5.toml"
K, BANDS, ROWS, SHINGLE = 128, 32, 4, 5
WORDS = 400
PEER_SHARE = 10  # the peer signs one text of so many, or a round would take too long
STAGE_DOCUMENTS = 48

Result = TypeVar("Result")
Runs = dict[str, list[float]]
HashFunction = Callable[[bytes], int]


def make_stories(count: int, seed: int = 1) -> list[str]:
    """Return `count` stories of about WORDS words, all ASCII."""
    rng = generator(np.random.SeedSequence(seed))
    language = Language(rng)
    bodies = language.sample(rng, np.full(count, WORDS), language.draw_topics(rng, count))
    return [language.render(body) for body in bodies]


def with_curly_quotes(text: str) -> str:
    """Return the text with a quotation, a dash and an accent, as news sites print it."""
    return f"“{text[:80]}” – {text[80:].replace('ea', 'é', 2)}’s"


def make_encoder(backend: Backend) -> Encoder:
    """Return the encoder of the measured recipe."""
    settings = [f"sketch.k={K}", f"bands.count={BANDS}", f"bands.rows={ROWS}"]
    return Encoder(resolve(override(load(RECIPE), settings)), backend)


def band_keys_of(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return the bucket hashes of texts, (n, bands) uint64; computes no digests and no distinct features."""
    shingler, sketches = Shingler(encoder.profile.recipe, encoder.backend), []
    for begin in range(0, len(texts), STAGE_DOCUMENTS):
        shingles = shingler.shingles(texts[begin : begin + STAGE_DOCUMENTS])
        sketches.append(encoder.family.sketch(shingles.ids, shingles.offsets))
    return encoder.matrix_keys(np.concatenate(sketches))


def sign(shingle_sets: Iterable[Iterable[bytes]], hash_function: HashFunction | None) -> list[list[bytes]]:
    """Return the band keys that MinHashLSH would store, of MinHashes made in bulk; SHA-1 without a hash function."""
    index = MinHashLSH(num_perm=K, params=(BANDS, ROWS))
    hashes = MinHash.bulk(shingle_sets, num_perm=K, hashfunc=hash_function)
    return [[index._H(one.hashvalues[begin:end]) for begin, end in index.hashranges] for one in hashes]


def measure(texts: Sequence[str], rounds: int) -> Runs:
    """Return seconds per text, one value per round."""
    sample = texts[::PEER_SHARE]

    def sign_by_peer(hash_function: HashFunction | None) -> object:
        return sign((character_shingles(text, SHINGLE) for text in sample), hash_function)

    runs: dict[str, Callable[[], object]] = {
        "nearsim numba": partial(band_keys_of, make_encoder("numba"), texts),
        "nearsim numpy": partial(band_keys_of, make_encoder("numpy"), texts),
        "datasketch sha1": lambda: sign_by_peer(None),
        "datasketch xxhash": lambda: sign_by_peer(xxhash.xxh32_intdigest),
    }
    signed = {name: len(sample) if name.startswith("datasketch") else len(texts) for name in runs}
    for run in runs.values():
        run()
    return {
        name: [one / signed[name] for one in seconds] for name, seconds in take_turns(runs, rounds).items()
    }


def compare(seconds: Runs) -> dict[str, Spread]:
    """Return how many times faster each back end is than each variant of datasketch."""
    return {
        f"{own} vs {peer}": ratio(seconds[peer], seconds[own])
        for own in seconds
        for peer in seconds
        if own.startswith("nearsim") and peer.startswith("datasketch")
    }


class Stages:
    """Sums of the time of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, name: str, step: Callable[[], Result]) -> Result:
        """Run a step and add its time under a name."""
        started = time.perf_counter()
        result = step()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
        return result


def measure_stages(texts: Sequence[str], backend: Backend) -> dict[str, float]:
    """Return seconds per text by stage, in one pass over the stages of band_keys_of."""
    encoder, stages = make_encoder(backend), Stages()
    fold, kernels = make_fold(encoder.profile.recipe.normalise), text_kernels(backend)
    for begin in range(0, len(texts), STAGE_DOCUMENTS):
        batch = texts[begin : begin + STAGE_DOCUMENTS]
        folded = stages.run("fold", partial(_each, fold, batch))
        raw = stages.run("encode", partial(from_texts, folded))
        squeeze = partial(kernels.squeeze, raw.data, raw.offsets, separators.spaces(True))
        data, offsets = stages.run("squeeze", squeeze)
        cut = partial(kernels.char_ids, data, offsets, SHINGLE, "poly64", raw.ascii)
        ids, id_offsets = stages.run("shingle ids", cut)
        sketches = stages.run("sketch", partial(encoder.family.sketch, ids, id_offsets))
        stages.run("band keys", partial(encoder.band_keys, sketches))
    return {name: value / len(texts) for name, value in stages.seconds.items()}


def _each(fold: Callable[[str], str], batch: Sequence[str]) -> list[str]:
    return [fold(text) for text in batch]


def median_stages(texts: Sequence[str], backend: Backend, rounds: int) -> dict[str, float]:
    """Return the median of each stage over some passes, after a warm-up."""
    passes = [measure_stages(texts, backend) for _ in range(rounds + 1)][1:]
    return {name: spread([one[name] for one in passes]).median for name in passes[0]}


def make_texts(documents: Path | None, count: int) -> dict[str, list[str]]:
    """Return the texts to sign, by name."""
    if documents is not None:
        encoder = make_encoder("numpy")
        given = read_documents(documents)[:count]
        return {documents.name: [encoder.text_of(one.title, one.body) for one in given]}
    stories = make_stories(count)
    return {"ascii": stories, "curly quotes": [with_curly_quotes(text) for text in stories]}


def main(
    documents: CorpusFile = None,
    count: Annotated[int, Option(help="Number of texts.")] = 1_000,
    rounds: Rounds = 7,
    stages: Annotated[bool, Option("--stages", help="Also time each stage of nearsim.")] = False,
) -> dict[str, object]:
    """Sign texts in turns."""
    report: dict[str, object] = {}
    for name, texts in make_texts(documents, count).items():
        seconds = measure(texts, rounds)
        one = {
            "microseconds": {key: str(spread([v * 1e6 for v in values])) for key, values in seconds.items()}
        }
        one["ratio"] = {key: str(value) for key, value in compare(seconds).items()}
        if stages:
            for backend in ("numba", "numpy"):
                found = median_stages(texts, backend, rounds)
                one[f"stages {backend}"] = {key: f"{value * 1e6:.2f}" for key, value in found.items()}
        report[f"{name}: {len(texts)} texts, {sum(map(len, texts)) // len(texts)} characters each"] = one
    return report
