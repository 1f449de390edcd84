"""The shard audit: change one unit, train again with the real trainer, and count the teachers that moved.

A teacher has moved where the digest of all that it has learned is another.
"""

from __future__ import annotations

import secrets
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.arguments import count, one_of
from quorate.audit.probe import CHANGES, Change, NeighbouringTable, Probe, Touched, likely_causes, neighbours_of
from quorate.data import as_rows, check_classes, encode_labels, slot_bytes
from quorate.data.rows import Rows, n_rows
from quorate.ensemble import (
    AbstainingVoter,
    ChatVoter,
    Partition,
    Teacher,
    as_teacher,
    partition_rows,
    seeds_of_units,
    train_teachers,
    with_classes,
)
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.stored_names import stored_as
from quorate.types import Secret, derive


def fingerprint(model: object) -> str:
    """Return a digest of a model's parameters: all its state, to the last bit, as pickling would write it.

    Padding inside records is left out; an object that refuses to be written is read by its attributes.
    """
    digest = _Digest()
    digest.add(model)
    return digest.hexdigest()


class _Digest:
    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self._seen: dict[int, tuple[int, object]] = {}

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def _put(self, tag: str, data: bytes = b"") -> None:
        self._hash.update(f"{tag}:{len(data)}:".encode())
        self._hash.update(data)

    def add(self, value: Any) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            self._put(type(value).__name__, repr(value).encode("utf-8", "surrogatepass"))
        elif isinstance(value, (bytes, bytearray)):
            self._put("bytes", bytes(value))
        elif isinstance(value, np.generic):
            self._array(np.asarray(value))
        elif isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            self._put("name", f"{value.__module__}.{value.__qualname__}".encode())
        elif id(value) in self._seen:
            self._put("again", str(self._seen[id(value)][0]).encode())
        else:
            self._seen[id(value)] = (len(self._seen), value)  # kept, or its id could be given to another
            self._compound(value)

    def _compound(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self._array(value)
        elif isinstance(value, Mapping):
            self._put("mapping", str(len(value)).encode())
            for key, inner in sorted(value.items(), key=lambda item: (type(item[0]).__name__, repr(item[0]))):
                self.add(key)
                self.add(inner)
        elif isinstance(value, (set, frozenset)):
            self._put("set", str(len(value)).encode())
            for line in sorted(self._alone(element) for element in value):
                self._put("member", line.encode())
        elif isinstance(value, (list, tuple)):
            self._put(type(value).__name__, str(len(value)).encode())
            for element in value:
                self.add(element)
        else:
            self._object(value)

    def _alone(self, value: Any) -> str:
        """Return the digest of one member of a set, whose place among the others is an accident."""
        member = _Digest()
        member._seen = dict(self._seen)
        member.add(value)
        return member.hexdigest()

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        if array.dtype.names:
            self._put("record", repr((array.dtype.names, array.shape)).encode())
            for name in array.dtype.names:  # field by field: what lies between the fields is not data
                self._array(np.asarray(array[name]))
        elif array.dtype.kind == "O":
            self._put("objects", repr(array.shape).encode())
            for item in array.ravel().tolist():
                self.add(item)
        else:
            self._put("array", repr((array.dtype.str, array.shape)).encode())
            self._put("data", np.ascontiguousarray(array).tobytes())

    def _object(self, value: Any) -> None:
        self._put("object", f"{type(value).__module__}.{type(value).__qualname__}".encode())
        try:
            written = value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001  (locks, generators, handles: what they hold is read as far as it shows)
            self._put("attributes")
            self.add(dict(getattr(value, "__dict__", {})))
            return
        if isinstance(written, str):
            self._put("name", written.encode())
            return
        for part in written[:3]:
            self.add(part)
        for part in written[3:5]:
            self.add(None if part is None else list(part))


#: A pipeline of one's own: ``train(X, y, groups)`` returns the fitted models, in the order of the teachers.
Train: TypeAlias = Callable[[Any, Any, Any], Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardAudit:
    """What the shard audit found.

    `probes`: every change that was tried. `causes`: likely causes where more than one teacher moved, the likeliest
    first.
    """

    probes: tuple[Probe, ...]
    causes: tuple[str, ...] = ()

    @property
    def worst(self) -> int:
        """The largest number of teachers that one unit moved."""
        return max(probe.moved for probe in self.probes)

    @property
    def violated(self) -> bool:
        """Whether one unit moved more than one teacher, changed their number, or stopped them all."""
        return self.worst > 1 or any(probe.resized or probe.stopped for probe in self.probes)

    @property
    def verdict(self) -> str:
        """A plain sentence or two."""
        changes = ", ".join(change for change in CHANGES if any(probe.change == change for probe in self.probes))
        units = len({probe.unit for probe in self.probes})
        if not self.violated:
            return (
                f"No violation found: one unit moved at most {self.worst} teacher ({changes}; {units} units tried). "
                "That is not a proof: other units were not tried."
            )
        return f"VIOLATED: one unit moved {self.worst} teachers ({changes}; {units} units tried). " + " ".join(
            self.causes
        )


@stored_as("quorate.audit.shards.audit_shards")
def audit_shards(
    pipeline: Teacher | Train | Any,
    X: Rows,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    classes: Sequence[Any],
    n_teachers: int | None = None,
    partition: Partition = "hash",
    changes: Sequence[Change] | None = None,
    units: int = 3,
    seed: int | None = None,
    n_jobs: int = 1,
) -> ShardAudit:
    """Check that one unit moves at most one teacher.

    Raises InvalidParameter if an argument is of the wrong kind. DataRefused if the table does not fit.
    PreconditionFailed if two trainings on the same rows differ: then nothing can be compared. Fix the random states.

    `pipeline`: a scikit-learn classifier or Pipeline, or a :class:`~quorate.ensemble.Teacher`: trained by this
    package's own partition and trainer. Or a pipeline of one's own, ``train(X, y, groups) -> list of fitted
    models``, in which `groups` holds the unit of each row and keeps it when rows go or come.
    `X` ``(n_rows, n_features)``: rows to train on: real ones, or a stand-in of the same kind.
    `y` ``(n_rows,)``: labels out of `classes`.
    `groups` ``(n_rows,)``: the unit of each row; None makes every row a unit.
    `classes`: all labels.
    `n_teachers`: K; needed unless `pipeline` is callable.
    `partition`: "hash", "balanced" or "unit": of the package's trainer; not used for a pipeline of one's own. With
    "unit" there are as many teachers as units, and `n_teachers` is not used.
    `changes`: of "add", "remove" and "replace". None: all that the partition claims ("balanced" claims "replace" only);
    all three for a pipeline of one's own.
    `units`: how many units are tried, chosen at random; each costs up to 10 trainings.
    `seed`: chooses the units, the rows that come in, and the teachers' seeds. None: from the operating system.
    `n_jobs`: worker processes of the package's trainer.

    Privacy: the audit looks at private rows and teachers; its result is for whoever may see those. Deterministic
    under a seed; a model is compared to the last bit of its parameters, and by its votes on the table.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    >>> audit_shards(GaussianNB(), X, y, classes=[0, 1], n_teachers=4, units=1, seed=0).worst
    1
    >>> def scaled_together(X, y, groups):
    ...     Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ...     return [GaussianNB().fit(Z[groups % 4 == k], y[groups % 4 == k]) for k in range(4)]
    >>> found = audit_shards(scaled_together, X, y, classes=[0, 1], units=2, seed=0)
    >>> found.worst, found.causes[0].split(":")[0]
    (4, 'something is fitted on the features of all rows together')
    """
    table = _checked_table(X, y, groups, classes)
    rng = np.random.default_rng(secrets.randbits(64) if seed is None else count("seed", seed))
    tried = _checked_changes(changes, partition if _is_ours(pipeline) else "hash")
    train = _trainer(pipeline, classes, n_teachers, partition, Secret(rng.bytes(32)), n_jobs)
    if _is_ours(pipeline) and partition == "unit":
        train = _by_unit(train, table)
    before = _Trained.by(train, table)
    if _Trained.by(train, table).differing(before):
        raise PreconditionFailed(
            "two trainings on the same rows gave different teachers, so that nothing can be compared; "
            "give the pipeline a fixed random_state"
        )
    everyone = list(dict.fromkeys(table.units.tolist()))
    chosen = rng.permutation(len(everyone))[: count("units", units, at_least=1)]
    labels = np.asarray(list(classes), dtype=table.y.dtype)
    probes = tuple(
        _probe(before, _Trained.unless_stopped(train, neighbour, table), change, touched, place)
        for place, unit in enumerate(everyone[index] for index in chosen)
        for change in tried
        for touched, neighbour in neighbours_of(table, unit, change, labels, rng)
    )
    return ShardAudit(probes=probes, causes=likely_causes(probes, before.n))


@dataclass(frozen=True, slots=True)
class _Trained:
    """The teachers of one training: a digest of each one's parameters, and one of its votes."""

    parameters: tuple[str, ...]
    votes: tuple[str, ...]

    @classmethod
    def by(cls, train: _OnTable, table: NeighbouringTable, points: NeighbouringTable | None = None) -> _Trained:
        models = train(table)
        X = (points or table).X
        return cls(tuple(fingerprint(model) for model in models), tuple(_votes(model, X) for model in models))

    @classmethod
    def unless_stopped(cls, train: _OnTable, table: NeighbouringTable, points: NeighbouringTable) -> _Trained | None:
        try:
            return cls.by(train, table, points)
        except DataRefused:
            raise  # the table as a whole: told to its owner before anything is trained
        except Exception:  # noqa: BLE001  (that the rows of one unit can stop everybody is what is looked for)
            return None

    @property
    def n(self) -> int:
        return len(self.parameters)

    def differing(self, other: _Trained) -> frozenset[int]:
        """Return the numbers of the teachers that are not the same."""
        both = range(min(self.n, other.n))
        moved = {k for k in both if (self.parameters[k], self.votes[k]) != (other.parameters[k], other.votes[k])}
        return frozenset(moved | set(range(min(self.n, other.n), max(self.n, other.n))))


_OnTable: TypeAlias = Callable[[NeighbouringTable], Sequence[Any]]


def _votes(model: Any, X: Rows) -> str:
    if isinstance(model, ChatVoter):  # its prompts are its parameters, and asking would cost a request for each row
        return ""
    ask = getattr(model, "vote", None) or getattr(model, "predict", None)
    try:
        return "" if ask is None else fingerprint(np.asarray(ask(X)))
    except Exception:  # noqa: BLE001  (a model of one's own may want rows of another form: its parameters are compared)
        return ""


def _probe(before: _Trained, after: _Trained | None, change: Change, touched: Touched, unit: int) -> Probe:
    stopped = after is None
    after = after or _Trained((), ())
    moved = after.differing(before)
    return Probe(
        change=change,
        touched=touched,
        unit=unit,
        moved=len(moved),
        voted_otherwise=sum(a != b for a, b in zip(after.votes, before.votes, strict=False)),
        resized=after.n != before.n and not stopped,
        stopped=stopped,
        teachers=Secret(moved),
    )


def _is_ours(pipeline: Any) -> bool:
    return hasattr(pipeline, "train") or hasattr(pipeline, "fit")


def _trainer(
    pipeline: Any, classes: Sequence[Any], n_teachers: int | None, partition: Partition, key: Secret[bytes], n_jobs: int
) -> _OnTable:
    if not _is_ours(pipeline):
        if not callable(pipeline):
            raise InvalidParameter(
                f"pipeline must be a classifier, a Teacher or train(X, y, groups), got {type(pipeline).__name__}"
            )
        return lambda table: list(pipeline(table.X, table.y, table.units))
    alone = partition == "unit"
    wanted = 1 if alone else count("n_teachers", n_teachers, at_least=1)
    names = check_classes(classes)
    teacher = as_teacher(with_classes(pipeline, names), classes=names)

    def train(table: NeighbouringTable) -> Sequence[Any]:
        unit_keys = slot_bytes(table.units, len(table.y))
        shards = partition_rows(unit_keys, wanted, key, partition=partition)
        n = int(shards.reveal().max()) + 1 if alone else wanted
        codes = encode_labels(table.y, names)
        trained = train_teachers(
            teacher,
            table.X,
            codes,
            shards,
            n_teachers=n,
            n_classes=len(names),
            key=Secret(derive(key, "run")),
            seeds=seeds_of_units(unit_keys, shards, key) if alone else None,
            n_jobs=n_jobs,
        )
        voters = trained.voters.reveal()
        return [voters[shard] for shard in shards.reveal()] if alone else voters

    return train


def _by_unit(train: _OnTable, original: NeighbouringTable) -> _OnTable:
    """List the teachers of :func:`_trainer`, one a row, by their unit's place in the original table."""
    places = {unit: place for place, unit in enumerate(dict.fromkeys(original.units.tolist()))}

    def by_unit(table: NeighbouringTable) -> Sequence[Any]:
        voters: list[Any] = [AbstainingVoter()] * (len(places) + 1)
        for unit, voter in zip(table.units.tolist(), train(table), strict=True):
            voters[places.get(unit, -1)] = voter
        return voters

    return by_unit


def _checked_table(X: Rows, y: ArrayLike, groups: ArrayLike | None, classes: Sequence[Any]) -> NeighbouringTable:
    rows = as_rows(X)
    labels: NDArray[Any] = np.asarray(y)
    if labels.dtype.kind in "US":
        labels = labels.astype(np.result_type(labels.dtype, np.asarray(list(classes)).dtype))  # room for every class
    units: NDArray[Any] = np.arange(len(labels)) if groups is None else np.asarray(groups)
    if labels.shape != (n_rows(rows),) or units.shape != labels.shape:
        raise DataRefused("y and groups must have one entry for each row of X; their lengths differ")
    if len(classes) < 2:
        raise InvalidParameter(f"classes must hold at least 2 labels, got {len(classes)}")
    if len(set(slot_bytes(units, len(units)))) < 2:
        raise DataRefused("groups must hold at least 2 units: there is nothing to leave out")
    return NeighbouringTable(rows, labels, units)


def _checked_changes(changes: Sequence[Change] | None, partition: Partition) -> tuple[Change, ...]:
    if changes is None:
        one_of("partition", partition, ("hash", "balanced", "unit"))
        return ("replace",) if partition == "balanced" else CHANGES
    if isinstance(changes, str) or not changes:
        raise InvalidParameter(parameter="changes", got=changes, expected=f"a sequence of {', '.join(CHANGES)}")
    for change in changes:
        one_of("changes", change, CHANGES)
    return tuple(changes)
