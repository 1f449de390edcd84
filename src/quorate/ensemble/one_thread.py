"""Boosting libraries on one thread, and so that the same shard gives the same trees to the last bit.

XGBoost and LightGBM bring thread pools of their own, and LightGBM times two ways of summing its histograms and takes
the quicker one: what it rounds would then depend on what else the machine does, and so on other teachers.
"""

from __future__ import annotations

from typing import Any

_THREADS = {"xgboost": "n_jobs", "lightgbm": "n_jobs", "catboost": "thread_count"}
_EXACTLY = {"lightgbm": {"deterministic": True, "force_row_wise": True}}
_WAYS = {"force_row_wise", "force_col_wise"}


def on_one_thread(estimator: Any) -> None:
    """Set what keeps the parts of `estimator` on one thread; nothing else of it is changed.

    `estimator`: a fresh copy that belongs to one teacher: an estimator, or a Pipeline of some.
    """
    if not hasattr(estimator, "get_params"):
        return
    parameters = estimator.get_params(deep=True)
    changed = {
        name: 1 for name, value in parameters.items() if name.rpartition("__")[2] == "n_jobs" and value not in (None, 1)
    }
    for prefix, part in [("", estimator), *((f"{name}__", value) for name, value in parameters.items())]:
        library = type(part).__module__.partition(".")[0]
        if library not in _THREADS or not hasattr(part, "set_params"):
            continue
        changed[f"{prefix}{_THREADS[library]}"] = 1
        given = part.get_params()
        exact = _EXACTLY.get(library, {})
        if _WAYS & given.keys():  # its owner has chosen the way
            exact = {name: value for name, value in exact.items() if name not in _WAYS}
        changed.update({f"{prefix}{name}": value for name, value in exact.items()})
    if changed:
        estimator.set_params(**changed)
