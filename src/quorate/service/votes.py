"""Blocks of requests to a run whose teachers vote: charge → durable → draw → store → answers, once for all of a block.

A point that was answered or declined before gets the same again and costs nothing. A new one is charged to what was
kept back, while anything is left; then the student answers, marked as such, or the request is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from threading import Condition
from typing import Any

from quorate.data import row_digests, take
from quorate.data.rows import Rows
from quorate.errors import (
    NOTHING_CHARGED,
    BudgetExhausted,
    InvalidParameter,
    PreconditionFailed,
    QuorateError,
    QuotaExhausted,
    TeachersSilent,
)
from quorate.labelling import ClientAnswer, ClientRequest, OnlineAnswers
from quorate.ledger import Ledger, Quota
from quorate.mechanisms import DECLINED
from quorate.service.features import Features
from quorate.service.problems import Problem
from quorate.service.turns import Answered, LabelRequest, Point, Reply, Standing

_NO_STUDENT = "the student cannot take one of these rows; what was charged for the others is stored and free to ask"
ASK_FEWER = "nothing was charged; ask for fewer new points, or only for points that were answered before"


def _free(request: LabelRequest, left: int, quota: Quota, drawn: int) -> int:
    """How many new points of a request may be put to the ensemble, of those that are left; `drawn` are in the block."""
    bounds = [left]
    if quota.left is not None:
        bounds.append(quota.left - drawn)
    if request.quota is not None:
        bounds.append(request.quota - quota.drawn - drawn)
    return max(0, min(bounds))


class EnsembleAnswers:
    """Answers blocks by the ensemble, and by the student for free where nothing is left, unless that is to `refuse`.

    `charged`: called with what is left, after each block that drew. `digests`, `view`: from rows to the digests by
    which answers are kept, and to what the teachers see.
    """

    def __init__(
        self,
        online: OnlineAnswers,
        ledger: Ledger,
        student: Callable[[Rows], list[Any]],
        classes: Sequence[Any],
        features: Features,
        *,
        refuse: bool = False,
        charged: Callable[[Standing], None] = lambda _: None,
        digests: Callable[[Rows], Sequence[bytes]] = row_digests,
        view: Callable[[Rows], Rows] = lambda rows: rows,
    ) -> None:
        self._online, self._ledger, self._digests, self._view = online, ledger, digests, view
        self._student, self._classes, self._features, self._refuse = student, tuple(classes), features, refuse
        self._charged = charged
        self._turn, self._charging = Condition(), set[str]()
        self._standing = self._read_standing()

    @property
    def standing(self) -> Standing:
        """What is left, as of the newest block."""
        return self._standing

    @property
    def healthy(self) -> bool:
        """Whether the ledger admits anything."""
        return self._ledger.healthy

    @property
    def in_place(self) -> bool:
        """Whether the ledger stands where it was opened."""
        return self._ledger.in_place

    def answer(self, block: Sequence[LabelRequest]) -> list[Reply]:
        """Answer a block; see :class:`~quorate.service.turns.Answers`."""
        table = self._features.table([row for request in block for row in request.rows])
        digests = self._digests(table)
        ends = list(accumulate(len(request.rows) for request in block))
        places = [range(end - len(request.rows), end) for request, end in zip(block, ends, strict=True)]
        with self._alone(block):
            outcomes = self._charge(block, table, digests, places)
        points = self._points(table, digests, places)
        return [
            self._reply(outcomes.get(number), [points[place] for place in places[number]])
            for number in range(len(block))
        ]

    def _charge(
        self, block: Sequence[LabelRequest], table: Rows, digests: Sequence[bytes], places: Sequence[range]
    ) -> dict[int, ClientAnswer | QuorateError]:
        """Have new points answered and remembered; return what became of the requests that were put to the ensemble."""
        if not self._online.purposes:  # nothing was kept back
            return {}
        numbers: list[int] = []
        requests: list[ClientRequest] = []
        asked_of: list[int] = []
        claimed: set[bytes] = set()
        by_client: Counter[str] = Counter()
        # Read once for all: what is drawn is decided under the ledger's lock, by what is left then.
        left, quotas = self._online.left, {client: self._ledger.quota(client) for client in {a.client for a in block}}
        for number, request in enumerate(block):
            new = self._new(places[number], digests, claimed)
            if not self._refuse:
                free = _free(request, left - len(claimed), quotas[request.client], by_client[request.client])
                new = dict(list(new.items())[:free])
            if new:
                self._keep_quota(request)
            mine = [place for place in places[number] if self._goes(digests[place], new, claimed)]
            if not mine:
                continue
            claimed |= new.keys()
            by_client[request.client] += len(new)
            numbers.append(number)
            asked_of += mine
            requests.append(
                ClientRequest(
                    client=request.client,
                    digests=[digests[place] for place in mine],
                    key=request.key,
                    body=request.body,
                    quota=request.quota,
                )
            )
        if not requests:
            return {}
        rows = self._teacher_rows(table, asked_of, digests)
        try:
            return dict(zip(numbers, self._online.ask_together(rows, requests), strict=True))
        except InvalidParameter as failure:  # of a user's own mechanism, which tells nothing of how
            return dict.fromkeys(numbers, failure)
        finally:
            if self._ledger.healthy:
                self._note_standing()

    def _note_standing(self) -> None:
        """Read what is left, one thread at a time; what only told stored answers adds nothing to the past."""
        with self._turn:
            before, self._standing = self._standing, self._read_standing()
            if self._standing.answers_left != before.answers_left:
                self._charged(self._standing)

    def _teacher_rows(self, table: Rows, places: list[int], digests: Sequence[bytes]) -> Rows:
        """Return rows as the teachers see them, while a row that they cannot take costs nobody anything.

        Where each of them was answered before, none is counted, and they are left as they are.
        """
        rows = take(table, places)
        if all(self._online.memo.recall(digests[place]) is not None for place in places):
            return rows
        try:
            return self._view(rows)
        except Exception as error:  # of a user's own transformer
            raise Problem("internal-error", "the models cannot take one of these rows; nothing was charged") from error

    def _new(self, places: range, digests: Sequence[bytes], claimed: set[bytes]) -> dict[bytes, int]:
        """Return the distinct points that nobody asked before, each by its first place."""
        new: dict[bytes, int] = {}
        for place in places:
            if digests[place] not in claimed and self._online.memo.recall(digests[place]) is None:
                new.setdefault(digests[place], place)
        return new

    def _goes(self, digest: bytes, new: Mapping[bytes, int], claimed: set[bytes]) -> bool:
        """Whether a point is put to the ensemble; where nothing is left, the student has it."""
        return self._refuse or digest in new or digest in claimed or self._online.memo.recall(digest) is not None

    def _keep_quota(self, request: LabelRequest) -> None:
        """Have the ledger keep the quota of a key, unless its owner decided on one for this client, or on none."""
        if request.quota is None or self._has_decided(request.client):
            return
        try:
            self._ledger.set_quota(request.client, request.quota, "the quota of this key of the service", first=True)
        except PreconditionFailed:  # another thread, or another server, was quicker
            if not self._has_decided(request.client):
                raise

    def _has_decided(self, client: str) -> bool:
        quota = self._ledger.quota(client)
        return quota.answers is not None or quota.removed

    @contextmanager
    def _alone(self, block: Sequence[LabelRequest]) -> Iterator[None]:
        """Keep other threads from charging clients whom their key bounds and the ledger does not, or less."""
        loose = {
            request.client
            for request in block
            if request.quota is not None and self._is_loose(request.client, request.quota)
        }
        with self._turn:
            self._turn.wait_for(lambda: self._charging.isdisjoint(loose))
            self._charging |= loose
        try:
            yield
        finally:
            with self._turn:
                self._charging -= loose
                self._turn.notify_all()

    def _is_loose(self, client: str, quota: int) -> bool:
        kept = self._ledger.quota(client).answers
        return kept is None or kept > quota

    def _reply(self, outcome: ClientAnswer | QuorateError | None, points: Sequence[Point | Exception]) -> Reply:
        if failures := [point for point in points if isinstance(point, Exception)]:
            charged = isinstance(outcome, ClientAnswer) and outcome.charged > 0
            problem = Problem("internal-error", _NO_STUDENT, charged=charged)
            problem.__cause__ = failures[0]  # logged by its kind; its message may hold what was asked
            return problem
        return self._reply_of(outcome, [point for point in points if isinstance(point, Point)])

    def _reply_of(self, outcome: ClientAnswer | QuorateError | None, points: Sequence[Point]) -> Reply:
        match outcome:
            case ClientAnswer():
                charged, receipt = outcome.charged, outcome.receipt
            case InvalidParameter():
                return Problem("mechanism-failed", charged=True)
            case QuotaExhausted() if self._refuse:
                return Problem("quota-spent", ASK_FEWER, answers_left=max(0, int(outcome.limit - outcome.spent)))
            case BudgetExhausted() if self._refuse:
                return Problem("budget-spent", ASK_FEWER, answers_left=self._online.left)
            case TeachersSilent():
                charged_in_part = outcome.charged not in (None, NOTHING_CHARGED)
                return Problem("teachers-silent", outcome.charged or NOTHING_CHARGED, charged=charged_in_part)
            case PreconditionFailed():
                return Problem("idempotency-key-reused")
            case QuorateError() if outcome.__cause__ is not None:  # what was drawn for it, or for others, was lost
                charged_for_it = outcome.charged not in (None, NOTHING_CHARGED)
                problem = Problem("internal-error" if charged_for_it else "overloaded", str(outcome))
                problem.charged, problem.__cause__ = charged_for_it, outcome.__cause__
                return problem
            case _:
                charged, receipt = 0, None
        if self._refuse and any(point.by == "student" for point in points):  # the mechanism closed on the way
            return Problem("budget-spent", ASK_FEWER, charged=charged > 0)
        return Answered(tuple(points), charged, receipt)

    def _points(self, table: Rows, digests: Sequence[bytes], places: Sequence[range]) -> list[Point | Exception]:
        """Return what each point gets; where the student fails on a request, what it failed by."""
        codes = [self._online.memo.recall(digest) for digest in digests]
        rest = [[place for place in mine if codes[place] is None] for mine in places]
        of_student = self._of_student(table, rest)
        return [
            of_student[place]
            if code is None
            else Point(None, "declined", "ensemble")
            if code == DECLINED
            else Point(self._classes[code], "answered", "ensemble")
            for place, code in enumerate(codes)
        ]

    def _of_student(self, table: Rows, rest: Sequence[Sequence[int]]) -> dict[int, Point | Exception]:
        """Ask the student about places of a table, for all requests at once; where it fails, for each by itself."""
        places = [place for mine in rest for place in mine]
        if not places:
            return {}
        try:
            labels = self._student(take(table, places))
        except Exception as failure:  # noqa: BLE001 - of a user's own student; the charge was made, and is told
            mine = [request_places for request_places in rest if request_places]
            if len(mine) == 1:
                return dict.fromkeys(places, failure)
            points: dict[int, Point | Exception] = {}
            for request_places in mine:
                points |= self._of_student(table, [request_places])
            return points
        return {place: Point(label, "answered", "student") for place, label in zip(places, labels, strict=True)}

    def _read_standing(self) -> Standing:
        purposes = self._online.reservation.purposes
        reserved = sum(purposes[purpose] for purpose in self._online.purposes)
        return Standing.of(self._ledger, answers_left=self._online.left, answers_reserved=reserved)


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """Answers blocks by a released model: every prediction is free, and the ledger stays as it was opened."""

    model: Callable[[Rows], list[Any]]
    features: Features
    standing: Standing

    @property
    def healthy(self) -> bool:
        """True: nothing is charged."""
        return True

    @property
    def in_place(self) -> bool:
        """True: nothing is charged."""
        return True

    def answer(self, block: Sequence[LabelRequest]) -> list[Reply]:
        """Answer a block; see :class:`~quorate.service.turns.Answers`."""
        labels = iter(self.model(self.features.table([row for request in block for row in request.rows])))
        return [Answered(tuple(Point(next(labels), "answered", "model") for _ in request.rows)) for request in block]
