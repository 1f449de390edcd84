"""The classifier: private labelled rows in, a publishable model out, by the method that public facts choose."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal

from quorate.arguments import truth
from quorate.data.unit_ids import only_whole_ids
from quorate.ensemble.workers.cluster.scheduler import as_scheduler
from quorate.errors import BudgetExhausted
from quorate.estimators.by_rounds import Arguments
from quorate.estimators.checked import check_of_teachers
from quorate.estimators.either_method import EitherMethod, FittedRun
from quorate.estimators.known_arguments import known_arguments, tables_by_name
from quorate.estimators.resumable import by_fit, charged, refuse_lost_ledger, went_on
from quorate.ledger import Budget
from quorate.release import RollbackGuard, ledger_location, session
from quorate.release.charge import noise_and_key
from quorate.release.keys import with_key
from quorate.release.session import terms_of
from quorate.run.method import CheckResult
from quorate.run.progress import say, wanted
from quorate.stored_names import stored_as
from quorate.students.decision_threshold import DecisionThreshold, require_pool, require_probabilities
from quorate.types import Secret
from quorate.voting.claims import refuse_rows_as_units, warn_before_charge
from quorate.voting.config import RunConfig, VoteArguments
from quorate.voting.prepare import prepare
from quorate.voting.resumed import fit_key
from quorate.voting.task import Task


@stored_as("quorate.estimators.private_classifier.PrivateClassifier")
@known_arguments
@dataclass(eq=False, repr=False)
class PrivateClassifier(EitherMethod, VoteArguments, Arguments):
    """Learn from private labelled rows, and hold a model that may be published.

    By votes, ``fit`` trains an ensemble of teachers on disjoint parts of the private rows, lets them vote on public
    points, releases the votes through a Gaussian mechanism, and fits a student on what was released (LZCW21 Alg. 3;
    PATE18). By the direct method it goes the noisy rounds of :class:`~quorate.PrivateLogisticRegression`. Which of the
    two it is, public facts say, unless `method` does.

    Parameters
    ----------
    teacher : estimator, function or Teacher, optional
        Any classifier with ``fit`` and ``predict``, or a Pipeline, unfitted: each teacher is a copy, fitted on its own
        shard. Or a function, called as :class:`quorate.ensemble.FunctionTeacher` has it. Or a
        :class:`quorate.ensemble.Teacher`, such as :class:`quorate.ensemble.CommandTeacher`, which trains on a shard
        and votes in its own way. By default, where noisy votes are released and the pool is a dense table: many small
        ridge regressions in coordinates of the pool (:mod:`quorate.ensemble.linear.tiny`); elsewhere logistic
        regressions, which see numbers in units of the pool, and more than 256 columns in its 64 leading directions.
    student : estimator or student, optional
        By default, of noisy votes, a share linear in coordinates of the pool (:mod:`quorate.students.values`), or
        where a pool has none a model of the shares, linear or curved; of released classes a logistic regression. Any
        scikit-learn classifier or Pipeline, unfitted; or a way to learn of :mod:`quorate.students`, such as
        ``VoteShareStudent(shares="auto")``. It sees public points and released answers alone.
    method : {"auto", "votes", "direct"}, default "auto"
        "auto" takes votes where an argument is given that is for teachers, students or what crosses the boundary; else,
        where ``fit`` gets ``groups``, for more than 10 declared rows a unit, or with a public pool for fewer than 2,000
        declared units whose number of rows is not declared; else the direct method. How many rows a unit has is never
        read for that.
    classes : sequence of str, int or bool
        Every label there may be, in the order of ``predict_proba``. Required: the labels that happen to be in the
        data are private.
    epsilon, delta : float
        What this fit may cost; ε > 0, 0 < δ < 1. There is no default.
    n_teachers : int or "auto"
        K.
    queries : int, "auto", "all" or a strategy
        ℓ, the public points whose labels are released. A strategy of :mod:`quorate.labelling.active`, such as
        ``Margin(300)``, chooses them from the answers released so far, up to its cap; price and noise are the cap's.
    mechanism : "auto", the name of a mechanism, or a mechanism
        What crosses the boundary: any of :mod:`quorate.mechanisms` that answers from votes, or one of your own, whose
        privacy the guarantee calls your statement. A name, or a class, leaves its noise to the budget, which buys the
        least that the schedule allows.
    online_answers : int, default 0
        Answers kept back for :meth:`ask`, at the same noise and inside the same cap.
    ledger : path or Ledger, optional
        A path: a new ledger gets ``Budget(epsilon, delta)``, an existing one must have that much left. None keeps it
        in memory, and the guarantee says that nothing durable was recorded.
    unit : str, optional
        The word for whose data is protected; "person" where ``groups`` are given to ``fit``, else "record".
    whole_ids : bool, default False
        Whether ``groups`` are whole numbers below 2⁵³: floats are taken then, and any other id is none.
    n_records : int, optional
        Number of private units, where it may be published. Where it is needed and not declared it is read, and the
        guarantee says that it is treated as public.
    n_rows : int, optional
        Number of private rows, where ``groups`` are given to ``fit`` and it may be published: the number of teachers
        follows from rows and units. Where it is not declared, it is read if `n_records` is read too, and the guarantee
        says so; beside a declared `n_records` it is not read, and each unit counts as one row.
    partition : {"auto", "hash", "balanced", "unit"}
        By a keyed hash of the unit; equal sizes (replace only); a teacher a unit, as "auto" takes it where that fits.
    declined : {"drop", "random"}
        What becomes of a query that was declined. One that was never asked has no label either way.
    class_shares : mapping, optional
        Shares of classes, such as ``{"yes": 0.04}``: a public statement, never read off the private labels.
    decision_threshold : {"accuracy", "balanced", "share"}, float or mapping of costs, default "accuracy"
        From which probability on the rarer of two classes is predicted: by `class_shares`, else the second of
        `classes`. "accuracy" is 0.5; "balanced" the mean probability over the public pool, for a high balanced
        accuracy, or where there is none the share that `class_shares` declares; "share" flags as many rows of the pool
        as that, and needs public rows; or a number in (0, 1). Of what errors cost, such as
        ``{"false_negative": 10, "false_positive": 1}``, it is the number from which on calling a row that class costs
        least, where probabilities are calibrated. It is free of charge, leaves probabilities as they are, and may be
        set after ``fit``.
    prior_matching : bool, default False
        For two classes: each teacher sets its own threshold, so that it votes for class 1 as often on the public pool
        as its shard holds it. It keeps strongly regularised teachers of a rare class from voting the larger one
        everywhere; weakly regularised ones it does not help.
    batched : bool, default True
        Whether teachers that are plain logistic regression or ridge classification, bare or at the end of a Pipeline,
        are solved to their optimum by quorate, each from its own shard alone. False leaves every fit to the estimator,
        whose solver stops near the optimum and takes longer. It says nothing to other teachers.
    preprocessing : {"inside", "public"}
        "public" says that steps which are fitted already were fitted on public data.
    n_jobs : int, optional
        Processes; as many as there are cores by default.
    scheduler : DaskScheduler, optional
        Whose workers train the teachers and have them vote on the public pool, or add up the rounds of the direct
        method, in place of this machine: the same votes, and the same sums. :meth:`ask` asks teachers here.
    marginals : float, optional
        Where ``fit`` gets a schema: the share of the budget (of μ²) that noisy counts of the columns get, in (0, 1); by
        default the least within [.1, .3] that tells six parts of a number's range apart, and .1 of the direct method
        where columns are mostly lists, and units fewer than 2,000. Where they are mostly numbers and neither of two
        classes is declared to be rare, its noisy sums over pairs of columns get another .05 to .1.
    neighbours : {"auto", "add-or-remove", "replace"}, default "auto"
        Of the direct method, as :class:`~quorate.PrivateLogisticRegression` has it. Of votes, where ``fit`` gets a
        schema: for which change of one unit the noise of these counts is. By default it is enough for each, as that of
        votes is; for adding or removing alone it is less, and the figure for replacing is beside.
    calibration_share : float, optional
        Which share of the units, in (0, 1), is held out for :meth:`predict_set`, where no public rows have labels:
        nothing learns from them, and one row of each has a part in the limit. It is in the same charge, which is no
        larger for it; `n_records` must be declared. By default none is.
    coverage : float, default 0.9
        Of these sets, of at most three decimals; for another one there is no limit then.
    private_temperature : bool, default False
        Of the direct method, as :class:`~quorate.PrivateLogisticRegression` has it; votes have none.
    allow_hopeless : bool, default False
        Whether to pay for a run that can answer nothing: where even a unanimous vote is unlikely to pass the
        mechanism's test, or noise drowns the mean of all answers. Such a run is refused otherwise.
    unsafe_noise_seed : int, optional
        For tests and demos. The run is reproducible, therefore not private, and everything it writes says so.
    verbose : bool or int, default False
        Whether ``fit`` and ``resume`` show how far they are, ``fit`` with the method first: bars with the time left in
        a terminal or a notebook, else a line every few seconds.

    Attributes
    ----------
    method_ : ChosenMethod
        "votes" or "direct", to which it is equal, and the reason as ``method_.why``.
    student_ : estimator
        The model that may be published: the fitted student, behind the public encoder where rows are encoded; or the
        Pipeline of the direct method.
    guarantee_ : Guarantee
        What was promised, and its caveats.
    released_ : Released
        Of votes: the released answers, in the order of `queries_`.
    queries_ : (n_queries,) int array
        Of votes: rows of the public pool that were asked; by a strategy, in the order in which it asked.
    ex_post_epsilon_ : float or None
        What the answers drawn so far cost, read after the fact where a strategy stopped early; `guarantee_` holds.
    recipe_ : Recipe
        Of votes: K, ℓ and the mechanism, with a reason for each choice that was left open.
    n_teachers_, mechanism_ : int, mechanism
        Of votes: K, and what crossed the boundary: those of `recipe_`.
    epsilon_, delta_ : float
        ε and δ of `guarantee_` as they are printed.
    ledger_ : Ledger or path
        Where the fit was charged: `ledger`, or the one in memory.
    plan_ : PlannedRun or DirectPlan
        What was expected beside what came; of the direct method, coordinates, settings and noise.
    classes_ : (n_classes,) array
        The declared classes.
    pool_ : frame, (n_rows, n_columns)
        Where ``fit`` got a schema: the rows that were drawn from noisy counts. They may be published.
    n_features_in_, feature_names_in_ : int, (n_features,) array of str
        Width of the public pool, and the names of its columns where they are texts.

    Notes
    -----
    Privacy: what ``fit`` leaves in public attributes, and all that :meth:`ask` ever answers, is (ε, δ)-differentially
    private for one unit of the private rows. Refusals of whole tables, timing and the operator's own access are
    outside the guarantee.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from quorate import PrivateClassifier, PublicPool
    >>> X, y = make_classification(6_000, n_features=8, random_state=0)
    >>> clf = PrivateClassifier(classes=[0, 1], epsilon=2.0, delta=1e-5, n_records=5_000)
    >>> clf.fit(X[:5_000], y[:5_000], public=PublicPool(X[5_000:5_200])).score(X[5_200:], y[5_200:]) > 0.7
    True
    >>> clf.method_
    direct: where a record is one row it was ahead of votes on most tables measured
    """

    _called = "PrivateClassifier"

    teacher: Any = None
    student: Any = None
    _: KW_ONLY
    method: Literal["auto", "votes", "direct"] = "auto"
    classes: Sequence[Any] | None = None
    class_shares: Mapping[Any, float] | None = None
    decision_threshold: DecisionThreshold | Mapping[str, float] = "accuracy"
    private_temperature: bool = False

    @tables_by_name
    def fit(
        self, X: Any, y: Any, *, public: Any = None, groups: Any | None = None, schema: Any = None
    ) -> PrivateClassifier:
        """Learn by the method that public facts choose, and keep what may be published.

        By votes, each call is a release of its own and is charged. By the direct method the same fit on the same data
        in the same ledger goes on where it was broken off, and costs nothing when it is finished.

        Parameters
        ----------
        X : (n_records, n_features) array, sparse matrix, pandas or polars frame
            Private rows.
        y : (n_records,)
            Private labels, all in `classes`.
        public : PublicPool, optional
            Public unlabelled rows with the same columns. Votes need them, or a schema; what the direct method does
            without both says :meth:`quorate.PrivateLogisticRegression.fit`.
        groups : (n_records,), optional
            Whose row it is. The guarantee is then for everything of one person.
        schema : Schema or mapping of str to declaration, optional
            Where there are no public rows: what the columns of the frame hold, as :class:`~quorate.Schema` takes it. A
            tenth of the budget pays for noisy counts of each column, in the same charge, and rows drawn from them are
            the public ones. By the direct method, where columns are mostly numbers and neither of two classes is
            declared to be rare, up to another tenth pays for noisy sums over pairs of columns.

        Raises
        ------
        InvalidParameter, DataRefused
            If an argument or a table is wrong; nothing was charged.
        BudgetExhausted
            If the ledger has too little left; nothing was fitted or charged.
        KeyboardInterrupt
            With a note that says whether anything was charged, and what goes on with it.

        Warns
        -----
        QuorateWarning
            For each caution of :func:`quorate.check`, with its code, before anything is charged.
        PrivacyWarning
            Where the private rows look scaled by what was fitted on all of them, with check's own sentence.
        """
        method, verbose = self._chosen(groups=groups, public=public, schema=schema), wanted(self.verbose)
        if verbose:
            say(f"method: {method.in_words}")
        if method == "direct":
            rounds = self._direct()
            try:
                rounds.fit(X, y, public=public, groups=groups, schema=schema)
            except BudgetExhausted as refusal:
                raise self._of_begun_votes(refusal) from None
            return self._keep(method, rounds)
        metadata, nonce = self._metadata("fit"), secrets.token_hex(16)
        task = self._task(X, y, public=public, groups=groups, schema=schema, nonce=nonce)
        warn_before_charge(task)
        budget, guard = Budget(task.facts.epsilon, task.facts.delta), RollbackGuard()
        with session(self.ledger, budget=budget, guard=guard, seeded=task.noise.seeded) as ledger:
            result = charged(task, ledger, nonce=nonce, of=by_fit(task), verbose=verbose)
            kept = FittedRun.of(result, ledger, guard, metadata)
        self._forget()
        self._take(kept)
        return self._keep(method)

    @tables_by_name
    def resume(
        self, X: Any, y: Any, *, public: Any = None, groups: Any | None = None, schema: Any = None
    ) -> PrivateClassifier:
        """Go on with a fit whose process ended: train the same teachers again, and charge nothing.

        The ledger that the fit was charged to, the key beside it and the same data give the same teachers and the same
        student. What was kept back for :meth:`ask` and not asked yet may be asked, and earlier questions get their
        answers again. A fit that was interrupted releases the labels that it still owes.

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
            If it holds no fit of these arguments, public rows and versions of libraries.
        """
        refuse_lost_ledger(self.ledger)
        method = self._begun(self._chosen(groups=groups, public=public, schema=schema))
        if method == "direct":
            return self._keep(method, self._direct().resume(X, y, public=public, groups=groups, schema=schema))
        verbose, metadata = wanted(self.verbose), self._metadata("resume")
        task = self._task(X, y, public=public, groups=groups, schema=schema, begin=False, try_models=False)
        guard = RollbackGuard()
        with session(self.ledger, budget=None, guard=guard) as ledger:
            kept = FittedRun.of(went_on(task, ledger, of=by_fit(task), verbose=verbose), ledger, guard, metadata)
        self._forget()
        self._take(kept)
        return self._keep(method)

    def _task(
        self,
        X: Any,
        y: Any,
        *,
        public: Any,
        groups: Any | None,
        schema: Any = None,
        begin: bool = True,
        nonce: str = "",
        try_models: bool = True,
    ) -> Task:
        """Check everything and fill in what was left open; nothing is written where `begin` is False. Models of a fit
        that was charged were tried before.
        """
        arguments = {part.name: getattr(self, part.name) for part in fields(RunConfig) if hasattr(self, part.name)}
        as_scheduler(arguments["scheduler"])
        arguments |= {"allow_hopeless": truth("allow_hopeless", self.allow_hopeless), "try_models": try_models}
        arguments["schema"] = schema
        if self.calibration_share is not None:
            arguments["composition"] = terms_of(ledger_location(self.ledger)).composition

        def prepared(beside: Secret[bytes]) -> Task:
            noise, key = noise_and_key(self.unsafe_noise_seed, fit_key(beside, nonce))
            task = prepare(
                RunConfig(**arguments),
                X,
                y,
                public=public,
                groups=only_whole_ids(groups) if truth("whole_ids", self.whole_ids) else groups,
                key=key,
                fingerprint_key=beside,
                noise=noise,
                terms=None if schema is None else terms_of(ledger_location(self.ledger)),
            )
            require_probabilities(task.student.learner, self._rule(task.inputs.classes))
            classes = task.inputs.classes
            require_pool(self._rule(classes), not task.draws_pool, self._class_shares(classes))
            if begin and self.n_teachers == "auto":  # a number that was given is not made from it
                refuse_rows_as_units(task)
            return task

        return with_key(ledger_location(self.ledger), prepared, begin=begin)

    def _check(self, X: Any, y: Any, *, public: Any, groups: Any | None, schema: Any = None, **how: Any) -> CheckResult:
        """Say what :meth:`fit` would do and cost: :func:`quorate.check`."""
        method = self._chosen(groups=groups, public=public, schema=schema)
        if method == "direct":
            return self._direct()._check(X, y, public=public, groups=groups, schema=schema, chosen=method, **how)
        task = self._task(X, y, public=public, groups=groups, schema=schema, begin=False)
        refuse_rows_as_units(task)
        shares = self._class_shares(task.inputs.classes)
        return check_of_teachers(task, self.ledger, shares=shares, chosen=method, **how)
