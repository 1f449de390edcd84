"""What an estimator keeps of its fit, by noisy rounds or by votes for a number; how one begins, and goes on later."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from quorate.accounting import Guarantee
from quorate.data import encode_labels
from quorate.direct.flow import DirectResult
from quorate.direct.method import ROUNDS
from quorate.direct.task import DirectTask, left_out
from quorate.errors import PreconditionFailed
from quorate.estimators.interrupted import BY_FIT, noted
from quorate.estimators.resumable import refuse_other_ledger
from quorate.estimators.shown import Standing
from quorate.ledger import Budget, Ledger
from quorate.release import Account, GivenLedger, RollbackGuard, session
from quorate.report import Facts, Utility
from quorate.run.facts import RunMetadata
from quorate.run.progress import progress, say
from quorate.types import IntArray
from quorate.voting.number_flow import NumberResult
from quorate.voting.number_method import NUMBER_VOTES
from quorate.voting.numbers import NumberTask

_MADE_OF = {"evaluation": "score", "calibration": "calibration"}  # public rows with labels, and what they give
NO_SUCH_FIT = (
    "cannot resume: the ledger holds no fit of these settings that can go on. If an argument of the estimator or the "
    "public rows are others, put them back. If the fit was ended before its charge, nothing was spent; if every round "
    "was drawn and none stored, what it cost is lost: call fit, which is charged then"
)


@dataclass(frozen=True, slots=True)
class FittedRounds:
    """One fit by noisy rounds, or by votes for a number: no private row is among it.

    `task`: what was asked, without the private rows.
    `result`: what came of it.
    `account`: the charge of the fit, on its ledger.
    `metadata`: when and by which call.
    `promised`: what everything that the ledger was charged for guarantees together.
    `left`: what the ledger had left when the fit let go of it.
    """

    task: DirectTask | NumberTask
    result: DirectResult | NumberResult
    account: Account
    metadata: RunMetadata
    promised: Guarantee
    left: Standing = field(repr=False)

    def labelled(self, rows: Any, y: Any, name: str) -> IntArray | None:
        """Take *public* rows with labels, and return their class codes.

        `rows`: as the pool is read. `name`: what messages call them. Returns None where more of the private records are
        among them than chance explains, which a line on the terminal tells.
        """
        assert isinstance(self.task, DirectTask)  # noqa: S101 - votes for a number have no labels
        codes = encode_labels(y, self.task.classes, name=f"{name} labels")
        return codes if self.are_public(rows, name) else None

    def are_public(self, rows: Any, name: str) -> bool:
        """Tell whether rows, read as the pool, may be used; where not, a line on the terminal tells why."""
        if self.task.may_score(rows):
            return True
        say(left_out(name, _MADE_OF[name]))
        return False

    def facts(self, given: GivenLedger, utility: Utility) -> Facts:
        """Gather what a report says, with the model's score."""
        with self.account.open(given) as (ledger, reservation):
            result = replace(self.result, reservation=reservation)
            facts: Facts = method_of(self.task).facts(
                self.task, result, ledger, replace(self.metadata, utility=utility)
            )
            return facts


def method_of(task: DirectTask | NumberTask) -> Any:
    """Return what a task is done by: noisy rounds, or votes for a number."""
    return NUMBER_VOTES if isinstance(task, NumberTask) else ROUNDS


def fit_rounds(
    task: DirectTask | NumberTask, given: GivenLedger, *, metadata: RunMetadata, verbose: bool
) -> FittedRounds:
    """Charge a task and go its rounds; or go on with them, free of charge, where the ledger holds them already.

    `task`: what to do. `given`: the estimator's ``ledger=``. `metadata`: when and by which call. `verbose`: whether
    progress is shown.
    """
    guard = RollbackGuard()
    with session(given, budget=_budget(task), guard=guard, seeded=task.noise.seeded) as ledger:
        return _go_rounds(task, ledger, guard, metadata=metadata, verbose=verbose)


def resume_rounds(
    task: DirectTask | NumberTask, given: GivenLedger, *, metadata: RunMetadata, verbose: bool
) -> FittedRounds:
    """Go on with the rounds of a task that its ledger was charged for, and charge nothing.

    `task`, `given`, `metadata`, `verbose`: as for :func:`fit_rounds`. Raises InvalidParameter if there is no ledger
    that outlives a process; LedgerMismatch if the ledger was charged for other data; PreconditionFailed if it holds no
    charge for these rounds with which they can go on, or one in coordinates of other bits.
    """
    guard = RollbackGuard()
    with session(given, budget=None, guard=guard) as ledger:
        refuse_other_ledger(ledger, task.fingerprint)
        if task.charge_on(ledger).find(ledger) is None:
            raise PreconditionFailed(NO_SUCH_FIT)
        return _go_rounds(task, ledger, guard, metadata=metadata, verbose=verbose)


def _go_rounds(
    task: DirectTask | NumberTask, ledger: Ledger, guard: RollbackGuard, *, metadata: RunMetadata, verbose: bool
) -> FittedRounds:
    key, method = task.charge_on(ledger).key, method_of(task)
    with noted(ledger, key, seeded=task.noise.seeded, how=BY_FIT), progress(quiet=not verbose) as watch:
        task, result = method.go(task, ledger, watch=watch)
    promised, task = method.promised(task, ledger), task.without_private_rows()
    return FittedRounds(
        task=task,
        result=replace(result, task=task),
        account=Account(charge=result.charge, ledger=ledger, budget=_budget(task), guard=guard),
        metadata=metadata,
        promised=promised,
        left=Standing.of(promised, ledger),
    )


def _budget(task: DirectTask | NumberTask) -> Budget:
    return Budget(task.epsilon, task.delta)
