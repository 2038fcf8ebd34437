"""Who may read which collection, once readers are kept apart; and how a generation's bands are cut.

Revision ID: 0004
Revises: 0003
"""

import json
from functools import cache

import sqlalchemy as sa
from alembic import op

from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import from_mapping

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

UPGRADE = """
ALTER TABLE nearsim.generation ADD COLUMN bands smallint, ADD COLUMN rows smallint;

CREATE TABLE nearsim.collection_access (
    collection_id integer NOT NULL CONSTRAINT collection_access_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    role_name text NOT NULL,
    may_write boolean NOT NULL DEFAULT false,
    granted_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT collection_access_pkey PRIMARY KEY (collection_id, role_name)
);
COMMENT ON TABLE nearsim.collection_access IS
    'Which roles may read which collections, where readers are kept apart (nearsim db isolation)';
COMMENT ON COLUMN nearsim.collection_access.collection_id IS
    'The collection';
COMMENT ON COLUMN nearsim.collection_access.role_name IS
    'The role, by name: whoever is a member of it sees the collection, and so does a later role of that name';
COMMENT ON COLUMN nearsim.collection_access.may_write IS
    'Whether the role may also write documents of the collection, being a nearsim_writer';
COMMENT ON COLUMN nearsim.collection_access.granted_at IS
    'Since when';

CREATE FUNCTION nearsim.caller() RETURNS name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
RETURN CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role')::name END;
COMMENT ON FUNCTION nearsim.caller() IS
    'Part of sees_collection: the role that asks, inside of functions that run with the rights of their owner too';

CREATE FUNCTION nearsim.is_isolated() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT relrowsecurity FROM pg_class WHERE oid = CAST('nearsim.document' AS regclass);
END;
COMMENT ON FUNCTION nearsim.is_isolated() IS
    'Part of sees_collection: whether readers see only the collections that they were granted';

CREATE FUNCTION nearsim.sees_collection(collection_id integer) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT NOT nearsim.is_isolated()
        OR pg_has_role(nearsim.caller(), relowner, 'USAGE')
        OR EXISTS (SELECT FROM pg_roles WHERE rolname = nearsim.caller() AND rolbypassrls)
        OR EXISTS (
            SELECT FROM nearsim.collection_access AS access
            JOIN pg_roles ON rolname = access.role_name
            WHERE access.collection_id = sees_collection.collection_id
                AND pg_has_role(nearsim.caller(), pg_roles.oid, 'USAGE'))
    FROM pg_class WHERE oid = CAST('nearsim.document' AS regclass);
END;
COMMENT ON FUNCTION nearsim.sees_collection(integer) IS
    'Part of the policies: whether the caller may read a collection; for functions with their owner''s rights';

CREATE FUNCTION nearsim.sees_generation(generation_id integer) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce((
        SELECT nearsim.sees_collection(profile.collection_id)
        FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
        WHERE generation.generation_id = sees_generation.generation_id), false);
END;
COMMENT ON FUNCTION nearsim.sees_generation(integer) IS
    'Part of the policies: whether the caller may read a generation; for functions with their owner''s rights';
"""

DOWNGRADE = """
DROP FUNCTION nearsim.sees_generation(integer);
DROP FUNCTION nearsim.sees_collection(integer);
DROP FUNCTION nearsim.is_isolated();
DROP FUNCTION nearsim.caller();
DROP TABLE nearsim.collection_access;
ALTER TABLE nearsim.generation DROP COLUMN bands, DROP COLUMN rows;
"""

FILL = sa.text(
    "UPDATE nearsim.generation SET bands = :bands, rows = :rows WHERE generation_id = :generation_id"
)


def upgrade() -> None:
    """Generations that are there get the bands that their recipe resolves to."""
    # Resolving takes a while, so it is done before the table is locked; what is begun in between is few.
    _resolve_all()
    op.execute(UPGRADE)
    for values in _resolve_all():
        op.get_bind().execute(FILL, values)


def downgrade() -> None:
    """What was granted is forgotten."""
    op.execute(DOWNGRADE)


def _resolve_all() -> list[dict[str, int]]:
    found = op.get_bind().execute(
        sa.text("SELECT generation_id, CAST(recipe AS text) FROM nearsim.generation")
    )
    return [{"generation_id": generation_id, **_cut(recipe)} for generation_id, recipe in found]


@cache
def _cut(recipe: str) -> dict[str, int]:
    profile = resolve(from_mapping(json.loads(recipe)))
    return {"bands": profile.bands, "rows": profile.rows}
