"""The direct method, whole: what a folder and an estimator do with it, and what a check says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quorate.accounting import Event, epsilon, epsilon_of_zcdp, zcdp
from quorate.accounting.attacker import budget_cautions
from quorate.accounting.figures import at_most
from quorate.accounting.neighbouring import ONE_RECORD, Neighbouring
from quorate.data.feature_maps import FittedTransformer
from quorate.direct.facts import direct_draft, direct_facts
from quorate.direct.flow import DirectResult, direct_guarantee, run_rounds
from quorate.direct.prepare import prepare_direct
from quorate.direct.task import DirectTask
from quorate.findings import Finding
from quorate.ledger import Ledger
from quorate.release import Charge
from quorate.run.cautions import rounds_caution
from quorate.run.check_result import unit_line
from quorate.run.pool_cautions import (
    begun_without_marginals_caution,
    coarse_marginals_caution,
    few_rows_caution,
    pool_cautions,
    unit_caution,
)
from quorate.run.stage_store import StageStore
from quorate.types import Watch


def _foreseen(task: DirectTask) -> dict[str, Any]:
    """Return in plain values what a task would do and cost, with the reason of each choice."""
    plan = task.plan
    settings, coordinates = plan.settings, plan.coordinates
    return {
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


def _steps(task: DirectTask, forecast: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the first lines of a check: a word and a line each."""
    kind = "public coordinates" if task.has_pool else "features"
    budget = f"ε = {at_most(forecast['price'], 6)}, δ = {at_most(forecast['delta'], 6)}"
    other = "".join(
        f"; ε = {at_most(also['epsilon'], 3)} for {Neighbouring.read(also['neighbours'], task.unit).changing}"
        for also in forecast["also"]
    )
    about = "" if task.drawn is None else "about "
    return [
        *unit_line(task.neighbouring),
        *([] if task.drawn is None else [task.drawn.before.step]),
        (
            "learn",
            f"a linear model in {about}{forecast['n_coordinates']:,} {kind}, in {forecast['rounds']} noisy rounds",
        ),
        ("release", f"{forecast['rounds']} × {forecast['numbers']:,} noisy sums; every prediction is free"),
        *([] if task.held is None else [task.held.plan.step(task.unit)]),
        ("spend", f"{budget} for {task.neighbouring.changing}{other}"),
        ("compare", f"{task.neighbouring.changing}, since {task.relation.why}"),
    ]


def cautions_of(
    task: DirectTask, *, pool_name: str = "the public rows", left_out: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return what the owner should hear before the budget is spent, from public facts alone.

    `left_out`: columns that are no features, and in no public table.
    """
    cautions = budget_cautions(task.n_units, task.epsilon, task.delta, task.unit)
    if task.unit == ONE_RECORD:
        cautions += (unit_caution(task.schema.pool, left_out=left_out),)
    if task.drawn is not None:
        before = task.drawn.before
        cautions += (coarse_marginals_caution(before.resolution, len(before.marginals.partitions)),)
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


class Rounds:
    """Noisy gradient rounds on the private rows themselves: a :class:`~quorate.run.method.Method`."""

    prepare = staticmethod(prepare_direct)
    draft = staticmethod(direct_draft)
    facts = staticmethod(direct_facts)
    promised = staticmethod(direct_guarantee)

    def check(self, task: DirectTask) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Say what a task would do and cost."""
        forecast = _foreseen(task)
        return forecast, _steps(task, forecast)

    def charge(self, task: DirectTask, ledger: Ledger, key: str | None = None) -> Charge:
        """Return what a task asks of its ledger, or has asked; its key is that of the work alone."""
        return task.charge_on(ledger)

    def go(
        self,
        task: DirectTask,
        ledger: Ledger,
        *,
        stages: StageStore | None = None,
        key: str | None = None,
        watch: Watch | None = None,
    ) -> tuple[DirectTask, DirectResult]:
        """Go the rounds."""
        result = run_rounds(task, ledger, stages=stages, watch=watch)
        return result.task, result


ROUNDS: Final = Rounds()
