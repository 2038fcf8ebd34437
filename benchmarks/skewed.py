"""Corpora in which one bucket has most of the documents."""

from collections.abc import Iterator

import numpy as np

from benchmarks.corpus import Corpus, generator
from benchmarks.language import Language
from nearsim_db.records import Document
from nearsim_db.similarity.encoder import Encoder

# The share of documents that get the footer. The footer determines band 0 in 96 % of these, so 92 % are in one bucket.
HOT_SHARE = 0.96
_PHRASES = 20_000
_PHRASE_WORDS = 3


def with_hot_bucket(
    documents: Iterator[Document], language: Language, encoder: Encoder, share: float, seed: int = 1
) -> Iterator[Document]:
    """Append a footer to a share of the documents, which puts nearly all of these into one bucket of band 0.

    The footer's phrases almost always have the lowest hashes for the positions of that band, and rarely for others.
    """
    rng = generator(np.random.SeedSequence([seed, _PHRASES]))
    footer = _winning_footer(language, encoder, rng)
    for document in documents:
        body = f"{document.body}\n{footer}" if rng.random() < share else document.body
        yield Document(document.external_id, document.title, body)


def _winning_footer(language: Language, encoder: Encoder, rng: np.random.Generator) -> str:
    """Return, for each row of band 0, the phrase with the lowest hash among many phrases."""
    drawn = language.draw_words(rng, _PHRASES * _PHRASE_WORDS).reshape(_PHRASES, _PHRASE_WORDS)
    phrases = [language.render_plain(words) for words in drawn]
    features = encoder.features(phrases)
    alone = encoder.sketch(features)
    # The sketch of a document with all phrases shows which phrase has the lowest hash at each position.
    everything = np.array([0, len(features.ids)], np.int64)
    together = encoder.family.sketch(features.ids, everything)[0]
    winners = [int(np.flatnonzero(alone[:, row] == together[row])[0]) for row in range(encoder.profile.rows)]
    return " ".join(phrases[winner] for winner in winners)


def corpus_documents(corpus: Corpus) -> Iterator[Document]:
    """Yield the documents of the synthetic corpus as documents of nearsim."""
    for document in corpus.documents():
        yield Document(document.external_id, document.title, document.text)
