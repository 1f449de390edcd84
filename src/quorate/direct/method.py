"""The direct method, whole: what a folder and an estimator do with it, and what a check and a report say of it.

What a report says is released, public, or independent of private data.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, Final

import numpy as np

from quorate.accounting import Event, epsilon, epsilon_of_zcdp, zcdp
from quorate.accounting.attacker import budget_cautions
from quorate.accounting.figures import at_most
from quorate.accounting.neighbouring import ONE_RECORD, Neighbouring
from quorate.data.feature_maps import FittedTransformer
from quorate.direct.before_pool import DrawnPool
from quorate.direct.config import rho_of
from quorate.direct.contribution_check import check_contributions
from quorate.direct.defaults import HALF
from quorate.direct.flow import DirectResult, direct_guarantee, model_of, run_rounds
from quorate.direct.plan import noise_for
from quorate.direct.prepare import prepare_direct
from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter
from quorate.findings import Finding, Outcome, not_covered
from quorate.ledger import Ledger, Reservation
from quorate.release.charge import GRADIENT_ROUND
from quorate.report import AnswerCounts, Choice, Facts, Rounds
from quorate.report.facts import name_of as function_name
from quorate.report.spending import part_of
from quorate.run.cautions import rounds_caution
from quorate.run.checks import checks_of_cells, facts_of_cells
from quorate.run.facts import SHOWN_EPSILONS, RunMetadata
from quorate.run.method import Method, unit_line
from quorate.run.pool_cautions import (
    begun_without_marginals_caution,
    bounds_as_texts_caution,
    coarse_marginals_caution,
    few_rows_caution,
    pool_cautions,
    unit_caution,
)


def _check(task: DirectTask) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Say what a task would do and cost, with the reason of each choice; and the first lines of a check."""
    plan = task.plan
    settings, coordinates = plan.settings, plan.coordinates
    forecast = {
        "method": "direct",
        "feature_map": coordinates.feature_map.words,
        "n_public": task.n_public,
        "n_coordinates": coordinates.n_coordinates,
        "effective_dimension": plan.dimension,
        "ridge": settings.ridge,
        "residual_ridge": settings.residual_ridge,
        "rounds": settings.rounds,
        "clip": plan.grid.clip,
        "rate": settings.rate,
        "momentum": settings.momentum,
        "noise": plan.noise,
        "numbers": plan.most_numbers or plan.numbers,
        "n_units": task.n_units,
        "n_is_treated_as_public": task.n_was_read,
        "epsilon": task.epsilon,
        "delta": task.delta,
        "price": price_of(task),
        "unit": task.unit,
        "neighbours": task.neighbouring.stated,
        "why_neighbours": task.relation.why,
        "also": [
            {"neighbours": relation.stated, "epsilon": price_of(task, event), "delta": task.delta}
            for relation, event in ([] if task.also is None else [task.also])
        ],
        **({"classes": list(task.classes)} if task.classes else {}),
        **({} if task.target_range is None else {"target_range": list(task.target_range.ends)}),
        "seeded": task.noise.seeded,
        "why": list(task.why),
        **({} if task.drawn is None else {"marginals": task.drawn.before.facts}),
        **({} if task.held is None else {"held_out": task.held.plan.facts}),
    }
    return forecast, _steps(task, forecast)


def _steps(task: DirectTask, forecast: dict[str, Any]) -> list[tuple[str, str]]:
    kind = "public coordinates" if task.has_pool else "features"
    budget = f"ε = {at_most(forecast['price'], 6)}, δ = {at_most(forecast['delta'], 6)}"
    other = "".join(
        f"; ε = {at_most(also['epsilon'], 3)} for {Neighbouring.read(also['neighbours'], task.unit).changing}"
        for also in forecast["also"]
    )
    about, numbers, paid = "", f"{forecast['numbers']:,}", ""
    if task.drawn is not None:
        about, numbers = "about ", f"at most {numbers}"
        paid = ": the most that there can be, which is paid for; how many there are follows from the drawn rows"
    return [
        *unit_line(task.neighbouring),
        *([] if task.drawn is None else [task.drawn.before.step]),
        (
            "learn",
            f"a linear model in {about}{forecast['n_coordinates']:,} {kind}, in {forecast['rounds']} noisy rounds",
        ),
        ("release", f"{forecast['rounds']} × {numbers} noisy sums{paid}; every prediction is free"),
        *([] if task.held is None else [task.held.plan.step(task.unit)]),
        ("spend", f"{budget} for {task.neighbouring.changing}{other}"),
        ("compare", f"{task.neighbouring.changing}, since {task.relation.why}"),
    ]


def _cautions(
    task: DirectTask, *, pool_name: str = "the public rows", left_out: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return what the owner should hear before the budget is spent, from public facts alone."""
    cautions = budget_cautions(task.n_units, task.epsilon, task.delta, task.unit)
    if task.unit == ONE_RECORD:
        cautions += (unit_caution(task.schema.pool, left_out=left_out),)
    if task.drawn is not None:
        before = task.drawn.before
        cautions += (coarse_marginals_caution(before.resolution, len(before.marginals.partitions)),)
    if not task.has_public_pool:
        cautions += (bounds_as_texts_caution(task.schema.declared),)
    cautions += (rounds_caution(task.plan.largest_share, task.plan.n_units, task.unit),)
    cautions += (begun_without_marginals_caution(goes_on=task.left_marginals_open),)
    if task.has_public_pool and not isinstance(task.schema.encoder, FittedTransformer):
        cautions += pool_cautions(task.schema.pool, pool_name, kinds=task.schema.kinds)
    if task.has_public_pool:
        learns = "they alone say how columns are scaled and which values count"
        cautions += (few_rows_caution(task.n_public, len(task.classes), learns=learns),)
    return tuple(caution for caution in cautions if caution.applies)


def price_of(task: DirectTask, event: Event | None = None) -> float:
    """Return the ε of all rounds at the task's δ, as its ledger counts it; of those for another relation, if given."""
    event = task.event if event is None else event
    return epsilon(event, task.delta) if task.composition == "sum" else epsilon_of_zcdp(zcdp(event), task.delta)


MECHANISM = "noisy gradient rounds"


def _facts(task: DirectTask, result: DirectResult, ledger: Ledger, metadata: RunMetadata) -> Facts:
    """Gather everything that a report says."""
    drawn = task.drawn
    share = 1.0 if drawn is None else drawn.before.of_rounds
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
        parts=[rounds] if drawn is None else [*drawn.before.parts(result.reservation), rounds],
        pool=("drawn pool" if drawn else "public pool") if task.has_pool else None,
        fitted={"temperature": result.temperature, "paid_temperature": result.temperature},
        answers=AnswerCounts(asked=0, per_class=(0,) * task.n_classes),
        rounds=_rounds(task, result.reservation),
        choices=_choices(task),
        checks=checks_of_cells(task, ledger, metadata, learning=learning, preprocessing=preprocessing, **of_pool),
    )


def _nothing(task: DirectTask, **charged: Any) -> DirectResult:
    """Return the published model before the first round, with weights of 0."""
    return DirectResult(task=task, model=model_of(task, np.zeros(task.plan.start.shape)), n_rounds=0, **charged)


def _rounds(task: DirectTask, reservation: Reservation) -> Rounds:
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
    for value in sorted({*SHOWN_EPSILONS, task.epsilon}):
        chosen = value == task.epsilon
        noise = plan.noise if chosen else _noise_at(task, value)
        if noise < inf:
            rows.append(Choice(epsilon=value, sigma=noise, n_answers=None, chosen=chosen))
    return tuple(rows)


def _noise_at(task: DirectTask, value: float) -> float:
    plan = task.plan
    rounds, rho = plan.settings.rounds, rho_of(value, task.delta, task.composition)
    try:
        k, sigma = noise_for(rounds, plan.numbers * rounds, value, task.delta, rho=rho, neighbours=task.relation.noise)
    except InvalidParameter:
        return inf
    beside = 1.0 if task.drawn is None else sqrt(task.drawn.before.of_rounds)  # of μ, which counts leave
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


_OF_PAIRS: Final = (
    " Sums over pairs of columns were charged with the counts, and coordinates follow from stored ones alone. Sums "
    "that are lost when a process ends are not drawn again; coordinates follow from the drawn rows then."
)


def _drawn_pool(drawn: DrawnPool) -> Finding:
    released = drawn.released
    lost = released is not None and bool(released.lost)
    return Finding(
        code="drawn pool",
        words="Were the rows that stand for public ones made from released counts alone?",
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="One row of each unit was counted, in the cells of a schema that its owner declared; the counts got "
        "noise, were charged with the rounds, and each level was stored before it opened the next. Rows were drawn "
        "from stored counts, each column by itself. They are not people, and were not compared with the private ones: "
        "rows of few categories agree by chance, and the answer would tell of private rows."
        + ("" if drawn.before.pairs is None else _OF_PAIRS)
        + (" What was lost when a process ended is left out, and was not drawn again." if lost else ""),
    )


def _preprocessing(task: DirectTask) -> Finding:
    question = "Did quorate fit nothing on the pooled private rows?"
    if isinstance(task.schema.encoder, FittedTransformer):
        return not_covered(
            "preprocessing",
            question,
            f"{task.schema.encoder.name} came fitted. That it was fitted on public rows is the owner's "
            "statement; it is published with the model. Quorate itself fitted nothing on private rows.",
            "Fit it on the public pool.",
        )
    released = "."
    if task.drawn is not None:
        sums = "" if task.drawn.before.pairs is None else " and sums"
        released = f", and of noisy counts{sums} that were charged."
    return Finding(
        code="preprocessing",
        words=question,
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="Encoder, feature map, coordinates, clip and number of rounds are functions of public facts"
        + released,
    )


#: Noisy gradient rounds on the private rows themselves.
ROUNDS: Final = Method(
    prepare=prepare_direct,
    check=_check,
    cautions=_cautions,
    charge=DirectTask.charge_on,
    nothing=_nothing,
    go=run_rounds,
    promised=direct_guarantee,
    facts=_facts,
)
