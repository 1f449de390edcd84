"""One changed unit changes exactly one teacher, by the own way of preparing and training."""

from collections import Counter

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.estimators.small_task import POOL, SETTINGS, N, X, Y

from quorate import PublicPool
from quorate.ledger import Budget, Ledger
from quorate.noise import OSNoise
from quorate.release.model_digest import described
from quorate.run.stage_store import NoStages
from quorate.types import Secret
from quorate.voting import kept_votes, shard_rows
from quorate.voting.config import RunConfig
from quorate.voting.flow import run_pipeline
from quorate.voting.kept_votes import teachers
from quorate.voting.prepare import prepare
from quorate.voting.shard_rows import shards_to_train

pytestmark = pytest.mark.heavy


GROUPS = np.repeat(np.arange(N // 3), 3)
THEIRS = GROUPS == 7
CHANGED, FLIPPED = np.where(THEIRS[:, None], X + 5.0, X), np.where(THEIRS, 1 - Y, Y)
NEIGHBOURS = {
    "replaced": (CHANGED, FLIPPED, GROUPS),
    "removed": (X[~THEIRS], Y[~THEIRS], GROUPS[~THEIRS]),
    "added": (np.vstack([X, CHANGED[THEIRS]]), np.append(Y, FLIPPED[THEIRS]), np.append(GROUPS, [9_999] * 3)),
}


def prepared(rows, labels, groups, **changes):
    config, key = RunConfig(**{"teacher": GaussianNB(), **SETTINGS, **changes}), Secret(bytes(range(32)))
    tables = {"public": PublicPool(POOL), "groups": groups}
    return prepare(config, rows, labels, **tables, key=key, fingerprint_key=key, noise=OSNoise())


def trained(rows, labels, groups, **changes):
    """The teachers of a fit, by the estimator's own way of preparing and training, each as a text of all it learned."""
    task = prepared(rows, labels, groups, **changes)
    voters = teachers(task, NoStages(), lambda stage, done, total: None, shards=shards_to_train(task)).voters.reveal()
    return [described(voter) for voter in voters]


def moved(before, after):
    """How many teachers learned something else."""
    return sum(a != b for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression(), DecisionTreeClassifier()])
def test_changing_adding_or_removing_a_person_of_several_rows_changes_exactly_one_teacher(model):
    before = trained(X, Y, GROUPS, teacher=model)
    assert before == trained(X, Y, GROUPS, teacher=model), "the same rows give the same teachers"
    for change, neighbour in NEIGHBOURS.items():
        assert moved(before, trained(*neighbour, teacher=model)) == 1, change


FOREST = RandomForestClassifier(3, max_depth=2)  # one that draws: its votes hang on its seed


def by_persons(rows, labels, groups, **changes):
    """The teachers of a fit in which each person is one, whatever their order."""
    told = trained(rows, labels, groups, partition="unit", n_teachers="auto", **changes)
    return Counter(each for each in told if "AbstainingVoter" not in each)


@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("n_records", [10, None, 400], ids=["fewer declared", "read", "more declared"])
def test_each_person_a_teacher_of_their_own_moves_that_one_alone(n_records):
    before = by_persons(X, Y, GROUPS, teacher=FOREST, n_records=n_records)
    assert before.total() == N // 3, "nobody shares a teacher, however many persons were declared"
    gone_and_come = {
        change: ((before - after).total(), (after - before).total())
        for change, neighbour in NEIGHBOURS.items()
        for after in [by_persons(*neighbour, teacher=FOREST, n_records=n_records)]
    }
    assert gone_and_come == {"replaced": (1, 1), "removed": (1, 0), "added": (0, 1)}


def test_progress_tells_the_declared_number_of_persons_and_not_the_true_one():
    heard = []
    task = prepared(X, Y, GROUPS, n_teachers="auto", partition="unit", n_records=60)
    with Ledger(budget=Budget(5.0, 1e-4)) as ledger:
        run_pipeline(task, ledger, watch=lambda stage, done, total: heard.append((stage, done, total)))
    assert {total for stage, _, total in heard if stage in ("teachers", "votes")} == {60}
    assert max(done for stage, done, _ in heard if stage in ("teachers", "votes")) == 60


def test_seeds_by_the_place_of_a_person_would_move_many_teachers(monkeypatch):
    """The broken twin of the test above: shards without a name of their own, and seeds by their numbers."""
    monkeypatch.setattr(shard_rows, "seeds_of", lambda task, shards: None)
    before = by_persons(X, Y, GROUPS, teacher=FOREST)
    after = by_persons(*NEIGHBOURS["removed"], teacher=FOREST)
    assert (before - after).total() > 1


def test_persons_are_teachers_of_their_own_by_default_where_their_rows_are_a_shard():
    def partition(groups, **changes):
        return prepared(X, Y, groups, **{"n_teachers": "auto", "allow_hopeless": True, **changes}).partition

    few = np.arange(N) % 8
    assert partition(few) == "unit"
    assert partition(few, n_teachers=4) == "hash"
    assert partition(few, partition="hash") == "hash"
    assert partition(None) == "hash"


def test_a_balanced_partition_keeps_that_promise_for_replacing_only():
    before = trained(X, Y, GROUPS, partition="balanced")
    assert moved(before, trained(*NEIGHBOURS["replaced"], partition="balanced")) == 1
    assert moved(before, trained(*NEIGHBOURS["removed"], partition="balanced")) > 1


def test_a_row_by_position_is_blanked_in_place_or_appended():
    before = trained(X, Y, None)
    assert moved(before, trained(np.vstack([X, X[:1] + 3.0]), np.append(Y, 1 - Y[0]), None)) == 1
    assert moved(before, trained(X[1:], Y[1:], None)) > 1, "not covered, as the guarantee says"


def test_an_encoder_fitted_on_private_rows_would_move_every_teacher(monkeypatch):
    """The broken twin of the test above: preprocessing on pooled private rows."""
    real = kept_votes.train_chunk

    def scaled_together(teacher, rows, *args, **how):
        return real(teacher, StandardScaler().fit_transform(rows), *args, **how)

    monkeypatch.setattr(kept_votes, "train_chunk", scaled_together)
    before, after = trained(X, Y, GROUPS), trained(*NEIGHBOURS["replaced"])
    assert moved(before, after) == SETTINGS["n_teachers"]
