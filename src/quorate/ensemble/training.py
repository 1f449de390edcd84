"""Train K teachers, each a function of its own shard, its number and the run's key.

A plain linear teacher travels as its numbers alone: worker processes solve it without loading scikit-learn, which takes
one longer than to solve hundreds of small teachers. The bits are those of :class:`~quorate.ensemble.ClassifierTeacher`:
the same code on the same arrays, in child processes as ever. A shard that is left to the estimator's own ``fit`` is
trained by the teacher itself, which is sent along and loaded there and then.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from quorate.arguments import count, real
from quorate.data.fixed_types import fixed_labels, fixed_types
from quorate.data.rows import kind, n_rows, take, width
from quorate.deferred import linalg, special
from quorate.ensemble.ensemble import Ensemble
from quorate.ensemble.linear.equivalent import fill, is_solved, optimum, settings_of
from quorate.ensemble.linear.newton import Optimum
from quorate.ensemble.linear.tiny import TinyRegressor, TinyTeacher
from quorate.ensemble.linear.voters import blas
from quorate.ensemble.partition import rows_of_shards
from quorate.ensemble.teachers.classifier import ClassifierTeacher, ClassifierVoter
from quorate.ensemble.teachers.prior_matching import PriorMatchingTeacher
from quorate.ensemble.teachers.teacher import AbstainingVoter, Teacher, Voter, untrained
from quorate.ensemble.workers.cluster.elsewhere import TASK, map_elsewhere
from quorate.ensemble.workers.isolation import Lost, load_what_children_need, on_one_thread_each, seed_global_generators
from quorate.ensemble.workers.workers import isolated_map, packed, unpacked
from quorate.errors import DataRefused, InvalidParameter
from quorate.stored_names import stored_as
from quorate.types import Secret, derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from quorate.ensemble.workers.cluster.scheduler import DaskScheduler
    from quorate.types import IntArray

Progress: TypeAlias = "Callable[[int, int], None]"

# Several workers get this many tasks each, so that they end at about the same time; one alone waits for no other. Each
# task costs the start of a process, which takes as long as training some dozens of linear teachers.
_TASKS_PER_JOB = 3
# Cells of the rows that are sent at once, where that leaves more than this many teachers to a task.
_MOST_CELLS, _FEWEST_LARGE = 2**23, 16
# A task costs Dask as much as some linear teachers take to solve, so that more of these make one, while it is small.
_MOST_SOLVED, _MOST_SOLVED_CELLS = 4 * TASK, 2**21

_ROOM = 2  # how many times the usual shard still has to be solved: what is not loads scikit-learn in its own process


class Shard(NamedTuple):
    """What one teacher is trained on, or a function computed on, and all that its worker is sent."""

    X: Any
    y: Any
    seed: int


def train_teachers(
    teacher: Teacher,
    X: Any,
    y_codes: IntArray,
    shards: Secret[IntArray],
    *,
    n_teachers: int,
    n_classes: int,
    key: Secret[bytes],
    seeds: Secret[IntArray] | None = None,
    n_jobs: int = 1,
    teacher_cpu_seconds: float | None = None,
    progress: Progress | None = None,
) -> Ensemble:
    """Train all K teachers; the parameters are those of :func:`train_chunk`."""
    voters = train_chunk(
        teacher,
        X,
        y_codes,
        shards,
        numbers=range(count("n_teachers", n_teachers, at_least=1)),
        n_teachers=n_teachers,
        n_classes=n_classes,
        key=key,
        seeds=seeds,
        n_jobs=n_jobs,
        teacher_cpu_seconds=teacher_cpu_seconds,
        progress=progress,
    )
    return Ensemble(voters, n_classes)


def train_chunk(
    teacher: Teacher,
    X: Any,
    y_codes: IntArray,
    shards: Secret[IntArray],
    *,
    numbers: range,
    n_teachers: int,
    n_classes: int,
    key: Secret[bytes],
    seeds: Secret[IntArray] | None = None,
    n_jobs: int = 1,
    teacher_cpu_seconds: float | None = None,
    progress: Progress | None = None,
) -> Secret[tuple[Voter, ...]]:
    """Train the teachers with these numbers; the rest of a run may be trained at another time or place.

    `teacher`: how one voter is trained on one shard. `X`: private rows ``(n_rows, n_features)``, an array, CSR matrix
    or frame; a shard reaches the teacher in the same kind of container. `y_codes`: class codes 0..C-1, ``(n_rows,)``.
    `shards`: of each row, from :func:`~quorate.ensemble.partition_rows`. `numbers`: which of the teachers 0..K-1.
    `n_teachers`, `n_classes`: K and C. `key`: the run's. Teacher i draws from ``derive(key, "teacher", i)`` and nothing
    else. `seeds`: by shard number, ``(n_teachers,)``, in place of those: where each shard is one unit, from
    :func:`~quorate.ensemble.seeds_of_units`. `n_jobs`: worker processes, one thread each. `teacher_cpu_seconds`: CPU
    time, user and system, after which a teacher abstains. Wall-clock time never counts: one slow teacher would make
    others abstain. `progress`: called with (teachers done, teachers in all); no private number.

    Voter i is the same, bit for bit, whatever `numbers` and `n_jobs` are. A teacher that raises, crashes, runs out of
    memory or CPU time, or gives back something that is no voter abstains; the others go on, and nothing it printed,
    warned of or logged is seen. Raises InvalidParameter if a number is out of range, `teacher` is none, or it cannot be
    sent to a worker process; PreconditionFailed if a worker process cannot import what the teacher is made of;
    DataRefused if the rows, labels and shards do not match, or a label is outside the classes.
    """
    from cloudpickle import loads  # type: ignore[import-untyped]

    pickled = pickled_teacher(teacher)
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    n_classes = count("n_classes", n_classes, at_least=1)
    if len(numbers) and not (min(numbers) >= 0 and max(numbers) < n_teachers):
        raise InvalidParameter(parameter="numbers", got=numbers, expected=f"teachers 0..{n_teachers - 1}")
    if teacher_cpu_seconds is not None:
        teacher_cpu_seconds = real("teacher_cpu_seconds", teacher_cpu_seconds, above=0)
    shard_of = shards.reveal()
    check_rows(X, y_codes, shard_of, n_teachers, n_classes)
    rows = rows_of_shards(shard_of, n_teachers, numbers)
    seed_of = partial(_seed_of, key, seeds)

    def shard(number: int) -> Shard:
        return Shard(rows_alone(X, rows[number]), y_codes[rows[number]], seed_of(number))

    if isinstance(
        teacher.classifier if isinstance(teacher, PriorMatchingTeacher) else teacher, TinyTeacher | TinyRegressor
    ):
        with blas().limit(limits=1):  # as in a worker, so that rounding is the same
            tiny = tuple(_solved_here(teacher, shard(number)) for number in numbers)
        if progress is not None and len(numbers):
            progress(len(numbers), len(numbers))
        return Secret(tiny)
    voters: dict[int, Voter] = {}
    sent = lightest(teacher, pickled, X, n_teachers=len(numbers), n_classes=n_classes)
    work = partial(train_batch, sent, teacher_cpu_seconds)
    batch = _teachers_a_task(len(numbers), count("n_jobs", n_jobs, at_least=1), cells_each=_cells(X) // n_teachers)
    for number, result in isolated_map(work, shard, numbers, n_jobs=n_jobs, batch=batch):
        voters[number] = voter_of(result, partial(read_voter, teacher, seed_of(number), loads))
        if progress is not None:
            progress(len(voters), len(numbers))
    return Secret(tuple(voters[number] for number in numbers))


def train_elsewhere(
    teacher: Teacher,
    parts: Iterable[tuple[range, Any, IntArray, Secret[IntArray]]],
    *,
    n_teachers: int,
    n_classes: int,
    key: Secret[bytes],
    scheduler: DaskScheduler,
    seeds: Secret[IntArray] | None = None,
) -> Iterator[tuple[int, Secret[Voter]]]:
    """Train teachers on the workers of a scheduler, the same as here bit for bit: yield ``(number, voter)`` of each, in
    the order in which workers are done with them.

    `parts`: the rows of some teachers at a time, ``(numbers, rows, codes, shards)``; a part is asked for when the last
    one was sent. `scheduler`: whose workers train them. All else, and the errors, are those of
    :func:`~quorate.ensemble.train_chunk`; and Interrupted if the scheduler or its workers are gone.
    """
    from cloudpickle import loads

    n_teachers, n_classes = count("n_teachers", n_teachers, at_least=1), count("n_classes", n_classes, at_least=1)
    pickled = pickled_teacher(teacher)
    seed_of = partial(_seed_of, key, seeds)

    def shards() -> Iterator[tuple[int, Shard]]:
        for numbers, X, y_codes, of_rows in parts:
            shard_of = of_rows.reveal()
            check_rows(X, y_codes, shard_of, n_teachers, n_classes)
            rows = rows_of_shards(shard_of, n_teachers, numbers)
            for number in numbers:
                mine = rows[number]
                yield number, Shard(rows_alone(X, mine), y_codes[mine], seed_of(number))

    parts = iter(parts)
    with scheduler.connected():  # before a row is read: perhaps nobody answers
        first = next(parts, None)
        if first is None:
            return
        numbers, X, *_ = first  # the other parts are of the same kind, and their shards of the same size
        sent = lightest(teacher, pickled, X, n_teachers=len(numbers), n_classes=n_classes)
        parts = chain([first], parts)
        is_small = _cells(X) * _MOST_SOLVED <= _MOST_SOLVED_CELLS * len(numbers)
        size = _MOST_SOLVED if sent is not pickled and is_small else TASK  # of two, which tell little of the rows
        for number, result in map_elsewhere(scheduler, partial(train_batch, sent, None), shards(), size=size):
            yield number, Secret(voter_of(result, partial(read_voter, teacher, seed_of(number), loads)))


def _cells(X: Any) -> int:
    return int(X.nnz if kind(X) == "sparse" else n_rows(X) * width(X))


def _solved_here(teacher: Teacher, shard: Shard) -> Voter:
    """Train a tiny teacher in this process: a little arithmetic, in less time than a process takes to start."""
    try:
        return teacher.train(shard.X, shard.y, shard.seed)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - to stop, or to say why, would be an output that depends on private rows
        return AbstainingVoter()


def pickled_teacher(teacher: Teacher) -> bytes:
    """Return the teacher as it is sent to worker processes; refuse what is none, or cannot be sent."""
    if not isinstance(cast("Any", teacher), Teacher):
        raise InvalidParameter(
            f"teacher must have train(X, y, seed), got {type(teacher).__name__}. "
            "Wrap a classifier in ClassifierTeacher."
        )
    return packed(teacher, f"the teacher ({type(teacher).__name__})")


def lightest(teacher: Teacher, pickled: bytes, X: Any, *, n_teachers: int, n_classes: int) -> bytes:
    """What workers are sent to train such shards: the numbers alone of a teacher that is solved, else `pickled`."""
    from cloudpickle import loads

    light = bare(teacher, partial(loads, pickled), X, n_teachers=n_teachers, n_classes=n_classes)
    return pickled if light is None else pickle.dumps(light)


def _teachers_a_task(n_teachers: int, n_jobs: int, *, cells_each: int) -> int:
    """Return how many teachers one task trains: a matter of speed and memory, which no teacher can tell."""
    batch = n_teachers if n_jobs == 1 else -(-n_teachers // (_TASKS_PER_JOB * n_jobs))
    return max(1, min(batch, max(_FEWEST_LARGE, _MOST_CELLS // max(1, cells_each))))


def teacher_seed(key: Secret[bytes], number: int) -> int:
    """Return the seed of one teacher, 0..2^63-1, derived from the run's key and its number alone."""
    return int.from_bytes(derive(key, "teacher", number)[:8], "big") >> 1


def _seed_of(key: Secret[bytes], seeds: Secret[IntArray] | None, number: int) -> int:
    return teacher_seed(key, number) if seeds is None else int(seeds.reveal()[number])


def train_batch(pickled: bytes, cpu_seconds: float | None, shards: list[Shard]) -> list[bytes | Lost]:
    """In a worker: train one voter per shard, each in a child process, and return them pickled."""
    from cloudpickle import dumps

    teacher = unpacked(pickled, "the teacher")
    together = bool(getattr(teacher, "keeps_no_global_state", False))
    if "sklearn" in sys.modules:
        # What its checks look up once in a process (which libraries of frames there are) is looked up here, on one
        # made-up row, and not in every child anew.
        from sklearn.utils import check_X_y

        check_X_y(np.zeros((1, 1)), np.zeros(1))
    load_what_children_need()
    if isinstance(teacher, BareLinearTeacher):
        teacher.load()
    # What libraries and this package define is pickled by name either way, and pickle is the quicker one.
    by_name = together and isinstance(teacher, _BY_NAME)
    work = partial(_train, teacher, pickle.dumps if by_name else dumps)
    return on_one_thread_each(work, together, cpu_seconds, shards)


def _train(teacher: Teacher, dumps: Callable[[Any], bytes], shard: Shard) -> bytes:
    seed_global_generators(shard.seed)
    return dumps(teacher.train(shard.X, shard.y, shard.seed))


def voter_of(result: bytes | None, unpickle: Callable[[bytes], Any]) -> Voter:
    """Return what a worker sent back as a voter; one that abstains where it is none."""
    if result is None:
        return AbstainingVoter()
    try:
        voter = unpickle(result)
    except Exception:  # noqa: BLE001 - a voter that does not travel is one more way for a teacher to fail
        return AbstainingVoter()
    return voter if isinstance(voter, Voter) else AbstainingVoter()


def rows_alone(X: Any, rows: IntArray) -> Any:
    """Take a shard's rows without a trace of those they stood among, in types of
    :func:`~quorate.data.fixed_types.fixed_types`.

    A pandas frame would keep two traces more: the index, and a categorical column's categories from the whole private
    table. Here they are the shard's own values, sorted unless they were ordered, numbers among them as floats.
    """
    shard = fixed_types(take(X, rows))
    if kind(X) != "pandas":
        return shard
    alone = shard.reset_index(drop=True)
    for position, dtype in enumerate(alone.dtypes):
        if hasattr(dtype, "categories"):
            alone.isetitem(position, _categories_alone(alone.iloc[:, position]))
    return alone


def _categories_alone(series: Any) -> Any:
    import pandas as pd

    used = series.cat.remove_unused_categories()
    own = fixed_labels(used.cat.categories)
    used = used.cat.rename_categories(pd.Index(own, dtype=None if own else object))
    if used.cat.ordered:
        return used
    return used.cat.reorder_categories(sorted(own, key=lambda value: (str(type(value)), value)))


def check_rows(X: Any, y_codes: IntArray, shards: IntArray, n_teachers: int, n_classes: int) -> None:
    """Refuse rows, labels and shards that do not match, as :func:`train_chunk` does."""
    if not n_rows(X) == len(y_codes) == len(shards):
        raise DataRefused("the private rows, their labels and their shards differ in number; pass one of each per row")
    if not np.issubdtype(np.asarray(y_codes).dtype, np.integer):
        raise DataRefused("the private labels must be class codes (integers 0..C-1); encode them by classes first")
    if len(y_codes) and not (np.min(y_codes) >= 0 and np.max(y_codes) < n_classes):
        raise DataRefused(f"a private label is outside the {n_classes} classes; declare every class that may occur")
    if len(shards) and not (np.min(shards) >= 0 and np.max(shards) < n_teachers):
        raise InvalidParameter(f"shards must be numbers 0..{n_teachers - 1}; partition the rows for these n_teachers")


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


# Teachers of which libraries and this package define everything.
_BY_NAME = ClassifierTeacher | PriorMatchingTeacher | BareLinearTeacher


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
