"""What is asked about every direct run, and how it is answered: by a function that looks, or by saying none did."""

from __future__ import annotations

from quorate.data.feature_maps import FittedTransformer
from quorate.direct.before_pool import DrawnPool
from quorate.direct.contribution_check import check_contributions
from quorate.direct.task import DirectTask
from quorate.findings import Finding, Outcome
from quorate.ledger import Ledger
from quorate.report.facts import name_of
from quorate.run.checks import (
    audit_not_run,
    chain,
    classes,
    evaluation_rows,
    exact_noise,
    fitted_before,
    public_pool,
    seed,
    target_range,
    unusable_rows,
)


def direct_checks(
    task: DirectTask, ledger: Ledger, *, evaluated: bool, readers: tuple[tuple[str, str], ...] = ()
) -> tuple[Finding, ...]:
    """Answer every question about a direct run; `readers` are what of other packages reads its files."""
    return (
        _contributions(task),
        unusable_rows(readers),
        classes(were_read=False, others_are_left_out=True) if task.classes else target_range(),
        *((public_pool(),) if task.has_public_pool else ()),
        *((_drawn_pool(task.drawn),) if task.drawn is not None else ()),
        *((evaluation_rows(),) if evaluated else ()),
        _preprocessing(task),
        fitted_before(),
        exact_noise(),
        seed(task.noise),
        chain(ledger),
        audit_not_run(),
    )


def _contributions(task: DirectTask) -> Finding:
    looked = "Public" if task.has_public_pool else "Drawn" if task.has_pool else "Made-up"
    return Finding(
        code="contributions",
        words=f"Does each {task.unit} add the same bounded vector, whatever the other rows are?",
        outcome=Outcome.PASSED,
        evidence=f"{looked} rows with made-up labels were added alone and together before the first round: the "
        "same integers, none longer than the clip. So adding or removing one moves a sum by at most the clip, and "
        "replacing one by at most twice that.",
        ran=name_of(check_contributions),
    )


def _drawn_pool(drawn: DrawnPool) -> Finding:
    released = drawn.released
    lost = released is not None and released.lost is not None
    return Finding(
        code="drawn pool",
        words="Were the rows that stand for public ones made from released counts alone?",
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="One row of each unit was counted, in the cells of a schema that its owner declared; the counts got "
        "noise, were charged with the rounds, and each level was stored before it opened the next. Rows were drawn "
        "from stored counts, each column by itself. They are not people, and were not compared with the private ones: "
        "rows of few categories agree by chance, and the answer would tell of private rows."
        + (" One level was lost when a process ended; it counts as zeros, and was not drawn again." if lost else ""),
    )


def _preprocessing(task: DirectTask) -> Finding:
    question = "Did quorate fit nothing on the pooled private rows?"
    if isinstance(task.schema.encoder, FittedTransformer):
        return Finding(
            code="preprocessing",
            words=question,
            outcome=Outcome.NOT_COVERED,
            evidence=f"{task.schema.encoder.name} came fitted. That it was fitted on public rows is the owner's "
            "statement; it is published with the model. Quorate itself fitted nothing on private rows.",
            remedy="Fit it on the public pool.",
        )
    return Finding(
        code="preprocessing",
        words=question,
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="Encoder, feature map, coordinates, clip and number of rounds are functions of public facts"
        + ("." if task.drawn is None else ", and of noisy counts that were charged."),
    )
