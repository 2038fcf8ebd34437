"""Band rows on the nodes of a Citus cluster; everything else stays on its coordinator.

`replaced` has the statements that replace those of the same name for distributed generations, `functions` the functions
that replace those of the same name in the schema.
"""
