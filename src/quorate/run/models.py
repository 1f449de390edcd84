"""The built-in models, by the names that ``quorate.toml`` uses, and a user's own by ``package.module:factory``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from quorate.errors import InvalidParameter

Role = Literal["teacher", "student"]

TEACHER_C = 100.0  # weak regularisation: voting averages a teacher's variance away, but never its bias
MAX_ITERATIONS = 1_000


def built_in(name: str, role: Role) -> Any:
    """Return an unfitted classifier.

    Teachers see a few dozen rows each, so theirs are small; a vote of many is what makes them strong.

    Examples
    --------
    >>> built_in("logistic", "teacher")
    LogisticRegression(C=100.0, max_iter=1000)
    """
    if name == "logistic":
        from sklearn.linear_model import LogisticRegression

        C = TEACHER_C if role == "teacher" else 1.0
        return LogisticRegression(C=C, max_iter=MAX_ITERATIONS)
    if name == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(n_estimators=25 if role == "teacher" else 200, min_samples_leaf=2)
    if name == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(min_samples_leaf=5 if role == "teacher" else 20)
    raise InvalidParameter(f'{role} model {name!r} is not built in; use "logistic", "forest" or "boosting"')


def model_of(name: str, role: Role, *, folder: Path) -> Any:
    """Return the classifier that a name in ``quorate.toml`` stands for.

    A name with a colon is imported: ``"package.module:factory"``, called without arguments. Modules beside
    ``quorate.toml`` are found too.
    """
    if ":" not in name:
        return built_in(name, role)
    module_name, _, factory_name = name.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        model = getattr(import_module(module_name), factory_name)()
    except Exception as error:  # noqa: BLE001 - the user's own code, before any row is there
        raise InvalidParameter(
            f"{role} model {name!r} could not be made ({error}); expected an importable package.module:factory that "
            "takes no arguments and returns a scikit-learn classifier"
        ) from None
    return model
