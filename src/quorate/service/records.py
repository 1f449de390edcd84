"""What the service says of itself: one log line a request, and counters. Of public facts and released answers alone.

Nothing here is measured of how votes fell: no votes, margins, agreement or data-dependent cost, and no time that
answering took. A count of declined answers is a count of what was released.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from quorate.service.answers import Point, Standing

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
    """Counts and log lines.

    `write`: takes one line of the log; it neither waits nor fails (:mod:`.log`). `dropped`: returns how many lines of
    the log were dropped. `clock`: returns the time, with a time zone.
    """

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
        told = Counter((point.by, point.status) for point in points)
        self.points.update(told)
        self.charged += charged
        self.event(
            "request",
            route=route,
            status=status,
            code=code,
            client=client,
            answered=told["ensemble", "answered"] or None,
            declined=told["ensemble", "declined"] or None,
            free=told["student", "answered"] + told["model", "answered"] or None,
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
        for name, (kind, told) in _HELP.items():
            shown = {labels: value for labels, value in values[name].items() if value is not None}
            if shown:
                lines += [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]
                lines += [f"{name}{labels} {value!r}" for labels, value in shown.items()]
        return "\n".join(lines) + "\n"
