"""A task of two classes that is fitted in a moment, and what fits that go on owe: what the tests of this room share."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from quorate import Budget, Ledger, PrivateClassifier, PublicPool
from quorate.errors import InvalidParameter, PreconditionFailed

N, M, D = 300, 120, 4

SETTINGS = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_teachers": 10, "n_jobs": 1}


def table(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(np.int64)


X, Y = table(N, 1)

POOL = table(M, 2)[0]


def classifier(**changes):
    return PrivateClassifier(changes.pop("teacher", GaussianNB()), **{**SETTINGS, **changes})


def fitted(**changes):
    return classifier(**changes).fit(X, Y, public=PublicPool(POOL))


def entries(path):
    with Ledger(path) as ledger:
        return [each["kind"] for each in ledger.export() if each["kind"] != "started"]


def resumes_nothing(resume, folder):
    """Where there is no ledger that was begun, it says so, and leaves no file."""
    for ledger, error, said in (
        (None, InvalidParameter, "ledger= is None"),
        (folder / "none.db", PreconditionFailed, "there is no ledger at"),
    ):
        with pytest.raises(error, match=said):
            resume(ledger)
    with Ledger(budget=Budget(4.0, 1e-5)) as memory, pytest.raises(InvalidParameter, match="is in memory"):
        resume(memory)
    assert list(folder.iterdir()) == []


def resume_refused(clf, tables, path, error, said):
    """Another fit than the one that was begun is refused in a line, and changes and costs nothing."""
    before = entries(path)
    with pytest.raises(error, match=said) as refused:
        clf.resume(tables.pop("X"), tables.pop("y"), **tables)
    assert "\n" not in str(refused.value)
    assert refused.value.charged == "nothing was charged"
    assert entries(path) == before
    assert not hasattr(clf, "student_" if isinstance(clf, PrivateClassifier) else "model_")
