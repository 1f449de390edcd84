"""Votes without private rows: what K teachers on disjoint shards of n rows would say, from a few dozen teachers.

Half of them are drawn from one half of the labelled rows and half from the other, so that what a student loses by the
step from whole to half tells what it gains to the true size: ``docs/theory/rehearsals.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from quorate.ambient import unwarned
from quorate.data.rows import take
from quorate.deferred import special
from quorate.ensemble import ABSTAINED
from quorate.ensemble.linear.voters import votes_of_linear
from quorate.ensemble.training import rows_alone
from quorate.labelling.release_log import ReleaseBuilder
from quorate.mechanisms import Mechanism, QueryMechanism, StreamMechanism
from quorate.planning.rehearsal.material import Material
from quorate.release.charge import noise_and_key
from quorate.run.public_facts import PublicFacts
from quorate.students import Student, StudentData
from quorate.students.scores import BY_PROBABILITIES, ScoredRows, probabilities_of
from quorate.types import FloatArray, IntArray

MOST_SEEN = 0.95  # of the pool's rows in a shard, beyond which too few teachers are left that have not seen a row
ALONE = 8  # teachers of many rows, which differ less than those of few


@dataclass(frozen=True, slots=True, eq=False)
class SampledVotes:
    """Votes of sampled teachers on the pool: each half's shares, how many `independent` ones they are worth, how often
    one is right on rows that none was trained on.
    """

    shares: FloatArray
    independent: float
    right: float
    one_class: bool

    @property
    def ensembles(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Shares of all teachers, and of each half alone."""
        return self.shares.mean(axis=0), self.shares[0], self.shares[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shards:
    """What a partition makes of the units: `voters`, shards that hold any, and units and rows of one, on average."""

    voters: int
    units_each: float | None
    rows_each: float

    @classmethod
    def of(cls, facts: PublicFacts, n_teachers: int) -> Shards:
        """Return the shards of a run: by a hash, but for persons of several rows with a teacher each."""
        n_units = facts.n_records or n_teachers
        rows_each = (facts.rows or n_units) / n_units
        if facts.n_rows is not None and n_units == n_teachers and rows_each > 1:
            return cls(voters=n_teachers, units_each=None, rows_each=rows_each)
        empty = (1 - 1 / n_teachers) ** n_units
        voters = max(1, round(n_teachers * (1 - empty)))
        return cls(voters=voters, units_each=n_units / n_teachers, rows_each=rows_each)

    @property
    def rows(self) -> int:
        """Rows of a shard that holds any, on average."""
        units = 1.0 if self.units_each is None else self.units_each / -math.expm1(-self.units_each)
        return max(1, round(units * self.rows_each))

    def drawn(self, rng: np.random.Generator) -> int:
        """Draw how many rows a shard holds that holds any: a Poisson number of units is what a hash leaves to one."""
        if self.units_each is None:
            return max(1, round(self.rows_each))
        lowest = math.exp(-self.units_each)
        units = math.ceil(special.pdtrik(lowest + (1 - lowest) * rng.random(), self.units_each))
        return max(1, round(max(units, 1) * self.rows_each))


def sample_votes(
    material: Material, trained_on: IntArray, held: IntArray, *, shards: Shards, n_teachers: int, seed: int
) -> SampledVotes | None:
    """Train teachers on shards of the true sizes, and count their votes on the pool; None of shards too large."""
    halves = material.divided(trained_on, 2, np.random.default_rng(seed))
    in_pool = 0.0 if material.in_pool is None else 1 - (1 - 1 / material.n_public) ** shards.rows  # of one shard
    if min(map(len, halves)) < shards.rows or in_pool > MOST_SEEN:  # on these a teacher has no vote
        return None
    rng = np.random.default_rng([seed, 1])
    shares, right, one_class = [], [], True
    pool_and_held = material.pool[0], take(material.rows[0], held)
    for half in halves:
        counts = np.zeros((material.n_public, material.n_classes))
        for number in range(n_teachers // 2):
            shard = np.sort(material.drawn(half, shards.drawn(rng), rng))
            on_pool, on_held = _votes(material, shard, pool_and_held, seed=number)
            _add(counts, on_pool, own=None if material.in_pool is None else material.in_pool[shard])
            right.append(float((on_held == material.codes[held]).mean()))
            one_class = one_class and len(np.unique(on_pool)) == 1
        shares.append(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    return SampledVotes(
        shares=np.stack(shares),
        independent=min(n_teachers, len(trained_on) / shards.rows),
        right=float(np.mean(right)),
        one_class=one_class,
    )


def right_alone(material: Material, trained_on: IntArray, held: IntArray, n_rows: int, *, seed: int) -> float:
    """Return how often a teacher of so many rows is right on others: the mean of :data:`ALONE` teachers."""
    rng, right, rows = np.random.default_rng([seed, 3]), [], (take(material.rows[0], held),)
    for number in range(ALONE):
        shard = np.sort(material.drawn(trained_on, n_rows, rng))
        (on_held,) = _votes(material, shard, rows, seed=number)
        right.append(float((on_held == material.codes[held]).mean()))
    return float(np.mean(right))


def _votes(material: Material, shard: IntArray, asked: tuple[object, ...], *, seed: int) -> list[IntArray]:
    """Train one teacher on one shard; where it fails it abstains, as in a run."""
    try:
        with unwarned():
            voter = material.teacher.train(rows_alone(material.rows[0], shard), material.codes[shard], seed)
            quick = [votes_of_linear(voter, rows, material.n_classes) for rows in asked]
            return [np.asarray(voter.vote(rows)) if of is None else of for of, rows in zip(quick, asked, strict=True)]
    except (Exception, SystemExit):  # noqa: BLE001 - the user's own code, on public rows
        return [np.full(rows.shape[0], ABSTAINED, dtype=np.int64) for rows in asked]  # type: ignore[attr-defined]


def _add(counts: FloatArray, votes: IntArray, *, own: IntArray | None) -> None:
    """Add one teacher's votes; on rows of its own shard it has none, since it has seen their labels."""
    heard = votes >= 0
    if own is not None:
        heard[own] = False
    rows = np.flatnonzero(heard)
    counts[rows, votes[rows]] += 1


def whole_votes(shares: FloatArray, n_teachers: int) -> IntArray:
    """Return integer votes ``(n, n_classes)`` of K teachers with these shares; each row adds up to K."""
    exact = shares * n_teachers
    votes = np.floor(exact).astype(np.int64)
    left = n_teachers - votes.sum(axis=1)
    order = np.argsort(-(exact - votes), axis=1, kind="stable")
    place = np.argsort(order, axis=1, kind="stable")
    whole: IntArray = votes + (place < left[:, None])
    return whole


def released_data(
    material: Material,
    shares: FloatArray,
    mechanism: Mechanism,
    asked: IntArray,
    *,
    n_teachers: int,
    voters: int,
    seed: int,
) -> StudentData:
    """Release votes on `asked` rows with the mechanism's own noise, and return what a student sees of it."""
    noise, _ = noise_and_key(seed)
    counts = whole_votes(shares[asked], voters)
    if isinstance(mechanism, StreamMechanism):
        answers = mechanism.release(counts, noise)
    else:
        assert isinstance(mechanism, QueryMechanism)  # noqa: S101 - there are no others
        answers = mechanism.release_many(counts, noise)
    builder = ReleaseBuilder(mechanism, n_queries=len(asked), n_classes=material.n_classes)
    builder.put(0, len(asked), answers)  # type: ignore[arg-type]  # an array is a sequence
    return StudentData(
        pool=material.pool[1],
        points=material.points,
        queries=asked,
        released=builder.released(),
        classes=material.classes,
        n_teachers=n_teachers,
        seed=seed,
        one_unit=material.one_unit,
        prior=material.prior,
        shared=material.coordinates,
    )


def settled(student: Student, data: StudentData) -> Student:
    """Return a student that has chosen among its models by these data, where it compares any."""
    choose = getattr(student, "settled", None)
    with unwarned():
        return student if choose is None else choose(data)


def said_by_student(material: Material, student: Student, data: StudentData, held: IntArray) -> ScoredRows:
    """Fit a student, and return what it says of held-out rows, with probabilities where the score takes them."""
    rows = take(material.rows[1], held)
    with unwarned():
        model = student.fit(data)
        predicted = np.asarray(model.predict(rows))
        probabilities = (
            probabilities_of(model, rows, material.classes) if material.scoring in BY_PROBABILITIES else None
        )
    places = {name: code for code, name in enumerate(material.classes)}
    return material.scored(np.array([places[name] for name in predicted.tolist()]), probabilities, held)
