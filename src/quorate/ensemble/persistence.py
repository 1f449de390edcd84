"""Voters as bytes, without pickle: what cannot be written safely is refitted when it is needed.

What skops writes of a teacher takes longer than the teacher took to train. Fitted logistic regressions share their
parameters but for the random state, so many of them are one file of numbers.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.ensemble.teachers.class_names import LabelledEstimator
from quorate.ensemble.teachers.classifier import ClassifierVoter
from quorate.ensemble.teachers.command import CommandTeacher, CommandVoter
from quorate.ensemble.teachers.prior_matching import MatchedVoter
from quorate.ensemble.teachers.teacher import AbstainingVoter, ConstantVoter, Teacher, Voter
from quorate.errors import PreconditionFailed
from quorate.stored_names import stored_as
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Sequence

_ARRAYS_FORMAT = "quorate linear voters 1"
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
    if not models or any(one != shared[0] for one in shared):  # True and 1 are the same here, and to scikit-learn
        return None
    fitted = [voter for voter in voters if isinstance(voter, ClassifierVoter | MatchedVoter)]
    arrays: dict[str, NDArray[Any]] = {
        "format": np.array(_ARRAYS_FORMAT),
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
    """Read what :func:`dump_linear` wrote; anything else raises exceptions of many kinds."""
    from sklearn.linear_model import LogisticRegression

    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if str(arrays["format"]) != _ARRAYS_FORMAT:
        raise ValueError
    parameters = json.loads(str(arrays["parameters"]))
    constants, thresholds = iter(arrays["constants"].tolist()), iter(arrays["thresholds"].tolist())
    values = {name: _Taken(arrays[name]) for name in ("codes", "coef", "intercept", "n_iter")}
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
        estimator.coef_ = values["coef"].next(n_scores * width).reshape(n_scores, width)
        estimator.intercept_ = values["intercept"].next(n_scores)
        estimator.classes_, estimator.n_iter_ = np.arange(n_classes), values["n_iter"].next(n_iter)
        codes = values["codes"].next(n_classes)
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


_FORMAT = "quorate voters 1"
_BOOSTING = {("lightgbm", "LGBMClassifier"), ("xgboost", "XGBClassifier")}


def dump_voters(voters: Secret[tuple[Voter, ...]], *, boosting: bool = True) -> Secret[bytes] | None:
    """Write plain logistic regressions as arrays (:mod:`quorate.ensemble.persistence`), all else with skops.

    Bare models of LightGBM and XGBoost are written in the text of their library, which runs no code when it is read;
    with `boosting=False` they are not, where votes are all that is wanted of them. None where skops cannot write one of
    them, or would read it back only by trusting a type it does not trust by itself (decision trees are such a type):
    teachers are then refitted, which gives the same voters.
    """
    arrays = dump_linear(voters.reveal())
    if arrays is not None:
        return Secret(arrays)
    from quorate.deferred import skops

    text = any(map(_of_boosting, voters.reveal()))
    if text and not boosting:
        return None
    try:
        records = [_record(voter) for voter in voters.reveal()]
        if None in records:
            return None
        packing = zipfile.ZIP_DEFLATED if text else zipfile.ZIP_STORED  # text packs to a tenth
        written: bytes = skops.io.dumps({"format": _FORMAT, "voters": records}, compression=packing)
        if skops.io.get_untrusted_types(data=written):
            return None
        one = next((record for record in records if record is not None and "codes" in record), None)
        if one is not None:  # the others are of the same kind: what was just written is not all read again
            load_voters(skops.io.dumps({"format": _FORMAT, "voters": [one]}))
    except Exception:  # noqa: BLE001 - what went wrong depends on private rows, and refitting is the way on in any case
        return None
    return Secret(written)


def load_voters(data: bytes, teacher: Teacher | None = None) -> Secret[tuple[Voter, ...]]:
    """Read what :func:`dump_voters` wrote, trusting no type beyond skops' own list; PreconditionFailed for anything
    else.

    `teacher`: who trained them: the files that a command left are asked by the command of the settings, and by no
    other.
    """
    try:
        if is_linear_file(data):
            return Secret(load_linear(data))
        from quorate.deferred import skops

        content: Any = skops.io.loads(data, trusted=[])
        if content["format"] != _FORMAT:
            raise ValueError  # noqa: TRY301
        return Secret(tuple(_voter(record, teacher) for record in content["voters"]))
    except Exception:  # noqa: BLE001 - whatever a broken file breaks
        # From None: the cause may quote what is in the file.
        raise PreconditionFailed(
            "this is not a file of teachers, or one that was altered. Delete it to refit the teachers."
        ) from None


def _record(voter: Voter) -> dict[str, Any] | None:
    if type(voter) is AbstainingVoter:
        return {"kind": "abstaining"}
    if type(voter) is ConstantVoter:
        return {"kind": "constant", "code": int(voter.code)}
    if type(voter) is ClassifierVoter:
        return {"kind": "classifier", **_of_estimator(voter.estimator), "codes": np.asarray(voter.codes)}
    if type(voter) is MatchedVoter:
        return {
            "kind": "matched",
            **_of_estimator(voter.estimator),
            "codes": np.asarray(voter.codes),
            "threshold": float(voter.threshold),
        }
    if type(voter) is CommandVoter and voter.model is not None:
        model = {name: np.frombuffer(content, np.uint8) for name, content in voter.model.items()}
        return {"kind": "command", "seed": voter.seed, "model": model}
    return None


def _of_estimator(estimator: Any) -> dict[str, Any]:
    if isinstance(estimator, LabelledEstimator):
        return {**_of_estimator(estimator.estimator), "labels": estimator.labels}
    return _boosting_text(estimator) or {"estimator": estimator}


def _estimator(record: dict[str, Any]) -> Any:
    read = _boosting_model(record) if "library" in record else record["estimator"]
    return LabelledEstimator(read, list(record["labels"])) if "labels" in record else read


def _of_boosting(voter: Voter) -> bool:
    estimator = getattr(voter, "estimator", None)
    return _boosting_library(estimator.estimator if isinstance(estimator, LabelledEstimator) else estimator) is not None


def _boosting_library(estimator: Any) -> str | None:
    """Return the library of a bare classifier of LightGBM or XGBoost; None of any other."""
    library = type(estimator).__module__.partition(".")[0]
    return library if (library, type(estimator).__name__) in _BOOSTING else None


def _boosting_text(estimator: Any) -> dict[str, Any] | None:
    """Return a bare model of such a library in its own text format, which runs no code when it is read."""
    library = _boosting_library(estimator)
    if library is None:
        return None
    if library == "lightgbm":
        return {"library": library, "text": estimator.booster_.model_to_string()}
    parameters = estimator.get_params(deep=False)
    if not all(type(value) in _ATOMS for value in parameters.values()):  # such as an objective of the owner's own
        raise ValueError
    text = bytes(estimator.get_booster().save_raw("json")).decode()
    return {"library": library, "text": text, "parameters": parameters}


def _boosting_model(record: dict[str, Any]) -> Any:
    if record["library"] == "lightgbm":
        return LightGBMAsRead(record["text"])
    from xgboost import XGBClassifier

    model = XGBClassifier(**record["parameters"])
    model.load_model(bytearray(record["text"].encode()))
    return model


@stored_as("quorate.ensemble.persistence.LightGBMAsRead")
class LightGBMAsRead:
    """A classifier of LightGBM that was read from `text`, which holds its trees and not the parameters of its fit."""

    def __init__(self, text: str) -> None:
        from lightgbm import Booster

        self._booster = Booster(model_str=text)
        self.n_features_in_ = self._booster.num_feature()

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the place of the likeliest class, ``(n_rows,)``."""
        places: NDArray[np.int64] = np.argmax(self.predict_proba(X), axis=1)
        return places

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return ``(n_rows, n_classes)`` probabilities."""
        raw = np.asarray(self._booster.predict(X, num_threads=1))
        return raw if raw.ndim == 2 else np.column_stack([1.0 - raw, raw])


def _voter(record: dict[str, Any], teacher: Teacher | None) -> Voter:
    match record["kind"]:
        case "abstaining":
            return AbstainingVoter()
        case "constant":
            return ConstantVoter(int(record["code"]))
        case "classifier":
            return ClassifierVoter(_estimator(record), np.asarray(record["codes"], dtype=np.int64))
        case "matched":
            codes = np.asarray(record["codes"], dtype=np.int64)
            return MatchedVoter(_estimator(record), codes, float(record["threshold"]))
        case "command" if isinstance(teacher, CommandTeacher):
            model = {str(name): np.asarray(content, np.uint8).tobytes() for name, content in record["model"].items()}
            return CommandVoter(teacher, int(record["seed"]), model=model)
        case _:
            raise ValueError
