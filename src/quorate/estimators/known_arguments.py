"""What an estimator is given: arguments that it has, pairs of rows and labels, and columns as scikit-learn names them.

An argument that there is not is refused in a line that names the nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from quorate.ambient import own_switches
from quorate.arguments import nearest
from quorate.data.declared_schema import DROPPED
from quorate.data.rows import columns, holds_texts
from quorate.errors import DataRefused, InvalidParameter, act
from quorate.release.session import refuse_folds

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E")

# What people bring from elsewhere, or from quorate.toml, and what stands for it here.
ELSEWHERE = {
    **dict.fromkeys(
        ("random_state", "seed"),
        "what a fit draws is secret; unsafe_noise_seed= repeats a fit in tests, and voids its guarantee",
    ),
    **dict.fromkeys(
        ("estimator", "base_estimator", "model"), "teacher= and student= of PrivateClassifier are the models"
    ),
    "n_estimators": "n_teachers= of PrivateClassifier is how many models vote",
    **dict.fromkeys(("label", "target"), "what is to be predicted is y of fit"),
    "range": "target_range= of PrivateRegressor says between which ends the target is",
    "by": 'method= of PrivateClassifier is "votes", "direct" or "auto"',
    "evaluation": "score(X, y) takes public rows with labels, after the fit",
    "public": "give public= to fit",
    "groups": "give groups= to fit",
    "class_weight": "class_shares= and decision_threshold= of classifiers are for a rare class "
    "(docs/how-to/a-rare-class.md)",
    "sample_weight": "every unit counts once, so that what it can change is bounded; leave it out",
    "warm_start": "a fit that was interrupted goes on by resume",
    "cv": "every fold would be charged (docs/how-to/evaluate-privately.md)",
    "accountant": "ledger= counts what was spent, and epsilon= and delta= are what a fit may cost",
    "bounds": "public= or schema= of fit says what columns hold",
    "bounds_y": "target_range= of PrivateRegressor says between which ends the target is",
    "data_norm": "public= or schema= of fit says what columns hold",
    **dict.fromkeys(("noise_multiplier", "noise", "sigma"), "the noise follows from epsilon= and delta="),
    "max_grad_norm": "the bound on what one unit adds is clip= of PrivateLogisticRegression",
    **dict.fromkeys(
        ("C", "alpha", "max_iter", "penalty", "solver", "tol", "fit_intercept"),
        "the model follows from public facts; of a teacher or student of yours, give it there",
    ),
    "n_jobs": "it works in one process",
    "budget": "epsilon= and delta= are what a fit may cost, and ledger= says what it is charged to",
}


def known_arguments(estimator: type[E]) -> type[E]:
    """Decorate an estimator, so that its constructor refuses arguments which it does not have in plain words.

    Raises InvalidParameter the constructor does, naming the argument and the nearest one that there is.
    """
    init: Callable[..., None] = vars(estimator)["__init__"]
    names = [name for name in signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in names:
                hint = f"; {ELSEWHERE[name]}" if name in ELSEWHERE else nearest(name, names)
                hint = hint or f"; help({type(self).__name__}) says which it has"
                raise InvalidParameter(f"{type(self).__name__} has no argument {name!r}{hint}")
        init(self, *args, **kwargs)

    estimator.__init__ = checked  # type: ignore[method-assign]
    return estimator


# What people give to fit, and what stands for it here.
IN_FIT = {
    "public": "no public rows are needed beside those of X; leave it out",
    "sample_weight": "every unit counts once, so that what it can change is bounded; leave it out",
    "unit": "give groups=, whose row it is; unit= of the estimator is the word for it",
    "epsilon": "give epsilon= to the estimator",
    "delta": "give delta= to the estimator",
    "classes": "give classes= to the estimator",
}


def tables_by_name(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate ``fit`` and the like, so that a table given by place, or by no name there is, is refused in plain words.

    What the user's process has switched (:mod:`quorate.ambient`) decides nothing in it. A fit that promises something
    is refused here where a cross-validation or a search calls it: before anything is read, or warned of.

    Raises InvalidParameter as the method does, before it looks at any table; PreconditionFailed in a cross-validation.
    """
    parameters = [p for p in signature(method).parameters.values() if p.name != "self"]
    by_place = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    required = [p.name for p in parameters if p.default is Parameter.empty]
    by_name = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    is_method = "self" in signature(method).parameters
    call = f"{method.__name__}({', '.join(by_place)}{''.join(f', {name}=...' for name in by_name[:1])})"

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if method.__name__ == "fit" and getattr(args[0], "unsafe_noise_seed", None) is None:
            refuse_folds()
        by_position = args[1:] if is_method else args
        called = f"{type(args[0]).__name__}.{method.__name__}" if is_method else method.__name__
        lacking = [name for name in required if name not in (*by_place[: len(by_position)], *kwargs)]
        unknown = [name for name in kwargs if name not in (*by_place, *by_name)]
        if len(by_position) > len(by_place):
            others = " or ".join(f"{name}=" for name in by_name)
            said = f"takes {_in_words(by_place)} by place, and got {len(by_position)}; write {others}"
        elif unknown:
            name = unknown[0]
            hint = f"; {IN_FIT[name]}" if name in IN_FIT else nearest(name, [*by_place, *by_name])
            hint = hint or f"; it takes {_in_words([*by_place, *by_name])}"
            said = f"has no argument {name!r}{hint}"
        elif lacking:
            said = f"lacks {_in_words(lacking)}; write {call}"
        else:
            with own_switches(), act():
                _refuse_several_values(args[0])
                _refuse_no_columns({**dict(zip(by_place, by_position, strict=False)), **kwargs})
                return method(*args, **kwargs)
        raise InvalidParameter(f"{called} {said}{'' if said.endswith('?') else '.'} Nothing was charged")

    return checked


_SEVERAL = ("class_shares", "classes", "target_range", "text")  # arguments that hold several values


def _refuse_several_values(estimator: Any) -> None:
    """Refuse an argument that cannot be compared with a word, such as a column where "auto" or one number belongs."""
    known = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    of = estimator.get_params(deep=False) if known else {}
    for name, value in of.items():
        if name in _SEVERAL:
            continue
        try:
            bool(value == "")
        except (TypeError, ValueError):  # an array, a column, or pandas' NA
            raise InvalidParameter(parameter=name, got=value, expected="one value") from None


def _refuse_no_columns(given: Mapping[str, Any]) -> None:
    """Refuse the name of a column of X where the column itself belongs, one id for all rows, and a schema that names
    the labels or ids.
    """
    try:
        held = columns(given.get("X")) or ()
    except DataRefused:  # no table at all, which whoever reads it says
        return
    for name, entry in (("groups", "unit id"), ("y", "label")):
        value = given.get(name)
        if isinstance(value, str) and value in held:
            raise DataRefused(
                f"{name}: got the text {value!r}, expected one {entry} for every row; give the column itself, "
                f'{name}=X["{value}"], and X without it'
            )
        if name == "groups" and value is not None and not hasattr(value, "__len__"):
            raise DataRefused(f"{name}: got {type(value).__name__}; give one {entry} for every row")
        called, schema = getattr(value, "name", None), given.get("schema")
        declared = getattr(schema, "declared", schema)
        said = declared.get(called, DROPPED) if isinstance(declared, Mapping) and isinstance(called, str) else DROPPED
        if not (isinstance(said, str) and said == DROPPED) and held and called not in held:
            what = "labels" if name == "y" else "ids"
            raise InvalidParameter(f"schema names {called!r}, the column of {what}; leave it out of schema")


def _in_words(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def note_columns(estimator: Any, rows: Any) -> None:
    """Set ``n_features_in_``, and ``feature_names_in_`` where the columns have names, as texts."""
    estimator.n_features_in_ = int(rows.shape[1])
    if names := columns(rows):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):  # of an earlier fit
        del estimator.feature_names_in_


def refuse_one_row(X: Any, *, texts: bool) -> None:
    """Refuse one text, one row or one column where a table is expected.

    `X`: what was given as rows. `texts`: whether a row is one text, so that a list of texts is a table. Raises
    DataRefused with what to write instead.
    """
    if isinstance(X, str):
        raise DataRefused(
            "X: got one text, and expected a list of texts; write [text]. Nothing was charged"
            if texts
            else "X: got a text, and expected a 2-D table of rows; read the file first. Nothing was charged"
        )
    if _is_flat(X) and not (texts and holds_texts(X)):
        raise DataRefused(
            "X: got one row or one column, and expected a 2-D table. Reshape your data: [row] or X.reshape(1, -1) for "
            "one row, X.reshape(-1, 1) or X[[name]] for one column. Nothing was charged"
        )


def _is_flat(X: Any) -> bool:
    if isinstance(X, list | tuple):
        return bool(X) and not any(hasattr(cell, "__len__") and not isinstance(cell, str) for cell in X)
    return getattr(X, "ndim", 0 if isinstance(X, int | float) else 2) < 2


def rows_and_labels(evaluation: Any) -> tuple[Any, Any]:
    """Take ``evaluation=``, which is a pair of rows and labels.

    Raises InvalidParameter if it is none; a table alone has no labels.
    """
    if isinstance(evaluation, tuple | list) and len(evaluation) == 2:
        return evaluation[0], evaluation[1]
    raise InvalidParameter(
        f"evaluation must be a pair (X, y) of public rows and their labels, got {type(evaluation).__name__}; write "
        "evaluation=(X_public, y_public)"
    )
