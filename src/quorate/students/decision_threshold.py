"""From which probability on the rarer of two classes is predicted: free of charge, by public rows and public facts.

Where one row in twenty-five is of a class, no row may ever be more likely of it than of the other, and a model that
orders rows well still calls all of them the common class. Moving the border changes which class is said, and leaves
probabilities and ROC-AUC as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from quorate.arguments import one_of, real
from quorate.errors import InvalidParameter
from quorate.students.declared import class_probabilities
from quorate.students.scores import rarer
from quorate.types import FloatArray

if TYPE_CHECKING:
    from quorate.data.rows import Rows

#: What ``decision_threshold`` may be beside a number.
THRESHOLD_RULES: Final = ("accuracy", "balanced", "share")
DecisionThreshold: TypeAlias = 'Literal["accuracy", "balanced", "share"] | float'

#: What it costs to miss a row of the rarer class, and to call another row so.
COSTS: Final = ("false_negative", "false_positive")

_SPREAD = 1e-9  # probabilities that differ by less order no rows


def check_decision_threshold(
    given: Any, classes: Sequence[Any], shares: Sequence[float | None] | None, *, name: str = "decision_threshold"
) -> DecisionThreshold:
    """Return the rule or number, before anything is charged.

    `given`: as typed. `classes`: as declared. `shares`: declared, in the order of the classes. `name`: as its user
    knows it. Returns of costs the number from which on, where probabilities are right, calling a row the rarer class
    costs least. Raises InvalidParameter if it is none of these; there are not two classes; or "share" is asked for and
    no share is declared.
    """
    if isinstance(given, Mapping):
        rule: DecisionThreshold = _of_costs(given, name)
    elif isinstance(given, float | int | np.number):
        rule = real(name, given, above=0, below=1)
    else:
        hint = 'A number in (0, 1) is taken too, and costs: {"false_negative": 10, "false_positive": 1}'
        rule = one_of(name, given, THRESHOLD_RULES, hint=hint)  # type: ignore[assignment]
    if rule != "accuracy" and len(classes) != 2:
        raise InvalidParameter(
            f"{name} moves the border between two classes, got {given!r} with {len(classes)} classes; leave it out"
        )
    if rule == "share" and shares is None:
        raise InvalidParameter(
            f'{name}="share" flags as many rows as are declared to be of the class; declare class_shares, such as '
            f"{{{classes[0]!r}: 0.04}}"
        )
    return rule


def _of_costs(given: Mapping[Any, Any], name: str) -> float:
    if set(given) != set(COSTS):
        raise InvalidParameter(
            f"{name} as costs must have the keys {' and '.join(COSTS)}, got {given!r}; give what each error costs, "
            'such as {"false_negative": 10, "false_positive": 1}'
        )
    missed, wrong = (real(f"{name}[{key!r}]", given[key], above=0) for key in COSTS)
    threshold = wrong / (missed + wrong)
    if not 0 < threshold < 1:
        raise InvalidParameter(f"{name}: costs of {missed:g} and {wrong:g} differ by too much; give a number in (0, 1)")
    return threshold


def require_probabilities(learner: Any, rule: DecisionThreshold, *, name: str = "decision_threshold") -> None:
    """Refuse a rule for a model that has no probabilities to compare with a threshold."""
    if rule != "accuracy" and not hasattr(learner, "predict_proba"):
        raise InvalidParameter(
            f"{name} needs probabilities, and {type(learner).__name__} has none; choose another student, or leave it "
            "out"
        )


def require_pool(
    rule: DecisionThreshold,
    has_pool: bool,
    shares: Sequence[float | None] | None,
    *,
    name: str = "decision_threshold",
) -> None:
    """Refuse a rule that is made of public rows where there are none; "balanced" does with declared shares."""
    if has_pool or rule not in ("balanced", "share") or (rule == "balanced" and shares is not None):
        return
    instead = "declare class_shares" if rule == "balanced" else 'take "balanced", which does with the declared share'
    raise InvalidParameter(
        f'{name}="{rule}" needs public rows, and there are none at hand; {instead}, or give a number in (0, 1)'
    )


def with_threshold(
    model: Any,
    rule: DecisionThreshold,
    *,
    classes: Sequence[Any],
    shares: Sequence[float | None] | None,
    pool: Rows | None,
    name: str = "decision_threshold",
) -> Any:
    """Return a model that predicts by a rule; made of scikit-learn's parts, and the same one where nothing moves.

    "balanced" takes the mean probability over the public pool, whatever the shares of the classes are there; where
    there is no pool, the declared share of the rarer class, which is that mean over the people. "share" takes the
    threshold that as many rows of the pool reach as are declared to be of the rarer class.

    `model`: fitted. `rule`: of :func:`check_decision_threshold`. `classes`, `shares`: as declared. `pool`: public rows
    as the model takes them; None where there is none. `name`: as its user knows it. Raises InvalidParameter if the rule
    needs a pool and there is none, or the model has no probabilities.
    """
    if rule == "accuracy":
        return model
    require_pool(rule, pool is not None, shares, name=name)
    require_probabilities(model, rule, name=name)
    if len(np.atleast_1d(model.classes_)) < 2:  # it says one class whatever it is asked
        return model
    positive = rarer(shares or (0.5, 0.5))
    if isinstance(rule, float):
        threshold: float | None = rule
    elif pool is None:
        assert shares is not None  # noqa: S101 - or it was refused
        threshold = shares[positive]
    else:
        probabilities = class_probabilities(model, pool, list(classes))[:, positive]
        threshold = threshold_of(rule, probabilities, None if shares is None else shares[positive])
    return model if threshold is None else _predicting_from(model, threshold, classes[positive])


def threshold_of(rule: str, probabilities: FloatArray, share: float | None) -> float | None:
    """Return the threshold of a rule; None where all public rows have the same probability, so that none is ahead.

    `rule`: "balanced" or "share". `probabilities`: of the rarer class on the pool, ``(n_public,)``. `share`: declared.
    """
    ordered = np.sort(probabilities)[::-1]
    if len(ordered) < 2 or ordered[0] - ordered[-1] < _SPREAD:
        return None
    if rule == "balanced":
        return float(np.mean(ordered))
    assert share is not None  # noqa: S101 - checked where the rule was
    n_flagged = min(max(round(share * len(ordered)), 1), len(ordered) - 1)
    return float((ordered[n_flagged - 1] + ordered[n_flagged]) / 2)


def decides_from(model: Any) -> tuple[float, Any] | None:
    """Return a threshold that was chosen, and the class that is predicted from there on; None where none was."""
    from sklearn.model_selection import FixedThresholdClassifier

    return (float(model.threshold), model.pos_label) if isinstance(model, FixedThresholdClassifier) else None


def threshold_in_use(moved: tuple[float, Any] | None, positive: Any) -> float:
    """Return from which probability of `positive` on that class is predicted; `moved`: of :func:`decides_from`."""
    if moved is None:
        return 0.5
    return moved[0] if moved[1] == positive else 1 - moved[0]


def _predicting_from(model: Any, threshold: float, positive: Any) -> Any:
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import FixedThresholdClassifier

    frozen = FrozenEstimator(model)
    moved = FixedThresholdClassifier(frozen, threshold=threshold, pos_label=positive, response_method="predict_proba")
    moved.estimator_ = frozen
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(moved, name, getattr(model, name))
    return moved
