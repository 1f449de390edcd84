"""What a fit would do and cost, asked of an estimator before it is fitted."""

from __future__ import annotations

import secrets
from typing import Any

from quorate.ambient import one_thread
from quorate.arguments import truth
from quorate.direct.method import ROUNDS
from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter, named
from quorate.estimators.known_arguments import rows_and_labels, tables_by_name
from quorate.estimators.resumable import by_fit, charged_before
from quorate.findings import Finding
from quorate.ledger import Budget
from quorate.planning.planned import expected_of_rounds
from quorate.planning.planned_run import expected_of
from quorate.release import GivenLedger
from quorate.release.charge import refuse_unaffordable
from quorate.run.look import NO_LOOK, Look
from quorate.run.method import CheckResult, check_of
from quorate.run.public_facts import ChosenMethod
from quorate.run.remarks import note_on_declared_units, note_on_unseen_rows, notes_on_pool, notes_without_pool, remarks
from quorate.students.scores import Judged
from quorate.types import Secret
from quorate.voting.claims import look_at_votes, note_on_mechanism, private_notes
from quorate.voting.flow import schedule
from quorate.voting.method import VOTES
from quorate.voting.number_method import NUMBER_VOTES
from quorate.voting.numbers import NumberTask
from quorate.voting.task import Task

PUBLIC_ROWS = "the public rows"


@one_thread()
@tables_by_name
def check(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    public: Any = None,
    groups: Any | None = None,
    schema: Any = None,
    evaluation: tuple[Any, Any] | None = None,
    look: bool = False,
) -> CheckResult:
    """Say what ``fit`` would do and cost, and what to know before: ``quorate check`` for an estimator.

    Parameters
    ----------
    estimator : PrivateClassifier, LabelPrivateClassifier, PrivateLogisticRegression, PrivateRegressor, ...
        Any of quorate, with the arguments that it is to be fitted with; it is not changed, and may be fitted already.
        Of a learner of :mod:`quorate.learners` it is not looked at whether its ledger has enough left.
    X, y, public, groups, schema
        What ``fit`` would be given; `schema` where there are no public rows.
    evaluation : (X, y), optional
        *Public* rows with labels, 40 at least. The fit is rehearsed on them, with shards or rounds, noise and student
        as they would be: ``found["expected"]`` has the accuracy to expect, and where a class is rare the
        score that suits it; a caution says where that is no better than always saying the commonest class. It takes
        some seconds.
    look : bool
        Whether to look at the private rows, for you alone: how many labels, ids and cells of each column can be used,
        and how the rows compare with the public ones. It is printed with the rest, and is nowhere else. It is outside
        the guarantee and must not be reported.

    Returns
    -------
    CheckResult
        It prints, and has ``to_json()``.

    Raises
    ------
    InvalidParameter, DataRefused, BudgetExhausted, LedgerMismatch
        What ``fit`` would raise before it charges anything, in the same words.

    Notes
    -----
    Privacy: spends nothing, draws nothing, writes nothing, and fits nothing on private rows. What is refused about the
    private table as a whole is for its owner alone, as everywhere. So is what is printed, which ends with notes on the
    private rows where teachers vote, and with the look that was asked for. The cautions, ``found`` and ``to_json()``
    depend on declared facts and public rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate import PrivateClassifier, PublicPool, check
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.normal(size=(3_000, 5)), rng.normal(size=(200, 5))
    >>> clf = PrivateClassifier(classes=[False, True], epsilon=1.0, delta=1e-5, n_records=3_000)
    >>> found = check(clf, X, X[:, 0] > 0, public=PublicPool(pool))
    >>> found.found["method"], found.sound
    ('direct', True)
    >>> print(found)
    Everything fits. A fit would
      method     direct, since where a record is one row it was ahead of votes on
                 most tables measured
      unit       one record, that is one row; a person who has several rows is
                 protected for each by itself
      ...
    Nothing was charged.
    """
    if isinstance(estimator, type):
        name = estimator.__name__
        raise InvalidParameter(f"check takes an estimator, got the class {name}; give it its arguments: {name}(...)")
    look = truth("look", look)
    if look and not getattr(estimator, "_can_look", hasattr(estimator, "classes")):
        raise InvalidParameter(
            f"look= counts labels, ids and cells of what a classifier learns from, and {type(estimator).__name__} is "
            "none; leave it out"
        )
    if not hasattr(estimator, "_check"):
        raise InvalidParameter(
            f"check takes an estimator of quorate, such as PrivateClassifier, got {type(estimator).__name__}"
        )
    if evaluation is not None and not hasattr(estimator, "decision_threshold"):
        raise InvalidParameter(
            f"evaluation= rehearses a classifier, and {type(estimator).__name__} is none; leave it out"
        )
    more: dict[str, Any] = {"look": True} if look else {}
    if schema is not None:
        if not hasattr(estimator, "marginals"):
            raise InvalidParameter(
                f"{type(estimator).__name__} takes no schema in place of public rows; give "
                "public=PublicPool(X_public), or learn by PrivateLogisticRegression"
            )
        more["schema"] = schema
    more |= {} if evaluation is None else {"evaluation": rows_and_labels(evaluation)}
    result: CheckResult = estimator._check(X, y, public=public, groups=groups, **more)
    return result if public is not None else result.noting(_declared_notes(estimator))


def _declared_notes(estimator: Any) -> tuple[Finding, ...]:
    """Return what should perhaps be declared where there are no public rows."""
    if not hasattr(estimator, "marginals"):  # no estimator that does without them
        return ()
    classes = tuple(getattr(estimator, "classes", None) or ()) if hasattr(estimator, "class_shares") else ()
    declares = named("class_shares", dict.fromkeys(classes[-1:], 0.05))
    shares = getattr(estimator, "class_shares", None)
    return remarks(lambda: notes_without_pool(classes, shares, declares=declares))


def check_of_teachers(
    task: Task,
    given: GivenLedger,
    *,
    evaluation: tuple[Any, Any] | None = None,
    look: bool = False,
    shares: tuple[float | None, ...] | None = None,
    chosen: ChosenMethod | None = None,
) -> CheckResult:
    """Say what a task of teachers would do and cost on a ledger, or refuse it as a fit would be refused."""
    budget = Budget(task.facts.epsilon, task.facts.delta)
    refuse_unaffordable(
        given,
        lambda _: schedule(task, secrets.token_hex(16)),
        budget=budget,
        fingerprint=task.fingerprint,
        reworded=lambda refusal, ledger: charged_before(refusal, ledger, by_fit(task)),
    )
    notes = remarks(
        lambda: () if task.draws_pool else notes_on_pool(task.inputs.public, PUBLIC_ROWS),
        lambda: note_on_mechanism(task),
    )
    result = check_of(
        VOTES,
        task,
        notes=notes,
        chosen=chosen,
        private_notes=private_notes(task),
        look=look_at_votes(task) if look else NO_LOOK,
    )
    if evaluation is None:
        return result
    return result.expecting(*expected_of(task, *evaluation, Judged(shares=shares)))


def check_of_rounds(
    task: DirectTask,
    given: GivenLedger,
    *,
    evaluation: tuple[Any, Any] | None = None,
    look: Secret[Look | None] = NO_LOOK,
    chosen: ChosenMethod | None = None,
    public: Any = None,
    feature_map: Any = "auto",
    shares: tuple[float | None, ...] | None = None,
) -> CheckResult:
    """Say what a task of the direct method would do and cost on a ledger: from public facts alone, but for a look.

    `evaluation`: labelled public rows, on which it is rehearsed in the coordinates that `public`, the pool, tells by
    `feature_map`. Raises BudgetExhausted, LedgerMismatch, PreconditionFailed if a fit would be refused.
    """
    budget = Budget(task.epsilon, task.delta)
    refuse_unaffordable(given, task.charge_on, budget=budget, fingerprint=task.fingerprint)
    number, cells = task.target_range is not None, "groups and cells" if task.grouped else "cells"
    counts = "" if number else "; check(..., look=True) counts what can be used, for you alone"
    unseen = note_on_unseen_rows(
        f"{'targets' if number else 'labels'}{', ' if task.grouped else ' and '}{cells}",
        "X and y",
        act="fit",
        compare=f"y before it{counts}",
        number=number,
    )
    counted = () if task.n_was_read or not task.grouped else (note_on_declared_units(task.n_units, task.unit),)
    notes = (unseen, *counted)
    if task.has_public_pool:
        notes += remarks(lambda: notes_on_pool(task.schema.pool, PUBLIC_ROWS))
    result = check_of(ROUNDS, task, chosen=chosen, notes=notes, look=look)
    if evaluation is None:
        return result
    if public is None or not isinstance(feature_map, str):
        raise InvalidParameter(
            "evaluation= rehearses on public rows in coordinates of a named feature map; give public=, or leave it out"
        )
    how: dict[str, Any] = {"judged": Judged(shares=shares), "feature_map": feature_map}
    return result.expecting(*expected_of_rounds(task, public, evaluation, **how))


def check_of_numbers(task: NumberTask, given: GivenLedger, *, chosen: ChosenMethod) -> CheckResult:
    """Say what votes for a number would do and cost on a ledger, from public facts alone, or refuse it as a fit."""
    budget = Budget(task.epsilon, task.delta)
    refuse_unaffordable(given, task.charge_on, budget=budget, fingerprint=task.fingerprint)
    cells = f"targets{', groups and' if task.grouped else ' and'} cells"
    notes = (
        note_on_unseen_rows(cells, "X and y", act="fit", compare="y before it", number=True, voted=True),
        *remarks(lambda: notes_on_pool(task.schema.pool, PUBLIC_ROWS)),
    )
    return check_of(NUMBER_VOTES, task, chosen=chosen, notes=notes)


def refuse_public(estimator: Any, public: Any) -> None:
    """Refuse public rows for an estimator whose ``fit`` takes none."""
    if public is not None:
        raise InvalidParameter(f"{type(estimator).__name__} takes no public rows; leave out public=")
