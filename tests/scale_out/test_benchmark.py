"""The benchmark of one server and clusters."""

import pytest

from benchmarks import rebalancing, scale_out
from tests.servers.citus import CitusServer

pytestmark = pytest.mark.slow("starts clusters")


def test_one_server_and_a_cluster_have_equal_indexes(
    citus: CitusServer, capsys: pytest.CaptureFixture[str]
) -> None:
    scale_out.main(documents=[400], block=200, nodes=[0, 2], limits=[8], traffic=True)
    single, cluster = (line for line in capsys.readouterr().out.splitlines() if "bucket_limit" in line)
    assert single.endswith(": equal") and " 0 nodes: 400 documents, " in single
    assert cluster == single.replace(" 0 nodes", " 2 nodes")


@pytest.mark.usefixtures("citus")  # skips it without Citus
def test_an_index_is_the_same_after_shards_have_moved(capsys: pytest.CaptureFixture[str]) -> None:
    rebalancing.main(documents=1000)
    lines = capsys.readouterr().out.splitlines()
    assert "equal" in lines
    assert any(line.startswith("1,000 documents, ") and line.count(" shards, ") == 3 for line in lines)
