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

    Times are monotonic seconds: neither setting the clock nor suspending the machine adds to them. `last_request` is
    only compared for change.
    """

    quiet_since: float
    last_request: int = 0

    def seconds(self, now: float, clients: int, last_request: int) -> float:
        """Update with the observations at `now`, and return how long the server has been idle."""
        if clients or last_request != self.last_request:
            self.quiet_since = now
            self.last_request = last_request
        return now - self.quiet_since


def watch(home: ServerHome, idle_seconds: float) -> None:
    """Stop the server of a home once it has been idle for so long; return when it has ended, or the home was removed.

    Returns at once if there is another watchdog. Decides under the home's lock, which also guards handing out the
    server, and releases its own lock under it, so that the next start knows whether a watchdog runs. Raises ServerError
    if the server does not stop.
    """
    if not home.data_directory.exists():
        return
    own_lock = home.watchdog_lock()
    try:
        own_lock.acquire()
    except LockTimeout:
        return
    idleness = Idleness(time.monotonic())
    served = True
    while served:
        time.sleep(min(1.0, idle_seconds / 4))
        try:
            # A new file in a home that is being removed would keep its folder from being removed.
            with home.locked(create=False):
                served = _serve_on(home, idleness, idle_seconds)
                if not served:
                    own_lock.release()
        except FileNotFoundError:
            return


def _serve_on(home: ServerHome, idleness: Idleness, idle_seconds: float) -> bool:
    """Return whether the server runs and was used recently or is kept; stop an idle one."""
    postmaster = find_postmaster(home.data_directory)
    if postmaster is None:
        return False
    bound_log(home.log)
    last_request = home.last_request.stat().st_mtime_ns
    idle = idleness.seconds(time.monotonic(), count_clients(postmaster), last_request)
    if idle < idle_seconds or home.keep_marker.exists():
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
