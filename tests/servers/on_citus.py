"""Which tests run on a Citus cluster with --citus, and the reasons why others do not."""

from collections.abc import Iterable, Iterator

import pytest

_ISOLATION = "Citus refuses policies with subqueries: isolation is refused by name"
_EMPTY = "the coordinator's own index has no rows; tests/scale_out/test_faults.py damages that of a shard"
# Tests that cannot run on a cluster, by a part of their id, with the reason
DIFFERENT = {
    "tests/admin/test_isolation": _ISOLATION,
    "tests/admin/attach/test_owner_code.py": "Citus creates the owner's schema on nodes too, where it has no right to",
    "test_access.py::test_isolation_is_enabled_and_shown": _ISOLATION,
    "test_access.py::test_reader_of_a_collection_no_longer_writes_it": _ISOLATION,
    "test_review.py::test_a_tenant_judges_its_own_collection": _ISOLATION,
    "tests/sql/test_band_joins.py": f"{_ISOLATION}; the nodes' plans are not in the coordinator's tree",
    "test_models.py::test_module_agrees": "generations are distributed by default there",
    "test_access.py::test_users_without_any_access_are_listed": _ISOLATION,
    "test_access.py::test_doctor_of_an_isolated_reader": _ISOLATION,
    "test_drop.py::test_an_interrupted_detach_is_finished_by_the_next_drop": (
        "Citus has no DETACH PARTITION ... CONCURRENTLY"
    ),
    "test_killed_server.py::test_a_server_killed_while_a_drop_waits": (
        "Citus has no DETACH PARTITION ... CONCURRENTLY"
    ),
    "test_definers.py::test_new_partitions_ignore_default_privileges[pg15-isolated]": (
        "isolation is refused by name"
    ),
    "test_migrations.py::test_alembic_command_makes_the_same_schema": (
        "schema init replaces functions there, which alembic alone does not"
    ),
    "test_feature_spool.py::test_the_pairs_are_found_with_sketches": "slices of band rows read sketches there",
    "test_build_slices.py::test_one_transaction_gives_the_same_index": "few documents go through all stages, too",
    "test_many_collections.py::test_a_first_document_takes": "few documents go through all stages, too",
    "test_where_a_role_has_a_transaction_timeout": "Citus adds a condition that does not run in parallel to pg_class",
    "tests/contract/test_contract.py": "nodes are in answers there",
    "tests/contract/test_paths.py": "distributed rows take paths of their own",
    "tests/store/test_restored_cluster.py": "tests/scale_out/test_dump_restore.py restores to clusters",
    "tests/store/test_stale_statistics.py": (
        "plans of Citus that auto_explain logs are no valid JSON, and it refuses those with bit_xor (verify-index)"
    ),
    "test_view_plans.py::test_candidates_read_and_lock": (
        "the sketches of the test are empty; on Citus shared bands are counted from the sketches"
    ),
    "test_view_plans.py::test_the_worked_self_join_reads": "band rows are read on nodes, by names of shards",
    "test_view_plans.py::test_a_join_of_bands_finds": "the nodes' plans are not in the coordinator's tree",
    "test_verify_index.py::test_damaged_tables_are_reported_and_the_index_rebuilt[pg15-an index misses a row]": _EMPTY,
    "test_shared_damage.py::test_damaged_indexes_are_built_again[pg15-an index misses a row]": _EMPTY,
    "test_shared_damage.py::test_without_an_index_of_the_table_a_collection_gets_its_own_tables": _EMPTY,
    "test_drop.py::test_the_space_of_dropped_rows_is_reused": "most of the bytes it measures are on nodes there",
    "test_joins.py::test_a_list_page_of_an_isolated_reader_reads_few_documents": _ISOLATION,
}

# Tests on servers of their own, without Citus: those of files and of single tests, by a part of their id
OWN_SERVERS = {
    "tests/schema/test_copied_database.py": "copies the files of a server that is killed",
    "tests/schema/test_installing_roles.py": "needs a server without the roles of nearsim",
    "tests/schema/test_newer_major.py": "moves a database from one major of PostgreSQL to another",
    "tests/schema/test_upgrading_page.py": "the page uses the embedded server",
    "tests/store/test_embedded_server.py": "tests the embedded server",
    "tests/store/test_compose.py::test_commands_and_health_checks": "has the settings of the compose file",
    "tests/worker/test_full_disk.py": "moves a database to a small disk",
    "tests/worker/test_standby.py": "promotes the standby of a server",
    "tests/cli/test_standby.py": "asks the standby of a server",
    "tests/cli/test_embedded.py": "tests the embedded server",
    "tests/cli/test_wheel.py": "tests the embedded server of an installed wheel",
    "tests/examples/test_readme.py::test_readme_from_top_to_bottom": "the page uses the embedded server",
    "tests/examples/test_pages.py::test_page_from_top_to_bottom": "pages use the embedded server",
}


def database_tests(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests of scale_out, and those that use a database, which are skipped if it is not the cluster's."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        reason = _reason(item.nodeid)
        if reason:
            item.add_marker(pytest.mark.skip(reason))
            yield item
        elif fixtures & {"citus", "server", "server_to_kill"} or "/scale_out/" in item.nodeid:
            yield item
        elif fixtures & {"major", "servers"}:
            raise pytest.UsageError(f"{item.nodeid} has a server of its own: give the reason in {__file__}")


def _reason(nodeid: str) -> str:
    for part, reason in DIFFERENT.items():
        if part in nodeid:
            return reason
    for part, reason in OWN_SERVERS.items():
        if part in nodeid:
            return f"a server of its own: {reason}"
    return ""
