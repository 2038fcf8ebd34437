"""Corpora with one bucket that has most of the documents."""

from collections.abc import Iterator

import numpy as np

from benchmarks.corpus import Corpus, generator
from benchmarks.language import Language
from nearsim_db.records import Document
from nearsim_db.similarity.encoder import Encoder

# Share of the documents that get the footer, for 92 % in one bucket: it wins all rows of band 0 in 96 % of them.
HOT_SHARE = 0.96
_PHRASES = 20_000
_PHRASE_WORDS = 3


def with_hot_bucket(
    documents: Iterator[Document], language: Language, encoder: Encoder, share: float, seed: int = 1
) -> Iterator[Document]:
    """Append a footer to this share of the documents that puts nearly all of them into one bucket of band 0.

    The footer's phrases win the positions of that band almost always, and change the rest of a sketch little.
    """
    rng = generator(np.random.SeedSequence([seed, _PHRASES]))
    footer = _winning_footer(language, encoder, rng)
    for document in documents:
        body = f"{document.body}\n{footer}" if rng.random() < share else document.body
        yield Document(document.external_id, document.title, body)


def _winning_footer(language: Language, encoder: Encoder, rng: np.random.Generator) -> str:
    """Return one phrase for each row of band 0: among many phrases, the one with the lowest hash."""
    drawn = language.draw_words(rng, _PHRASES * _PHRASE_WORDS).reshape(_PHRASES, _PHRASE_WORDS)
    phrases = [language.render_plain(words) for words in drawn]
    features = encoder.features(phrases)
    alone = encoder.sketch(features)
    # One document with all phrases, whose sketch shows which phrase wins each position.
    everything = np.array([0, len(features.ids)], np.int64)
    together = encoder.family.sketch(features.ids, everything)[0]
    winners = [int(np.flatnonzero(alone[:, row] == together[row])[0]) for row in range(encoder.profile.rows)]
    return " ".join(phrases[winner] for winner in winners)


def corpus_documents(corpus: Corpus) -> Iterator[Document]:
    """The documents of the synthetic corpus as nearsim takes them."""
    for document in corpus.documents():
        yield Document(document.external_id, document.title, document.text)
