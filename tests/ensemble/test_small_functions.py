"""Examples of functions that nobody outside the room calls: what each returns where a value or two are extreme."""

from __future__ import annotations

import pickle

import hypothesis
import numpy as np
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import RidgeClassifier

from quorate.ensemble.ensemble import is_function
from quorate.ensemble.linear.newton import other_and_loss, shares_and_loss
from quorate.ensemble.linear.tiny import TinyRegressor, places_of
from quorate.ensemble.partition import _modulo
from quorate.ensemble.teachers.unfitted import may_have
from quorate.ensemble.training import _teachers_a_task
from quorate.ensemble.workers.cluster.remote import packages_named
from quorate.ensemble.workers.isolation import Lost, _framed, _unframed


def test_linear():
    other, loss = other_and_loss(np.array([0.0, 800.0, -800.0]))
    assert (other.tolist(), round(loss - 800, 3)) == ([0.5, 0.0, 1.0], 0.693)
    shares, loss = shares_and_loss(np.array([[0.0, 900.0], [0.0, 0.0]]), np.array([0, 1]))
    assert (shares.tolist(), round(loss - 900, 3)) == ([[0.5, 1.0], [0.5, 0.0]], 0.693)
    assert places_of(np.array([-7.0, 0.0, 0.5, np.inf, np.nan]), 100).tolist() == [0, 100, 150, -1, -1]
    voter = TinyRegressor(penalty=1.0, grid=100, gain=2.0).train(np.eye(2), np.array([200, 100]), 0)
    assert voter.vote(np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, 0.0]])).tolist() == [150, 100, -1]


def test_models_shards_and_tasks():
    assert (is_function(print), is_function(dict)) == (True, False)
    assert may_have(StackingClassifier([("ridge", RidgeClassifier())]), "predict")
    words = np.array([[0, 0, 1, 2], [2**64 - 1] * 4], dtype=np.uint64)
    for modulus in (1000, 2**40 + 1):
        assert _modulo(words, modulus).tolist() == [(2**64 + 2) % modulus, (2**256 - 1) % modulus]
    assert [_teachers_a_task(*sizes, cells_each=10**6) for sizes in ((250, 1), (3, 4))] == [16, 1]


def test_what_travels():
    assert list(packages_named(pickle.dumps(hypothesis.settings))) == ["hypothesis"]
    assert packages_named(pickle.dumps(print)) == {}
    assert _unframed(_framed(b"one") + _framed(None) + _framed(b"")) == [b"one", Lost.FAILED, b""]
    assert _unframed(b"anything else") == [Lost.FAILED]
