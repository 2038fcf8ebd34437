"""Features spooled when documents are signed: verification reads no texts, but what is missing from the spool."""

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
from nearsim_db.indexing import band_keys, build, catch_up, feature_spool, ingest
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import FeatureSpool
from nearsim_db.indexing.slice_taker import Taker
from nearsim_db.indexing.steps import search
from nearsim_db.similarity.batches import SignatureRows, Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.signatures import signatures
from tests.builders.reindex_world import RECIPE, stories
from tests.indexing.test_early_signing import COUNT, WEIGHTED, assert_exact, create

TEXTS = ["one two three four", "", "five six seven", "one two three five"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a few documents go through several batches."""
    monkeypatch.setattr(ingest, "_BATCH_DOCUMENTS", 8)
    monkeypatch.setattr(band_keys, "_SKETCHES_AT_ONCE", 7)


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


@pytest.mark.parametrize("settings", [RECIPE, WEIGHTED], ids=["ids", "weights"])
def test_features_are_returned_under_their_digest(settings: Sequence[str]) -> None:
    encoder, spool, features, digests = spooled(settings)
    other = FeatureSpool(encoder, replace(spool.place_for(1), descriptor=os.dup(spool.descriptor)))
    other.gather()
    assert len(other) == 0  # the first is not finished
    spool.finish()
    other.gather()
    for one in (spool, other):
        found = one.get_all([4, 1, 2, 3, 9], [digests[3], digests[0], digests[1], digests[0], digests[0]])
        assert found[3:] == [None, None]
        for got, expected in zip(found, (features[3], features[0], features[1]), strict=False):
            assert got is not None and got.dtype == expected.dtype and (got == expected).all()
        one.close()


def test_parts_that_do_not_ascend_are_read_together() -> None:
    """Two processes have signed documents, one of them twice, in any order; the first part decides."""
    encoder, rows, features = signed(RECIPE)
    spool = FeatureSpool.create(encoder)
    assert spool is not None
    other = FeatureSpool(encoder, replace(spool.place_for(1), descriptor=os.dup(spool.descriptor)))
    digests = [UUID(bytes=one.tobytes()) for one in rows.digests]
    for one, chosen in ((spool, [3]), (spool, [0]), (other, [2, 1]), (other, [0])):
        assert one.add(rows.take(np.array(chosen)), [features[row] for row in chosen])
    other.finish()
    spool.gather()
    assert len(spool) == 5
    found = spool.get_all([1, 2, 3, 4], digests)
    assert all(got is not None and (got == own).all() for got, own in zip(found, features, strict=True))
    assert spool.has_all(np.arange(1, 5), rows.digests)
    read = [
        (doc_id, sketch)
        for part in spool.stream_signatures(np.array([1, 3, 4]))
        for doc_id, sketch in zip(part.doc_ids.tolist(), part.sketches.tolist(), strict=True)
    ]
    assert sorted(read) == [(row + 1, rows.sketches[row].tolist()) for row in (0, 2, 3)]
    other.close()
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
    for chosen in (every, every[1:3], []):
        doc_ids = np.array([doc_id for doc_id, _ in chosen], np.int64)
        assert spool.has_all(doc_ids, void([digest for _, digest in chosen]))
        read = spool.read_signatures(doc_ids)
        assert read is not None
        for parts in (list(spool.stream_signatures(doc_ids)), [read]):
            assert [
                pair for one in parts for pair in zip(one.doc_ids.tolist(), one.digests, strict=True)
            ] == chosen
            for one in parts:
                assert one.sketches.tolist() == [expected[doc_id] for doc_id in one.doc_ids.tolist()]
    for doc_id, digest in ((1, digests[2]), (2, digests[0]), (9, digests[0])):
        assert not spool.has_all(np.array([doc_id]), void([digest]))
    assert spool.read_signatures(np.array([1, 9])) is None
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
    """Without memory for band keys, which are in the spool then, and without memory for sketches besides them."""
    monkeypatch.setenv("NEARSIM_BUILD_MEMORY", str(megabytes))
    monkeypatch.setattr(catch_up, "_LEAST_DOCUMENTS", 2**40)
    for name in ("read_sketches", "stream_head_sketches", "stream_heads"):
        monkeypatch.setattr(signatures, name, refuse)
    monkeypatch.setattr(band_keys, "_DIGEST_BYTES", 2**40)
    monkeypatch.setattr(feature_spool, "_SKETCHES_AT_ONCE", 3)
    with Index.connect(database_url) as index:
        create(index, RECIPE)
        index.add(stories(COUNT))
        monkeypatch.undo()
        assert_exact(index)


@pytest.mark.parametrize("has_room", [True, False])
@pytest.mark.parametrize("family", ["minhash", "bottom_k"])
def test_band_keys_in_the_spool_find_the_same_pairs(
    database_url: str, monkeypatch: pytest.MonkeyPatch, family: str, has_room: bool
) -> None:
    """The columns of minhash are bands, those of bottom_k are not. Without room the sketches are read."""
    found = []
    for collection, megabytes in (("in memory", 256), ("in the spool", 0)):
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


@pytest.mark.parametrize(("share", "kept"), [(4, "all"), (3.9, "sketches"), (1.9, "nothing")])
def test_no_more_than_a_share_of_the_free_disk_is_used(
    monkeypatch: pytest.MonkeyPatch, share: float, kept: str
) -> None:
    """Features stay below a quarter of what is free, sketches alone below a half."""
    encoder, rows, features = signed(RECIPE)
    of_sketches = rows.sketches.nbytes
    used = of_sketches + (0 if kept == "nothing" else sum(one.nbytes for one in features))
    disk = SimpleNamespace(f_bavail=int(share * used), f_frsize=1)
    monkeypatch.setattr("os.fstatvfs", lambda descriptor: disk)
    spool = FeatureSpool.create(encoder)
    assert spool is not None and spool.add(rows, features) is (kept == "all")
    assert spool.takes_features is (kept == "all")
    spool.finish()
    digests = [UUID(bytes=one.tobytes()) for one in rows.digests]
    assert [one is not None for one in spool.get_all([1, 3], [digests[0], digests[2]])] == [kept == "all"] * 2
    read = spool.read_signatures(np.array([1, 3]))
    assert (read is None) == (kept == "nothing")
    assert read is None or read.sketches.tolist() == rows.sketches[[0, 2]].tolist()
    spool.close()


def test_no_spool_where_estimates_decide() -> None:
    encoder = Encoder(resolve(override(Recipe(), ["match.verify=estimate"])), "numpy")
    assert FeatureSpool.create(encoder) is None


def test_no_spool_without_a_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    assert FeatureSpool.create(Encoder(resolve(Recipe()), "numpy")) is None


def test_the_build_reads_no_sketches_and_no_text_to_verify(
    database_url: str, read_to_verify: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signatures, "stream_heads", None)  # reads sketches
    with Index.connect(database_url) as index:
        create(index, RECIPE)
        index.add(stories(COUNT))
        assert_exact(index)
        assert read_to_verify == []


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow("child processes"))])
def test_a_build_that_signs_reads_no_text_to_verify(
    database_url: str, read_to_verify: list[int], monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """Documents cannot be signed before the build, as common shingles are not known yet. A helper signs all of them."""
    take = Taker.take
    if jobs > 1:
        monkeypatch.setattr(Taker, "take", lambda taker, stage: stage != "sign" and take(taker, stage))
    monkeypatch.setattr(catch_up, "_LEAST_DOCUMENTS", 0)
    monkeypatch.setattr(build, "MOST_DOCUMENTS", 0)
    monkeypatch.setattr("nearsim_db.indexing.context.FeatureCache.get_all", no_features)
    with Index.connect(database_url) as index:
        index.database.jobs = jobs
        create(index, ["sketch.family=winnow", "shingle.k=2", "match.ignore_common=90"])
        index.add(stories(COUNT))
        assert len(list(index.pairs())) == 20  # by brute force
        assert read_to_verify == []


def no_features(cache: object, doc_ids: Sequence[int], digests: Sequence[UUID]) -> list[None]:
    """What an empty cache returns."""
    return [None] * len(doc_ids)


@pytest.mark.parametrize("bound", ["_MOST_BYTES", "_MOST_DOCUMENTS"])
def test_what_does_not_fit_is_read(
    database_url: str, read_to_verify: list[int], monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(feature_spool, bound, {"_MOST_BYTES": 600, "_MOST_DOCUMENTS": 10}[bound])
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


@pytest.mark.slow("child processes")
def test_child_processes_inherit_the_spool(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "_LEAST_DOCUMENTS", 0)
    with Index.connect(database_url) as index:
        index.database.jobs = 2
        create(index, RECIPE)
        index.add(stories(COUNT))
        assert_exact(index)
