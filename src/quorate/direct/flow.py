"""The main flow of the direct method: bind, charge, go the rounds, publish the model."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from quorate.accounting import Guarantee
from quorate.accounting.figures import at_least, at_most
from quorate.ambient import one_thread, unwarned
from quorate.data import take
from quorate.data.labels import STEPS
from quorate.data.table_reader import TableReader
from quorate.direct.before_pool import DrawnPool
from quorate.direct.contribution_check import check_contributions
from quorate.direct.contributions import Grid, lengths_of, logits_of, places_of, slopes, without_wild_rows
from quorate.direct.descend import descend
from quorate.direct.joint_moments import SHRINKAGES, lists_of_few
from quorate.direct.task import DirectTask
from quorate.labelling.private_sets import PLACES
from quorate.ledger import Ledger, Reservation
from quorate.release import Charge, guarantee_of
from quorate.run.cell_task import behind_features, number_model
from quorate.run.drawn_pool import N_ROWS, count_cells, release_marginals, stated_coordinates
from quorate.run.drawn_rows import draw_rows, kept_pool, parquet_of
from quorate.run.facts import Result
from quorate.run.progress import PARTS, in_parts
from quorate.run.stage_store import NoStages, StageStore, coordinates_stage, pool_stage
from quorate.run.usable_rows import UsableRows
from quorate.types import FloatArray, IntArray, Secret, Watch

_TRIED = 3  # public rows
_OFF_GRID = 1e-4  # of a probability: more than coordinates on a grid change


def model_of(task: DirectTask, weights: FloatArray, grid: Grid | None = None) -> Any:
    """Return what a task publishes with such weights, ``(n_coordinates, n_outputs)``, as a Pipeline of scikit-learn's
    own parts: encoder (where there is one), feature map, linear model. `grid`: that the weights were found on, where
    that is not the plan's: it says by which part of a range residuals were measured.

    The model is a classifier, or a ``LinearRegression`` where there is a range; predictions may lie beyond it. It takes
    features as they are and not as integers on a grid: its scores differ from those of the rounds by rounding.
    """
    plan, held = task.plan, task.target_range
    coefficients, intercepts = plan.coordinates.feature_map.weights(plan.coordinates.features(weights))
    if held is None:
        from sklearn.linear_model import LogisticRegression

        linear = LogisticRegression()
        linear.classes_ = np.asarray(list(task.classes))
        linear.coef_ = np.ascontiguousarray(coefficients.T)
        linear.intercept_ = np.ascontiguousarray(intercepts)
        linear.n_iter_ = np.array([plan.settings.rounds], dtype=np.int32)
    else:
        held = held if grid is None else held.part(grid.low, grid.high)
        linear = number_model(coefficients[:, 0], float(intercepts[0]), held)
    return behind_features(linear, plan.coordinates.feature_map, task.schema, n_columns=len(coefficients))


def try_model(task: DirectTask) -> None:
    """Ask the published model, with weights of 0, about a few public rows: what would fail after the charge fails here.
    `task`: with a pool.
    """
    rows = take(task.schema.pool, np.arange(min(_TRIED, task.schema.pool.shape[0])))
    model = model_of(task, np.zeros(task.plan.start.shape))
    ask = model.predict_proba if task.classes else model.predict
    ask(TableReader.of(task.schema.pool, task.schema.kinds)(rows))


@dataclass(frozen=True, kw_only=True)
class DirectResult(Result[DirectTask]):
    """What came of the rounds. `temperature`: that the model's scores were divided by, where a round counted how often
    it is right, and was not lost.
    """

    n_rounds: int
    temperature: float | None = None


@one_thread()  # products are small, or on threads of our own: a library's would only wait for each other
def run_rounds(
    task: DirectTask, ledger: Ledger, *, stages: StageStore | None = None, watch: Watch | None = None
) -> DirectResult:
    """Go the whole way, or on from where a killed process stopped; `stages` keeps the plan. Raises LedgerMismatch if
    the ledger belongs to other data; BudgetExhausted if the rounds do not fit what is left; nothing is drawn or charged
    then; PreconditionFailed if contributions are not what the price rests on, on this machine; or the ledger holds the
    same rounds in coordinates of other bits.
    """
    with nullcontext() if task.scheduler is None else task.scheduler.connected():  # so that it is refused early
        return _run_rounds(task, ledger, stages or NoStages(), watch)


def _run_rounds(task: DirectTask, ledger: Ledger, stages: StageStore, watch: Watch | None) -> DirectResult:
    see = watch or (lambda stage, done, total: None)
    ledger.bind(task.fingerprint)
    charge = task.charge_on(ledger)
    charge.check_affordable(ledger)  # a refusal comes before any work
    check_contributions(task.plan, task.public_rows, unit=task.unit)
    task.keep_share(stages)
    if task.drawn is not None:
        task, reservation = _with_drawn_pool(task, task.drawn, charge, ledger, stages, see)
        check_contributions(task.plan, task.public_rows, unit=task.unit)
    elif task.has_pool and charge.find(ledger) is None:
        try_model(task)
    if task.drawn is None and stages.keeps and task.has_pool and not task.stored:
        stages.save(coordinates_stage(task.plan_key), task.plan_key, task.kept_plan())
    units = task.units(folder=stages.private, watch=in_parts(watch, "coordinates"))
    see("coordinates", PARTS, PARTS)
    if task.drawn is None:
        reservation = charge.reserve(ledger)
    with unwarned():  # as an error, a warning would end what is charged by now
        descent = descend(
            task.plan,
            units,
            reservation,
            task.noise,
            finish=(lambda weights, n: task.plan.shrunk(weights, task.public_rows, n)) if task.has_pool else None,
            progress=partial(see, "rounds"),
        )
        weights, temperature = descent.result(), None
        if descent.counts is not None:
            temperature = task.plan.temperature(descent.counts, weights, task.public_rows)
            weights = weights / temperature
        model = model_of(task, weights, descent.grid)
        limit = None
        if task.held is not None:
            places = partial(held_out_places, task, weights, descent.grid)
            limit = task.held.plan.limit_of(reservation, task.noise, places)
    paid: dict[str, Any] = {"charge": charge, "reservation": reservation, "limit": limit, "temperature": temperature}
    return DirectResult(task=task, model=model, n_rounds=descent.n_rounds, **paid)


def held_out_places(task: DirectTask, weights: FloatArray, grid: Grid) -> Secret[IntArray]:
    """Count how badly published weights do on the units that are held out: ``(n_places,)`` units by their place.
    `grid`: that the weights were found on. A unit's place follows, bit for bit, from its row and public facts, as its
    part of a round does: the slope of its class is one less its probability, and a number is off by what lies between
    its target and the place in the range that its score predicts. Coordinates are on a grid, which the published model
    is not; scores are raised by more than that changes, so that a limit is rather too large than too small.
    """
    assert task.held is not None  # noqa: S101 - the caller's condition
    sets, codes = task.held.plan, task.held.codes.reveal()
    places = np.zeros(sets.n_places, dtype=np.int64)
    rows, plan = UsableRows(task.private.reveal().table, codes, None, 0), task.plan
    for at, numbers in rows.blocks(widest=plan.coordinates.n_coordinates):
        with np.errstate(all="ignore"):  # a warning about what a private row holds would tell of it
            z = plan.coordinates(numbers)
            z, _ = without_wild_rows(z, lengths_of(z))
            if task.target_range is not None:
                width = (grid.high - grid.low) / STEPS
                predicted = grid.low / STEPS + width * places_of(logits_of(z, weights, grid)[:, 0], grid)
                places += sets.places_of_errors(np.abs(codes[at] / STEPS - predicted), _OFF_GRID * width)
                continue
            slope = slopes(z, codes[at], weights, grid)
        own = slope[:, 0] if slope.shape[1] == 1 else slope[np.arange(len(at)), codes[at]]
        score = np.nan_to_num(np.abs(own), nan=1.0) + _OFF_GRID
        places += np.bincount(np.clip(np.ceil(score * PLACES) - 1, 0, PLACES - 1).astype(np.int64), minlength=PLACES)
    return Secret(places)


def _with_drawn_pool(
    task: DirectTask, drawn: DrawnPool, charge: Charge, ledger: Ledger, stages: StageStore, see: Watch
) -> tuple[DirectTask, Reservation]:
    """Charge, release the marginals and sums over pairs, and return the task with the pool that is drawn for it. Rows
    are counted before the charge. A pool in whose coordinates the rounds have begun is read, never drawn again; where
    its coordinates were kept, the task has both already. One that was kept for another charge is none: the rows are
    those of the counts that were paid for.
    """
    before, private = drawn.before, task.private.reveal()
    counted, dialect = drawn.counted.reveal(), task.schema.kinds.dialect
    if task.scheduler is None:
        counts = count_cells(before.declared, private.table.parts(), counted, dialect)
    else:
        from quorate.direct.elsewhere import counts_elsewhere  # here: few runs have workers

        counts = counts_elsewhere(task.scheduler, before.declared, private.table, counted, dialect, task.n_units)
    reservation = charge.reserve(ledger)
    tell = partial(see, "marginals")
    released = release_marginals(before.marginals, counts, reservation, task.noise, progress=tell)
    released = replace(released, tails=lists_of_few(before.declared, before.n_units))
    task = replace(task, drawn=replace(drawn, released=released))
    stated = bool(stated_coordinates(reservation))
    if not (stated and task.stored):
        pool = kept_pool(stages, task.plan_key) if stated else None
        rows = draw_rows(before.declared, released, N_ROWS, drawn.key) if pool is None else pool
        for shrinkage in SHRINKAGES:
            if not stated or task.on(rows, reservation, shrinkage).rests_on(reservation):
                break
        if pool is None:
            stages.save(pool_stage(task.plan_key), task.plan_key, parquet_of(rows))
            pool = kept_pool(stages, task.plan_key) if stages.keeps else rows  # what was read is the pool
        task = task.on(pool, reservation, shrinkage)
        if stages.keeps:
            stages.save(coordinates_stage(task.plan_key), task.plan_key, task.kept_plan())
    task.state_coordinates(reservation)
    return task, reservation


def direct_guarantee(task: DirectTask, ledger: Ledger) -> Guarantee:
    """Say what everything that was charged to the ledger guarantees together."""
    return guarantee_of(
        ledger,
        task.event,
        delta=task.delta,
        mechanism=released_in_words(task),
        seeded=task.noise.seeded,
        before="the first round",
    )


def released_in_words(task: DirectTask) -> str:
    """What is released, in words."""
    plan, before = task.plan, "" if task.drawn is None else f"{task.drawn.before.released_in_words}, and "
    counting = plan.settings.counting
    counts = f", the first {counting} of them counts of targets in {plan.settings.cells} cells" if counting else ""
    counts += ", the last of them counts of how often the model is right" if plan.settings.judges else ""
    counts += f" (one unit adds 1, with noise of {at_least(plan.noise_of_counts)})" if plan.settings.cells else ""
    limit = "" if task.held is None else f"; and {task.held.plan.released_in_words}"
    return (
        f"{before}at most {plan.settings.rounds} noisy sums of clipped gradients{counts}, discrete Gaussian noise of "
        f"{at_least(plan.noise)} on each of {plan.numbers:,} numbers, clip {at_most(plan.grid.clip)}{limit}"
    )
