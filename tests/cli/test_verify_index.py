"""nearsim verify-index."""

import psycopg
import pytest

from tests.builders.command_line import CommandLine


def test_faults_exit_with_3_until_repaired(filled: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM nearsim_index.similar_pair_shared")
        connection.execute("UPDATE nearsim_index.signature_shared SET revision = 99 WHERE doc_id = 5")
    outcome = filled.run("verify-index")
    assert outcome.exit_code == 3
    shown = [line.split()[0] for line in outcome.out.splitlines()[-3:]]
    assert shown == ["outdated", "missing_pair", "wrong_cluster"] and "--repair" in outcome.err
    sampled = filled.run("verify-index", "--sample", "2", "--json").document()
    assert sampled["checked"]["documents"] == 2
    reported = filled.run("verify-index", "--all", "--json")
    assert reported.exit_code == 3
    kinds = {fault["kind"]: fault["examples"] for fault in reported.document()["faults"]}
    assert kinds["outdated"] == [["bridge"]] and kinds["missing_pair"] == [["storm", "storm-again"]]
    repaired = filled.succeed("verify-index", "--repair", "--json").document()
    assert repaired["repaired"] and repaired["left"] == [] and repaired["rebuilt"] is None
    assert filled.succeed("verify-index", "--all", "--json").document()["faults"] == []


@pytest.mark.usefixtures("own_tables")
def test_damaged_index_is_replaced(filled: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("DROP TABLE nearsim_index.band_100000001")
    outcome = filled.run("verify-index", "--quiet")
    assert outcome.exit_code == 3
    assert "profile default differs; to repair it: nearsim verify-index --repair\n" in outcome.err
    outcome = filled.run("verify-index", "-g", 100000001, "--sample", 5, "--quiet")
    assert outcome.err.endswith("nearsim verify-index --generation 100000001 --sample 5 --repair\n")
    repaired = filled.succeed("verify-index", "--repair")
    assert "differed and was replaced by generation 100000002\n" in repaired.err
    assert filled.succeed("verify-index", "--all", "--json").document()["generation"] == 100000002
