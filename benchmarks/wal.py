"""Break down the write-ahead log of a run by relation and kind of record, and count full-page images separately."""

from benchmarks.living_system import Connection

_POSITION = "SELECT CAST(pg_current_wal_insert_lsn() AS text)"
_TOTAL = """
SELECT CAST(sum(record_size) AS bigint), CAST(sum(fpi_size) AS bigint) FROM pg_get_wal_stats(%s, %s, false)
"""
# Counts each record for the first block that it changes. Requires PostgreSQL 16.
_BY_RELATION = """
SELECT coalesce(regexp_replace(pg_class.relname, '_[0-9]+', ''), 'dropped') || ' ' || record_type,
    CAST(sum(record_length - images) AS bigint)
FROM (
    SELECT start_lsn, record_type, record_length,
        first_value(relfilenode) OVER (PARTITION BY start_lsn ORDER BY block_id) AS relfilenode,
        sum(coalesce(block_fpi_length, 0)) OVER (PARTITION BY start_lsn) AS images, block_id
    FROM pg_get_wal_block_info(%s, %s)
) AS block
LEFT JOIN pg_class ON pg_relation_filenode(pg_class.oid) = block.relfilenode
WHERE block_id = 0
GROUP BY 1 ORDER BY 2 DESC LIMIT %s
"""
_SHOWN = 30
# PostgreSQL 16, in the notation of `server_version`.
_DETAILED_SINCE = 16_00_00


def make_readable(connection: Connection) -> str:
    """Install the functions that read the log; return its present position."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
    return read_position(connection)


def read_position(connection: Connection) -> str:
    """Return the position in the log at which the next record will be written."""
    row = connection.execute(_POSITION).fetchone()
    assert row is not None
    return str(row[0])


def describe(connection: Connection, start: str, documents: int) -> dict[str, object]:
    """Return the bytes per document since a position: of records, of full-page images, and of records by relation."""
    end = read_position(connection)
    total = connection.execute(_TOTAL, (start, end)).fetchone()
    assert total is not None
    records, images = (round(int(str(size)) / documents) for size in total)
    detailed = connection.info.server_version >= _DETAILED_SINCE
    rows = connection.execute(_BY_RELATION, (start, end, _SHOWN)).fetchall() if detailed else []
    return {
        "records": records,
        "full-page images": images,
        "records by relation": {str(kind): round(int(str(size)) / documents) for kind, size in rows},
    }
