"""Settings of processes of nearsim's own; a host application decides for itself."""

import gc
import logging
import sys

# New objects before a collection of cyclic garbage. Documents, rows and modules leave few cycles: Python's default of
# 700 costs 5 % of the processor time of a dedupe of 20,000 documents.
_NEW_OBJECTS = 50_000


def prepare_process() -> None:
    """Collect cyclic garbage less often, start numba without SciPy, and print no warnings of the driver."""
    gc.set_threshold(_NEW_OBJECTS)
    # It logs what fails while it cleans up after an error or an interruption, which is what is reported. Without a
    # handler that is printed: "error ignored terminating <psycopg.Copy [BAD] ...>".
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    # If it is installed, numba imports its linear algebra, which no kernel uses and which takes 0.3 s.
    sys.modules.setdefault("scipy", None)  # type: ignore[arg-type]
