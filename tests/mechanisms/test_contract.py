"""What every mechanism promises: each registered one runs every test here, with nothing to add to this file."""

import copy
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from quorate import mechanisms
from quorate.accounting import Event, PureDP, epsilon, from_json
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    DECLINED,
    NOISE,
    PRICE,
    REGISTERED,
    Answers,
    ConfidentNoisyMax,
    DistanceToInstability,
    Exponential,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    Mechanism,
    NoisyCounts,
    NoisyMean,
    NoisySum,
    NoisyVotes,
    PermuteAndFlip,
    PrivatePrediction,
    QueryMechanism,
    Schedule,
    SoftLabel,
    StableSparseVector,
    StreamMechanism,
    Values,
    for_runs,
    noise_fields,
    required_fields,
    task_fields,
    user_fields,
)
from quorate.noise import OSNoise, SeededNoise

K = 400  # teachers
LITTLE, SOME = {"scale": 0.4, "epsilon": 2.0, "delta": 0.01}, {"scale": 4.0, "epsilon": 0.3, "delta": 0.01}
TASK = {"n_teachers": K, "n_queries": 60, "sensitivity": 1.0}

NUMBERS = [0, 0.0, -1.0, float("nan"), float("inf"), float("-inf"), True, np.True_, "3", None, [1.0], 1j]
WHOLE = [0, -1, 1.5, True, "3", None, float("nan")]
WORDS = ["binar", "", None, 2, True]


def made(kind: type[Mechanism], noise: dict[str, float] = LITTLE) -> Iterator[Mechanism]:
    """Yield instances of each form, with the examples of its file and this much noise."""
    words = [each.name for each in fields(kind) if get_origin(get_type_hints(kind)[each.name]) is Literal]
    own = {name: example for name, (example, _) in required_fields(kind).items()}
    own |= {name: noise.get(name, noise["scale"]) for name in noise_fields(kind)}
    own |= {name: TASK[name] for name in task_fields(kind) if name in TASK}
    yield kind(**own)
    for name in words:
        for word in get_args(get_type_hints(kind)[name])[1:]:
            yield kind(**own, **{name: word})


def name_of(mechanism: Mechanism) -> str:
    words = [str(value) for value in (getattr(mechanism, f.name) for f in fields(mechanism)) if isinstance(value, str)]
    return "-".join([type(mechanism).__name__, *words])


def widths_of(mechanism: Mechanism) -> tuple[int, ...]:
    if isinstance(mechanism, NoisyMean) or (isinstance(mechanism, NoisySum) and mechanism.form == "single"):
        return (1,)
    return (2,) if getattr(mechanism, "form", None) == "binary" else (2, 3, 1000)


EVERY = [mechanism for kind in (*REGISTERED.values(), NoisyMean) for mechanism in made(kind)]
QUERIES = [mechanism for mechanism in EVERY if isinstance(mechanism, QueryMechanism)]

every_mechanism = pytest.mark.parametrize("mechanism", EVERY, ids=name_of)
every_query_mechanism = pytest.mark.parametrize("mechanism", QUERIES, ids=name_of)
every_width = pytest.mark.parametrize(
    ("mechanism", "n_classes"),
    [pytest.param(each, width, id=f"{name_of(each)}-{width}") for each in QUERIES for width in widths_of(each)],
)


def votes(n_queries: int, n_classes: int, n_teachers: int = K, seed: int = 0) -> np.ndarray:
    """Return counts of teachers that agree on some queries and not on others."""
    rng = np.random.default_rng(seed)
    sharp = rng.dirichlet(np.full(n_classes, 0.2), n_queries)
    return rng.multinomial(n_teachers, sharp).astype(np.int64)


def question(mechanism: Mechanism) -> np.ndarray:
    """Return what teachers say of one query; of a stream, a stream of one."""
    row = np.full((1, K), 0.9) if mechanism.takes == "scores" else votes(1, widths_of(mechanism)[0])
    return row if isinstance(mechanism, StreamMechanism) else row[0]


def singles(mechanism: QueryMechanism, counts: np.ndarray, noise: Any) -> np.ndarray:
    """Answer row by row."""
    each = [mechanism.release(row, noise) for row in counts]
    return np.array([DECLINED if answer is None else answer for answer in each])


def test_every_public_mechanism_is_registered():
    bases = {Mechanism, QueryMechanism, StreamMechanism, mechanisms.CandidateChoice}
    public = {name for name in mechanisms.__all__ if isinstance(getattr(mechanisms, name), type)}
    own = {name for name in public if issubclass(getattr(mechanisms, name), Mechanism)}
    # No settings name these: one answers where votes of several sites are combined, one makes prediction sets, and one
    # releases numbers.
    unnamed = {"SeveralVotesNoisyMax", "PrivateQuantile", "NoisyMean"}
    assert own - {each.__name__ for each in bases} - unnamed == set(REGISTERED)


@every_mechanism
class TestPrice:
    @pytest.mark.default_cases(4)
    def test_is_an_event_that_survives_json(self, mechanism):
        assert isinstance(mechanism.event, Event)
        assert from_json(mechanism.event.to_json()) == mechanism.event

    @pytest.mark.default_cases(4)
    def test_is_finite_and_positive(self, mechanism):
        assert 0 < epsilon(mechanism.event, 0.02) < 1e6

    @pytest.mark.default_cases(4)
    def test_does_not_depend_on_what_was_released(self, mechanism):
        before = mechanism.event
        mechanism.release(question(mechanism), OSNoise())
        assert mechanism.event == before

    @pytest.mark.default_cases(4)
    def test_is_not_for_what_is_no_source_of_noise(self, mechanism):
        for other in (np.random.default_rng(0), None, 0):
            said = f"noise must be a NoiseSource, got {type(other).__name__}; pass OSNoise"
            with pytest.raises(InvalidParameter, match=said):
                mechanism.release(question(mechanism), other)
            if isinstance(mechanism, StreamMechanism):
                with pytest.raises(InvalidParameter, match=said):
                    mechanism.init(other)

    @pytest.mark.default_cases(3)
    def test_of_a_schedule_covers_every_answer(self, mechanism):
        whole, one = epsilon(mechanism.schedule(5), 0.05), epsilon(mechanism.event, 0.01)
        assert whole >= one if isinstance(mechanism, QueryMechanism) else mechanism.schedule(5) == mechanism.event


@every_mechanism
class TestDeclaration:
    @pytest.mark.default_cases(4)
    def test_says_what_each_field_is_for(self, mechanism):
        kind = type(mechanism)
        own = {each.name for each in fields(kind)}
        assert set(noise_fields(kind))
        assert set(noise_fields(kind)) | set(required_fields(kind)) <= set(user_fields(kind))
        assert set(user_fields(kind)) | set(task_fields(kind)) == own
        assert not set(user_fields(kind)) & set(task_fields(kind))
        assert set(task_fields(kind)) <= {"form", *TASK}
        assert all(example is not ... for example, _ in required_fields(kind).values())

    @pytest.mark.default_cases(4)
    def test_is_true_of_its_answers(self, mechanism):
        if mechanism.takes == "sums":
            return
        assert isinstance(mechanism.answers, Answers)
        assert isinstance(mechanism.answers, Values) == mechanism.releases_values
        assert not (mechanism.may_decline and mechanism.answers.may_be_negative)
        assert mechanism.may_decline == (mechanism.test is not None)

    @pytest.mark.default_cases(4)
    def test_names_it_for_runs_unless_it_takes_sums(self, mechanism):
        assert (type(mechanism).__name__ in for_runs()) == (mechanism.takes != "sums")

    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize("n_classes", [2, 10])
    def test_more_teachers_get_no_less_answered(self, mechanism, n_classes):
        found = [mechanism.answerable(n_teachers, n_classes) for n_teachers in (1, 3, 30, 300, 3_000, 30_000)]
        probabilities = [each.probability for each in found]
        assert all(0 <= each <= 1 for each in probabilities)
        assert probabilities == sorted(probabilities)
        assert probabilities[-1] == pytest.approx(1)
        assert all((each.largest is None) == (each.test is None) for each in found)

    @pytest.mark.heavy
    def test_budgets_buy_the_least_noise_that_fits(self, mechanism):
        kind = type(mechanism)
        if mechanism.takes == "sums":
            return
        keep = {each.name: getattr(mechanism, each.name) for each in fields(kind)}
        keep = {name: value for name, value in keep.items() if name not in noise_fields(kind)}
        schedule = Schedule(answers=50, epsilon=3.0, delta=1e-4)
        found = kind.calibrated(keep, schedule)
        assert schedule.fits(found)
        assert epsilon(found.schedule(50), 1e-4) > 0.98 * 3.0 or getattr(mechanism, "calibration", "tight") != "tight"
        assert {name: getattr(found, name) for name in keep} == keep


class Unread(NoisyCounts):
    """Releases values, and says that it releases classes."""

    __slots__ = ()
    releases_values: ClassVar[bool] = False


class Silent(ConfidentNoisyMax):
    """Declines, and says that it never does."""

    __slots__ = ()
    may_decline: ClassVar[bool] = False


@pytest.mark.parametrize("twin", [Unread(3.0), Silent(5.0, 3.0, 3.0)], ids=name_of)
def test_a_declaration_that_is_not_true_is_seen(twin):
    with pytest.raises(AssertionError):
        TestDeclaration().test_is_true_of_its_answers(twin)


@every_width
class TestRelease:
    @pytest.mark.default_cases(3)
    def test_one_alone_is_a_batch_of_one(self, mechanism, n_classes):
        for i, row in enumerate(votes(20, n_classes)):
            alone = mechanism.release(row, SeededNoise(i))
            batch = mechanism.release_many(row[np.newaxis], SeededNoise(i))
            np.testing.assert_array_equal(DECLINED if alone is None else alone, batch[0])

    @pytest.mark.default_cases(4)
    def test_has_the_promised_type_shape_and_range(self, mechanism, n_classes):
        counts = votes(60, n_classes)
        many = mechanism.release_many(counts, OSNoise())
        single = mechanism.release(counts[0], OSNoise())
        assert many.dtype == np.int64
        if mechanism.takes == "sums":
            assert many.shape == ((60,) if n_classes == 1 else counts.shape)
            return
        assert many.shape == mechanism.answers.shape(60, n_classes)
        assert np.shape(single) == many.shape[1:] or (single is None and mechanism.may_decline)
        if not mechanism.releases_values:
            assert many.min() >= (DECLINED if mechanism.may_decline else 0)
            assert many.max() < n_classes

    @pytest.mark.default_cases(4)
    def test_takes_no_queries(self, mechanism, n_classes):
        answers = mechanism.release_many(np.zeros((0, n_classes), dtype=np.int64), OSNoise())
        assert answers.shape[0] == 0
        assert answers.dtype == np.int64

    @pytest.mark.default_cases(4)
    def test_leaves_the_counts_alone_and_takes_a_read_only_array(self, mechanism, n_classes):
        counts = votes(20, n_classes)
        before = counts.copy()
        counts.setflags(write=False)
        mechanism.release_many(counts, OSNoise())
        np.testing.assert_array_equal(counts, before)

    @pytest.mark.default_cases(4)
    def test_does_not_care_how_the_counts_lie_in_memory(self, mechanism, n_classes):
        counts = votes(20, n_classes)
        striped = np.asfortranarray(np.repeat(counts, 2, axis=0))[::2]
        np.testing.assert_array_equal(
            mechanism.release_many(striped, SeededNoise(1)), mechanism.release_many(counts, SeededNoise(1))
        )

    @pytest.mark.default_cases(4)
    def test_a_unanimous_vote_far_above_the_noise_decides(self, mechanism, n_classes):
        for winner in {0, n_classes // 2, n_classes - 1}:
            counts = np.zeros((50, n_classes), dtype=np.int64)
            counts[:, winner] = 100_000
            answers = mechanism.release_many(counts, OSNoise())
            sums = answers.reshape(50, -1).argmax(axis=1)
            codes = sums if mechanism.takes == "sums" else mechanism.answers.codes(answers)
            assert set(codes.tolist()) == {winner}

    @pytest.mark.default_cases(4)
    def test_permuting_the_classes_permutes_the_answers(self, mechanism, n_classes):
        if mechanism.takes == "sums":
            return
        counts = np.zeros((30, n_classes), dtype=np.int64)
        counts[np.arange(30), np.arange(30) % n_classes] = 10_000
        counts[np.arange(30), (np.arange(30) + 1) % n_classes] = 3_000
        order = np.random.default_rng(3).permutation(n_classes)
        codes = mechanism.answers.codes(mechanism.release_many(counts, OSNoise()))
        permuted = mechanism.release_many(np.ascontiguousarray(counts[:, order]), OSNoise())
        np.testing.assert_array_equal(order[mechanism.answers.codes(permuted)], codes)

    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize("n_teachers", [0, 1, 2])
    def test_answers_where_no_one_or_hardly_anyone_votes(self, mechanism, n_classes, n_teachers):
        """Tied, empty and single votes: a mechanism may not stop or warn, for that would depend on the data."""
        counts = np.zeros((20, n_classes), dtype=np.int64)
        counts[:, :n_teachers] = 1
        assert mechanism.release_many(counts, OSNoise()).shape[0] == 20


FALSE_ALARM = 1e-6
HARD = np.array([[200, 200], [203, 197], [198, 202]], dtype=np.int64)
DRAWS = 1_500


def p_value_of_one_law(one: np.ndarray, other: np.ndarray) -> float:
    """Two samples of whole numbers: the p-value of the χ² test that they have one law, on at most twelve cells."""
    cuts = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 13)))
    table = np.array([np.histogram(each, [-np.inf, *(cuts[:-1] + 0.5), np.inf])[0] for each in (one, other)])
    table = table[:, table.sum(axis=0) > 0]
    return 1.0 if table.shape[1] < 2 else float(chi2_contingency(table).pvalue)


def one_by_one_and_all_at_once(mechanism: QueryMechanism) -> float:
    rows = HARD[:, :1] if widths_of(mechanism) == (1,) else HARD
    found = []
    for number, row in enumerate(rows):
        tiled = np.tile(row, (DRAWS, 1))
        one = singles(mechanism, tiled, SeededNoise(number)).reshape(DRAWS, -1)[:, 0]
        many = mechanism.release_many(tiled, SeededNoise(number + 100)).reshape(DRAWS, -1)[:, 0]
        found.append(p_value_of_one_law(one, many))
    return min(found)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "mechanism",
    [each for kind in REGISTERED.values() for each in made(kind, SOME) if isinstance(each, QueryMechanism)],
    ids=name_of,
)
def test_one_by_one_has_the_law_of_all_at_once(mechanism):
    assert one_by_one_and_all_at_once(mechanism) > FALSE_ALARM


@dataclass(frozen=True, slots=True)
class Hasty(QueryMechanism):
    """Draws its noise once for a whole batch."""

    sigma: float = field(metadata=NOISE)

    @property
    def event(self) -> Event:
        return NoisyCounts(self.sigma).event

    @property
    def answers(self) -> NoisyVotes:
        return NoisyVotes(self.sigma)

    def release_many(self, counts: np.ndarray, noise: Any) -> np.ndarray:
        return counts + (NoisyCounts(self.sigma).release_many(counts[:1], noise) - counts[:1])


@pytest.mark.heavy
def test_that_test_catches_a_batch_that_shares_its_noise():
    assert one_by_one_and_all_at_once(Hasty(4.0)) < FALSE_ALARM


@every_mechanism
class TestRefusals:
    @pytest.mark.default_cases(4)
    def test_a_field_that_is_no_number_or_word_of_its_kind(self, mechanism):
        hints = get_type_hints(type(mechanism))
        for each in fields(mechanism):
            hint = hints[each.name]
            wrong = WORDS if get_origin(hint) is Literal else WHOLE if hint is int else NUMBERS
            for value in wrong:
                with pytest.raises(InvalidParameter, match=f"^{each.name} must be ") as refusal:
                    replace(mechanism, **{each.name: value})
                assert "\n" not in str(refusal.value)


@every_query_mechanism
class TestRefusedCounts:
    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize(
        "spoil",
        [
            lambda counts: counts.astype(float),
            lambda counts: counts.astype(np.int32),
            lambda counts: counts.astype(bool),
            lambda counts: counts.astype(object),
            lambda counts: counts.tolist(),
            lambda counts: counts[:, :0],
            lambda counts: counts[np.newaxis],
            lambda counts: counts - 2**41,
            lambda counts: counts + 2**41,
            lambda counts: None,
        ],
    )
    def test_without_telling_a_count(self, mechanism, spoil):
        counts = spoil(votes(4, widths_of(mechanism)[0]) + 7_777)
        row = counts[0] if isinstance(counts, np.ndarray | list) and np.ndim(counts) != 3 else counts
        for refused, given in ((mechanism.release_many, counts), (mechanism.release, row)):
            with pytest.raises(InvalidParameter, match=r"^counts must ") as refusal:
                refused(given, OSNoise())
            assert "77" not in str(refusal.value)
            assert "\n" not in str(refusal.value)

    @pytest.mark.default_cases(4)
    def test_a_negative_count_but_not_a_negative_score(self, mechanism):
        counts = votes(4, widths_of(mechanism)[0])
        counts[0, 0] = -1
        if isinstance(mechanism, mechanisms.CandidateChoice | NoisyMean):
            assert mechanism.release_many(counts, OSNoise()).shape == (4,)
        else:
            with pytest.raises(InvalidParameter, match=r"^counts must "):
                mechanism.release_many(counts, OSNoise())

    @pytest.mark.default_cases(4)
    def test_one_query_where_many_are_wanted_and_the_reverse(self, mechanism):
        counts = votes(4, widths_of(mechanism)[0])
        with pytest.raises(InvalidParameter, match=r"^counts must "):
            mechanism.release_many(counts[0], OSNoise())
        with pytest.raises(InvalidParameter, match=r"^counts must "):
            mechanism.release(counts, OSNoise())

    @pytest.mark.default_cases(4)
    def test_a_width_that_this_form_does_not_take(self, mechanism):
        if widths_of(mechanism) == (2,):
            with pytest.raises(InvalidParameter, match="2 classes"):
                mechanism.release_many(votes(4, 3), OSNoise())
        if 2 in widths_of(mechanism):
            with pytest.raises(InvalidParameter, match=r"^counts must have"):
                mechanism.release_many(votes(4, 2)[:, :1], OSNoise())


SPARSE, SOFT = (
    StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=3, n_queries=9),
    SoftLabel(epsilon=1.0, delta=1e-5, cutoff=3, n_queries=9, bins=3),
)  # fmt: skip
BEYOND = [
    (NoisySum(scale=0.4, grid=4), {"grid": (2**41,)}),
    (InteractiveNoisyMax(6.0, 0.6, 0.4, 12, 0.9), {"confidence": (1, 1.5)}),
    (DistanceToInstability(epsilon=2.0, delta=0.01), {"delta": (1, 1.0, 2.5), "epsilon": (1e-13,)}),
    (PermuteAndFlip(epsilon=2.0), {"epsilon": (1e-13,)}),
    (PrivatePrediction(epsilon=2.0), {"epsilon": (1e-13,)}),
    (SPARSE, {"delta": (1, 1.0), "cutoff": (10,), "epsilon": (1e-13,)}),
    (SOFT, {"delta": (1,), "cutoff": (10,), "bins": (1,)}),
]


@pytest.mark.parametrize(("mechanism", "wrong"), BEYOND)
def test_a_number_out_of_range(mechanism, wrong):
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidParameter, match=f"^{name} must be "):
                replace(mechanism, **{name: value})


@every_mechanism
class TestValue:
    @pytest.mark.default_cases(4)
    def test_cannot_be_changed(self, mechanism):
        with pytest.raises(FrozenInstanceError):
            setattr(mechanism, fields(mechanism)[0].name, 1.0)
        assert not hasattr(mechanism, "__dict__")

    @pytest.mark.default_cases(4)
    def test_is_equal_where_its_fields_are_and_can_travel(self, mechanism):
        again = type(mechanism)(**{f.name: getattr(mechanism, f.name) for f in fields(mechanism) if f.init})
        for twin in (again, copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):  # noqa: S301
            assert twin == mechanism
            assert hash(twin) == hash(mechanism)
            assert twin.event == mechanism.event

    @pytest.mark.default_cases(4)
    def test_shows_its_fields_and_nothing_else(self, mechanism):
        shown = ", ".join(f"{f.name}={getattr(mechanism, f.name)!r}" for f in fields(mechanism) if f.repr)
        assert repr(mechanism) == f"{type(mechanism).__name__}({shown})"

    @pytest.mark.default_cases(4)
    def test_takes_numpy_scalars_and_keeps_python_numbers(self, mechanism):
        for each in fields(mechanism):
            value = getattr(mechanism, each.name)
            if type(value) in (int, float):
                scalar = np.float64(value) if isinstance(value, float) else np.int64(value)
                twin = replace(mechanism, **{each.name: scalar})
                assert twin == mechanism
                assert type(getattr(twin, each.name)) is type(value)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "mechanism",
    [
        NoisyCounts(sigma=30.0),
        LaplaceNoisyMax(laplace_scale=25.0),
        Exponential(epsilon=0.1),
        PermuteAndFlip(epsilon=0.1),
        ConfidentNoisyMax(threshold=25.0, sigma_threshold=10.0, sigma_answer=12.0),
        DistanceToInstability(epsilon=0.5, delta=1e-3),
        StableSparseVector(epsilon=0.8, delta=1e-2, cutoff=1, n_queries=1),
    ],
    ids=name_of,
)
def test_answerable_is_how_often_a_unanimous_vote_is_answered_by_its_class(mechanism, n_classes):
    """A false alarm in 10⁶ for each case; 0.02 are left for the lattice, which the Gaussian formula does not see."""
    n_teachers, n = 30, 4_000
    counts = np.zeros((n, n_classes), dtype=np.int64)
    counts[:, 1] = n_teachers
    if isinstance(mechanism, StreamMechanism):
        answers = np.array([mechanism.release(counts[:1], SeededNoise(i))[0] for i in range(n)])
    else:
        answers = mechanism.answers.codes(mechanism.release_many(counts, SeededNoise(3)))
    claimed = mechanism.answerable(n_teachers, n_classes).probability
    assert (answers == 1).mean() == pytest.approx(claimed, abs=4.9 * 0.5 / n**0.5 + 0.02)
    assert 0.05 < claimed < 0.999


def test_what_is_out_of_reach_is_told():
    """The hopeless run of a tutorial: 250 teachers are at most 124 votes from a tie, and 343 were needed."""
    mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=10, n_queries=1_000)
    found = mechanism.answerable(250, 2)
    assert found.test is not None
    assert found.largest == 124
    assert found.largest < found.test.threshold
    assert found.hopeless
    assert not mechanism.answerable(2_500, 2).hopeless
    assert ConfidentNoisyMax(threshold=300.0, sigma_threshold=20.0, sigma_answer=5.0).answerable(250, 3).hopeless
    assert not ConfidentNoisyMax(threshold=200.0, sigma_threshold=20.0, sigma_answer=5.0).answerable(250, 3).hopeless
    assert not PureCoin(epsilon=1.0).answerable(250, 3).hopeless


@dataclass(frozen=True, slots=True)
class PureCoin(QueryMechanism):
    """One whose law is not declared: nothing is said against it."""

    epsilon: float = field(metadata=PRICE)

    @property
    def event(self) -> Event:
        return PureDP(self.epsilon)

    def release_many(self, counts: np.ndarray, noise: Any) -> np.ndarray:
        return PermuteAndFlip(self.epsilon).release_many(counts, noise)
