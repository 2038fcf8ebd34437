"""Features kept when documents are signed: verification reads no texts but those that are missing from the spool."""

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db import Index
from nearsim_db.indexing import build, feature_file, feature_spool
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import FeatureSpool
from nearsim_db.indexing.ingest import bulk
from nearsim_db.indexing.steps import search
from nearsim_db.similarity.batches import SignatureRows, Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.signatures.signatures import SignatureTable
from tests.builders.reindex_world import RECIPE, stories
from tests.indexing.test_early_signing import COUNT, WEIGHTED, assert_exact, create

TEXTS = ["one two three four", "", "five six seven", "one two three five"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a few documents go through several batches."""
    monkeypatch.setattr(bulk, "_BATCH_DOCUMENTS", 8)


@pytest.fixture
def read_to_verify(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The documents that a build reads to verify candidates, as it does so."""
    doc_ids: list[int] = []
    current_features = search.current_features

    def recorded(
        context: Context, signed: Signatures, rows: Mapping[int, int], batch: Sequence[StoredDocument]
    ) -> search.Features:
        doc_ids.extend(one.doc_id for one in batch)
        return current_features(context, signed, rows, batch)

    monkeypatch.setattr(search, "current_features", recorded)
    return doc_ids


def signed(settings: Sequence[str]) -> tuple[Encoder, SignatureRows, list[Any]]:
    """The signatures and features of TEXTS."""
    encoder = Encoder(resolve(override(Recipe(), list(settings))), "numpy")
    encoded = encoder.encode(TEXTS, keep_features=True)
    doc_ids = np.arange(1, len(TEXTS) + 1)
    rows = SignatureRows(doc_ids, doc_ids, encoded.counts, encoded.digests, encoded.sketches, encoded.numbers)
    return encoder, rows, list(encoded.features)


def spooled(settings: Sequence[str]) -> tuple[Encoder, FeatureSpool, list[Any], list[UUID]]:
    """A spool of TEXTS, not finished, with their features and digests."""
    encoder, rows, features = signed(settings)
    spool = FeatureSpool.create(encoder)
    assert spool is not None and spool.add(rows, features)
    return encoder, spool, features, [UUID(bytes=one.tobytes()) for one in rows.digests]


@pytest.mark.parametrize("mapped_bytes", [1 << 28, 0], ids=["mapped", "read"])
@pytest.mark.parametrize("settings", [RECIPE, WEIGHTED], ids=["ids", "weights"])
def test_features_are_returned_under_their_digest(
    settings: Sequence[str], mapped_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_file, "_MAX_MAPPED_BYTES", mapped_bytes)
    _, spool, features, digests = spooled(settings)
    assert spool.get_all([1], digests[:1]) == [None]  # it is not finished
    spool.finish()
    got = spool.get_all([4, 1, 2, 3, 9], [digests[3], digests[0], digests[1], digests[0], digests[0]])
    assert got[3:] == [None, None]
    for array, expected in zip(got, (features[3], features[0], features[1]), strict=False):
        assert array is not None and array.dtype == expected.dtype and (array == expected).all()
    spool.close()


def test_of_a_document_that_was_added_twice_the_last_entry_counts() -> None:
    encoder, rows, features = signed(RECIPE)
    spool = FeatureSpool.create(encoder)
    assert spool is not None
    older = replace(rows.take(np.array([0])), digests=rows.digests[[2]])
    assert spool.add(older, [features[2]])
    for chosen in ([3], [2, 1], [0]):
        assert spool.add(rows.take(np.array(chosen)), [features[row] for row in chosen])
    spool.finish()
    digests = [UUID(bytes=digest.tobytes()) for digest in rows.digests]
    got = spool.get_all([1, 2, 3, 4], digests)
    assert all(array is not None and (array == own).all() for array, own in zip(got, features, strict=True))
    assert spool.match_heads([(np.arange(1, 5), rows.digests)])
    assert spool.read_signatures(np.array([1, 3, 4])).sketches.tolist() == rows.sketches[[0, 2, 3]].tolist()
    spool.close()


@pytest.mark.parametrize("settings", [RECIPE, WEIGHTED], ids=["ids", "weights"])
def test_sketches_are_returned_if_all_heads_have_their_digest(settings: Sequence[str]) -> None:
    encoder, spool, _, digests = spooled(settings)
    more = encoder.encode(["eight nine ten", "eleven twelve thirteen"], keep_features=True)
    ids = np.array([7, 8])
    assert spool.add(
        SignatureRows(ids, ids, more.counts, more.digests, more.sketches, more.numbers), more.features
    )
    spool.finish()
    every = [
        *zip([1, 3, 4], [digests[0], digests[2], digests[3]], strict=True),
        (8, UUID(bytes=bytes(more.digests[1]))),
    ]
    expected = {
        number: encoder.encode([text]).sketches[0].tolist()
        for number, text in enumerate([*TEXTS, "", "", "", "eleven twelve thirteen"], 1)
    }
    for chosen in (every, every[1:3]):
        doc_ids = np.array([doc_id for doc_id, _ in chosen], np.int64)
        assert spool.match_heads([(doc_ids, void([digest for _, digest in chosen]))])
        streamed = [
            pair
            for ids, sketches in spool.stream_head_sketches()
            for pair in zip(ids.tolist(), sketches.tolist(), strict=True)
        ]
        assert streamed == [(doc_id, expected[doc_id]) for doc_id, _ in chosen]
        read = spool.read_signatures(doc_ids)
        assert list(zip(read.doc_ids.tolist(), read.digests, strict=True)) == chosen
        assert read.sketches.tolist() == [expected[doc_id] for doc_id, _ in chosen]
    for doc_id, digest in ((1, digests[2]), (2, digests[0]), (9, digests[0])):
        assert not spool.match_heads([(np.array([doc_id]), void([digest]))])
    spool.close()


def void(digests: Sequence[UUID]) -> NDArray[np.void]:
    """Digests as the database returns them."""
    return np.array([one.bytes for one in digests], "V16")


def refuse(*given: object, **named: object) -> None:
    """What must not be called."""
    raise AssertionError


@pytest.mark.parametrize("megabytes", [0, 1])
def test_the_pairs_are_found_with_sketches_of_the_spool(
    database_url: str, monkeypatch: pytest.MonkeyPatch, megabytes: int
) -> None:
    """Also without memory for band keys, which are in a temporary file then."""
    monkeypatch.setenv("NEARSIM_BUILD_MEMORY", str(megabytes))
    for name in ("read_sketches", "stream_head_sketches"):
        monkeypatch.setattr(SignatureTable, name, refuse)
    monkeypatch.setattr(feature_spool, "_SKETCHES_PER_BATCH", 3)
    with Index.connect(database_url) as index:
        create(index, RECIPE)
        index.add(stories(COUNT))
        monkeypatch.undo()
        assert_exact(index)


@pytest.mark.parametrize("has_room", [True, False])
@pytest.mark.parametrize("family", ["minhash", "bottom_k"])
def test_band_keys_in_a_file_find_the_same_pairs(
    database_url: str, monkeypatch: pytest.MonkeyPatch, family: str, has_room: bool
) -> None:
    """The columns of minhash are bands, those of bottom_k are not. Without room on the disk they are in memory."""
    found = []
    for collection, megabytes in (("in memory", 256), ("in a file", 0)):
        monkeypatch.setenv("NEARSIM_BUILD_MEMORY", str(megabytes))
        if not has_room:
            monkeypatch.setattr("os.posix_fallocate", no_space)
        with Index.connect(database_url, collection=collection) as index:
            create(index, ["shingle.k=1", "match.threshold=0.5", f"sketch.family={family}"])
            index.add(stories(COUNT))
            found.append({(one.left, one.right, one.shared_bands) for one in index.pairs()})
    assert found[0] == found[1] and len(found[0]) > 10


def no_space(*given: int) -> None:
    """What a full disk raises."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("share", "is_kept"), [(4, True), (3.9, False)])
def test_no_more_than_a_quarter_of_the_free_disk_is_used(
    monkeypatch: pytest.MonkeyPatch, share: float, is_kept: bool
) -> None:
    encoder, rows, features = signed(RECIPE)
    used = rows.sketches.nbytes + sum(array.nbytes for array in features)
    monkeypatch.setattr("os.statvfs", lambda folder: SimpleNamespace(f_bavail=int(share * used), f_frsize=1))
    spool = FeatureSpool.create(encoder)
    assert spool is not None and spool.add(rows, features) is spool.takes_features is is_kept
    spool.finish()
    digests = [UUID(bytes=digest.tobytes()) for digest in rows.digests]
    assert [array is not None for array in spool.get_all([1, 3], [digests[0], digests[2]])] == [is_kept] * 2
    assert spool.match_heads([(np.array([1, 3]), rows.digests[[0, 2]])]) is is_kept
    spool.close()


def test_where_estimates_decide_only_sketches_are_kept() -> None:
    encoder, rows, _ = signed([*RECIPE, "match.verify=estimate"])
    spool = FeatureSpool.create(encoder)
    assert spool is not None and not spool.takes_features and spool.add(rows, ())
    spool.finish()
    assert spool.get_all([1], [UUID(bytes=rows.digests[0].tobytes())]) == [None]
    assert spool.read_signatures(np.array([3])).sketches.tolist() == rows.sketches[[2]].tolist()
    spool.close()


def test_no_spool_without_a_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    assert FeatureSpool.create(Encoder(resolve(Recipe()), "numpy")) is None


def test_the_build_reads_no_sketches_and_no_text_to_verify(
    database_url: str, read_to_verify: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SignatureTable, "stream_head_sketches", refuse)
    with Index.connect(database_url) as index:
        create(index, RECIPE)
        index.add(stories(COUNT))
        assert_exact(index)
        assert read_to_verify == []


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_build_that_signs_reads_no_text_to_verify(
    database_url: str, read_to_verify: list[int], monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    """Documents cannot be signed before the build, as common shingles are not known yet."""
    monkeypatch.setattr(build, "MAX_SMALL_BUILD_DOCUMENTS", 0)
    monkeypatch.setattr("nearsim_db.indexing.context.FeatureCache.get_all", no_features)
    monkeypatch.setenv("NEARSIM_THREADS", threads)
    with Index.connect(database_url) as index:
        create(index, ["sketch.family=winnow", "shingle.k=2", "match.ignore_common=90"])
        index.add(stories(COUNT))
        assert len(list(index.pairs())) == 20  # by brute force
        assert read_to_verify == []


def no_features(cache: object, doc_ids: Sequence[int], digests: Sequence[UUID]) -> list[None]:
    """What an empty cache returns."""
    return [None] * len(doc_ids)


def test_what_does_not_fit_is_read(
    database_url: str, read_to_verify: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.statvfs", lambda folder: SimpleNamespace(f_bavail=0, f_frsize=1))
    with Index.connect(database_url) as index:
        create(index, RECIPE)
        index.add(stories(COUNT))
        assert_exact(index)
        assert read_to_verify


def test_the_file_is_closed_with_the_build(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FeatureSpool] = []
    create_spool = FeatureSpool.create

    def recorded(encoder: Encoder) -> FeatureSpool | None:
        made.extend(one for one in [create_spool(encoder)] if one is not None)
        return made[-1]

    monkeypatch.setattr(FeatureSpool, "create", recorded)
    with Index.connect(database_url) as index:
        create(index, RECIPE)
        index.add(stories(COUNT))
    assert [one.close.alive for one in made] == [False]
