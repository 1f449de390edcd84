"""A fit whose teachers are trained elsewhere has those of this machine; here the workers are played in this process.

Real workers are in ``tests/folder/test_scheduler.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from tests.estimators.small_task import POOL, X, Y, classifier

from quorate import PublicPool
from quorate.ensemble import DaskScheduler, training_elsewhere
from quorate.ensemble.workers import workers
from quorate.voting import kept_votes

pytestmark = pytest.mark.several_fits


@pytest.mark.heavy
def test_what_a_scheduler_is_given_gives_the_same_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, given = DaskScheduler("tls://cluster.example.org:8786", folder=tmp_path), []

    def played(
        at: DaskScheduler, work: Callable[[list[Any]], list[Any]], items: Any, **_size: int
    ) -> Iterator[tuple[int, Any]]:
        given.append(at)
        for number, item in items:
            yield number, work([item])[0]

    asked: dict[str, Any] = {"queries": 40, "online_answers": 3, "unsafe_noise_seed": 5}
    here = classifier(**asked).fit(X, Y, public=PublicPool(POOL))
    assert given == []
    monkeypatch.setattr(DaskScheduler, "connected", lambda self: nullcontext())
    monkeypatch.setattr(kept_votes, "_here", None)  # were a teacher trained by processes here, it would raise
    for module in (training_elsewhere, workers):
        monkeypatch.setattr(module, "map_elsewhere", played)
    clf = clone(classifier(**asked, scheduler=scheduler))
    assert clf.scheduler is scheduler  # a connection has no copy
    there = clf.fit(X, Y, public=PublicPool(POOL))
    assert given == [scheduler, scheduler]  # to train, and to have them vote on the pool
    assert np.array_equal(here.released_.answers, there.released_.answers)
    before = len(given)
    assert here.ask(X[:3]) == there.ask(X[:3])
    assert len(given) == before  # questions are asked here
