"""What a fit of a private learner would do and cost, from declared facts and the number of rows, which is public."""

from __future__ import annotations

from typing import Any

from quorate.accounting import ApproxDP
from quorate.accounting.figures import at_most, several
from quorate.errors import InvalidParameter
from quorate.learners import PrivateLearner
from quorate.learners.fit_charge import REPLACE_ONE_RECORD
from quorate.learners.sample import refuse_groups
from quorate.pipeline.check_result import CheckResult


def check_of_learner(learner: PrivateLearner, X: Any, y: Any, *, groups: Any | None) -> CheckResult:
    """Say what a fit of a private learner would do and cost; whether its ledger has enough left is not looked at.

    Raises InvalidParameter, DataRefused as ``fit`` would, before it charges anything.
    """
    if callable(y):
        raise InvalidParameter(
            f"check takes labels, and {type(learner).__name__} is given a function that asks for them"
        )
    refuse_groups(type(learner).__name__, groups)
    epsilon, delta = learner._target()
    sample = learner._checked(X, y)
    n = sample.n_labelled + sample.n_unlabelled
    plan, heard = learner._planned(sample.n_labelled, sample.n_unlabelled, epsilon, delta)
    cautions = tuple(each for each in heard if each.applies)
    delta = plan.event.delta if isinstance(plan.event, ApproxDP) else 0.0
    spent = f"ε = {at_most(epsilon, 6)}, δ = {at_most(delta, 6)} for {REPLACE_ONE_RECORD.any_one}"
    return CheckResult(
        found={
            "method": "private learner",
            "learner": type(learner).__name__,
            "n_labelled": sample.n_labelled,
            "n_unlabelled": sample.n_unlabelled,
            "n_labels_used": plan.n_labels,
            "released": plan.told,
            "epsilon": epsilon,
            "delta": delta,
            "unit": REPLACE_ONE_RECORD.unit,
            "neighbours": REPLACE_ONE_RECORD.stated,
            "seeded": learner.unsafe_noise_seed is not None,
            "notes": [],
            "cautions": [each.tree() for each in cautions],
        },
        steps=(
            (
                "learn",
                f"from {several(n, 'row')}, {sample.n_labelled:,} of them labelled; {plan.n_labels:,} labels are used",
            ),
            ("release", plan.told),
            ("spend", spent),
        ),
        cautions=cautions,
    )
