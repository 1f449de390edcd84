"""What every mechanism promises: each of them runs every test here. A new mechanism adds a line to CASES."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest

from quorate import mechanisms
from quorate.accounting import Event, epsilon, from_json
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    DECLINED,
    ConfidentNoisyMax,
    DistanceToInstability,
    Exponential,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    NoisySum,
    PermuteAndFlip,
    PrivatePrediction,
)
from quorate.noise import OSNoise, SeededNoise

NUMBERS = [0, 0.0, -1.0, float("nan"), float("inf"), float("-inf"), True, np.True_, "3", None, [1.0], 1j]


@dataclass(frozen=True)
class Case:
    """One mechanism with small noise, and what its answers look like."""

    mechanism: Any
    answers: str  # "class", "class or ⊥", "value", "vector"
    widths: tuple[int, ...] = (2, 3, 1000)
    numbers: tuple[str, ...] = ("sigma",)  # fields that are numbers > 0
    bad: dict[str, tuple[object, ...]] = field(default_factory=dict)  # further refusals, field by field
    draws: str = "once"  # "once": one kind of noise, so a row reads the same words alone as in a batch; or "in turns"
    inputs: str = "votes"  # or "scores", which may be negative

    @property
    def name(self) -> str:
        settings = [
            str(v) for v in (getattr(self.mechanism, f.name) for f in fields(self.mechanism)) if isinstance(v, str)
        ]
        return "-".join([type(self.mechanism).__name__, *settings])


BAD_FORM = {"form": ("binar", "", None, 2, True)}
BAD_WHOLE = (0, -1, 1.5, True, "3", None, float("nan"))
CONFIDENT = {"threshold": 6.0, "sigma_threshold": 0.6, "sigma_answer": 0.4}

CASES = [
    Case(GaussianNoisyMax(sigma=0.4), "class", bad=BAD_FORM),
    Case(GaussianNoisyMax(sigma=0.4, form="binary"), "class", widths=(2,), bad=BAD_FORM),
    Case(NoisyCounts(sigma=0.4), "vector", bad=BAD_FORM),
    Case(NoisyCounts(sigma=0.4, form="binary"), "value", widths=(2,), bad=BAD_FORM),
    Case(
        NoisySum(scale=0.4, grid=4, form="shares"),
        "vector",
        numbers=("scale",),
        bad={"grid": (*BAD_WHOLE, 2**41), "form": ("share", "", None, 2), "noise": ("Laplace", None, True)},
    ),
    Case(NoisySum(scale=0.4, grid=4, form="shares", noise="gaussian"), "vector", numbers=("scale",)),
    Case(LaplaceNoisyMax(laplace_scale=0.4), "class", numbers=("laplace_scale",)),
    Case(ConfidentNoisyMax(**CONFIDENT), "class or ⊥", numbers=tuple(CONFIDENT), bad=BAD_FORM, draws="in turns"),
    Case(
        ConfidentNoisyMax(**CONFIDENT, form="binary"),
        "class or ⊥",
        widths=(2,),
        numbers=tuple(CONFIDENT),
        bad=BAD_FORM,
        draws="in turns",
    ),
    Case(
        InteractiveNoisyMax(**CONFIDENT, n_teachers=12, confidence=0.9),
        "class or ⊥",
        numbers=tuple(CONFIDENT),
        bad={**BAD_FORM, "n_teachers": BAD_WHOLE, "confidence": (0, 1, 1.5, -0.1, float("nan"), True, "0.5", None)},
        draws="in turns",
    ),
    Case(
        InteractiveNoisyMax(**CONFIDENT, n_teachers=12, confidence=0.9, form="binary"),
        "class or ⊥",
        widths=(2,),
        numbers=tuple(CONFIDENT),
        draws="in turns",
    ),
    Case(
        DistanceToInstability(epsilon=2.0, delta=0.01),
        "class or ⊥",
        numbers=("epsilon", "delta"),
        bad={"delta": (1, 1.0, 2.5), "epsilon": (1e-13,)},
    ),
    Case(Exponential(epsilon=2.0), "class", numbers=("epsilon", "sensitivity"), inputs="scores"),
    Case(
        PermuteAndFlip(epsilon=2.0),
        "class",
        numbers=("epsilon", "sensitivity"),
        bad={"epsilon": (1e-13,)},
        draws="in turns",
        inputs="scores",
    ),
    Case(PrivatePrediction(epsilon=2.0), "class", numbers=("epsilon",), bad={"epsilon": (1e-13,)}, draws="in turns"),
]

every_mechanism = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_width = pytest.mark.parametrize(
    ("case", "n_classes"),
    [pytest.param(case, width, id=f"{case.name}-{width}") for case in CASES for width in case.widths],
)


def votes(n_queries: int, n_classes: int, n_teachers: int = 12, seed: int = 0) -> np.ndarray:
    """Return counts of teachers that agree on some queries and not on others."""
    rng = np.random.default_rng(seed)
    sharp = rng.dirichlet(np.full(n_classes, 0.2), n_queries)
    return rng.multinomial(n_teachers, sharp).astype(np.int64)


def winners(counts: np.ndarray) -> np.ndarray:
    return counts.argmax(axis=1)


def test_every_public_mechanism_runs_this_suite():
    public = {name for name in mechanisms.__all__ if hasattr(getattr(mechanisms, name), "release_many")}
    public -= {"Mechanism"}

    assert public <= {type(case.mechanism).__name__ for case in CASES}


@every_mechanism
class TestPrice:
    def test_is_an_event_that_survives_json(self, case):
        event = case.mechanism.event

        assert isinstance(event, Event)
        assert from_json(event.to_json()) == event

    def test_is_finite_and_positive(self, case):
        assert 0 < epsilon(case.mechanism.event, 0.02) < 1e6

    def test_does_not_depend_on_what_was_released(self, case):
        before = case.mechanism.event
        case.mechanism.release(votes(1, case.widths[0])[0], OSNoise())

        assert case.mechanism.event == before


@every_width
class TestRelease:
    def test_one_alone_is_a_batch_of_one(self, case, n_classes):
        for i, row in enumerate(votes(20, n_classes)):
            alone = case.mechanism.release(row, SeededNoise(i))
            batch = case.mechanism.release_many(row[np.newaxis], SeededNoise(i))

            np.testing.assert_array_equal(DECLINED if alone is None else alone, batch[0])

    def test_one_by_one_is_all_at_once(self, case, n_classes):
        if case.draws == "in turns":  # a batch draws one kind of noise after the other; their laws are tested elsewhere
            return
        counts = votes(40, n_classes)
        one, many = SeededNoise(5), SeededNoise(5)

        singles = [case.mechanism.release(row, one) for row in counts]
        singles = np.array([DECLINED if answer is None else answer for answer in singles])

        np.testing.assert_array_equal(singles, case.mechanism.release_many(counts, many))

    def test_has_the_promised_type_shape_and_range(self, case, n_classes):
        counts = votes(60, n_classes)
        many = case.mechanism.release_many(counts, OSNoise())
        single = case.mechanism.release(counts[0], OSNoise())

        assert many.dtype == np.int64
        if case.answers == "vector":
            assert many.shape == counts.shape
            assert (single.dtype, single.shape) == (np.int64, (n_classes,))
        else:
            assert many.shape == (60,)
            assert type(single) is int or (single is None and case.answers == "class or ⊥")
        if case.answers.startswith("class"):
            lowest = DECLINED if case.answers == "class or ⊥" else 0
            assert many.min() >= lowest
            assert many.max() < n_classes

    def test_takes_no_queries(self, case, n_classes):
        answers = case.mechanism.release_many(np.zeros((0, n_classes), dtype=np.int64), OSNoise())

        assert answers.shape[0] == 0
        assert answers.dtype == np.int64

    def test_leaves_the_counts_alone_and_takes_a_read_only_array(self, case, n_classes):
        counts = votes(20, n_classes)
        before = counts.copy()
        counts.setflags(write=False)
        case.mechanism.release_many(counts, OSNoise())

        np.testing.assert_array_equal(counts, before)

    def test_does_not_care_how_the_counts_lie_in_memory(self, case, n_classes):
        counts = votes(20, n_classes)
        striped = np.asfortranarray(np.repeat(counts, 2, axis=0))[::2]

        np.testing.assert_array_equal(
            case.mechanism.release_many(striped, SeededNoise(1)), case.mechanism.release_many(counts, SeededNoise(1))
        )

    def test_a_unanimous_vote_far_above_the_noise_decides(self, case, n_classes):
        for winner in {0, 1, n_classes - 1}:
            counts = np.zeros((50, n_classes), dtype=np.int64)
            counts[:, winner] = 10_000
            answers = case.mechanism.release_many(counts, OSNoise())
            if case.answers.startswith("class"):
                assert set(answers.tolist()) == {winner}
            elif case.answers == "vector":
                assert (winners(answers) == winner).all()
            else:
                assert ((answers > 0) == (winner == 1)).all()

    def test_permuting_the_classes_permutes_the_answers(self, case, n_classes):
        counts = np.zeros((30, n_classes), dtype=np.int64)
        counts[np.arange(30), np.arange(30) % n_classes] = 10_000
        counts[np.arange(30), (np.arange(30) + 1) % n_classes] = 3_000
        order = np.random.default_rng(3).permutation(n_classes)
        answers = case.mechanism.release_many(counts, OSNoise())
        permuted = case.mechanism.release_many(np.ascontiguousarray(counts[:, order]), OSNoise())

        if case.answers.startswith("class"):
            np.testing.assert_array_equal(order[permuted], answers)
        elif case.answers == "vector":
            np.testing.assert_allclose(permuted, answers[:, order], atol=100)

    @pytest.mark.parametrize("n_teachers", [0, 1, 2])
    def test_answers_where_no_one_or_hardly_anyone_votes(self, case, n_classes, n_teachers):
        """Tied, empty and single votes: a mechanism may not stop or warn, for that would depend on the data."""
        counts = np.zeros((20, n_classes), dtype=np.int64)
        counts[:, :n_teachers] = 1

        assert case.mechanism.release_many(counts, OSNoise()).shape[0] == 20


@every_mechanism
class TestRefusals:
    @pytest.mark.parametrize("value", NUMBERS, ids=repr)
    def test_a_number_that_is_no_positive_number(self, case, value):
        for name in case.numbers:
            with pytest.raises(InvalidParameter, match=f"^{name} must be ") as refusal:
                replace(case.mechanism, **{name: value})
            assert "\n" not in str(refusal.value)

    def test_other_bad_fields(self, case):
        for name, values in case.bad.items():
            for value in values:
                with pytest.raises(InvalidParameter, match=f"^{name} must be "):
                    replace(case.mechanism, **{name: value})

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda counts: counts.astype(float),
            lambda counts: counts.astype(np.int32),
            lambda counts: counts.astype(bool),
            lambda counts: counts.astype(object),
            lambda counts: counts.tolist(),
            lambda counts: counts[:, :1],
            lambda counts: counts[np.newaxis],
            lambda counts: counts - 2**41,
            lambda counts: counts + 2**41,
            lambda counts: None,
        ],
    )
    def test_bad_counts_without_telling_a_count(self, case, spoil: Callable[[np.ndarray], Any]):
        counts = spoil(votes(4, case.widths[0]) + 7_777)
        row = counts[0] if isinstance(counts, np.ndarray | list) and np.ndim(counts) != 3 else counts

        for refused, given in ((case.mechanism.release_many, counts), (case.mechanism.release, row)):
            with pytest.raises(InvalidParameter, match=r"^counts must ") as refusal:
                refused(given, OSNoise())
            assert "77" not in str(refusal.value)
            assert "\n" not in str(refusal.value)

    def test_a_negative_count_but_not_a_negative_score(self, case):
        counts = votes(4, case.widths[0])
        counts[0, 0] = -1
        if case.inputs == "scores":
            assert case.mechanism.release_many(counts, OSNoise()).shape == (4,)
        else:
            with pytest.raises(InvalidParameter, match=r"^counts must "):
                case.mechanism.release_many(counts, OSNoise())

    def test_one_query_where_many_are_wanted_and_the_reverse(self, case):
        counts = votes(4, case.widths[0])

        with pytest.raises(InvalidParameter, match=r"^counts must "):
            case.mechanism.release_many(counts[0], OSNoise())
        with pytest.raises(InvalidParameter, match=r"^counts must "):
            case.mechanism.release(counts, OSNoise())

    def test_a_width_that_this_form_does_not_take(self, case):
        if case.widths == (2,):
            with pytest.raises(InvalidParameter, match="2 classes"):
                case.mechanism.release_many(votes(4, 3), OSNoise())


@every_mechanism
class TestValue:
    def test_cannot_be_changed(self, case):
        with pytest.raises(FrozenInstanceError):
            setattr(case.mechanism, fields(case.mechanism)[0].name, 1.0)
        assert not hasattr(case.mechanism, "__dict__")

    def test_is_equal_where_its_fields_are_and_can_travel(self, case):
        again = type(case.mechanism)(
            **{f.name: getattr(case.mechanism, f.name) for f in fields(case.mechanism) if f.init}
        )

        for twin in (again, copy.deepcopy(case.mechanism), pickle.loads(pickle.dumps(case.mechanism))):  # noqa: S301
            assert twin == case.mechanism
            assert hash(twin) == hash(case.mechanism)
            assert twin.event == case.mechanism.event

    def test_shows_its_fields_and_nothing_else(self, case):
        shown = ", ".join(f"{f.name}={getattr(case.mechanism, f.name)!r}" for f in fields(case.mechanism) if f.repr)
        case.mechanism.release(votes(1, case.widths[0])[0], OSNoise())

        assert repr(case.mechanism) == f"{type(case.mechanism).__name__}({shown})"

    def test_takes_numpy_scalars_and_keeps_python_floats(self, case):
        for name in case.numbers:
            value = getattr(case.mechanism, name)
            twin = replace(case.mechanism, **{name: np.float64(value)})
            assert twin == case.mechanism
            assert type(getattr(twin, name)) in {float, int}
