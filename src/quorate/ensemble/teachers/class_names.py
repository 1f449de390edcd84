"""Parameters that name a class, such as ``class_weight={"yes": 5}``: they mean the same class on every shard.

In a shard a class may be missing, and labels are numbered 0..k-1. So parameters are numbered with them: keys of classes
that the shard has, and numbers in the (sorted) order of the classes at hand. Where a class stands in what nobody here
can number, such as a scorer, the classifier is given the declared labels. All of it is a function of the classifier,
the declared classes and the one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.ensemble.teachers.unfitted import attributes, is_plain, library_of, parts
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

BY_CLASS = ("class_weight", "class_weights", "sampling_strategy")  # a dict with a key for each class
IN_ORDER = ("priors", "class_prior", "class_weights", "criterion__weight")  # a number for each class, in their order
OF_ONE = ("pos_label", "constant", "outlier_label")  # a class
OF_THE_SECOND = "scale_pos_weight"  # of boosting libraries, for two classes
NUMBERS_ALONE = ("xgboost", "skorch")  # libraries that take whole numbers from 0 on and nothing else
TRIED = ("param_grid", "param_distributions")  # what a search tries, by the path of a parameter


def names_classes(estimator: Any, classes: Sequence[Any]) -> bool:
    """Tell whether a parameter of an unfitted classifier, or of a part of it, names a class. Refuses weights for what
    is none of the classes, or for the second of more than two.
    """
    declared = tuple(classes)
    named = [_names_one(place, declared) for place in _places(estimator)]
    return any(named) or (not _takes_numbers_alone(estimator) and _needs_labels(estimator, declared))


def fit_named(
    estimator: Any, X: Any, codes: NDArray[np.int64], classes: Sequence[Any]
) -> tuple[Any, NDArray[np.int64]]:
    """Fit a fresh copy of a classifier of which a parameter names a class on one shard of class codes, two at least.
    Returns what predicts 0..k-1, and the class code of each, in the order of its probabilities.
    """
    declared, present = list(classes), np.unique(codes).tolist()
    alone, order = _takes_numbers_alone(estimator), declared
    if not alone:
        order = sorted(declared)
        present.sort(key=declared.__getitem__)
    # A network has an output for each declared class, whatever a shard has.
    as_declared = any(library_of(part) == "skorch" for part in parts(estimator))
    numbers = {declared[code]: code if as_declared else at for at, code in enumerate(present)}
    if not alone and _needs_labels(estimator, declared):
        numbers = {declared[code]: declared[code] for code in present}
        labels = np.asarray(declared)[codes]
    else:
        labels = np.array([numbers[declared[code]] for code in codes.tolist()], dtype=np.int64)
    at_hand = _AtHand(numbers, tuple(order))
    for place in list(_places(estimator)):
        value = at_hand.value(place)
        if value is not place.value:
            place.put(value)
    estimator.fit(X, labels)
    plain = list(numbers.values()) == list(range(len(present)))
    return estimator if plain else LabelledEstimator(estimator, list(numbers.values())), np.array(present, np.int64)


@stored_as("quorate.ensemble.class_names.LabelledEstimator")
class LabelledEstimator:
    """A classifier that was fitted on labels, as one fitted on 0..k-1; `labels`: in the order of its probabilities."""

    def __init__(self, estimator: Any, labels: list[Any]) -> None:
        self.estimator = estimator
        self.labels = labels

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the place of each predicted label; -1 for one that it never saw."""
        predicted, place = np.asarray(self.estimator.predict(X)), {label: at for at, label in enumerate(self.labels)}
        places = [place.get(label, -1) for label in predicted.reshape(-1).tolist()]
        return np.array(places, dtype=np.int64).reshape(predicted.shape)

    def __getattr__(self, name: str) -> Any:
        """Scores and probabilities are the classifier's own."""
        if name in {"decision_function", "predict_proba"}:
            return getattr(self.estimator, name)
        raise AttributeError(name)


@dataclass(frozen=True, slots=True)
class _LabelForm:
    """What a model is given in place of labels: `numbered`: 0..k-1; `paired`: pairs of classes, 0 and 1."""

    numbered: bool
    paired: bool

    def inside(self, model: Any) -> _LabelForm:
        """Return what the models in `model`, which is given this, are given: some of scikit-learn's ensembles give
        those in them 0..k-1 in place of labels, or problems of two classes of their own making.
        """
        from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
        from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier

        numbers = isinstance(model, BaggingClassifier | StackingClassifier | VotingClassifier)
        pairs = isinstance(model, OneVsOneClassifier | OneVsRestClassifier | OutputCodeClassifier)
        return _LabelForm(self.numbered or numbers, self.paired or pairs)


@dataclass(frozen=True, slots=True)
class _Place:
    """A parameter: whose, its name, what it holds, what its owner is given for labels, and how it is set."""

    owner: Any
    name: str
    value: Any
    form: _LabelForm
    put: Callable[[Any], None] = field(compare=False)


@dataclass(frozen=True, slots=True)
class _AtHand:
    """The classes of one shard: what each of them is shown as, and all declared ones in the order of what is shown."""

    labels: Mapping[Any, Any]
    order: tuple[Any, ...]

    def value(self, place: _Place) -> Any:
        """Return a parameter as the labels at hand have it; itself where nothing of it changes."""
        labels, value = self.labels, place.value
        if place.form.paired:
            return value
        if place.form.numbered:
            labels = {
                label: number for number, label in enumerate(label for label in self.order if label in self.labels)
            }
        if place.name in BY_CLASS and isinstance(value, Mapping):
            kept = {
                labels[label]: setting for label, setting in _by_label(value, self.order).items() if label in labels
            }
            return kept or (None if place.name == "class_weight" else kept)
        if place.name in OF_ONE and _is_one_of(value, self.order):
            return labels.get(value, value)
        lacks = len(labels) < len(self.order) and library_of(place.owner) != "skorch"
        if place.name in IN_ORDER and lacks and np.shape(value) == (len(self.order),):
            of_these = np.asarray(value, dtype=np.float64)[[label in labels for label in self.order]]
            return of_these / of_these.sum() if place.name in {"priors", "class_prior"} else of_these
        return value


def _names_one(place: _Place, declared: tuple[Any, ...]) -> bool:
    """Tell whether a parameter names a class by what it is called; refuse weights that are for none."""
    name, value, owner = place.name, place.value, type(place.owner).__name__
    if name == OF_THE_SECOND and len(declared) > 2 and value not in (None, 1):
        raise InvalidParameter(
            f"{name}={value!r} of {owner} is the weight of the second of two classes, and there are {len(declared)}; "
            "leave it out"
        )
    if place.form.paired:  # of two classes, which is 1 hangs on their order
        return name in (*BY_CLASS, *IN_ORDER, *OF_ONE) and value is not None and not isinstance(value, str)
    if name in BY_CLASS and isinstance(value, Mapping):
        numbers = place.form.numbered and all(type(key) is int and 0 <= key < len(declared) for key in value)
        strange = [key for key in value if not _is_one_of(key, declared)]
        if strange and not numbers:
            raise InvalidParameter(
                f"{name} of {owner} names {strange[0]!r}, which is none of the classes {list(declared)}; name each "
                "class as classes= does"
            )
        return True
    if name in OF_ONE:
        return _is_one_of(value, declared)
    return name in IN_ORDER and value is not None


def _by_label(weights: Mapping[Any, Any], order: tuple[Any, ...]) -> Mapping[Any, Any]:
    """Return weights by declared class, where they were given by its number."""
    if all(_is_one_of(key, order) for key in weights):
        return weights
    return {order[key]: weight for key, weight in weights.items()}


def _needs_labels(estimator: Any, declared: Sequence[Any]) -> bool:
    """Tell whether a class that is a text stands in what is not numbered here, or a function is asked about classes. A
    default names none.
    """

    def holds(value: Any, *, lists: bool) -> bool:
        if isinstance(value, Mapping):
            return any(holds(part, lists=lists) for part in (*value, *value.values()))
        if lists and isinstance(value, list | tuple):
            return any(holds(part, lists=lists) for part in value)
        return isinstance(value, str) and value in declared

    return any(
        callable(value) if _last(name) in BY_CLASS else holds(value, lists=not hasattr(part, "fit"))
        for part in parts(estimator)  # a model's list of texts names columns
        for name, value in _parameters(part)
        if _last(name) not in OF_ONE and name not in TRIED and not _is_default(part, name, value)
    )


def _is_default(part: Any, name: str, value: Any) -> bool:
    try:
        parameter = signature(type(part)).parameters.get(name)
    except (TypeError, ValueError):  # a class that does not say
        return False
    return isinstance(value, str) and parameter is not None and bool(parameter.default == value)


def _places(model: Any, how: _LabelForm | None = None, within: frozenset[int] = frozenset()) -> Iterator[_Place]:
    """Yield every parameter of a model and of the models in it that learn from its labels."""
    from sklearn.frozen import FrozenEstimator

    how = _LabelForm(numbered=False, paired=False) if how is None else how
    if id(model) in within or isinstance(model, FrozenEstimator):
        return
    inside, within = how.inside(model), within | {id(model)}
    for name, value in _parameters(model):
        if name in TRIED:
            yield from _places_tried(model, value, how, within)
            continue
        yield _Place(model, _last(name), value, how, partial(_put, model, name))
        for part in _models(value):
            yield from _places(part, inside, within)


def _places_tried(search: Any, tried: Any, how: _LabelForm, within: frozenset[int]) -> Iterator[_Place]:
    """Yield what a search tries, as parameters of the parts that it is tried in."""
    if isinstance(tried, list | tuple):
        for grid in tried:
            yield from _places_tried(search, grid, how, within)
        return
    for path, candidates in tried.items() if isinstance(tried, dict) else ():
        owner, of_owner = search.estimator, how
        for step in str(path).split("__")[:-1]:
            of_owner = of_owner.inside(owner)
            owner = owner.get_params(deep=True).get(step) if hasattr(owner, "get_params") else None
        for at, value in enumerate(candidates if isinstance(candidates, list | tuple) else ()):
            yield _Place(owner, _last(str(path)), value, of_owner, partial(_put_tried, tried, path, at))
            for part in _models(value):
                yield from _places(part, of_owner.inside(owner), within)


def _put(model: Any, name: str, value: Any) -> None:
    if hasattr(model, "set_params"):
        model.set_params(**{name: value})
    else:
        setattr(model, name, value)


def _put_tried(grid: dict[str, Any], path: str, at: int, value: Any) -> None:
    candidates = list(grid[path])
    candidates[at] = value
    grid[path] = candidates


def _parameters(part: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(part, type):
        return
    if hasattr(part, "get_params"):
        yield from part.get_params(deep=False).items()
    elif is_plain(part) or callable(part):
        yield from attributes(part).items()


def _models(value: Any) -> Iterator[Any]:
    """Yield the models in a parameter: itself, and those in lists of names and models."""
    if isinstance(value, list | tuple):
        for model in value:
            yield from _models(model)
    elif isinstance(value, Mapping):
        for model in value.values():
            yield from _models(model)
    elif hasattr(value, "fit") and not isinstance(value, type):
        yield value


def _takes_numbers_alone(estimator: Any) -> bool:
    return any(library_of(part) in NUMBERS_ALONE for part in parts(estimator))


def _last(name: str) -> str:
    return name if name in IN_ORDER else name.rpartition("__")[2]


def _is_one_of(value: Any, declared: Sequence[Any]) -> bool:
    try:
        return value in set(declared)
    except TypeError:  # no class is a list
        return False
