"""The teachers' scores: how sure each of them is of class 1, for mechanisms that release soft labels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.arguments import count
from quorate.data.rows import n_rows
from quorate.ensemble.classifier import ClassifierVoter
from quorate.ensemble.isolation import Lost, in_children, one_thread_each, seed_global_generators
from quorate.ensemble.row_by_row import by_halves
from quorate.ensemble.teachers import ConstantVoter
from quorate.ensemble.votes import voters_a_task
from quorate.ensemble.workers import isolated_map
from quorate.errors import InvalidParameter
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.ensemble.ensemble import Ensemble
    from quorate.ensemble.scheduler import DaskScheduler
    from quorate.ensemble.teachers import Voter
    from quorate.types import FloatArray

SCORED_CLASS = 1


def gather_scores(
    ensemble: Ensemble,
    X: Any,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    scheduler: DaskScheduler | None = None,
) -> Secret[FloatArray]:
    """Ask every teacher how sure it is of class 1.

    Parameters
    ----------
    ensemble : Ensemble
        K voters of a task with two classes.
    X : array, CSR matrix or frame, (n_queries, n_features)
        The queries.
    n_jobs : int, default 1
        Worker processes.
    progress : callable, optional
        Called with (voters done, in all).
    scheduler : DaskScheduler, optional
        Whose workers ask them in place of processes of this machine.

    Returns
    -------
    Secret[FloatArray], (n_queries, n_teachers)
        In [0, 1]; NaN where a teacher abstains.

    Raises
    ------
    InvalidParameter
        If there are more than two classes.

    Notes
    -----
    Privacy: one changed teacher changes one column. A teacher that raises, crashes, has no probabilities, or gives
    back anything but numbers abstains, without a word.

    Examples
    --------
    >>> from quorate.ensemble import AbstainingVoter, ConstantVoter, Ensemble
    >>> ensemble = Ensemble(Secret((ConstantVoter(1), ConstantVoter(0), AbstainingVoter())), n_classes=2)
    >>> gather_scores(ensemble, np.zeros((2, 4))).reveal()
    array([[ 1.,  0., nan],
           [ 1.,  0., nan]])
    """
    if ensemble.n_classes != 2:
        raise InvalidParameter(
            f"soft labels are scores of the second of two classes, got {ensemble.n_classes}; choose another mechanism"
        )
    n_jobs, voters, n_queries = count("n_jobs", n_jobs, at_least=1), ensemble.voters.reveal(), n_rows(X)
    scores = np.full((n_queries, len(voters)), np.nan)
    asked = []
    for number, voter in enumerate(voters):
        if isinstance(voter, ConstantVoter):
            scores[:, number] = float(voter.code == SCORED_CLASS)
        elif isinstance(voter, ClassifierVoter):
            asked.append(number)
    together = all(voters[number].keeps_no_global_state for number in asked)  # type: ignore[attr-defined]
    work = partial(_score_batch, X, n_queries, together)
    batch = voters_a_task(len(asked), n_jobs)
    results = isolated_map(work, voters.__getitem__, asked, n_jobs=n_jobs, batch=batch, scheduler=scheduler)
    for number, result in results:
        if result is not None:
            scores[:, number] = np.frombuffer(result, dtype=np.float64)
    if progress is not None:  # at the end: how many voters had to be asked depends on private rows
        progress(len(voters), len(voters))
    return Secret(scores)


def _score_batch(X: Any, n_queries: int, together: bool, voters: list[Voter]) -> list[bytes | Lost]:
    """In a worker: let each voter score the queries, in child processes."""
    with one_thread_each():
        return in_children(partial(_score, X, n_queries), voters, together=together, cpu_seconds=None)


def _score(X: Any, n_queries: int, voter: ClassifierVoter) -> bytes:
    seed_global_generators(0)
    if SCORED_CLASS not in voter.codes:
        return np.full(n_queries, np.nan).tobytes()
    place = int(np.flatnonzero(voter.codes == SCORED_CLASS)[0])

    def told(rows: Any) -> Any:
        shares = np.asarray(voter.estimator.predict_proba(rows), dtype=np.float64)
        if shares.shape != (n_rows(rows), len(voter.codes)):
            raise ValueError  # as other failures; nobody is told of it
        return shares[:, place]

    scores = by_halves(told, X, lambda n: np.full(n, np.nan))
    return bytes(np.where(np.isfinite(scores), np.clip(scores, 0.0, 1.0), np.nan).tobytes())
