"""A charge: what a release asks of a ledger, all of it at once and before the first answer; and the way back to it.

Whether a fit could be paid for is asked without a charge, an entry or a file.

Beside it stands what a release is stated by: the (ε, δ) that it aims at, counted in the units of a ledger, and where
its noise comes from.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quorate.accounting import Event
from quorate.accounting.neighbouring import Neighbouring
from quorate.arguments import count, real
from quorate.errors import BudgetExhausted, InvalidParameter, LedgerMismatch, PreconditionFailed, named
from quorate.ledger import Budget, GuaranteeScope, Ledger, Reservation
from quorate.ledger.budget import DELTA_DIGITS, EPSILON_DIGITS, float_down, units_down
from quorate.ledger.pricing import Request
from quorate.release.session import OTHER_DATA, GivenLedger, RollbackGuard, ledger_location, session, unless_new
from quorate.types import Secret

if TYPE_CHECKING:
    from quorate.noise import NoiseSource


def floor_epsilon(epsilon: Any) -> float:
    """Check ε > 0, and round it down to the units that a ledger counts in."""
    return _floored(
        "epsilon", real("epsilon", epsilon, above=0, hint=f"Example: {named('epsilon', 1.0)}"), EPSILON_DIGITS
    )


def floor_budget(epsilon: Any, delta: Any) -> tuple[float, float]:
    """Check ε > 0 and 0 < δ < 1, and round them down to the units that a ledger counts in."""
    epsilon = real("epsilon", epsilon, above=0, hint=f"Example: {named('epsilon', 1.0)}")
    delta = real(
        "delta",
        delta,
        above=0,
        below=1,
        hint=f"Choose it below 1 / number of units, for example {named('delta', 1e-6)}",
    )
    return _floored("epsilon", epsilon, EPSILON_DIGITS), _floored("delta", delta, DELTA_DIGITS)


def _floored(name: str, given: float, digits: int) -> float:
    units = units_down(given, digits)
    if not units:
        least = f"at least 1e-{digits}, the unit that ledgers count in"
        raise InvalidParameter(parameter=name, got=given, expected=least)
    return float_down(units, digits)


LOCAL_CLIENT, SEEDED_CLIENT = "local", "local, seeded noise: no guarantee"  # who charges, in the ledger


def client_of(*, seeded: bool) -> str:
    """Return who charges, as the ledger has it: a charge whose noise is seeded is told apart for ever."""
    return SEEDED_CLIENT if seeded else LOCAL_CLIENT


def noise_and_key(unsafe_noise_seed: int | None, key: Secret[bytes] | None = None) -> tuple[NoiseSource, Secret[bytes]]:
    """Return where noise comes from, and the run's key: the given one, or a fresh one.

    A seed fixes both, so that a seeded run repeats: it is reproducible, therefore not private.
    """
    from quorate.noise import OSNoise, SeededNoise

    if unsafe_noise_seed is None:
        return OSNoise(), Secret(secrets.token_bytes(32)) if key is None else key
    seed = count("unsafe_noise_seed", unsafe_noise_seed)
    return SeededNoise(seed), Secret(blake2b(f"quorate unsafe seed {seed}".encode(), digest_size=32).digest())


LABEL: Final = "label"  # of a row of the public pool
ONLINE_ANSWER: Final = "online answer"  # to a query that arrives later
EVALUATION: Final = "evaluation"
TUNING: Final = "tuning"
COORDINATES: Final = "statement of coordinates"  # a digest, of what the rounds behind it are in
GRADIENT_ROUND: Final = "gradient round"  # of the direct method
MARGINAL_LEVEL: Final = "level of marginals"  # of the columns, from which a pool is drawn
PAIR_SUMS: Final = "sum over pairs of columns"  # of products, which tell how columns go together
TARGET_COUNT: Final = "count of targets"  # by cells of their range, before teachers predict a number
STAGE: Final = "sparse-vector stage"  # counted, and never an answer


def stored_answers(reservation: Reservation) -> str | None:
    """Say how many answers, or rounds, of a run are stored in its ledger, and how many were drawn and lost; None where
    it reserved neither.
    """
    for purpose, word in ((GRADIENT_ROUND, "rounds"), (LABEL, "answers")):
        if total := reservation.purposes.get(purpose, 0):
            counts = Counter[str]()
            for block in reservation.blocks(purpose):
                counts[block.status] += block.count
            lost = f", {counts['interrupted']:,} are lost" if counts["interrupted"] else ""
            return f"{counts['stored']:,} of {total:,} {word} are stored{lost}"
    return None


def is_closed(reservation: Reservation) -> bool:
    """Whether the reservation of a stream has no stage left: whoever asks from now on is not answered."""
    return STAGE in reservation.purposes and reservation.remaining(STAGE) == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """What a release asks of a ledger; the arguments are those of :meth:`quorate.ledger.Ledger.reserve`.

    `event`: all that the release may draw; priced at `delta`. `purposes`: how many answers there are for each purpose.
    `key`: the same charge is made once, however often a run is resumed. `scope`: whose data the release protects,
    against which change. `seeded`: whether its noise is seeded; the ledger then says so. `charged_to`: which part of a
    composed event pays for each purpose. `remedy`: what its owner can do where the budget refuses it, in the words of
    what is released; without a full stop. `also`: the other of the two relations, and what the release is for it.
    """

    event: Event
    delta: float
    purposes: Mapping[str, int]
    key: str
    scope: GuaranteeScope
    seeded: bool
    charged_to: Mapping[str, int] | None = None
    remedy: str | None = None
    also: tuple[Neighbouring, Event] | None = None

    @property
    def client(self) -> str:
        """Who charges, as the ledger has it."""
        return client_of(seeded=self.seeded)

    @property
    def _request(self) -> Request:
        return Request(
            delta=self.delta,
            purposes=self.purposes,
            key=self.key,
            client=self.client,
            scope=self.scope,
            charged_to=self.charged_to,
            also=self.also,
        )

    def check_affordable(self, ledger: Ledger) -> None:
        """Raise what :meth:`reserve` would raise now, and charge nothing: a refusal comes before long work."""
        with self._in_own_words():
            ledger.check_affordable(self.event, **self._request)

    def reserve(self, ledger: Ledger) -> Reservation:
        """Make the charge, durably; or return the reservation that it made before."""
        with self._in_own_words():
            return ledger.reserve(self.event, **self._request)

    @contextmanager
    def _in_own_words(self) -> Iterator[None]:
        """Have a budget's refusal end in the remedy of this release."""
        try:
            yield
        except BudgetExhausted as refusal:
            if self.remedy is None:
                raise
            raise refusal.reworded(advice=self.remedy) from None

    def find(self, ledger: Ledger) -> Reservation | None:
        """Return the reservation that the charge made; None where it was not made."""
        return ledger.reservation(self.key, client=self.client)


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """What a fitted estimator keeps of its ledger: a charge that was made, and the way back to it.

    `ledger`: what it was charged to; `budget`: what that was to be opened with. `guard`: the newest entry that the
    estimator knows of.
    """

    charge: Charge
    ledger: Ledger = field(repr=False)
    budget: Budget
    guard: RollbackGuard = field(repr=False)

    @contextmanager
    def open(self, given: GivenLedger) -> Iterator[tuple[Ledger, Reservation]]:
        """Open the ledger for one question; `given`: the argument of the estimator.

        Raises LedgerIntegrityError if it does not hold what the estimator saw in it before; PreconditionFailed if it
        does not hold the charge.
        """
        with session(given, budget=self.budget, in_memory=self.ledger, guard=self.guard) as ledger:
            reservation = self.charge.find(ledger)
            if reservation is None:
                raise PreconditionFailed(
                    "the ledger holds no reservation of this fit; give the ledger it was fitted with"
                )
            yield ledger, reservation


Reworded = Callable[[BudgetExhausted, Ledger], BudgetExhausted]


def refuse_unaffordable(
    given: GivenLedger,
    charge_on: Callable[[Ledger], Charge],
    *,
    budget: Budget,
    fingerprint: str,
    reworded: Reworded | None = None,
) -> None:
    """Raise what a fit would raise on its ledger now; nothing is charged, bound or written.

    `budget`: of a ledger that is new. `reworded`: what the fit would make of a budget's refusal, in its own words.
    Raises BudgetExhausted if too little is left; LedgerMismatch if the ledger belongs to other data.
    """
    place = ledger_location(given)
    if isinstance(place, Path):
        opened = unless_new(partial(Ledger, place))
        if opened is not None:
            with opened as ledger:
                _look(ledger, charge_on, fingerprint, reworded)
            return
        place = None
    _look(Ledger(budget=budget) if place is None else place, charge_on, fingerprint, reworded)


def _look(ledger: Ledger, charge_on: Callable[[Ledger], Charge], fingerprint: str, reworded: Reworded | None) -> None:
    if ledger.fingerprints and fingerprint not in ledger.fingerprints:
        raise LedgerMismatch(OTHER_DATA, other_data=True)
    try:
        charge_on(ledger).check_affordable(ledger)
    except BudgetExhausted as refusal:
        raise (refusal if reworded is None else reworded(refusal, ledger)) from None
