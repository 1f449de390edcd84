"""One act on a ledger: open it, refuse one that was put back to an older state, bind it to its data, let go of it.

Fits without a ledger are counted here too: no other fit counts them, and the second one in a process warns of what they
may have spent together. Nothing is kept of their data: whether two fits saw the same people is for their owner to know.
"""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any

from quorate.accounting.figures import at_most
from quorate.accounting.neighbouring import Change
from quorate.errors import InvalidParameter, LedgerMismatch, PreconditionFailed, PrivacyWarning
from quorate.findings import frames_of_ours
from quorate.ledger import Budget, Ledger, Receipt, Verified
from quorate.ledger.budget import DELTA_DIGITS, EPSILON_DIGITS, Composition, float_up
from quorate.ledger.ledger import is_url

ADVICE = (
    "Give every fit on the same people one ledger=; compare models on public rows with labels, or for a price "
    "(docs/how-to/evaluate-privately.md)"
)


class UncountedFits:
    """What the fits of one process spent without a ledger, one added to the other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fits = self._epsilon_e9 = self._delta_e18 = 0

    def begin(self, budget: Budget) -> None:
        """Count a fit at the budget that it may spend; warn where there are others, before anything is charged.

        Raises PrivacyWarning where warnings are turned into errors; the fit is not counted then.
        """
        with self._lock:
            self._add(1, budget.limit.epsilon_e9, budget.limit.delta_e18)
            message = self._message(budget)
        if message is None:
            return
        try:
            warnings.warn(message, PrivacyWarning, stacklevel=frames_of_ours())
        except PrivacyWarning:
            self.end(budget, None)
            raise

    def end(self, budget: Budget, ledger: Ledger | None) -> None:
        """Count what a fit did spend in place of its budget; a fit that charged nothing is none."""
        spent = None if ledger is None else ledger.state.spent
        with self._lock:
            self._add(-1, -budget.limit.epsilon_e9, -budget.limit.delta_e18)
            if spent is not None and (spent.epsilon_e9 or spent.delta_e18):
                self._add(1, spent.epsilon_e9, spent.delta_e18)

    def _add(self, fits: int, epsilon_e9: int, delta_e18: int) -> None:
        self._fits += fits
        self._epsilon_e9 += epsilon_e9
        self._delta_e18 += delta_e18

    def _message(self, budget: Budget) -> str | None:
        if self._fits > 1:
            epsilon, delta = float_up(self._epsilon_e9, EPSILON_DIGITS), float_up(self._delta_e18, DELTA_DIGITS)
            together, alone = (
                f"ε = {at_most(e, 6)} and δ = {at_most(d, 6)}"
                for e, d in ((epsilon, delta), (budget.epsilon, budget.delta))
            )
            return (
                f"fit {self._fits} without a ledger in this process: the guarantee of each counts that fit alone. If "
                f"they saw data of the same people, together they spend {together}, "
                f"not {alone}. Fits of other processes, such as the "
                f"workers of n_jobs, are not seen here and come on top. {ADVICE}"
            )
        if multiprocessing.parent_process() is not None:
            return (
                "a fit without a ledger in a worker process: its guarantee counts this fit alone. What other "
                "processes fit, such as the other workers of n_jobs, is not seen here; if they saw data of the same "
                f"people, ε and δ of all fits add up. {ADVICE}"
            )
        return None


IN_THIS_PROCESS = UncountedFits()


@contextmanager
def uncounted(budget: Budget, *, seeded: bool) -> Iterator[Ledger]:
    """Open a ledger in memory for one fit, and count what it spends; a seeded fit promises nothing that adds up."""
    ledger, fits = Ledger(budget=budget), IN_THIS_PROCESS
    if seeded:
        yield ledger
        return
    fits.begin(budget)
    try:
        yield ledger
    finally:
        fits.end(budget, ledger)


#: What ``ledger=`` may be.
GivenLedger = str | Path | Ledger | None

OTHER_DATA = (
    "the ledger is bound to another data set than this one, and counts the releases of one. A fold of cross_val_score, "
    "GridSearchCV or any other split is a data set of its own: compare models on public rows with labels, or for a "
    "price (docs/how-to/evaluate-privately.md), then fit once with this ledger. For rows that were corrected since, "
    "see docs/ledger-promise.md; for the same rows, of which ids, labels or cells were read in another way when it was "
    "begun, see docs/reference/cells.md"
)


FOLDS = (
    "Compare models on public rows with labels, or for a price, and call fit once "
    "(docs/how-to/evaluate-privately.md): cross_val_score, GridSearchCV and the like would charge the same people in "
    "full for every fit. To try code, pass unsafe_noise_seed=, which gives no guarantee"
)
_FITS_ON_PARTS = ("sklearn.model_selection.", "sklearn.calibration.")


def ledger_location(given: GivenLedger) -> Path | Ledger | None:
    """Return the path or ledger that was given, a text as a path.

    Raises InvalidParameter if it is neither a path nor a ledger; or a URL: what opens that is a ``Ledger``, which knows
    where its key lies.
    """
    if is_url(given):
        scheme = str(given).partition(":")[0]  # what follows may hold a password
        raise InvalidParameter(f"ledger must be a path or a Ledger, got a URL of {scheme}; give Ledger(URL)")
    if given is not None and not isinstance(given, str | Path | Ledger):
        raise InvalidParameter(
            f"ledger must be a path or a Ledger, got {type(given).__name__}; give a path such as "
            '"ledger.db", or Ledger(path, budget=Budget(epsilon, delta))'
        )
    return Path(given) if isinstance(given, str) else given


class RollbackGuard:
    """The newest entry of a ledger that a fitted estimator knows of.

    Between two questions a ledger's file is let go of. Were an older state put back in its place, anchor and all, the
    answers given since would be given again from what was reserved; so each opening asks for that entry. What the
    entries up to it add up to is remembered with it, so that an opening verifies what is newer, and not all of it.
    """

    def __init__(self) -> None:
        self._receipt: Receipt | None = None
        self._verified: Verified | None = None

    def take(self) -> Verified | None:
        """Hand on what was verified of the ledger when its file was let go of."""
        verified, self._verified = self._verified, None
        return verified

    def keep(self, verified: Verified | None) -> None:
        """Remember what was verified, for the next opening: it then verifies what is newer."""
        self._verified = verified

    def check(self, ledger: Ledger) -> None:
        """Refuse a ledger that does not hold the newest entry that was seen."""
        if self._receipt is not None:
            ledger.check_receipt(self._receipt)

    def note(self, ledger: Ledger) -> None:
        """Remember its newest entry."""
        self._receipt = Receipt(ledger.head.sequence, ledger.head.hash)


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerTerms:
    """What a ledger says of the next charge before it is made; by default that of a new one, which adds ε and δ.

    `composition`: how it adds up what is charged. `relation`: the change that everything on it is guaranteed for; None
    where each would do. `charged`: client and key of each charge that was made.
    """

    composition: Composition = "sum"
    relation: Change | None = None
    charged: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, ledger: Ledger) -> LedgerTerms:
        """Read an open ledger."""
        charged = frozenset((reservation.client, reservation.key) for reservation in ledger.reservations())
        return cls(composition=ledger.budget.composition, relation=ledger.relation, charged=charged)

    def holds(self, beginning: str, client: str) -> bool:
        """Whether a client made a charge under a key that begins so."""
        return any(by == client and key.startswith(beginning) for by, key in self.charged)


def terms_of(given: GivenLedger) -> LedgerTerms:
    """Return the terms of the ledger that an estimator was given."""
    if isinstance(given, Ledger):
        return LedgerTerms.of(given)
    if given is None or not Path(given).exists():
        return LedgerTerms()
    return terms_in(lambda: Ledger(Path(given)))


def terms_in(open_ledger: Callable[[], Ledger], default: LedgerTerms | None = None) -> LedgerTerms:
    """Return the terms of a ledger that is opened for it, or `default` where it has no entry yet."""
    opened = unless_new(open_ledger)
    if opened is None:
        return LedgerTerms() if default is None else default
    with opened as ledger:
        return LedgerTerms.of(ledger)


def unless_new(open_ledger: Callable[[], Ledger]) -> Ledger | None:
    """Open a ledger; None where there is none yet, or one whose opening was interrupted before its first entry."""
    try:
        return open_ledger()
    except PreconditionFailed as refusal:
        if type(refusal) is not PreconditionFailed:
            raise
    return None


@contextmanager
def session(
    given: GivenLedger,
    *,
    budget: Budget | None,
    same_budget: bool = False,
    in_memory: Ledger | None = None,
    guard: RollbackGuard | None = None,
    fingerprint: str | None = None,
    seeded: bool | None = None,
) -> Iterator[Ledger]:
    """Open a ledger for one act: a path is let go of again, so that others may read it in between.

    `given`: the argument of an estimator. `budget`: what a new ledger is opened with; one that exists has its own. None
    where there must be one. `same_budget`: whether a file that exists is refused where it has another budget.
    `in_memory`: where None was given, the ledger that was made before. `guard`: what is known of the ledger: asked for
    on entering, brought up to date on leaving. `fingerprint`: keyed hash of the private data: a ledger that belongs to
    other data is refused. `seeded`: for the fit of an estimator: whether its noise is seeded. A fit in memory is
    counted with the others of this process unless it is. None where nothing is fitted, or in a folder of its own.

    Raises LedgerIntegrityError if the ledger does not hold what was seen in it before; LedgerMismatch if it belongs to
    other data, or has another budget; PreconditionFailed if an estimator is fitted by a cross-validation or a search,
    which fits it many times. Warns, with PrivacyWarning, if it is a fit in memory, and not the first of this process.
    """
    guard = guard or RollbackGuard()
    if seeded is False and budget is not None:
        refuse_folds()
    with _held(given, budget, in_memory, guard, same_budget=same_budget, seeded=seeded) as ledger:
        guard.check(ledger)
        try:
            if fingerprint is not None:
                ledger.bind(fingerprint)
            yield ledger
        except LedgerMismatch:
            if seeded is None:
                raise
            raise LedgerMismatch(OTHER_DATA, other_data=True) from None
        finally:
            if ledger.healthy:  # unless something was found wrong with it
                guard.note(ledger)


def refuse_folds() -> None:
    """Refuse a fit that a cross-validation or a search of scikit-learn has called. Raises PreconditionFailed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if f"{frame.f_globals.get('__name__', '')}.".startswith(_FITS_ON_PARTS):
            raise PreconditionFailed(FOLDS)
        frame = frame.f_back


class NoFolds:
    """Part of an estimator with ``ledger=``: no fold of it is begun, here or in a worker, with an open ledger."""

    def __sklearn_clone__(self) -> Any:
        if isinstance(getattr(self, "ledger", None), Ledger) and getattr(self, "unsafe_noise_seed", None) is None:
            refuse_folds()  # here: a ledger does not travel to a worker, which joblib says in words of its own
        return super().__sklearn_clone__()  # type: ignore[misc]  # that of BaseEstimator, which stands beside


@contextmanager
def _held(
    given: GivenLedger,
    budget: Budget | None,
    in_memory: Ledger | None,
    guard: RollbackGuard,
    *,
    same_budget: bool,
    seeded: bool | None,
) -> Iterator[Ledger]:
    if isinstance(given, Ledger):
        yield given
    elif given is None and in_memory is None and budget is not None and seeded is not None:
        with uncounted(budget, seeded=seeded) as ledger:
            yield ledger
    elif given is None:
        yield in_memory or Ledger(budget=budget)
    else:
        path, known = Path(given), guard.take()
        opened = None if same_budget or budget is None else unless_new(lambda: Ledger(path, known=known))
        ledger = opened or Ledger(path, budget=budget, known=known)
        try:
            yield ledger
        finally:
            guard.keep(ledger.close())
