"""From a result of the direct method to what is said about it: released, public, or independent of private data."""

from __future__ import annotations

from contextvars import copy_context
from math import inf, sqrt
from typing import Any

import numpy as np

from quorate.direct.checks import direct_checks
from quorate.direct.config import rho_of
from quorate.direct.defaults import HALF
from quorate.direct.flow import DirectResult, direct_guarantee, model_of
from quorate.direct.plan import noise_for
from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter
from quorate.ledger import Budget, Ledger, Reservation
from quorate.release.charge import GRADIENT_ROUND
from quorate.report import (
    AnswerCounts,
    Choice,
    Facts,
    Fitted,
    Part,
    Rounds,
    Setup,
    Spending,
)
from quorate.run.facts import SHOWN_EPSILONS, RunMetadata, attack_curve, name_of, provenance_of, spending_of

MECHANISM = "noisy gradient rounds"


def direct_facts(task: DirectTask, result: DirectResult, ledger: Ledger, metadata: RunMetadata) -> Facts:
    """Gather everything that a report says."""
    model = name_of(result.model)
    promised = direct_guarantee(task, ledger)
    return Facts(
        guarantee=promised,
        setup=Setup(
            n_teachers=0,
            partition="none",
            unit=task.unit,
            classes=tuple(str(label) for label in task.classes),
            n_public=task.n_public,
            n_queries=0,
            teacher="none",
            student=model,
            mechanism=MECHANISM,
            n_records=None if task.n_was_read else task.n_units,
            n_records_from="read" if task.n_was_read else "declared",
            data_collection=metadata.collection,
            target_range=None if task.target_range is None else task.target_range.ends,
            recipe=(*task.why, f"ε is for {task.neighbouring.changing}, since {task.relation.why}"),
        ),
        spending=_spending(task, result.reservation, ledger),
        answers=AnswerCounts(asked=0, per_class=(0,) * task.n_classes),
        fitted=Fitted(
            name=model,
            temperature=result.temperature,
            paid_temperature=result.temperature,
            **({} if task.held is None else task.held.plan.as_fitted(result.limit)),
        ),
        rounds=rounds_of(task, result.reservation),
        utility=metadata.utility,
        choices=_choices(task),
        attacker=attack_curve(task.event, task.epsilon, task.delta, beside=promised),
        checks=direct_checks(task, ledger, evaluated=metadata.utility.is_scored, readers=metadata.readers),
        provenance=provenance_of(
            ledger,
            metadata,
            seeded=task.noise.seeded,
            public_digests=(("drawn pool" if task.drawn else "public pool", task.public_digest),)
            if task.has_pool
            else (),
        ),
    )


def direct_draft(task: DirectTask, budget: Budget, metadata: RunMetadata) -> tuple[Facts, Any]:
    """Gather all that is known of a report before the charge, as :func:`~quorate.voting.facts.draft` does.

    Returns: from a ledger in memory. `model`: the published model with weights of 0.
    """

    def drafted() -> tuple[Facts, Any]:
        with Ledger(budget=budget) as ledger:
            charge = task.charge_on(ledger)
            model = model_of(task, np.zeros(task.plan.start.shape))
            result = DirectResult(task=task, model=model, n_rounds=0, charge=charge, reservation=charge.reserve(ledger))
            return direct_facts(task, result, ledger, metadata), model

    return copy_context().run(drafted)


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


def _spending(task: DirectTask, reservation: Reservation, ledger: Ledger) -> Spending:
    rounds = rounds_of(task, reservation)
    part = Part(
        purpose=GRADIENT_ROUND,
        mechanism="discrete Gaussian noise on sums",
        reserved=rounds.rounds,
        share=1.0 if task.drawn is None else 1 - task.drawn.before.share,
        asked=rounds.stored + rounds.interrupted,
        answered=rounds.stored,
        interrupted=rounds.interrupted,
    )
    counts = () if task.drawn is None else (task.drawn.before.part(reservation),)
    limit = () if task.held is None else (task.held.plan.part(reservation),)
    return spending_of(ledger, task.event, task.delta, (*counts, part, *limit))


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
