"""What a release is stated by: the (ε, δ) that it aims at, where its noise comes from, and what its answers are for.

ε and δ are counted in the units of a ledger. Purposes are names under which several rooms reserve and draw.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from quorate.arguments import count, real
from quorate.errors import InvalidParameter, named
from quorate.ledger.budget import DELTA_DIGITS, EPSILON_DIGITS, float_down, units_down
from quorate.types import Secret

if TYPE_CHECKING:
    from quorate.ledger import Reservation
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
TARGET_COUNT: Final = "count of targets"  # by cells of their range, before teachers predict a number
STAGE: Final = "sparse-vector stage"  # counted, and never an answer


def stored_answers(reservation: Reservation) -> str | None:
    """Say how many answers, or rounds, of a run are stored in its ledger; None where it reserved neither.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> from quorate.ledger import Budget, Ledger
    >>> ledger = Ledger(budget=Budget(1.0, 1e-5))
    >>> reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={LABEL: 900}, key="a run")
    >>> block = reservation.draw(LABEL, 256)
    >>> receipt = reservation.store(block, [0] * 256)
    >>> stored_answers(reservation)
    '256 of 900 answers are stored'
    """
    for purpose, word in ((GRADIENT_ROUND, "rounds"), (LABEL, "answers")):
        if total := reservation.purposes.get(purpose, 0):
            stored = sum(block.count for block in reservation.blocks(purpose) if block.status == "stored")
            return f"{stored:,} of {total:,} {word} are stored"
    return None


def is_closed(reservation: Reservation) -> bool:
    """Whether the reservation of a stream has no stage left: whoever asks from now on is not answered."""
    return STAGE in reservation.purposes and reservation.remaining(STAGE) == 0
