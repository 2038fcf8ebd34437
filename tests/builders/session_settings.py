"""Settings that a role, a database or an application's session may have. Each of them differs from the default."""

from collections.abc import Mapping

import psycopg
from psycopg import sql

FORMATS = {
    "DateStyle": "German",
    "IntervalStyle": "iso_8601",
    "TimeZone": "Asia/Kathmandu",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "xmlbinary": "hex",
    "xmloption": "document",
}
MEANING = {
    "search_path": "hostile, public",
    "standard_conforming_strings": "off",
    "escape_string_warning": "on",
    "backslash_quote": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "row_security": "off",
    "exit_on_error": "on",
    "plpgsql.extra_errors": "all",
    "plpgsql.extra_warnings": "all",
    "client_min_messages": "error",
    "check_function_bodies": "off",
    "restrict_nonsystem_relation_kind": "view",
}
TRANSACTIONS = {
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "statement_timeout": "20ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "1ms",
    "idle_session_timeout": "2s",
    "transaction_timeout": "50ms",
    "synchronous_commit": "off",
}
PLANS = {
    **dict.fromkeys(("enable_seqscan", "enable_indexscan", "enable_indexonlyscan", "enable_nestloop"), "off"),
    **dict.fromkeys(("enable_hashjoin", "enable_mergejoin", "enable_hashagg", "enable_sort"), "off"),
    **dict.fromkeys(("enable_material", "enable_partition_pruning", "enable_memoize"), "off"),
    "plan_cache_mode": "force_generic_plan",
    "jit": "on",
    "jit_above_cost": "0",
    "geqo_threshold": "2",
    "from_collapse_limit": "1",
    "join_collapse_limit": "1",
    "work_mem": "64kB",
    "max_parallel_workers_per_gather": "8",
    "parallel_setup_cost": "0",
    "min_parallel_table_scan_size": "0",
}
ALL = {**FORMATS, **MEANING, **TRANSACTIONS, **PLANS}
# These objects are first in the search path, so a name without a schema would refer to them.
HOSTILE_SCHEMA = b"""
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'hostile' $$;
CREATE FUNCTION hostile.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
CREATE TABLE hostile.document (doc_id text);
CREATE TABLE hostile.event (event text)
"""


def apply(url: str, settings: Mapping[str, str]) -> None:
    """Change the settings that this PostgreSQL release has, for all later sessions of the database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(HOSTILE_SCHEMA)
        database = sql.Identifier(connection.info.dbname)
        for name, value in settings.items():
            if name.startswith("plpgsql.") or _is_known(connection, name):
                setting = sql.SQL(".").join(map(sql.Identifier, name.split(".")))
                # In quotes, the whole search path would be the name of a single schema.
                shown = sql.SQL(", ").join(
                    map(sql.Literal, value.split(", ") if name == "search_path" else [value])
                )
                command = sql.SQL("ALTER DATABASE {} SET {} = {}")
                connection.execute(command.format(database, setting, shown))


def set_in_session(connection: "psycopg.Connection[tuple[object, ...]]", settings: Mapping[str, str]) -> None:
    """Change the settings that this PostgreSQL release has, in a session."""
    for name, value in settings.items():
        if name.startswith("plpgsql.") or _is_known(connection, name):
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def _is_known(connection: "psycopg.Connection[tuple[object, ...]]", name: str) -> bool:
    # With true, current_setting returns NULL for an unknown setting instead of an error.
    return connection.execute("SELECT current_setting(%s, true)", (name,)).fetchone() != (None,)
