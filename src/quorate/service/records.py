"""What the service says of itself: one log line a request, and counters. Of public facts and released answers alone.

Nothing here is measured of how votes fell: no votes, margins, agreement or data-dependent cost, and no time that
answering took. A count of declined answers is a count of what was released.

Lines of the log go to a queue with an end, and a thread writes them, so whoever says something never waits. A disk that
is full, a pipe that nobody reads, a reader that ended: lines are dropped and counted, and answers go on.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from select import select
from typing import Any, Final

from quorate.service.turns import Point, Standing

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_HELP = {
    "quorate_healthy": ("gauge", "1 while the ledger admits charges, else 0."),
    "quorate_answers_left": ("gauge", "Answers of the ensemble that are left."),
    "quorate_answers_reserved": ("gauge", "Answers of the ensemble that were kept back."),
    "quorate_epsilon_spent": ("gauge", "Epsilon charged, of the whole release."),
    "quorate_epsilon_limit": ("gauge", "Epsilon of the budget."),
    "quorate_ledger_entries": ("gauge", "Entries of the ledger."),
    "quorate_requests_total": ("counter", "Requests, by route and status."),
    "quorate_problems_total": ("counter", "Refused requests, by code."),
    "quorate_points_total": ("counter", "Points that were told, by who answered and how."),
    "quorate_charged_total": (
        "counter",
        "Answers charged to requests that were answered, since the start; lost ones are only in answers_left.",
    ),
    "quorate_log_dropped_total": ("counter", "Lines of the log that could not be written."),
}


@dataclass(slots=True)
class Records:
    """Counts and log lines; `write` neither waits nor fails, and `dropped` says how many lines of the log were lost."""

    write: Callable[[str], None]
    dropped: Callable[[], int] = lambda: 0
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    points: Counter[tuple[str, str]] = field(default_factory=Counter)
    charged: int = 0

    def event(self, event: str, **facts: Any) -> None:
        """Log what happened; None is left out."""
        line = {"time": self.clock().isoformat(timespec="seconds"), "event": event, **facts}
        self.write(json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False))

    def request(
        self,
        route: str,
        status: int,
        *,
        client: str | None = None,
        code: str | None = None,
        points: list[Point] | tuple[Point, ...] = (),
        charged: int = 0,
    ) -> None:
        """Count and log one request that was answered or refused."""
        self.requests[route, status] += 1
        if code is not None:
            self.problems[code] += 1
        kinds = Counter((point.by, point.status) for point in points)
        self.points.update(kinds)
        self.charged += charged
        self.event(
            "request",
            route=route,
            status=status,
            code=code,
            client=client,
            answered=kinds["ensemble", "answered"] or None,
            declined=kinds["ensemble", "declined"] or None,
            free=kinds["student", "answered"] + kinds["model", "answered"] or None,
            charged=charged or None,
        )

    def metrics(self, standing: Standing, *, healthy: bool) -> str:
        """Return the counters as Prometheus reads them."""
        values: dict[str, dict[str, float | int | None]] = {
            "quorate_healthy": {"": int(healthy)},
            "quorate_answers_left": {"": standing.answers_left},
            "quorate_answers_reserved": {"": standing.answers_reserved},
            "quorate_epsilon_spent": {"": standing.epsilon[0]},
            "quorate_epsilon_limit": {"": standing.epsilon[1]},
            "quorate_ledger_entries": {"": standing.entries},
            "quorate_requests_total": {
                f'{{route="{route}",status="{status}"}}': n for (route, status), n in sorted(self.requests.items())
            },
            "quorate_problems_total": {f'{{code="{code}"}}': n for code, n in sorted(self.problems.items())},
            "quorate_points_total": {
                f'{{by="{by}",status="{status}"}}': n for (by, status), n in sorted(self.points.items())
            },
            "quorate_charged_total": {"": self.charged},
            "quorate_log_dropped_total": {"": self.dropped()},
        }
        lines = []
        for name, (kind, help_text) in _HELP.items():
            known = {labels: value for labels, value in values[name].items() if value is not None}
            if known:
                lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
                lines += [f"{name}{labels} {value!r}" for labels, value in known.items()]
        return "\n".join(lines) + "\n"


MOST: Final = 10_000  # lines that wait
_AFTER_A_CUT: Final = {False: "", True: "\n"}


class Log:
    """Writes lines to a descriptor of its own; without one, and beyond `most` that wait, lines are dropped."""

    def __init__(self, descriptor: int | None, *, most: int = MOST) -> None:
        self._descriptor, self._most = descriptor, most
        self._lines: deque[str] = deque()
        self._turn = threading.Condition()
        self._ending = self._cut = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="quorate log", daemon=True)
        self._thread.start()

    @classmethod
    def to_stderr(cls) -> Log:
        """Return one that writes to standard error, where this process has one."""
        descriptor = None
        with suppress(OSError, ValueError, AttributeError):
            descriptor = os.dup(sys.stderr.fileno())
        return cls(descriptor)

    def write(self, line: str) -> None:
        """Have a line written, or drop it; this does not wait."""
        with self._turn:
            if len(self._lines) >= self._most or self._ending:
                self.dropped += 1
            else:
                self._lines.append(line)
                self._turn.notify()

    def close(self, seconds: float = 2.0) -> None:
        """Write what waits, for so long at most."""
        with self._turn:
            self._ending = True
            self._turn.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._lines or self._ending)
                if not self._lines:
                    break
                line = self._lines.popleft()
            try:
                self._put(line)
            except OSError:
                with self._turn:
                    self.dropped += 1
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _put(self, line: str) -> None:
        if self._descriptor is None:
            raise OSError
        rest = f"{_AFTER_A_CUT[self._cut]}{line}\n".encode("utf-8", "backslashreplace")
        self._cut = False
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                select([], [self._descriptor], [])  # somebody made the pipe one that does not wait
            except OSError:
                self._cut = True  # perhaps a part of the line stands there
                raise
