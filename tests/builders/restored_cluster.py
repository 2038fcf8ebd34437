"""Parts of a schema that differ if its band rows were on the nodes of a Citus cluster when it was dumped."""

from typing import LiteralString

from tests.builders.workers import Application

_PARTS: dict[str, LiteralString] = {
    "policies": (
        "SELECT polrelid::regclass::text, polname, pg_get_expr(polqual, polrelid) FROM pg_policy "
        "WHERE polrelid::regclass::text ~ 'band'"
    ),
    "functions": (
        "SELECT oid::regprocedure::text, pg_get_functiondef(oid), obj_description(oid), proacl::text FROM pg_proc "
        "WHERE pronamespace = 'nearsim'::regnamespace AND prokind = 'f'"
    ),
    "default": (
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef "
        "JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum "
        "WHERE adrelid = 'nearsim.generation'::regclass AND attname = 'distributed'"
    ),
    "generations": "SELECT generation_id, distributed FROM nearsim.generation",
}


def parts_of(session: Application) -> dict[str, list[tuple[object, ...]]]:
    """The policies of band rows, the functions, and the places of new and existing generations, sorted."""
    return {name: sorted(session.execute(query).fetchall()) for name, query in _PARTS.items()}
