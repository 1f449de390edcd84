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


def prepared(rows, labels, groups, key=bytes(32), **changes):
    config, secret = RunConfig(**{"teacher": GaussianNB(), **SETTINGS, **changes}), Secret(key)
    tables = {"public": PublicPool(POOL), "groups": groups}
    return prepare(config, rows, labels, **tables, key=secret, fingerprint_key=secret, noise=OSNoise())


def trained(rows, labels, groups, key, **changes):
    """The teachers of a fit, by the estimator's own way of preparing and training, each as a text of all it learned."""
    task = prepared(rows, labels, groups, key, **changes)
    voters = teachers(task, NoStages(), lambda stage, done, total: None, shards=shards_to_train(task)).voters.reveal()
    return [described(voter) for voter in voters]


GROUPS = np.repeat(np.arange(N // 3), 3)


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression(), DecisionTreeClassifier()])
def test_changing_adding_or_removing_a_person_of_several_rows_changes_exactly_one_teacher(model):
    key = bytes(range(32))
    before = trained(X, Y, GROUPS, key, teacher=model)
    assert before == trained(X, Y, GROUPS, key, teacher=model), "the same rows give the same teachers"
    theirs = GROUPS == 7
    changed, flipped = X.copy(), Y.copy()
    changed[theirs] += 5.0
    flipped[theirs] = 1 - flipped[theirs]
    neighbours = {
        "replaced": (changed, flipped, GROUPS),
        "removed": (X[~theirs], Y[~theirs], GROUPS[~theirs]),
        "added": (np.vstack([X, changed[theirs]]), np.append(Y, flipped[theirs]), np.append(GROUPS, [9_999] * 3)),
    }
    for change, table_ in neighbours.items():
        after = trained(*table_, key, teacher=model)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1, change


FOREST = RandomForestClassifier(3, max_depth=2)  # one that draws: its votes hang on its seed


def by_persons(rows, labels, groups, **changes):
    """The teachers of a fit in which each person is one, whatever their order."""
    told = trained(rows, labels, groups, bytes(range(32)), partition="unit", n_teachers="auto", **changes)
    return Counter(each for each in told if "AbstainingVoter" not in each)


def without_and_with(groups):
    theirs = groups == 7
    changed = np.where(theirs[:, None], X + 5.0, X)
    return {
        "replaced": (changed, Y, groups),
        "removed": (X[~theirs], Y[~theirs], groups[~theirs]),
        "added": (np.vstack([X, changed[theirs]]), np.append(Y, Y[theirs]), np.append(groups, [9_999] * theirs.sum())),
    }


@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("n_records", [10, None, 400], ids=["fewer declared", "read", "more declared"])
def test_each_person_a_teacher_of_their_own_moves_that_one_alone(n_records):
    before = by_persons(X, Y, GROUPS, teacher=FOREST, n_records=n_records)
    assert before.total() == N // 3, "nobody shares a teacher, however many persons were declared"
    moved = {
        change: ((before - after).total(), (after - before).total())
        for change, neighbour in without_and_with(GROUPS).items()
        for after in [by_persons(*neighbour, teacher=FOREST, n_records=n_records)]
    }
    assert moved == {"replaced": (1, 1), "removed": (1, 0), "added": (0, 1)}


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
    after = by_persons(*without_and_with(GROUPS)["removed"], teacher=FOREST)
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
    key = bytes(range(32))
    before = trained(X, Y, GROUPS, key, partition="balanced")
    theirs = GROUPS == 7
    changed = np.where(theirs[:, None], X + 5.0, X)
    after = trained(changed, Y, GROUPS, key, partition="balanced")
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    removed = trained(X[~theirs], Y[~theirs], GROUPS[~theirs], key, partition="balanced")
    assert sum(a != b for a, b in zip(before, removed, strict=True)) > 1


def test_a_row_by_position_is_blanked_in_place_or_appended():
    key = bytes(range(32))
    before = trained(X, Y, None, key)
    after = trained(np.vstack([X, X[:1] + 3.0]), np.append(Y, 1 - Y[0]), None, key)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    renumbered = trained(X[1:], Y[1:], None, key)
    assert sum(a != b for a, b in zip(before, renumbered, strict=True)) > 1, "not covered, as the guarantee says"


def test_an_encoder_fitted_on_private_rows_would_move_every_teacher(monkeypatch):
    """The broken twin of the test above: preprocessing on pooled private rows."""
    key = bytes(range(32))
    real = kept_votes.train_chunk

    def scaled_together(teacher, rows, *args, **how):
        return real(teacher, StandardScaler().fit_transform(rows), *args, **how)

    monkeypatch.setattr(kept_votes, "train_chunk", scaled_together)
    before = trained(X, Y, GROUPS, key)
    after = trained(np.where((GROUPS == 7)[:, None], X + 5.0, X), Y, GROUPS, key)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == SETTINGS["n_teachers"]
