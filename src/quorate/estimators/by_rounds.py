"""What all estimators do that learn by noisy rounds: check, charge, go the rounds, go on with them, keep, publish."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

from sklearn.exceptions import NotFittedError

from quorate.accounting import Guarantee
from quorate.ambient import own_switches
from quorate.arguments import column_names, real, truth
from quorate.data import encode_labels, n_rows, refuse_missing
from quorate.data.column_kinds import ColumnKinds
from quorate.data.table_reader import TableReader
from quorate.data.unit_ids import only_whole_ids
from quorate.direct.config import DirectConfig, RoundArguments
from quorate.direct.flow import DirectResult
from quorate.direct.method import ROUNDS
from quorate.direct.prepare import prepare_direct
from quorate.direct.task import DirectTask
from quorate.ensemble.workers.cluster.scheduler import DaskScheduler, as_scheduler
from quorate.errors import PreconditionFailed
from quorate.estimators.known_arguments import note_columns, refuse_one_row, tables_by_name
from quorate.estimators.reporting import ShownEstimator, Standing, write_model
from quorate.estimators.resumable import BY_FIT, noted, refuse_lost_ledger, refuse_other_ledger
from quorate.findings import Finding, warn_of
from quorate.ledger import Budget, Ledger
from quorate.release import Account, GivenLedger, RollbackGuard, ledger_location, session
from quorate.release.charge import floor_budget, noise_and_key
from quorate.release.keys import with_key
from quorate.release.session import terms_of
from quorate.report import Facts, Utility
from quorate.run.cautions import lost_caution
from quorate.run.cell_task import left_out
from quorate.run.facts import RunMetadata
from quorate.run.method_config import MethodConfig
from quorate.run.progress import progress, say, wanted
from quorate.stored_names import stored_as
from quorate.students.prediction_sets import COVERAGE, Limits, OneLimit
from quorate.types import FloatArray, IntArray
from quorate.voting.number_flow import NumberResult
from quorate.voting.number_method import NUMBER_VOTES
from quorate.voting.numbers import NumberTask

_MADE_OF = {"evaluation": "score", "calibration": "calibration"}  # public rows with labels, and what they give
FIT_WITH_GAPS = "fill them; a model that was fitted with gaps in its public rows, or on a data frame, fills them itself"
NO_SUCH_FIT = (
    "cannot resume: the ledger holds no fit of these settings that can go on. If an argument of the estimator or the "
    "public rows are others, put them back. If the fit was ended before its charge, nothing was spent; if every round "
    "was drawn and none stored, what it cost is lost: call fit, which is charged then"
)


@dataclass(frozen=True, slots=True)
class FittedRounds:
    """One fit by noisy rounds, or by votes for a number: no private row is among it. `promised`: what everything that
    the ledger was charged for guarantees together. `left`: what the ledger had left when the fit let go of it. `lost`:
    whether something of the charge was lost when a process ended.
    """

    task: DirectTask | NumberTask
    result: DirectResult | NumberResult
    account: Account
    metadata: RunMetadata
    promised: Guarantee
    left: Standing = field(repr=False)
    lost: Finding = field(repr=False)

    def labelled(self, rows: Any, y: Any, name: str) -> IntArray | None:
        """Return the class codes of *public* rows, which were read as the pool, or None as :meth:`are_public` tells."""
        assert isinstance(self.task, DirectTask)  # noqa: S101 - votes for a number have no labels
        codes = encode_labels(y, self.task.classes, name=f"{name} labels", n_rows=n_rows(rows))
        return codes if self.are_public(rows, name) else None

    def are_public(self, rows: Any, name: str) -> bool:
        """Tell whether rows, read as the pool, may be used; where not, a line on the terminal tells why."""
        if self.task.may_score(rows):
            return True
        say(left_out(name, _MADE_OF[name]))
        return False

    def facts(self, given: GivenLedger, utility: Utility) -> Facts:
        """Gather what a report says, with the model's score."""
        with self.account.open(given) as (ledger, reservation):
            result = replace(self.result, reservation=reservation)
            facts: Facts = method_of(self.task).facts(
                self.task, result, ledger, replace(self.metadata, utility=utility)
            )
            return facts


def method_of(task: DirectTask | NumberTask) -> Any:
    """Return what a task is done by: noisy rounds, or votes for a number."""
    return NUMBER_VOTES if isinstance(task, NumberTask) else ROUNDS


def _go_rounds(
    task: DirectTask | NumberTask, ledger: Ledger, guard: RollbackGuard, *, metadata: RunMetadata, verbose: bool
) -> FittedRounds:
    key, method = task.charge_on(ledger).key, method_of(task)
    with noted(ledger, key, seeded=task.noise.seeded, how=BY_FIT), progress(quiet=not verbose) as watch:
        result = method.go(task, ledger, watch=watch)
    promised, task = method.promised(result.task, ledger), result.task.without_private_rows()
    return FittedRounds(
        task=task,
        result=replace(result, task=task),
        account=Account(charge=result.charge, ledger=ledger, budget=_budget(task), guard=guard),
        metadata=metadata,
        promised=promised,
        left=Standing.of(promised, ledger),
        lost=lost_caution(result.reservation),
    )


def _budget(task: DirectTask | NumberTask) -> Budget:
    return Budget(task.epsilon, task.delta)


@dataclass(eq=False, repr=False, kw_only=True)
class Arguments:
    """The arguments of every estimator that may learn by noisy rounds, as their own docstrings explain them."""

    epsilon: float | None = None
    delta: float | None = None
    marginals: float | None = None
    n_records: int | None = None
    unit: str | None = None
    whole_ids: bool = False
    neighbours: Literal["auto", "add-or-remove", "replace"] = "auto"
    scheduler: DaskScheduler | None = None
    calibration_share: float | None = None
    coverage: float = COVERAGE
    ledger: GivenLedger = None
    unsafe_noise_seed: int | None = None
    verbose: bool | int = False


def arguments_given(estimator: Any, names: Sequence[str]) -> list[str]:
    """Return which of these arguments of an estimator are not their defaults, whatever they compare equal to."""
    defaults = {part.name: part.default for part in fields(estimator)}
    values = {name: getattr(estimator, name) for name in names}
    return [
        name
        for name, value in values.items()
        if not (value is defaults[name] or (type(value) is type(defaults[name]) and value == defaults[name]))
    ]


def arguments_of_one(estimator: Any, config: type, other: type, *, but: Sequence[str] = ()) -> list[str]:
    """Return the arguments of an estimator that one configuration has and another has not, in the order of the one."""
    names = {part.name for part in fields(estimator)} - {part.name for part in fields(other)} - set(but)
    return [part.name for part in fields(config) if part.name in names]


@stored_as("quorate.estimators.by_rounds.LearnsByRounds")
class LearnsByRounds(ShownEstimator, RoundArguments, Arguments):
    """An estimator whose model is linear in public coordinates. What it predicts, a subclass says."""

    _off: Limits | OneLimit | None = None  # how far off a number was predicted, on public rows or units held out

    @abstractmethod
    def _predicted(self) -> dict[str, Any]:
        """Return what :class:`DirectConfig` is told of what is predicted, or refuse what was declared."""

    @tables_by_name
    def fit(self, X: Any, y: Any, *, public: Any = None, groups: Any | None = None, schema: Any = None) -> Self:
        """Learn from private rows by the method of the estimator, and keep what may be published.

        Parameters
        ----------
        X : (n_records, n_features) array, sparse matrix, pandas or polars frame
            Private rows.
        y : (n_records,)
            Private labels, or targets where a number is predicted. A row whose label is none of `classes`, or whose
            target is no finite number, is left out; a target beyond `target_range` is taken as the nearer end.
        public : PublicPool, optional
            Public rows with the same columns, without labels or targets. Without them and without `schema`, `X` must
            be an array of numbers or a sparse matrix: rows are scaled to length one, and all directions get the same
            share of the noise. Votes for a number need public rows.
        groups : (n_records,), optional
            Whose row it is. The guarantee is then for everything of one person.
        schema : Schema or mapping of str to declaration, optional
            Where there are no public rows: what the columns of the frame hold, as :class:`~quorate.Schema` takes it:
            ``{"age": (0, 120), "sex": ["F", "M"], "income": "number", "note": "drop"}``. A tenth of the budget pays
            for noisy counts of each column, in the same charge, and rows drawn from them are the pool. Of more than
            two classes and mostly numbers, up to another tenth pays for noisy sums over pairs of columns.

        Raises
        ------
        InvalidParameter, DataRefused
            If an argument, the pool or a column is wrong; nothing was charged. No private value decides on it.
        BudgetExhausted
            If the ledger has too little left; nothing was charged.
        PreconditionFailed
            If the ledger holds the same fit in coordinates of other bits; nothing more was charged.

        Warns
        -----
        QuorateWarning
            For each caution of :func:`quorate.check`, with its code, before anything is charged.
        """
        verbose, metadata = wanted(self.verbose), self._metadata("fit")
        task = self._task(X, y, public=public, groups=groups, schema=schema)
        warn_of(method_of(task).cautions(task))
        guard = RollbackGuard()
        with session(self.ledger, budget=_budget(task), guard=guard, seeded=task.noise.seeded) as ledger:
            kept = _go_rounds(task, ledger, guard, metadata=metadata, verbose=verbose)
        self._take(kept)
        warn_of([kept.lost])
        return self

    @tables_by_name
    def resume(self, X: Any, y: Any, *, public: Any = None, groups: Any | None = None, schema: Any = None) -> Self:
        """Go on with a fit whose process ended: the rounds that its ledger still owes, and no charge.

        Rounds that were stored are taken from the ledger, none is drawn again, and one that was drawn and not stored is
        left out. The same call of ``fit`` goes on too; where there is nothing to go on with it charges, and this
        refuses.

        Parameters
        ----------
        X, y, public, groups, schema
            What ``fit`` was given.

        Raises
        ------
        InvalidParameter, DataRefused
            As ``fit`` does; or if `ledger` is none that outlives a process.
        LedgerMismatch
            If the ledger was charged for other data.
        PreconditionFailed
            If it holds no fit of these arguments and public rows, or one in coordinates of other bits.
        """
        refuse_lost_ledger(self.ledger)
        verbose, metadata = wanted(self.verbose), self._metadata("resume")
        task = self._task(X, y, public=public, groups=groups, schema=schema, begin=False)
        guard = RollbackGuard()
        with session(self.ledger, budget=None, guard=guard) as ledger:
            refuse_other_ledger(ledger, task.fingerprint)
            if task.charge_on(ledger).find(ledger) is None:
                raise PreconditionFailed(NO_SUCH_FIT)
            kept = _go_rounds(task, ledger, guard, metadata=metadata, verbose=verbose)
        self._take(kept)
        warn_of([kept.lost])
        return self

    def _take(self, kept: FittedRounds) -> None:
        self._kept, self._standing, task = kept, kept.left, kept.task
        self.model_ = kept.result.model
        self.coef_: FloatArray = self.model_[-1].coef_
        self.intercept_: Any = self.model_[-1].intercept_
        self.guarantee_: Guarantee = kept.promised
        self.column_kinds_: ColumnKinds = task.schema.kinds
        drawn = None
        if isinstance(task, DirectTask) and isinstance(kept.result, DirectResult):
            self.plan_, self.n_rounds_, drawn = task.plan, kept.result.n_rounds, task.drawn
        dropped = () if drawn is None else drawn.before.declared.dropped
        self._reader = TableReader.of(task.schema.pool, task.schema.kinds, left_out=dropped, called=task.schema.called)
        note_columns(self, task.schema.pool)
        if drawn is not None:
            self.pool_ = task.schema.pool

    @property
    def ledger_(self) -> GivenLedger:
        """Where the fit was charged: the ledger or path that was given, else the ledger in memory."""
        return self._kept.account.ledger if self.ledger is None else self.ledger

    def ask(self, X: Any) -> NoReturn:
        """Refuse a question, since there are no teachers: PreconditionFailed says what to call instead."""
        raise PreconditionFailed(
            "there is nothing to ask: the direct method has no teachers. predict() asks the model, and is free"
        )

    @own_switches()
    def export(self, path: str | Path) -> Path:
        """Write the model with skops, for anybody who has scikit-learn. It takes dates as days since 1970, times of day
        as hours and durations as days, where :meth:`predict` reads cells.

        Raises
        ------
        SeededNoiseRefused
            If the noise was seeded: such a model carries no guarantee and does not leave.
        PreconditionFailed
            If there is no such folder, or the name says that the file is a pickle.
        """
        self._fitted()
        return write_model(self._published_model(), path, seeded=self.guarantee_.seeded)

    def _original(self, does: str) -> FittedRounds:
        """Return what a fit kept, or refuse: a copy has none of it, and does not do what the original does."""
        self._fitted()
        if not hasattr(self, "_kept"):
            raise PreconditionFailed(f"a copy of a fitted {self._called} {does}")
        return self._kept

    def _published_model(self) -> Any:
        """Return the model as it leaves."""
        return self._fitted()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the ledger behind: a copy predicts, and the original reports."""
        return {name: value for name, value in super().__getstate__().items() if name != "_kept"}

    def _task(self, X: Any, y: Any, **how: Any) -> DirectTask | NumberTask:
        """Check everything and fix every choice; nothing is written where `begin` is False."""
        return self._direct_task(X, y, **how)

    def _direct_task(self, X: Any, y: Any, *, schema: Any = None, **how: Any) -> DirectTask:
        arguments = {name: getattr(self, name) for name in arguments_of_one(self, DirectConfig, MethodConfig)}
        arguments |= {"text": column_names("text", self.text), "schema": schema}
        if self.marginals is not None:
            arguments["marginals"] = real("marginals", self.marginals, at_least=0, below=1)
        task: DirectTask = self._prepared(prepare_direct, DirectConfig, arguments, X, y, **how)
        return task

    def _prepared(
        self, prepare: Any, config: Any, arguments: dict[str, Any], X: Any, y: Any, *, begin: bool = True, **tables: Any
    ) -> Any:
        """Prepare a task by the arguments that each way to learn has, and by those of one."""
        noise, key = noise_and_key(self.unsafe_noise_seed)
        epsilon, delta = floor_budget(self.epsilon, self.delta)
        terms = terms_of(ledger_location(self.ledger))
        configured = config(
            **{**arguments, **self._predicted()},
            epsilon=epsilon,
            delta=delta,
            n_records=self.n_records,
            unit=self.unit,
            composition=terms.composition,
            scheduler=as_scheduler(self.scheduler),
            calibration_share=self.calibration_share,
            coverage=self.coverage,
        )
        how: dict[str, Any] = {**tables, "noise": noise, "terms": terms, "key": key if noise.seeded else None}
        if truth("whole_ids", self.whole_ids):
            how["groups"] = only_whole_ids(how["groups"])
        return with_key(
            ledger_location(self.ledger),
            lambda beside: prepare(configured, X, y, fingerprint_key=beside, **how),
            begin=begin,
        )

    def _model_rows(self, X: Any) -> Any:
        """Return rows as the model sees them: dates as numbers, and no text missing."""
        self._fitted()
        refuse_one_row(X, texts=self.n_features_in_ == 1)
        rows = self._reader(X)
        if self.model_.steps[0][0] != "encoder":  # which would fill gaps
            refuse_missing(rows, taker=f"this {self._called}", advice=FIT_WITH_GAPS)
        return rows

    def _fitted(self) -> Any:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted; call fit(X, y, public=PublicPool(...)) first"
            )
        return self.model_
