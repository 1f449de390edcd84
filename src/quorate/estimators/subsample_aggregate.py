"""Questions about private rows, answered exactly where nearly all parts of the rows agree on the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.exceptions import NotFittedError

from quorate.accounting import Guarantee
from quorate.ambient import own_switches
from quorate.arguments import count, real
from quorate.data import check_features, fingerprint, is_frame, n_rows, slot_bytes
from quorate.data.cell_text import as_list
from quorate.data.unit_ids import count_units
from quorate.ensemble import Partition, partition_rows
from quorate.ensemble.functions import DiscreteValue, decode_value, function_values, portable, split_rows
from quorate.errors import DataRefused, InvalidParameter, SecretRefused
from quorate.estimators.checked import refuse_public
from quorate.estimators.known_arguments import known_arguments, note_columns, tables_by_name
from quorate.estimators.reporting import ShownEstimator
from quorate.estimators.sharded_rows import (
    AnswersLeft,
    CheckedFit,
    ShardedRows,
    charge_key,
    check_of_shards,
    question_of,
    votes_ahead,
)
from quorate.findings import warn_of
from quorate.labelling.stable import QUERY, StableAnswers, stable_purposes
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import StableSparseVector
from quorate.mechanisms.sparse_vector import Calibration
from quorate.release import Account, Charge, RollbackGuard, guarantee_of, ledger_location, session
from quorate.release.charge import floor_budget, noise_and_key, refuse_unaffordable
from quorate.release.keys import fingerprint_key
from quorate.run.method import CheckResult
from quorate.run.public_facts import unit_of
from quorate.run.resources import processes
from quorate.stored_names import stored_as
from quorate.types import Secret
from quorate.voting.scope import scope_of_rows


@stored_as("quorate.estimators.subsample_aggregate.SubsampleAggregate")
@known_arguments
@dataclass(eq=False, repr=False, kw_only=True)
class SubsampleAggregate(ShownEstimator):
    """Answer any function of private rows that has a discrete range, online, where the answer is stable.

    ``fit`` cuts the rows into shards. ``ask`` computes a function on each shard, and releases the value that most
    shards have, exactly, if it is so far ahead that a few units could not change it; else it declines. Stable
    questions are free; T declined ones end the run. The number of possible values does not enter the price. Ask for a
    label, the best of some feature sets or hyper-parameters, a rounded median, the most common diagnosis.

    Parameters
    ----------
    epsilon, delta : float
        What the whole run may cost, ε > 0 and 0 < δ < 1. There is no default.
    n_shards : int
        K. The leading value must be ahead by :attr:`votes_ahead_` votes, so K must be above that.
    cutoff : int
        T ≥ 1: how many questions may be declined.
    n_queries : int
        m ≥ T: how many questions may be asked. The tight calibration does not pay for them.
    calibration : {"tight", "lzcw21", "btt18"}, default "tight"
        Which noise; see :class:`~quorate.mechanisms.StableSparseVector`.
    ledger : path or Ledger, optional
        A path: a new ledger gets ``Budget(epsilon, delta)``. One in which the same run on the same data was charged
        goes on: nothing is charged again, its answers are remembered, and the stage that the restart broke off is
        spent. None keeps it in memory, and the guarantee says that nothing durable was recorded.
    unit : str, optional
        The word for whose data is protected; "person" where ``groups`` are given to ``fit``, else "record".
    partition : {"hash", "balanced"}
        A keyed hash of the unit's identity (add, remove or replace), or equal sizes (replace only).
    n_jobs : int, optional
        Processes; as many as there are cores by default.
    function_cpu_seconds : float, optional
        CPU time after which a shard abstains.
    unsafe_noise_seed : int, optional
        For tests and demos. The run is reproducible, therefore not private, and everything it writes says so.

    Attributes
    ----------
    guarantee_ : Guarantee
        What was promised, and its caveats. It is charged by ``fit`` as a whole.
    mechanism_ : StableSparseVector
        The noise, and what it costs.
    votes_ahead_ : int
        By how many votes the leading value must be ahead to be released with probability 0.95 in a fresh stage.
    answers_left_ : AnswersLeft
        How many questions may still be declined, and asked.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Privacy: all that ``ask`` ever answers is together (ε, δ)-differentially private for one unit of the rows, whatever
    is asked and however it was chosen after earlier answers (BTT18a, Algorithms 3 and 4). The functions, their names
    and what they carry with them are public. A function sees one shard at a time, in a silent process of its own; on a
    shard where it raises, crashes, or returns anything but a string, an integer, a truth value, or a tuple or frozenset
    of them, the shard abstains. Floats are not discrete; round them to integers. Timing and the operator's own access
    are outside the guarantee.

    References
    ----------
    BTT18a (Bassily, Thakkar, Thakurta, arXiv:1803.05101), Algorithms 3 and 4, Corollary 3.10; Smith, Thakurta (2013)
    for subsample-and-aggregate with a distance to instability.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate import SubsampleAggregate
    >>> ages = np.random.default_rng(0).normal(38, 5, (1_000, 1))
    >>> private = SubsampleAggregate(epsilon=4.0, delta=1e-5, n_shards=50, cutoff=1, n_queries=10).fit(ages)
    >>> def median_decade(X, y):
    ...     return round(float(np.median(X)) / 10) * 10
    >>> private.ask(median_decade, name="median age, to ten years")
    40
    >>> private.answers_left_
    AnswersLeft(declines=1, queries=9)
    """

    epsilon: float
    delta: float
    n_shards: int
    cutoff: int
    n_queries: int
    calibration: Calibration = "tight"
    ledger: str | Path | Ledger | None = None
    unit: str | None = None
    partition: Partition = "hash"
    n_jobs: int | None = None
    function_cpu_seconds: float | None = None
    unsafe_noise_seed: int | None = None

    @tables_by_name
    def fit(self, X: Any, y: Any | None = None, *, groups: Any | None = None) -> SubsampleAggregate:
        """Cut the rows into shards, and charge the whole run.

        Parameters
        ----------
        X : (n_records, n_features) array, sparse matrix, pandas or polars frame
            Private rows.
        y : (n_records,), optional
            Private labels or targets; functions get None without them.
        groups : (n_records,), optional
            Whose row it is. The guarantee is then for everything of one person.

        Raises
        ------
        InvalidParameter, DataRefused
            If an argument or a table is wrong; nothing was charged.
        LedgerMismatch
            If the ledger belongs to other data.
        BudgetExhausted
            If the ledger has too little left; nothing was charged.

        Warns
        -----
        QuorateWarning
            For each caution of :func:`quorate.check`, with its code, before anything is charged.
        """
        fit = self._checked(X, y, groups=groups)
        warn_of(fit.considered)
        mechanism, guard = fit.mechanism, RollbackGuard()
        with session(
            self.ledger, budget=fit.budget, guard=guard, fingerprint=fit.fingerprint, seeded=fit.noise.seeded
        ) as ledger:
            reservation = fit.charge.reserve(ledger)
            kept = ShardedRows(
                shards=fit.shards,
                answers=StableAnswers(mechanism, fit.noise),
                account=Account(charge=fit.charge, ledger=ledger, budget=fit.budget, guard=guard),
                unit=fit.unit,
                n_jobs=fit.n_jobs,
            )
            promised = guarantee_of(
                ledger,
                mechanism.event,
                delta=fit.charge.delta,
                mechanism=f"exact plurality values of {self._release_words(mechanism)}",
                seeded=fit.noise.seeded,
            )
            standing = kept.standing(ledger, reservation, promised)
        self._kept, self._standing = kept, standing
        note_columns(self, X if hasattr(X, "columns") else check_features(X, "X", allow_missing=True))
        self.mechanism_ = mechanism
        self.votes_ahead_ = votes_ahead(mechanism.passing_dist())
        self.guarantee_: Guarantee = promised
        return self

    @own_switches()
    def ask(self, function: Callable[..., Any], *args: Any, name: str | None = None) -> DiscreteValue | None:
        """Ask for the value of a function.

        Parameters
        ----------
        function : callable
            Called as ``function(X, y, *args)`` with the rows and labels of one shard, in the container that ``fit``
            was given. Whatever types they came in, numbers and truth values are float64, labels with text among them
            objects, polars categories text: a type read off all rows would tell of other shards. It must be possible
            to send the function to another process. Numpy's and Python's global generators are seeded
            for each shard.
        *args
            Further arguments, public ones.
        name : str, optional
            What the question is called: the name alone then says whether it was asked before. Without one it is known
            by its code, by what it closes over and by `args`.

        Returns
        -------
        str, int, bool, tuple, frozenset or None
            The value that most shards have, exactly; or None for declined. A question that was asked before gets the
            same answer and costs nothing.

        Raises
        ------
        BudgetExhausted
            If no more questions may be declined or asked. Nothing is computed or drawn then.
        InvalidParameter, PreconditionFailed
            If the function cannot be sent to a worker process; nothing was drawn.
        """
        return self._ask([(function, args, name)])[0]

    @own_switches()
    def ask_many(
        self, functions: Sequence[Callable[..., Any]], *, names: Sequence[str] | None = None
    ) -> list[DiscreteValue | None]:
        """Ask several functions in turn; their values are computed together.

        Parameters
        ----------
        functions : sequence of callables
            As for :meth:`ask`.
        names : sequence of str, optional
            A name for each.

        Returns
        -------
        list
            As many answers, in their order.

        Raises
        ------
        BudgetExhausted
            If there are more new functions than questions left; nothing is drawn then. Also if the last question that
            may be declined is declined before the end: what was answered until then is stored, and free to ask.
        """
        wanted = list(functions)
        called = [None] * len(wanted) if names is None else list(names)
        if isinstance(names, str) or len(called) != len(wanted):
            raise InvalidParameter(f"names must be one for each of the {len(wanted)} functions, got {len(called)}")
        return self._ask([(function, (), name) for function, name in zip(wanted, called, strict=True)])

    @property
    def answers_left_(self) -> AnswersLeft:
        """How many questions may still be declined, and asked."""
        kept = self._fitted()
        with kept.account.open(self.ledger) as (_, reservation):
            return AnswersLeft(kept.answers.declines_left(reservation), reservation.remaining(QUERY))

    @own_switches()
    def summary(self) -> str:
        """Return what was asked, what is left and what was promised, as a table for the terminal, 80 columns wide.

        All of it is public.
        """
        kept = self._fitted()
        with kept.account.open(self.ledger) as (ledger, reservation):
            return kept.summary(
                ledger, reservation, mechanism=self.mechanism_, n_shards=self.n_shards, promised=self.guarantee_
            )

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_kept"):
            raise SecretRefused(
                "a fitted SubsampleAggregate holds the private rows and is neither pickled nor copied; the answers are "
                "in its ledger, and a fit with the same ledger goes on"
            )
        return dict(super().__getstate__())

    def _ask(self, asked: list[tuple[Callable[..., Any], tuple[Any, ...], str | None]]) -> list[DiscreteValue | None]:
        kept, questions = self._fitted(), [question_of(function, args, name=name) for function, args, name in asked]
        with kept.account.open(self.ledger) as (ledger, reservation):
            known = kept.stored.read(reservation)
            new = {question: call for question, call in zip(questions, asked, strict=True) if question not in known}
            if new:
                kept.answers.check_left(reservation, len(new))
                values = function_values(
                    [portable(function, args) for function, args, _ in new.values()],
                    kept.shards,
                    n_jobs=kept.n_jobs,
                    cpu_seconds=self.function_cpu_seconds,
                )
                for question, votes in zip(new, values.reveal(), strict=True):
                    kept.answers.answer(reservation, question, Secret(votes))
                known = kept.stored.read(reservation)
                self._standing = kept.standing(ledger, reservation, self.guarantee_)
        return [None if value is None else decode_value(value) for value in map(known.__getitem__, questions)]

    def _checked(self, X: Any, y: Any | None, *, groups: Any | None, begin: bool = True) -> CheckedFit:
        """Check everything, and cut the rows; nothing is written where `begin` is False."""
        epsilon, delta = floor_budget(self.epsilon, self.delta)
        mechanism = StableSparseVector(epsilon, delta, self.cutoff, self.n_queries, self.calibration)
        n_shards = self._checked_shards(mechanism)
        if self.function_cpu_seconds is not None:
            real("function_cpu_seconds", self.function_cpu_seconds, above=0)
        unit = unit_of(self.unit, grouped=groups is not None)
        n_jobs = processes(self.n_jobs)
        noise, key = noise_and_key(self.unsafe_noise_seed)
        rows = check_features(X, "X", allow_missing=True)
        rows = (
            X if hasattr(X, "columns") and is_frame(rows) else rows
        )  # a function knows columns by its owner's own names
        if y is not None and (getattr(y, "ndim", 1) != 1 or len(as_list(y)) != n_rows(rows)):
            raise DataRefused("X and y differ in length, or y is a table; give one label for every row")
        unit_keys = slot_bytes(groups, n_rows(rows))
        if n_shards > count_units(unit_keys):
            raise DataRefused(
                f"too many shards: n_shards={n_shards} is more than there are units in the private table, so some "
                "could only abstain. Give fewer shards"
            )
        data_fingerprint = fingerprint(rows, y, unit_keys, fingerprint_key(ledger_location(self.ledger), begin=begin))
        return CheckedFit(
            mechanism=mechanism,
            charge=Charge(
                event=mechanism.event,
                delta=delta,
                purposes=stable_purposes(mechanism),
                key=charge_key(mechanism, n_shards, self.partition, unit, data_fingerprint),
                scope=scope_of_rows(unit, self.partition),
                seeded=noise.seeded,
            ),
            budget=Budget(epsilon, delta),
            unit=unit,
            n_jobs=n_jobs,
            fingerprint=data_fingerprint,
            shards=split_rows(
                rows, y, partition_rows(unit_keys, n_shards, key, partition=self.partition), n_shards, key
            ),
            noise=noise,
        )

    def _release_words(self, mechanism: StableSparseVector) -> str:
        return (
            f"at most {mechanism.n_queries:,} functions on {self.n_shards:,} shards, at most {mechanism.cutoff:,} of "
            f"them declined: StableSparseVector, {mechanism.calibration} calibration"
        )

    def _check(self, X: Any, y: Any | None, *, public: Any, groups: Any | None) -> CheckResult:
        """Say what :meth:`fit` would do and cost: :func:`quorate.check`."""
        refuse_public(self, public)
        fit = self._checked(X, y, groups=groups, begin=False)
        refuse_unaffordable(self.ledger, lambda _: fit.charge, budget=fit.budget, fingerprint=fit.fingerprint)
        return check_of_shards(
            fit, n_shards=self.n_shards, partition=self.partition, released=self._release_words(fit.mechanism)
        )

    def _checked_shards(self, mechanism: StableSparseVector) -> int:
        """Refuse a number of shards that could answer nothing: a public fact, known before anything is charged."""
        n_shards = count("n_shards", self.n_shards, at_least=1)
        needed = votes_ahead(mechanism.passing_dist(0.5))
        if n_shards < needed:
            raise InvalidParameter(
                f"n_shards must be at least {needed} here, got {n_shards}: fewer shards would be declined more often "
                "than not even where all agree. Give more shards, a larger epsilon or a lower cutoff"
            )
        return n_shards

    def _fitted(self) -> ShardedRows:
        if not hasattr(self, "_kept"):
            raise NotFittedError("this SubsampleAggregate is not fitted; call fit(X, y) first")
        return self._kept
