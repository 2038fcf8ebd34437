"""The input of measurements: the synthetic corpus with families of templates, and processes that insert it in SQL."""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import numpy as np
import psycopg

from benchmarks.corpus import Corpus, CorpusDocument, generator
from benchmarks.living_system import read_backlog
from benchmarks.templates import Template
from nearsim_db.records import Document

FAMILY = 500
_PER_COMMIT = 20
_ASK_EVERY = 25
_INSERT = "INSERT INTO nearsim.document (collection_id, external_id, title, body) VALUES (%s, %s, %s, %s)"


def make_templates(corpus: Corpus, count: int, rng: np.random.Generator) -> list[Template]:
    """Return `count` templates; templates whose members could be too different are skipped."""
    templates: list[Template] = []
    while len(templates) < count:
        try:
            templates.append(Template(corpus.language, rng))
        except ValueError:
            continue
    return templates


def mixed_documents(documents: int, seed: int, hot_share: float) -> Iterator[Document]:
    """Yield the documents of a corpus in which a share of `hot_share` are members of families from templates.

    A family has about FAMILY members, which share buckets with more than the usual limit of 64 documents. The members
    are spread evenly over the corpus.
    """
    rng = generator(np.random.SeedSequence([seed, documents]))
    # Shuffle, so that the members of templates are spread over the corpus.
    is_hot = rng.permutation(np.arange(documents) < round(documents * hot_share))
    corpus = Corpus(documents - int(is_hot.sum()), seed)
    templates = make_templates(corpus, max(1, int(is_hot.sum()) // FAMILY), rng)
    others = corpus.documents()
    for number, hot in enumerate(is_hot.tolist()):
        if hot:
            title, text = templates[int(rng.integers(len(templates)))].fill(number, rng)
            yield Document(f"t{number:07}", title, text)
        else:
            yield _plain(next(others))


def _plain(document: CorpusDocument) -> Document:
    return Document(document.external_id, document.title, document.text)


def insert_all(url: str, collection_id: int, documents: Sequence[Document], max_waiting: int) -> None:
    """Insert documents, with a few per commit; pause while more than `max_waiting` documents wait to be searched."""
    with psycopg.connect(url, autocommit=True) as connection:
        remaining, commits = iter(documents), 0
        while batch := list(islice(remaining, _PER_COMMIT)):
            rows = [
                (collection_id, document.external_id, document.title, document.body) for document in batch
            ]
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(_INSERT, rows)
            commits += 1
            while commits % _ASK_EVERY == 0 and read_backlog(connection).searching > max_waiting:
                time.sleep(0.25)


@contextmanager
def running_writers(
    url: str, collection_id: int, documents: Sequence[Document], writers: int, max_waiting: int
) -> Iterator[None]:
    """Run processes that each insert a part of the documents during the block, and wait for them at its end.

    Raises RuntimeError if a process failed.
    """
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=insert_all, args=(url, collection_id, documents[place::writers], max_waiting))
        for place in range(writers)
    ]
    for process in processes:
        process.start()

    try:
        yield
        for process in processes:
            process.join()
    finally:
        for process in processes:
            process.kill()
    # This is reached only if the block raised no error.
    if any(process.exitcode for process in processes):
        raise RuntimeError("a writer failed")
