"""A paid private estimate for a plan: how often teachers of the run's shard size are wrong, from held-out private rows.

Every other figure of a plan is free, since it comes from public rows or is typed in. Where there are no labelled public
rows, this one tells what the private rows themselves teach: the mean error of the run's teachers on held-out parts of
their own shards (BTT18, Remark 1), released once, as an entry of its own in the run's ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.accounting.figures import at_least, at_most
from quorate.accounting.guarantee import SEEDED
from quorate.arguments import real
from quorate.data.stream import StreamedFrame
from quorate.errors import InvalidParameter, PreconditionFailed, QuorateError, naming
from quorate.folder.batch import load_run
from quorate.folder.loaded import LoadedRun
from quorate.folder.settings import Settings, keys_of, read_settings, settings_of
from quorate.ledger import Reservation
from quorate.mechanisms import NoisySum
from quorate.planning.rehearsal.made_up import LearningCurve
from quorate.release import Charge
from quorate.release.charge import TUNING
from quorate.run.stage_store import stage_key
from quorate.voting.kept_votes import see_that_it_answers
from quorate.voting.scope import scope_of

if TYPE_CHECKING:
    from quorate.labelling import ErrorEstimate

HELD_OUT = 0.3  # of each shard
_OF_QUERIES = ("n_queries", "strategy")  # what teachers are asked says nothing of how often they are wrong
CHARGED = "the estimate was charged, once; the same command goes on with it"
FAILURE = 0.1  # how often the range of the estimate may be missed: that of a plan's other ranges


@dataclass(frozen=True, kw_only=True, slots=True)
class PaidEstimate:
    """What was released for a plan, and what it cost; all of it may be published, unless the noise was seeded. `error`:
    of the k teachers on rows held out of their own shards, which the noise may have moved by `half_width`, but for a
    probability of :data:`FAILURE`. `rows_each`: that a teacher learned from. `epsilon`: what was charged; δ is 0.
    `left`: ε left in the run's ledger; None where it adds up ρ.
    """

    error: float
    half_width: float
    rows_each: float
    n_teachers: int
    epsilon: float
    left: float | None
    seeded: bool

    @property
    def curve(self) -> LearningCurve:
        """The learning curve through this one point, whose ranges allow for the noise of the estimate."""
        accuracy = min(max(1 - self.error, 0.01), 0.99)
        return LearningCurve.of(
            [(max(1.0, self.rows_each), accuracy)], basis="paid estimate", uncertain=self.half_width
        )

    def tree(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "error": round(self.error, 4), "half_width": round(self.half_width, 4),
            "rows_each": round(self.rows_each, 1), "n_teachers": self.n_teachers, "epsilon": self.epsilon,
            "epsilon_left": self.left, "seeded": self.seeded,
        }  # fmt: skip

    def __str__(self) -> str:
        return (
            f"Teachers of about {self.rows_each:,.0f} rows are wrong on {100 * self.error:.1f} % of private rows that "
            f"were held out, give or take {100 * self.half_width:.1f} points of noise. ε {at_most(self.epsilon)} was "
            f"charged for this, δ 0{'' if self.left is None else f'; ε {at_least(self.left)} is left'}."
            f"{f' But {SEEDED}; this figure must not be published.' if self.seeded else ''}"
        )


def estimate_for_plan(root: Path, *, spend: float | None) -> PaidEstimate:
    """Release the teachers' mean error, charged to the run's ledger; asked again it is read there, and is free.

    `spend`: ε of the estimate. What ``[run] epsilon`` leaves of ``[budget] epsilon`` has to cover it; nothing is
    charged where it is refused. Privacy: one unit changes one teacher's error, by at most 1, so the sum of the K errors
    is released with Laplace noise of scale 1/ε at the price ε, whichever unit is added, removed or replaced
    (:func:`~quorate.labelling.estimate_error`).
    """
    if spend is None:
        raise InvalidParameter(
            "an estimate reads private rows and is charged, so it takes the ε that you mean to spend: "
            "quorate plan --estimate --spend 0.1. Without --estimate a plan is free, and opens no private file"
        )
    spend = real("--spend", spend, above=0)
    settings = _with_teachers(read_settings(root / "quorate.toml"), root)
    _refuse_no_room(settings, spend)
    with naming(keys_of(settings)):
        run = load_run(root, settings=settings)
    task = run.task
    if task.facts.rows is None:
        raise InvalidParameter(
            "an estimate is of teachers of a known size, and quorate.toml does not say how many private "
            f"{task.facts.unit}s there are; give [data] n_records"
        )
    if task.partition == "unit" or task.recipe.n_teachers * 2 > (task.facts.n_records or 2 * task.recipe.n_teachers):
        raise InvalidParameter(
            f"an estimate holds out some of each teacher's {task.facts.unit}s, and here a teacher has fewer than two; "
            "give [teachers] count, at most half of the number of units"
        )
    mechanism = NoisySum.costing(spend)
    made_of = {name: value for name, value in task.cache_inputs.items() if name not in _OF_QUERIES}
    charge = Charge(
        event=mechanism.event,
        delta=0.0,
        purposes={TUNING: 1},
        key=stage_key(task.key, "estimate", {**made_of, "event": mechanism.event.to_json()}),
        scope=scope_of(task),
        seeded=task.noise.seeded,
    )
    with run.open_ledger(bind=True) as ledger:
        if charge.find(ledger) is None and isinstance(task.inputs.private.reveal().X, StreamedFrame):
            raise PreconditionFailed(
                "an estimate takes the private table in memory, and this one stays in its file; nothing was charged. "
                "Raise [run] memory"
            )
        if charge.find(ledger) is None:
            see_that_it_answers(task)
        reservation = charge.reserve(ledger)
        try:
            estimate = _released(run, reservation, mechanism)
        except QuorateError as error:
            error.charged = CHARGED
            raise
        return PaidEstimate(
            error=estimate.error,
            half_width=estimate.half_width,
            rows_each=(1 - HELD_OUT) * task.facts.rows / task.recipe.n_teachers,
            n_teachers=task.recipe.n_teachers,
            epsilon=spend,
            left=ledger.left.epsilon,
            seeded=task.noise.seeded,
        )


def _with_teachers(settings: Settings, root: Path) -> Settings:
    """The settings with teachers: where the method is left open, the estimate is of what votes would do."""
    if not settings.method.may_have_teachers and settings.choice is None:
        raise InvalidParameter(
            f'[method] by = "{settings.method.by}" has no teachers whose error could be estimated; rehearse on '
            "labelled public rows ([data] evaluation), which is free"
        )
    if settings.method.by != "votes":
        return replace(settings, method=replace(settings.method, by="votes"), choice=None)
    return settings_of(root)


def _refuse_no_room(settings: Settings, spend: float) -> None:
    """Refuse an estimate that would leave too little for the run it is to plan."""
    cap, share = settings.budget.epsilon, settings.run.epsilon
    if share is None:
        raise InvalidParameter(
            f"the run takes all of [budget] epsilon = {cap:g}, which leaves nothing for an estimate; nothing was "
            "charged. Write what the run may take into [run] epsilon, and the sum of both into [budget] epsilon"
        )
    if share + spend > cap:
        raise InvalidParameter(
            f"the run takes [run] epsilon = {share:g} of [budget] epsilon = {cap:g}, which leaves less than the "
            f"estimate's {spend:g}; nothing was charged. Lower the one or the other"
        )


def _released(run: LoadedRun, reservation: Reservation, mechanism: NoisySum) -> ErrorEstimate:
    """Release the teachers' mean error; or read the one that was released before."""
    from quorate.labelling import estimate_error, read_error

    task, private = run.task, run.task.inputs.private.reveal()
    blocks = reservation.blocks(TUNING)
    if blocks:
        if blocks[0].answers is None:
            raise PreconditionFailed(
                "the estimate was drawn and its process ended before it was stored: it was paid for, is lost, and is "
                "never drawn again. Another one takes another --spend"
            )
        [answer] = blocks[0].answers
        return read_error(
            int(answer), mechanism, n_teachers=task.recipe.n_teachers, failure=FAILURE, seeded=task.noise.seeded
        )
    return estimate_error(
        task.trainer,
        task.views.teacher(private.X),
        private.codes,
        private.unit_keys,
        n_teachers=task.recipe.n_teachers,
        n_classes=task.n_classes,
        key=task.key,
        mechanism=mechanism,
        reservation=reservation,
        noise=task.noise,
        partition=task.partition,
        share=HELD_OUT,
        failure=FAILURE,
        n_jobs=task.n_jobs,
        before_draw=partial(see_that_it_answers, task),
    )
