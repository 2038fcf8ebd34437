"""Periodic services that a worker runs beside its queue."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """A task that runs when its schedule starts, then `period_seconds` after the end of each run."""

    name: str
    period_seconds: float
    run: Callable[[], None]


class Schedule:
    """Services in the order in which they run."""

    def __init__(self, services: Sequence[Service], clock: Callable[[], float] = time.monotonic) -> None:
        self._services = tuple(services)
        self._clock = clock
        self._due_at = {service.name: -float("inf") for service in services}

    def run_due(self) -> None:
        """Run each service whose period has passed."""
        for service in self._services:
            if self._clock() >= self._due_at[service.name]:
                service.run()
                self._due_at[service.name] = self._clock() + service.period_seconds
