"""A plain linear teacher as its numbers alone: worker processes solve it without loading scikit-learn.

To load scikit-learn takes a worker longer than to solve hundreds of small teachers. The bits are those of
:class:`~quorate.ensemble.ClassifierTeacher`: the same code on the same arrays, in child processes as ever. A shard that
is left to the estimator's own ``fit`` is trained by the teacher itself, which is sent along and loaded there and then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from quorate.data.rows import kind, n_rows, width
from quorate.deferred import linalg, special
from quorate.ensemble.linear.equivalent import fill, is_solved, optimum, settings_of
from quorate.ensemble.linear.newton import Optimum
from quorate.ensemble.teachers.classifier import ClassifierTeacher, ClassifierVoter
from quorate.ensemble.teachers.teacher import AbstainingVoter, Teacher, Voter, untrained
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.types import IntArray

_ROOM = 2  # how many times the usual shard still has to be solved: what is not loads scikit-learn in its own process


@dataclass(frozen=True, eq=False)
class Solved:
    """A shard's optimum and the class code of each label, on the way to the user's process."""

    optimum: Optimum = field(repr=False)
    codes: IntArray = field(repr=False)


@stored_as("quorate.ensemble.bare_linear.BareLinearTeacher")
@dataclass(frozen=True, eq=False)
class BareLinearTeacher:
    """What workers are sent of a teacher that is solved: its kind, its `C` or `alpha`, and what loads it `whole`."""

    logistic: bool
    strength: float
    fit_intercept: bool
    whole: Callable[[], ClassifierTeacher] = field(repr=False)

    keeps_no_global_state: ClassVar[bool] = True  # what is solved here is NumPy's and SciPy's, or scikit-learn's

    def load(self) -> None:
        """In a worker: load what every child would load anew otherwise."""
        _ = linalg.lapack, special.expit

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter | Solved:
        """Solve one shard, as :meth:`ClassifierTeacher.train` does."""
        codes, local = np.unique(y, return_inverse=True)
        if (voter := untrained(codes)) is not None:
            return voter
        try:
            solution = optimum(X, local, self.strength, self.fit_intercept, logistic=self.logistic)
        except MemoryError:
            raise  # as there
        except Exception:  # noqa: BLE001 - as there
            return AbstainingVoter()
        if solution is None:
            return self.whole().train(X, y, seed)
        return Solved(solution, codes.astype(np.int64))


def bare(
    teacher: Teacher, whole: Callable[[], ClassifierTeacher], X: Any, *, n_teachers: int, n_classes: int
) -> BareLinearTeacher | None:
    """Return what may be sent in place of a teacher; None where it has to be sent as it is. `whole`: loads the same in
    a worker process; it has to travel there. `X`: the rows of all shards.
    """
    if type(teacher) is not ClassifierTeacher or not teacher.solves or hasattr(teacher.estimator, "steps"):
        return None
    if kind(X) not in {"numpy", "sparse"} or X.dtype != np.float64:
        return None
    logistic, strength, intercept = settings_of(teacher.estimator)
    rows = _ROOM * -(-n_rows(X) // max(1, n_teachers))
    if not is_solved(rows, width(X), n_classes, logistic=logistic):
        return None
    return BareLinearTeacher(logistic, strength, intercept, whole)


def read_voter(teacher: Teacher, seed: int, loads: Callable[[bytes], Any], data: bytes) -> Any:
    """Read what a worker sent of one teacher with its seed; what was solved is put into the teacher's estimator."""
    voter = loads(data)
    if not (isinstance(voter, Solved) and isinstance(teacher, ClassifierTeacher)):
        return voter
    estimator = teacher.fresh(seed)
    fill(estimator, voter.optimum)
    return ClassifierVoter(estimator, voter.codes)
