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
    """Time since the last connection to a server, or the last request for it.

    Times are monotonic seconds: neither setting the clock nor suspending the machine adds to them.
    """

    quiet_since: float
    last_request: int = 0  # only compared for change

    def seconds(self, now: float, clients: int, last_request: int) -> float:
        """Update with the observations at `now`, and return how long the server has been idle."""
        if clients or last_request != self.last_request:
            self.quiet_since = now
            self.last_request = last_request
        return now - self.quiet_since


def watch(home: ServerHome, idle_seconds: float) -> None:
    """Stop the server of a home once it was idle for `idle_seconds`; return when it has ended or the home was removed.

    Returns at once if there is another watchdog. Raises ServerError if the server does not stop.
    """
    if not home.data_directory.exists():
        return
    watchdog_lock = home.watchdog_lock()
    try:
        watchdog_lock.acquire()
    except LockTimeout:
        return

    # The home's lock also guards handing out the server. The watchdog's lock is released under it, so that the next
    # start knows whether a watchdog runs.
    idleness = Idleness(time.monotonic())
    is_serving = True
    while is_serving:
        time.sleep(min(1.0, idle_seconds / 4))
        try:
            # A new file in a home that is being removed would keep its folder from being removed.
            with home.locked(create=False):
                is_serving = _continues(home, idleness, idle_seconds)
                if not is_serving:
                    watchdog_lock.release()
        except FileNotFoundError:
            return


def _continues(home: ServerHome, idleness: Idleness, idle_seconds: float) -> bool:
    """Return whether the server runs and was used recently or is kept; stop an idle one."""
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
    """Watch the home given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS)
    arguments = parser.parse_args()
    # The working directory must not keep a file system busy.
    os.chdir("/")
    watch(ServerHome(arguments.home), arguments.idle_seconds)


if __name__ == "__main__":
    main()
