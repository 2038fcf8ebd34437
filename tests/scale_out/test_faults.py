"""A killed node or process, a node that is away: a clear message, nothing lost, the same command goes on afterwards."""

import signal
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import LiteralString

import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.admin.doctor import Finding, examine
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import ConflictError, DatabaseError, NearsimError
from nearsim_db.indexing import build_bands
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.readers import Source
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.scale_out_world import answers, documents, index_at, newest_leaves
from tests.builders.selection import some
from tests.builders.server_kills import kill
from tests.builders.workers import BLOCKED, IDLE, Application, application, running, wait_until
from tests.indexing.test_resume import run, write_documents
from tests.scale_out.half_commits import locked_shards, setting
from tests.servers.citus import CitusServer

pytestmark = pytest.mark.slow("kills nodes of a cluster")


@pytest.mark.parametrize("stage", some(["sign", "bands", "candidates", "clusters"], "every stage", kept=1))
def test_a_build_goes_on_when_a_killed_node_is_back(
    citus: CitusServer, urls: tuple[str, str], stage: str, own_tables: None
) -> None:
    node, is_up = citus.nodes[0], True

    def progress(step: str, done: int, total: int | None) -> None:
        nonlocal is_up
        if is_up and step == stage:
            is_up = False
            kill(node)

    with index_at(urls[0]) as plain, index_at(urls[1], progress=progress) as cluster:
        plain.add(documents(150, seed=11))
        with pytest.raises(DatabaseError, match="node1"):
            cluster.add(documents(150, seed=11))
        assert not is_up
        node.start()
        cluster.build()
        assert answers(cluster) == answers(plain)
        assert verify_index(cluster.database, sample=None).is_sound


@pytest.mark.usefixtures("either_tables")
def test_band_rows_of_finished_slices_are_kept_when_a_node_is_killed(
    citus: CitusServer, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, loaded, kept = citus.nodes[0], list[int](), 0
    monkeypatch.setattr(build_bands, "_BAND_ROWS_PER_COPY", 500)

    def progress(step: str, done: int, total: int | None) -> None:
        nonlocal kept
        if step == "bands":
            loaded.append(done)
            if done and not kept:
                kept = done
                kill(node)

    with index_at(urls[0]) as plain, index_at(urls[1], progress=progress) as cluster:
        plain.add(documents(150, seed=11))
        with pytest.raises(DatabaseError, match="node1"):
            cluster.add(documents(150, seed=11))
        loaded.clear()
        node.start()
        cluster.build()
        assert 0 < kept == loaded[0] < loaded[-1]
        assert answers(cluster) == answers(plain)
        assert verify_index(cluster.database, sample=None).is_sound


def test_band_rows_of_finished_slices_are_kept_when_the_process_is_killed(
    urls: tuple[str, str], tmp_path: Path
) -> None:
    file, loaded = tmp_path / "documents.jsonl", list[int]()
    write_documents(file, edition=1)

    def progress(step: str, done: int, total: int | None) -> None:
        if step == "bands":
            loaded.append(done)

    assert run(urls[1], file, "bands") == -signal.SIGKILL
    with Index.connect(urls[0]) as plain, Index.connect(urls[1], progress=progress) as cluster:
        for index in (plain, cluster):
            index.ingest(Source([file]))
        assert 0 < loaded[0] < loaded[-1]
        assert answers(cluster) == answers(plain)
        assert verify_index(cluster.database, sample=None).is_sound


def test_a_worker_goes_on_when_a_node_is_back(citus: CitusServer) -> None:
    node = citus.nodes[1]
    with citus.database() as url, index_at(url) as index, application(url) as writer:
        index.add(documents(60, seed=12))
        kill(node)
        writer.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) "
            "SELECT collection_id, 'late', body FROM nearsim.document WHERE external_id = 'd3'"
        )
        with pytest.raises(NearsimError, match="node2"):
            index.check(documents(60, seed=12)[0])
        with pytest.raises(NearsimError, match="node2"):
            index.stats(recount=True)
        with running(url) as worker:
            worker.wait_for_line("node2")
            node.start()
            wait_until(writer, IDLE)
        assert verify_index(index.database, sample=None).is_sound
        assert "d3" in {one.external_id for one in index.similar("late")}


def test_a_worker_repeats_a_search_during_which_a_node_was_killed(
    citus: CitusServer, urls: tuple[str, str]
) -> None:
    node, texts = citus.nodes[0], documents(80, seed=17)
    with index_at(urls[0]) as plain, index_at(urls[1]) as cluster, application(urls[1]) as writer:
        for index in (plain, cluster):
            index.add(texts[:60])
        plain.add(texts[60:])
        _sign(cluster, writer, texts[60:])
        table = newest_leaves(cluster).qualified("band")
        with locked_shards(writer, node, table) as asking, running(urls[1]) as worker:
            wait_until(asking, BLOCKED)
            kill(node)
            worker.wait_for_line("node1")
            node.start()
            wait_until(writer, IDLE)
        assert verify_index(cluster.database, sample=None).is_sound
        assert answers(cluster) == answers(plain)


def _sign(index: Index, writer: Application, texts: list[Document]) -> None:
    """Insert documents as another application, and sign them: they are still to be searched."""
    for one in texts:
        writer.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, title, body) VALUES (1, %s, %s, %s)",
            [one.external_id, one.title, one.body],
        )
    dispatch_changes(index.database.engine)
    with index.database.lease() as lease_id:
        runner = Runner(index.database.engine, index.serving().context)
        (batch,) = runner.take("sign", lease_id)
        assert len(batch.doc_ids) == len(texts)
        assert runner.run(batch) is not None


def test_a_promotion_ends_though_a_node_was_killed_during_it(
    citus: CitusServer, urls: tuple[str, str]
) -> None:
    node, found = citus.nodes[0], []
    for url in urls:
        with index_at(url) as index, application(url) as holding:
            index.add(documents(100, seed=18))
            reindex = Reindex(index.database, "default")
            reindex.start(settings=["match.threshold=0.2"])
            with holding.transaction():
                holding.execute("SELECT FROM nearsim.generation FOR UPDATE")
                promotion = Thread(target=reindex.promote)
                promotion.start()
                if url == urls[1]:
                    with application(url) as asking:
                        wait_until(asking, BLOCKED)
                    kill(node)
            promotion.join()
            if url == urls[1]:
                node.start()
            index.build()
            assert verify_index(index.database, sample=None).is_sound
            assert newest_leaves(index) == index.serving().context.leaves
            found.append(answers(index))
    assert found[1] == found[0]


@pytest.mark.parametrize(
    ("name", "value", "verdict", "words"),
    [
        ("max_prepared_transactions", "1", "problem", "limit of 1 prepared transaction"),
        ("wal_level", "replica", "warning", "wal_level replica"),
    ],
)
def test_the_doctor_reports_a_setting_of_a_node(
    citus: CitusServer, monkeypatch: pytest.MonkeyPatch, name: str, value: str, verdict: str, words: str
) -> None:
    node = citus.nodes[0]
    with citus.database() as url:
        monkeypatch.setenv("NEARSIM_DATABASE_URL", url)
        with setting(node, name, value):
            _restart(node)
            first, second = _nodes()
        _restart(node)
        assert (first.verdict, second.verdict) == (verdict, "ok")
        assert words in first.finding
        assert name in first.advice
        assert [one.verdict for one in _nodes()] == ["ok", "ok"]


def _restart(node: PostgresCluster) -> None:
    node.stop()
    node.start()


def test_the_doctor_names_a_node_that_is_away(citus: CitusServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with citus.database() as url, index_at(url) as index:
        index.add(documents(60, seed=13))
        monkeypatch.setenv("NEARSIM_DATABASE_URL", url)
        assert [one.verdict for one in _nodes()] == ["ok", "ok"]
        kill(citus.nodes[0])
        first, second = _nodes()
        assert (first.verdict, second.verdict) == ("problem", "ok")
        assert "does not answer" in first.finding
        citus.nodes[0].start()
        assert [one.verdict for one in _nodes()] == ["ok", "ok"]


def _nodes() -> list[Finding]:
    return [one for one in examine() if one.check == "node"]


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (["DROP INDEX {index}"], "missing_index"),
        (["UPDATE pg_index SET indisvalid = false WHERE indrelid = {table}::regclass"], "unusable_index"),
        (
            [
                "UPDATE pg_index SET indisready = false WHERE indrelid = {table}::regclass",
                "INSERT INTO {shard} (generation_id, bucket_hash, doc_id) "
                "SELECT generation_id, bucket_hash, 999 FROM {shard} LIMIT 1",
                "UPDATE pg_index SET indisready = true WHERE indrelid = {table}::regclass",
            ],
            "wrong_index",
        ),
        (["DROP TABLE {shard}"], "missing_table"),
    ],
)
def test_the_damaged_index_of_a_shard_is_reported_and_rebuilt(
    citus: CitusServer, damage: Sequence[LiteralString], kind: str, either_tables: None
) -> None:
    """In place if other generations share the table."""
    node = citus.nodes[1]
    with citus.database() as url, index_at(url) as index, application(url) as writer:
        index.add(documents(60, seed=21))
        expected, leaves = answers(index)["pairs"], newest_leaves(index)
        shard = _damage(node, writer, leaves.qualified("band"), damage)
        (fault,) = verify_index(index.database, sample=None).found.faults
        assert fault.kind == kind
        if kind != "wrong_index":
            assert fault.table == f"{leaves.name('band')}_{shard}" and "node2" in fault.examples[0][0]
        if kind == "missing_table":
            with pytest.raises(DatabaseError, match=r"(?s)missing on a node.*node2.*verify-index --repair"):
                _look_up_all(index)
        repaired = verify_index(index.database, sample=None, repair=True)
        assert repaired.is_repaired and (repaired.rebuilt is None) == leaves.are_shared
        assert verify_index(index.database, sample=None).is_sound
        assert answers(index)["pairs"] == expected


def test_a_missing_shard_of_the_parent_is_named_before_an_index_is_rebuilt(citus: CitusServer) -> None:
    with citus.database() as url, index_at(url) as index, application(url) as writer:
        index.add(documents(60, seed=21))
        shard = _damage(citus.nodes[1], writer, "nearsim.band", ["DROP TABLE {shard}"])
        with pytest.raises(ConflictError, match=f"the shard nearsim.band_{shard} is missing on .*node2"):
            verify_index(index.database, sample=None, repair=True)
        assert newest_leaves(index).generation_id == 1


def _damage(node: PostgresCluster, writer: Application, table: str, damage: Sequence[LiteralString]) -> int:
    """Run commands on a node with a shard of a table and its index; return the number of the shard."""
    query = (
        "SELECT shardid FROM pg_dist_shard_placement JOIN pg_dist_shard USING (shardid) "
        "WHERE nodename = %s AND logicalrelid = CAST(%s AS regclass) LIMIT 1"
    )
    ((shard,),) = writer.execute(query, [str(node.socket_directory), table]).fetchall()
    schema, _, name = table.partition(".")
    columns = "bucket" if name.endswith("shared") else "bucket_hash_doc_id_idx"
    with application(node.dsn(writer.info.dbname)) as there:
        there.execute("SET citus.enable_manual_changes_to_shards = on")
        for command in damage:
            there.execute(
                sql.SQL(command).format(
                    index=sql.Identifier(schema, f"{name}_{columns}_{shard}"),
                    table=sql.Literal(f"{table}_{shard}"),
                    shard=sql.Identifier(schema, f"{name}_{shard}"),
                )
            )
    assert isinstance(shard, int)
    return shard


def _look_up_all(index: Index) -> None:
    for one in documents(60, seed=21):
        index.check(one)
