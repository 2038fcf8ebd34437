"""Band rows on the nodes of a Citus cluster; all other data stays on its coordinator.

For distributed generations, the statements in `replaced` are used instead of the statements with the same names, and
the functions in `functions` replace the functions with the same names in the schema.
"""
