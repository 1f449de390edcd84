"""What a fit of a private learner would do and cost, from declared facts and the number of rows, which is public."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.accounting import ApproxDP
from quorate.accounting.figures import at_most, several
from quorate.findings import Finding
from quorate.learners.fit_charge import REPLACE_ONE_RECORD, Plan
from quorate.learners.sample import Sample
from quorate.run.check_result import CheckResult


def check_of_fit(
    learner: str, sample: Sample, plan: Plan, cautions: Iterable[Finding], epsilon: float, *, seeded: bool
) -> CheckResult:
    """Say what a fit would do and cost; whether its ledger has enough left is not looked at.

    `learner`: the name of its class. `sample`: of which the numbers of rows are told. `plan`: at `epsilon`.
    """
    n = sample.n_labelled + sample.n_unlabelled
    cautions = tuple(each for each in cautions if each.applies)
    delta = plan.event.delta if isinstance(plan.event, ApproxDP) else 0.0
    spent = f"ε = {at_most(epsilon, 6)}, δ = {at_most(delta, 6)} for {REPLACE_ONE_RECORD.any_one}"
    return CheckResult(
        found={
            "method": "private learner",
            "learner": learner,
            "n_labelled": sample.n_labelled,
            "n_unlabelled": sample.n_unlabelled,
            "n_labels_used": plan.n_labels,
            "released": plan.told,
            "epsilon": epsilon,
            "delta": delta,
            "unit": REPLACE_ONE_RECORD.unit,
            "neighbours": REPLACE_ONE_RECORD.stated,
            "seeded": seeded,
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
