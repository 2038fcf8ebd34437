"""The process that stops an embedded server when nobody uses it any more.

python -m nearsim_db.store.embedded.watchdog HOME --idle-seconds 60
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from nearsim_db.store.embedded.embedded import IDLE_SECONDS, ServerHome
from nearsim_db.store.embedded.processes import count_clients, find_postmaster, stop_postmaster
from nearsim_db.store.embedded.server_log import bound_log


@dataclass
class Idleness:
    """For how long nobody has been connected to a server, or asked for it.

    Times are monotonic seconds: neither a clock that is set nor a laptop that sleeps ages the last use.
    `last_request` is compared for change only.
    """

    quiet_since: float
    last_request: int = 0

    def seconds(self, now: float, clients: int, last_request: int) -> float:
        """Take in what is seen at `now`, and tell how long the server has been idle."""
        if clients or last_request != self.last_request:
            self.quiet_since = now
            self.last_request = last_request
        return now - self.quiet_since


def watch(home: ServerHome, idle_seconds: float) -> None:
    """Stop the server of a home once it has been idle for so long; returns when the server is gone.

    Returns at once if there is another watchdog. Decides under the home's lock, under which the server is
    also handed out, and gives its own lock up under it: whoever starts the next server can tell whether it
    is watched. Raises ServerError if the server does not stop.
    """
    if not home.data_directory.exists():
        return
    own_lock = home.watchdog_lock()
    try:
        own_lock.acquire()
    except Timeout:
        return
    idleness = Idleness(time.monotonic())
    served = True
    while served:
        time.sleep(min(1.0, idle_seconds / 4))
        # To take the lock would make the folder of a home that was removed anew.
        if not home.data_directory.exists():
            return
        with home.locked():
            served = _serve_on(home, idleness, idle_seconds)
            if not served:
                own_lock.release()


def _serve_on(home: ServerHome, idleness: Idleness, idle_seconds: float) -> bool:
    """Whether the server runs and has been used of late, or is kept; one that has not is stopped."""
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
    """Watch the home that is named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS)
    arguments = parser.parse_args()
    # It must not keep a file system busy.
    os.chdir("/")
    watch(ServerHome(arguments.home), arguments.idle_seconds)


if __name__ == "__main__":
    main()
