"""The method of votes, whole: what a folder and an estimator do with it, and what a check and a report say of it.

What a report says is released, public, or independent of the private data.
"""

from __future__ import annotations

from dataclasses import fields, replace
from math import sqrt
from typing import Any, Final

import numpy as np

from quorate.accounting import Guarantee
from quorate.accounting.attacker import OF_BUDGETS
from quorate.accounting.figures import at_least, at_most, several
from quorate.accounting.gaussian import epsilon_of_gaussian, mu_of_gaussian
from quorate.data import public_digest
from quorate.errors import InvalidParameter
from quorate.findings import Severity
from quorate.labelling import Released, ex_post_delta, ex_post_epsilon
from quorate.labelling.release_log import ReleaseBuilder
from quorate.ledger import Ledger, Reservation
from quorate.mechanisms import Mechanism, is_own
from quorate.mechanisms.fields import falls_with
from quorate.mechanisms.schedule import form_of, open_fields, scale_of
from quorate.release import guarantee_of
from quorate.release.guarantee import spent_of
from quorate.report import AnswerCounts, Choice, ExPost, Facts, Fitted, Part, Setup, Spending
from quorate.report.spending import raises_of
from quorate.run.checks import chain
from quorate.run.facts import SHOWN_EPSILONS, RunMetadata, attack_curve, name_of, provenance_of, spending_of
from quorate.run.method import Method, unit_line
from quorate.students.declared import last_step
from quorate.voting.claims import about
from quorate.voting.flow import RunResult, answering_purposes, answers_left, run_pipeline, schedule
from quorate.voting.models import is_linear
from quorate.voting.prepare import prepare
from quorate.voting.recipe import recipe
from quorate.voting.task import Task

PURPOSES = ("label", "online answer")


def _check(task: Task) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Say what a task would do and cost, with the reason of each choice; and the first lines of a check."""
    summary = {
        "method": "votes",
        "n_teachers": task.recipe.n_teachers,
        "n_queries": task.recipe.n_queries,
        "strategy": None if task.strategy is None else type(task.strategy).__name__,
        "online_answers": task.recipe.online_answers,
        "mechanism": type(task.recipe.mechanism).__name__,
        "form": form_of(task.recipe.mechanism),
        "sigma": scale_of(task.recipe.mechanism),
        "released_by": mechanism_in_words(task.recipe.mechanism),
        "epsilon": task.facts.epsilon,
        "delta": task.facts.delta,
        "unit": task.unit,
        "neighbours": task.neighbouring.stated,
        "classes": list(task.inputs.classes),
        "columns": task.facts.width,
        "seeded": task.noise.seeded,
        "n_is_treated_as_public": task.n_was_read,
        "rows_are_treated_as_public": task.rows_were_read,
        "why": list(task.why),
        **({} if task.recipe.pool is None else {"marginals": task.recipe.pool.facts}),
        **({} if task.sets is None else {"held_out": task.sets.facts}),
    }
    return summary, _steps(task, summary)


def _steps(task: Task, summary: dict[str, Any]) -> list[tuple[str, str]]:
    answers = summary["n_queries"] + summary["online_answers"]
    model = "" if is_linear(task.teacher) else f" ({name_of(task.teacher)})"
    teachers = f"{several(summary['n_teachers'], 'teacher')}{model}"
    budget = f"ε = {at_most(summary['epsilon'], 6)}, δ = {at_most(summary['delta'], 6)}"
    kept = f"({several(summary['n_queries'], 'label')}, {summary['online_answers']:,} kept back for later)"
    return [
        *unit_line(task.neighbouring),
        *([] if task.recipe.pool is None else [task.recipe.pool.step]),
        ("train", f"{teachers}; {task.neighbouring.changing} changes exactly one teacher"),
        ("release", f"{several(answers, 'answer')} {kept}"),
        ("by", summary["released_by"]),
        *([] if task.sets is None else [task.sets.step(task.facts.unit)]),
        ("spend", f"{budget} for {task.neighbouring.any_one}"),
    ]


def guarantee(task: Task, ledger: Ledger, reservation: Reservation) -> Guarantee:
    """Say what everything that was charged to the ledger guarantees together."""
    total, pool = task.recipe.n_queries + task.recipe.online_answers, task.recipe.pool
    before = "" if pool is None else f"{pool.released_in_words}, and "
    limit = "" if task.sets is None else f"; and {task.sets.released_in_words}"
    return guarantee_of(
        ledger,
        reservation.event,
        delta=task.facts.delta,
        mechanism=f"{before}at most {several(total, 'answer')} of {mechanism_in_words(task.recipe.mechanism)}{limit}",
        seeded=task.noise.seeded,
    )


def mechanism_in_words(mechanism: Mechanism) -> str:
    """A mechanism in words: its name and its public fields, noise rounded down and what it costs rounded up."""
    values = (f"{part.name} = {_written(mechanism, part.name)}" for part in fields(mechanism))
    return f"{type(mechanism).__name__} ({', '.join(values)})"


def _written(mechanism: Mechanism, name: str) -> str:
    value = getattr(mechanism, name)
    if not isinstance(value, float):
        return f"{value}"
    if falls_with(type(mechanism), name):
        return at_least(value)
    return at_most(value) if name in ("epsilon", "delta") else f"{value:.6g}"


def facts(task: Task, result: RunResult, ledger: Ledger, metadata: RunMetadata) -> Facts:
    """Gather everything that a report says."""
    recipe_ = task.recipe
    promised = guarantee(task, ledger, result.reservation)
    said = (
        f"{'note' if caution.severity is Severity.NOTE else 'caution'}: {caution.words}"
        for caution in recipe_.cautions
        if caution.code in OF_BUDGETS
    )
    return Facts(
        guarantee=promised,
        setup=Setup(
            n_teachers=recipe_.n_teachers,
            partition=task.partition,
            unit=task.unit,
            classes=tuple(str(label) for label in task.inputs.classes),
            n_public=task.n_public,
            n_queries=recipe_.n_queries,
            teacher=name_of(task.teacher) + (", priors matched" if task.prior_matching else ""),
            student=name_of(task.student),
            mechanism=type(recipe_.mechanism).__name__,
            online_answers=recipe_.online_answers,
            n_records=None if task.n_was_read else task.n_records,
            n_records_from="public" if task.config.labels_only else "read" if task.n_was_read else "declared",
            n_rows=None if task.rows_were_read else task.n_rows,
            classes_declared=not task.config.classes_were_read,
            data_collection=metadata.collection,
            recipe=(*task.why, *said),
            strategy=None if task.strategy is None else type(task.strategy).__name__,
        ),
        spending=spending(task, result.reservation, ledger),
        answers=answers_of(result.released, task.n_classes),
        fitted=fitted(task, result),
        utility=metadata.utility,
        choices=choices(task),
        checks=about(task, ledger, while_running=result.checks),
        attacker=attack_curve(result.reservation.event, task.facts.epsilon, task.facts.delta, beside=promised),
        provenance=provenance_of(
            ledger,
            metadata,
            seeded=task.noise.seeded,
            public_digests=(("drawn pool" if task.draws_pool else "public pool", public_digest(task.inputs.public)),),
        ),
    )


def _nothing(task: Task, **charged: Any) -> RunResult:
    """Return a student that was told nothing yet: its form is not known then."""
    return RunResult(
        task=task,
        model=task.views.student.wrapped(task.student.learner, task.inputs.public),
        released=ReleaseBuilder(task.recipe.mechanism, n_queries=0, n_classes=task.n_classes).released(),
        queries=task.queries[:0],
        ensemble=None,
        **charged,
    )


def spending(task: Task, reservation: Reservation, ledger: Ledger) -> Spending:
    """What the budget was, what was charged, and for what."""
    purposes = reservation.purposes
    total = sum(purposes.get(purpose, 0) for purpose in PURPOSES)
    pool = task.recipe.pool
    parts = [] if pool is None else [pool.part(reservation)]
    for purpose in PURPOSES:
        if purpose in purposes:
            labels = _released(task, reservation, purpose)
            parts.append(
                Part(
                    purpose=purpose,
                    mechanism=type(task.recipe.mechanism).__name__,
                    sigma=scale_of(task.recipe.mechanism),
                    form=form_of(task.recipe.mechanism),
                    reserved=purposes[purpose],
                    share=purposes[purpose] / total * (1 if pool is None else 1 - pool.share),
                    asked=int(labels.asked.sum()),
                    answered=int(labels.answered.sum()),
                    declined=int(labels.declined.sum()),
                    interrupted=int(labels.interrupted.sum()),
                    never_asked=int(labels.never_asked.sum()),
                )
            )
    if task.sets is not None:
        parts.append(task.sets.part(reservation))
    return spending_of(
        ledger,
        reservation.event,
        task.facts.delta,
        tuple(parts),
        answers_left=answers_left(task, reservation) if answering_purposes(task, reservation) else None,
        ex_post=ex_post(task, ledger, reservation),
    )


def _released(task: Task, reservation: Reservation, purpose: str) -> Released:
    """Everything that was drawn for one purpose, each query in its state."""
    blocks = reservation.blocks(purpose)
    drawn = sum(block.count for block in blocks)
    builder = ReleaseBuilder(task.recipe.mechanism, n_queries=drawn, n_classes=task.n_classes)
    for block in blocks:
        answers = block.answers["answers"] if isinstance(block.answers, dict) else block.answers
        builder.put(block.first, block.count, answers)
    return builder.released()


def answers_of(released: Released, n_classes: int) -> AnswerCounts:
    """Count what became of the queries."""
    return AnswerCounts(
        asked=int(released.asked.sum()),
        per_class=tuple(np.bincount(released.codes[released.answered], minlength=n_classes)),
        declined=int(released.declined.sum()),
        interrupted=int(released.interrupted.sum()),
        never_asked=int(released.never_asked.sum()),
    )


def fitted(task: Task, result: RunResult) -> Fitted:
    """Say what came of the student: its steps without the public encoder, whether it is a constant, and its sets."""
    model = task.views.student.unwrapped(result.model)
    sets: dict[str, Any] = {} if task.sets is None else task.sets.as_fitted(result.limit)
    return Fitted(name=name_of(model), constant=is_constant(model, task.student.learner), **sets)


def is_constant(fitted: Any, learner: Any) -> bool:
    """Tell whether a fitted model gives every row one class, where another was asked for."""
    from sklearn.dummy import DummyClassifier

    constant: bool = isinstance(last_step(fitted)[1], DummyClassifier)
    return constant and not isinstance(last_step(learner)[1], DummyClassifier)


def with_later_raises(former: Facts, ledger: Ledger) -> Facts:
    """Return the facts of a run with the raises of its ledger's budget since then, which every later report shows."""
    return replace(former, spending=replace(former.spending, raises=raises_of(ledger)))


def with_later_answers(former: Facts, task: Task, ledger: Ledger, reservation: Reservation) -> Facts:
    """Return the facts of a run as they are once more answers were given: what was spent and left, and the ledger."""
    checked = chain(ledger)
    return replace(
        former,
        guarantee=guarantee(task, ledger, reservation),
        spending=spending(task, reservation, ledger),
        checks=tuple(checked if check.code == checked.code else check for check in former.checks),
        provenance=replace(former.provenance, ledger_head=ledger.head.hash, ledger_entries=ledger.head.sequence),
    )


def ex_post(task: Task, ledger: Ledger, reservation: Reservation) -> ExPost | None:
    """What can be said after a strategy has stopped early, beside the guarantee; None where there is nothing."""
    if task.strategy is None or task.draws_pool or len(ledger.reservations()) != 1:
        return None
    cap = task.recipe.n_queries + task.recipe.online_answers
    drawn = cap - sum(reservation.remaining(purpose) for purpose in answering_purposes(task, reservation))
    spent = ex_post_epsilon(task.recipe.mechanism, cap=cap, drawn=drawn, delta=task.facts.delta)
    if spent is None or not spent < spent_of(ledger)[0]:
        return None
    pair = ex_post_delta(task.recipe.mechanism, cap=cap, delta=task.facts.delta)
    return ExPost(
        epsilon=spent,
        delta=task.facts.delta,
        meaning=f"{drawn:,} of at most {cap:,} answers were drawn, and the answers themselves decided how many: this "
        "is what those cost, given where the run stopped. It could not be promised beforehand, and it grows if the "
        f"answers that are left are asked for. It holds at δ = {at_most(task.facts.delta)} over all runs for which "
        "such a figure is reported; together with the guarantee, for the runs for which none is, it holds at "
        f"δ = {at_most(pair)}.",
    )


def _for_answers(task: Task, epsilon: float) -> float:
    """Return ε less what noisy counts take of it, as Gaussian noise has it: close enough to compare budgets by."""
    pool, delta = task.recipe.pool, task.facts.delta
    return (
        epsilon if pool is None else epsilon_of_gaussian(delta, mu_of_gaussian(epsilon, delta) * sqrt(1 - pool.share))
    )


def choices(task: Task) -> tuple[Choice, ...]:
    """The same task at other budgets: what the recipe would make of it."""
    rows = []
    for epsilon in sorted({*SHOWN_EPSILONS, task.facts.epsilon}):
        if epsilon == task.facts.epsilon:
            alternative = task.recipe
        else:
            try:
                alternative = recipe(
                    replace(task.facts, epsilon=_for_answers(task, epsilon)),
                    n_teachers=task.recipe.n_teachers if task.facts.n_records is None else None,
                    n_queries=task.recipe.n_queries,
                    mechanism=type(task.recipe.mechanism),
                    fields=open_fields(task.recipe.mechanism),
                )
            except InvalidParameter:  # a mechanism of a user's own may fit some budgets and not others
                if not is_own(task.recipe.mechanism):
                    raise
                continue
        rows.append(
            Choice(
                epsilon=epsilon,
                sigma=scale_of(alternative.mechanism),
                n_answers=alternative.n_queries + alternative.online_answers,
                chosen=epsilon == task.facts.epsilon,
            )
        )
    return tuple(rows)


#: Teachers vote, a mechanism answers, a student is published.
VOTES: Final = Method(
    prepare=prepare,
    check=_check,
    cautions=lambda task, **_: task.recipe.cautions,
    charge=lambda task, _: schedule(task, task.content_key),
    nothing=_nothing,
    form_is_known=False,
    go=run_pipeline,
    promised=guarantee,
    facts=facts,
)
