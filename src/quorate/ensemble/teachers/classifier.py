"""Any scikit-learn style classifier or Pipeline as a teacher, on one thread.

XGBoost and LightGBM bring thread pools of their own, and LightGBM times two ways of summing its histograms and takes
the quicker one: what it rounds would then depend on what else the machine does, and so on other teachers. They are set
so that the same shard gives the same trees to the last bit.
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from quorate.arguments import truth
from quorate.data.rows import n_rows
from quorate.ensemble.linear.equivalent import fit_to_optimum, is_equivalent
from quorate.ensemble.teachers.class_names import LabelledEstimator, fit_named, names_classes
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, Voter, by_halves, other_classes, untrained
from quorate.ensemble.teachers.unfitted import Preprocessing, check_unfitted, is_fitted, is_plain, library_of, parts
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.types import IntArray

_THREADS = {"xgboost": "n_jobs", "lightgbm": "n_jobs", "catboost": "thread_count"}
_EXACTLY = {"lightgbm": {"deterministic": True, "force_row_wise": True}}
_WAYS = {"force_row_wise", "force_col_wise"}


def on_one_thread(estimator: Any) -> None:
    """Set what keeps the parts of one teacher's own copy on one thread; nothing else of it is changed."""
    if not hasattr(estimator, "get_params"):
        return
    parameters = estimator.get_params(deep=True)
    changed = {
        name: 1 for name, value in parameters.items() if name.rpartition("__")[2] == "n_jobs" and value not in (None, 1)
    }
    for prefix, part in [("", estimator), *((f"{name}__", value) for name, value in parameters.items())]:
        library = type(part).__module__.partition(".")[0]
        if library not in _THREADS or not hasattr(part, "set_params"):
            continue
        changed[f"{prefix}{_THREADS[library]}"] = 1
        own = part.get_params()
        exact = _EXACTLY.get(library, {})
        if _WAYS & own.keys():  # its owner has chosen the way
            exact = {name: value for name, value in exact.items() if name not in _WAYS}
        changed.update({f"{prefix}{name}": value for name, value in exact.items()})
    if changed:
        estimator.set_params(**changed)


# Libraries whose fit and predict keep nothing in the process but what NumPy's global generator holds.
_WITHOUT_GLOBAL_STATE = ("sklearn", "numpy", "scipy")
# What copies may share, since nothing can change it.
_ATOMS = (type(None), bool, int, float, str)


@stored_as("quorate.ensemble.classifier.ClassifierTeacher")
@dataclass(frozen=True, eq=False)
class ClassifierTeacher:
    """Train a fresh copy of a classifier on one shard.

    Parameters
    ----------
    estimator : object
        Unfitted, with ``fit(X, y)`` and ``predict(X)``. It is never fitted itself: each teacher gets a deep copy,
        with every nested ``random_state`` set from the teacher's own seed, and on one thread. A class without
        ``get_params`` is made anew from its constructor's arguments (:mod:`quorate.ensemble.teachers.unfitted`).
    preprocessing : {"inside", "public"}, default "inside"
        "public" keeps transformers that are already fitted, on public data, as they are.
    batched : bool, default True
        Whether plain logistic regression and ridge classification, bare or at the end of a Pipeline, are solved here to
        their optimum (:mod:`quorate.ensemble.linear.equivalent`), each teacher by itself. False leaves every fit to the
        estimator, whose solver stops near the optimum. No other estimator is touched either way.
    classes : tuple, optional
        The declared classes, where a parameter of the estimator names one (:meth:`with_classes`): it is then fitted on
        these, and not on numbers.

    Raises
    ------
    InvalidParameter
        See :func:`~quorate.ensemble.check_unfitted`; or if the estimator cannot be copied.

    Notes
    -----
    Labels are numbered 0..k-1 inside the shard before they reach the classifier, and mapped back after, so that a
    learner that insists on contiguous labels works where a class is missing; where a parameter names a class, they are
    the declared classes themselves (:mod:`quorate.ensemble.teachers.class_names`). An empty shard abstains; a shard of
    one class votes for it; an exception in ``fit`` or ``predict`` abstains. MemoryError alone passes, to be settled
    by a second run with nothing beside it.

    Privacy: what comes back depends on the shard, the seed and the parameters alone.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> teacher = ClassifierTeacher(LogisticRegression())
    >>> voter = teacher.train(np.array([[-1.0], [1.0]]), np.array([4, 7]), 0)
    >>> voter.vote(np.array([[-2.0], [3.0]]))
    array([4, 7])
    """

    estimator: Any
    preprocessing: Preprocessing = "inside"
    batched: bool = True
    classes: tuple[Any, ...] | None = None
    left_out_where_none: ClassVar[tuple[str, ...]] = ("classes",)  # of what stages are keyed by

    def __post_init__(self) -> None:
        truth("batched", self.batched)
        check_unfitted(self.estimator, preprocessing=self.preprocessing)
        try:
            self.fresh(0)
            # Known from here on: to find them out in every child would load parts of scikit-learn there.
            _ = self.solves, self._is_valid
        except Exception as error:  # noqa: BLE001 - the estimator's own code, before any row is there
            raise InvalidParameter(
                f"the teacher ({type(self.estimator).__name__}) cannot be copied: {type(error).__name__}. "
                "Its constructor must store its arguments as they are (sklearn.base.clone)."
            ) from None

    @property
    def keeps_no_global_state(self) -> bool:
        """Whether every part comes from a library that keeps no state in the process."""
        return _keeps_no_global_state(self.estimator)

    @cached_property
    def solves(self) -> bool:
        """Whether teachers are solved here, and not by the estimator's own ``fit``."""
        return self.batched and is_equivalent(self.estimator)

    def with_classes(self, classes: Sequence[Any]) -> ClassifierTeacher:
        """Return the teacher for these classes: itself where no parameter names one. See :func:`names_classes`."""
        if self.classes is not None:
            other_classes(self, self.classes, classes)
            return self
        return replace(self, classes=tuple(classes)) if names_classes(self.estimator, classes) else self

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard; see :class:`~quorate.ensemble.Teacher`."""
        codes, local = np.unique(y, return_inverse=True)
        if (voter := untrained(codes)) is not None:
            return voter
        try:
            estimator = self.fresh(seed)
            if self.classes is not None:
                return ClassifierVoter(*fit_named(estimator, X, y, self.classes))
            if self.solves:
                fit_to_optimum(estimator, X, local)
            elif self._is_valid:
                from sklearn import config_context

                with config_context(skip_parameter_validation=True):  # a tenth of the time of a small tree
                    estimator.fit(X, local)
            else:
                estimator.fit(X, local)
        except MemoryError:
            raise  # perhaps a neighbour took it: whoever runs the teachers tries again with nothing beside this one
        except Exception:  # noqa: BLE001 - to stop, or to say why, would be an output that depends on private rows
            return AbstainingVoter()
        return ClassifierVoter(estimator, codes.astype(np.int64))

    def fresh(self, seed: int) -> Any:
        """Return an unfitted copy that shares nothing with another, its random states set from `seed`."""
        if self._unfitted is not None:
            fresh = copy(self._unfitted)
            if hasattr(fresh, "random_state"):
                fresh.random_state = _seed_of(seed, "random_state")
            return fresh
        if is_plain(self.estimator) and not hasattr(self.estimator, "get_params"):
            from quorate.ensemble.teachers.plain_step import seeded

            return seeded(self.estimator, _seed_of(seed, "random_state"))
        # deepcopy parts the copy from anything clone hands on as it is, such as a frozen step, so that no two teachers
        # hold one mutable object.
        fresh = deepcopy(self._cloned())
        set_random_states(fresh, seed)
        return fresh

    def _cloned(self) -> Any:
        """Return a clone, which has nothing of what was learned."""
        from sklearn.base import clone

        from quorate.ensemble.teachers.plain_step import with_plain_steps

        estimator = with_plain_steps(self.estimator)
        cloned = clone(_keep_fitted(estimator) if self.preprocessing == "public" else estimator, safe=False)
        on_one_thread(cloned)
        return cloned

    @cached_property
    def _unfitted(self) -> Any | None:
        """A clone that may be copied as it is: of a library's own, holding nothing but numbers, texts and the like."""
        from sklearn.base import BaseEstimator

        if not (self.keeps_no_global_state and isinstance(self.estimator, BaseEstimator)):
            return None
        if type(self.estimator).set_params is not BaseEstimator.set_params:
            return None
        unfitted = self._cloned()
        return unfitted if all(type(value) in _ATOMS for value in vars(unfitted).values()) else None

    @cached_property
    def _is_valid(self) -> bool:
        """Whether it is a library's own, with parameters that it takes: then no copy has to look at them again."""
        if self._unfitted is None:
            return False
        try:
            self._unfitted._validate_params()  # no public method does it; without this one each fit looks by itself
        except Exception:  # noqa: BLE001 - then each fit says so itself, by an abstention
            return False
        return True


@stored_as("quorate.ensemble.classifier.ClassifierVoter")
@dataclass(frozen=True, eq=False)
class ClassifierVoter:
    """A trained classifier, fitted on labels 0..k-1, and the class code that each of these stands for, ``(k,)``."""

    estimator: Any = field(repr=False)
    codes: IntArray = field(repr=False)

    @property
    def keeps_no_global_state(self) -> bool:
        """As for the teacher it came from."""
        return _keeps_no_global_state(self.estimator)

    def vote(self, X: Any, /) -> IntArray:
        """Return one class code per row; -1 wherever the classifier fails or predicts what it never saw."""
        votes: IntArray = by_halves(self._predicted, X, lambda n: np.full(n, ABSTAINED, dtype=np.int64))
        return votes

    def _predicted(self, X: Any) -> IntArray:
        votes = np.full(n_rows(X), ABSTAINED, dtype=np.int64)
        predicted = np.asarray(self.estimator.predict(X)).astype(np.float64)
        if predicted.shape not in {votes.shape, (*votes.shape, 1)}:
            raise ValueError  # as other failures; nobody is told of it
        predicted = predicted.reshape(-1)
        # NaN is neither at least 0 nor below k, so it abstains like any label that was never seen.
        known = (predicted >= 0) & (predicted < self.codes.size) & (predicted == np.floor(predicted))
        votes[known] = self.codes[predicted[known].astype(np.int64)]
        return votes


def set_random_states(estimator: Any, seed: int) -> None:
    """Set every nested ``random_state`` of `estimator` to an int of its own, derived from `seed` and its name."""
    from sklearn.frozen import FrozenEstimator

    if not hasattr(estimator, "get_params"):
        return
    parameters = estimator.get_params(deep=True)
    frozen = tuple(f"{name}__" for name, value in parameters.items() if isinstance(value, FrozenEstimator))
    seeds = {
        name: _seed_of(seed, name)
        for name in parameters
        if (name == "random_state" or name.endswith("__random_state")) and not name.startswith(frozen)
    }
    if seeds:
        estimator.set_params(**seeds)


def _seed_of(seed: int, name: str) -> int:
    """Return an int that every library takes, 0..2^31-1, independent for each parameter's name."""
    digest = blake2b(name.encode(), key=seed.to_bytes(8, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 33


def _keep_fitted(estimator: Any) -> Any:
    """Return a copy in which transformers that are fitted stay so through ``clone``."""
    from sklearn.frozen import FrozenEstimator

    from quorate.ensemble.teachers.plain_step import PlainStep, as_it_is

    copy = deepcopy(estimator)
    if not hasattr(copy, "get_params"):
        return copy
    kept: list[str] = []
    for name, value in sorted(copy.get_params(deep=True).items()):
        learned = value.model if isinstance(value, PlainStep) else value
        if not name.startswith(tuple(kept)) and hasattr(value, "transform") and is_fitted(learned):
            kept.append(f"{name}__")
            if not isinstance(value, FrozenEstimator):
                copy.set_params(**{name: FrozenEstimator(value if learned is value else as_it_is(value))})
    return copy


def _keeps_no_global_state(estimator: Any) -> bool:
    estimator = estimator.estimator if isinstance(estimator, LabelledEstimator) else estimator
    return all(library_of(part) in _WITHOUT_GLOBAL_STATE for part in parts(estimator))
