"""How often Python looks for cyclic garbage in processes of nearsim's own; a host application decides for itself."""

import gc

# New objects before a collection. Documents, rows and modules leave few cycles: Python's default of 700 costs 5 % of
# the processor time of a dedupe of 20,000 documents.
_NEW_OBJECTS = 50_000


def collect_rarely() -> None:
    """Collect cyclic garbage less often from now on, in the whole process."""
    gc.set_threshold(_NEW_OBJECTS)
