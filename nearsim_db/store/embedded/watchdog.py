"""The process that stops an idle embedded server.

python -m nearsim_db.store.embedded.watchdog HOME --idle-seconds 60
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

from nearsim_db.store.embedded.embedded import IDLE_SECONDS, ServerHome
from nearsim_db.store.embedded.processes import (
    LockTimeout,
    bound_log,
    count_clients,
    find_postmaster,
    stop_postmaster,
)


@dataclass
class Idleness:
    """The time since the last connection to a server, or the last request for it.

    Times are monotonic seconds, to which neither setting the clock nor suspending the machine adds.
    """

    quiet_since: float
    last_request: int = 0  # modification time of the file; only changes of it matter

    def seconds(self, now: float, clients: int, last_request: int) -> float:
        """Update with the observations at `now`, and return how long the server has been idle."""
        if clients or last_request != self.last_request:
            self.quiet_since = now
            self.last_request = last_request
        return now - self.quiet_since


def watch(home: ServerHome, idle_seconds: float) -> None:
    """Stop the server of a home when it has been idle for `idle_seconds`.

    Returns when the server has ended or the home was removed, or at once if there is another watchdog. Raises
    ServerError if the server does not stop.
    """
    if not home.data_directory.exists():
        return
    watchdog_lock = home.watchdog_lock()
    try:
        watchdog_lock.acquire()
    except LockTimeout:
        return

    # Processes that request the server also take the lock of the home. The watchdog releases its own lock under this
    # lock, so that the next request knows whether a watchdog is running.
    idleness = Idleness(time.monotonic())
    is_serving = True
    while is_serving:
        time.sleep(min(1.0, idle_seconds / 4))
        try:
            # Without create=False, a new lock file could prevent a home from being removed.
            with home.locked(create=False):
                is_serving = _continues(home, idleness, idle_seconds)
                if not is_serving:
                    watchdog_lock.release()
        except FileNotFoundError:
            return


def _continues(home: ServerHome, idleness: Idleness, idle_seconds: float) -> bool:
    """Return whether the server is running and was used recently or is kept running; stop it if it is idle."""
    postmaster = find_postmaster(home.data_directory)
    if postmaster is None:
        return False
    bound_log(home.log)
    last_request = home.last_request.stat().st_mtime_ns
    elapsed_seconds = idleness.seconds(time.monotonic(), count_clients(postmaster), last_request)
    if elapsed_seconds < idle_seconds or home.keep_marker.exists():
        return True
    stop_postmaster(home.data_directory)
    return False


def main() -> None:
    """Watch the home that is named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS)
    arguments = parser.parse_args()
    # Change to /, so that the working directory does not keep a file system busy.
    os.chdir("/")
    watch(ServerHome(arguments.home), arguments.idle_seconds)


if __name__ == "__main__":
    main()
