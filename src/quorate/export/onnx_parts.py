"""The parts of a published student that skl2onnx does not convert by itself, put in other words or converted here.

skl2onnx knows neither a frozen estimator, nor an indicator of missing values, nor missing text among the categories of
a one-hot encoder, nor the landmarks of a Nystroem map. The first three are put in words that it knows, on a copy of the
student; the others have a converter here. What is converted is compared with the student before it leaves, so that a
mistake made here shows as a refusal.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from quorate.errors import PreconditionFailed
from quorate.export.onnx_features import (
    PatchSums,
    ProductFeatures,
    SquareRoots,
    convert_product,
    convert_roots,
    convert_sums,
    patch_sums,
    product_features,
    shape_of_product,
    shape_of_sums,
)

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
    """One that is told how many columns there are."""

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


class DampedCounts(_LearnsNothing):
    """1 + log of each count above 0, which skl2onnx takes as log(1 + count)."""

    def transform(self, X: Any) -> Any:
        """Return the dense counts so changed."""
        counts = np.asarray(X.todense())
        return np.log(np.maximum(counts, 1)) + np.minimum(counts, 1)


class ConstantBefore(_OfColumns):
    """The rows with a column of ones before them, which skl2onnx makes in single precision."""

    def transform(self, X: Any) -> Any:
        """Return one column more."""
        return np.column_stack([np.ones(len(X)), X])


class FillMissing(_LearnsNothing):
    """Missing numbers become given ones, one a column."""

    def __init__(self, values: tuple[float, ...] = ()) -> None:
        self.values = values

    def transform(self, X: Any) -> Any:
        """Return the rows without a missing number."""
        rows = np.asarray(X, dtype=np.float64)
        return np.where(np.isnan(rows), np.array(self.values), rows)


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
        return ConstantBefore(part.n_features_in_)
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


def _shape_with_constant(operator: Any) -> None:
    form = operator.inputs[0].type
    operator.outputs[0].type = type(form)([None, operator.raw_operator.n_columns + 1])


def _convert_constant(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx.algebra.onnx_ops import OnnxPad
    from skl2onnx.common.data_types import FloatTensorType

    (rows,), version = operator.inputs, container.target_opset
    one = np.array(1, dtype=np.float32 if isinstance(rows.type, FloatTensorType) else np.float64)
    left = np.array([0, 1, 0, 0], dtype=np.int64)
    OnnxPad(rows, left, one, mode="constant", op_version=version, output_names=operator.outputs[:1]).add_to(
        scope, container
    )


def _convert_damped(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx.algebra.onnx_ops import OnnxAdd, OnnxLog, OnnxMax, OnnxMin
    from skl2onnx.common.data_types import FloatTensorType

    (counts,), version = operator.inputs, container.target_opset
    one = np.array([1], dtype=np.float32 if isinstance(counts.type, FloatTensorType) else np.float64)
    logs = OnnxLog(OnnxMax(counts, one, op_version=version), op_version=version)
    most_one = OnnxMin(counts, one, op_version=version)
    OnnxAdd(logs, most_one, op_version=version, output_names=operator.outputs[:1]).add_to(scope, container)


def _convert_normalizer(scope: Any, operator: Any, container: Any) -> None:
    """A row by its length; one of zeros stays, which skl2onnx divides by 0."""
    from skl2onnx.algebra.onnx_ops import (
        OnnxAbs,
        OnnxDiv,
        OnnxEqual,
        OnnxReduceL2,
        OnnxReduceMax,
        OnnxReduceSum,
        OnnxWhere,
    )
    from skl2onnx.common.data_types import FloatTensorType

    (rows,), version, along = operator.inputs, container.target_opset, np.array([1], dtype=np.int64)
    kind = np.float32 if isinstance(rows.type, FloatTensorType) else np.float64
    length = {"l1": OnnxReduceSum, "l2": OnnxReduceL2, "max": OnnxReduceMax}[operator.raw_operator.norm]
    lengths = length(OnnxAbs(rows, op_version=version), along, keepdims=1, op_version=version)
    zero = OnnxEqual(lengths, np.array([0], dtype=kind), op_version=version)
    divisors = OnnxWhere(zero, np.array([1], dtype=kind), lengths, op_version=version)
    OnnxDiv(rows, divisors, op_version=version, output_names=operator.outputs[:1]).add_to(scope, container)


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
    """Return a converted model of two classes that says `positive` from a threshold of its probability on. skl2onnx has
    no converter for that. The first output keeps its name.
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
    """Return the arguments by which skl2onnx converts the parts that have a converter here; refuse other Nystroem
    kernels.
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
            DampedCounts: _convert_damped,
            ConstantBefore: _convert_constant,
            Normalizer: _convert_normalizer,
        },
        "custom_shape_calculators": {
            **dict.fromkeys((IsMissing, FillMissing, SinglePrecision, Nystroem), _shape),
            **dict.fromkeys((PatchSums, SquareRoots, DampedCounts, Normalizer), shape_of_sums),
            ProductFeatures: shape_of_product,
            ConstantBefore: _shape_with_constant,
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
