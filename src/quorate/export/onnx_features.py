"""The product kernel of single columns, and patches of images, in ONNX.

skl2onnx knows neither columns of what has columns already, nor exp.

A published model tells numbers by intervals and categories by their indicators, sums logarithms, and takes their
exponential (:meth:`quorate.data.feature_maps.ProductKernelMap.transformer`). Here the same is two comparisons, two
products and an exponential, in double precision.

Images are told by one small transformer for all patches, in a ``ColumnTransformer`` of regions, each of which is one of
patches (:meth:`quorate.data.feature_maps.PatchFeatures.transformer`). Here the same is one gathering of pixels, one
product, and one sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler


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
        self.numbers = numbers
        self.low = low
        self.high = high
        self.indicators = indicators
        self.logarithms = logarithms
        self.root = root

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        return self

    @property
    def n_outputs(self) -> int:
        """Features."""
        return int(self.root.shape[1])

    def transform(self, X: Any) -> Any:
        """Return ``(n_rows, n_outputs)``."""
        rows = np.asarray(X, dtype=np.float64)
        own = rows[:, self.numbers]
        codes = np.hstack([(own >= self.low) & (own < self.high), rows[:, self.indicators]])
        return np.exp(codes @ self.logarithms) @ self.root


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
        intervals = intervals.estimator if isinstance(intervals, FrozenEstimator) else intervals
        if not isinstance(intervals, KBinsDiscretizer):
            return None
        numbers = np.repeat(np.asarray(places, dtype=np.int64), intervals.n_bins_)
        edges += [_ends(own[1:-1]) for own in intervals.bin_edges_]
    low, high = np.hstack(edges)
    indicators = np.asarray(columns["categories"][1] if "categories" in columns else [], dtype=np.int64)
    logs, last = (np.ascontiguousarray(step.components_.T, dtype=np.float64) for step in (logarithms, root))
    return ProductFeatures(numbers, low, high, indicators, logs, last)


def _ends(cuts: Any) -> Any:
    return np.array([[-np.inf, *cuts], [*cuts, np.inf]])


def shape_of_product(operator: Any) -> None:
    """Tell skl2onnx what comes out: as many numbers as the root has columns, in the precision of the rows."""
    operator.outputs[0].type = type(operator.inputs[0].type)([None, operator.raw_operator.n_outputs])


def convert_product(scope: Any, operator: Any, container: Any) -> None:
    """Write the features with the operators of ONNX."""
    from onnx import TensorProto
    from skl2onnx.algebra.onnx_ops import (
        OnnxAnd,
        OnnxCast,
        OnnxConcat,
        OnnxExp,
        OnnxGather,
        OnnxGreaterOrEqual,
        OnnxLess,
        OnnxMatMul,
    )
    from skl2onnx.common.data_types import FloatTensorType

    fitted, version = operator.raw_operator, container.target_opset
    rows, codes = OnnxCast(operator.inputs[0], to=TensorProto.DOUBLE, op_version=version), []
    if len(fitted.numbers):
        own = OnnxGather(rows, fitted.numbers, axis=1, op_version=version)
        above = OnnxGreaterOrEqual(own, fitted.low[None, :], op_version=version)
        within = OnnxAnd(above, OnnxLess(own, fitted.high[None, :], op_version=version), op_version=version)
        codes.append(OnnxCast(within, to=TensorProto.DOUBLE, op_version=version))
    if len(fitted.indicators):
        codes.append(OnnxGather(rows, fitted.indicators, axis=1, op_version=version))
    every = OnnxConcat(*codes, axis=1, op_version=version) if len(codes) > 1 else codes[0]
    product = OnnxExp(OnnxMatMul(every, fitted.logarithms, op_version=version), op_version=version)
    features = OnnxMatMul(product, fitted.root, op_version=version)
    kind = TensorProto.FLOAT if isinstance(operator.inputs[0].type, FloatTensorType) else TensorProto.DOUBLE
    OnnxCast(features, to=kind, op_version=version, output_names=operator.outputs[:1]).add_to(scope, container)


class PatchSums(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What patches share with centroids above a threshold, summed over regions. `places`: columns of the pixels of each
    patch. `threshold`, `most`: what is taken away, and what no difference is above.
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
    from skl2onnx.algebra.onnx_ops import OnnxClip, OnnxGather, OnnxMatMul, OnnxReduceSum, OnnxReshape, OnnxSub
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
