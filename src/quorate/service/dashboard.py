"""The page of what is left: answers first, then ε. One page made here, no script in it, and no button that refills.

The ledger says of the past: ε over time, answers over time, the newest entries, the runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from quorate.accounting.figures import at_most
from quorate.arguments import for_shell
from quorate.ledger import Ledger
from quorate.ledger.budget import BudgetUnits, spent_totals
from quorate.ledger.entries import BudgetRaised, Drawn, Entry, Opened, Reserved, Stored
from quorate.report.html import Markup, big, document, element, gauge, join, pairs, section, table
from quorate.report.stylesheet import STYLE
from quorate.service.records import Records
from quorate.service.turns import Standing

MOMENTS: Final = 512  # of a line; where there are more, every other one is left out
TAIL: Final = 8  # entries


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of the ledger, as the page shows it."""

    sequence: int
    time: str
    text: str
    hash: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """How far one reservation has been drawn: a purpose, how many answers, and of how many."""

    purpose: str
    drawn: int
    reserved: int


@dataclass(slots=True)
class History:
    """The ledger's past. Written by the threads that answer, read by the page.

    `verified_at`: when the ledger was verified. `spent`: ε charged, from each of these times on. `left`: answers left,
    likewise. `tail`: the newest entries. `drawings`: what was reserved when the service was started, and how far it was
    drawn.
    """

    verified_at: str
    spent: list[tuple[str, float]] = field(default_factory=list)
    left: list[tuple[str, int]] = field(default_factory=list)
    tail: deque[Line] = field(default_factory=lambda: deque(maxlen=TAIL))
    drawings: tuple[Drawing, ...] = ()

    @classmethod
    def of(cls, ledger: Ledger, *, verified_at: str, purposes: Sequence[str] = ()) -> History:
        """Read it off a ledger.

        `ledger`: verified. `verified_at`: when. `purposes`: those that pay for online answers, of the newest
        reservation.
        """
        history, budget, spent = cls(verified_at), ledger.budget, BudgetUnits()
        reservations = ledger.reservations()
        newest = reservations[-1].sequence if reservations else 0
        left = sum(reservations[-1].purposes.get(purpose, 0) for purpose in purposes) if reservations else 0
        for entry in ledger.entries():
            match entry.content:
                case Reserved() as reserved:
                    spent += reserved.amounts
                    history.spent.append((entry.time, spent_totals(spent, budget).epsilon or 0.0))
                    if entry.sequence == newest and purposes:
                        history._note_left(entry.time, left)
                case Drawn() as drawn if drawn.reservation == newest and drawn.purpose in purposes:
                    left -= drawn.count
                    history._note_left(entry.time, left)
            history.tail.append(Line(entry.sequence, entry.time, _entry_words(entry), entry.hash))
        history.drawings = tuple(
            Drawing(purpose, count - reservation.remaining(purpose), count)
            for reservation in reservations
            for purpose, count in reservation.purposes.items()
        )
        return history

    def note(self, standing: Standing, time: str) -> None:
        """Add what a block has changed."""
        if standing.answers_left is not None:
            self._note_left(time, standing.answers_left)
        self.tail.append(Line(standing.entries, time, "answers drawn and stored", standing.head))

    def _note_left(self, time: str, left: int) -> None:
        self.left.append((time, left))
        if len(self.left) > MOMENTS:
            del self.left[1:-1:2]


def _entry_words(entry: Entry) -> str:
    """Say what an entry is, without what it holds."""
    match entry.content:
        case Opened():
            return "opened"
        case Reserved() as reserved:
            return "reserved " + ", ".join(f"{count:,} × {purpose}" for purpose, count in reserved.purposes.items())
        case Drawn() as drawn:
            return f"drew {drawn.count:,} × {drawn.purpose}"
        case Stored():
            return "stored their answers"
        case BudgetRaised():
            return "budget raised"
        case other:
            return other.kind


NEARLY: Final = 0.1  # of the answers: from here on the page says that they end soon


class State(StrEnum):
    """What the page says first."""

    EMPTY = "No question has been asked yet"
    RUNNING = "Answering"
    NEARLY_SPENT = "Nearly spent"
    SPENT = "Spent"
    FREE = "Every prediction is free"
    BROKEN = "The ledger failed: nothing is answered"


_MEANING: Final = {
    State.EMPTY: "All answers that were kept back are left.",
    State.RUNNING: "A new point is charged before it is answered; one that was asked before is free.",
    State.NEARLY_SPENT: "When no answer is left, the ensemble is silent for ever.",
    State.SPENT: "The ensemble is silent for ever. What was answered is still told.",
    State.FREE: "A released model answers. Nothing more is charged, however often it is asked.",
    State.BROKEN: (
        "No answer leaves until the service was started again and has verified the ledger. Find out what happened to "
        "its disk first."
    ),
}

_MORE_STYLE = Markup(
    """
.state { display: inline-block; margin-top: .9rem; padding: .3rem .7rem; border: 2px solid var(--ink); }
.state { font-weight: 650; }
.state.bad { background: var(--ink); color: var(--paper); }
.meaning { margin-top: .6rem; max-width: 60ch; }
.bigs .figure { font-size: 4rem; line-height: 1.1; }
.bigs > div:not(:first-child) .figure { font-size: 2rem; line-height: 2.2; }
.line { width: 100%; height: 7rem; }
.thread { vector-effect: non-scaling-stroke; }
.axis { stroke: var(--muted); stroke-width: 1; vector-effect: non-scaling-stroke; }
code { overflow-wrap: anywhere; }
td code { white-space: nowrap; }
section.time figure:first-child, section.time figure:first-child h3 { margin-top: 0; }
.scale { margin-bottom: .3rem; }
@media screen and (max-width: 44rem) { .bigs > div:not(:first-child) .figure { line-height: 1.2; } }
"""
)


@dataclass(frozen=True, slots=True)
class Page:
    """All that the page is made of; `shown_at` is when, and `healthy` whether anything is answered."""

    title: str
    standing: Standing
    history: History
    records: Records
    healthy: bool
    after_budget: str
    shown_at: str

    @property
    def state(self) -> State:
        """What the page says first."""
        left, reserved = self.standing.answers_left, self.standing.answers_reserved
        if not self.healthy:
            return State.BROKEN
        if left is None or reserved is None:
            return State.FREE
        if left == 0:
            return State.SPENT
        if left <= NEARLY * reserved:
            return State.NEARLY_SPENT
        return State.EMPTY if left == reserved else State.RUNNING

    def html(self) -> str:
        """Return the page."""
        state = self.state
        then = (
            "The student answers new points, marked as such."
            if self.after_budget == "student"
            else "New points are refused."
        )
        meaning = join(_MEANING[state], f" {then}" if state in (State.SPENT, State.NEARLY_SPENT) else None)
        body = element(
            "body",
            element(
                "header",
                element("p", "quorate · private prediction service", class_="eyebrow"),
                element("h1", self.title),
                element("p", str(state), class_="state bad" if state is State.BROKEN else "state", role="status"),
                element("p", meaning, class_="meaning"),
                class_="top",
            ),
            element(
                "main",
                section("left", "What is left", self._left()),
                section("time", "Over time", *self._over_time()),
                section("requests", "Requests", self._requests()),
                section("ledger", "Ledger", self._ledger()),
                section("runs", "What was reserved", self._runs()),
            ),
            element("footer", element("p", f"Shown at {self.shown_at}. The budget is for life: it is never refilled.")),
        )
        return document(f"{self.title}: {state}", join(STYLE, _MORE_STYLE), body)

    def _left(self) -> Markup:
        standing = self.standing
        (epsilon, most), (delta, most_delta) = standing.epsilon, standing.delta
        if standing.answers_left is None or standing.answers_reserved is None:
            answers, caption, bar = "∞", "predictions of the released model", None
        else:
            answers, used = f"{standing.answers_left:,}", standing.answers_reserved - standing.answers_left
            caption = f"of {standing.answers_reserved:,} answers kept back"
            bar = gauge(
                f"{used:,} of {standing.answers_reserved:,} answers used",
                spent=float(used),
                budget=float(standing.answers_reserved),
            )
        return join(
            element(
                "div",
                big("Answers left", answers, caption),
                big("ε spent", at_most(epsilon), f"of {at_most(most)}"),
                big("δ spent", at_most(delta), f"of {at_most(most_delta)}"),
                class_="bigs",
            ),
            bar,
        )

    def _over_time(self) -> tuple[Markup, ...]:
        spent, most = self.history.spent, self.standing.epsilon[1]
        lines = []
        if self.history.left and self.standing.answers_reserved:
            lines.append(_line("Answers left", self.history.left, self.standing.answers_reserved, self.shown_at))
        if spent:
            lines.append(_line("ε spent", spent, most, self.shown_at))
        return tuple(lines) or (element("p", "Nothing was charged yet.", class_="note"),)

    def _requests(self) -> Markup:
        points, requests = self.records.points, self.records.requests
        refused = sum(count for (_, status), count in requests.items() if status >= 400)
        free = points["student", "answered"] + points["model", "answered"]
        rows = [
            ("Points answered by the ensemble", f"{points['ensemble', 'answered']:,}"),
            ("Points declined by the ensemble", f"{points['ensemble', 'declined']:,}"),
            ("Points answered for free, by the student or a released model", f"{free:,}"),
            ("Points charged for", f"{self.records.charged:,}"),
            ("Requests refused", f"{refused:,}"),
        ]
        return table("Since the service was started", ("what", "#how many"), rows)

    def _ledger(self) -> Markup:
        lines = [
            (
                f"{line.sequence:,}",
                element("span", _clock(line.time), class_="at"),
                line.text,
                element("code", line.hash[:12]),
            )
            for line in reversed(list(self.history.tail))
        ]
        whole = "verified" if self.healthy else "failed since it was verified"
        return join(
            element("p", f"{whole.capitalize()} at {self.history.verified_at}; {self.standing.entries:,} entries."),
            element("p", "Newest hash: ", element("code", self.standing.head), class_="note"),
            table("The newest entries", ("entry", "time", "what", "hash"), lines),
        )

    def _runs(self) -> Markup:
        rows = [
            (
                drawing.purpose,
                f"{drawing.drawn:,}",
                f"{drawing.reserved:,}",
                f"{100 * drawing.drawn // max(1, drawing.reserved)} %",
            )
            for drawing in self.history.drawings
        ]
        return join(
            table("When the service was started", ("purpose", "#drawn", "#reserved", "#share"), rows),
            pairs(
                (
                    ("a run that was interrupted", element("code", f"quorate run {for_shell(self.title)}")),
                    ("to see every entry", element("code", f"quorate ledger show {for_shell(self.title)}")),
                ),
                class_="pairs small",
            ),
        )


def _line(title: str, moments: list[tuple[str, float]] | list[tuple[str, int]], most: float, now: str) -> Markup:
    """Draw a quantity as stairs, from its first moment until now."""
    moments = moments[:]  # a block may be added meanwhile
    times = [datetime.fromisoformat(time).timestamp() for time, _ in moments]
    begin, end = times[0], max(datetime.fromisoformat(now).timestamp(), times[-1] + 1)
    height, path = 100.0, ""
    for time, (_, value) in zip(times, moments, strict=True):
        x, y = 1000 * (time - begin) / (end - begin), height * (1 - min(1.0, value / most if most else 0.0))
        path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
    first, last, whole = (_figure(value) for value in (moments[0][1], moments[-1][1], most))
    text = f"{title}: {first} at {_clock(moments[0][0])}, {last} now, of {whole}"
    picture = element(
        "svg",
        element("title", text),
        element("path", d="M0 0V100H1000", class_="axis", fill="none"),
        element("path", d=f"{path}H1000", class_="thread"),
        viewBox="-2 -4 1004 108",
        role="img",
        aria_label=text,
        class_="line",
        preserveAspectRatio="none",
    )
    return element(
        "figure",
        element("h3", title),
        picture,
        element("div", element("span", _clock(moments[0][0])), element("span", "now"), class_="scale"),
        element("p", f"{last} of {whole} now", class_="note"),
    )


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else at_most(value)


def _clock(time: str) -> str:
    return datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M")
