"""The processor time of a call, for tests of speed: other processes on the machine hardly influence it."""

import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call in this process."""
    begin = time.process_time()
    work()
    return time.process_time() - begin
