"""Attacks on whole runs: a planted canary, membership, and the same question a thousand times; each with a cheat.

Bounds hold with confidence 1 − 10⁻⁶, so that a correct run is flagged in one of a million.
"""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.labelling.conftest import ask

from quorate import PrivateClassifier, PublicPool
from quorate.accounting import Repeated
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.audit import ApproxClaim, Canary, GaussianClaim, Target, audit_target, reconstruct
from quorate.cli import main
from quorate.data import take
from quorate.ensemble.training import teacher_seed
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.labelling import Memo, OnlineAnswers
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts, gaussian_noise
from quorate.noise import OSNoise, SeededNoise
from quorate.types import Secret
from quorate.voting import kept_votes

CONFIDENCE = 1 - 1e-6
K, DELTA = 4, 1e-5
HERE = np.array([9.0, 9.0])  # where the canary is, and what is asked about
X = np.round(np.random.default_rng(0).normal(size=(16, 2)), 3)
Y = np.zeros(16, dtype=np.int64)
QUERIES = HERE + np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [0.1, 0.1]])
CANARY = Canary(HERE, 1)


def classifier(epsilon: float, **how: Any) -> PrivateClassifier:
    return PrivateClassifier(
        KNeighborsClassifier(1), classes=[0, 1], epsilon=epsilon, delta=DELTA, n_teachers=K, queries="all",
        allow_hopeless=True, n_jobs=1, **how,
    )  # fmt: skip


class Estimator:
    """A whole run through :class:`quorate.PrivateClassifier`, each with a seed of its own."""

    def __init__(self, epsilon: float) -> None:
        self._epsilon = epsilon
        self._seeds = itertools.count(7_000)

    def fit(self, X: Any, y: Any, public: Any) -> Any:
        clf = classifier(self._epsilon, unsafe_noise_seed=next(self._seeds))
        return clf.fit(X, y, public=PublicPool(public)).released_.answers


class CommandLine:
    """A whole run through ``quorate run``: tables in, ``public/labels.csv`` out."""

    def __init__(self, root: Path, epsilon: float) -> None:
        self._root = root
        self._epsilon = epsilon
        self._seeds = itertools.count(9_000)

    def fit(self, X: Any, y: Any, public: Any) -> Any:
        seed = next(self._seeds)
        folder = self._root / str(seed)
        folder.mkdir(parents=True)
        pl.DataFrame(X, schema=["a", "b"]).with_columns(ill=pl.Series(y)).write_csv(folder / "private.csv")
        pl.DataFrame(public, schema=["a", "b"]).write_csv(folder / "public.csv")
        (folder / "near.py").write_text(
            "from sklearn.neighbors import KNeighborsClassifier\nmake = lambda: KNeighborsClassifier(1)\n"
        )
        (folder / "quorate.toml").write_text(
            '[data]\nprivate = "private.csv"\npublic = "public.csv"\nlabel = "ill"\nclasses = [0, 1]\n'
            f"[budget]\nepsilon = {self._epsilon}\ndelta = {DELTA}\n"
            f'[teachers]\nmodel = "near:make"\ncount = {K}\n[mechanism]\nqueries = "all"\n'
            f"[run]\nn_jobs = 1\nallow_hopeless = true\nunsafe_noise_seed = {seed}\n"
        )
        with pytest.raises(SystemExit) as stop:
            main(["run", str(folder), "--json"])
        assert stop.value.code == 0
        return pl.read_csv(folder / "public" / "labels.csv")["noisy_half_lead"].to_list()


@pytest.fixture
def at_once(monkeypatch):
    """Train in this process: hundreds of runs, whose isolation is tested elsewhere."""

    def train(teacher: Any, X: Any, codes: Any, shards: Any, *, numbers: Any, key: Any, **how: Any) -> Any:
        shard = shards.reveal()
        mine = [np.flatnonzero(shard == k) for k in numbers]
        return Secret(
            tuple(
                teacher.train(take(X, rows), codes[rows], teacher_seed(key, k))
                for k, rows in zip(numbers, mine, strict=True)
            )
        )

    monkeypatch.setattr(kept_votes, "train_chunk", train)


@pytest.fixture
def no_noise(monkeypatch):
    """The noise that was paid for is not added."""
    monkeypatch.setattr(gaussian_noise, "discrete_gaussian", lambda sigma, size, source: np.zeros(size, dtype=np.int64))


def claim(epsilon: float) -> GaussianClaim:
    return GaussianClaim(mu_of_gaussian(epsilon, DELTA))


@pytest.mark.heavy
@pytest.mark.parametrize(("noisy", "runs"), [(True, 60), (False, 120)], ids=["as it is", "without its noise"])
def test_a_run_of_the_estimator_is_flagged_without_its_noise_alone(noisy, runs, at_once, request):
    if not noisy:
        request.getfixturevalue("no_noise")
    found = audit_target(Estimator(1.0), X, Y, QUERIES, CANARY, claim(1.0), CONFIDENCE, runs, seed=1)
    assert found.violated != noisy, found.verdict


@pytest.mark.faults  # runs of the estimator above, with the same noise; fewer runs than these would be blind
@pytest.mark.parametrize(("noisy", "confidence", "runs"), [(True, CONFIDENCE, 400), (False, 0.99, 44)])
def test_a_run_of_the_command_line_is_flagged_without_its_noise_alone(
    noisy, confidence, runs, at_once, tmp_path, request
):
    if not noisy:
        request.getfixturevalue("no_noise")
    found = audit_target(CommandLine(tmp_path, 0.1), X, Y, QUERIES, CANARY, claim(0.1), confidence, runs, seed=2)
    assert found.violated != noisy, found.verdict


@pytest.mark.faults
@pytest.mark.parametrize("change", ["add", "replace"])
def test_many_runs_prove_something_and_never_more_than_the_claim(at_once, change):
    """The canary moves one vote on every query, so that the attack is not blind; at 1 − 10⁻⁶ few runs prove little."""
    found = audit_target(Estimator(4.0), X, Y, QUERIES, Canary(HERE, 1, change), claim(4.0), CONFIDENCE, 1_500, seed=3)
    assert 0 < found.lower_bound <= found.claimed.bound


class Small:
    """An ensemble in a few lines, for thousands of runs: each row is a teacher and votes its label where it is near."""

    def __init__(self, sigma: float, *, noisy: bool = True) -> None:
        self._mechanism = NoisyCounts(sigma=sigma)
        self._noise = SeededNoise(5)
        self._noisy = noisy

    def fit(self, X: Any, y: Any, public: Any) -> Any:
        near = np.linalg.norm(X[None] - np.asarray(public)[:, None], axis=2) < 1
        counts = np.stack([(near & (y == label)).sum(axis=1) for label in (0, 1)], axis=1).astype(np.int64)
        return self._mechanism.release_many(counts, self._noise) if self._noisy else counts


@pytest.mark.heavy
def test_only_the_release_matters_and_anything_with_fit_is_a_target():
    target: Target = Small(sigma=10.0)
    claimed = ApproxClaim(1.0, 1e-3)
    assert not audit_target(target, X, Y, QUERIES, CANARY, claimed, CONFIDENCE, 2_000, seed=4).violated
    assert audit_target(Small(10.0, noisy=False), X, Y, QUERIES, CANARY, claimed, CONFIDENCE, 400, seed=4).violated


def test_the_two_tables_differ_in_the_canary_alone_and_no_run_sees_what_another_did_to_them():
    seen: list[tuple[Any, Any]] = []

    class Spoils:
        def fit(self, X: Any, y: Any, public: Any) -> int:
            seen.append((X.copy(), y.copy()))
            X[:], y[:] = -1, -1
            return 0

    for change, rows in (("add", 17), ("replace", 16)):
        seen.clear()
        canary = Canary(HERE, 1, change)  # type: ignore[arg-type]
        audit_target(Spoils(), X, Y, QUERIES, canary, claim(1.0), runs=40, seed=0)
        with_it = [each for each in seen if (each[0] == HERE).all(axis=1).any()]
        without = [each for each in seen if not (each[0] == HERE).all(axis=1).any()]
        assert with_it
        assert without
        for table, labels in with_it:
            assert table.shape == (rows, 2)
            assert np.array_equal(table[:-1], X[: rows - 1])
            assert labels.tolist() == [0] * (rows - 1) + [1]
        assert all(np.array_equal(table, X) and not labels.any() for table, labels in without)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "wrong",
    [{"target": object()}, {"X": X[0]}, {"y": Y[:3]}, {"canary": Canary([1.0], 1)}, {"X": X[:0], "y": Y[:0]}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_wrong_arguments_are_refused(wrong):
    given = {"target": Small(1.0), "X": X, "y": Y, "public": QUERIES, "canary": CANARY, "claimed": claim(1.0)} | wrong
    with pytest.raises(InvalidParameter):
        audit_target(**given)


def test_a_canary_is_added_or_takes_a_place():
    with pytest.raises(InvalidParameter):
        Canary(HERE, 1, "remove")
    assert "9" not in repr(CANARY)


@pytest.mark.heavy
def test_a_student_does_not_tell_members_from_others_and_a_tree_on_the_rows_does(at_once):
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(1_600, 5))
    labels = (rows[:, 0] + rng.normal(size=1_600) > 0).astype(np.int64)
    mine, others, public = slice(0, 600), slice(600, 1_200), slice(1_200, 1_600)
    clf = PrivateClassifier(
        DecisionTreeClassifier(), DecisionTreeClassifier(random_state=0), classes=[0, 1], epsilon=1.0, delta=DELTA,
        n_teachers=20, n_jobs=1, unsafe_noise_seed=1, allow_hopeless=True,
    ).fit(rows[mine], labels[mine], public=PublicPool(rows[public]))  # fmt: skip
    leaky = DecisionTreeClassifier(random_state=0).fit(rows[mine], labels[mine])

    def advantage(model: Any) -> float:
        """The AUC of the probability of the true label: of members against others."""
        known, new = (model.predict_proba(rows[part])[np.arange(600), labels[part]] for part in (mine, others))
        return float((known[:, None] > new).mean() + 0.5 * (known[:, None] == new).mean())

    error = 1 / np.sqrt(12 * 300)  # of an AUC of two samples of 600 that have one law
    assert abs(advantage(clf.student_) - 0.5) < 4.9 * error  # missed by chance once in a million
    assert advantage(leaky) > 0.6


VOTES = np.array([[60, 190]])


def online(memo: Memo, reservation: Any) -> OnlineAnswers:
    mechanism = GaussianNoisyMax(sigma=100.0, form="binary")
    return OnlineAnswers(lambda rows: Secret(VOTES[rows]), mechanism, reservation, OSNoise(), memo, 2)


def reservation(times: int) -> Any:
    event = Repeated(GaussianNoisyMax(sigma=100.0, form="binary").event, times)
    ledger = Ledger(budget=Budget(50.0, 1e-5))
    return ledger.reserve(event, delta=1e-5, purposes={"online answer": times}, key="kept back")


def test_with_the_memo_repeated_questions_tell_nothing_new_and_cost_nothing():
    paid = reservation(400)
    asked = online(Memo(), paid)
    found = reconstruct(lambda: ask(asked, [b"x"])[0], 400)
    assert not found.learned_more
    assert paid.remaining("online answer") == 399


@pytest.mark.heavy
def test_with_the_memo_off_the_noise_averages_away_and_every_answer_is_paid_until_none_is_left():
    paid = reservation(400)
    found = reconstruct(lambda: ask(online(Memo(), paid), [b"x"])[0], 400)  # a memo that never remembers
    assert found.learned_more
    from scipy.stats import norm

    half_lead = 100.0 * norm.ppf(found.mean)  # the share of answers gives the secret lead away
    assert half_lead == pytest.approx(65, abs=4.9 * 100 / norm.pdf(0.65) * 0.5 / 20)
    assert half_lead == pytest.approx(65, abs=40)
    with pytest.raises(BudgetExhausted):
        ask(online(Memo(), paid), [b"x"])


@pytest.mark.heavy
def test_an_estimator_that_is_asked_again_gives_the_same_answer_for_nothing(at_once):
    clf = classifier(1.0, online_answers=3).fit(X, Y, public=PublicPool(QUERIES))
    found = reconstruct(lambda: clf.ask([[1.5, 0.5]])[0], 20)
    assert (found.asked, found.distinct) == (20, 1)
    clf.ask([[2.5, 0.5], [3.5, 0.5]])  # the other two are still there


@pytest.mark.heavy
def test_the_mean_of_fresh_noisy_counts_closes_in_on_the_votes():
    votes, noise = np.array([170, 60, 20]), SeededNoise(3)
    few, many = (reconstruct(lambda: NoisyCounts(sigma=40.0).release(votes, noise), times) for times in (30, 30_000))
    assert np.abs(many.mean - votes).max() < 4.9 * 40 / np.sqrt(30_000) * 1.2
    assert few.standard_error.min() > 10 * many.standard_error.max()
