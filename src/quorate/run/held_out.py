"""Private units that a run holds out for prediction sets, or intervals, in one charge with what it learns from.

Each unit is held out or learned from, by a keyed hash of its identity alone. So its data enter what learns, or the
choice of the limit, and never both: the price of the two together is the larger one
(:class:`~quorate.accounting.Parallel`), and the limit is chosen with all of the run's ε.

Sets have their limit on a grid of equal steps. How far off a number is has one of steps that grow by the same factor,
:data:`ENDS`: whether the declared range is a little or much wider than the targets, an interval is at most 2 % longer
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any, Final

import numpy as np

from quorate.accounting import Event, Parallel
from quorate.accounting.figures import plural
from quorate.arguments import real
from quorate.data.digests import PackedDigests, SpooledDigests, order_of_rows
from quorate.data.unit_ids import counted_rows
from quorate.ensemble import held_out_rows
from quorate.ensemble.teachers.unfitted import may_have
from quorate.errors import InvalidParameter, named, naming
from quorate.labelling import PrivateLimit, private_slack
from quorate.labelling.private_sets import PLACES, limit_at
from quorate.ledger import Reservation
from quorate.ledger.budget import EPSILON_DIGITS, float_down, largest_rho
from quorate.mechanisms import PrivateQuantile
from quorate.noise import NoiseSource
from quorate.release import release_once
from quorate.release.charge import TUNING
from quorate.report import Part
from quorate.report.findings import PrivateIntervals, PrivateSets
from quorate.report.notation import percent
from quorate.report.spending import part_of
from quorate.run.method_config import MethodConfig
from quorate.students.prediction_sets import FAILURE, CoveragePromise, Kind
from quorate.types import BoolArray, FloatArray, IntArray, Secret

MOST_SLACK: Final = 0.05  #: below the coverage: with more, sets promise too little to be worth the units held out
#: Where intervals of a number may end, in widths of the range from the prediction.
ENDS: Final = np.geomspace(1e-4, 1.0, 500)
_OF_TARGET = 1e-5  # widths of the range: more than a target and its step of the range are apart
_MOST_UNITS = 1 << 40  # that a refusal may ask for
_UPWARD = 1e-6  # to whose multiples a slack is rounded up


_NAMES: Final = {"sets": "prediction sets", "intervals": "intervals"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SetsPlan:
    """What is held out, by public facts alone. `n_units`: declared, those that learn included. `width`: of the range of
    a number, whose intervals these are; None for prediction sets.
    """

    share: float
    n_units: int
    mechanism: PrivateQuantile
    slack: float
    n_rows: int | None = None
    width: float | None = None

    @property
    def kind(self) -> Kind:
        """What the limit is of."""
        return "sets" if self.width is None else "intervals"

    @property
    def n_places(self) -> int:
        """Of the grid that the limit lies on."""
        return PLACES if self.width is None else len(ENDS)

    @property
    def n_learning(self) -> int:
        """How many units learn, on average."""
        return max(1, round(self.n_units * (1 - self.share)))

    @property
    def facts(self) -> dict[str, Any]:
        """What is held out, in plain values."""
        return {
            "share": self.share, "coverage": self.mechanism.share, "slack": self.slack, "failure": FAILURE,
            "epsilon": self.mechanism.epsilon,
        }  # fmt: skip

    @property
    def promise(self) -> CoveragePromise:
        """What the sets will promise."""
        coverage = self.mechanism.share
        return CoveragePromise(coverage=coverage, slack=self.slack, failure=FAILURE, n_rows=None, of=self.kind)

    @property
    def released_in_words(self) -> str:
        """What is released, in words."""
        return f"one choice of a limit for {_NAMES[self.kind]}, by permute-and-flip at ε = {self.mechanism.epsilon:.6g}"

    def step(self, unit: str) -> tuple[str, str]:
        """Return the line of a check about what is held out, and what the sets will promise."""
        held = f"{percent(self.share)} of the {plural(unit)} for {_NAMES[self.kind]}"
        return "hold out", f"{held}, within the same charge: {self.promise}"

    def why(self, unit: str) -> str:
        """Say in a sentence what is held out."""
        return (
            f"{percent(self.share)} of the {plural(unit)}, by a keyed hash of each, are held out, and one row of each "
            f"chooses the limit of {_NAMES[self.kind]} of {100 * self.mechanism.share:g} %"
        )

    def event_with(self, learning: Event) -> Parallel:
        """Return what is released of all units: `learning` of most, and the limit of those that are held out."""
        return Parallel((learning, self.mechanism.event))

    def charged(self, purposes: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the purposes of a charge with that of the limit, and which part of the event pays for each."""
        return {**purposes, TUNING: 1}, {**dict.fromkeys(purposes, 0), TUNING: 1}

    def part(self, reservation: Reservation) -> Part:
        """Say what became of the limit."""
        return part_of(reservation, TUNING, mechanism="permute-and-flip on units held out", reserved=1, share=0.0)

    def as_fitted(self, limit: PrivateLimit | None) -> dict[str, Any]:
        """Return what a report says of the limit, by its name there."""
        return {"private_sets" if self.width is None else "private_intervals": self.published(limit)}

    def published(self, limit: PrivateLimit | None) -> PrivateSets | None:
        """Return what a report says of the limit; None where it was lost."""
        if limit is None:
            return None
        return (PrivateSets if self.width is None else PrivateIntervals)(
            limit=limit.limit,
            coverage=self.mechanism.share,
            slack=self.slack,
            failure=FAILURE,
            share=self.share,
            epsilon=self.mechanism.epsilon,
        )

    def places_of_errors(self, errors: FloatArray, off: float) -> IntArray:
        """Count units by how far off their number is, in widths of the range, raised by `off`; none is all of it."""
        raised = np.nan_to_num(errors, nan=1.0, posinf=1.0) + off + _OF_TARGET
        places = np.minimum(np.searchsorted(ENDS, raised), len(ENDS) - 1)
        return np.bincount(places, minlength=len(ENDS)).astype(np.int64)

    def limit_of(
        self, reservation: Reservation, noise: NoiseSource, counts: Callable[[], Secret[IntArray]]
    ) -> PrivateLimit | None:
        """Return the limit that a reservation holds, or release it; None where it was drawn and lost."""
        blocks = reservation.blocks(TUNING)
        if blocks and blocks[0].answers is None:
            return None
        if blocks:
            [place] = blocks[0].answers
        else:
            place = release_once(counts(), self.mechanism, reservation, noise, purpose=TUNING)
        return PrivateLimit(
            limit=limit_at(int(place)) if self.width is None else float(ENDS[int(place)]) * self.width,
            coverage=self.mechanism.share,
            slack=self.slack,
            failure=FAILURE,
            event=self.mechanism.event,
            seeded=noise.seeded,
        )


def plan_sets(asked: MethodConfig, *, n_records: int | None, budget: tuple[float, float], unit: str) -> SetsPlan | None:
    """Fix what is held out, or refuse it with the number that would do; None where nothing was asked for."""
    coverage = real("coverage", asked.coverage, above=0, below=1)
    if asked.calibration_share is None:
        return None
    share = real("calibration_share", asked.calibration_share, above=0, below=1)
    if n_records is None:
        raise InvalidParameter(
            f"{named('calibration_share')} promises what follows from the number of {plural(unit)}, which is not "
            f"declared; declare {named('n_records')}"
        )
    spent, delta = budget
    if asked.composition == "zcdp":  # where a choice at ε costs ε²/2 at most, and the whole what (ε, δ) is worth
        spent = min(spent, sqrt(2 * float_down(largest_rho(spent, delta), EPSILON_DIGITS)) * (1 - 2.0**-40))
    with naming({"share": named("coverage")}):
        mechanism = PrivateQuantile(epsilon=spent, share=coverage)
    width = None if asked.target_range is None else asked.target_range.width
    plan = SetsPlan(share=share, n_units=n_records, mechanism=mechanism, slack=1.0, width=width)
    slack = _slack(plan, n_records)
    if slack is None or slack > MOST_SLACK:
        raise InvalidParameter(_too_few(plan, slack, unit))
    return replace(plan, slack=slack)


def _slack(plan: SetsPlan, n_units: int) -> float | None:
    """Return the slack of so many units, rounded up; None where nothing is promised."""
    how: dict[str, Any] = {"share": plan.share, "failure": FAILURE, "n_places": plan.n_places}
    try:
        slack = private_slack(plan.mechanism, n_units, **how)
    except InvalidParameter:
        return None
    return round(ceil(slack / _UPWARD) * _UPWARD, 6)


def _too_few(plan: SetsPlan, slack: float | None, unit: str) -> str:
    """Say how many units would do, to two digits."""
    mechanism, n_units = plan.mechanism, plan.n_units
    enough = n_units
    while enough < _MOST_UNITS and (_slack(plan, enough) or 1.0) > MOST_SLACK:
        step = 10 ** (len(str(enough)) - 2) if enough >= 10 else 1
        enough = (enough // step + 1) * step
    promised = "nothing" if slack is None else f"{100 * (mechanism.share - slack):.1f} %"
    return (
        f"{named('calibration_share', plan.share)} of {n_units:,} {plural(unit)} is too little for "
        f"{_NAMES[plan.kind]}: asked "
        f"for {100 * mechanism.share:g} %, they would promise {promised} at ε = {mechanism.epsilon:g}, and "
        f"{100 * (mechanism.share - MOST_SLACK):g} % is the least that is worth it. {enough:,} {plural(unit)} would "
        f"do; or hold out a larger share, spend a larger {named('epsilon')}, or give public rows with "
        "labels, which are free"
    )


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The rows of units that are held out: which, and the class of the one that counts of each, −1 for all others."""

    plan: SetsPlan
    held: Secret[BoolArray]
    codes: Secret[IntArray]
    order: str = ""

    @classmethod
    def of(
        cls,
        plan: SetsPlan,
        unit_keys: Sequence[bytes],
        codes: IntArray,
        key: Secret[bytes],
        *,
        digests: PackedDigests | SpooledDigests | None = None,
    ) -> HeldOut:
        """Hold units out; of a unit's rows the one counts that its identity and the key choose, whatever it holds."""
        held = held_out_rows(unit_keys, plan.share, key).reveal()
        counted = counted_rows(unit_keys, key)
        order = "" if digests is None else order_of_rows(digests, codes, key)
        return cls(plan, Secret(held), Secret(np.where(held & counted, codes, -1)), order)

    def without_rows(self) -> HeldOut:
        """The same once the private rows are no longer needed."""
        return HeldOut(self.plan, Secret(np.empty(0, dtype=bool)), Secret(np.empty(0, dtype=np.int64)), self.order)


def refuse_without_probabilities(learner: Any) -> None:
    """Refuse sets of a student that says no probabilities: they would be missed only after the charge."""
    if not may_have(learner, "predict_proba"):
        raise InvalidParameter(
            f"{named('calibration_share')} makes sets from probabilities, and {type(learner).__name__} has no "
            "predict_proba; choose another student, or leave it out"
        )
