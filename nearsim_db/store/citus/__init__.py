"""Band rows on the nodes of a Citus cluster; everything else stays on its coordinator.

`sql` has the statements that replace those of the same name in store/sql for distributed generations, `functions` the
functions that replace those of the same name in the schema.
"""
