"""From what the user said to a task: every open choice filled in, every table checked, no private row used yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from quorate.accounting import Neighbouring
from quorate.accounting.neighbouring import LABELS_OF, ONE_LABEL, ONE_RECORD
from quorate.arguments import count, one_of
from quorate.data import check_classes, fingerprint, public_digest
from quorate.ensemble import (
    ClassifierTeacher,
    Partition,
    Preprocessing,
    PriorMatchingTeacher,
    Teacher,
    as_teacher,
    change_of_one_teacher,
    check_unfitted,
)
from quorate.errors import DataRefused, InvalidParameter
from quorate.labelling import distinct
from quorate.labelling.active import Strategy
from quorate.mechanisms import Mechanism, check_declared, check_own, for_runs, is_own
from quorate.noise import NoiseSource
from quorate.outcomes import Caution, Severity, caution
from quorate.pipeline.dry_run import rehearse_strategy, rehearse_student, rehearse_teacher
from quorate.pipeline.inputs import Inputs, PrivateRows, Views, check_inputs, look
from quorate.pipeline.models import built_in
from quorate.planning import PublicFacts, Recipe, check_mechanism, recipe
from quorate.release.described import described
from quorate.release.target import floor_budget
from quorate.students import Declined, Student, as_student
from quorate.types import IntArray, Secret, derive


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """What the user asked for: constructor arguments of an estimator, or the sections of ``quorate.toml``.

    Names and meanings are those of :class:`quorate.PrivateClassifier`.
    """

    classes: Sequence[Any]
    epsilon: float
    delta: float
    teacher: Any = None
    student: Any = None
    n_teachers: int | Literal["auto"] = "auto"
    queries: int | Literal["auto", "all"] | Strategy = "auto"
    mechanism: Any = "auto"
    mechanism_fields: Mapping[str, Any] = field(default_factory=dict)
    online_answers: int = 0
    n_records: int | None = None
    unit: str | None = None
    partition: Partition = "hash"
    declined: Declined = "drop"
    preprocessing: Preprocessing = "inside"
    prior_matching: bool = False
    n_jobs: int | None = None
    built_in: bool = False  # the models are ours, and want every frame encoded
    labels_only: bool = False  # features are public, and the private rows are the pool
    classes_were_read: bool = False  # the class list was read off the labels, and is treated as public
    caveats: tuple[str, ...] = ()  # what the guarantee rests on beside, as the estimator knows it
    label_name: str = "y"
    group_name: str = "groups"


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that a journey is made from.

    Parameters
    ----------
    inputs : Inputs
        Both sides of the boundary, checked.
    views : Views
        How teachers and student see rows.
    teacher : estimator or Teacher
        An unfitted scikit-learn classifier, or what trains and votes by itself.
    student : Student
        What learns from the answers.
    facts : PublicFacts
        What the recipe was made from.
    recipe : Recipe
        K, ℓ, the mechanism.
    unit : str
        The word for whose data one slot is.
    n_was_read : bool
        Whether the number of private units was read off the data, and is therefore treated as public.
    partition : {"hash", "balanced"}
        How units meet teachers.
    declined : {"drop", "random"}
        What becomes of a query without an answer.
    preprocessing : {"inside", "public"}
        Whether steps that are fitted already are kept as they are.
    prior_matching : bool
        Whether each teacher votes for class 1 as often, on the pool, as its shard holds it.
    labels_only : bool
        Whether features are public, and labels alone are protected.
    classes_were_read : bool
        Whether the class list was read off the labels, and is therefore treated as public.
    caveats : tuple of str
        What the guarantee rests on beside.
    key, fingerprint_key : Secret[bytes]
        The run's key, and the one that binds data to a ledger; 32 bytes each.
    noise : NoiseSource
        Where privacy noise comes from.
    n_jobs : int
        Processes.
    strategy : Strategy or None
        What chooses the queries from released answers; None where they are fixed before the first answer.
    """

    inputs: Inputs = field(repr=False)
    views: Views = field(repr=False)
    teacher: Any
    student: Student
    facts: PublicFacts
    recipe: Recipe
    unit: str
    n_was_read: bool
    partition: Partition
    declined: Declined
    preprocessing: Preprocessing
    prior_matching: bool
    labels_only: bool
    classes_were_read: bool
    caveats: tuple[str, ...]
    key: Secret[bytes] = field(repr=False)
    fingerprint_key: Secret[bytes] = field(repr=False)
    noise: NoiseSource
    n_jobs: int
    strategy: Strategy | None = None

    @property
    def n_classes(self) -> int:
        """Number of declared classes."""
        return len(self.inputs.classes)

    @property
    def neighbouring(self) -> Neighbouring:
        """What the guarantee compares."""
        return Neighbouring.of(
            "replace-labels" if self.labels_only else change_of_one_teacher(self.partition), self.unit
        )

    @property
    def by_position(self) -> bool:
        """Whether a unit is known by the position of its row, since no ids were given."""
        return self.unit in (ONE_RECORD, ONE_LABEL)

    @property
    def trainer(self) -> Teacher:
        """How one teacher is trained on its shard, and on public rows where it matches priors."""
        if not self.prior_matching:
            return as_teacher(self.teacher, preprocessing=self.preprocessing)
        classifier = ClassifierTeacher(self.teacher, preprocessing=self.preprocessing)
        return PriorMatchingTeacher(classifier, self.views.teacher(self.inputs.public))

    def without_private_rows(self) -> Task:
        """The same task once the private rows are no longer needed."""
        return replace(self, inputs=replace(self.inputs, private=Secret(PrivateRows.none())))

    @cached_property
    def fingerprint(self) -> str:
        """Keyed hash of the private data set, to which its ledger is bound."""
        private = self.inputs.private.reveal()
        return fingerprint(private.X, private.codes, private.unit_keys, self.fingerprint_key, digests=private.digests)

    @cached_property
    def order(self) -> str:
        """Keyed hash of the rows in their order, where a slot is a position; nothing where units have ids.

        The fingerprint does not see a shuffle. By position a shuffle gives every row another slot, so teachers trained
        before and after one must never stand in one ensemble: a row could then be in two of them.
        """
        if not self.by_position:
            return ""
        private = self.inputs.private.reveal()
        hashed = blake2b(key=derive(self.key, "order"), digest_size=16)
        for digest in private.digests:
            hashed.update(digest)
        hashed.update(private.codes.tobytes())
        return hashed.hexdigest()

    @cached_property
    def queries(self) -> IntArray:
        """Rows of the public pool whose votes are counted.

        Points with the same features are one query. Without a strategy, these are the rows to ask, ``(n_queries,)``,
        ascending; with one, all that may be asked, in the order of the stream. The order is drawn with a key derived
        for this purpose alone, and from public rows alone.
        """
        first, _ = distinct(self.inputs.digests)
        rng = np.random.default_rng(int.from_bytes(derive(self.key, "queries"), "big"))
        stream: IntArray = rng.permutation(first)
        return stream if self.strategy is not None else np.sort(stream[: self.recipe.n_queries])

    @cached_property
    def cache_inputs(self) -> dict[str, Any]:
        """What the votes are a function of, beside the run's key: plain values for a stage's key."""
        return {
            "data": self.fingerprint,
            "order": self.order,
            "public": public_digest(self.inputs.public, digests=self.inputs.digests),
            "classes": [repr(each) for each in self.inputs.classes],
            "teacher": described(self.teacher),
            "encoded": self.views.teacher.encoder is not None,
            "n_teachers": self.recipe.n_teachers,
            "n_queries": self.recipe.n_queries,
            "partition": self.partition,
            "preprocessing": self.preprocessing,
            "prior_matching": self.prior_matching,
            "versions": [version(name) for name in ("quorate", "scikit-learn", "numpy")],
            **({} if self.strategy is None else {"strategy": described(self.strategy)}),
        }


def prepare(
    config: RunConfig,
    X: Any,
    y: Any,
    *,
    public: Any,
    groups: Any | None,
    key: Secret[bytes],
    fingerprint_key: Secret[bytes],
    noise: NoiseSource,
) -> Task:
    """Check everything that can be wrong before any private row is used, and fill in what was left open.

    Raises
    ------
    InvalidParameter
        If an argument is of the wrong kind or out of range, or a model of the user's own fails on public rows.
    DataRefused
        If a table is wrong as a whole.
    """
    epsilon, delta = floor_budget(config.epsilon, config.delta)
    one_of("declined", config.declined, ("drop", "random"))
    one_of("partition", config.partition, ("hash", "balanced"))
    one_of("preprocessing", config.preprocessing, ("inside", "public"))
    teacher = built_in("logistic", "teacher") if config.teacher is None else config.teacher
    student = as_student(built_in("logistic", "student") if config.student is None else config.student)
    trained = as_teacher(teacher, preprocessing=config.preprocessing)  # refuses what cannot be one
    check_unfitted(student.learner, preprocessing=config.preprocessing)
    if config.classes is None:
        raise InvalidParameter(
            "classes= is required. Reading the label set from the data can reveal that a rare label is present. "
            'Example: classes=["no", "yes"]'
        )
    mechanism = _mechanism(config.mechanism, config.mechanism_fields, n_classes=len(check_classes(config.classes)))
    online_answers = count("online_answers", config.online_answers)
    n_teachers = None if config.n_teachers == "auto" else count("n_teachers", config.n_teachers, at_least=1)
    unit = unit_of(config.unit, grouped=groups is not None, labels_only=config.labels_only)

    inputs = check_inputs(
        X,
        y,
        public=public,
        classes=config.classes,
        groups=groups,
        label_name=config.label_name,
        group_name=config.group_name,
        labels_only=config.labels_only,
    )
    views = look(inputs, teacher=teacher, student=student.learner, built_in=config.built_in or config.teacher is None)
    if config.teacher is not None and not config.built_in:
        rehearse_teacher(trained, inputs, views)
    if config.student is not None and not config.built_in:
        rehearse_student(student.learner, inputs, views)
    facts = PublicFacts(
        n_records=_n_records(config.n_records, inputs, needed=n_teachers is None),
        n_public=len(set(inputs.digests)),
        n_classes=len(inputs.classes),
        width=views.width,
        epsilon=epsilon,
        delta=delta,
        online_answers=online_answers,
    )
    strategy = config.queries if isinstance(config.queries, Strategy) else None
    if strategy is not None:
        strategy.check(n_points=facts.n_public, n_classes=facts.n_classes)
        rehearse_strategy(strategy, inputs, views)
    made = recipe(
        facts,
        n_teachers=n_teachers,
        n_queries=_n_queries(config.queries, facts.n_public) if strategy is None else strategy.n,
        mechanism=mechanism,
        fields=config.mechanism_fields,
    )
    answers = made.n_queries + made.online_answers
    check_own(made.mechanism, n_teachers=made.n_teachers, n_classes=facts.n_classes, answers=answers)
    student.check(made.mechanism)
    informed = made.mechanism.takes == "votes and predictions"
    if informed and not hasattr(student.learner, "predict_proba"):
        raise InvalidParameter(
            f"{type(made.mechanism).__name__} asks the student how sure it is, and {type(student.learner).__name__} "
            "has no predict_proba; choose another student, or ConfidentNoisyMax"
        )
    if strategy is not None:
        made = _told_of(strategy, made, width=facts.width)
    if made.n_teachers > len(set(inputs.private.reveal().unit_keys)):
        raise DataRefused(
            f"too many teachers: n_teachers={made.n_teachers} is more than there are units in the private table, so "
            "some could only abstain. Give fewer teachers, or the true n_records"
        )
    return Task(
        inputs=inputs,
        views=views,
        teacher=teacher,
        student=student,
        facts=facts,
        recipe=made,
        unit=unit,
        n_was_read=n_teachers is None and config.n_records is None,
        partition=config.partition,
        declined=config.declined,
        preprocessing=config.preprocessing,
        prior_matching=_prior_matching(config.prior_matching, teacher, n_classes=len(inputs.classes)),
        labels_only=config.labels_only,
        classes_were_read=config.classes_were_read,
        caveats=config.caveats,
        key=key,
        fingerprint_key=fingerprint_key,
        noise=noise,
        n_jobs=processes(config.n_jobs),
        strategy=strategy,
    )


def _told_of(strategy: Strategy, made: Recipe, *, width: int) -> Recipe:
    """Add to a recipe what is to be said of a strategy; refuse a mechanism that needs its queries beforehand."""
    if made.mechanism.takes == "votes and predictions":
        raise InvalidParameter(
            f"{type(made.mechanism).__name__} asks a student about queries that are fixed beforehand; "
            "give queries= a number, or take ConfidentNoisyMax"
        )
    name = type(strategy).__name__
    told: tuple[Caution | str, ...] = strategy.cautions(width=width)  # a strategy of version 0.1 says sentences
    heard = (each if isinstance(each, Caution) else caution("strategy", Severity.NOTE, each) for each in told)
    why = f"{name} chooses the queries from released answers, and may stop early: noise and price are those of its cap"
    if not strategy.learns:
        why = f"{name} chooses at most {strategy.n:,} queries from public rows alone"
    return replace(made, why=(*made.why, why), considered=(*made.considered, *heard))


def _mechanism(wish: Any, given: Mapping[str, Any], *, n_classes: int) -> Mechanism | type[Mechanism] | str | None:
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


def _prior_matching(wish: Any, teacher: Any, *, n_classes: int) -> bool:
    if not isinstance(wish, bool):
        raise InvalidParameter(f"prior_matching must be True or False, got {wish!r}")
    if wish and n_classes != 2:
        raise InvalidParameter(f"prior_matching is for two classes, and there are {n_classes}; leave it out")
    if wish:
        PriorMatchingTeacher(ClassifierTeacher(teacher), np.zeros((1, 1)))  # refuses a teacher without scores
    return wish


def unit_of(wish: str | None, *, grouped: bool, labels_only: bool = False) -> str:
    """Return the word for whose data is protected, and refuse one that the rows cannot keep.

    Examples
    --------
    >>> unit_of(None, grouped=True), unit_of(None, grouped=False), unit_of("household", grouped=True)
    ('person', 'record', 'household')
    >>> unit_of(None, grouped=False, labels_only=True), unit_of("patient", grouped=True, labels_only=True)
    ('label', "patient's labels")
    """
    if labels_only:
        return LABELS_OF.format(unit_of(wish, grouped=True)) if grouped else ONE_LABEL
    if wish is None:
        return "person" if grouped else "record"
    if not isinstance(wish, str) or not wish.strip():
        raise InvalidParameter(f'unit must be a word such as "person" or "record", got {wish!r}')
    if wish != "record" and not grouped:
        raise InvalidParameter(
            f'{wish}s may cross shards: unit is "{wish}" but no groups were given. Without them the guarantee would '
            'hold per record only. Pass groups=, or say unit="record"'
        )
    if wish == "record" and grouped:
        raise InvalidParameter(
            'groups were given, but unit is "record"; leave out groups=, or give the word for whose rows they are'
        )
    return wish


def _n_records(declared: int | None, inputs: Inputs, *, needed: bool) -> int | None:
    if declared is not None:
        return count("n_records", declared, at_least=1)
    return len(set(inputs.private.reveal().unit_keys)) if needed else None


def _n_queries(wish: Any, n_public: int) -> int | None:
    if wish == "auto":
        return None
    if wish == "all":
        return n_public
    asked = count("queries", wish, at_least=1, hint='A number, "all", "auto", or a strategy such as Margin(300)')
    if asked > n_public:
        raise InvalidParameter(
            f"queries={asked:,} but the pool has {n_public:,} distinct points; ask at most that many"
        )
    return asked


def processes(wish: int | None) -> int:
    """Return the number of processes: as wished, or as many as there are cores.

    Examples
    --------
    >>> processes(2), processes(None) >= 1
    (2, True)
    """
    if wish is not None:
        return count("n_jobs", wish, at_least=1)
    from joblib import cpu_count

    return int(cpu_count())
