"""From a result of the direct method to what is said about it: released, public, or independent of private data."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from quorate.data.feature_maps import FittedTransformer
from quorate.direct.before_pool import DrawnPool
from quorate.direct.config import rho_of
from quorate.direct.contribution_check import check_contributions
from quorate.direct.defaults import HALF
from quorate.direct.flow import DirectResult, direct_guarantee, model_of
from quorate.direct.plan import noise_for
from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter
from quorate.findings import Finding, Outcome
from quorate.ledger import Budget, Ledger, Reservation
from quorate.release.charge import GRADIENT_ROUND
from quorate.report import AnswerCounts, Choice, Facts, Rounds
from quorate.report.facts import name_of as function_name
from quorate.run.checks import checks_of_cells, facts_of_cells
from quorate.run.facts import SHOWN_EPSILONS, RunMetadata, before_charge, part_of

MECHANISM = "noisy gradient rounds"


def direct_facts(task: DirectTask, result: DirectResult, ledger: Ledger, metadata: RunMetadata) -> Facts:
    """Gather everything that a report says."""
    drawn = task.drawn
    share = 1.0 if drawn is None else 1 - drawn.before.share
    how = {"mechanism": "discrete Gaussian noise on sums", "reserved": task.plan.settings.rounds, "share": share}
    rounds = part_of(result.reservation, GRADIENT_ROUND, **how)
    learning, preprocessing = _contributions(task), _preprocessing(task)
    of_pool = {"drawn": () if drawn is None else (_drawn_pool(drawn),)}
    return facts_of_cells(
        task,
        result,
        ledger,
        metadata,
        promised=direct_guarantee(task, ledger),
        n_units=task.n_units,
        setup={
            "n_teachers": 0,
            "partition": "none",
            "n_public": task.n_public,
            "n_queries": 0,
            "teacher": "none",
            "mechanism": MECHANISM,
            "recipe": (*task.why, f"ε is for {task.neighbouring.changing}, since {task.relation.why}"),
        },
        parts=[rounds] if drawn is None else [drawn.before.part(result.reservation), rounds],
        pool=("drawn pool" if drawn else "public pool") if task.has_pool else None,
        fitted={"temperature": result.temperature, "paid_temperature": result.temperature},
        answers=AnswerCounts(asked=0, per_class=(0,) * task.n_classes),
        rounds=rounds_of(task, result.reservation),
        choices=_choices(task),
        checks=checks_of_cells(task, ledger, metadata, learning=learning, preprocessing=preprocessing, **of_pool),
    )


def direct_draft(task: DirectTask, budget: Budget, metadata: RunMetadata) -> tuple[Facts, Any]:
    """Gather all that is known of a report before the charge; and the published model, with weights of 0."""

    def gathered(ledger: Ledger) -> tuple[Facts, Any]:
        charge, model = task.charge_on(ledger), model_of(task, np.zeros(task.plan.start.shape))
        result = DirectResult(task=task, model=model, n_rounds=0, charge=charge, reservation=charge.reserve(ledger))
        return direct_facts(task, result, ledger, metadata), model

    return before_charge(budget, gathered)


def rounds_of(task: DirectTask, reservation: Reservation) -> Rounds:
    """Return what the rounds were fixed by, and what became of them."""
    plan, settings = task.plan, task.plan.settings
    blocks = reservation.blocks(GRADIENT_ROUND)
    stored = sum(block.answers is not None for block in blocks)
    of_counts = blocks[settings.rounds - 1 :] if settings.judges else blocks[: settings.counting]
    counts = sum(block.answers is not None for block in of_counts)
    return Rounds(
        feature_map=plan.coordinates.feature_map.words,
        n_coordinates=plan.coordinates.n_coordinates,
        effective_dimension=plan.dimension,
        ridge=settings.ridge,
        clip=plan.grid.clip,
        noise=plan.noise,
        rounds=settings.rounds,
        stored=stored,
        interrupted=len(blocks) - stored,
        rate=settings.rate,
        momentum=settings.momentum,
        n_units=plan.n_units,
        residual_ridge=settings.residual_ridge,
        averaged=None if settings.averaged == HALF else settings.averaged,
        shrunk=None if settings.length is None else True,
        counts=counts or None,
        counts_noise=plan.noise_of_counts if counts else None,
    )


def _choices(task: DirectTask) -> tuple[Choice, ...]:
    """The same coordinates, clip and number of rounds at other budgets: the noise that each would take."""
    plan, rows = task.plan, []
    for epsilon in sorted({*SHOWN_EPSILONS, task.epsilon}):
        chosen = epsilon == task.epsilon
        noise = plan.noise if chosen else _noise_at(task, epsilon)
        if noise < inf:
            rows.append(Choice(epsilon=epsilon, sigma=noise, n_answers=None, chosen=chosen))
    return tuple(rows)


def _noise_at(task: DirectTask, epsilon: float) -> float:
    plan = task.plan
    rounds, rho = plan.settings.rounds, rho_of(epsilon, task.delta, task.composition)
    try:
        k, sigma = noise_for(
            rounds, plan.numbers * rounds, epsilon, task.delta, rho=rho, neighbours=task.relation.noise
        )
    except InvalidParameter:
        return inf
    beside = 1.0 if task.drawn is None else sqrt(1 - task.drawn.before.share)  # of μ, which marginals leave
    return sigma * plan.grid.clip * 2.0**-k / beside


def _contributions(task: DirectTask) -> Finding:
    looked = "Public" if task.has_public_pool else "Drawn" if task.has_pool else "Made-up"
    return Finding(
        code="contributions",
        words=f"Does each {task.unit} add the same bounded vector, whatever the other rows are?",
        outcome=Outcome.PASSED,
        evidence=f"{looked} rows with made-up labels were added alone and together before the first round: the "
        "same integers, none longer than the clip. So adding or removing one moves a sum by at most the clip, and "
        "replacing one by at most twice that.",
        ran=function_name(check_contributions),
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
