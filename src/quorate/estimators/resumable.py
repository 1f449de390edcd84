"""A fit by votes on its ledger, and the same fit later: whether it goes on, its one charge, what Ctrl-C leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from quorate.errors import BudgetExhausted, InvalidParameter, LedgerMismatch, PreconditionFailed, QuorateError
from quorate.ledger import Ledger
from quorate.release import GivenLedger, ledger_location
from quorate.release.charge import GRADIENT_ROUND, client_of, stored_answers
from quorate.run.progress import progress
from quorate.run.public_facts import MethodName
from quorate.voting.flow import RunResult, run_pipeline
from quorate.voting.resumed import charge_name, find_fit, fit_key, go_on, nonces_of
from quorate.voting.task import Task

BEFORE = "quorate: interrupted before anything was charged. Call fit again"
IN_MEMORY = (
    "quorate: interrupted after the charge, in a ledger in memory, so nothing is left to go on with. The charge counts "
    "as spent. With ledger=PATH an interrupted fit can be resumed"
)
AFTER = "quorate: interrupted after the charge. "
BY_RESUME = "Nothing is charged twice: resume(...) with the arguments of fit goes on"
BY_FIT = f"{BY_RESUME}, and so does the same call of fit"


@contextmanager
def noted(ledger: Ledger, key: str, *, seeded: bool, how: str = BY_RESUME) -> Iterator[None]:
    """Have an interruption of the block, or an error after the charge, say what was charged, and how to go on.

    `ledger`: open. `key`: idempotency key of the charge. `seeded`: whether the noise of the fit is seeded. `how`: how
    to go on where the ledger outlives the process: a sentence without a full stop.
    """
    try:
        yield
    except QuorateError:
        raise  # it says itself what its ledger was charged
    except BaseException as stop:
        interrupted = isinstance(stop, KeyboardInterrupt)
        if (reservation := ledger.reservation(key, client=client_of(seeded=seeded))) is not None:
            stored = stored_answers(reservation)
            words = f"{AFTER}{'' if stored is None else f'{stored}. '}{how}" if ledger.durable else IN_MEMORY
            stop.add_note(words if interrupted else words.replace("interrupted", "ended by this error", 1))
        elif interrupted:
            stop.add_note(BEFORE)
        raise


OfFit: TypeAlias = Callable[[str], Iterable[Task]]

OTHER_DATA = (
    "cannot resume: the data differ from those that the ledger was charged for (X, y or groups). Resuming would reuse "
    "answers about other people. Give the same data, or fit anew: its cost adds to the same budget"
)


def refuse_lost_ledger(given: GivenLedger) -> None:
    """Refuse to resume where no ledger is named, or where there is none, before any table is read."""
    place = ledger_location(given)
    if place is None:
        raise InvalidParameter(
            "resume goes on with a fit in its ledger, and ledger= is None; give the path of the ledger that the fit "
            "was charged to"
        )
    if not isinstance(place, Ledger) and not place.exists():
        raise PreconditionFailed(
            f"there is no ledger at {place}: no fit was charged there. Call fit, or give the ledger of the fit that "
            "is to go on"
        )


def charged_methods(given: GivenLedger) -> list[MethodName]:
    """Return the methods whose fits a ledger was charged for, in the order of their first charges."""
    place = ledger_location(given)
    if place is None:
        return []
    with nullcontext(place) if isinstance(place, Ledger) else Ledger(place) as ledger:
        purposes = [charge.purposes for charge in ledger.reservations()]
    return list(dict.fromkeys("direct" if GRADIENT_ROUND in purpose else "votes" for purpose in purposes))


def refuse_other_ledger(ledger: Ledger, fingerprint: str) -> None:
    """Refuse to resume on an open ledger that is in memory, or that was charged for other data, by their keyed hash."""
    if not ledger.durable:
        raise InvalidParameter(
            "resume goes on with a fit whose ledger outlived it, and this ledger is in memory: what it was "
            "charged for ended with its process. Give ledger= a path"
        )
    if ledger.fingerprints and fingerprint not in ledger.fingerprints:
        raise LedgerMismatch(OTHER_DATA, other_data=True)


def charged(task: Task, ledger: Ledger, *, nonce: str, of: OfFit, verbose: bool) -> RunResult:
    """Charge a task to an open ledger and go the whole way, so that it can be found there again.

    `task`: with the key that follows from `nonce`. `ledger`: open. `nonce`: names the fit in a ledger that outlives the
    process. `of`: from a number that names a fit to the task with that fit's key, as :func:`by_fit` says. `verbose`:
    whether progress is shown.
    """
    key = charge_name(task, nonce) if ledger.durable else nonce
    with noted(ledger, key, seeded=task.noise.seeded), progress(quiet=not verbose) as watch:
        try:
            return run_pipeline(task, ledger, key=key, watch=watch)
        except BudgetExhausted as refusal:
            raise charged_before(refusal, ledger, of) from None


def went_on(task: Task, ledger: Ledger, *, of: OfFit, verbose: bool) -> RunResult:
    """Find a task's charge in an open ledger, train the same teachers again, and charge nothing.

    `task`: with any key. `ledger`, `of`, `verbose`: as for :func:`charged`. Returns: as the fit would have
    had it. Raises InvalidParameter if the ledger is in memory; LedgerMismatch if the ledger was charged for other data;
    PreconditionFailed if it holds no fit of these arguments, public rows and versions.
    """
    refuse_other_ledger(ledger, task.fingerprint)
    fit = find_fit(ledger, of)
    if fit is None:
        raise PreconditionFailed(_no_such_fit(ledger, task))
    task, charge = fit
    with noted(ledger, charge.key, seeded=task.noise.seeded), progress(quiet=not verbose) as watch:
        return go_on(task, charge, ledger, watch=watch)


def by_fit(task: Task) -> OfFit:
    """Return what gives a task the key of a fit, by the number that names the fit; a seed makes the key alone.

    After it comes what earlier versions made of the same arguments, prepared when it is first asked for.
    """
    tasks = [task]

    def of(nonce: str) -> Iterator[Task]:
        waiting = iter(tasks) if len(tasks) > 1 else chain(tasks[:], _kept(task.earlier(respells=task.respells), tasks))
        for read in waiting:
            yield read if task.noise.seeded else replace(read, key=fit_key(task.fingerprint_key, nonce))

    return of


def _kept(tasks: Iterator[Task], known: list[Task]) -> Iterator[Task]:
    """Yield tasks that are prepared one after the other, and keep all of them at the end, for the next time."""
    prepared = list[Task]()
    for task in tasks:
        prepared.append(task)
        yield task
    known += prepared


def charged_before(refusal: BudgetExhausted, ledger: Ledger, of: OfFit) -> BudgetExhausted:
    """Say what goes on with a fit where the budget is spent by this very one."""
    advice = "give a smaller epsilon=, or raise the budget with a reason"
    if ledger.durable and find_fit(ledger, of) is not None:
        advice = f"{advice}. But this very fit was charged before: resume(...) goes on with it, and charges nothing"
    return refusal.reworded(advice=advice)


def _no_such_fit(ledger: Ledger, task: Task) -> str:
    if not nonces_of(ledger):
        return (
            "cannot resume: the ledger holds no fit that was charged and can go on. If the fit was ended before its "
            "charge, nothing was spent: call fit. A run in a folder goes on by quorate run; quorate.load opens it"
        )
    order = " the order of the rows," if task.by_position else ""
    return (
        "cannot resume: the ledger holds fits of these data, and none of these settings. An argument of the "
        f"estimator,{order} the public rows, or the version of quorate, scikit-learn or numpy is another one; put it "
        "back, and nothing is charged"
    )
