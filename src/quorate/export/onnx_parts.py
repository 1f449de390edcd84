"""The parts of a published student that skl2onnx does not convert by itself, put in other words or converted here.

skl2onnx knows neither a frozen estimator, nor an indicator of missing values, nor missing text among the categories of
a one-hot encoder, nor the landmarks of a Nystroem map. The first three are put in words that it knows, on a copy of the
student; the others have a converter here. What is converted is compared with the student before it leaves, so that a
mistake made here shows as a refusal.

A published student tells images by one small transformer for all patches, in a ``ColumnTransformer`` of regions, each
of which is one of patches (:meth:`quorate.data.feature_maps.PatchFeatures.transformer`). skl2onnx knows no columns of
what has columns already; here the same is one gathering of pixels, one product, and one sum.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from quorate.errors import PreconditionFailed
from quorate.export.onnx_features import ProductFeatures, convert_product, product_features, shape_of_product


class PatchSums(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What patches share with centroids above a threshold, summed over regions.

    `places`: columns of the pixels of each patch. `centroids`: as they are multiplied with. `threshold`, `most`: what
    is taken away, and what no difference is above.
    """

    def __init__(self, places: Any = None, centroids: Any = None, threshold: float = 0.0, most: float = 0.0) -> None:
        self.places = places
        self.centroids = centroids
        self.threshold = threshold
        self.most = most

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        return self

    @property
    def n_outputs(self) -> int:
        """Regions times centroids."""
        return int(self.places.shape[0] * len(self.centroids))

    def transform(self, X: Any) -> Any:
        """Return ``(n_images, n_outputs)``."""
        above = np.clip(
            np.asarray(X, dtype=np.float64)[:, self.places] @ self.centroids.T - self.threshold, 0, self.most
        )
        return above.sum(axis=2).reshape(len(X), -1)


class SquareRoots(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The root of each number."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the roots."""
        return np.sqrt(X)


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


def shape_of_sums(operator: Any) -> None:
    """Tell skl2onnx what comes out of sums, and of roots."""
    form, fitted = operator.inputs[0].type, operator.raw_operator
    width = fitted.n_outputs if isinstance(fitted, PatchSums) else form.shape[1]
    operator.outputs[0].type = type(form)([None, width])


def convert_roots(scope: Any, operator: Any, container: Any) -> None:
    """Write the roots."""
    from skl2onnx.algebra.onnx_ops import OnnxSqrt

    version, outputs = container.target_opset, operator.outputs[:1]
    OnnxSqrt(operator.inputs[0], op_version=version, output_names=outputs).add_to(scope, container)


def convert_sums(scope: Any, operator: Any, container: Any) -> None:
    """Write the sums with the operators of ONNX, in the precision of the rows."""
    from skl2onnx.algebra.onnx_ops import (
        OnnxClip,
        OnnxGather,
        OnnxMatMul,
        OnnxReduceSum,
        OnnxReshape,
        OnnxSub,
    )
    from skl2onnx.common.data_types import FloatTensorType

    fitted, version = operator.raw_operator, container.target_opset
    kind = np.float32 if isinstance(operator.inputs[0].type, FloatTensorType) else np.float64
    pixels = OnnxGather(operator.inputs[0], fitted.places, axis=1, op_version=version)
    shared = OnnxMatMul(pixels, fitted.centroids.T.astype(kind), op_version=version)
    beyond = OnnxSub(shared, np.array([fitted.threshold], dtype=kind), op_version=version)
    above = OnnxClip(beyond, np.array(0, dtype=kind), np.array(fitted.most, dtype=kind), op_version=version)
    sums = OnnxReduceSum(above, np.array([2], dtype=np.int64), keepdims=0, op_version=version)
    flat = np.array([-1, fitted.n_outputs], dtype=np.int64)
    OnnxReshape(sums, flat, op_version=version, output_names=operator.outputs[:1]).add_to(scope, container)


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


class _LearnsNothing(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that says the same of any rows."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        return self


class _OfColumns(_LearnsNothing):
    """One that is told how many columns there are.

    `n_columns`: how many.
    """

    def __init__(self, n_columns: int = 1) -> None:
        self.n_columns = n_columns


class IsMissing(_OfColumns):
    """Indicators of missing numbers, in the order of the columns."""

    def transform(self, X: Any) -> Any:
        """Return 1.0 where a number is missing, else 0.0."""
        return np.isnan(np.asarray(X, dtype=np.float64)).astype(np.float64)


class SinglePrecision(_OfColumns):
    """Numbers rounded to single precision, as scikit-learn's trees round them before they look."""

    def transform(self, X: Any) -> Any:
        """Return the rows as float32."""
        return np.asarray(X, dtype=np.float32)


class FillMissing(_LearnsNothing):
    """Missing numbers become given ones.

    `values`: one a column.
    """

    def __init__(self, values: tuple[float, ...] = ()) -> None:
        self.values = values

    def transform(self, X: Any) -> Any:
        """Return the rows without a missing number."""
        rows = np.asarray(X, dtype=np.float64)
        return np.where(np.isnan(rows), np.array(self.values), rows)


def in_known_words(part: Any) -> Any:
    """Return a copy of a fitted estimator that computes the same and is made of parts that can be converted.

    Raises PreconditionFailed if a part has no counterpart; it is named.
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


def _shape(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    fitted = operator.raw_operator
    single = isinstance(fitted, SinglePrecision) or _comes_in_single(operator)
    number = FloatTensorType if single else DoubleTensorType
    operator.outputs[0].type = number([None, _n_outputs(fitted)])


def _comes_in_single(operator: Any) -> bool:
    """Whether a Nystroem map is given single precision, as categories come out of their converter."""
    from skl2onnx.common.data_types import FloatTensorType

    return isinstance(operator.raw_operator, Nystroem) and isinstance(operator.inputs[0].type, FloatTensorType)


def _n_outputs(fitted: Any) -> int:
    if isinstance(fitted, (IsMissing, SinglePrecision)):
        return fitted.n_columns
    return len(fitted.values) if isinstance(fitted, FillMissing) else int(fitted.normalization_.shape[0])


def _convert_is_missing(scope: Any, operator: Any, container: Any) -> None:
    from onnx import TensorProto
    from skl2onnx.algebra.onnx_ops import OnnxCast, OnnxIsNaN

    missing = OnnxIsNaN(operator.inputs[0], op_version=container.target_opset)
    last = OnnxCast(
        missing, to=TensorProto.DOUBLE, op_version=container.target_opset, output_names=operator.outputs[:1]
    )
    last.add_to(scope, container)


def _convert_fill_missing(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx.algebra.onnx_ops import OnnxIsNaN, OnnxWhere

    (rows,), version = operator.inputs, container.target_opset
    values = np.array([operator.raw_operator.values], dtype=np.float64)
    missing = OnnxIsNaN(rows, op_version=version)
    OnnxWhere(missing, values, rows, op_version=version, output_names=operator.outputs[:1]).add_to(scope, container)


def _convert_single(scope: Any, operator: Any, container: Any) -> None:
    from onnx import TensorProto
    from skl2onnx.algebra.onnx_ops import OnnxCast

    version, outputs = container.target_opset, operator.outputs[:1]
    OnnxCast(operator.inputs[0], to=TensorProto.FLOAT, op_version=version, output_names=outputs).add_to(
        scope, container
    )


def _convert_nystroem(scope: Any, operator: Any, container: Any) -> None:
    """Similarities to the landmarks, exp(-γ‖x - c‖²), times the root of their inverse."""
    from onnx import TensorProto
    from skl2onnx.algebra.onnx_ops import OnnxAdd, OnnxCast, OnnxExp, OnnxMatMul, OnnxMul, OnnxReduceSumSquare

    fitted, version = operator.raw_operator, container.target_opset
    landmarks = np.asarray(fitted.components_, dtype=np.float64)
    gamma = 1.0 / landmarks.shape[1] if fitted.gamma is None else float(fitted.gamma)
    # Squares of distances lose digits, so they are taken in double; what follows goes on in the precision of the rows.
    rows = OnnxCast(operator.inputs[0], to=TensorProto.DOUBLE, op_version=version)
    squares = OnnxReduceSumSquare(rows, np.array([1], dtype=np.int64), keepdims=1, op_version=version)
    crossed = OnnxMatMul(rows, -2.0 * landmarks.T, op_version=version)
    lengths = np.einsum("ij,ij->i", landmarks, landmarks)[None, :]
    distances = OnnxAdd(OnnxAdd(crossed, lengths, op_version=version), squares, op_version=version)
    kernel = OnnxExp(OnnxMul(distances, np.array([-gamma]), op_version=version), op_version=version)
    mapped = OnnxMatMul(kernel, np.asarray(fitted.normalization_, dtype=np.float64).T, op_version=version)
    kind = TensorProto.FLOAT if _comes_in_single(operator) else TensorProto.DOUBLE
    OnnxCast(mapped, to=kind, op_version=version, output_names=operator.outputs[:1]).add_to(scope, container)


def deciding_from(content: bytes, threshold: float, positive: Any, *, classes: Any) -> bytes:
    """Return a converted model of two classes that says `positive` from a threshold of its probability on.

    skl2onnx has no converter for a fixed threshold. The first output keeps its name; what it was before has another.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load_from_string(content)
    label, probabilities = model.graph.output[0], model.graph.output[1]
    for node in model.graph.node:
        node.output[:] = [f"likely_{label.name}" if name == label.name else name for name in node.output]
        node.input[:] = [f"likely_{label.name}" if name == label.name else name for name in node.input]
    known = classes.tolist()
    place = known.index(positive)
    kind = helper.tensor_dtype_to_np_dtype(label.type.tensor_type.elem_type)
    number = helper.tensor_dtype_to_np_dtype(probabilities.type.tensor_type.elem_type)
    said = np.array([known[1 - place], known[place]])
    constants = {
        "decision_place": np.array(place, dtype=np.int64),
        "decision_threshold": np.array(threshold, dtype=number),
        "decision_classes": said.astype(object if kind == np.dtype(object) else kind),
    }
    model.graph.initializer.extend([numpy_helper.from_array(value, name) for name, value in constants.items()])
    model.graph.node.extend(
        [
            helper.make_node("Gather", [probabilities.name, "decision_place"], ["decision_share"], axis=1),
            helper.make_node("GreaterOrEqual", ["decision_share", "decision_threshold"], ["decision_flag"]),
            helper.make_node("Cast", ["decision_flag"], ["decision_row"], to=onnx.TensorProto.INT64),
            helper.make_node("Gather", ["decision_classes", "decision_row"], [label.name]),
        ]
    )
    return bytes(model.SerializeToString())


def converters(model: Any) -> dict[str, Any]:
    """Return the arguments by which skl2onnx converts the parts that have a converter here.

    Raises PreconditionFailed if a Nystroem map has another kernel than the Gaussian one.
    """
    for part in parts_of(model):
        if isinstance(part, Nystroem) and part.kernel != "rbf":
            raise PreconditionFailed(f"its Nystroem map has the kernel {part.kernel!r}, and only 'rbf' is converted")
    return {
        "custom_conversion_functions": {
            IsMissing: _convert_is_missing,
            FillMissing: _convert_fill_missing,
            SinglePrecision: _convert_single,
            Nystroem: _convert_nystroem,
            PatchSums: convert_sums,
            ProductFeatures: convert_product,
            SquareRoots: convert_roots,
        },
        "custom_shape_calculators": {
            **dict.fromkeys((IsMissing, FillMissing, SinglePrecision, Nystroem), _shape),
            **dict.fromkeys((PatchSums, SquareRoots), shape_of_sums),
            ProductFeatures: shape_of_product,
        },
    }


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
