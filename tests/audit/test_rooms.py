"""The surface walk over the rooms that handle secrets: nothing private shows on their objects, logs or errors."""

import copy
import json
import pickle

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from quorate.audit import Forbidden, Surfaces, find_leaks
from quorate.data import slot_bytes
from quorate.ensemble import ClassifierTeacher, count_votes, hash_shards, train_teachers
from quorate.mechanisms import GaussianNoisyMax, StableSparseVector
from quorate.noise import OSNoise, SeededNoise
from quorate.types import Secret

N = 1_731
KEY = Secret(bytes(range(32)))


@pytest.fixture(scope="module")
def private_side():
    """Train, vote, release and provoke errors; what can be seen of it, and what must not be."""
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(N, 3)), rng.integers(0, 2, N)
    names = [f"patient-{each:05d}" for each in rng.choice(10**5, N, replace=False)]
    public = rng.normal(size=(64, 3))
    with Surfaces() as seen:
        unit_keys = slot_bytes(names, N)
        shards = hash_shards(unit_keys, 40, KEY)
        ensemble = train_teachers(ClassifierTeacher(GaussianNB()), X, y, shards, n_teachers=40, n_classes=2, key=KEY)
        votes = count_votes(ensemble, public)
        sparse = StableSparseVector(epsilon=1.0, delta=1e-3, cutoff=5, n_queries=64)
        state = sparse.init(OSNoise())
        answers = GaussianNoisyMax(sigma=4.0).release_many(votes.reveal(), SeededNoise(1))
        for name, shown in {
            "ensemble": ensemble, "shards": shards, "votes": votes, "key": KEY, "sparse": sparse, "state": state,
            "answers": answers,
        }.items():  # fmt: skip
            seen.add_object(name, shown)
            seen.add_dump(name, shown, pickle.dumps)
            seen.attempt(f"{name}.copy", copy.deepcopy, shown)
            seen.attempt(f"{name}.json", json.dumps, shown)
        seen.attempt("too many teachers", hash_shards, unit_keys, N + 1, KEY)
        seen.attempt(
            "wrong width", GaussianNoisyMax(sigma=4.0, form="binary").release, votes.reveal()[:, :1], OSNoise()
        )
    facts = [
        Forbidden("rows", arrays=[X]),
        Forbidden("labels", arrays=[y]),
        Forbidden("names", texts=names),
        Forbidden("n", numbers=[N]),
        Forbidden("votes", arrays=[votes.reveal(), votes.reveal()[:, 0]]),
        Forbidden("shards", arrays=[shards.reveal()]),
        Forbidden("key", texts=[KEY.reveal()], arrays=[list(KEY.reveal())]),
    ]
    return seen, facts, votes


def test_nothing_private_shows_on_objects_copies_logs_or_errors(private_side):
    seen, facts, _ = private_side
    assert find_leaks(seen, facts) == []
    assert len(seen.surfaces) > 40


def test_that_test_catches_votes_that_are_not_wrapped(private_side):
    _, facts, votes = private_side
    seen = Surfaces()
    seen.add_dump("votes", votes.reveal(), pickle.dumps)
    assert {leak.fact for leak in find_leaks(seen, facts)} == {"votes"}
