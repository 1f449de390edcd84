"""What the user asked for: constructor arguments of an estimator, or the sections of ``quorate.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from quorate.arguments import count, one_of, truth
from quorate.data.dialect import PLAIN, Dialect
from quorate.ensemble import ClassifierTeacher, Partition, Preprocessing, PriorMatchingTeacher
from quorate.ensemble.linear.tiny import TinyTeacher
from quorate.errors import InvalidParameter, named
from quorate.labelling.active import Strategy
from quorate.mechanisms import Mechanism, check_declared, for_runs, is_own
from quorate.mechanisms.schedule import check_mechanism
from quorate.run.method_config import MethodConfig
from quorate.students import Declined


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig(MethodConfig):
    """What the user asked for: constructor arguments of an estimator, or the sections of ``quorate.toml``. Names and
    meanings are those of :class:`quorate.PrivateClassifier`.
    """

    classes: Sequence[Any]
    teacher: Any = None
    student: Any = None
    n_teachers: int | Literal["auto"] = "auto"
    queries: int | Literal["auto", "all"] | Strategy = "auto"
    mechanism: Any = "auto"
    mechanism_fields: Mapping[str, Any] = field(default_factory=dict)
    online_answers: int = 0
    n_rows: int | None = None
    partition: Partition | Literal["auto"] = "auto"
    declined: Declined = "drop"
    preprocessing: Preprocessing = "inside"
    prior_matching: bool = False
    batched: bool = True  # plain linear teachers are solved to their optimum here, and not by their own ``fit``
    n_jobs: int | None = None
    memory: int | None = None  # bytes that a run may take; by default a quarter of the machine's
    allow_hopeless: bool = False  # whether to pay for a run that can answer nothing
    built_in: bool = False  # the models are ours, and want every frame encoded
    labels_only: bool = False  # features are public, and the private rows are the pool
    classes_were_read: bool = False  # the class list was read off the labels, and is treated as public
    try_models: bool = True  # whether models of the user's own are tried on public rows, as before anything is charged
    classes_by_shard: bool = False  # parameters name classes by their numbers in a shard, as in earlier runs
    default_teacher: Any = None  # who votes where `teacher` is None and no coordinates of the pool are seen
    default_student: Any = None  # likewise
    earlier_defaults: bool = False  # the models and numbers of teachers that runs had before tiny teachers
    most_tiny: int = 120  # rows of the largest tiny teacher; 30 in earlier runs
    words_as_written: bool = False  # an entry with blanks around it is another category, as in earlier runs
    caveats: tuple[str, ...] = ()  # what the guarantee rests on beside, as the estimator knows it
    left_out: tuple[str, ...] = ()  # columns that are no features, and that the public rows do not have
    pool_name: str = "the public rows"
    label_name: str = "y"
    group_name: str = "groups"
    public_name: str = "public"
    schema: Any = None  # what columns hold, where there are no public rows and a pool is drawn
    marginals: float | None = None  # share of μ² for the noisy counts that it is drawn from
    neighbours: Any = "auto"  # for which change of one unit these are
    dialect: Dialect = PLAIN  # of numbers and dates where there is no pool, whose description has it

    @property
    def names(self) -> dict[str, Any]:
        """What a message calls the labels, the ids and the public side, as arguments."""
        return {key: getattr(self, key) for key in ("label_name", "group_name", "public_name")}


@dataclass(eq=False, repr=False, kw_only=True)
class VoteArguments:
    """The arguments of :class:`quorate.PrivateClassifier` that are this method's own, as its docstring explains them,
    but for the two that stand first.
    """

    n_teachers: int | Literal["auto"] = "auto"
    queries: int | Literal["auto", "all"] | Strategy = "auto"
    mechanism: Any = "auto"
    online_answers: int = 0
    n_rows: int | None = None
    partition: Partition | Literal["auto"] = "auto"
    declined: Declined = "drop"
    prior_matching: bool = False
    batched: bool = True
    preprocessing: Preprocessing = "inside"
    n_jobs: int | None = None
    allow_hopeless: bool = False


def check_declared_rows(config: RunConfig, *, grouped: bool) -> None:
    """Refuse a declared number of rows where each unit is one, or that is below the number of units."""
    if config.n_rows is None:
        return
    rows = count("n_rows", config.n_rows, at_least=1)
    if not grouped:
        raise InvalidParameter(
            f"{named('n_rows')} is for units of several rows, and no ids were given: each row is a unit. Leave it out, "
            f"and declare {named('n_records')}",
            parameter="n_rows",
            got=rows,
        )
    if config.n_records is not None and rows < count("n_records", config.n_records, at_least=1):
        raise InvalidParameter(
            f"{named('n_rows')} must be >= {named('n_records')}, the number of units, got {rows:,} and "
            f"{config.n_records:,}",
            parameter="n_rows",
            got=rows,
        )


def mechanism_asked_for(
    wish: Any, given: Mapping[str, Any], *, n_classes: int
) -> Mechanism | type[Mechanism] | str | None:
    """A mechanism as it is; the name or the class of one; or None where the recipe is to choose."""
    if isinstance(wish, type) and issubclass(wish, Mechanism):
        return check_declared(wish) if is_own(wish) else one_of("mechanism", wish.__name__, for_runs())
    if isinstance(wish, Mechanism) and wish.takes != "sums":
        if is_own(wish):
            check_declared(type(wish))
        check_mechanism(wish, n_classes=n_classes)
        return wish
    name = one_of("mechanism", wish, ("auto", *for_runs()), hint="A mechanism of quorate.mechanisms is taken too")
    if name != "auto":
        return name
    return "NoisyCounts" if given else None


def matches_priors(wish: Any, teacher: Any, *, n_classes: int) -> bool:
    """Whether teachers match priors; refused where there are other than two classes, or teachers have no scores."""
    matching = truth("prior_matching", wish)
    if matching and n_classes != 2:
        raise InvalidParameter(
            f"{named('prior_matching')} is for two classes, and there are {n_classes}; leave it out",
            parameter="prior_matching",
            got=matching,
        )
    if matching and not isinstance(teacher, TinyTeacher):
        PriorMatchingTeacher(ClassifierTeacher(teacher), np.zeros((1, 1)))  # refuses a teacher without scores
    return matching


def queries_asked_for(wish: Any, n_public: int, *, strategies: bool = True) -> int | None:
    """How many of so many distinct points are asked; None where the recipe is to choose."""
    if wish in ("auto", "all"):
        return None if wish == "auto" else n_public
    hint = 'A number, "all", "auto", or a strategy such as Margin(300)' if strategies else 'A number, "all" or "auto"'
    n_queries = count("queries", wish, at_least=1, hint=hint)
    if n_queries > n_public:
        raise InvalidParameter(
            f"{named('queries', n_queries)} but the pool has {n_public:,} distinct points; ask at most that many",
            parameter="queries",
            got=n_queries,
        )
    return n_queries
