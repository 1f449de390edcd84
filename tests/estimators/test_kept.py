"""What a fitted classifier keeps: no private row, and nothing that travels."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest
from tests.estimators.small_task import POOL, N, X, Y, classifier, fitted

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.data.overlap import PrivateRecords
from quorate.errors import (
    SecretRefused,
)
from quorate.types import Secret


@pytest.mark.heavy
def test_a_fitted_classifier_does_not_travel(clf: PrivateClassifier) -> None:
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretRefused, match=r"export\(\) writes the student"):
            act(clf)
    assert pickle.loads(pickle.dumps(classifier())).get_params().keys() == clf.get_params().keys()  # noqa: S301


class _Rows(np.ndarray[Any, Any]):
    """Rows that the collector can be asked about."""


@pytest.mark.heavy
def test_the_private_rows_are_let_go_of_after_fit() -> None:
    import weakref

    rows, labels = X.copy(), Y.copy()
    alive = [weakref.ref(rows), weakref.ref(labels)]
    clf = classifier(online_answers=2, queries=20).fit(rows, labels, public=PublicPool(POOL))
    del rows, labels
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert reachable_arrays(clf, rows=N) == []
    assert clf._kept.task.inputs.private.reveal().X is None


@pytest.mark.heavy
def test_the_direct_method_lets_go_of_them_too() -> None:
    clf = PrivateLogisticRegression(classes=[0, 1], epsilon=4.0, delta=1e-5, n_records=N)
    clf.fit(X.copy(), Y.copy(), public=PublicPool(POOL))
    assert reachable_arrays(clf, rows=N) == []
    assert clf._kept.result.task is clf._kept.task


def test_that_walk_finds_rows_that_were_kept(clf: PrivateClassifier) -> None:
    twin = fitted(queries=20)
    object.__setattr__(twin._kept, "memo", Secret({"rows": [X]}))
    assert len(reachable_arrays(twin, rows=N)) == 1


def reachable_arrays(root: object, *, rows: int) -> list[Any]:
    """Arrays with that many rows to which any chain of references leads, through Secrets too.

    Keyed digests, by which private records are known again, are not followed: they are what may be kept of rows.
    """
    modules = {id(each) for each in (*vars(np).values(),)}
    seen: dict[int, object] = {}
    waiting, found = [root], []
    while waiting:
        each = waiting.pop()
        if id(each) in seen or id(each) in modules or isinstance(each, type) or callable(each):
            continue
        if type(each).__name__ in {"module", "frame", "code"} or isinstance(each, PrivateRecords):
            continue
        seen[id(each)] = each
        if isinstance(each, np.ndarray):
            found += [each] if each.ndim and len(each) == rows else []
            waiting += [each.base] if each.base is not None else []
        elif isinstance(each, Secret):
            waiting.append(each.reveal())
        else:
            waiting += gc.get_referents(each)
    return found
