"""The columns of a document, as SQL on a row of an attached table."""

from psycopg import sql

from nearsim_db.store.attached.tables import NUMBERS, ZONELESS, Column, Columns


def key_of(column: Column) -> sql.Composable:
    """Return the table's id that `attached.external_id` denotes."""
    external_id = sql.Identifier("attached", "external_id")
    if column.type in NUMBERS:
        return sql.SQL("nearsim.as_bigint({})").format(external_id)
    if column.type == "uuid":
        return sql.SQL("nearsim.as_uuid({})").format(external_id)
    assert column.collation is not None
    return sql.SQL("({} COLLATE {})").format(external_id, sql.Identifier(*column.collation))


def type_of(column: Column) -> sql.SQL:
    """Return the type by which ids of a table are compared."""
    if column.type in NUMBERS:
        return sql.SQL("bigint")
    return sql.SQL("uuid") if column.type == "uuid" else sql.SQL("text")


def fields_of(available: dict[str, Column], columns: Columns) -> sql.Composable:
    """Return the columns of a document from a row of `source`; dates without a time zone are UTC."""
    fields = [_as_text(columns.id, "external_id")]
    fields += [_as_text(getattr(columns, name), name) for name in ("title", "source", "url")]
    published = None if columns.published_at is None else available[columns.published_at]
    fields.append(sql.SQL("CAST({} AS timestamptz) AS published_at").format(_moment(published)))
    text = sql.Identifier("source", columns.text)
    fields.append(sql.SQL("CAST(md5(coalesce({}, '')) AS uuid) AS body_digest").format(text))
    fields.append(sql.SQL("length({}) AS body_length").format(text))
    return sql.SQL(", ").join(fields)


def _moment(column: Column | None) -> sql.Composable:
    """Return the publication time; NULL for dates beyond the last timestamp."""
    if column is None:
        return sql.SQL("NULL")
    value = sql.Identifier("source", column.name)
    if column.type not in ZONELESS:
        return value
    moment = sql.SQL("CAST({} AS timestamp) AT TIME ZONE 'UTC'").format(value)
    if column.type != "date":
        return moment
    beyond = sql.SQL("isfinite({value}) AND {value} >= CAST('294277-01-01' AS date)").format(value=value)
    return sql.SQL("CASE WHEN {beyond} THEN NULL ELSE {moment} END").format(beyond=beyond, moment=moment)


def _as_text(column: str | None, name: str) -> sql.Composable:
    value = sql.SQL("NULL") if column is None else sql.Identifier("source", column)
    return sql.SQL('CAST({} AS text) COLLATE "C" AS {}').format(value, sql.Identifier(name))
