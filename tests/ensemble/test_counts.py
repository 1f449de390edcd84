"""How far teachers agree: counts and exact figures, each beside a slow one; nothing leaves without being asked for."""

import math
import runpy
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate.ensemble import (
    ABSTAINED,
    ClassifierTeacher,
    agreement,
    as_teacher,
    average_stability,
    count_votes,
    expected_margins,
    hash_shards,
    high_margin_curve,
    margins,
    soft_label_quality,
    train_teachers,
    votes,
)
from quorate.ensemble.votes import add_votes, code_type
from quorate.errors import InvalidParameter, SecretRefused
from quorate.types import Secret

K = 250


def votes_of(shares: np.ndarray, seed: int = 0) -> Secret[np.ndarray]:
    """K independent teachers, each of which votes for class 1 with the share of the query."""
    ones = np.random.default_rng(seed).binomial(K, shares)
    return Secret(np.column_stack([K - ones, ones]))


def test_with_many_classes_a_margin_is_the_gap_between_the_two_largest_counts():
    table = np.random.default_rng(2).multinomial(K, [0.4, 0.3, 0.2, 0.1], size=50)
    slow = [sorted(row)[-1] - sorted(row)[-2] for row in table.tolist()]
    assert margins(Secret(table)).reveal().tolist() == slow


def test_the_expected_margin_is_estimated_to_within_its_standard_error():
    shares = np.linspace(0.05, 0.95, 19)
    found = np.mean([expected_margins(votes_of(shares, seed), K).reveal() for seed in range(400)], axis=0)
    away = np.abs(shares - 0.5) > 0.1  # nearer than that, the absolute value itself is biased
    assert_allclose(found[away], np.abs(shares - 0.5)[away], atol=6 / (2 * math.sqrt(K * 400)))


def test_the_curve_counts_the_queries_with_a_small_margin():
    counts = votes_of(np.random.default_rng(3).uniform(size=300))
    curve = high_margin_curve(counts, K, points=21).reveal()
    ones = counts.reveal()[:, 1].astype(int).tolist()
    for xi, nu in zip(curve.xi.tolist(), curve.nu.tolist(), strict=True):
        slow = sum(abs(2 * one - K) <= math.floor(xi * 2 * K + 1e-6) for one in ones) / len(ones)
        assert nu == pytest.approx(slow)
    assert curve.nu[-1] == 1.0
    assert (np.diff(curve.nu) >= 0).all()


def test_a_problem_with_a_large_margin_has_a_curve_that_stays_low():
    easy = high_margin_curve(votes_of(np.full(100, 0.97)), K).reveal()
    hard = high_margin_curve(votes_of(np.full(100, 0.52)), K).reveal()
    assert easy.nu[easy.xi <= 0.35].max() == 0.0
    assert hard.nu[hard.xi >= 0.2].min() == 1.0


def test_agreement_is_the_share_of_pluralities_and_of_votes_that_are_the_references():
    counts = votes_of(np.array([0.9, 0.2, 0.6, 0.5]))
    found = agreement(counts, np.array([1, 1, 1, 0]), K).reveal()
    table = counts.reveal()
    assert found.plurality == np.mean([table[0, 1] > table[0, 0], table[1, 1] > table[1, 0],
                                       table[2, 1] > table[2, 0], table[3, 0] >= table[3, 1]])  # fmt: skip
    assert_allclose(found.votes, [table[0, 1] / K, table[1, 1] / K, table[2, 1] / K, table[3, 0] / K])


def test_the_two_running_sums_are_one_line_where_every_plurality_is_the_references_class():
    shares = np.random.default_rng(4).uniform(size=200)
    counts = votes_of(shares)
    ours, theirs = agreement(counts, counts.reveal().argmax(axis=1), K).reveal().cumulated
    assert_allclose(ours, theirs, atol=1e-9)
    other = agreement(counts, 1 - counts.reveal().argmax(axis=1), K).reveal()
    assert other.correlation == pytest.approx(-1)
    assert math.isnan(agreement(votes_of(np.ones(9)), np.ones(9, dtype=int), K).reveal().correlation)


@pytest.mark.heavy
def test_a_stable_learner_moves_less_than_one_that_remembers_single_rows():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(np.int64)
    points = rng.normal(size=(80, 3))

    def moved(estimator: object) -> tuple[float, float]:
        found = average_stability(
            ClassifierTeacher(estimator), X, y, points, n_rows_each=60, n_classes=2, rng=np.random.default_rng(6)
        ).reveal()
        return found.mean, found.standard_error

    constant, error = moved(DummyClassifier(strategy="constant", constant=1))
    assert (constant, error) == (0.0, 0.0)
    assert moved(LogisticRegression())[0] < 0.5 * moved(DecisionTreeClassifier())[0]


@pytest.mark.heavy
def test_the_stability_of_a_mean_is_the_one_that_is_known():
    """The prior of the labels moves by 1/n where the exchanged labels differ, with probability 2p(1-p)."""
    rng = np.random.default_rng(7)
    y = (rng.uniform(size=4_000) < 0.3).astype(np.int64)
    X = np.zeros((4_000, 1))
    found = average_stability(
        ClassifierTeacher(DummyClassifier(strategy="prior")), X, y, X[:5], n_rows_each=50, n_classes=2,
        exchanges=600, rng=rng,
    ).reveal()  # fmt: skip
    assert abs(found.mean - 2 * 0.3 * 0.7 / 50) < 5 * found.standard_error


@pytest.mark.heavy
def test_a_learner_without_probabilities_is_compared_by_its_votes():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(np.int64)
    found = average_stability(ClassifierTeacher(Perceptron()), X, y, X, n_rows_each=30, n_classes=2, rng=rng)
    assert 0 < found.reveal().mean < 0.5


def test_soft_labels_have_a_weak_and_a_strong_quality():
    rng = np.random.default_rng(9)
    scores = np.vstack([rng.uniform(0.9, 1.0, K), rng.uniform(0.4, 0.6, K), np.where(np.arange(K) < 100, 0.0, 1.0)])
    found = soft_label_quality(Secret(scores), beta=0.1).reveal()
    assert found.weak[0] == pytest.approx(1 - scores[0].mean())
    assert found.strong[0] < 0.1 < 0.4 < found.strong[1]
    assert found.weak[2] == pytest.approx(0.4)  # the mean of sure but divided scores
    assert found.strong[2] == 1.0
    for row, least in zip(scores, found.strong.tolist(), strict=True):  # by trying every end and every α
        slow = min(
            alpha
            for end in (row, 1 - row)
            for alpha in end
            if np.mean(end > alpha) <= 0.1
        )  # fmt: skip
        assert least == pytest.approx(slow)


def test_a_query_that_nobody_scored_has_no_quality():
    assert np.isnan(soft_label_quality(Secret(np.full((1, 4), np.nan))).reveal().weak).all()


@pytest.mark.parametrize(
    "made",
    [
        lambda counts: margins(counts),
        lambda counts: expected_margins(counts, K),
        lambda counts: high_margin_curve(counts, K),
        lambda counts: agreement(counts, np.zeros(5, dtype=int), K),
        lambda counts: soft_label_quality(Secret(counts.reveal() / K)),
    ],
    ids=["margins", "expected", "curve", "agreement", "quality"],
)
def test_a_diagnosis_is_as_secret_as_the_votes(made):
    told = made(votes_of(np.full(5, 0.7)))
    assert repr(told) == "Secret(…)"
    with pytest.raises(SecretRefused):
        list(told)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: margins(Secret(np.zeros((3, 1), dtype=np.int64))),
        lambda: margins(Secret(np.zeros(3, dtype=np.int64))),
        lambda: agreement(votes_of(np.full(3, 0.5)), [0, 1], K),
        lambda: agreement(votes_of(np.full(3, 0.5)), [0, 1, 2], K),
        lambda: agreement(votes_of(np.full(3, 0.5)), [0.0, 1.0, 1.0], K),
        lambda: expected_margins(votes_of(np.full(3, 0.5)), 0),
        lambda: high_margin_curve(votes_of(np.full(3, 0.5)), K, points=1),
        lambda: soft_label_quality(Secret(np.zeros(3))),
        lambda: soft_label_quality(Secret(np.zeros((3, 2))), beta=0.0),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        wrong()


def looped(codes: np.ndarray, n_classes: int) -> np.ndarray:
    counts = np.zeros((codes.shape[1], n_classes), dtype=np.int64)
    for voter in codes:
        for row, code in enumerate(voter):
            if code != ABSTAINED:
                counts[row, code] += 1
    return counts


def counted(codes: np.ndarray, n_classes: int) -> np.ndarray:
    counts = np.zeros((codes.shape[1], n_classes), dtype=np.int64)
    add_votes(codes, counts)
    return counts


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("n_classes", [1, 2, 14, 15, 127, 128, 129, 300])
def test_each_vote_is_counted_once(n_classes):
    """More voters than a byte holds, the lowest and the highest code, and abstentions."""
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(ABSTAINED, n_classes, size=(257, 70)).astype(code_type(n_classes))
    codes[:, 0], codes[:, 1], codes[:, 2] = 0, n_classes - 1, ABSTAINED
    assert np.array_equal(counted(codes, n_classes), looped(codes, n_classes))
    assert np.array_equal(counted(codes[::-1], n_classes), counted(codes, n_classes))


@pytest.mark.parametrize("n_classes", [3, 40])
def test_rows_are_counted_alike_at_the_seams_of_blocks(n_classes, monkeypatch):
    monkeypatch.setattr(votes, "_COMPARED_ROWS", 7)
    monkeypatch.setattr(votes, "_CELLS", 1)
    codes = np.random.default_rng(0).integers(ABSTAINED, n_classes, size=(5, 200))
    assert np.array_equal(counted(codes, n_classes), looped(codes, n_classes))


def test_a_byte_of_voters_that_agree_does_not_overflow(monkeypatch):
    """The twin that lets 256 voters into a byte loses all their votes."""
    codes = np.zeros((512, 3), dtype=np.int8)
    assert (counted(codes, 2)[:, 0] == 512).all()
    monkeypatch.setattr(votes, "GROUP", 256)
    assert (counted(codes, 2)[:, 0] == 0).all()


SLURM = Path(__file__).parents[2] / "examples" / "slurm"


@pytest.mark.heavy
def test_the_tasks_of_an_array_count_what_one_machine_counts(tmp_path):
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"age": rng.normal(50, 9, 300), "bmi": rng.normal(25, 4, 300)})
    ill = np.where(rows["age"].to_numpy() > 50, "yes", "no")
    rows.with_columns(pl.Series("ill", ill)).write_csv(tmp_path / "private.csv")
    asked = pl.DataFrame({"bmi": rng.normal(25, 4, 20), "age": rng.normal(50, 9, 20)})
    asked.write_csv(tmp_path / "public.csv")
    (tmp_path / "partition.key").write_bytes(bytes(range(32)))
    example = runpy.run_path(str(SLURM / "votes.py"))
    tables = (tmp_path / "private.csv", tmp_path / "public.csv", "ill", ["no", "yes"], 10)
    count = partial(example["count"], *tables, tmp_path / "partition.key", tmp_path / "votes")
    for task in (2, 0):
        count(task, 3)
    with pytest.raises(SystemExit, match="does not hold the counts of every task"):
        example["join"](tmp_path / "votes")
    count(1, 3)
    joined = np.load(example["join"](tmp_path / "votes"))

    key, X = Secret(bytes(range(32))), rows.select("bmi", "age").to_numpy()
    ensemble = train_teachers(
        as_teacher(make_pipeline(StandardScaler(), LogisticRegression())), X, (ill == "yes").astype(np.int64),
        hash_shards([place.to_bytes(8, "big") for place in range(300)], 10, key), n_teachers=10, n_classes=2, key=key,
    )  # fmt: skip
    assert (joined == count_votes(ensemble, asked.to_numpy()).reveal()).all()
    assert (joined.sum(axis=1) == 10).all()


@pytest.mark.parametrize("script", ["dask.sbatch", "votes.sbatch"])
def test_the_scripts_are_read_by_the_shell_and_keep_files_to_their_owner(script):
    subprocess.run(["bash", "-n", SLURM / script], check=True)
    text = (SLURM / script).read_text()
    assert "set -euo pipefail\numask 077\n" in text
