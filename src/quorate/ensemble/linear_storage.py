"""Plain logistic regressions as arrays: one file of numbers for many teachers, read without pickle.

What skops writes of a teacher describes every object in it, which takes longer than the teacher took to train. A fitted
logistic regression is its parameters, which all teachers share but for the random state, and a few arrays.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.ensemble.classifier import ClassifierVoter
from quorate.ensemble.prior_matching import MatchedVoter
from quorate.ensemble.teachers import AbstainingVoter, ConstantVoter, Voter

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORMAT = "quorate linear voters 1"
_MARK = "format.npy"
_KINDS: tuple[type[Any], ...] = (AbstainingVoter, ConstantVoter, ClassifierVoter, MatchedVoter)
_LEARNED = {"coef_", "intercept_", "classes_", "n_iter_", "n_features_in_"}
_NO_STATE = -1  # random states are from 0 on
_ATOMS = (type(None), bool, int, float, str)


def dump_linear(voters: Sequence[Voter]) -> bytes | None:
    """Write voters as arrays; None where one of them is anything but a plain fitted logistic regression."""
    models = [voter.estimator for voter in voters if isinstance(voter, ClassifierVoter | MatchedVoter)]
    if any(type(voter) not in _KINDS for voter in voters) or not all(map(_is_plain, models)):
        return None
    shared = [_parameters(model) for model in models]
    if not models or any(each != shared[0] for each in shared):  # True and 1 are the same here, and to scikit-learn
        return None
    fitted = [voter for voter in voters if isinstance(voter, ClassifierVoter | MatchedVoter)]
    arrays: dict[str, NDArray[Any]] = {
        "format": np.array(_FORMAT),
        "parameters": np.array(json.dumps(shared[0])),
        "kinds": np.array([_KINDS.index(type(voter)) for voter in voters], dtype=np.int64),
        "constants": np.array([v.code for v in voters if isinstance(v, ConstantVoter)], dtype=np.int64),
        "thresholds": np.array([v.threshold for v in voters if isinstance(v, MatchedVoter)], dtype=np.float64),
        "states": np.array([_NO_STATE if m.random_state is None else m.random_state for m in models], dtype=np.int64),
        "shapes": np.array([(*m.coef_.shape, len(m.classes_), len(m.n_iter_)) for m in models], dtype=np.int64),
        "codes": np.concatenate([np.asarray(voter.codes, dtype=np.int64) for voter in fitted]),
        "coef": np.concatenate([model.coef_.ravel() for model in models]),
        "intercept": np.concatenate([model.intercept_ for model in models]),
        "n_iter": np.concatenate([model.n_iter_ for model in models]),
    }
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def is_linear_file(data: bytes) -> bool:
    """Tell whether these bytes were written by :func:`dump_linear`, or look as if they were."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            return _MARK in packed.namelist()
    except zipfile.BadZipFile:
        return False


def load_linear(data: bytes) -> tuple[Voter, ...]:
    """Read what :func:`dump_linear` wrote.

    Raises Exception of many kinds, if it was anything else.
    """
    from sklearn.linear_model import LogisticRegression

    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    if str(arrays["format"]) != _FORMAT:
        raise ValueError
    parameters = json.loads(str(arrays["parameters"]))
    constants, thresholds = iter(arrays["constants"].tolist()), iter(arrays["thresholds"].tolist())
    taken = {name: _Taken(arrays[name]) for name in ("codes", "coef", "intercept", "n_iter")}
    models = iter(zip(arrays["states"].tolist(), arrays["shapes"].tolist(), strict=True))
    voters: list[Voter] = []
    for kind in arrays["kinds"].tolist():
        if _KINDS[kind] is AbstainingVoter:
            voters.append(AbstainingVoter())
            continue
        if _KINDS[kind] is ConstantVoter:
            voters.append(ConstantVoter(next(constants)))
            continue
        state, (n_scores, width, n_classes, n_iter) = next(models)
        estimator = LogisticRegression(**parameters, random_state=None if state == _NO_STATE else state)
        estimator.n_features_in_ = width
        estimator.coef_ = taken["coef"].next(n_scores * width).reshape(n_scores, width)
        estimator.intercept_ = taken["intercept"].next(n_scores)
        estimator.classes_, estimator.n_iter_ = np.arange(n_classes), taken["n_iter"].next(n_iter)
        codes = taken["codes"].next(n_classes)
        matched = _KINDS[kind] is MatchedVoter
        voters.append(
            MatchedVoter(estimator, codes, next(thresholds)) if matched else ClassifierVoter(estimator, codes)
        )
    return tuple(voters)


class _Taken:
    """An array that is taken apart from its beginning; each part is an array of its own, as it was before."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self._at = array, 0

    def next(self, n: int) -> NDArray[Any]:
        part = self._array[self._at : self._at + n].copy()
        if len(part) != n:
            raise ValueError
        self._at += n
        return part


def _is_plain(model: Any) -> bool:
    """Whether a model comes back as it was: a logistic regression with what a fit on numbers leaves, and no more."""
    from sklearn.linear_model import LogisticRegression

    if type(model) is not LogisticRegression:
        return False
    parameters = model.get_params(deep=False)
    if vars(model).keys() != parameters.keys() | _LEARNED:
        return False
    state, coef, intercept = parameters.pop("random_state"), model.coef_, model.intercept_
    return (
        all(type(value) in _ATOMS for value in parameters.values())
        and (state is None or (type(state) is int and 0 <= state < 2**63))
        and _is_array(coef, np.float64, 2)
        and _is_array(intercept, np.float64, 1)
        and len(intercept) == len(coef)
        and _is_array(model.n_iter_, np.int32, 1)
        and _is_array(model.classes_, np.int64, 1)
        and bool((model.classes_ == np.arange(len(model.classes_))).all())
        and model.n_features_in_ == coef.shape[1]
    )


def _is_array(value: Any, dtype: Any, n_dimensions: int) -> bool:
    return (
        type(value) is np.ndarray
        and value.dtype == dtype
        and value.ndim == n_dimensions
        and bool(value.flags.c_contiguous)
    )


def _parameters(model: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = model.get_params(deep=False)
    del parameters["random_state"]
    return parameters
