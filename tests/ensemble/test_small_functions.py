"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path

import hypothesis
import numpy as np
import pandas as pd
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import Normalizer, StandardScaler

from quorate.ensemble.ensemble import is_function
from quorate.ensemble.linear.equivalent import is_solved
from quorate.ensemble.linear.newton import other_and_loss, shares_and_loss
from quorate.ensemble.linear.tiny import TinyRegressor, places_of
from quorate.ensemble.partition import _modulo
from quorate.ensemble.teachers.command.process import absent, failing, of_a_shell, shortened
from quorate.ensemble.teachers.plain_classes import attributes, learned_attribute, made_anew, why_not_made_anew
from quorate.ensemble.teachers.prompted.endpoint import is_this_machine
from quorate.ensemble.teachers.prompted.prompt import names_of
from quorate.ensemble.teachers.teacher import AbstainingVoter, ConstantVoter, untrained
from quorate.ensemble.teachers.unfitted import carried, held_by, is_fitted, may_have
from quorate.ensemble.training import _teachers_a_task, rows_alone
from quorate.ensemble.training_elsewhere import _solved_a_task
from quorate.ensemble.votes import voters_a_task
from quorate.ensemble.workers.cluster.exchange import pack, unpack
from quorate.ensemble.workers.cluster.remote import differences, packages_named
from quorate.ensemble.workers.isolation import Lost, _framed, _unframed


class Nearest:
    def __init__(self, k: int = 3) -> None:
        self.k = k

    def fit(self, X: object, y: object) -> Nearest:
        self.rows = X
        return self


class Hiding:
    def __init__(self, k: int = 3) -> None:
        self._k = k


def learns(X: object, y: object, depth: int = 3, *, rate: float = 0.5) -> float:
    return depth * rate


def test_linear() -> None:
    assert [is_solved(rows, 50, 2, logistic=True) for rows in (100, 10**6)] == [True, False]
    other, loss = other_and_loss(np.array([0.0, 800.0, -800.0]))
    assert (other.tolist(), round(loss - 800, 3)) == ([0.5, 0.0, 1.0], 0.693)
    shares, loss = shares_and_loss(np.array([[0.0, 900.0], [0.0, 0.0]]), np.array([0, 1]))
    assert (shares.tolist(), round(loss - 900, 3)) == ([[0.5, 1.0], [0.5, 0.0]], 0.693)
    assert places_of(np.array([-7.0, 0.0, 0.5, np.inf, np.nan]), 100).tolist() == [0, 100, 150, -1, -1]
    voter = TinyRegressor(penalty=1.0, grid=100, gain=2.0).train(np.eye(2), np.array([200, 100]), 0)
    assert voter.vote(np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, 0.0]])).tolist() == [150, 100, -1]


def test_what_a_shell_would_read() -> None:
    assert of_a_shell("awk -f nb.awk | sort").startswith("no shell reads its words, so '|' is a word of the program's")
    assert of_a_shell("Rscript $HOME/teach.R").startswith("no shell reads its words, so '$HOME' stays as it is")
    for quoted in ("awk -F '|' -f nb.awk", 'sh -c "a; b > $1"', "teach --sep=\\;"):
        assert of_a_shell(quoted) == ""


def test_words_of_a_command() -> None:
    assert (
        shortened(["Traceback:", "  File x", "    ~~~^^", "KeyError: 'age'"]) == "Traceback: / File x / KeyError: 'age'"
    )
    assert shortened(["one", "two " * 58, "three"]).startswith("… / two two two two ")
    assert shortened(["Error: " + "long " * 60, "Execution halted"]).endswith("long long long … / Execution halted")
    command = ["awk", "-f", "nowhere.awk", "0.5", "--out=a.txt", "a line of code for it.py"]
    assert absent(command, Path("/")) == ["nowhere.awk"]
    assert failing(["nb"], Path("/"), "it wrote no file of votes", "", given="the file TRAIN") == (
        "the command nb fails on public rows: it wrote no file of votes. Mend it; it is called with the file TRAIN"
    )


def test_plain_classes() -> None:
    assert made_anew(Nearest(5)).k == 5
    assert why_not_made_anew(Hiding(5)) == "it keeps no attribute 'k' with the argument of that name"
    assert (learned_attribute(Nearest()), learned_attribute(Nearest().fit([[1.0]], [0]))) == (None, "rows")
    assert attributes(Fraction(1, 2)) == {"_numerator": 1, "_denominator": 2}


def test_models() -> None:
    assert (is_function(print), is_function(dict)) == (True, False)
    assert [type(part) for part in carried(BaggingClassifier(GaussianNB()))] == [BaggingClassifier, GaussianNB]
    assert held_by(learns) == [3, 0.5]
    assert may_have(StackingClassifier([("ridge", RidgeClassifier())]), "predict")
    steps = (Normalizer(), StandardScaler(), StandardScaler().fit([[0.0], [1.0]]))
    assert [is_fitted(step) for step in steps] == [False, False, True]
    nothing, one, two = (untrained(np.array(codes, dtype=np.int64)) for codes in ([], [3], [0, 3]))
    assert (type(nothing), type(one), two) == (AbstainingVoter, ConstantVoter, None)


def test_prompts() -> None:
    hosts = ("127.0.0.1", "localhost", "10.0.0.7")
    assert [is_this_machine(host) for host in hosts] == [True, True, False]
    assert (names_of([0, 1]), names_of([False, True])) == (("0", "1"), ("false", "true"))


def test_shards_and_tasks() -> None:
    words = np.array([[0, 0, 1, 2], [2**64 - 1] * 4], dtype=np.uint64)
    assert _modulo(words, 1000).tolist() == [(2**64 + 2) % 1000, (2**256 - 1) % 1000]
    taken = rows_alone(pd.DataFrame({"age": [39, 50, 38]}), np.array([2, 0]))
    assert taken.to_dict("split") == {"index": [0, 1], "columns": ["age"], "data": [[38.0], [39.0]]}
    assert [_teachers_a_task(250, jobs, cells_each=5_000) for jobs in (1, 2)] == [250, 42]
    assert [_teachers_a_task(*sizes, cells_each=10**6) for sizes in ((250, 1), (3, 4))] == [16, 1]
    assert [_solved_a_task(np.zeros((rows, 50)), 64) for rows in (6_400, 25_600)] == [256, 64]
    assert [voters_a_task(*sizes) for sizes in ((40, 1), (400, 1), (40, 2))] == [64, 100, 5]


def test_what_travels() -> None:
    assert (unpack(pack([1, 2])), pack(number for number in range(3))) == ([1, 2], b"")
    assert list(packages_named(pickle.dumps(hypothesis.settings))) == ["hypothesis"]
    assert packages_named(pickle.dumps(print)) == {}
    assert differences({"numpy": "2.4.0", "scipy": "1.16"}, {"numpy": "2.1.3", "scipy": "1.16"}) == [
        "numpy 2.1.3 there and 2.4.0 here"
    ]
    assert _unframed(_framed(b"one") + _framed(None) + _framed(b"")) == [b"one", Lost.FAILED, b""]
    assert _unframed(b"anything else") == [Lost.FAILED]
