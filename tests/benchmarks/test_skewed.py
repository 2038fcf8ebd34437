"""The generators of skewed corpora: families of log lines, and a bucket with most of the documents."""

import numpy as np
import pytest

from benchmarks.corpus import Corpus
from benchmarks.skewed import TEMPLATES, corpus_documents, log_lines, with_hot_bucket
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe

pytestmark = pytest.mark.slow("a benchmark")


@pytest.mark.slow("a large corpus")
def test_log_lines_differ_in_four_fields_of_their_template() -> None:
    lines = [str(one.body).split() for one in log_lines(400)]
    assert list(log_lines(400)) == list(log_lines(400))
    families: dict[frozenset[str], int] = {}
    for words in lines:
        assert sum(word.startswith(("host", "user", "path", "id")) for word in words) >= 4
        fixed = frozenset(word for word in words if not word[-1].isdigit())
        families[fixed] = families.get(fixed, 0) + 1
    assert len(families) == TEMPLATES and sum(families.values()) == 400


def test_hot_bucket_has_most_documents_and_other_buckets_do_not() -> None:
    corpus, encoder = Corpus(300, seed=1), Encoder(resolve(Recipe()), "numpy")
    made = list(with_hot_bucket(corpus_documents(corpus), corpus.language, encoder, 0.96))
    assert [one.external_id for one in made] == [one.external_id for one in corpus_documents(corpus)]
    features = encoder.features([encoder.text_of(one.title, one.body) for one in made])
    keys = encoder.band_keys(encoder.sketch(features))
    largest = [int(np.unique(keys[:, band], return_counts=True)[1].max()) for band in range(keys.shape[1])]
    assert largest[0] > 0.85 * len(made)
    assert max(largest[1:]) < 0.15 * len(made)
