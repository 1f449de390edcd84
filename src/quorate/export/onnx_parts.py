"""The parts of a published student that skl2onnx does not convert by itself, put in other words or converted here.

Frozen estimators, indicators of missing values and missing text among categories are put in words that it knows, on a
copy; landmarks of a Nystroem map have a converter here. The result is compared with the student before it leaves.

skl2onnx knows neither columns of what has columns already, nor exp. A published model tells numbers by intervals and
categories by their indicators, sums logarithms, and takes their exponential
(:meth:`quorate.data.feature_maps.ProductKernelMap.transformer`): here two comparisons, two products and an exponential,
in double precision. Images are told by one small transformer for all patches, in a ``ColumnTransformer`` of regions,
each of which is one of patches (:meth:`quorate.data.feature_maps.PatchFeatures.transformer`): here one gathering of
pixels, one product, and one sum.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from quorate.errors import PreconditionFailed

#: Models that round numbers to single precision before they look at them.
TREES: Final = (
    DecisionTreeClassifier,
    ExtraTreeClassifier,
    RandomForestClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
)

#: Stands for a missing text, since the texts of ONNX have no missing value.
MISSING_TEXT: Final = "<missing>"


class Graph:
    """Operators of ONNX that stand for one step, a `fitted` one, of `rows` whose precision is `number`."""

    def __init__(self, scope: Any, operator: Any, container: Any) -> None:
        from skl2onnx.common.data_types import FloatTensorType

        self.rows, self.fitted = operator.inputs[0], operator.raw_operator
        self.number: Any = np.float32 if isinstance(self.rows.type, FloatTensorType) else np.float64
        self._scope, self._container, self._outputs = scope, container, operator.outputs[:1]

    def __call__(self, name: str, *inputs: Any, **how: Any) -> Any:
        """Return an operator, by its name in ONNX."""
        from skl2onnx.algebra import onnx_ops

        return getattr(onnx_ops, f"Onnx{name}")(*inputs, op_version=self._container.target_opset, **how)

    def last(self, name: str, *inputs: Any, **how: Any) -> None:
        """Write the operator that gives what comes out of the step."""
        self(name, *inputs, output_names=self._outputs, **how).add_to(self._scope, self._container)


class ProductFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A product kernel with rows of a pool, as intervals ``low ≤ x < high`` of columns `numbers`, `indicators`,
    `logarithms` by interval and indicator, one a landmark, and `root`, by which kernel values are multiplied.
    """

    def __init__(
        self,
        numbers: Any = None,
        low: Any = None,
        high: Any = None,
        indicators: Any = None,
        logarithms: Any = None,
        root: Any = None,
    ) -> None:
        self.numbers, self.low, self.high = numbers, low, high
        self.indicators, self.logarithms, self.root = indicators, logarithms, root

    @property
    def n_outputs(self) -> int:
        """Features."""
        return int(self.root.shape[1])


def product_features(part: Any) -> ProductFeatures | None:
    """Return the same as the published pipeline of a product kernel; None where a pipeline is none."""
    if not isinstance(part, Pipeline) or [name for name, _ in part.steps] != ["codes", "logarithms", "product", "root"]:
        return None
    (_, codes), (_, logarithms), _, (_, root) = part.steps
    if not isinstance(codes, ColumnTransformer):
        return None
    columns = {name: (part, places) for name, part, places in codes.transformers_}
    numbers, edges = np.empty(0, dtype=np.int64), [np.empty((2, 0))]
    if "numbers" in columns:
        intervals, places = columns["numbers"]
        intervals = _thawed(intervals)
        if not isinstance(intervals, KBinsDiscretizer):
            return None
        numbers = np.repeat(np.asarray(places, dtype=np.int64), intervals.n_bins_)
        cuts = [own[1:-1] for own in intervals.bin_edges_]
        edges += [np.array([[-np.inf, *own], [*own, np.inf]]) for own in cuts]
    low, high = np.hstack(edges)
    indicators = np.asarray(columns["categories"][1] if "categories" in columns else [], dtype=np.int64)
    logs, last = (np.ascontiguousarray(step.components_.T, dtype=np.float64) for step in (logarithms, root))
    return ProductFeatures(numbers, low, high, indicators, logs, last)


def convert_product(graph: Graph) -> None:
    """Write the features with the operators of ONNX."""
    from onnx import TensorProto

    fitted, rows, codes = graph.fitted, graph("Cast", graph.rows, to=TensorProto.DOUBLE), []
    if len(fitted.numbers):
        own = graph("Gather", rows, fitted.numbers, axis=1)
        above = graph("GreaterOrEqual", own, fitted.low[None, :])
        within = graph("And", above, graph("Less", own, fitted.high[None, :]))
        codes.append(graph("Cast", within, to=TensorProto.DOUBLE))
    if len(fitted.indicators):
        codes.append(graph("Gather", rows, fitted.indicators, axis=1))
    every = graph("Concat", *codes, axis=1) if len(codes) > 1 else codes[0]
    features = graph("MatMul", graph("Exp", graph("MatMul", every, fitted.logarithms)), fitted.root)
    graph.last("Cast", features, to=TensorProto.FLOAT if graph.number is np.float32 else TensorProto.DOUBLE)


class PatchSums(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What patches share with centroids above a threshold, summed over regions. `places`: columns of the pixels of each
    patch. `threshold`, `most`: what is taken away, and what no difference is above.
    """

    def __init__(self, places: Any = None, centroids: Any = None, threshold: float = 0.0, most: float = 0.0) -> None:
        self.places, self.centroids, self.threshold, self.most = places, centroids, threshold, most

    @property
    def n_outputs(self) -> int:
        """Regions times centroids."""
        return int(self.places.shape[0] * len(self.centroids))


class SquareRoots(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The root of each number."""


def patch_sums(regions: Any) -> PatchSums | None:
    """Return the same as a fitted ``ColumnTransformer`` of regions; None where it is none."""
    if not isinstance(regions, ColumnTransformer) or regions.remainder != "drop":
        return None
    places, shared = [], set()
    for _, step, block in regions.transformers_:
        region = _thawed(step)
        if not (isinstance(region, Pipeline) and [name for name, _ in region.steps] == ["patches", "sum"]):
            return None
        within = _thawed(region.steps[0][1])
        if not isinstance(within, ColumnTransformer):
            return None
        places.append([np.asarray(block)[np.asarray(columns)] for _, _, columns in within.transformers_])
        shared |= {id(_thawed(patch)) for _, patch, _ in within.transformers_}
    patch = _thawed(within.transformers_[0][1])
    if len(shared) != 1 or not (isinstance(patch, Pipeline) and len(patch.steps) == 2):
        return None
    (_, product), (_, above) = patch.steps
    if not (isinstance(product, TruncatedSVD) and isinstance(above, MinMaxScaler)):
        return None
    return PatchSums(
        np.array(places, dtype=np.int64),
        np.asarray(product.components_, dtype=np.float64),
        float(above.data_min_[0]),
        float(above.feature_range[1]),
    )


def _thawed(part: Any) -> Any:
    return part.estimator if isinstance(part, FrozenEstimator) else part


def convert_sums(graph: Graph) -> None:
    """Write the sums with the operators of ONNX, in the precision of the rows."""
    fitted, number = graph.fitted, graph.number
    shared = graph("MatMul", graph("Gather", graph.rows, fitted.places, axis=1), fitted.centroids.T.astype(number))
    beyond = graph("Sub", shared, np.array([fitted.threshold], dtype=number))
    above = graph("Clip", beyond, np.array(0, dtype=number), np.array(fitted.most, dtype=number))
    sums = graph("ReduceSum", above, np.array([2], dtype=np.int64), keepdims=0)
    graph.last("Reshape", sums, np.array([-1, fitted.n_outputs], dtype=np.int64))


class _OfColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A step that is told how many columns come out of it."""

    def __init__(self, n_outputs: int = 1) -> None:
        self.n_outputs = n_outputs


class IsMissing(_OfColumns):
    """Indicators of missing numbers, in the order of the columns."""


class SinglePrecision(_OfColumns):
    """Numbers rounded to single precision, as scikit-learn's trees round them before they look."""


class ConstantBefore(_OfColumns):
    """The rows with a column of ones before them, which skl2onnx makes in single precision."""


class DampedCounts(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """1 + log of each count above 0, which skl2onnx takes as log(1 + count)."""


class FillMissing(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Missing numbers become given ones, one a column."""

    def __init__(self, values: tuple[float, ...] = ()) -> None:
        self.values = values

    @property
    def n_outputs(self) -> int:
        """As many as are given."""
        return len(self.values)


def in_known_words(part: Any) -> Any:
    """Return a copy of a fitted estimator that computes the same, of parts that can be converted; refuse others by
    name.
    """
    if isinstance(part, FrozenEstimator):
        return in_known_words(part.estimator)
    if isinstance(part, Pipeline):
        if (product := product_features(part)) is not None:
            return product
        same = copy(part)
        same.steps = [(name, step if step == "passthrough" else in_known_words(step)) for name, step in part.steps]
        return same
    if isinstance(part, FeatureUnion):
        same = copy(part)
        same.transformer_list = [(name, in_known_words(inner)) for name, inner in part.transformer_list]
        return same
    if isinstance(part, ColumnTransformer):
        if (sums := patch_sums(part)) is not None:
            return sums
        same = copy(part)
        same.transformers_ = [
            (name, inner if isinstance(inner, str) else in_known_words(inner), columns)
            for name, inner, columns in part.transformers_
        ]
        return same
    if isinstance(part, FunctionTransformer) and part.func is np.sqrt:
        return SquareRoots()
    if isinstance(part, KNNImputer):
        return _constant_imputer(part)
    if isinstance(part, PolynomialFeatures) and part.degree == 1 and part.include_bias:
        return ConstantBefore(part.n_features_in_ + 1)
    if isinstance(part, TfidfVectorizer) and part.sublinear_tf:
        return _damped_words(part)
    if isinstance(part, MissingIndicator):
        if part.features != "all":
            raise PreconditionFailed("its MissingIndicator looks at some columns only, which has no ONNX counterpart")
        return IsMissing(part.n_features_in_)
    if isinstance(part, OneHotEncoder):
        return _texts_only(part)
    if isinstance(part, TREES):
        return Pipeline([("single", SinglePrecision(part.n_features_in_)), ("trees", part)])
    return part


def _constant_imputer(part: KNNImputer) -> FillMissing:
    """The nearest of one known row is that row: what the public encoder fills missing numbers with."""
    known = np.asarray(part._fit_X)
    if len(known) != 1 or np.isnan(known).any():
        raise PreconditionFailed("its KNNImputer knows several rows, which has no ONNX counterpart here")
    return FillMissing(tuple(known[0].tolist()))


def _damped_words(part: TfidfVectorizer) -> Pipeline:
    parameters = part.get_params()
    counts = CountVectorizer(**{name: parameters[name] for name in CountVectorizer().get_params()})
    counts.vocabulary_ = part.vocabulary_
    weights = TfidfTransformer(norm=part.norm, use_idf=part.use_idf)
    if part.use_idf:
        weights.idf_ = part.idf_
    return Pipeline([("counts", counts), ("damped", DampedCounts()), ("weights", weights)])


def _texts_only(part: OneHotEncoder) -> OneHotEncoder:
    """One-hot texts with a text for a missing one."""
    if any(values.dtype.kind != "O" for values in part.categories_):
        return part
    same = copy(part)
    categories: list[Any] = []
    for column in part.categories_:
        absent = [value for value in column if not isinstance(value, str)]
        if len(absent) > 1:
            raise PreconditionFailed("its OneHotEncoder tells two kinds of missing text apart, and ONNX has none")
        if MISSING_TEXT in column:
            raise PreconditionFailed(
                f"a column of text holds {MISSING_TEXT!r} as a value, which stands for a missing text in ONNX"
            )
        categories.append(
            np.array([value if isinstance(value, str) else MISSING_TEXT for value in column], dtype=object)
        )
    same.categories_ = categories
    same.sparse_output = False
    return same


def words_of(model: Any) -> dict[Any, dict[str, str]]:
    """Return skl2onnx's options for the words of texts, in a locale that is everywhere: "C", which lowers A to Z, or
    "C.UTF-8" for words with other letters, which every Linux has.
    """
    plain = all(word.isascii() for part in parts_of(model) for word in getattr(part, "vocabulary_", ()))
    how = {"tokenexp": rf"^{MISSING_TEXT}$|[\p{{L}}\p{{N}}_]{{2,}}", "locale": "C" if plain else "C.UTF-8"}
    return {TfidfVectorizer: how, CountVectorizer: how}


def _shape(operator: Any) -> None:
    """Tell skl2onnx what comes out of a step: as many numbers as it says, or as come in, and in which precision."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    form, fitted = operator.inputs[0].type, operator.raw_operator
    single = isinstance(form, FloatTensorType) and not isinstance(fitted, (IsMissing, FillMissing))
    number = FloatTensorType if single or isinstance(fitted, SinglePrecision) else DoubleTensorType
    width = fitted.normalization_.shape[0] if isinstance(fitted, Nystroem) else form.shape[1]
    operator.outputs[0].type = number([None, int(getattr(fitted, "n_outputs", width))])


def _convert_is_missing(graph: Graph) -> None:
    from onnx import TensorProto

    graph.last("Cast", graph("IsNaN", graph.rows), to=TensorProto.DOUBLE)


def _convert_fill_missing(graph: Graph) -> None:
    values = np.array([graph.fitted.values], dtype=np.float64)
    graph.last("Where", graph("IsNaN", graph.rows), values, graph.rows)


def _convert_constant(graph: Graph) -> None:
    left = np.array([0, 1, 0, 0], dtype=np.int64)
    graph.last("Pad", graph.rows, left, np.array(1, dtype=graph.number), mode="constant")


def _convert_damped(graph: Graph) -> None:
    one = np.array([1], dtype=graph.number)
    graph.last("Add", graph("Log", graph("Max", graph.rows, one)), graph("Min", graph.rows, one))


def _convert_normalizer(graph: Graph) -> None:
    """A row by its length; one of zeros stays, which skl2onnx divides by 0."""
    reduced = {"l1": "ReduceSum", "l2": "ReduceL2", "max": "ReduceMax"}[graph.fitted.norm]
    lengths = graph(reduced, graph("Abs", graph.rows), np.array([1], dtype=np.int64), keepdims=1)
    is_zero = graph("Equal", lengths, np.array([0], dtype=graph.number))
    graph.last("Div", graph.rows, graph("Where", is_zero, np.array([1], dtype=graph.number), lengths))


def _convert_single(graph: Graph) -> None:
    from onnx import TensorProto

    graph.last("Cast", graph.rows, to=TensorProto.FLOAT)


def _convert_nystroem(graph: Graph) -> None:
    """Similarities to the landmarks, exp(-γ‖x - c‖²), times the root of their inverse."""
    from onnx import TensorProto

    landmarks = np.asarray(graph.fitted.components_, dtype=np.float64)
    gamma = 1.0 / landmarks.shape[1] if graph.fitted.gamma is None else float(graph.fitted.gamma)
    # Squares of distances lose digits, so they are taken in double; what follows goes on in the precision of the rows.
    rows = graph("Cast", graph.rows, to=TensorProto.DOUBLE)
    squares = graph("ReduceSumSquare", rows, np.array([1], dtype=np.int64), keepdims=1)
    lengths = np.einsum("ij,ij->i", landmarks, landmarks)[None, :]
    distances = graph("Add", graph("Add", graph("MatMul", rows, -2.0 * landmarks.T), lengths), squares)
    kernel = graph("Exp", graph("Mul", distances, np.array([-gamma])))
    mapped = graph("MatMul", kernel, np.asarray(graph.fitted.normalization_, dtype=np.float64).T)
    graph.last("Cast", mapped, to=TensorProto.FLOAT if graph.number is np.float32 else TensorProto.DOUBLE)


_CONVERTERS: Final[dict[type, Callable[[Graph], None]]] = {
    IsMissing: _convert_is_missing,
    FillMissing: _convert_fill_missing,
    SinglePrecision: _convert_single,
    Nystroem: _convert_nystroem,
    PatchSums: convert_sums,
    ProductFeatures: convert_product,
    SquareRoots: lambda graph: graph.last("Sqrt", graph.rows),
    DampedCounts: _convert_damped,
    ConstantBefore: _convert_constant,
    Normalizer: _convert_normalizer,
}


def converters(model: Any) -> dict[str, Any]:
    """Return the arguments by which skl2onnx converts the parts that have a converter here; refuse other Nystroem
    kernels.
    """
    for part in parts_of(model):
        if isinstance(part, Nystroem) and part.kernel != "rbf":
            raise PreconditionFailed(f"its Nystroem map has the kernel {part.kernel!r}, and only 'rbf' is converted")
    return {
        "custom_conversion_functions": {kind: _by(write) for kind, write in _CONVERTERS.items()},
        "custom_shape_calculators": dict.fromkeys(_CONVERTERS, _shape),
    }


def _by(write: Callable[[Graph], None]) -> Callable[[Any, Any, Any], None]:
    return lambda scope, operator, container: write(Graph(scope, operator, container))


def parts_of(model: Any) -> list[Any]:
    """Return a fitted model and every step in it."""
    inner: list[Any] = []
    if isinstance(model, Pipeline):
        inner = [step for _, step in model.steps]
    elif isinstance(model, FeatureUnion):
        inner = [inner_part for _, inner_part in model.transformer_list]
    elif isinstance(model, ColumnTransformer):
        inner = [inner_part for _, inner_part, _ in model.transformers_]
    elif isinstance(model, FrozenEstimator):
        inner = [model.estimator]
    return [model, *(part for inner_part in inner if not isinstance(inner_part, str) for part in parts_of(inner_part))]
